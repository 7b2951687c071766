//! Brings a store of an earlier version to today's schema.

pub(super) mod audit;
pub(super) mod migrate;
