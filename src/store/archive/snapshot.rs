//! A consistent view of everything in the store: one transaction, which is never committed.

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use surrealdb::method::StreamItem;
use surrealdb::types::Value;
use tokio::sync::OwnedRwLockReadGuard;

use crate::store::Store;
use crate::store::connection::database::{Database, WriteTransaction};
use crate::store::connection::error::StoreError;

/// Tables that say what processes are doing, not what the store holds.
const OF_PROCESSES: [&str; 4] = ["lease", "write_turn", "schema_version", "restore"];
/// The table whose rows need those of another one.
const RELATIONS: &str = "edge";

/// The store at one moment.
pub struct Snapshot {
    tx: WriteTransaction,
    /// Its tables, in the order in which they can be restored.
    tables: Vec<String>,
    schema: i64,
    /// Has the rewriting of files wait.
    _held: Option<OwnedRwLockReadGuard<()>>,
}

impl Store {
    /// A view of the store as it is now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let held = Arc::clone(&self.snapshots).read_owned().await;
        let mut snapshot = Snapshot::of(&self.db).await?;
        snapshot._held = Some(held);
        Ok(snapshot)
    }
}

impl Snapshot {
    pub(in crate::store) async fn of(db: &Database) -> Result<Self, StoreError> {
        let tx = db.for_long_reads().await?.begin().await?;
        let mut info = tx.query("INFO FOR DB").await?.check()?;
        let info: serde_json::Value = info
            .take::<Option<Value>>(0)?
            .map(Value::into_json_value)
            .unwrap_or_default();
        let names = info["tables"]
            .as_object()
            .into_iter()
            .flat_map(|tables| tables.keys());
        let mut tables: Vec<String> = names
            .filter(|name| !OF_PROCESSES.contains(&name.as_str()))
            .cloned()
            .collect();
        tables.sort_by_key(|name| (name == RELATIONS, name.clone()));
        let versions: Vec<i64> = tx
            .query("SELECT VALUE record::id(id) FROM schema_version")
            .await?
            .check()?
            .take(0)?;
        Ok(Self {
            tx,
            tables,
            schema: versions.into_iter().max().unwrap_or(0),
            _held: None,
        })
    }

    pub fn tables(&self) -> &[String] {
        &self.tables
    }

    /// Version of its schema.
    pub fn schema(&self) -> i64 {
        self.schema
    }

    /// The rows of a table, in the order of their keys.
    pub(in crate::store) fn rows(
        &self,
        table: &str,
    ) -> surrealdb::Result<impl Stream<Item = surrealdb::Result<Value>> + use<>> {
        let rows = self.tx.query(format!("SELECT * FROM {table}")).stream()?;
        Ok(rows.filter_map(async |item| match item {
            Ok(StreamItem::Row { value, .. }) => Some(Ok(value)),
            Ok(StreamItem::StatementEnd { result, .. }) => result.err().map(Err),
            Err(error) => Some(Err(error)),
        }))
    }

    pub(in crate::store) async fn end(self) {
        self.tx.cancel().await.ok();
    }
}
