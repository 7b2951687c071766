//! A file for the rules of each kind of hit. They read a token and what is around it, and push what they find.

pub(super) mod bitcoin;
pub(super) mod cve;
pub(super) mod files;
pub(super) mod hash;
pub(super) mod host;
pub(super) mod identifiers;
pub(super) mod network;
pub(super) mod paths;
pub(super) mod rule_names;
pub(super) mod url;
