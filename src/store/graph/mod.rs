//! Nodes, evidence, relationships and recall sessions: what is read of the graph, and the journal of its writes. Every
//! query filters by workspace and marking.

pub(super) mod added;
mod added_again;
pub(in crate::store) mod added_dates;
mod added_edges;
mod additions;
pub(super) mod change_log;
pub(super) mod corrections;
mod erased_changes;
pub(super) mod erasure;
mod evidence;
pub(super) mod evidence_status;
pub(super) mod exportable;
pub(super) mod faces;
pub(super) mod journal;
pub(super) mod links;
pub(super) mod merges;
mod narrowing;
pub(super) mod neighbours;
pub(super) mod nodes;
pub(super) mod object_facts;
pub(super) mod passages;
pub(super) mod paths;
pub(super) mod sessions;
pub(super) mod told;
mod turns;
mod visibility;
pub(super) mod write;
