//! Restores a store from archives.
//!
//! The store must be empty. Rows are written in transactions that also write how far the work has come, so a restore that
//! was interrupted goes on where it ended, and nothing opens a store of which a part is missing.

use std::path::PathBuf;

use secrecy::SecretString;
use serde_json::Value as Json;
use surrealdb::types::{RecordId, SurrealValue, Value};
use uuid::Uuid;

use super::row_json;
use super::target::{Purpose, StoreTarget};
use crate::archive::{
    ArchiveError, ChunkFeed, ChunkLine, Header, Manifest, SecretRows, ServiceKind, SoundArchive, inspect_all,
};
use crate::store::connection::database::Database;
use crate::store::connection::error::StoreError;
use crate::store::connection::size;
use crate::store::migrations::migrate;

/// Rows of a statement.
const ROWS: usize = 500;
/// Bytes after which a transaction ends, as the engine would hold them: with the chunk that ends it, a restore's limit of a
/// transaction is not reached.
const BYTES: u64 = 32 << 20;

/// Why a store was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0} is not empty; restore into an empty store")]
    NotEmpty(String),
    #[error(
        "a restore of another archive ({0}) into this store was not finished; finish it, or empty the store"
    )]
    Other(Uuid),
    #[error("the archive is of the {found} service; restore it with {with}")]
    Service { found: &'static str, with: &'static str },
    #[error("the archive has the schema {found}, this program knows {known}; use a newer program")]
    Schema { found: i64, known: i64 },
    #[error("the archive holds secrets; set THREAT_MEMORY_BACKUP_PASSPHRASE, or say --without-secrets")]
    NoPassphrase,
    #[error("a row of the table {table} in the archive can't be read: {cause}")]
    Row { table: String, cause: String },
    #[error("{0} can't be restored into: it is gone when the process ends")]
    Temporary(String),
    #[error("the task that reads the archive ended unexpectedly")]
    Ended,
}

/// What was restored.
#[derive(Debug)]
pub struct RestoreSummary {
    pub manifest: Manifest,
    /// Whether passwords and API keys were restored, too.
    pub secrets: bool,
    /// Whether an interrupted restore was gone on with.
    pub resumed: bool,
}

#[derive(Debug, SurrealValue)]
struct ProgressRow {
    archive: uuid::Uuid,
    chunks: i64,
}

/// Checks the archives, then restores the last of them. `passphrase` opens its secrets; without one they stay behind if
/// `without_secrets`.
///
/// # Errors
/// When an archive is damaged or not the right one, or the store is not empty or can't be written.
pub async fn restore(
    paths: Vec<PathBuf>,
    target: &StoreTarget,
    passphrase: Option<SecretString>,
    without_secrets: bool,
) -> Result<RestoreSummary, RestoreError> {
    let checked = tokio::task::spawn_blocking(move || inspect_all(&paths));
    let mut archives = checked.await.map_err(|_| RestoreError::Ended)??;
    let Some(last) = archives.pop() else {
        return Err(RestoreError::Ended);
    };
    require(target, &last.header)?;
    let secrets = secrets_of(&last, passphrase, without_secrets)?;
    let paths = archives.iter().chain([&last]).map(|archive| archive.path.clone());
    let paths = paths.collect();
    let opened = target.open(Purpose::Restore).await?;
    let restorer = Restorer {
        db: opened.db,
        place: &target.url,
    };
    let begun = restorer.begin(&last.header).await?;
    restorer.write_chunks(paths, &last, begun).await?;
    if let Some(secrets) = &secrets {
        restorer.write_secrets(secrets).await?;
    }
    restorer.finish().await?;
    drop(opened.marker);
    Ok(RestoreSummary {
        manifest: last.manifest,
        secrets: secrets.is_some(),
        resumed: begun.is_some(),
    })
}

fn secrets_of(
    archive: &SoundArchive,
    passphrase: Option<SecretString>,
    without_secrets: bool,
) -> Result<Option<SecretRows>, RestoreError> {
    match (&archive.secrets, passphrase) {
        (None, _) => Ok(None),
        (Some(_), _) if without_secrets => Ok(None),
        (Some(_), None) => Err(RestoreError::NoPassphrase),
        (Some(sealed), Some(passphrase)) => Ok(Some(sealed.open(archive.header.id, &passphrase)?)),
    }
}

/// Refuses a store into which an archive was restored in part.
pub(in crate::store) async fn refuse_half_restored(db: &Database) -> Result<(), StoreError> {
    match progress(db).await? {
        Some(_) => Err(StoreError::HalfRestored),
        None => Ok(()),
    }
}

/// How far a restore has come that was not finished.
async fn progress(db: &Database) -> Result<Option<ProgressRow>, StoreError> {
    let tables = table_names(db).await?;
    if !tables.iter().any(|table| table == "restore") {
        return Ok(None);
    }
    let mut found = db
        .query("SELECT archive, chunks FROM restore:this")
        .await?
        .check()?;
    let row: Option<ProgressRow> = found.take(0)?;
    Ok(Some(row.unwrap_or(ProgressRow {
        archive: Uuid::nil(),
        chunks: 0,
    })))
}

