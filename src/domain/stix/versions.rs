//! Several stored versions of one STIX object: one that a writer without clearance sent stands beside the one above it.
//!
//! Rule: no answer and no bundle has an object twice. The row whose id follows from the object's stands for the object,
//! unless a version that was stored later is marked no lower; where that row is hidden, the latest version stands.

use std::collections::HashMap;

use serde_json::Value;
use uuid::Uuid;

use crate::domain::ids::WorkspaceIds;
use crate::domain::node::KgNode;

/// The STIX id of a node that came in as STIX.
pub fn stix_id(node: &KgNode) -> Option<&str> {
    let id = node.properties.get("stix_id").and_then(Value::as_str);
    id.filter(|_| node.source_type == "stix")
}

/// Which of these nodes of a workspace stand for others of them: the id of the version that stands for its object, by
/// those of the object's other versions.
pub fn standing_versions<'n>(
    ids: WorkspaceIds,
    nodes: impl IntoIterator<Item = &'n KgNode>,
) -> HashMap<Uuid, Uuid> {
    let mut versions: HashMap<&str, Vec<&KgNode>> = HashMap::new();
    for node in nodes {
        if let Some(id) = stix_id(node) {
            versions.entry(id).or_default().push(node);
        }
    }
    let mut standing = HashMap::new();
    for (id, nodes) in versions.into_iter().filter(|(_, nodes)| nodes.len() > 1) {
        let first = nodes.iter().find(|node| node.id == ids.node(id));
        let level = first.map(|first| first.tlp);
        let able = nodes
            .iter()
            .filter(|node| level.is_none_or(|level| node.tlp >= level));
        let Some(stands) = able.max_by_key(|node| (node.ingested_at, node.tlp, node.id)) else {
            continue;
        };
        let others = nodes.iter().filter(|node| node.id != stands.id);
        standing.extend(others.map(|node| (node.id, stands.id)));
    }
    standing
}

#[cfg(test)]
mod tests;
