//! Reads an archive from its beginning to its end, and checks it on the way.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde::de::DeserializeOwned;
use tar::Archive;
use zstd::Decoder;

use super::error::ArchiveError;
use super::format::{
    ChunkLine, Digest, FORMAT, HEADER, Header, MANIFEST, Manifest, PAUSE, ROWS, SECRETS, STATE,
};
use super::secrets::SealedSecrets;

/// Largest entry that is read, in bytes: a chunk ends soon after 4 MiB, and a row may be as large as a transaction.
const LARGEST: u64 = 512 << 20;
/// Chunks that are read ahead.
const AHEAD: usize = 2;

/// A chunk as it stands in an archive.
#[derive(Debug)]
pub struct Chunk {
    pub table: String,
    pub digest: Digest,
    pub text: Vec<u8>,
}

/// Everything of an archive but its chunks.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) header: Header,
    pub(super) secrets: Option<SealedSecrets>,
    pub(super) state: Vec<ChunkLine>,
    pub(super) manifest: Manifest,
}

/// What has been read of an archive.
#[derive(Default)]
struct Parts {
    header: Option<Header>,
    secrets: Option<SealedSecrets>,
    state: Option<(Vec<ChunkLine>, Digest)>,
    manifest: Option<Manifest>,
    chunks: u64,
}

/// Reads a whole archive; `take` gets each chunk, and may end the reading by an error.
///
/// # Errors
/// When the file can't be read, is none, is damaged or unfinished.
pub(super) fn read(
    path: &Path,
    mut take: impl FnMut(Chunk) -> Result<(), ArchiveError>,
) -> Result<Contents, ArchiveError> {
    let file = path.display().to_string();
    let opened = File::open(path).map_err(|error| ArchiveError::Io(file.clone(), error))?;
    let decoder = Decoder::new(BufReader::new(opened)).map_err(|error| broken(&file, None, &error))?;
    let mut archive = Archive::new(decoder);
    let mut parts = Parts::default();
    let entries = archive.entries().map_err(|error| broken(&file, None, &error))?;
    // Raw: an entry that extends the next one would be read whole, however large it says that it is.
    for entry in entries.raw(true) {
        let mut entry = entry.map_err(|error| broken(&file, parts.header.as_ref(), &error))?;
        let name = entry.path_bytes().into_owned();
        let name = String::from_utf8_lossy(&name).into_owned();
        if !entry.header().entry_type().is_file() || entry.size() > LARGEST {
            let what = format!("{name} is no file of at most {LARGEST} bytes");
            return Err(match parts.header {
                Some(_) => ArchiveError::damaged(&file, what),
                None => ArchiveError::Foreign(file),
            });
        }
        let mut bytes = Vec::new();
        let read = entry.read_to_end(&mut bytes);
        read.map_err(|error| broken(&file, parts.header.as_ref(), &error))?;
        if let Some(chunk) = parts.add(&file, &name, bytes)? {
            take(chunk)?;
        }
    }
    // What is behind the last entry holds the checksum.
    let rest = io::copy(&mut archive.into_inner(), &mut io::sink());
    rest.map_err(|error| broken(&file, parts.header.as_ref(), &error))?;
    parts.end(&file)
}

