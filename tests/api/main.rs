//! The service as its clients see it: the real application, the real database, real HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod attack;
mod helpers;
mod round_trip;
mod smoke;
mod stix;
