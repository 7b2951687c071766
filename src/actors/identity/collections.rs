//! Administration of the collections of the TAXII server.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::IdentityCore;
use crate::actors::worker::{Access, Tenant, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::domain::taxii::collection::Collection;
use crate::domain::taxii::request::{CollectionChange, NewCollection};

/// The collections that administrators of the workspace defined, oldest first.
#[derive(Debug)]
pub struct ListCollections {
    pub by: Principal,
}

/// One of them.
#[derive(Debug)]
pub struct ReadCollection {
    pub by: Principal,
    pub collection: Uuid,
}

/// Defines a collection.
#[derive(Debug)]
pub struct DefineCollection {
    pub by: Principal,
    pub collection: NewCollection,
}

/// Changes a collection.
#[derive(Debug)]
pub struct ChangeCollection {
    pub by: Principal,
    pub collection: Uuid,
    pub change: CollectionChange,
}

/// Deletes a collection; the objects that it held stay.
#[derive(Debug)]
pub struct DeleteCollection {
    pub by: Principal,
    pub collection: Uuid,
}

impl Work for ListCollections {
    type Core = IdentityCore;
    type Reply = Vec<Collection>;
    const NAME: &'static str = "list_collections";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        core.store.collections(self.by.workspace.id).await
    }
}

impl Work for ReadCollection {
    type Core = IdentityCore;
    type Reply = Collection;
    const NAME: &'static str = "read_collection";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        core.collection(self.by.workspace.id, self.collection).await
    }
}

impl Work for DefineCollection {
    type Core = IdentityCore;
    type Reply = Collection;
    const NAME: &'static str = "define_collection";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let Self { by, collection } = self;
        let (ws, now) = (by.workspace.id, clock::now());
        let mut collection = collection.into_collection(Uuid::new_v4(), now)?;
        core.resolve(ws, &mut collection, None).await?;
        let described = serde_json::to_value(&collection)
            .map_err(|error| DomainError::internal("describing a collection failed", error))?;
        let entry = AuditEntry::by(
            &by,
            "admin.collection_define",
            "collection",
            Outcome::Success,
            now,
        )
        .on(collection.id)
        .with_texts("collection", &described);
        core.store.put_collection(ws, &collection, None, &entry).await?;
        core.chain(entry).await;
        Ok(collection)
    }
}

impl Work for ChangeCollection {
    type Core = IdentityCore;
    type Reply = Collection;
    const NAME: &'static str = "change_collection";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let Self {
            by,
            collection,
            change,
        } = self;
        let (ws, now) = (by.workspace.id, clock::now());
        let before = core.collection(ws, collection).await?;
        let mut changed = before.clone();
        let fields = change.apply(&mut changed, now)?;
        core.resolve(ws, &mut changed, Some(&before)).await?;
        let mut entry = AuditEntry::by(
            &by,
            "admin.collection_change",
            "collection",
            Outcome::Success,
            now,
        )
        .on(collection);
        for (field, value) in fields {
            entry = entry.with_texts(field, &value);
        }
        if !core
            .store
            .put_collection(ws, &changed, Some(&before), &entry)
            .await?
        {
            let gone = "the collection was changed or deleted meanwhile; read it again";
            return Err(DomainError::Conflict(gone.into()));
        }
        core.chain(entry).await;
        Ok(changed)
    }
}

impl Work for DeleteCollection {
    type Core = IdentityCore;
    type Reply = ();
    const NAME: &'static str = "delete_collection";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let Self { by, collection } = self;
        let (ws, now) = (by.workspace.id, clock::now());
        let title = core.collection(ws, collection).await?.title;
        let entry = AuditEntry::by(
            &by,
            "admin.collection_delete",
            "collection",
            Outcome::Success,
            now,
        )
        .on(collection)
        .with_text("title", &title);
        if !core.store.delete_collection(ws, collection, &entry).await? {
            return Err(DomainError::NotFound("collection"));
        }
        core.chain(entry).await;
        Ok(())
    }
}

impl IdentityCore {
    async fn collection(&self, ws: Uuid, id: Uuid) -> Result<Collection, DomainError> {
        let collections = self.store.collections(ws).await?;
        let found = collections.into_iter().find(|collection| collection.id == id);
        found.ok_or(DomainError::NotFound("collection"))
    }

    /// Looks up what a collection refers to, as far as that is new, and takes over the results of its session.
    ///
    /// # Errors
    /// Names what the workspace does not have.
    async fn resolve(
        &self,
        ws: Uuid,
        collection: &mut Collection,
        before: Option<&Collection>,
    ) -> Result<(), DomainError> {
        let known = |list: fn(&Collection) -> &[Uuid]| before.map(list).unwrap_or_default();
        let api_keys = self.store.api_keys(ws).await?;
        let api_keys: HashSet<Uuid> = api_keys.into_iter().map(|key| key.id).collect();
        let feeds = self.store.feeds(ws).await?;
        let feeds: HashSet<Uuid> = feeds.into_iter().map(|feed| feed.id).collect();
        type List = fn(&Collection) -> &[Uuid];
        let lists: [(&str, &str, &HashSet<Uuid>, List); 3] = [
            ("readable_by", "API key", &api_keys, |it| it.readable_by.keys()),
            ("writable_by", "API key", &api_keys, |it| it.writable_by.keys()),
            ("filter.feeds", "feed", &feeds, |it| &it.filter.feeds),
        ];
        for (field, what, there, list) in lists {
            let is_there = |id: &Uuid| there.contains(id) || known(list).contains(id);
            if let Some(place) = list(collection).iter().position(|id| !is_there(id)) {
                let rule = format!("must be the id of one of the workspace's: it has no such {what}");
                return Err(DomainError::invalid(format!("{field}[{place}]"), rule));
            }
        }
        let Some(session) = collection.filter.session else {
            return Ok(());
        };
        let earlier = before.filter(|before| before.filter.session == Some(session));
        collection.filter.session_nodes = match (self.store.session(ws, session).await?, earlier) {
            (Some(found), _) => found.session.node_ids,
            // The session is over; what it found is kept.
            (None, Some(before)) => before.filter.session_nodes.clone(),
            (None, None) => {
                let rule = "must be the id of a recall session that the workspace has";
                return Err(DomainError::invalid("filter.session", rule));
            }
        };
        Ok(())
    }
}
