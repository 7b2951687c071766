//! Staging batches without what is erased.
//!
//! Rule: a text can't be cut, so a batch that names an erased node goes as a whole, with its texts and entities.

use std::collections::HashSet;

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::domain::staging::DuplicateCandidate;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{corrupt, key, record};
use crate::store::{Store, failed};

const READ: &str = "reading the staging batches failed";

#[derive(Debug, SurrealValue)]
struct FoundEntity {
    id: RecordId,
    batch: Uuid,
    identity: String,
    node: Option<Uuid>,
    merge_target: Option<Uuid>,
    duplicates: String,
}

#[derive(Debug, SurrealValue)]
struct FoundPart {
    id: RecordId,
    batch: Uuid,
}

#[derive(Debug, SurrealValue)]
struct FoundBatch {
    id: RecordId,
    tlp_rank: i64,
}

#[derive(Debug, Clone, SurrealValue)]
struct RewrittenDuplicates {
    id: RecordId,
    duplicates: String,
}

/// What an erasure does to staging.
#[derive(Debug, Default)]
pub(in crate::store) struct StagingWithout {
    /// Batches, texts and entities.
    gone: Vec<RecordId>,
    rewritten: Vec<RewrittenDuplicates>,
    /// Number of batches, as far as they are seen.
    pub(in crate::store) batches: u64,
}

impl Store {
    /// The batches that name these nodes or are these texts, and the entities elsewhere that look like one of the nodes.
    pub(in crate::store) async fn staging_without(
        &self,
        ws: Uuid,
        (nodes, texts): (&HashSet<Uuid>, &HashSet<Uuid>),
        highest: Tlp,
    ) -> Result<StagingWithout, DomainError> {
        let query = "SELECT id, batch, identity, node, merge_target, duplicates FROM staged_entity WHERE ws = $ws; \
                     SELECT id, batch FROM staging_part WHERE ws = $ws";
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .await
            .map_err(failed(READ))?;
        let entities: Vec<FoundEntity> = response.take(0).map_err(failed(READ))?;
        let parts: Vec<FoundPart> = response.take(1).map_err(failed(READ))?;
        // An id of a text is that of the batch or of the later part that brought it.
        let mut batches = texts.clone();
        for part in &parts {
            if texts.contains(&key(&part.id)?) {
                batches.insert(part.batch);
            }
        }
        let is_one = |id: Option<Uuid>| id.is_some_and(|id| nodes.contains(&id));
        for entity in &entities {
            let named = self.ids_of_identity(ws, &entity.identity);
            if is_one(entity.node) || is_one(entity.merge_target) || named.iter().any(|id| nodes.contains(id))
            {
                batches.insert(entity.batch);
            }
        }
        let mut done = StagingWithout::default();
        for entity in entities {
            if batches.contains(&entity.batch) {
                done.gone.push(entity.id);
            } else if let Some(duplicates) = without(&entity.duplicates, nodes)? {
                let id = entity.id;
                done.rewritten.push(RewrittenDuplicates { id, duplicates });
            }
        }
        let parts = parts.into_iter().filter(|part| batches.contains(&part.batch));
        done.gone.extend(parts.map(|part| part.id));
        for batch in self.batches_with_ids(ws, &batches).await? {
            done.batches += u64::from(batch.tlp_rank <= i64::from(highest.rank()));
            done.gone.push(batch.id);
        }
        Ok(done)
    }

    async fn batches_with_ids(&self, ws: Uuid, ids: &HashSet<Uuid>) -> Result<Vec<FoundBatch>, DomainError> {
        let ids: Vec<RecordId> = ids.iter().map(|id| record("staging_batch", *id)).collect();
        let query = "SELECT id, tlp_rank FROM $ids WHERE ws = $ws";
        let statement = self.db.query(query).bind(("ws", ws)).bind(("ids", ids));
        let mut response = statement.await.map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }
}

/// The candidates of an entity without those that are erased; `None` if none is.
fn without(duplicates: &str, nodes: &HashSet<Uuid>) -> Result<Option<String>, DomainError> {
    let mut candidates: Vec<DuplicateCandidate> = serde_json::from_str(duplicates).map_err(corrupt)?;
    let before = candidates.len();
    candidates.retain(|candidate| !nodes.contains(&candidate.node_id));
    let is_shorter = candidates.len() < before;
    is_shorter
        .then(|| serde_json::to_string(&candidates).map_err(corrupt))
        .transpose()
}

impl StagingWithout {
    pub(in crate::store) async fn write(self, tx: &WriteTx) -> Result<(), StoreError> {
        tx.write("DELETE $rows RETURN NONE", self.gone).await?;
        tx.write(
            "FOR $row IN $rows { UPDATE $row.id SET duplicates = $row.duplicates RETURN NONE }",
            self.rewritten,
        )
        .await
    }
}
