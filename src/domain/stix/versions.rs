//! Several stored versions of one STIX object: one that a writer without clearance sent stands beside the one above it.
//!
//! Rule: no answer and no bundle has an object twice. The row whose id follows from the object's stands for the object,
//! unless a version that was stored later is marked no lower; where that row is hidden, the latest version stands.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use uuid::Uuid;

use crate::domain::node::{KgNode, node_id};

/// The STIX id of a node that came in as STIX.
fn stix_id(node: &KgNode) -> Option<&str> {
    let id = node.properties.get("stix_id").and_then(Value::as_str);
    id.filter(|_| node.source_type == "stix")
}

/// Those of these nodes of a workspace that other versions stand for.
pub fn superseded<'n>(ws: Uuid, nodes: impl IntoIterator<Item = &'n KgNode>) -> HashSet<Uuid> {
    let mut versions: HashMap<&str, Vec<&KgNode>> = HashMap::new();
    for node in nodes {
        if let Some(id) = stix_id(node) {
            versions.entry(id).or_default().push(node);
        }
    }
    let mut superseded = HashSet::new();
    for (id, nodes) in versions.into_iter().filter(|(_, nodes)| nodes.len() > 1) {
        let first = nodes.iter().find(|node| node.id == node_id(ws, id));
        let level = first.map(|first| first.tlp);
        let stands = nodes
            .iter()
            .filter(|node| level.is_none_or(|level| node.tlp >= level));
        let stands = stands.max_by_key(|node| (node.ingested_at, node.tlp, node.id));
        let others = nodes.iter().map(|node| node.id);
        superseded.extend(others.filter(|id| stands.is_none_or(|stands| stands.id != *id)));
    }
    superseded
}

#[cfg(test)]
mod tests;
