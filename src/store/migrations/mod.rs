//! Brings a store of an earlier version to today's schema.

pub(super) mod audit;
mod initial;
pub(super) mod migrate;
