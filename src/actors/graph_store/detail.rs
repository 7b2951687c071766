//! Reads one node or one evidence record by id, filtered as a search is, and audited.

use std::sync::Arc;

use uuid::{Builder, Uuid, Version};

use super::core::GraphCore;
use super::correct::{entity_tag, shown_corrections};
use super::merges::Group;
use crate::actors::audit_writer::Append;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::detail::{EvidenceHead, EvidenceRecord, MergedNode, NodeRelationship, StixId};
use crate::domain::error::DomainError;
use crate::domain::graph::correction::FieldCorrection;
use crate::domain::graph::merging::unite;
use crate::domain::node::KgNode;
use crate::domain::principal::Principal;
use crate::domain::session::Visible;
use crate::domain::stix::object;
use crate::domain::stix::synthesize::{Origin, object_of};
use crate::domain::tlp::Tlp;
use crate::store::{Page, StoredNode};

/// Maximum number of evidence records shown with a node; the node lists the ids of all of them.
const MAX_EVIDENCE: usize = 100;

/// What a node is asked for by.
#[derive(Debug)]
pub enum NodeName {
    Id(Uuid),
    /// The id of the STIX object that it came as, or with which it is exported.
    Stix(StixId),
}

/// Reads a node with its evidence and relationships.
#[derive(Debug)]
pub struct ReadNode {
    pub by: Principal,
    pub node: NodeName,
    pub include_rejected: bool,
    /// Page of its relationships.
    pub page: Page,
}

/// A node with its evidence and relationships.
#[derive(Debug)]
pub struct NodeDetail {
    pub node: KgNode,
    /// Its entity tag for this reader.
    pub entity_tag: String,
    /// What was set by hand.
    pub corrections: Vec<FieldCorrection>,
    pub relationships: Visible<NodeRelationship>,
    pub more_relationships: bool,
    /// Newest first.
    pub evidence: Visible<EvidenceHead>,
    pub more_evidence: bool,
    /// The nodes that are merged into it, directly or not.
    pub merged: Visible<MergedNode>,
    /// The node that was asked for, if it is one of these.
    pub asked_for: Option<Uuid>,
}

impl Work for ReadNode {
    type Core = GraphCore;
    type Reply = NodeDetail;
    const NAME: &'static str = "read_node";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let ReadNode {
            by,
            node,
            include_rejected,
            page,
        } = self;
        let include_rejected = include_rejected && by.may_see_rejected();
        let clearance = by.workspace.clearance();
        let (ws, highest) = (by.workspace.id, clearance.highest());
        let stored = match node {
            NodeName::Id(id) => core.node_by_id(ws, id, (highest, include_rejected)).await?,
            NodeName::Stix(id) => core.node_of_object(ws, &id, (highest, include_rejected)).await?,
        };
        let shown = (highest, include_rejected);
        let stored = stored.ok_or(DomainError::NotFound("node"))?;
        let own_corrections = shown_corrections(&stored, highest);
        let asked = stored.node;
        let Group {
            node: found,
            members,
            merges,
        } = core.group_of(ws, asked.clone(), shown).await?;
        let found = Visible::filter(vec![found], clearance).into_first();
        let mut found = found.ok_or(DomainError::NotFound("node"))?;
        let entity_tag = entity_tag(&found);
        let corrections = match found.id == asked.id {
            true => own_corrections,
            false => {
                let stands = core.node_by_id(ws, found.id, shown).await?;
                stands
                    .map(|stands| shown_corrections(&stands, highest))
                    .unwrap_or_default()
            }
        };
        let node = found.id;
        let mut group = vec![node];
        group.extend(members.iter().map(|member| member.id));
        let rejected = match include_rejected {
            true => core.graph.store.rejected_evidence(ws, &group).await?,
            false => Vec::new(),
        };
        let linked: Vec<&[Uuid]> = std::iter::once(&found)
            .chain(&members)
            .map(|node| node.linked_evidence_ids.as_slice())
            .chain([rejected.as_slice()])
            .collect();
        let (evidence, more_evidence) = core.newest_evidence(ws, &linked, shown).await?;
        unite(&mut found, &members);
        core.warninglists.current().mark(&mut found);
        let (mut relationships, more_relationships) =
            core.graph.store.relationships_of(ws, &group, shown, page).await?;
        core.let_ends_stand(ws, &merges, &mut relationships, shown)
            .await?;
        let merged = members.iter().filter_map(|member| merges.told(member));
        let entry = AuditEntry::by(&by, "node.read", "node", Outcome::Success, clock::now())
            .on(node)
            .with("tlp", found.tlp.as_str())
            .with("include_rejected", include_rejected);
        core.graph.audit().call(Append(entry)).await?;
        Ok(NodeDetail {
            node: found,
            entity_tag,
            corrections,
            relationships: Visible::filter(relationships, clearance),
            more_relationships,
            evidence: Visible::filter(evidence, clearance),
            more_evidence,
            merged: Visible::filter(merged.collect(), clearance),
            asked_for: (asked.id != node).then_some(asked.id),
        })
    }
}

