//! Writes passages: texts about nodes that the nodes' own descriptions do not hold.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use surrealdb::types::SurrealValue;
use uuid::Uuid;

use super::{AT_A_TIME, DraftsTransaction};
use crate::domain::graph::draft::Remark;
use crate::domain::ids::WorkspaceIds;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::size;
use crate::store::rows::{PassageRow, record};

/// Bytes of the transaction that are left for what follows the passages.
const RESERVE: u64 = 256 << 10;
/// Bytes that the journal of writes takes for each row.
const NAMED: u64 = 64;

/// A text about stored nodes, twice the same if it is about one.
#[derive(Debug)]
pub(super) struct PassageContent {
    about: [Uuid; 2],
    tlp: Tlp,
    text: String,
}

impl PassageContent {
    pub(super) fn of_remark(node: Uuid, remark: Remark) -> Self {
        Self {
            about: [node; 2],
            tlp: remark.tlp,
            text: remark.text,
        }
    }

    /// The row's id: the same text about the same nodes is one passage at each marking.
    fn id(&self, ids: WorkspaceIds) -> Uuid {
        let [source, target] = self.about;
        let digest = hex::encode(Sha256::digest(&self.text));
        ids.passage(&format!("{source}\0{target}\0{}\0{digest}", self.tlp))
    }
}

impl DraftsTransaction<'_> {
    /// Writes the passages that are new, as far as the transaction has room: their texts stay in the evidence in any
    /// case.
    pub(super) async fn passages(&mut self, nodes: &[Uuid]) -> Result<(), StoreError> {
        let stale = |place: &usize| self.write.corrections.stale.contains_key(place);
        let drafts = self.write.drafts.passages.iter();
        let drafts = drafts.filter(|draft| !draft.about.iter().any(stale));
        let drafts = drafts.filter_map(|draft| {
            let [source, target] = draft.about.map(|place| nodes.get(place).copied());
            Some(PassageContent {
                about: [source?, target?],
                tlp: draft.tlp,
                text: draft.text.clone(),
            })
        });
        let lost = std::mem::take(&mut self.said);
        let mut said = lost.into_iter().chain(drafts);
        loop {
            let chunk: Vec<PassageContent> = said.by_ref().take(AT_A_TIME).collect();
            if chunk.is_empty() {
                return Ok(());
            }
            let row = |said: PassageContent| (said.id(self.ids), said);
            let rows = chunk.into_iter().map(row);
            let mut rows: HashMap<Uuid, PassageRow> =
                rows.map(|(id, said)| (id, self.passage_row(id, said))).collect();
            let ids: Vec<Uuid> = rows.keys().copied().collect();
            let stored = self.markings("passage", &ids).await?;
            rows.retain(|id, _| !stored.contains_key(id));
            let needed: u64 = rows
                .values()
                .map(|row| size::of_row(&row.clone().into_value()) + NAMED)
                .sum();
            // What has been written so far is still to be named in the journal.
            let written = self.graph.rows();
            let named = NAMED * (written.edges.len() + written.nodes.len()) as u64;
            if !self.tx.has_room_for(needed + named + RESERVE) {
                tracing::warn!(
                    workspace = %self.write.ws,
                    "the transaction has no room for more passages; their texts are kept as evidence only"
                );
                return Ok(());
            }
            self.graph.insert_passages(rows.into_values().collect()).await?;
        }
    }

    fn passage_row(&self, id: Uuid, said: PassageContent) -> PassageRow {
        let [source, target] = said.about;
        PassageRow {
            id: record("passage", id),
            source: record("node", source),
            target: record("node", target),
            ws: self.write.ws,
            tlp_rank: i64::from(said.tlp.rank()),
            text: said.text,
            created_at: self.write.now,
        }
    }
}
