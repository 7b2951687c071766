//! Writes an archive from its beginning to its end, without going back: it may be a stream.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType};
use uuid::Uuid;
use zstd::Encoder;

use super::cut::CutChunk;
use super::format::{
    ChunkLine, Digest, HEADER, Header, MANIFEST, Manifest, PAUSE, ROWS, SECRETS, STATE, TableCounts,
    WorkspaceNumber,
};
use super::secrets::SealedSecrets;

/// Compression level of zstd: its default.
const LEVEL: i32 = 3;
/// Longest time without a byte, so that nobody between takes the archive for dead.
const SILENCE: Duration = Duration::from_secs(10);

/// The archive that an increment goes on from: its archives, and where each chunk of its state is.
#[derive(Debug, Clone, Default)]
pub struct Since {
    pub archives: Vec<Uuid>,
    known: HashMap<Digest, usize>,
}

impl Since {
    /// Takes each chunk's digest, and the place of its archive among these.
    pub fn new(archives: Vec<Uuid>, chunks: impl IntoIterator<Item = (Digest, usize)>) -> Self {
        let known = chunks.into_iter().collect();
        Self { archives, known }
    }
}

/// An archive that is being written.
pub struct ArchiveWriter<W: Write> {
    tar: Builder<Encoder<'static, W>>,
    header: Header,
    known: HashMap<Digest, usize>,
    state: Vec<u8>,
    tables: BTreeMap<String, TableCounts>,
    chunks: u64,
    has_secrets: bool,
    sent: Instant,
}

impl<W: Write> ArchiveWriter<W> {
    /// Begins an archive; `since` must be what the header's archives come from.
    ///
    /// # Errors
    /// When `out` can't be written.
    pub fn begin(out: W, header: Header, since: Since) -> io::Result<Self> {
        let mut encoder = Encoder::new(out, LEVEL)?;
        encoder.include_checksum(true)?;
        let mut writer = Self {
            tar: Builder::new(encoder),
            known: since.known,
            state: Vec::new(),
            tables: BTreeMap::new(),
            chunks: 0,
            has_secrets: false,
            sent: Instant::now(),
            header,
        };
        let header = json(&writer.header)?;
        writer.append(HEADER, &header)?;
        Ok(writer)
    }

    /// Adds the next chunk of a table, unless an archive before has it.
    ///
    /// # Errors
    /// When `out` can't be written.
    pub fn add_chunk(&mut self, table: &str, chunk: &CutChunk) -> io::Result<()> {
        let digest = Digest::of(&chunk.text);
        let archive = match self.known.get(&digest) {
            Some(archive) => *archive,
            None => {
                let name = format!("{ROWS}{table}/{:08}.jsonl", self.chunks);
                self.append(&name, &chunk.text)?;
                self.chunks += 1;
                self.header.archives.len() - 1
            }
        };
        let counts = self.tables.entry(table.to_owned()).or_default();
        counts.rows += chunk.rows;
        counts.chunks += 1;
        let line = ChunkLine {
            table: table.to_owned(),
            digest,
            rows: chunk.rows,
            archive,
        };
        self.state.extend(json(&line)?);
        self.state.push(b'\n');
        if self.sent.elapsed() >= SILENCE {
            self.append(PAUSE, b"")?;
            self.tar.get_mut().flush()?;
            self.sent = Instant::now();
        }
        Ok(())
    }

    /// Adds the secrets.
    ///
    /// # Errors
    /// When `out` can't be written.
    pub fn add_secrets(&mut self, secrets: &SealedSecrets) -> io::Result<()> {
        self.has_secrets = true;
        let text = json(secrets)?;
        self.append(SECRETS, &text)
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// When `out` can't be written; the archive is then unfinished.
    pub fn finish(mut self, workspaces: Vec<WorkspaceNumber>) -> io::Result<(W, Manifest)> {
        let state = std::mem::take(&mut self.state);
        self.append(STATE, &state)?;
        let manifest = Manifest {
            id: self.header.id,
            tables: std::mem::take(&mut self.tables),
            workspaces,
            chunks: self.chunks,
            secrets: self.has_secrets,
            state: Digest::from_hash(Sha256::new_with_prefix(&state)),
        };
        let text = json(&manifest)?;
        self.append(MANIFEST, &text)?;
        let mut out = self.tar.into_inner()?.finish()?;
        out.flush()?;
        Ok((out, manifest))
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut entry = tar::Header::new_gnu();
        entry.set_entry_type(EntryType::Regular);
        entry.set_size(bytes.len() as u64);
        entry.set_mode(0o600);
        entry.set_mtime(u64::try_from(self.header.made_at.timestamp()).unwrap_or(0));
        self.tar.append_data(&mut entry, name, bytes)
    }
}

fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(value)?)
}
