//! Loads the nodes that a search found.
//!
//! Rule: an answer has that version of a STIX object which stands for it among all that the caller may see, whichever of
//! them the search found (`domain/stix/versions.rs`).

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::core::GraphCore;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::node::{KgNode, NodeStatus};
use crate::domain::principal::Workspace;
use crate::domain::session::{ScoredNode, Visible};
use crate::domain::stix::versions::{standing_versions, stix_id};
use crate::search::{Filter, Hit, KeyKind};

/// The nodes of a page of hits.
pub(super) struct LoadedHits {
    /// Best first.
    pub(super) rows: Visible<ScoredNode>,
    /// The versions that were found, by the nodes that stand for them.
    pub(super) replaced: HashMap<Uuid, Uuid>,
}

impl GraphCore {
    /// The nodes found that a caller of this workspace may see. A version that another one stands for leaves its place
    /// and score to that one, unless that one is rejected and may not be shown.
    pub(super) async fn load(
        &self,
        workspace: &Workspace,
        hits: Vec<Hit>,
        include_rejected: bool,
    ) -> Result<LoadedHits, DomainError> {
        let (ws, clearance) = (workspace.id, workspace.clearance());
        let ids: Vec<Uuid> = hits.iter().map(|hit| hit.node_id).collect();
        let stored = self
            .graph
            .store
            .nodes_by_id(ws, &ids, clearance.highest(), include_rejected)
            .await?;
        let mut nodes: HashMap<Uuid, KgNode> = stored
            .into_iter()
            .map(|stored| (stored.node.id, stored.node))
            .collect();
        let others = self.other_versions(workspace, &nodes).await?;
        let standing = standing_versions(self.graph.store.ids_of(ws), nodes.values().chain(&others));
        let is_shown = |node: &KgNode| include_rejected || node.status != NodeStatus::Rejected;
        let others = others.into_iter().filter(is_shown);
        nodes.extend(others.map(|node| (node.id, node)));
        let (mut rows, mut replaced) = (Vec::new(), HashMap::new());
        for hit in hits {
            let stands = standing.get(&hit.node_id).copied().unwrap_or(hit.node_id);
            let Some(node) = nodes.remove(&stands) else {
                continue;
            };
            if stands != hit.node_id {
                replaced.insert(stands, hit.node_id);
            }
            rows.push(ScoredNode {
                node,
                score: hit.score,
                matched: hit.matched,
                why: None,
            });
        }
        Ok(LoadedHits {
            rows: Visible::filter(rows, clearance),
            replaced,
        })
    }

    /// The versions of these STIX objects that a caller of this workspace may see besides these nodes, rejected ones
    /// included: the index knows them by the ids of their objects.
    async fn other_versions(
        &self,
        workspace: &Workspace,
        nodes: &HashMap<Uuid, KgNode>,
    ) -> Result<Vec<KgNode>, DomainError> {
        let objects: HashSet<String> = nodes.values().filter_map(stix_id).map(str::to_owned).collect();
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let (ws, highest) = (workspace.id, workspace.clearance().highest());
        let filter = Filter {
            include_rejected: true,
            ..Filter::up_to(highest).of_all()
        };
        let target = self.graph.index_of(ws).await?;
        let found = blocking(move || {
            let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
            target.lookup(&objects, &filter).map_err(index_error)
        })
        .await?;
        let named = found
            .into_iter()
            .filter(|found| found.kind == KeyKind::Identifier);
        let others: HashSet<Uuid> = named.map(|found| found.node_id).collect();
        let others = others.into_iter().filter(|id| !nodes.contains_key(id));
        let stored = self
            .graph
            .store
            .nodes_by_id(ws, &others.collect::<Vec<_>>(), highest, true)
            .await?;
        Ok(stored.into_iter().map(|stored| stored.node).collect())
    }
}
