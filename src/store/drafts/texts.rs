//! Texts as sources: what the rules of `domain/graph/draft.rs` need to know of the texts that have made a node.

use std::collections::HashMap;

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::DraftsTransaction;
use super::nodes::{HeldNode, NodeRows};
use crate::domain::draft::NodeDraft;
use crate::domain::graph::draft::DraftSource;
use crate::domain::graph::record::RecordHead;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::rows::{key, record};

#[derive(Debug, SurrealValue)]
struct RecordRow {
    id: RecordId,
    kind: String,
    ext_id: Option<String>,
    title: String,
    source: String,
}

impl DraftsTransaction<'_> {
    /// Whether a draft that matches a node by a name is another thing.
    pub(super) fn is_another(&self, held: &HeldNode, draft: &NodeDraft) -> bool {
        let ids = [self.ids, self.secret_ids].map(|ids| record("node", ids.node(&draft.identity)));
        held.merged.is_another(draft, ids.contains(&held.row.id))
    }

    /// The node beside one whose text is stricter than the draft, made by a writer who does not see that one.
    pub(super) async fn open_node_beside(
        &self,
        rows: &mut NodeRows,
        id: Uuid,
        draft: &NodeDraft,
    ) -> Result<Option<Uuid>, StoreError> {
        let above = match rows.get(&id) {
            Some(Some(held)) if held.merged.is_of_stricter_text(draft) => held.merged.content().tlp,
            Some(_) | None => return Ok(None),
        };
        let levels = Tlp::ALL.into_iter().filter(|level| *level >= draft.tlp);
        for level in levels.filter(|level| *level < above) {
            let beside = self.secret_ids.node(&Self::name_beside(draft, level, 1));
            self.look_up(rows, vec![beside]).await?;
            if let Some(Some(held)) = rows.get(&beside)
                && held.merged.content().tlp <= draft.tlp
            {
                return Ok(Some(beside));
            }
        }
        Ok(None)
    }

    /// Compares the source of a draft with that of the node it belongs to.
    pub(super) async fn source_of(
        &self,
        held: &HeldNode,
        draft: &NodeDraft,
    ) -> Result<DraftSource, StoreError> {
        let records = self.records(held.merged.records_needed(draft)).await?;
        let own = draft.evidence.first();
        let own = own.and_then(|&at| self.write.drafts.evidence.get(at));
        Ok(held.merged.source_of(draft, own, &records, self.write.highest))
    }

    async fn records(&self, ids: Vec<Uuid>) -> Result<HashMap<Uuid, RecordHead>, StoreError> {
        let ids = ids.into_iter().map(|id| record("evidence", id)).collect();
        let query = "SELECT id, kind, ext_id, title, source FROM $ids WHERE ws = $ws";
        let found: Vec<RecordRow> = self.tx.find(self.write.ws, query, ids).await?;
        let head = |row: RecordRow| {
            let head = RecordHead {
                kind: row.kind,
                ext_id: row.ext_id,
                title: row.title,
                source: row.source,
            };
            Ok((key(&row.id)?, head))
        };
        found.into_iter().map(head).collect()
    }
}
