//! STIX 2.1: reading bundles, writing bundles, and the rules for both.

pub mod bundle;
pub mod complete;
pub mod corrected;
pub mod export;
pub mod ingest;
pub mod marking;
pub mod object;
pub mod objects;
pub mod pattern;
pub mod properties;
pub mod schema;
pub mod sco;
pub mod skip_report;
pub mod synthesize;
pub mod titles;
pub mod versions;
