//! Loads the nodes that a search found.
//!
//! Rules:
//! - An answer has that version of a STIX object which stands for it among all that the caller may see, whichever of them the
//!   search found (`domain/stix/versions.rs`).
//! - A node that is merged leaves its place to the one that it is merged into (`domain/graph/merging.rs`).

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::core::GraphCore;
use super::recall::EXACT;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::node::{KgNode, NodeStatus};
use crate::domain::principal::Workspace;
use crate::domain::session::{ScoredNode, Visible};
use crate::domain::stix::versions::{standing_versions, stix_id};
use crate::domain::why::MatchedBy;
use crate::search::{Filter, Hit, KeyKind};

/// The nodes of a page of hits.
pub(super) struct LoadedHits {
    /// Best first.
    pub(super) rows: Visible<ScoredNode>,
    /// The versions that were found, by the nodes that stand for them.
    pub(super) replaced: HashMap<Uuid, Uuid>,
}

/// Nodes, and which of them stand for others.
#[derive(Default)]
pub(super) struct StandingNodes {
    pub(super) nodes: HashMap<Uuid, KgNode>,
    /// The version that stands for its object, by those of the object's other versions, and the node that stands for those
    /// merged into it.
    pub(super) standing: HashMap<Uuid, Uuid>,
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
        let ids: Vec<Uuid> = hits.iter().map(|hit| hit.node_id).collect();
        let StandingNodes { mut nodes, standing } =
            self.standing_nodes(workspace, &ids, include_rejected).await?;
        let (mut rows, mut replaced, mut listed) = (Vec::new(), HashMap::new(), Vec::new());
        let warninglists = self.warninglists.current();
        for hit in hits {
            let stands = standing.get(&hit.node_id).copied().unwrap_or(hit.node_id);
            let Some(mut node) = nodes.remove(&stands) else {
                continue;
            };
            if stands != hit.node_id {
                replaced.insert(stands, hit.node_id);
            }
            let is_listed = warninglists.mark(&mut node);
            let row = ScoredNode {
                node,
                score: hit.score,
                matched: hit.matched,
                why: None,
            };
            let is_asked_for = hit.score >= EXACT || hit.matched == MatchedBy::Graph;
            match is_listed && !is_asked_for {
                true => listed.push(row),
                false => rows.push(row),
            }
        }
        // What is on a warninglist comes last, unless the query names it, or asks for it by a relationship.
        let least = rows.last().map(|row| row.score);
        rows.extend(listed.into_iter().map(|row| ScoredNode {
            score: least.map_or(row.score, |least| row.score.min(least)),
            ..row
        }));
        Ok(LoadedHits {
            rows: Visible::filter(rows, workspace.clearance()),
            replaced,
        })
    }

    /// Those of these nodes that a caller of this workspace may see, with the versions that stand for them.
    pub(super) async fn standing_nodes(
        &self,
        workspace: &Workspace,
        ids: &[Uuid],
        include_rejected: bool,
    ) -> Result<StandingNodes, DomainError> {
        let (ws, highest) = (workspace.id, workspace.clearance().highest());
        let store = &self.graph.store;
        let merges = self.merges_seen(ws, (highest, include_rejected)).await?;
        let wanted = merges.with_standing(ids);
        let stored = store.nodes_by_id(ws, &wanted, highest, include_rejected).await?;
        let mut nodes: HashMap<Uuid, KgNode> = stored
            .into_iter()
            .map(|stored| (stored.node.id, stored.node))
            .collect();
        let others = self.other_versions(workspace, &nodes).await?;
        let standing = standing_versions(store.ids_of(ws), nodes.values().chain(&others));
        let is_shown = |node: &KgNode| include_rejected || node.status != NodeStatus::Rejected;
        let others = others.into_iter().filter(is_shown);
        nodes.extend(others.map(|node| (node.id, node)));
        let mut found = StandingNodes { nodes, standing };
        if !merges.is_empty() {
            self.let_merged_stand(ws, &merges, &mut found).await?;
        }
        Ok(found)
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
