//! Resolves the node of each draft, and creates or merges it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::passages::PassageContent;
use super::{AT_A_TIME, DraftsTransaction};
use crate::domain::draft::{EvidenceDraft, NodeDraft};
use crate::domain::error::DomainError;
use crate::domain::graph::draft::{DraftSource, MergedNode};
use crate::domain::ids::WorkspaceIds;
use crate::domain::node::NodeType;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::rows::{NodeRow, key, record};

/// A node while drafts are merged into it.
pub(super) struct HeldNode {
    /// Its row, without the content.
    pub(super) row: NodeRow,
    pub(super) merged: MergedNode,
}

impl HeldNode {
    fn of_row(mut row: NodeRow) -> Result<Self, DomainError> {
        // Sources are compared with sources; what was set by hand is laid over the result when it is written.
        row.lift_correction()?;
        let merged = MergedNode::of_stored(row.take_content()?);
        Ok(Self { row, merged })
    }

    fn into_row(mut self, now: DateTime<Utc>, rev: i64) -> NodeRow {
        self.row.put_content(self.merged.into_content(now));
        self.row.rev = rev;
        // What another source states, too, is a node like any other.
        self.row.context = None;
        self.row
    }
}

/// Nodes looked up so far; `None` for those that do not exist.
pub(super) type NodeRows = HashMap<Uuid, Option<HeldNode>>;

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
                if let Some(stands) = self.write.corrections.stale.get(&place) {
                    ids.push(*stands);
                    continue;
                }
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
            rows.insert(key(&row.id)?, Some(HeldNode::of_row(row)?));
        }
        Ok(())
    }

    /// The node that a draft belongs to. A node that the writer may see takes precedence. If only hidden nodes match,
    /// a draft that the writer may see becomes a node of its own; one that the writer may not see is merged into the
    /// hidden node.
    async fn settle(&self, rows: &mut NodeRows, place: usize, draft: &NodeDraft) -> Result<Uuid, StoreError> {
        if let Some(id) = self.write.merges.get(&place) {
            self.look_up(rows, vec![*id]).await?;
            // An indicator has the value in its pattern, but a node of the value itself comes first.
            if draft.node_type == NodeType::Ioc
                && !self.write.evidence_only.contains(&place)
                && let Some(own) = self.seen_node_of_identity(rows, draft).await?
            {
                return Ok(own);
            }
            match rows.get(id) {
                // Chosen by a user, or committed earlier.
                Some(Some(_)) if self.write.evidence_only.contains(&place) => return Ok(*id),
                Some(Some(held)) if self.hides(held) || self.is_another(held, draft) => {}
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

    /// The node with the draft's identity that the writer sees.
    async fn seen_node_of_identity(
        &self,
        rows: &mut NodeRows,
        draft: &NodeDraft,
    ) -> Result<Option<Uuid>, StoreError> {
        for ids in self.early_ids().into_iter().chain([self.secret_ids]) {
            if let NodeOfDraft::Seen(id) = self.node_among(rows, draft, ids).await? {
                return Ok(Some(id));
            }
        }
        Ok(None)
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
                Some(Some(held)) if !self.hides(held) => return Ok(NodeOfDraft::Seen(id)),
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
            rows.insert(id, Some(self.new_node(id, draft)));
            self.created.insert(id);
            self.report.nodes.insert(id);
            return Ok(());
        };
        let ours = self.created.contains(&id);
        let seen = ours || !self.hides(held);
        let attached = self.write.evidence_only.contains(&place);
        let mut news = false;
        for (evidence, tlp) in self.records_of(draft) {
            let linked = held.merged.link(evidence, tlp);
            // To the writer, a link it can't see does not exist.
            news |= linked.is_none_or(|tlp| tlp > self.write.highest && !attached);
        }
        if attached {
            let remarks = held.merged.remarks_of(draft).into_iter();
            self.said
                .extend(remarks.map(|remark| PassageContent::of_remark(id, remark)));
        } else {
            news |= self.merge(&mut held.merged, (id, seen), draft, source)?;
        }
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
        node: &mut MergedNode,
        (id, seen): (Uuid, bool),
        draft: &NodeDraft,
        source: DraftSource,
    ) -> Result<bool, StoreError> {
        let (own, _) = self.records_of(draft).next().unzip();
        let evidence = &self.write.drafts.evidence;
        let merged = node.merge(draft, source, (own, evidence), self.write.now)?;
        let passages = merged.remarks.into_iter();
        self.said
            .extend(passages.map(|remark| PassageContent::of_remark(id, remark)));
        let Some(record) = merged.kept else {
            return Ok(merged.is_news);
        };
        let linked = node.link(self.ids.evidence(&record.identity), record.tlp);
        self.kept.push((record, seen));
        Ok(merged.is_news || linked.is_none_or(|tlp| tlp > self.write.highest))
    }

    /// The ids and markings of a draft's records.
    fn records_of(&self, draft: &NodeDraft) -> impl Iterator<Item = (Uuid, Tlp)> + use<'_> {
        let (write, ids) = (self.write, self.ids);
        let records: Vec<usize> = draft.evidence.clone();
        let records = records
            .into_iter()
            .filter_map(move |at| write.drafts.evidence.get(at));
        records.map(move |record| (ids.evidence(&record.identity), record.tlp))
    }

    pub(super) async fn write_rows(&mut self, rows: NodeRows) -> Result<(), StoreError> {
        let (mut created, mut updated) = (Vec::new(), Vec::new());
        let changed = |held: &HeldNode| held.merged.is_changed();
        for held in rows.into_values().flatten().filter(changed) {
            let new = held.merged.is_new();
            let row = held.into_row(self.write.now, self.graph.rev());
            match new {
                true => created.push(row),
                false => updated.push(row),
            }
        }
        self.graph.insert_nodes(created).await?;
        self.graph.replace_nodes(updated).await
    }

    fn new_node(&self, id: Uuid, draft: &NodeDraft) -> HeldNode {
        let mut records: Vec<(Uuid, Tlp)> = Vec::new();
        for (id, tlp) in self.records_of(draft) {
            if !records.iter().any(|(known, _)| *known == id) {
                records.push((id, tlp));
            }
        }
        HeldNode {
            row: NodeRow::empty(self.write.ws, id),
            merged: MergedNode::of_draft(draft, records, self.write.now),
        }
    }

    /// Whether a node is hidden from the writer.
    pub(super) fn hides(&self, held: &HeldNode) -> bool {
        held.merged.content().tlp > self.write.highest
    }
}
