//! Reads large results in parts, since the message size of a connection and the memory for it are limited.

use surrealdb::types::{RecordId, SurrealValue, Value};
use uuid::Uuid;

use super::Store;
use super::rows::key;
use crate::domain::error::DomainError;

/// Rows per query.
const ROWS: usize = 500;
/// Rows per query when a whole table is read.
const SCAN: usize = 2_000;

impl Store {
    /// The rows with these ids; the query refers to them as `$ids` and must filter by workspace.
    pub(super) async fn rows_by_id<T: SurrealValue>(
        &self,
        query: &str,
        ids: Vec<RecordId>,
        parameters: &[(&str, Value)],
    ) -> surrealdb::Result<Vec<T>> {
        let mut rows = Vec::with_capacity(ids.len());
        for part in ids.chunks(ROWS) {
            let mut statement = self.db.query(query).bind(("ids", part.to_vec()));
            for (name, value) in parameters {
                statement = statement.bind((name, value.clone()));
            }
            let part: Vec<T> = statement.await?.take(0)?;
            rows.extend(part);
        }
        Ok(rows)
    }

    /// All rows of a workspace in a table whose ids are UUIDs, ordered by id.
    pub(super) async fn rows_of_table<T: SurrealValue>(
        &self,
        [fields, table, filter]: [&str; 3],
        ws: Uuid,
        id_of: impl Fn(&T) -> &RecordId,
    ) -> Result<Vec<T>, DomainError> {
        let mut rows: Vec<T> = Vec::new();
        let mut start = String::new();
        loop {
            let query =
                format!("SELECT {fields} FROM {table}:{start}.. WHERE ws = $ws AND {filter} LIMIT {SCAN}");
            let answer = self.db.query(query).bind(("ws", ws)).await;
            let part: surrealdb::Result<Vec<T>> = answer.and_then(|mut answer| answer.take(0));
            let part = part.map_err(super::failed("reading the memory failed"))?;
            let Some(last) = part.last() else { break };
            start = format!("u'{}'>", key(id_of(last))?);
            let full = part.len() == SCAN;
            rows.extend(part);
            if !full {
                break;
            }
        }
        Ok(rows)
    }
}