impl GraphCore {
    /// The newest of these evidence records, each list of which is in order of arrival, and whether there are more.
    async fn newest_evidence(
        &self,
        ws: Uuid,
        linked: &[&[Uuid]],
        (highest, include_rejected): (Tlp, bool),
    ) -> Result<(Vec<EvidenceHead>, bool), DomainError> {
        let mut more = false;
        let mut ids: Vec<Uuid> = Vec::new();
        for linked in linked {
            let older = linked.len().saturating_sub(MAX_EVIDENCE);
            more |= older > 0;
            ids.extend(linked.get(older..).unwrap_or_default());
        }
        ids.sort_unstable();
        ids.dedup();
        let mut heads = self
            .graph
            .store
            .evidence_heads(ws, &ids, highest, include_rejected)
            .await?;
        more |= heads.len() > MAX_EVIDENCE;
        heads.truncate(MAX_EVIDENCE);
        Ok((heads, more))
    }

    pub(super) async fn node_by_id(
        &self,
        ws: Uuid,
        node: Uuid,
        (highest, include_rejected): (Tlp, bool),
    ) -> Result<Option<StoredNode>, DomainError> {
        let found = self
            .graph
            .store
            .nodes_by_id(ws, &[node], highest, include_rejected)
            .await?;
        Ok(found.into_iter().next())
    }

    /// The node that came as this object, or that is exported as it.
    async fn node_of_object(
        &self,
        ws: Uuid,
        object: &StixId,
        seen: (Tlp, bool),
    ) -> Result<Option<StoredNode>, DomainError> {
        let (highest, include_rejected) = seen;
        let store = &self.graph.store;
        let came = store
            .node_of_object(ws, &object.spellings(), highest, include_rejected)
            .await?;
        if let Some(node) = came {
            return self.node_by_id(ws, node, seen).await;
        }
        let Some(row) = object.uuid().map(row_exported_as) else {
            return Ok(None);
        };
        let found = self.node_by_id(ws, row, seen).await?;
        Ok(found.filter(|stored| exported_id(stored).as_deref() == Some(object.usual())))
    }
}

/// The row of the node that is exported with this UUID: the two differ in the version of the UUID alone.
fn row_exported_as(uuid: Uuid) -> Uuid {
    Builder::from_bytes(uuid.into_bytes())
        .with_version(Version::Sha1)
        .into_uuid()
}

/// The id with which a node is exported that did not come as STIX.
fn exported_id(stored: &StoredNode) -> Option<String> {
    let origin = Origin {
        id: stored.node.id,
        node: &stored.node,
        identity_id: "",
    };
    let object = stored.stix_evidence.is_none().then(|| object_of(&origin))?;
    object::text(&object, "id").map(str::to_owned)
}

/// Reads an evidence record.
#[derive(Debug)]
pub struct ReadEvidence {
    pub by: Principal,
    pub evidence: Uuid,
    pub include_rejected: bool,
}

impl Work for ReadEvidence {
    type Core = GraphCore;
    type Reply = EvidenceRecord;
    const NAME: &'static str = "read_evidence";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let ReadEvidence {
            by,
            evidence,
            include_rejected,
        } = self;
        let include_rejected = include_rejected && by.may_see_rejected();
        let clearance = by.workspace.clearance();
        let found = core
            .graph
            .store
            .evidence(by.workspace.id, evidence, clearance.highest(), include_rejected)
            .await?;
        let found = Visible::filter(found.into_iter().collect(), clearance).into_first();
        let found = found.ok_or(DomainError::NotFound("evidence record"))?;
        let entry = AuditEntry::by(&by, "evidence.read", "evidence", Outcome::Success, clock::now())
            .on(evidence)
            .with("tlp", found.head.tlp.as_str())
            .with("include_rejected", include_rejected);
        core.graph.audit().call(Append(entry)).await?;
        Ok(found)
    }
}
