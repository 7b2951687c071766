//! Checks archives without a store.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::error::ArchiveError;
use super::format::{ChunkLine, Digest, Header, Manifest, TableCounts};
use super::reader::{self, Contents};
use super::secrets::SealedSecrets;

/// An archive that is as it was written.
#[derive(Debug)]
pub struct SoundArchive {
    pub path: PathBuf,
    pub header: Header,
    pub manifest: Manifest,
    pub secrets: Option<SealedSecrets>,
    /// Every chunk of the store, in the order of the tables and their keys.
    pub state: Vec<ChunkLine>,
    /// The chunks that are in this file, in their order.
    own: Vec<OwnChunk>,
}

/// A chunk in a file: its table, its digest and the number of its rows.
type OwnChunk = (String, Digest, u64);

/// Reads a whole archive and checks every chunk in it against its digest. Of an increment it does not read the archives that it
/// goes on from.
///
/// # Errors
/// When the file is no archive, or not as it was written.
pub fn inspect(path: &Path) -> Result<SoundArchive, ArchiveError> {
    let file = path.display().to_string();
    let mut found = Vec::new();
    let Contents {
        header,
        secrets,
        state,
        manifest,
    } = reader::read(path, |chunk| {
        found.push((chunk.table, chunk.digest, rows_of(&chunk.text)));
        Ok(())
    })?;
    let own = header.archives.len() - 1;
    let mut given = found.iter();
    let mut tables: HashMap<&str, TableCounts> = HashMap::new();
    for line in &state {
        let counts = tables.entry(&line.table).or_default();
        counts.rows += line.rows;
        counts.chunks += 1;
        if line.archive > own {
            return Err(ArchiveError::damaged(
                &file,
                "a chunk is in an archive that is not named",
            ));
        }
        let is_here = line.archive == own;
        if is_here && given.next().is_none_or(|chunk| !is_of(line, chunk)) {
            let what = format!("rows of the table {} are not those that were written", line.table);
            return Err(ArchiveError::damaged(&file, what));
        }
    }
    let is_counted = manifest.tables.len() == tables.len()
        && manifest
            .tables
            .iter()
            .all(|(name, counts)| tables.get(name.as_str()) == Some(counts));
    if given.next().is_some() || !is_counted {
        return Err(ArchiveError::damaged(
            &file,
            "its manifest counts other rows than it has",
        ));
    }
    Ok(SoundArchive {
        path: path.to_owned(),
        header,
        manifest,
        secrets,
        state,
        own: found,
    })
}

/// Whether a chunk is the one that a line of the state names.
fn is_of(line: &ChunkLine, (table, digest, rows): &OwnChunk) -> bool {
    (&line.table, line.digest, line.rows) == (table, *digest, *rows)
}

/// Checks an archive with those that it goes on from, in their order; the last one is the one to restore.
///
/// # Errors
/// Those of [`inspect`], and when an archive or a chunk is missing, or an archive is not needed.
pub fn inspect_all(paths: &[PathBuf]) -> Result<Vec<SoundArchive>, ArchiveError> {
    let inspected: Vec<SoundArchive> = paths.iter().map(|path| inspect(path)).collect::<Result<_, _>>()?;
    let Some(last) = inspected.last() else {
        return Ok(inspected);
    };
    let file = |inspected: &SoundArchive| inspected.path.display().to_string();
    let mut given = inspected.iter();
    for needed in &last.header.archives {
        match given.next() {
            Some(found) if found.header.id == *needed => {}
            _ => {
                return Err(ArchiveError::Needs {
                    file: file(last),
                    needed: *needed,
                });
            }
        }
    }
    if let Some(more) = given.next() {
        return Err(ArchiveError::NotNeeded(file(more)));
    }
    // As a restore finds them: each archive is read once, from its beginning to its end.
    let mut feeds: Vec<_> = inspected.iter().map(|found| found.own.iter()).collect();
    for line in &last.state {
        let feed = feeds.get_mut(line.archive);
        if !feed.is_some_and(|feed| feed.any(|chunk| is_of(line, chunk))) {
            let place = inspected.get(line.archive).map(file).unwrap_or_default();
            let what = format!(
                "rows of the table {} are not in {place}, where they should be",
                line.table
            );
            return Err(ArchiveError::damaged(&file(last), what));
        }
    }
    Ok(inspected)
}

fn rows_of(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}
