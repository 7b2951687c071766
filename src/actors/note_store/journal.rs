//! A copy of the graph beside the search index, so that a start need not read the database row by row.
//!
//! It is a log of what each durable write changed, as postcard writes it. The database is the source of truth: the copy is
//! written without waiting for the disk, and may be deleted at any time. Each record has a length and a checksum over
//! itself and all before it, so that whatever a crash or a power cut leaves is valid up to a record. What the log lacks at
//! its end is found in the database by revision. A file of another version or workspace, one without a revision, and one
//! whose last revision the database does not have, are discarded.

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::Crc;
use uuid::Uuid;

use super::changes::Changes;
use super::graph::{Loading, MemoryGraph};
use crate::files;

/// Name and version of the format, which a change of what is stored must raise.
const FORMAT: &[u8; 16] = b"threat-memory g3";
/// Length and checksum before each record.
const FRAME: usize = 8;
/// Largest record in bytes; a longer one can only be damage.
const MAX_RECORD: usize = 256 << 20;
/// Things per record of a whole copy.
const PART: usize = 1_000;
/// Bytes by which the log may outgrow twice its size as a whole copy.
const SLACK: u64 = 32 << 20;

/// The open log.
#[derive(Debug)]
pub(super) struct GraphJournal {
    path: PathBuf,
    file: File,
    workspace: Uuid,
    bytes: u64,
    /// Its size when it was last written as a whole.
    whole: u64,
    checksum: u32,
}

/// A graph read from a log.
#[derive(Debug)]
pub(super) struct RecoveredGraph {
    pub(super) graph: MemoryGraph,
    /// The revision up to which the graph is complete.
    pub(super) rev: u64,
    pub(super) journal: GraphJournal,
}

/// A log that was read and is unchanged: what a crash has torn is still at its end.
#[derive(Debug)]
pub(super) struct Replay(RecoveredGraph);

impl Replay {
    /// Whether this path still leads to the file that was read.
    pub(super) fn is_of(&self, path: &Path) -> bool {
        let read = self.0.journal.file.metadata();
        let (Ok(read), Ok(there)) = (read, fs::metadata(path)) else {
            return false;
        };
        #[cfg(unix)]
        return (read.dev(), read.ino()) == (there.dev(), there.ino());
        // Elsewhere an open file can't be replaced.
        #[cfg(not(unix))]
        return read.len() <= there.len();
    }

    /// Cuts what is torn off the end, so that the log can be continued. No other process may write to it any more; what
    /// one has appended since it was read is cut as well, and is found in the database.
    pub(super) fn resume(self) -> io::Result<RecoveredGraph> {
        let Self(replayed) = self;
        let journal = &replayed.journal;
        journal.file.set_len(journal.bytes)?;
        (&journal.file).seek(SeekFrom::Start(journal.bytes))?;
        Ok(replayed)
    }
}

impl GraphJournal {
    /// Reads the log of a workspace. `None` if there is none that can be used, or when it is told to stop.
    pub(super) fn replay(path: &Path, workspace: Uuid, stop: &AtomicBool) -> io::Result<Option<Replay>> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut records = Records::new(&file, workspace)?;
        let (mut graph, mut rev, mut whole) = (Loading::default(), 0, 0);
        while let Some(changes) = records.next()? {
            if rev == 0 {
                whole = records.bytes;
            }
            rev = rev.max(changes.rev);
            graph.apply(changes);
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        let (bytes, checksum) = (records.bytes, records.checksum);
        if rev == 0 {
            return Ok(None);
        }
        let journal = Self {
            path: path.to_owned(),
            file,
            workspace,
            bytes,
            whole,
            checksum,
        };
        Ok(Some(Replay(RecoveredGraph {
            graph: graph.end(),
            rev,
            journal,
        })))
    }

    /// Writes a whole graph as a new log in the place of the old one.
    pub(super) fn create(path: &Path, workspace: Uuid, graph: &MemoryGraph, rev: u64) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            files::private_dir(dir)?;
        }
        let new = path.with_extension("new");
        let mut journal = Self {
            path: path.to_owned(),
            file: File::create(&new)?,
            workspace,
            bytes: 0,
            whole: 0,
            checksum: 0,
        };
        let mut out = BufWriter::new(&journal.file);
        out.write_all(&header(workspace))?;
        journal.bytes = header(workspace).len() as u64;
        for part in parts(graph, rev) {
            let record = record(&part, &mut journal.checksum)?;
            journal.bytes += record.len() as u64;
            out.write_all(&record)?;
        }
        out.flush()?;
        drop(out);
        fs::rename(&new, path)?;
        journal.whole = journal.bytes;
        Ok(journal)
    }

    /// Appends what a durable write changed. After an error nothing may be appended any more.
    pub(super) fn append(&mut self, changes: &Changes) -> io::Result<()> {
        let record = record(changes, &mut self.checksum)?;
        self.file.write_all(&record)?;
        self.bytes += record.len() as u64;
        Ok(())
    }

    /// Whether the log has become much longer than a whole copy of the graph.
    pub(super) fn is_long(&self) -> bool {
        self.bytes > 2 * self.whole + SLACK
    }

    /// Writes the log anew from the graph.
    pub(super) fn shorten(&mut self, graph: &MemoryGraph, rev: u64) -> io::Result<()> {
        *self = Self::create(&self.path, self.workspace, graph, rev)?;
        Ok(())
    }
}

