//! Nodes, evidence, relationships and recall sessions: what is read of the graph, and the journal of its writes. Every
//! query filters by workspace and marking.

mod evidence;
pub(super) mod journal;
pub(super) mod links;
mod narrowing;
pub(super) mod neighbours;
pub(super) mod nodes;
pub(super) mod passages;
pub(super) mod paths;
pub(super) mod sessions;
mod turns;
mod visibility;
pub(super) mod write;
