//! Corrects nodes, relationships and evidence records by hand.

use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use super::core::GraphCore;
use crate::actors::indexed_store::WorkspaceState;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::confidence::Confidence;
use crate::domain::error::DomainError;
use crate::domain::graph::correction::{FieldCorrection, NodeChanges};
use crate::domain::node::{KgNode, NodeStatus};
use crate::domain::permission::Permission;
use crate::domain::principal::Principal;
use crate::domain::tlp::Tlp;
use crate::store::{Corrector, GraphWritten, StoredNode};

/// The entity tag of a node as its reader sees it (RFC 9110 section 8.8.3). It is made of what the reader is shown, so what is
/// hidden from the reader changes nothing in it.
pub(super) fn entity_tag(node: &KgNode) -> String {
    // Plain fields can always be serialised.
    let text = serde_json::to_vec(node).unwrap_or_default();
    let digest = hex::encode(Sha256::digest(text));
    format!("\"{}\"", digest.get(..32).unwrap_or_default())
}

/// The entity tags of which a node must have one; `None` for any (`*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedTags(pub Option<Vec<String>>);

impl ExpectedTags {
    fn admit(&self, stored: &StoredNode) -> bool {
        let tag = entity_tag(&stored.node);
        self.0.as_ref().is_none_or(|tags| tags.contains(&tag))
    }
}

/// Sets fields of a node by hand.
#[derive(Debug)]
pub struct CorrectNode {
    pub by: Principal,
    pub node: Uuid,
    pub changes: NodeChanges,
    pub reason: Option<String>,
    /// Refuses the correction of a node that is not the one that was read.
    pub expected: ExpectedTags,
}

/// A node after a correction.
#[derive(Debug)]
pub struct NodeAfterCorrection {
    pub node: KgNode,
    pub corrections: Vec<FieldCorrection>,
    pub entity_tag: String,
}

impl Work for CorrectNode {
    type Core = GraphCore;
    type Reply = NodeAfterCorrection;
    const NAME: &'static str = "correct_node";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let by = &self.by;
        let ws = by.workspace.id;
        core.graph.index_of(ws).await?;
        let entry = AuditEntry::by(by, "node.correct", "node", Outcome::Success, clock::now());
        let state = core.graph.state(ws);
        let done = {
            let mut turn = core.graph.turn(ws, &state).await?;
            let done = loop {
                let corrector = corrector(by, self.reason.as_deref(), turn.after(), &entry);
                let is_current = |stored: &StoredNode| self.expected.admit(stored);
                let store = &core.graph.store;
                match store
                    .correct_node(&corrector, self.node, &self.changes, is_current)
                    .await
                {
                    Ok(done) => break done,
                    Err(error) => turn.plan_again(error).await?,
                }
            };
            turn.record(done.written.rev);
            done
        };
        core.finish_correction(ws, &state, &done.written, done.entry)
            .await;
        let mut node = done.stored.node;
        let entity_tag = entity_tag(&node);
        core.warninglists.current().mark(&mut node);
        let highest = by.workspace.clearance().highest();
        let corrections = done
            .stored
            .correction
            .map(|correction| correction.shown_to(highest));
        Ok(NodeAfterCorrection {
            node,
            corrections: corrections.unwrap_or_default(),
            entity_tag,
        })
    }
}

/// A relationship whose status was set by hand.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Relationship)]
pub struct RelationshipStatus {
    pub id: Uuid,
    #[schema(example = "uses")]
    pub relationship_type: String,
    /// The id of the node that it leads from.
    pub source: Uuid,
    /// The id of the node that it leads to.
    pub target: Uuid,
    pub tlp: Tlp,
    /// 0 to 1.
    #[schema(value_type = Confidence)]
    pub confidence: f64,
    pub status: NodeStatus,
}

/// Rejects or restores a relationship by hand.
#[derive(Debug)]
pub struct CorrectEdge {
    pub by: Principal,
    pub edge: Uuid,
    pub active: bool,
    pub reason: Option<String>,
}

