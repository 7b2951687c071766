//! End-to-end tests: the real application, the real database, real HTTP.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm
)]

mod administration;
mod analyst;
mod array_bodies;
mod attack;
mod audit;
mod auth_matrix;
mod backpressure;
mod bad_input;
mod bad_urls;
mod disk_full;
mod durability;
mod embedding;
mod empty_bundles;
mod extraction;
mod held_back;
mod helpers;
mod hub;
mod ingest_bounds;
mod ingest_markings;
mod ingest_memory;
mod ingest_order;
mod ingest_rules;
mod ingest_size;
mod local;
mod local_api;
mod local_bodies;
mod local_config;
mod local_durability;
mod local_edition;
mod local_enricher;
mod local_guard;
mod local_ingest;
mod local_logs;
mod local_model;
mod local_repeats;
mod local_replay;
mod local_streams;
mod lockout;
mod log_secrets;
mod markings;
mod methods;
mod misp;
mod misp_shapes;
mod neighbours;
mod not_found_timing;
mod osint;
mod osint_identity;
mod preview_markings;
mod process;
mod reads;
#[path = "../support/shared.rs"]
mod real_input;
mod refusals;
mod remote;
mod report;
mod round_trip;
mod secret_settings;
mod sign_in;
mod sign_in_time;
mod sign_in_workspaces;
mod smoke;
mod staging;
mod staging_commit;
mod staging_model;
mod staging_properties;
mod staging_refusals;
mod staging_sessions;
mod stix;
mod storm;
mod tenancy;
mod tlp;
mod ways_in;
mod workspaces;
