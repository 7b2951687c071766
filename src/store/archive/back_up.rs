//! Writes a snapshot into an archive.
//!
//! Rows are read by an async task and cut, hashed and compressed by a blocking one; a short queue between them bounds the
//! memory, whatever the size of the store.

use std::collections::BTreeMap;
use std::io::Write;

use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use secrecy::SecretString;
use serde_json::Value as Json;
use surrealdb::types::{Number, Object, RecordIdKey, Value};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use uuid::Uuid;

use super::row_json::{self, Untranslatable};
use super::snapshot::Snapshot;
use crate::archive::cut::Cutter;
use crate::archive::{
    ArchiveError, ArchiveWriter, Header, Manifest, SealedSecrets, SecretRows, ServiceKind, Since,
    WorkspaceNumber,
};
use crate::store::connection::error::StoreError;

/// Rows of a message between the two tasks, and messages that may wait.
const BATCH: usize = 128;
const QUEUE: usize = 4;

/// A table whose rows are secrets as a whole, and the field of another one that is a secret.
const SECRET_TABLE: &str = "api_key";
const SECRET_FIELD: [&str; 2] = ["user", "password_hash"];

/// What is to be written.
#[derive(Debug)]
pub struct BackUp {
    pub service: ServiceKind,
    pub made_at: DateTime<Utc>,
    /// What it goes on from; empty for a whole archive.
    pub since: Since,
    /// Encrypts passwords and API keys, which are left out without one.
    pub passphrase: Option<SecretString>,
}

/// Why a back-up was not finished.
#[derive(Debug, thiserror::Error)]
pub enum BackUpError {
    #[error("reading the store: {0}")]
    Store(#[from] StoreError),
    #[error("writing the archive: {0}")]
    Write(#[from] std::io::Error),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("a row of the table {table}: {error}")]
    Row { table: String, error: Untranslatable },
    #[error("the task that writes the archive ended unexpectedly")]
    Ended,
}

/// What the reading task hands over.
enum Step {
    Table(String),
    Rows(Vec<Value>),
    /// Everything was read.
    End,
}

impl BackUp {
    /// The header of the archive that will be written.
    pub fn header(&self, snapshot: &Snapshot) -> Header {
        Header::new(
            self.service,
            snapshot.schema(),
            self.made_at,
            &self.since.archives,
        )
    }

    /// Writes the snapshot to `out`, on the current runtime.
    ///
    /// # Errors
    /// When the store can't be read or `out` can't be written; what was written has then no manifest.
    pub async fn write<W: Write + Send + 'static>(
        self,
        snapshot: Snapshot,
        header: Header,
        out: W,
    ) -> Result<(W, Manifest), BackUpError> {
        let (steps, taken) = channel(QUEUE);
        let writing = tokio::task::spawn_blocking(move || self.write_steps(taken, header, out));
        let read = read_all(&snapshot, &steps).await;
        drop(steps);
        snapshot.end().await;
        let written = writing.await.map_err(|_| BackUpError::Ended)?;
        // If the writer failed, the reader only noticed that nobody takes its rows.
        match read {
            Err(error) => Err(written
                .err()
                .filter(|error| !error.is_cut_short())
                .unwrap_or(error)),
            Ok(()) => written,
        }
    }

    fn write_steps<W: Write>(
        self,
        mut steps: Receiver<Step>,
        header: Header,
        out: W,
    ) -> Result<(W, Manifest), BackUpError> {
        let id = header.id;
        let mut sorter = Sorter::default();
        let mut writer = ArchiveWriter::begin(out, header, self.since)?;
        loop {
            match steps.blocking_recv() {
                Some(Step::Table(name)) => sorter.begin(name, &mut writer)?,
                Some(Step::Rows(rows)) => {
                    for row in rows {
                        sorter.add(row, &mut writer)?;
                    }
                }
                Some(Step::End) => break,
                // The reader failed, and says why.
                None => return Err(BackUpError::Ended),
            }
        }
        sorter.end(&mut writer)?;
        if let Some(passphrase) = &self.passphrase {
            writer.add_secrets(&SealedSecrets::seal(&sorter.secrets, id, passphrase)?)?;
        }
        Ok(writer.finish(sorter.numbers())?)
    }
}

impl BackUpError {
    fn is_cut_short(&self) -> bool {
        matches!(self, Self::Ended)
    }
}

async fn read_all(snapshot: &Snapshot, steps: &Sender<Step>) -> Result<(), BackUpError> {
    for table in snapshot.tables() {
        let hand_over = |step| async move { steps.send(step).await.map_err(|_| BackUpError::Ended) };
        hand_over(Step::Table(table.clone())).await?;
        let rows = snapshot.rows(table).map_err(StoreError::from)?;
        let mut batches = Box::pin(rows.ready_chunks(BATCH));
        while let Some(batch) = batches.next().await {
            let rows: surrealdb::Result<Vec<Value>> = batch.into_iter().collect();
            hand_over(Step::Rows(rows.map_err(StoreError::from)?)).await?;
        }
    }
    steps.send(Step::End).await.map_err(|_| BackUpError::Ended)
}

/// Sorts the rows of all tables: into chunks, secrets, and the numbers of the workspaces.
#[derive(Default)]
struct Sorter {
    table: String,
    cutter: Cutter,
    secrets: SecretRows,
    names: BTreeMap<Uuid, String>,
    last: BTreeMap<Uuid, u64>,
}

impl Sorter {
    fn begin<W: Write>(&mut self, table: String, writer: &mut ArchiveWriter<W>) -> Result<(), BackUpError> {
        self.end(writer)?;
        self.table = table;
        Ok(())
    }