async fn table_names(db: &Database) -> Result<Vec<String>, StoreError> {
    let mut info = db.query("INFO FOR DB").await?.check()?;
    let info: Option<Value> = info.take(0)?;
    let info = info.map(Value::into_json_value).unwrap_or_default();
    let tables = info["tables"].as_object();
    Ok(tables
        .into_iter()
        .flat_map(|tables| tables.keys().cloned())
        .collect())
}

/// Refuses an archive of the other service or of a later schema.
fn require(target: &StoreTarget, header: &Header) -> Result<(), RestoreError> {
    if header.service != target.service {
        let (found, with) = match header.service {
            ServiceKind::Hosted => ("hosted", "--storage"),
            ServiceKind::Local => ("local", "--data-dir"),
        };
        return Err(RestoreError::Service { found, with });
    }
    let known = migrate::known_version();
    if header.schema > known {
        let found = header.schema;
        return Err(RestoreError::Schema { found, known });
    }
    if target.is_temporary() {
        return Err(RestoreError::Temporary(target.url.clone()));
    }
    Ok(())
}

struct Restorer<'a> {
    db: Database,
    place: &'a str,
}

impl Restorer<'_> {
    /// Prepares an empty store for the rows; returns how many chunks it has already, if it was prepared before.
    async fn begin(&self, header: &Header) -> Result<Option<usize>, RestoreError> {
        match progress(&self.db).await? {
            Some(found) if found.archive == header.id => {
                return Ok(Some(usize::try_from(found.chunks).unwrap_or(0)));
            }
            // Interrupted before its first row.
            Some(found) if found.archive.is_nil() => {}
            Some(found) => return Err(RestoreError::Other(found.archive)),
            None if table_names(&self.db).await?.is_empty() => {}
            None => return Err(RestoreError::NotEmpty(self.place.to_owned())),
        }
        let define = "DEFINE TABLE IF NOT EXISTS restore TYPE NORMAL SCHEMALESS PERMISSIONS NONE";
        self.run(define).await?;
        migrate::apply(&self.db, header.schema).await?;
        let tables = table_names(&self.db).await?;
        // Made by the migrations of a new store; the archive has its own.
        if tables.iter().any(|table| table == "installation") {
            self.run("DELETE installation RETURN NONE").await?;
        }
        let first = self
            .db
            .query("CREATE restore:this SET archive = $archive, chunks = 0 RETURN NONE");
        let first = first.bind(("archive", header.id)).await;
        first
            .and_then(|answer| answer.check())
            .map_err(StoreError::from)?;
        Ok(None)
    }

    async fn run(&self, statement: &str) -> Result<(), StoreError> {
        self.db.query(statement.to_owned()).await?.check()?;
        Ok(())
    }

    /// Writes the rows of all chunks behind those that are there.
    async fn write_chunks(
        &self,
        paths: Vec<PathBuf>,
        archive: &SoundArchive,
        begun: Option<usize>,
    ) -> Result<(), RestoreError> {
        let there = begun.unwrap_or(0);
        let lines: Vec<ChunkLine> = archive.state.get(there..).unwrap_or_default().to_vec();
        let (sender, mut pieces) = tokio::sync::mpsc::channel(2);
        let reading = tokio::task::spawn_blocking(move || {
            let read = read_pieces(&paths, &lines, |piece| sender.blocking_send(Ok(piece)).is_ok());
            if let Err(error) = read {
                sender.blocking_send(Err(error)).ok();
            }
        });
        let mut done = there;
        while let Some(piece) = pieces.recv().await {
            let piece = piece?;
            done += piece.chunks;
            self.write_piece(piece, done).await?;
        }
        reading.await.map_err(|_| RestoreError::Ended)?;
        match done == archive.state.len() {
            true => Ok(()),
            false => Err(RestoreError::Ended),
        }
    }

    async fn write_piece(&self, piece: Piece, done: usize) -> Result<(), StoreError> {
        let tx = self.db.clone().begin().await?;
        let written = async {
            for (table, rows) in piece.rows {
                let relation = if table == "edge" { "RELATION " } else { "" };
                let query = format!("INSERT {relation}INTO {table} $rows RETURN NONE");
                for part in rows.chunks(ROWS) {
                    let statement = tx.query(query.as_str()).bind(("rows", part.to_vec()));
                    statement.await?.check()?;
                }
            }
            let chunks = i64::try_from(done).unwrap_or(i64::MAX);
            let noted = tx.query("UPDATE restore:this SET chunks = $chunks RETURN NONE");
            noted.bind(("chunks", chunks)).await?.check()?;
            Ok::<(), surrealdb::Error>(())
        };
        match written.await {
            Ok(()) => Ok(tx.commit().await?),
            Err(error) => {
                tx.cancel().await.ok();
                Err(error.into())
            }
        }
    }

    async fn write_secrets(&self, secrets: &SecretRows) -> Result<(), RestoreError> {
        for (table, row) in &secrets.rows {
            let row = value_of(table, row.clone())?;
            // They are there if an earlier try came this far.
            let query = format!("INSERT IGNORE INTO {} $rows RETURN NONE", plain(table)?);
            let written = self.db.query(query).bind(("rows", vec![row])).await;
            written
                .and_then(|answer| answer.check())
                .map_err(StoreError::from)?;
        }
        for (table, id, field, secret) in &secrets.fields {
            let (id, secret) = (value_of(table, id.clone())?, value_of(table, secret.clone())?);
            let Value::RecordId(id) = id else {
                return Err(unreadable(table, "its id"));
            };
            self.set_field(id, plain(field)?, secret).await?;
        }
        Ok(())
    }

    async fn set_field(&self, id: RecordId, field: &str, value: Value) -> Result<(), StoreError> {
        let statement = self
            .db
            .query(format!("UPDATE $id SET {field} = $value RETURN NONE"));
        statement.bind(("id", id)).bind(("value", value)).await?.check()?;
        Ok(())
    }

    /// Opens the store to services.
    async fn finish(self) -> Result<(), StoreError> {
        self.run("REMOVE TABLE restore").await
    }
}

