//! The service as its clients see it: the real application, the real database, real HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod administration;
mod attack;
mod audit;
mod auth_matrix;
mod backpressure;
mod bad_input;
mod bad_urls;
mod durability;
mod embedding;
mod helpers;
mod ingest_order;
mod ingest_rules;
mod log_secrets;
mod markings;
mod process;
mod round_trip;
mod sign_in;
mod smoke;
mod stix;
mod tenancy;
mod tlp;
mod workspaces;
