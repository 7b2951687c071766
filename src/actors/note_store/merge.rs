//! Entities that a user merges, and the way back.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::core::NoteCore;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::memory::change::{ChangeKind, MemoryChange};
use crate::domain::memory::view::EntityView;
use crate::store::StoredEntity;

/// Lets one entity stand for another, of the same type. Ids are those that clients see, `type:value`.
#[derive(Debug)]
pub struct MergeEntities {
    pub entity: String,
    pub into: String,
    pub from: IpAddr,
    pub permit: Option<OwnedSemaphorePermit>,
}

impl Work for MergeEntities {
    type Core = NoteCore;
    /// The entity that stands for both.
    type Reply = EntityView;
    const NAME: &'static str = "merge_entities";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.merge_entities(self).await
    }
}

/// Lets a merged entity stand for itself again.
#[derive(Debug)]
pub struct UnmergeEntity {
    pub entity: String,
    pub from: IpAddr,
    pub permit: Option<OwnedSemaphorePermit>,
}

impl Work for UnmergeEntity {
    type Core = NoteCore;
    /// The entity as it is again.
    type Reply = EntityView;
    const NAME: &'static str = "unmerge_entity";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.unmerge_entity(self).await
    }
}

impl NoteCore {
    async fn merge_entities(&self, message: MergeEntities) -> Result<EntityView, DomainError> {
        let MergeEntities {
            entity,
            into,
            from,
            permit: _permit,
        } = message;
        let merged = self.change(async move |_, memory, write, _| {
            let graph = memory.graph();
            let own = |id: &str| graph.own_entity_of(id).ok_or(DomainError::NotFound("entity"));
            let (entity, into) = (own(&entity)?, own(&into)?);
            if entity.draft.key.entity_type != into.draft.key.entity_type {
                return Err(DomainError::invalid("into", "must be of the same type as from"));
            }
            if entity.merged_into.is_some() {
                return Err(DomainError::invalid(
                    "from",
                    "is merged into another entity already",
                ));
            }
            let standing = |entity: &StoredEntity| graph.entity_slot(entity.id);
            if standing(&entity) == standing(&into) {
                return Err(DomainError::invalid("into", "must be another entity than from"));
            }
            let key = &entity.draft.key;
            let change = MemoryChange::of_entity(ChangeKind::Merged, entity.id, key, "user");
            let after = json!({"merged_into": into.draft.key.to_string()});
            write.history.push(change.from_to(None, Some(after)));
            write
                .audit
                .push(entry(memory.workspace, from, "memory.merge", &entity));
            let id = entity.id;
            write.merged.push(StoredEntity {
                merged_into: Some(into.id),
                ..entity
            });
            Ok(id)
        });
        self.view_of(merged.await?).await
    }

    async fn unmerge_entity(&self, message: UnmergeEntity) -> Result<EntityView, DomainError> {
        let UnmergeEntity {
            entity,
            from,
            permit: _permit,
        } = message;
        let unmerged = self.change(async move |_, memory, write, _| {
            let graph = memory.graph();
            let entity = graph.own_entity_of(&entity);
            let entity = entity.ok_or(DomainError::NotFound("entity"))?;
            let into = entity.merged_into.and_then(|into| graph.own_entity(into));
            let Some(into) = into else {
                return Err(DomainError::invalid("entity", "is not merged into another"));
            };
            let key = &entity.draft.key;
            let change = MemoryChange::of_entity(ChangeKind::Unmerged, entity.id, key, "user");
            let before = json!({"merged_into": into.draft.key.to_string()});
            write.history.push(change.from_to(Some(before), None));
            write
                .audit
                .push(entry(memory.workspace, from, "memory.unmerge", &entity));
            let id = entity.id;
            write.merged.push(StoredEntity {
                merged_into: None,
                ..entity
            });
            Ok(id)
        });
        self.view_of(unmerged.await?).await
    }

    async fn view_of(&self, entity: uuid::Uuid) -> Result<EntityView, DomainError> {
        let graph = self.memory().await?.graph();
        let entity = graph.entity(&entity).ok_or(DomainError::NotFound("entity"))?;
        Ok(graph.entity_view(entity))
    }
}

fn entry(ws: uuid::Uuid, from: IpAddr, action: &'static str, entity: &StoredEntity) -> AuditEntry {
    AuditEntry::anonymous(ws, from, action, "entity", Outcome::Success, clock::now()).on(entity.id)
}
