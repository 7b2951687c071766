//! Nodes, relationships and passages as documents of the search index, for one that catches up or follows other
//! processes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::documents;
use crate::actors::indexed_store::{DocumentPage, Source};
use crate::domain::error::DomainError;
use crate::search::{IndexDoc, WorkspaceIndex};
use crate::store::{Change, Store, StoredEdge, StoredPassage};

/// Nodes and edges read and indexed at a time.
const PAGE: usize = 2000;

/// The nodes of a store, with what connects them.
pub(in crate::actors) struct Nodes {
    pub(super) store: Arc<Store>,
}

impl Source for Nodes {
    async fn documents(
        &self,
        ws: Uuid,
        after: u64,
        target: &WorkspaceIndex,
        known: impl Fn(&Change) -> bool + Send + Sync,
    ) -> Result<Option<DocumentPage>, DomainError> {
        let changes = self.store.changes(ws, after, PAGE).await?;
        let Some(last) = changes.last else {
            return Ok(None);
        };
        let ids = changes.nodes.iter().filter(|change| !known(change));
        let ids: Vec<Uuid> = ids.map(|change| change.id).collect();
        let nodes = self.store.nodes_to_index(ws, &ids).await?;
        // Nodes rewritten since then come with a later page.
        let nodes = nodes.iter().filter(|stored| stored.rev <= last);
        let made_of = self.store.ids_of(ws);
        let docs = nodes.map(|stored| documents::of_stored(made_of, stored));
        let mut docs: Vec<IndexDoc> = docs.collect();
        let edges = changes.edges.into_iter().filter(|change| !known(change));
        docs.extend(self.edges_of(ws, edges.collect(), target).await?);
        Ok(Some(DocumentPage { docs, last }))
    }
}

impl Nodes {
    /// Edges and passages as they are now; the removal of those that are gone.
    async fn edges_of(
        &self,
        ws: Uuid,
        edges: Vec<Change>,
        target: &WorkspaceIndex,
    ) -> Result<Vec<IndexDoc>, DomainError> {
        let ids: Vec<Uuid> = edges.iter().map(|change| change.id).collect();
        let (stored, passages) = self.with_texts(ws, &ids).await?;
        let mut stored: HashMap<Uuid, _> = stored.into_iter().map(|stored| (stored.id, stored)).collect();
        let mut passages: HashMap<Uuid, _> = passages
            .into_iter()
            .map(|passage| (passage.id, passage))
            .collect();
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
