//! Resolves the node of each draft, and creates or merges it.

use std::collections::HashMap;

use uuid::Uuid;

use super::merge::{Absorption, MergedNode, evidence_of_rejected};
use super::passages::PassageContent;
use super::{AT_A_TIME, DraftsTransaction, evidence_id};
use crate::domain::draft::{EvidenceDraft, NodeDraft};
use crate::domain::error::DomainError;
use crate::domain::node::{NodeStatus, node_id, secret_node_id};
use crate::store::connect::StoreError;
use crate::store::rows::{NodeRow, key, record};

/// Nodes looked up so far; `None` for those that do not exist.
type NodeRows = HashMap<Uuid, Option<MergedNode>>;

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
                None => vec![self.early_id_of(draft, 0), self.id_of(draft, 0)],
            };
            let likely = chunk.iter().enumerate().flat_map(likely).collect();
            self.look_up(&mut rows, likely).await?;
            for draft in chunk {
                let place = ids.len();
                let id = self.settle(&mut rows, place, draft).await?;
                self.put(&mut rows, id, place, draft)?;
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

    async fn look_up(&self, rows: &mut NodeRows, mut ids: Vec<Uuid>) -> Result<(), StoreError> {
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
                Some(Some(held)) if !self.hides(held.row.tlp_rank) => return Ok(*id),
                // Chosen by a user, or committed earlier.
                Some(Some(_)) if self.write.evidence_only.contains(&place) => return Ok(*id),
                Some(Some(_)) => {}
                Some(None) | None => return Err(DomainError::NotFound("node").into()),
            }
        }
        let mut hidden = None;
        // Nodes of earlier versions keep their ids.
        for generation in 0.. {
            let id = self.early_id_of(draft, generation);
            self.look_up(rows, vec![id]).await?;
            match rows.get(&id) {
                Some(Some(held)) if !self.hides(held.row.tlp_rank) => return Ok(id),
                Some(Some(_)) => hidden = hidden.or(Some(id)),
                Some(None) | None => break,
            }
        }
        let mut generation = 0;
        loop {
            let id = self.id_of(draft, generation);
            self.look_up(rows, vec![id]).await?;
            match rows.get(&id) {
                Some(Some(held)) if !self.hides(held.row.tlp_rank) => return Ok(id),
                Some(Some(_)) => hidden = hidden.or(Some(id)),
                Some(None) | None if draft.tlp <= self.write.highest => return Ok(id),
                Some(None) | None => return Ok(hidden.unwrap_or(id)),
            }
            generation += 1;
        }
    }

    /// The id of a draft's node; of later generations, the one used beside nodes that are hidden from the writer.
    fn id_of(&self, draft: &NodeDraft, generation: u32) -> Uuid {
        secret_node_id(self.id_secret, self.write.ws, &self.name_of(draft, generation))
    }

    /// The id that earlier versions, which had no secret, gave to the node of a draft.
    fn early_id_of(&self, draft: &NodeDraft, generation: u32) -> Uuid {
        node_id(self.write.ws, &self.name_of(draft, generation))
    }

    fn name_of(&self, draft: &NodeDraft, generation: u32) -> String {
        let (identity, level) = (&draft.identity, self.write.highest.as_str());
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
        place: usize,
        draft: &NodeDraft,
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
            let linked = held.link(evidence_id(self.write.ws, &evidence.identity), evidence.tlp);
            // To the writer, a link it can't see does not exist.
            news |= linked.is_none_or(|rank| rank > highest && !attached);
        }
        if !attached {
            match held.absorb(draft)? {
                Absorption::Changed => news = true,
                Absorption::Known => {}
                Absorption::TooRestricted => {
                    if let Some(text) = evidence_of_rejected(draft, &self.write.drafts.evidence) {
                        let linked = held.link(evidence_id(self.write.ws, &text.identity), text.tlp);
                        news |= linked.is_none_or(|rank| rank > highest);
                        self.kept.push((text, seen));
                    }
                }
            }
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
            row.link(evidence_id(self.write.ws, &evidence.identity), evidence.tlp);
        }
        row
    }
}
