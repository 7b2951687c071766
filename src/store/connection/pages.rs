//! Reads large results in parts, since the message size of a connection and the memory for it are limited.

use surrealdb::types::{RecordId, SurrealValue, Value};
use uuid::Uuid;

use super::database::Database;
use crate::domain::error::DomainError;
use crate::store::Store;
use crate::store::rows::key;

/// Rows per query.
const ROWS: usize = 500;
/// Rows from which two tasks share a query: the engine reads one row after the other, on the caller's thread, in some 40 µs
/// each.
const SHARED: usize = 48;
/// Rows per query when a whole table is read.
const SCAN: usize = 2_000;

impl Store {
    /// The rows with these ids, in no particular order; the query refers to them as `$ids` and must filter by workspace.
    pub(in crate::store) async fn rows_by_id<T: SurrealValue + Send + 'static>(
        &self,
        query: &str,
        ids: Vec<RecordId>,
        parameters: &[(&str, Value)],
    ) -> surrealdb::Result<Vec<T>> {
        let mut rows = Vec::with_capacity(ids.len());
        for part in ids.chunks(ROWS) {
            let here = match part.len() {
                few if few < SHARED => few,
                many => many / 2,
            };
            let (here, beside) = part.split_at(here);
            let beside = (!beside.is_empty()).then(|| {
                let (db, query, beside) = (self.db.clone(), query.to_owned(), beside.to_vec());
                let parameters: Vec<(String, Value)> = parameters
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), value.clone()))
                    .collect();
                tokio::spawn(async move {
                    let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value));
                    read_rows(&db, &query, beside, parameters).await
                })
            });
            let named = parameters.iter().map(|(name, value)| (*name, value));
            rows.extend(read_rows(&self.db, query, here.to_vec(), named).await?);
            if let Some(beside) = beside {
                let read = beside.await;
                rows.extend(read.map_err(|error| surrealdb::Error::internal(error.to_string()))??);
            }
        }
        Ok(rows)
    }

    /// All rows of a workspace in a table whose ids are UUIDs, ordered by id.
    pub(in crate::store) async fn rows_of_table<T: SurrealValue>(
        &self,
        [fields, table, filter]: [&str; 3],
        ws: Uuid,
        id_of: impl Fn(&T) -> &RecordId,
    ) -> Result<Vec<T>, DomainError> {
        let failed = crate::store::failed("reading the memory failed");
        let mut rows: Vec<T> = Vec::new();
        let mut stretch = Some(IdRange::default());
        while let Some(ids) = stretch {
            let range = format!("{table}:u'{}'..=u'{}'", ids.first(), ids.last());
            let query = format!("SELECT {fields} FROM {range} WHERE ws = $ws AND {filter} LIMIT {SCAN}");
            let mut answer = self.db.query(query).bind(("ws", ws)).await.map_err(&failed)?;
            let part: Vec<T> = answer.take(0).map_err(&failed)?;
            let found = part.iter().map(|row| key(id_of(row)));
            stretch = ids.after(&found.collect::<Result<Vec<_>, _>>()?);
            rows.extend(part);
        }
        Ok(rows)
    }
}

async fn read_rows<'a, T: SurrealValue>(
    db: &Database,
    query: &str,
    ids: Vec<RecordId>,
    parameters: impl Iterator<Item = (&'a str, &'a Value)>,
) -> surrealdb::Result<Vec<T>> {
    let mut statement = db.query(query).bind(("ids", ids));
    for (name, value) in parameters {
        statement = statement.bind((name, value.clone()));
    }
    statement.await?.take(0)
}

/// A stretch of ids that is read at once. The engine reads a range to its end whatever the limit, so a stretch is made
/// as long as some thousand rows lie apart.
#[derive(Debug, Clone, Copy)]
struct IdRange {
    start: u128,
    length: u128,
}

impl Default for IdRange {
    fn default() -> Self {
        IdRange {
            start: 0,
            length: u128::MAX / 16,
        }
    }
}

impl IdRange {
    fn first(self) -> Uuid {
        Uuid::from_u128(self.start)
    }

    fn last(self) -> Uuid {
        Uuid::from_u128(self.start.saturating_add(self.length))
    }

    /// The stretch to read after this one held these ids, of which there are at most [`SCAN`]; `None` after the last
    /// id.
    fn after(self, found: &[Uuid]) -> Option<Self> {
        match found {
            [first, .., last] if found.len() >= SCAN => Some(IdRange {
                start: last.as_u128().checked_add(1)?,
                length: last.as_u128() - first.as_u128(),
            }),
            _ => Some(IdRange {
                start: self.last().as_u128().checked_add(1)?,
                length: match found.len() {
                    0 => self.length.saturating_mul(16),
                    few if few < SCAN / 4 => self.length.saturating_mul(2),
                    _ => self.length,
                },
            }),
        }
    }
}