fn header(workspace: Uuid) -> [u8; 32] {
    let mut header = [0; 32];
    let bytes = FORMAT.iter().chain(workspace.as_bytes());
    header.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    header
}

/// A graph as changes to an empty one, in its own order; only the last part has the revision.
fn parts(graph: &MemoryGraph, rev: u64) -> impl Iterator<Item = Changes> + '_ {
    let entities = parts_of(graph.own_entities()).map(|entities| Changes {
        entities,
        ..Changes::default()
    });
    let relations = parts_of(graph.own_relations()).map(|relations| Changes {
        relations,
        ..Changes::default()
    });
    let notes = parts_of(graph.present_notes().map(|note| graph.head(note))).map(|notes| Changes {
        notes,
        ..Changes::default()
    });
    let end = Changes {
        rev,
        ..Changes::default()
    };
    entities.chain(relations).chain(notes).chain([end])
}

fn parts_of<T>(mut all: impl Iterator<Item = T>) -> impl Iterator<Item = Vec<T>> {
    std::iter::from_fn(move || {
        let part: Vec<T> = all.by_ref().take(PART).collect();
        (!part.is_empty()).then_some(part)
    })
}

/// A record with its frame; its checksum continues the one of the record before.
fn record(changes: &Changes, checksum: &mut u32) -> io::Result<Vec<u8>> {
    let mut record = postcard::to_extend(changes, vec![0; FRAME]).map_err(io::Error::other)?;
    let content = record.get(FRAME..).unwrap_or_default();
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    *checksum = extend_checksum(*checksum, content);
    let frame = length.to_le_bytes().into_iter().chain(checksum.to_le_bytes());
    record.iter_mut().zip(frame).for_each(|(to, from)| *to = from);
    Ok(record)
}

/// The changes that a record holds; `None` if its content is no record.
fn decode(content: &[u8]) -> Option<Changes> {
    let (changes, rest) = postcard::take_from_bytes(content).ok()?;
    rest.is_empty().then_some(changes)
}

fn extend_checksum(checksum: u32, content: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&checksum.to_le_bytes());
    crc.update(content);
    crc.sum()
}

/// The valid records of a log, from its beginning.
struct Records<'a> {
    input: BufReader<&'a File>,
    buffer: Vec<u8>,
    /// Bytes of the header and the valid records; 0 if the header is not the expected one.
    bytes: u64,
    checksum: u32,
    left: u64,
}

impl<'a> Records<'a> {
    fn new(file: &'a File, workspace: Uuid) -> io::Result<Self> {
        let mut records = Self {
            input: BufReader::with_capacity(1 << 18, file),
            buffer: Vec::new(),
            bytes: 0,
            checksum: 0,
            left: file.metadata()?.len(),
        };
        let mut found = [0; 32];
        if records.read(&mut found)? && found == header(workspace) {
            records.bytes = found.len() as u64;
        }
        Ok(records)
    }

    /// Fills a buffer; false at the end of the file.
    fn read(&mut self, into: &mut [u8]) -> io::Result<bool> {
        let wanted = into.len() as u64;
        if wanted > self.left {
            return Ok(false);
        }
        self.left -= wanted;
        self.input.read_exact(into)?;
        Ok(true)
    }

    /// The next record; `None` at the first that is torn or damaged.
    fn next(&mut self) -> io::Result<Option<Changes>> {
        let (mut length, mut checksum) = ([0; 4], [0; 4]);
        if self.bytes == 0 || !self.read(&mut length)? || !self.read(&mut checksum)? {
            return Ok(None);
        }
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > MAX_RECORD || length as u64 > self.left {
            return Ok(None);
        }
        let mut content = std::mem::take(&mut self.buffer);
        content.resize(length, 0);
        let whole = self.read(&mut content)?;
        let sum = extend_checksum(self.checksum, &content);
        let changes = (whole && sum == u32::from_le_bytes(checksum)).then(|| decode(&content));
        self.buffer = content;
        let Some(changes) = changes.flatten() else {
            return Ok(None);
        };
        self.checksum = sum;
        self.bytes += (FRAME + length) as u64;
        Ok(Some(changes))
    }
}
