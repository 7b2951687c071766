//! Documents of what was written after a revision, for an index that catches up or follows other processes.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::core::{GraphCore, IndexCoverage};
use super::documents;
use crate::domain::error::DomainError;
use crate::search::IndexDoc;
use crate::store::{Change, StoredEdge, StoredPassage};

/// Nodes, edges and notes read and indexed at a time.
const PAGE: usize = 2000;

impl GraphCore {
    /// One page of documents written after a revision, without those `known`, and its last revision; `None` at the end.
    pub(super) async fn docs_after(
        &self,
        ws: Uuid,
        rev: u64,
        known: impl Fn(&Change) -> bool,
    ) -> Result<Option<(Vec<IndexDoc>, u64)>, DomainError> {
        let changes = self.store.changes(ws, rev, PAGE).await?;
        let Some(last) = changes.last else {
            return Ok(None);
        };
        let of_rows = match &self.holds {
            IndexCoverage::Nodes => changes.nodes,
            IndexCoverage::Notes(_) => changes.notes,
        };
        let ids = of_rows.iter().filter(|change| !known(change));
        let ids: Vec<Uuid> = ids.map(|change| change.id).collect();
        let docs = match &self.holds {
            IndexCoverage::Nodes => {
                let nodes = self.store.nodes_to_index(ws, &ids).await?;
                // Nodes rewritten since then come with a later page.
                let nodes = nodes.iter().filter(|stored| stored.rev <= last);
                let made_of = self.store.ids_of(ws);
                let docs = nodes.map(|stored| documents::of_stored(made_of, stored));
                let mut docs: Vec<IndexDoc> = docs.collect();
                let edges = changes.edges.into_iter().filter(|change| !known(change));
                docs.extend(self.edges_of(ws, edges.collect()).await?);
                docs
            }
            IndexCoverage::Notes(_) => {
                let notes = self.store.notes_to_index(ws, &ids).await?;
                notes
                    .iter()
                    .map(|stored| documents::of_note(&stored.note, stored.rev))
                    .collect()
            }
        };
        Ok(Some((docs, last)))
    }

    /// Edges and passages as they are now; the removal of those that are gone.
    async fn edges_of(&self, ws: Uuid, edges: Vec<Change>) -> Result<Vec<IndexDoc>, DomainError> {
        let ids: Vec<Uuid> = edges.iter().map(|change| change.id).collect();
        let (stored, passages) = self.with_texts(ws, &ids).await?;
        let mut stored: HashMap<Uuid, _> = stored.into_iter().map(|stored| (stored.id, stored)).collect();
        let mut passages: HashMap<Uuid, _> = passages
            .into_iter()
            .map(|passage| (passage.id, passage))
            .collect();
        let target = self.open_index(ws).await?;
        let doc = |Change { id, rev }: Change| match (stored.remove(&id), passages.remove(&id)) {
            (Some(edge), _) => Some(documents::of_edge(edge, rev)),
            (None, Some(passage)) => Some(documents::of_passage(passage, rev)),
            // What has never been indexed need not be removed.
            (None, None) => target.contains(id, 0).then(|| IndexDoc::removal(id, rev)),
        };
        Ok(edges.into_iter().filter_map(doc).collect())
    }

    /// The edges in force and the other passages that have these ids.
    pub(super) async fn with_texts(
        &self,
        ws: Uuid,
        ids: &[Uuid],
    ) -> Result<(Vec<StoredEdge>, Vec<StoredPassage>), DomainError> {
        let edges = self.store.edges_to_index(ws, ids).await?;
        let found: HashSet<Uuid> = edges.iter().map(|edge| edge.id).collect();
        let others: Vec<Uuid> = ids.iter().filter(|id| !found.contains(*id)).copied().collect();
        let passages = self.store.passages_to_index(ws, &others).await?;
        Ok((edges, passages))
    }
}
