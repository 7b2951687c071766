//! End-to-end tests: the real application, the real database, real HTTP.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm
)]

mod backup;
mod benchmarks_page;
mod check;
mod data_directory;
mod disk_full;
mod disk_room;
mod durability;
mod embedding;
mod helpers;
mod hosted;
mod local;
mod log_reader;
mod log_secrets;
mod openapi;
mod pages;
mod process;
mod recovery;
mod remote;
mod shared_service;
mod smoke;
mod stix;
mod storm;
mod tls;
mod traces;
mod transfer;
mod upgrade;
mod wrong_types;