/// Rows of one transaction.
struct Piece {
    rows: Vec<(String, Vec<Value>)>,
    chunks: usize,
}

/// Reads the chunks of a state from the archives that have them, and hands them over in pieces until nobody takes them.
fn read_pieces(
    paths: &[PathBuf],
    lines: &[ChunkLine],
    hand_over: impl Fn(Piece) -> bool,
) -> Result<(), RestoreError> {
    let feeds: Vec<ChunkFeed> = paths.iter().map(|path| ChunkFeed::open(path)).collect();
    let mut piece = Piece {
        rows: Vec::new(),
        chunks: 0,
    };
    let mut bytes = 0;
    for line in lines {
        let feed = feeds.get(line.archive).ok_or(RestoreError::Ended)?;
        let chunk = feed.find(line.digest)?;
        piece.chunks += 1;
        let rows = rows_of(&chunk.table, &chunk.text)?;
        bytes += rows.iter().map(size::of_row).sum::<u64>();
        match piece.rows.last_mut() {
            Some((table, all)) if *table == chunk.table => all.extend(rows),
            _ => piece.rows.push((plain(&chunk.table)?.to_owned(), rows)),
        }
        if bytes >= BYTES {
            let full = std::mem::replace(
                &mut piece,
                Piece {
                    rows: Vec::new(),
                    chunks: 0,
                },
            );
            if !hand_over(full) {
                return Ok(());
            }
            bytes = 0;
        }
    }
    if piece.chunks > 0 {
        hand_over(piece);
    }
    Ok(())
}

fn rows_of(table: &str, text: &[u8]) -> Result<Vec<Value>, RestoreError> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let row = |line| {
        let json: Json = serde_json::from_slice(line).map_err(|error| unreadable(table, error))?;
        value_of(table, json)
    };
    lines.map(row).collect()
}

fn value_of(table: &str, json: Json) -> Result<Value, RestoreError> {
    row_json::from_json(json).map_err(|error| unreadable(table, error))
}

fn unreadable(table: &str, cause: impl std::fmt::Display) -> RestoreError {
    RestoreError::Row {
        table: table.to_owned(),
        cause: cause.to_string(),
    }
}

/// A name as it can stand in a statement: it comes from an archive.
fn plain(name: &str) -> Result<&str, RestoreError> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match is_plain && !name.is_empty() {
        true => Ok(name),
        false => Err(unreadable(name, "its name")),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::archive::cut::CutChunk;
    use crate::archive::{ArchiveWriter, Since, inspect};
    use crate::store::open::RESTORE_TRANSACTION;

    #[test]
    fn a_piece_fits_a_transaction_whatever_its_rows_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0");
        let header = Header::new(ServiceKind::Local, 37, DateTime::UNIX_EPOCH, &[]);
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArchiveWriter::begin(file, header, Since::default()).unwrap();
        // The engine needs far more for these than for their text.
        for table in ["edge", "api_key"] {
            for chunk in 0..8 {
                let row =
                    |at: u64| format!("{{\"id\":{{\"$id\":[\"{table}\",{}]}}}}\n", chunk * 100_000 + at);
                let rows = (4 << 20) / row(0).len() as u64;
                let text = (0..rows).map(row).collect::<String>().into_bytes();
                writer.add_chunk(table, &CutChunk { text, rows }).unwrap();
            }
        }
        writer.finish(Vec::new()).unwrap();
        let archive = inspect(&path).unwrap();
        let pieces = std::cell::Cell::new(0);
        read_pieces(&[path], &archive.state, |piece| {
            let rows = piece.rows.iter().flat_map(|(_, rows)| rows);
            let bytes: u64 = rows.map(size::of_row).sum();
            assert!(bytes < RESTORE_TRANSACTION as u64 - (1 << 20), "{bytes}");
            pieces.set(pieces.get() + piece.chunks);
            true
        })
        .unwrap();
        assert_eq!(pieces.get(), 16);
    }
}
