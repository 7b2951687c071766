//! The collections that a caller sees.

use std::sync::Arc;

use uuid::Uuid;

use crate::actors::graph_store::GraphCore;
use crate::actors::worker::{Access, Work};
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::domain::taxii::standing::standing_collections;
use crate::domain::taxii::view::CollectionView;

/// Lists the collections that the caller sees.
#[derive(Debug)]
pub struct ListCollections {
    pub by: Principal,
}

/// Reads a collection by its id or alias.
#[derive(Debug)]
pub struct ReadCollection {
    pub by: Principal,
    pub named: String,
}

impl Work for ListCollections {
    type Core = GraphCore;
    type Reply = Vec<CollectionView>;
    const NAME: &'static str = "list_collections";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.collections_of(&self.by).await
    }
}

impl Work for ReadCollection {
    type Core = GraphCore;
    type Reply = CollectionView;
    const NAME: &'static str = "read_collection";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.collection_named(&self.by, &self.named).await
    }
}

impl GraphCore {
    /// The collections that the caller sees, in the order in which they are listed.
    pub(super) async fn collections_of(&self, by: &Principal) -> Result<Vec<CollectionView>, DomainError> {
        let (store, ws) = (&self.graph.store, by.workspace.id);
        let mut all = standing_collections(by, store.id_secret().secret_ids_of(ws));
        let defined = store.collections(ws).await?.into_iter();
        all.extend(defined.filter_map(|collection| CollectionView::of(collection, by)));
        Ok(all)
    }

    /// The collection with this id or alias.
    ///
    /// # Errors
    /// `NotFound` for one that the caller does not see.
    pub(super) async fn collection_named(
        &self,
        by: &Principal,
        named: &str,
    ) -> Result<CollectionView, DomainError> {
        let all = self.collections_of(by).await?;
        let found = all.into_iter().find(|collection| collection.is_named(named));
        found.ok_or(DomainError::NotFound("collection"))
    }
}
