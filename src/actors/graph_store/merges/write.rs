//! Merging two nodes, and taking a merge back.

use std::sync::Arc;

use uuid::Uuid;

use super::SeenMerges;
use crate::actors::graph_store::core::GraphCore;
use crate::actors::graph_store::matching::equivalent_types;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::graph::merging::Merge;
use crate::domain::node::{KgNode, NodeStatus};
use crate::domain::principal::Principal;
use crate::domain::tlp::Tlp;
use crate::store::StoredNode;

/// Merges a node into another one.
#[derive(Debug)]
pub struct MergeNode {
    pub by: Principal,
    pub node: Uuid,
    pub into: Uuid,
    pub reason: Option<String>,
}

/// Takes a merge back.
#[derive(Debug)]
pub struct UnmergeNode {
    pub by: Principal,
    pub node: Uuid,
    pub reason: Option<String>,
}

/// What has become of a node.
#[derive(Debug)]
pub struct MergeOutcome {
    pub node: Uuid,
    pub status: NodeStatus,
    /// The node that it is merged into.
    pub merged_into: Option<Uuid>,
    /// The node that stands for it now: itself, unless it is merged.
    pub standing: Uuid,
}

/// What a request changes; `None` if it is so already.
type Planned = Option<Merge>;

impl Work for MergeNode {
    type Core = GraphCore;
    type Reply = MergeOutcome;
    const NAME: &'static str = "merge_node";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let entry = AuditEntry::by(&self.by, "node.merge", "node", Outcome::Success, clock::now())
            .with("into", self.into.to_string());
        let change = MergeChange {
            shown: (self.by.workspace.clearance().highest(), false),
            nodes: &[self.node, self.into],
            entry: entry.on(self.node),
        };
        core.change_merge(self.by.workspace.id, change, |merges, nodes| {
            self.planned(merges, nodes)
        })
        .await
    }
}

impl Work for UnmergeNode {
    type Core = GraphCore;
    type Reply = MergeOutcome;
    const NAME: &'static str = "unmerge_node";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let entry = AuditEntry::by(&self.by, "node.unmerge", "node", Outcome::Success, clock::now());
        let change = MergeChange {
            shown: (
                self.by.workspace.clearance().highest(),
                self.by.may_see_rejected(),
            ),
            nodes: &[self.node],
            entry: entry.on(self.node),
        };
        core.change_merge(self.by.workspace.id, change, |merges, nodes| {
            let node = nodes.get(self.node).ok_or(DomainError::NotFound("node"))?;
            let merge = merges.told(node).and(merges.all().of_node(self.node));
            let merge = merge.ok_or_else(|| DomainError::Conflict("the node is not merged".to_owned()))?;
            Ok(Some(Merge {
                ended: Some(clock::now()),
                ..merge.clone()
            }))
        })
        .await
    }
}

/// A change of a node's merge.
struct MergeChange<'n> {
    /// What the caller sees.
    shown: (Tlp, bool),
    /// The node, and what else the request names.
    nodes: &'n [Uuid],
    entry: AuditEntry,
}

/// The nodes that a request names, as far as the caller sees them.
struct NamedNodes(Vec<StoredNode>);

impl NamedNodes {
    fn get(&self, id: Uuid) -> Option<&KgNode> {
        self.0
            .iter()
            .map(|stored| &stored.node)
            .find(|node| node.id == id)
    }
}

impl MergeNode {
    fn planned(&self, merges: &SeenMerges, nodes: &NamedNodes) -> Result<Planned, DomainError> {
        let refused = |rule: String| Err(DomainError::invalid("into", rule));
        let node = nodes.get(self.node).ok_or(DomainError::NotFound("node"))?;
        let into = nodes.get(self.into).ok_or(DomainError::NotFound("into: node"))?;
        if let Some(merged) = merges.told(node) {
            if merged.merged_into == into.id {
                return Ok(None);
            }
            let rule = format!(
                "the node is merged into {} already: take that back first",
                merged.merged_into
            );
            return Err(DomainError::Conflict(rule));
        }
        if node.id == into.id || merges.all().stands_in(into.id, node.id) {
            return refused("must be another node, and none that is merged into this one".to_owned());
        }
        if merges.are_distinct(node.id, into.id) {
            let rule = "the nodes are remembered as not the same: take that back first";
            return Err(DomainError::Conflict(rule.to_owned()));
        }
        if !equivalent_types(node.node_type).contains(&into.node_type) {
            return refused(format!(
                "must be of the same type, and is of type {}, not {}",
                into.node_type, node.node_type
            ));
        }
        if into.tlp > node.tlp {
            return refused(format!(
                "must not be marked more strictly than the node ({}, not {}), or those who see only the node would lose \
                 it: merge the other way round",
                into.tlp, node.tlp
            ));
        }
        Ok(Some(Merge {
            node: node.id,
            into: into.id,
            reason: self.reason.clone(),
            at: clock::now(),
            ended: None,
        }))
    }
}

impl GraphCore {
    /// Plans a change of a node's merge, and writes it with its audit entry.
    async fn change_merge(
        &self,
        ws: Uuid,
        change: MergeChange<'_>,
        plan: impl Fn(&SeenMerges, &NamedNodes) -> Result<Planned, DomainError>,
    ) -> Result<MergeOutcome, DomainError> {
        let MergeChange { shown, nodes, entry } = change;
        let state = self.graph.state(ws);
        let store = &self.graph.store;
        let (named, is_written) = {
            let mut turn = self.graph.turn(ws, &state).await?;
            loop {
                // What the index does not show yet, the caller would not see.
                state.wait_until_indexed().await?;
                let named = store.nodes_by_id(ws, nodes, shown.0, shown.1).await?;
                let named = NamedNodes(named);
                let merges = self.merges_seen(ws, shown).await?;
                let Some(merge) = plan(&merges, &named)? else {
                    break (named, false);
                };
                match store.write_merge(ws, &merge, turn.after(), &entry).await {
                    Ok(written) => {
                        self.graph.source.merges.forget(ws);
                        turn.record_unindexed(written.rev);
                        break (named, true);
                    }
                    Err(error) => turn.plan_again(error).await?,
                }
            }
        };
        if is_written {
            self.graph.chain(entry).await;
        }
        let node = nodes.first().and_then(|node| named.get(*node));
        let node = node.ok_or(DomainError::NotFound("node"))?;
        let merges = self.merges_seen(ws, shown).await?;
        let merged = merges.told(node);
        Ok(MergeOutcome {
            node: node.id,
            status: merged.as_ref().map_or(node.status, |merged| merged.status),
            merged_into: merged.map(|merged| merged.merged_into),
            standing: merges.standing(node.id),
        })
    }
}
