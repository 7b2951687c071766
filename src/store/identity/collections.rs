//! TAXII collections that administrators define.

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::{ADMIN_ONLY, by_admin, refusal};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::taxii::collection::Collection;
use crate::store::Store;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_race_retry;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{corrupt, record};

/// Most collections of a workspace.
pub(super) const MAX_COLLECTIONS: usize = 100;
pub(super) const TOO_MANY: &str = "the workspace has too many collections";
pub(super) const ALIAS_TAKEN: &str = "another collection has this alias";

#[derive(Debug, Clone, SurrealValue)]
struct CollectionRow {
    id: RecordId,
    ws: Uuid,
    alias: Option<String>,
    definition: String,
    nodes: Vec<Uuid>,
}

/// The nodes of a collection that it keeps when others are erased.
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct CollectionNodes {
    pub id: RecordId,
    pub nodes: Vec<Uuid>,
}

impl CollectionRow {
    fn new(ws: Uuid, collection: &Collection) -> Result<Self, DomainError> {
        Ok(Self {
            id: record("collection", collection.id),
            ws,
            alias: collection.alias.clone(),
            definition: serde_json::to_string(collection).map_err(corrupt)?,
            nodes: collection.filter.session_nodes.clone(),
        })
    }

    fn into_collection(self) -> Result<Collection, DomainError> {
        let mut collection: Collection = serde_json::from_str(&self.definition).map_err(corrupt)?;
        collection.filter.session_nodes = self.nodes;
        Ok(collection)
    }
}

impl Store {
    /// The collections of a workspace that administrators defined, oldest first.
    pub async fn collections(&self, ws: Uuid) -> Result<Vec<Collection>, DomainError> {
        let query = "SELECT * FROM collection WHERE ws = $key";
        let rows: Vec<CollectionRow> = self.select(query, ws).await?;
        let collections = rows.into_iter().map(CollectionRow::into_collection);
        let mut collections = collections.collect::<Result<Vec<_>, _>>()?;
        collections.sort_by_key(|collection| (collection.created_at, collection.id));
        Ok(collections)
    }

    /// Defines a collection, or changes one that is as `before` says; false if it is not any more.
    ///
    /// # Errors
    /// `Conflict` when another collection has its alias, or there are too many.
    pub async fn put_collection(
        &self,
        ws: Uuid,
        collection: &Collection,
        before: Option<&Collection>,
        audit: &AuditEntry,
    ) -> Result<bool, DomainError> {
        let row = CollectionRow::new(ws, collection)?;
        let before = before.map(|before| CollectionRow::new(ws, before)).transpose()?;
        let write = match before {
            None => "INSERT INTO collection $row RETURN id",
            Some(_) => {
                "UPDATE $id SET alias = $row.alias, definition = $row.definition, nodes = $row.nodes \
                        WHERE ws = $ws AND definition = $before RETURN id"
            }
        };
        // Two writes of one workspace conflict by its row.
        let query = format!(
            "{{ {ADMIN_ONLY} \
               UPDATE $workspace SET admin_changes = (admin_changes ?? 0) + 1 RETURN NONE; \
               LET $others = (SELECT VALUE alias ?? '' FROM collection WHERE ws = $ws AND id != $id); \
               IF array::len($others) >= {MAX_COLLECTIONS} {{ THROW '{TOO_MANY}' }}; \
               IF $row.alias != NONE AND $row.alias IN $others {{ THROW '{ALIAS_TAKEN}' }}; \
               LET $done = ({write}); \
               IF array::len($done) = 1 {{ INSERT $audit RETURN NONE }}; \
               RETURN array::len($done); }}"
        );
        let done: Option<i64> = with_race_retry(|| async {
            let statement = by_admin(self.db.query(query.clone()), audit)
                .bind(("workspace", record("workspace", ws)))
                .bind(("ws", ws))
                .bind(("id", row.id.clone()))
                .bind(("row", row.clone()))
                .bind(("before", before.as_ref().map(|before| before.definition.clone())));
            Ok(statement.await?.take(0)?)
        })
        .await
        .map_err(refusal)?;
        Ok(done == Some(1))
    }

    /// Deletes a collection, with the audit entry; false when there is no such collection.
    pub async fn delete_collection(
        &self,
        ws: Uuid,
        id: Uuid,
        audit: &AuditEntry,
    ) -> Result<bool, DomainError> {
        let query = format!(
            "{{ {ADMIN_ONLY} \
               LET $done = (DELETE $id WHERE ws = $ws RETURN BEFORE); \
               IF array::len($done) = 1 {{ INSERT $audit RETURN NONE }}; \
               RETURN array::len($done); }}"
        );
        let done: Option<i64> = with_race_retry(|| async {
            let statement = by_admin(self.db.query(query.clone()), audit);
            let statement = statement.bind(("id", record("collection", id))).bind(("ws", ws));
            Ok(statement.await?.take(0)?)
        })
        .await
        .map_err(refusal)?;
        Ok(done == Some(1))
    }
}

/// Takes from collections what they list of erased nodes.
pub(in crate::store) async fn write_nodes(
    tx: &WriteTx,
    left: Vec<CollectionNodes>,
) -> Result<(), StoreError> {
    tx.write(
        "FOR $row IN $rows { UPDATE $row.id SET nodes = $row.nodes RETURN NONE }",
        left,
    )
    .await
}
