//! The rules of the service, pure: no actors, no database, no clock (`now` is passed in).

pub mod audit;
pub mod confidence;
pub mod detail;
pub mod draft;
pub mod email;
pub mod error;
pub mod extraction;
pub mod items;
pub mod memory;
pub mod misp;
pub mod naming;
pub mod node;
pub mod permission;
pub mod principal;
pub mod session;
pub mod staging;
pub mod stix;
pub mod tlp;
