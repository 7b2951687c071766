//! Texts as sources: each article, report and preview is a source of its own. A node that a text has made is marked as the
//! most open of the texts that name it, whatever the order in which they come.

use surrealdb::types::SurrealValue;
use uuid::Uuid;

use super::DraftsTransaction;
use super::merge::{MergedNode, holds_whole_text};
use super::nodes::NodeRows;
use crate::domain::draft::{EvidenceDraft, NodeDraft};
use crate::domain::extraction::canonical_name;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::rows::{NodeRow, record};

/// Sources of which each text stands for itself.
const TEXTS: [&str; 3] = ["osint", "report", "staged"];

/// The source of a draft, compared with the one that the words of its node come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftSource {
    /// The same one, which may mark its node more strictly.
    Same,
    Other,
    /// Another one, more open than the text that the words of the node come from: the node takes its words. What the node
    /// said before is in the record of that text if `has_record`.
    MoreOpen {
        has_record: bool,
    },
}

/// An evidence record without its original.
#[derive(Debug, SurrealValue)]
struct RecordRow {
    kind: String,
    ext_id: Option<String>,
    title: String,
    source: String,
}

impl RecordRow {
    /// Whether both are of one text: that of an address, or else of a title.
    fn is_of_text(&self, other: &EvidenceDraft) -> bool {
        let is_same = match (&self.ext_id, &other.ext_id) {
            (Some(one), Some(other)) => one.trim_end_matches('/') == other.trim_end_matches('/'),
            (None, None) => canonical_name(&self.title) == canonical_name(&other.title),
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same && canonical_name(&self.source) == canonical_name(&other.source)
    }
}

/// Whether the words of a node come from a text that is stricter than the draft.
fn is_of_stricter_text(row: &NodeRow, draft: &NodeDraft) -> bool {
    row.tlp_rank > i64::from(draft.tlp.rank()) && TEXTS.contains(&row.source_type.as_str())
}

impl DraftsTransaction<'_> {
    /// Whether a draft that matches a node by a name is another thing: a stricter text gives the node that name only as an
    /// alias.
    pub(super) fn is_another(&self, held: &MergedNode, draft: &NodeDraft) -> bool {
        let row = &held.row;
        let ids = [self.ids, self.secret_ids].map(|ids| record("node", ids.node(&draft.identity)));
        is_of_stricter_text(row, draft)
            && !row.name.eq_ignore_ascii_case(&draft.name)
            && !ids.contains(&row.id)
    }

    /// The node beside one whose text is stricter than the draft, made by a writer who does not see that one.
    pub(super) async fn open_node_beside(
        &self,
        rows: &mut NodeRows,
        id: Uuid,
        draft: &NodeDraft,
    ) -> Result<Option<Uuid>, StoreError> {
        let above = match rows.get(&id) {
            Some(Some(held)) if is_of_stricter_text(&held.row, draft) => held.row.tlp_rank,
            Some(_) | None => return Ok(None),
        };
        let levels = Tlp::ALL.into_iter().filter(|level| *level >= draft.tlp);
        for level in levels.filter(|level| i64::from(level.rank()) < above) {
            let beside = self.secret_ids.node(&Self::name_beside(draft, level, 1));
            self.look_up(rows, vec![beside]).await?;
            if let Some(Some(held)) = rows.get(&beside)
                && held.row.tlp_rank <= i64::from(draft.tlp.rank())
            {
                return Ok(Some(beside));
            }
        }
        Ok(None)
    }

    /// Compares the source of a draft with that of the node it belongs to.
    pub(super) async fn source_of(
        &self,
        held: &MergedNode,
        draft: &NodeDraft,
    ) -> Result<DraftSource, StoreError> {
        let row = &held.row;
        if row.tlp_rank == i64::from(draft.tlp.rank()) {
            return Ok(DraftSource::Other);
        }
        if row.source_type == draft.source_type && self.is_of_own_text(row, draft).await? {
            return Ok(DraftSource::Same);
        }
        if !is_of_stricter_text(row, draft) || self.hides(row.tlp_rank) {
            return Ok(DraftSource::Other);
        }
        let records = self.records(&row.evidence).await?;
        let is_whole = records.iter().all(|record| holds_whole_text(&record.kind));
        let has_record = is_whole && row.evidence_tlp.first() == Some(&row.tlp_rank);
        Ok(DraftSource::MoreOpen { has_record })
    }

    async fn is_of_own_text(&self, row: &NodeRow, draft: &NodeDraft) -> Result<bool, StoreError> {
        if !TEXTS.contains(&draft.source_type) {
            return Ok(row.source == draft.source);
        }
        // The first record of a node is that of the text that its words come from.
        let Some(first) = row.evidence.first() else {
            return Ok(false);
        };
        let own = draft.evidence.first();
        let own = own.and_then(|&at| self.write.drafts.evidence.get(at));
        let first = self.records(&[*first]).await?;
        Ok(own
            .zip(first.first())
            .is_some_and(|(own, first)| first.is_of_text(own)))
    }

    async fn records(&self, ids: &[Uuid]) -> Result<Vec<RecordRow>, StoreError> {
        let ids = ids.iter().map(|id| record("evidence", *id)).collect();
        let query = "SELECT kind, ext_id, title, source FROM $ids WHERE ws = $ws";
        self.tx.find(self.write.ws, query, ids).await
    }
}