    fn end<W: Write>(&mut self, writer: &mut ArchiveWriter<W>) -> Result<(), BackUpError> {
        if let Some(chunk) = self.cutter.end() {
            writer.add_chunk(&self.table, &chunk)?;
        }
        Ok(())
    }

    fn add<W: Write>(&mut self, mut row: Value, writer: &mut ArchiveWriter<W>) -> Result<(), BackUpError> {
        let Value::Object(fields) = &mut row else {
            return Err(self.untranslatable(Untranslatable::ROW));
        };
        self.note_number(fields);
        if self.table == SECRET_TABLE {
            let row = self.json_of(&row)?;
            self.secrets.rows.push((self.table.clone(), row));
            return Ok(());
        }
        let id = fields
            .get("id")
            .ok_or_else(|| self.untranslatable(Untranslatable::ROW))?;
        let id = self.json_of(id)?;
        self.hold_back(fields, &id)?;
        let text = self.json_of(&row)?.to_string();
        if let Some(chunk) = self.cutter.add(id.to_string().as_bytes(), text.as_bytes()) {
            writer.add_chunk(&self.table, &chunk)?;
        }
        Ok(())
    }

    fn json_of(&self, value: &Value) -> Result<Json, BackUpError> {
        row_json::to_json(value).map_err(|error| self.untranslatable(error))
    }

    fn untranslatable(&self, error: Untranslatable) -> BackUpError {
        BackUpError::Row {
            table: self.table.clone(),
            error,
        }
    }

    /// Takes the field that is a secret out of a row.
    fn hold_back(&mut self, fields: &mut Object, id: &Json) -> Result<(), BackUpError> {
        let [table, field] = SECRET_FIELD;
        if self.table != table {
            return Ok(());
        }
        if let Some(secret) = fields.remove(field) {
            let secret = self.json_of(&secret)?;
            let held = (table.to_owned(), id.clone(), field.to_owned(), secret);
            self.secrets.fields.push(held);
        }
        Ok(())
    }

    /// Notes the name of a workspace, and the number of a write.
    fn note_number(&mut self, fields: &Object) {
        let Some(Value::RecordId(id)) = fields.get("id") else {
            return;
        };
        match (self.table.as_str(), &id.key) {
            ("workspace", RecordIdKey::Uuid(id)) => {
                if let Some(Value::String(name)) = fields.get("name") {
                    self.names.insert(**id, name.clone());
                }
            }
            ("node_write", RecordIdKey::Array(parts)) => {
                if let [Value::Uuid(ws), Value::Number(Number::Int(number)), ..] = &parts[..] {
                    let number = u64::try_from(*number).unwrap_or(0);
                    let last = self.last.entry(**ws).or_default();
                    *last = number.max(*last);
                }
            }
            _ => {}
        }
    }

    fn numbers(&self) -> Vec<WorkspaceNumber> {
        let number = |id: &Uuid| self.last.get(id).copied().unwrap_or(0);
        let all = self.names.iter().map(|(id, name)| WorkspaceNumber {
            id: *id,
            name: name.clone(),
            number: number(id),
        });
        all.collect()
    }
}
