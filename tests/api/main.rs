//! The service as its clients see it: the real application, the real database, real HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod attack;
mod auth_matrix;
mod bad_input;
mod embedding;
mod helpers;
mod ingest_rules;
mod round_trip;
mod sign_in;
mod smoke;
mod stix;
