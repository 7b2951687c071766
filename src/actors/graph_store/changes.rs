//! Nodes, relationships and passages as documents of the search index, for one that catches up or follows other
//! processes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::documents;
use super::merges::MergeCache;
use crate::actors::indexed_store::{DocumentPage, Source};
use crate::capacity::run_heavy;
use crate::domain::error::DomainError;
use crate::search::{IndexDoc, WorkspaceIndex};
use crate::store::{Change, Store, StoredEdge, StoredPassage};

/// Nodes and edges read and indexed at a time.
const PAGE: usize = 2000;

/// The nodes of a store, with what connects them.
pub(in crate::actors) struct Nodes {
    pub(super) store: Arc<Store>,
    pub(super) merges: MergeCache,
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
        // Another process may have written merges.
        self.merges.forget(ws);
        let of_nodes = changes.nodes.iter().filter(|change| !known(change));
        let of_nodes: Vec<Change> = of_nodes.copied().collect();
        let of_edges = changes.edges.into_iter().filter(|change| !known(change));
        let of_edges: Vec<Change> = of_edges.collect();
        let mut docs = self.docs_of(ws, (of_nodes, of_edges), target).await?;
        // Nodes rewritten since then come with a later page.
        docs.retain(|doc| doc.rev <= last);
        Ok(Some(DocumentPage { docs, last }))
    }
}

impl Nodes {
    /// Nodes, edges and passages as they are now, whoever wrote them last; the removal of what is gone, and of edges that are
    /// not in force.
    pub(super) async fn docs_of(
        &self,
        ws: Uuid,
        (of_nodes, edges): (Vec<Change>, Vec<Change>),
        target: &WorkspaceIndex,
    ) -> Result<Vec<IndexDoc>, DomainError> {
        let ids: Vec<Uuid> = of_nodes.iter().map(|change| change.id).collect();
        let nodes = self.store.nodes_to_index(ws, &ids).await?;
        let ids: Vec<Uuid> = edges.iter().map(|change| change.id).collect();
        let (stored, passages) = self.with_texts(ws, &ids).await?;
        // What has never been indexed need not be removed.
        let found: HashSet<Uuid> = stored
            .iter()
            .map(|edge| edge.id)
            .chain(passages.iter().map(|one| one.id))
            .chain(nodes.iter().map(|stored| stored.node.id))
            .collect();
        let gone = |change: &&Change| !found.contains(&change.id) && target.contains(change.id, 0);
        let gone: Vec<IndexDoc> = edges
            .iter()
            .chain(&of_nodes)
            .filter(gone)
            .map(|change| IndexDoc::removal(change.id, change.rev))
            .collect();
        let made_of = self.store.ids_of(ws);
        let revs: HashMap<Uuid, u64> = edges.iter().map(|change| (change.id, change.rev)).collect();
        let rev_of = move |id: &Uuid| revs.get(id).copied().unwrap_or(0);
        run_heavy(Some(ws), move || {
            let mut docs: Vec<IndexDoc> = nodes
                .iter()
                .map(|stored| documents::of_stored(made_of, stored))
                .collect();
            docs.extend(stored.into_iter().map(|edge| {
                let rev = rev_of(&edge.id);
                documents::of_edge(edge, rev)
            }));
            docs.extend(passages.into_iter().map(|passage| {
                let rev = rev_of(&passage.id);
                documents::of_passage(passage, rev)
            }));
            docs.extend(gone);
            Ok(docs)
        })
        .await
    }

    /// The edges in force and the other passages that have these ids.
    async fn with_texts(
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