impl Parts {
    /// Takes the next entry; returns the chunk that it holds.
    fn add(&mut self, file: &str, name: &str, bytes: Vec<u8>) -> Result<Option<Chunk>, ArchiveError> {
        let place = |error: serde_json::Error| ArchiveError::damaged(file, format!("{name}: {error}"));
        if self.header.is_none() {
            let header = (name == HEADER).then(|| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
            self.header = Some(header_of(file, header.flatten())?);
            return Ok(None);
        }
        if self.manifest.is_some() {
            return Err(ArchiveError::damaged(
                file,
                format!("{name} stands behind its manifest"),
            ));
        }
        if let Some(table) = name.strip_prefix(ROWS).and_then(|rest| rest.split('/').next()) {
            self.chunks += 1;
            return Ok(Some(Chunk {
                table: table.to_owned(),
                digest: Digest::of(&bytes),
                text: bytes,
            }));
        }
        match name {
            SECRETS => self.secrets = Some(serde_json::from_slice(&bytes).map_err(place)?),
            PAUSE => {}
            STATE => self.state = Some((lines(&bytes).map_err(place)?, Digest::of(&bytes))),
            MANIFEST => self.manifest = Some(serde_json::from_slice(&bytes).map_err(place)?),
            _ => return Err(ArchiveError::damaged(file, format!("{name} is unknown"))),
        }
        Ok(None)
    }

    fn end(self, file: &str) -> Result<Contents, ArchiveError> {
        let header = self
            .header
            .ok_or_else(|| ArchiveError::Foreign(file.to_owned()))?;
        let (Some((state, digest)), Some(manifest)) = (self.state, self.manifest) else {
            return Err(ArchiveError::Unfinished(file.to_owned()));
        };
        let holds = |is_so: bool, what: &str| match is_so {
            true => Ok(()),
            false => Err(ArchiveError::damaged(file, what)),
        };
        holds(manifest.id == header.id, "its manifest is of another archive")?;
        holds(
            manifest.state == digest,
            "its list of chunks is not the one that was written",
        )?;
        holds(manifest.chunks == self.chunks, "it lacks rows, or has too many")?;
        holds(
            manifest.secrets == self.secrets.is_some(),
            "its secrets are missing",
        )?;
        Ok(Contents {
            header,
            secrets: self.secrets,
            state,
            manifest,
        })
    }
}

fn header_of(file: &str, found: Option<serde_json::Value>) -> Result<Header, ArchiveError> {
    let foreign = || ArchiveError::Foreign(file.to_owned());
    let found = found.ok_or_else(foreign)?;
    // A later format may have another header.
    let format = found.get("format").and_then(serde_json::Value::as_u64);
    let is_ours = found.get("kind").and_then(serde_json::Value::as_str) == Some(super::format::KIND);
    match format {
        Some(format) if is_ours && format > u64::from(FORMAT) => Err(ArchiveError::TooNew {
            file: file.to_owned(),
            found: u32::try_from(format).unwrap_or(u32::MAX),
            known: FORMAT,
        }),
        _ => {
            let header: Header = serde_json::from_value(found).map_err(|_| foreign())?;
            header.is_of_kind().then_some(header).ok_or_else(foreign)
        }
    }
}

/// The error for bytes that can't be decoded.
fn broken(file: &str, header: Option<&Header>, error: &io::Error) -> ArchiveError {
    match (header, error.kind()) {
        (None, _) => ArchiveError::Foreign(file.to_owned()),
        (Some(_), io::ErrorKind::UnexpectedEof) => ArchiveError::Unfinished(file.to_owned()),
        (Some(_), _) => ArchiveError::damaged(file, error.to_string()),
    }
}

fn lines<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<Vec<T>> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(serde_json::from_slice).collect()
}

/// The chunks of one archive, read ahead on a thread of its own.
pub struct ChunkFeed {
    chunks: Receiver<Result<Chunk, ArchiveError>>,
}

impl ChunkFeed {
    /// Begins to read an archive that was inspected before.
    pub fn open(path: &Path) -> Self {
        let (sender, chunks) = sync_channel(AHEAD);
        let path = path.to_owned();
        std::thread::spawn(move || feed(&path, &sender));
        Self { chunks }
    }

    /// The next chunk with this digest, past those that are not needed any more.
    ///
    /// # Errors
    /// When the archive has no such chunk, or can't be read any more.
    pub fn find(&self, digest: Digest) -> Result<Chunk, ArchiveError> {
        loop {
            let next = self.chunks.recv();
            let chunk = next.map_err(|_| ArchiveError::damaged("the archive", "it lacks a chunk"))??;
            if chunk.digest == digest {
                return Ok(chunk);
            }
        }
    }
}

/// Sends the chunks of an archive for as long as somebody wants them.
fn feed(path: &Path, sender: &SyncSender<Result<Chunk, ArchiveError>>) {
    let unwanted = || ArchiveError::damaged("the archive", "nobody reads it");
    let read = read(path, |chunk| sender.send(Ok(chunk)).map_err(|_| unwanted()));
    if let Err(error) = read {
        sender.send(Err(error)).ok();
    }
}
