//! A write transaction: statements run in chunks, and everything is committed or nothing.

use std::collections::HashSet;
use std::sync::Arc;

use surrealdb::types::{RecordId, SurrealValue, Value};
use uuid::Uuid;

use super::database::WriteTransaction;
use super::error::StoreError;
use crate::domain::ids::IdSecret;
use crate::domain::tlp::Tlp;
use crate::store::Store;
use crate::store::rows::{key, record};

/// Rows per statement: enough to be fast, few enough to bound a statement's memory and to yield the thread after some
/// tens of milliseconds.
pub(in crate::store) const CHUNK: usize = 250;
/// Rows built between two yields.
const ROWS_PER_PIECE: usize = 64;

/// Yields the thread at intervals while many rows are built.
pub(in crate::store) async fn yield_regularly(row: usize) {
    if row % ROWS_PER_PIECE == ROWS_PER_PIECE - 1 {
        tokio::task::yield_now().await;
    }
}

/// A row as it is stored: without fields that are NONE, each of which the engine would look at several times.
fn row_value<T: SurrealValue>(row: T) -> Value {
    let mut value = row.into_value();
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, field| !matches!(field, Value::None));
    }
    value
}

/// A transaction that must be ended with [`WriteTx::finish`].
pub(in crate::store) struct WriteTx {
    tx: WriteTransaction,
    /// What the ids of rows are made with.
    pub(in crate::store) id_secret: Arc<IdSecret>,
}

impl Store {
    /// Begins a write transaction.
    pub(in crate::store) async fn begin(&self) -> Result<WriteTx, StoreError> {
        Ok(WriteTx {
            tx: self.db.clone().begin().await?,
            id_secret: self.id_secret(),
        })
    }
}

impl WriteTx {
    /// Reads those rows of the workspace that exist among these ids; the query refers to both as `$ws` and `$ids`.
    pub(in crate::store) async fn find<T: SurrealValue>(
        &self,
        ws: Uuid,
        query: &str,
        ids: Vec<RecordId>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        for chunk in ids.chunks(CHUNK) {
            let statement = self.tx.query(query).bind(("ids", chunk.to_vec()));
            let rows: Vec<T> = statement.bind(("ws", ws)).await?.take(0)?;
            found.extend(rows);
            tokio::task::yield_now().await;
        }
        Ok(found)
    }

    /// Reads rows; the query refers to the values by their names.
    pub(in crate::store) async fn select<T: SurrealValue>(
        &self,
        query: &str,
        values: &[(&'static str, Value)],
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.tx.query(query);
        for (name, value) in values {
            statement = statement.bind((*name, value.clone()));
        }
        Ok(statement.await?.take(0)?)
    }

    /// Those nodes that are active nodes of the workspace and marked no higher than `highest`.
    pub(in crate::store) async fn active_nodes(
        &self,
        ws: Uuid,
        nodes: &[Uuid],
        highest: Tlp,
    ) -> Result<HashSet<Uuid>, StoreError> {
        if nodes.is_empty() {
            return Ok(HashSet::new());
        }
        let ids: Vec<_> = nodes.iter().map(|id| record("node", *id)).collect();
        let query = "SELECT VALUE id FROM $ids WHERE ws = $ws AND status = 'active' AND tlp_rank <= $highest";
        let mut response = self
            .tx
            .query(query)
            .bind(("ids", ids))
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .await?;
        let active: Vec<RecordId> = response.take(0)?;
        Ok(active.iter().map(key).collect::<Result<_, _>>()?)
    }

    /// Runs a write statement over `rows`, bound as `$rows`, chunk by chunk.
    pub(in crate::store) async fn write<T: SurrealValue>(
        &self,
        query: &str,
        rows: Vec<T>,
    ) -> Result<(), StoreError> {
        let mut rows = rows.into_iter();
        loop {
            let chunk: Vec<Value> = rows.by_ref().take(CHUNK).map(row_value).collect();
            if chunk.is_empty() {
                return Ok(());
            }
            self.tx.query(query).bind(("rows", chunk)).await?.check()?;
            tokio::task::yield_now().await;
        }
    }

    /// Adds the size of what a statement writes beyond its parameters to the transaction's size.
    pub(in crate::store) fn charge(&self, bytes: u64) -> Result<(), StoreError> {
        Ok(self.tx.charge(bytes)?)
    }

    /// Whether this many more bytes fit.
    pub(in crate::store) fn has_room_for(&self, bytes: u64) -> bool {
        self.tx.has_room_for(bytes)
    }

    /// Commits on success and rolls back on failure. A failed statement is never committed: the engine would keep
    /// what it had done up to the failure.
    pub(in crate::store) async fn finish<T>(self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        match outcome {
            Ok(value) => {
                self.tx.commit().await?;
                Ok(value)
            }
            Err(error) => {
                // The statement's own error says more than an error of the rollback would.
                self.tx.cancel().await.ok();
                Err(error)
            }
        }
    }
}