impl Work for CorrectEdge {
    type Core = GraphCore;
    type Reply = RelationshipStatus;
    const NAME: &'static str = "correct_edge";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let by = &self.by;
        let ws = by.workspace.id;
        core.graph.index_of(ws).await?;
        let entry = AuditEntry::by(by, "edge.correct", "edge", Outcome::Success, clock::now());
        let state = core.graph.state(ws);
        let (row, written, entry) = {
            let mut turn = core.graph.turn(ws, &state).await?;
            let done = loop {
                let corrector = corrector(by, self.reason.as_deref(), turn.after(), &entry);
                match core
                    .graph
                    .store
                    .correct_edge(&corrector, self.edge, self.active)
                    .await
                {
                    Ok(done) => break done,
                    Err(error) => turn.plan_again(error).await?,
                }
            };
            turn.record(done.1.rev);
            done
        };
        core.finish_correction(ws, &state, &written, entry).await;
        let status = match row.active {
            true => NodeStatus::Active,
            false => NodeStatus::Rejected,
        };
        let (source, target) = row.ends()?;
        Ok(RelationshipStatus {
            id: self.edge,
            source,
            target,
            tlp: row.level()?,
            confidence: row.confidence,
            relationship_type: row.relationship,
            status,
        })
    }
}

/// Rejects or restores an evidence record by hand.
#[derive(Debug)]
pub struct CorrectEvidence {
    pub by: Principal,
    pub evidence: Uuid,
    pub active: bool,
    pub reason: Option<String>,
}

/// What an evidence record's new status changed with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct EvidenceStatus {
    pub id: Uuid,
    pub status: NodeStatus,
    /// Number of nodes that list it no longer, or again.
    #[schema(example = 1)]
    pub nodes: u64,
    /// Number of relationships that it alone states, which were rejected or restored with it.
    #[schema(example = 2)]
    pub relationships: u64,
}

impl Work for CorrectEvidence {
    type Core = GraphCore;
    type Reply = EvidenceStatus;
    const NAME: &'static str = "correct_evidence";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let by = &self.by;
        let ws = by.workspace.id;
        core.graph.index_of(ws).await?;
        let entry = AuditEntry::by(by, "evidence.correct", "evidence", Outcome::Success, clock::now());
        let state = core.graph.state(ws);
        let done = {
            let mut turn = core.graph.turn(ws, &state).await?;
            let done = loop {
                let corrector = corrector(by, self.reason.as_deref(), turn.after(), &entry);
                let store = &core.graph.store;
                match store
                    .correct_evidence(&corrector, self.evidence, self.active)
                    .await
                {
                    Ok(done) => break done,
                    Err(error) => turn.plan_again(error).await?,
                }
            };
            turn.record(done.written.rev);
            done
        };
        core.finish_correction(ws, &state, &done.written, done.entry)
            .await;
        Ok(EvidenceStatus {
            id: self.evidence,
            status: match self.active {
                true => NodeStatus::Active,
                false => NodeStatus::Rejected,
            },
            nodes: done.nodes,
            relationships: done.edges,
        })
    }
}

impl GraphCore {
    /// Indexes what a correction changed, and links its audit entry.
    async fn finish_correction(
        &self,
        ws: Uuid,
        state: &WorkspaceState,
        written: &GraphWritten,
        entry: AuditEntry,
    ) {
        let indexed = self.index_stored(ws, state, written);
        tokio::join!(indexed, self.graph.chain(entry));
    }
}

fn corrector<'a>(
    by: &'a Principal,
    reason: Option<&'a str>,
    after: u64,
    entry: &'a AuditEntry,
) -> Corrector<'a> {
    Corrector {
        ws: by.workspace.id,
        highest: by.workspace.clearance().highest(),
        include_rejected: by.may_see_rejected(),
        may_lower: by.holds(Permission::Admin),
        name: by.email(),
        reason,
        after,
        now: clock::now(),
        entry,
    }
}

/// The statuses that can be set by hand.
///
/// # Errors
/// For `merged`, which a merge alone sets.
pub fn settable_status(status: NodeStatus) -> Result<NodeStatus, DomainError> {
    match status {
        NodeStatus::Active | NodeStatus::Rejected => Ok(status),
        NodeStatus::Merged => {
            let rule = "must be active or rejected; a node is merged by POST /api/nodes/{id}/merge";
            Err(DomainError::invalid("status", rule))
        }
    }
}

/// What of a correction an answer shows to a reader up to a marking.
pub(super) fn shown_corrections(stored: &StoredNode, highest: Tlp) -> Vec<FieldCorrection> {
    let correction = stored.correction.as_ref();
    correction
        .map(|correction| correction.shown_to(highest))
        .unwrap_or_default()
}
