//! Resolves the node of each draft, and creates or merges it.

use std::collections::HashMap;

use uuid::Uuid;

use super::merge::{Absorption, MergedNode, evidence_of_rejected};
use super::passages::PassageContent;
use super::texts::DraftSource;
use super::{AT_A_TIME, DraftsTransaction};
use crate::domain::draft::{EvidenceDraft, NodeDraft};
use crate::domain::error::DomainError;
use crate::domain::ids::WorkspaceIds;
use crate::domain::node::NodeStatus;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::rows::{NodeRow, key, record};

/// Nodes looked up so far; `None` for those that do not exist.
pub(super) type NodeRows = HashMap<Uuid, Option<MergedNode>>;

/// The node that the ids of a draft lead to.
enum NodeOfDraft {
    Seen(Uuid),
    /// The first of the nodes that are hidden from the writer, and the id that is free.
    Unseen {
        hidden: Option<Uuid>,
        free: Uuid,
    },
}

impl DraftsTransaction<'_> {
    /// Creates or merges the nodes; returns the id of each draft's node.
    pub(super) async fn nodes(&mut self) -> Result<Vec<Uuid>, StoreError> {
        let write = self.write;
        let drafts = &write.drafts.nodes;
        let mut ids = Vec::with_capacity(drafts.len());
        for chunk in drafts.chunks(AT_A_TIME) {
            let mut rows = NodeRows::new();
            let first = ids.len();
            let likely = |(at, draft): (usize, &NodeDraft)| match self.write.merges.get(&(first + at)) {
                Some(merged) => vec![*merged],
                None => {
                    let all = self.early_ids().into_iter().chain([self.secret_ids]);
                    all.map(|ids| ids.node(&draft.identity)).collect()
                }
            };
            let likely = chunk.iter().enumerate().flat_map(likely).collect();
            self.look_up(&mut rows, likely).await?;
            for draft in chunk {
                let place = ids.len();
                let id = self.settle(&mut rows, place, draft).await?;
                let source = match rows.get(&id) {
                    Some(Some(held)) if !write.evidence_only.contains(&place) => {
                        self.source_of(held, draft).await?
                    }
                    Some(_) | None => DraftSource::Other,
                };
                self.put(&mut rows, id, (place, draft), source)?;
                ids.push(id);
            }
            self.write_rows(rows).await?;
            let (seen, hidden): (Vec<_>, Vec<_>) = self.kept.drain(..).partition(|(_, seen)| *seen);
            let drafts = |kept: Vec<(EvidenceDraft, bool)>| -> Vec<EvidenceDraft> {
                kept.into_iter().map(|(draft, _)| draft).collect()
            };
            self.evidence(&drafts(seen), true).await?;
            self.evidence(&drafts(hidden), false).await?;
        }
        Ok(ids)
    }

    pub(super) async fn look_up(&self, rows: &mut NodeRows, mut ids: Vec<Uuid>) -> Result<(), StoreError> {
        ids.retain(|id| !rows.contains_key(id));
        rows.extend(ids.iter().map(|id| (*id, None)));
        let ids = ids.into_iter().map(|id| record("node", id)).collect();
        let query = "SELECT * FROM $ids WHERE ws = $ws";
        let found: Vec<NodeRow> = self.tx.find(self.write.ws, query, ids).await?;
        for row in found {
            rows.insert(key(&row.id)?, Some(MergedNode::of_existing_row(row)));
        }
        Ok(())
    }

    /// The node that a draft belongs to. A node that the writer may see takes precedence. If only hidden nodes match,
    /// a draft that the writer may see becomes a node of its own; one that the writer may not see is merged into the
    /// hidden node.
    async fn settle(&self, rows: &mut NodeRows, place: usize, draft: &NodeDraft) -> Result<Uuid, StoreError> {
        if let Some(id) = self.write.merges.get(&place) {
            self.look_up(rows, vec![*id]).await?;
            match rows.get(id) {
                // Chosen by a user, or committed earlier.
                Some(Some(_)) if self.write.evidence_only.contains(&place) => return Ok(*id),
                Some(Some(held)) if self.hides(held.row.tlp_rank) || self.is_another(held, draft) => {}
                Some(Some(_)) => {
                    let beside = self.open_node_beside(rows, *id, draft).await?;
                    return Ok(beside.unwrap_or(*id));
                }
                Some(None) | None => return Err(DomainError::NotFound("node").into()),
            }
        }
        let id = self.node_of_identity(rows, draft).await?;
        let beside = self.open_node_beside(rows, id, draft).await?;
        Ok(beside.unwrap_or(id))
    }

    async fn node_of_identity(&self, rows: &mut NodeRows, draft: &NodeDraft) -> Result<Uuid, StoreError> {
        let mut early = None;
        if let Some(ids) = self.early_ids() {
            match self.node_among(rows, draft, ids).await? {
                NodeOfDraft::Seen(id) => return Ok(id),
                NodeOfDraft::Unseen { hidden, .. } => early = hidden,
            }
        }
        match self.node_among(rows, draft, self.secret_ids).await? {
            NodeOfDraft::Seen(id) => Ok(id),
            NodeOfDraft::Unseen { free, .. } if draft.tlp <= self.write.highest => Ok(free),
            NodeOfDraft::Unseen { hidden, free } => Ok(early.or(hidden).unwrap_or(free)),
        }
    }

    /// The ids that nodes of this workspace have from the time before there was a secret.
    fn early_ids(&self) -> Option<WorkspaceIds> {
        (self.ids != self.secret_ids).then_some(self.ids)
    }

    /// The node of a draft that has one of these ids.
    async fn node_among(
        &self,
        rows: &mut NodeRows,
        draft: &NodeDraft,
        ids: WorkspaceIds,
    ) -> Result<NodeOfDraft, StoreError> {
        let (mut generation, mut hidden) = (0, None);
        loop {
            let id = ids.node(&self.name_of(draft, generation));
            self.look_up(rows, vec![id]).await?;
            match rows.get(&id) {
                Some(Some(held)) if !self.hides(held.row.tlp_rank) => return Ok(NodeOfDraft::Seen(id)),
                Some(Some(_)) => hidden = hidden.or(Some(id)),
                Some(None) | None => return Ok(NodeOfDraft::Unseen { hidden, free: id }),
            }
            generation += 1;
        }
    }

    /// The name of a draft's node; of later generations, the one used beside nodes that are hidden from the writer.
    fn name_of(&self, draft: &NodeDraft, generation: u32) -> String {
        Self::name_beside(draft, self.write.highest, generation)
    }

    /// The name of the node of a draft by a writer who sees no more than `highest`.
    pub(super) fn name_beside(draft: &NodeDraft, highest: Tlp, generation: u32) -> String {
        let (identity, level) = (&draft.identity, highest.as_str());
        match generation {
            0 => identity.clone(),
            1 => format!("{identity}\0up to {level}"),
            more => format!("{identity}\0up to {level}\0{more}"),
        }
    }

    fn put(
        &mut self,
        rows: &mut NodeRows,
        id: Uuid,
        (place, draft): (usize, &NodeDraft),
        source: DraftSource,
    ) -> Result<(), StoreError> {
        let Some(Some(held)) = rows.get_mut(&id) else {
            let row = self.new_row(id, draft);
            rows.insert(id, Some(MergedNode::of_new_row(row)));
            self.created.insert(id);
            self.report.nodes.insert(id);
            return Ok(());
        };
        let ours = self.created.contains(&id);
        let seen = ours || !self.hides(held.row.tlp_rank);
        let attached = self.write.evidence_only.contains(&place);
        let highest = i64::from(self.write.highest.rank());
        let mut news = false;
        for evidence in draft
            .evidence
            .iter()
            .filter_map(|&i| self.write.drafts.evidence.get(i))
        {
            let linked = held.link(self.ids.evidence(&evidence.identity), evidence.tlp);
            // To the writer, a link it can't see does not exist.
            news |= linked.is_none_or(|rank| rank > highest && !attached);
        }
        if !attached {
            news |= self.merge(held, (id, seen), draft, source)?;
        }
        self.said
            .extend(PassageContent::of_merged_draft(&held.row, id, draft));
        match (ours, seen, attached) {
            (true, _, _) | (false, false, true) => {}
            (false, true, _) if news => {
                self.report.updated.insert(id);
            }
            (false, true, _) => {}
            (false, false, false) => {
                self.report.nodes.insert(id);
            }
        }
        Ok(())
    }

    /// Merges a draft into a node, which the writer may see or not; returns whether that is news to the writer.
    fn merge(
        &mut self,
        held: &mut MergedNode,
        (id, seen): (Uuid, bool),
        draft: &NodeDraft,
        source: DraftSource,
    ) -> Result<bool, StoreError> {
        if let DraftSource::MoreOpen { has_record } = source {
            let before = held.give_way(draft, self.write.now)?;
            let own = draft.evidence.first();
            if let Some(own) = own.and_then(|&i| self.write.drafts.evidence.get(i)) {
                held.lead_with(self.ids.evidence(&own.identity));
            }
            if !has_record {
                self.keep_record(held, evidence_of_rejected(&before, &[]), seen);
            }
            self.said
                .extend(PassageContent::of_merged_draft(&held.row, id, &before));
            return Ok(true);
        }
        Ok(match held.absorb(draft, source)? {
            Absorption::Changed => true,
            Absorption::Known => false,
            Absorption::TooRestricted => {
                let record = evidence_of_rejected(draft, &self.write.drafts.evidence);
                self.keep_record(held, record, seen)
            }
        })
    }

    /// Links a record of what a node does not say; returns whether it is news to the writer.
    fn keep_record(&mut self, held: &mut MergedNode, record: Option<EvidenceDraft>, seen: bool) -> bool {
        let Some(record) = record else { return false };
        let linked = held.link(self.ids.evidence(&record.identity), record.tlp);
        let is_news = linked.is_none_or(|rank| self.hides(rank));
        self.kept.push((record, seen));
        is_news
    }

    async fn write_rows(&mut self, rows: NodeRows) -> Result<(), StoreError> {
        let (mut created, mut updated) = (Vec::new(), Vec::new());
        for held in rows.into_values().flatten().filter(MergedNode::is_changed) {
            let new = held.is_new();
            let mut row = held.into_row(self.write.now);
            row.rev = i64::try_from(self.rev).unwrap_or(i64::MAX);
            self.touched.insert(key(&row.id)?);
            match new {
                true => created.push(row),
                false => updated.push(row),
            }
        }
        self.tx
            .write("INSERT INTO node $rows RETURN NONE", created)
            .await?;
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
                updated,
            )
            .await
    }

    fn new_row(&self, id: Uuid, draft: &NodeDraft) -> NodeRow {
        let mut row = NodeRow {
            id: record("node", id),
            ws: self.write.ws,
            node_type: draft.node_type.as_str().into(),
            name: draft.name.clone(),
            description: draft.description.clone(),
            source: draft.source.clone(),
            source_type: draft.source_type.into(),
            tlp_rank: i64::from(draft.tlp.rank()),
            confidence: draft.confidence,
            properties: draft.properties.text().to_owned(),
            status: NodeStatus::Active.as_str().into(),
            evidence: Vec::new(),
            evidence_tlp: Vec::new(),
            stix_evidence: None,
            modified: None,
            held_by: None,
            feeds: None,
            changed_at: None,
            rev: 0,
            ingested_at: self.write.now,
        };
        for evidence in draft
            .evidence
            .iter()
            .filter_map(|&i| self.write.drafts.evidence.get(i))
        {
            row.link(self.ids.evidence(&evidence.identity), evidence.tlp);
        }
        row
    }
}
