//! One node or one evidence record, by its id: filtered as a search is, and audited.

use super::core::GraphCore;
use super::{NodeDetail, ReadEvidence, ReadNode};
use crate::actors::audit_writer::Append;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::detail::EvidenceRecord;
use crate::domain::error::DomainError;
use crate::domain::session::Visible;

/// Most evidence records that are shown beside a node; the ids of all of them stand in the node.
const MOST_EVIDENCE: usize = 100;

impl GraphCore {
    /// A node with a page of its relationships and its newest evidence.
    pub(super) async fn read_node(&self, message: ReadNode) -> Result<NodeDetail, DomainError> {
        let ReadNode {
            by,
            node,
            include_rejected,
            page,
        } = message;
        let include_rejected = include_rejected && by.may_see_rejected();
        let clearance = by.workspace.clearance();
        let (ws, highest) = (by.workspace.id, clearance.highest());
        let stored = self
            .store
            .nodes_by_id(ws, &[node], highest, include_rejected)
            .await?;
        let nodes = stored.into_iter().map(|stored| stored.node).collect();
        let found = Visible::filter(nodes, clearance).into_first();
        let found = found.ok_or(DomainError::NotFound("node"))?;
        let (relationships, more_relationships) = self
            .store
            .relationships_of(ws, node, (highest, include_rejected), page)
            .await?;
        // Linked in the order of their arrival, so the last are the newest.
        let linked = &found.linked_evidence_ids;
        let older = linked.len().saturating_sub(MOST_EVIDENCE);
        let evidence = self
            .store
            .evidence_heads(ws, linked.get(older..).unwrap_or_default(), highest)
            .await?;
        let entry = AuditEntry::by(&by, "node.read", "node", Outcome::Success, clock::now())
            .on(node)
            .with("tlp", found.tlp.as_str())
            .with("include_rejected", include_rejected);
        self.audit().call(Append(entry)).await?;
        Ok(NodeDetail {
            node: found,
            relationships: Visible::filter(relationships, clearance),
            more_relationships,
            evidence: Visible::filter(evidence, clearance),
            more_evidence: older > 0,
        })
    }

    /// An evidence record with what it says.
    pub(super) async fn read_evidence(&self, message: ReadEvidence) -> Result<EvidenceRecord, DomainError> {
        let ReadEvidence {
            by,
            evidence,
            include_rejected,
        } = message;
        let include_rejected = include_rejected && by.may_see_rejected();
        let clearance = by.workspace.clearance();
        let found = self
            .store
            .evidence(by.workspace.id, evidence, clearance.highest(), include_rejected)
            .await?;
        let found = Visible::filter(found.into_iter().collect(), clearance).into_first();
        let found = found.ok_or(DomainError::NotFound("evidence record"))?;
        let entry = AuditEntry::by(&by, "evidence.read", "evidence", Outcome::Success, clock::now())
            .on(evidence)
            .with("tlp", found.head.tlp.as_str())
            .with("include_rejected", include_rejected);
        self.audit().call(Append(entry)).await?;
        Ok(found)
    }
}
