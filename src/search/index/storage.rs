//! Opens a workspace's index, on disk or in memory, and discards one that is unusable.
//!
//! Whatever is wrong with the files (another version or embedder, truncated, damaged), the remedy is the same: the
//! directory is removed and the owner fills a new one from the database.
//!
//! The files are written without fsync. They survive the end of the process, so an index is opened without reading it
//! as long as the machine has not been restarted since; afterwards every file is compared with its checksum once.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use tantivy::directory::RamDirectory;
use tantivy::{Index, IndexReader, IndexSettings as TantivySettings, ReloadPolicy};

use super::directory::LazyDirectory;
use crate::domain::tlp::Tlp;
use crate::search::error::SearchError;
use crate::search::keyword::schema::{Fields, schema};
use crate::search::relations::Relations;
use crate::search::text::analyzer::{ANALYZER, analyzer};
use crate::search::vectors::rows::Extent;
use crate::search::vectors::table::{Table, Widening};

/// Records the schema and embedder that an index was made with.
const FINGERPRINT_FILE: &str = "fingerprint";
/// Records where the files were last known to be whole.
const WHOLE_FILE: &str = "whole";
/// Changes with every start of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What a commit of the text index says about everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Commit {
    /// Revision up to which the index is complete.
    pub(in crate::search) checkpoint: u64,
    /// The committed rows of the table, and those of the relationships.
    pub(in crate::search) rows: Extent,
    pub(in crate::search) relations: Extent,
    /// By how much more rows than usual a search scores, for each clearance.
    pub(in crate::search) widening: Widening,
}

/// The state of an empty index.
const NOTHING: Commit = Commit {
    checkpoint: 0,
    rows: Extent {
        generation: 0,
        len: 0,
    },
    relations: Extent {
        generation: 0,
        len: 0,
    },
    widening: [1; Tlp::ALL.len()],
};

impl Commit {
    pub(in crate::search) fn payload(&self) -> String {
        let Commit {
            checkpoint,
            rows,
            relations,
            widening,
        } = self;
        let [rows, relations] =
            [rows, relations].map(|extent| format!("{} {}", extent.generation, extent.len));
        let widening = widening.map(|factor| factor.to_string()).join(" ");
        format!("{checkpoint} {rows} {relations} {widening}")
    }

    fn of_payload(text: &str) -> Option<Self> {
        let numbers: Vec<u64> = text
            .split(' ')
            .map(|part| part.parse().ok())
            .collect::<Option<_>>()?;
        let ([checkpoint, rows, rows_len, relations, relations_len], widening) =
            numbers.split_first_chunk()?;
        let extent = |generation: &u64, len: &u64| {
            Some(Extent {
                generation: *generation,
                len: usize::try_from(*len).ok()?,
            })
        };
        Some(Commit {
            checkpoint: *checkpoint,
            rows: extent(rows, rows_len)?,
            relations: extent(relations, relations_len)?,
            widening: widening_of(widening)?,
        })
    }
}

/// The factors that a commit names. Older versions know one for all clearances.
fn widening_of(numbers: &[u64]) -> Option<Widening> {
    let factors: Vec<usize> = numbers
        .iter()
        .map(|factor| usize::try_from(*factor).ok())
        .collect::<Option<_>>()?;
    match factors.as_slice() {
        [factor] => Some([*factor; Tlp::ALL.len()]),
        factors => factors.try_into().ok(),
    }
}

/// An opened index and the data read from it.
pub(super) struct OpenIndex {
    pub(in crate::search) index: Index,
    pub(in crate::search) reader: IndexReader,
    pub(in crate::search) fields: Fields,
    pub(in crate::search) table: Table,
    pub(in crate::search) relations: Relations,
    pub(in crate::search) commit: Commit,
}

/// Opens the index in the directory, or in memory if there is none.
pub(in crate::search) fn open(
    dir: Option<&Path>,
    fingerprint: &str,
    dimension: usize,
) -> Result<OpenIndex, SearchError> {
    let Some(dir) = dir else {
        return create(None, dimension);
    };
    if fs::read_to_string(dir.join(FINGERPRINT_FILE)).is_ok_and(|found| found == fingerprint) {
        // Damaged files can make the index library panic; the index is then recreated as well.
        match std::panic::catch_unwind(AssertUnwindSafe(|| reopen(dir, dimension))) {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(err)) => tracing::warn!(error = %err, "search index discarded, it will be rebuilt"),
            Err(_) => tracing::warn!("search index discarded after a panic, it will be rebuilt"),
        }
    }
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    let opened = create(Some(dir), dimension)?;
    fs::write(dir.join(FINGERPRINT_FILE), fingerprint)?;
    remember_whole(dir)?;
    Ok(opened)
}

/// Where the files are: which start of the machine, and which directory. `None` if it can't be told.
fn location_of(dir: &Path) -> Option<String> {
    let boot = fs::read_to_string(BOOT_ID).ok()?;
    let at = fs::metadata(dir).ok()?;
    Some(format!("{} {} {}\n", boot.trim(), at.dev(), at.ino()))
}

/// Whether the files can't have been damaged by a power cut or an incomplete copy since they were last known to be
/// whole.
fn is_still_whole(dir: &Path) -> bool {
    let place = location_of(dir);
    place.is_some() && fs::read_to_string(dir.join(WHOLE_FILE)).ok() == place
}

fn remember_whole(dir: &Path) -> Result<(), SearchError> {
    match location_of(dir) {
        Some(place) => Ok(fs::write(dir.join(WHOLE_FILE), place)?),
        None => Ok(()),
    }
}

fn create(dir: Option<&Path>, dimension: usize) -> Result<OpenIndex, SearchError> {
    let (schema, fields) = schema();
    // The index stores no documents, so a docstore thread per commit would be a waste.
    let settings = TantivySettings {
        docstore_compress_dedicated_thread: false,
        ..TantivySettings::default()
    };
    let index = match dir {
        Some(dir) => Index::create(LazyDirectory::open(dir)?, schema, settings)?,
        None => Index::create(RamDirectory::create(), schema, settings)?,
    };
    let reader = reader(&index)?;
    Ok(OpenIndex {
        index,
        reader,
        fields,
        table: Table::open(dir, NOTHING.rows, dimension)?,
        relations: Relations::open(dir, NOTHING.relations)?,
        commit: NOTHING,
    })
}

fn reader(index: &Index) -> Result<IndexReader, SearchError> {
    index.tokenizers().register(ANALYZER, analyzer());
    // Reloaded explicitly after each commit: one watcher thread per workspace would be too expensive.
    Ok(index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .try_into()?)
}

fn reopen(dir: &Path, dimension: usize) -> Result<OpenIndex, SearchError> {
    let (wanted, fields) = schema();
    let index = Index::open(LazyDirectory::open(dir)?)?;
    if index.schema() != wanted {
        return Err(SearchError::Storage("other schema".into()));
    }
    let whole = is_still_whole(dir);
    if !whole {
        check(&index, dir)?;
    }
    let commit = last_commit(&index)?.unwrap_or(NOTHING);
    let reader = reader(&index)?;
    let mut table = Table::open(Some(dir), commit.rows, dimension)?;
    table.widen(commit.widening);
    let relations = Relations::open(Some(dir), commit.relations)?;
    let rows = [table.rows(), relations.rows()];
    rows.iter().try_for_each(|rows| rows.forget_others())?;
    if !whole {
        if !rows.iter().all(|rows| rows.are_whole()) {
            return Err(SearchError::Storage("a row is damaged".into()));
        }
        remember_whole(dir)?;
    }
    Ok(OpenIndex {
        index,
        reader,
        fields,
        table,
        relations,
        commit,
    })
}

/// What the last commit on disk says; `None` before the first.
pub(super) fn last_commit(index: &Index) -> Result<Option<Commit>, SearchError> {
    let Some(payload) = index.load_metas()?.payload else {
        return Ok(None);
    };
    let commit = Commit::of_payload(&payload);
    commit
        .map(Some)
        .ok_or(SearchError::Storage("a commit of another version".into()))
}

/// Compares every file in use with its checksum.
pub(super) fn check(index: &Index, dir: &Path) -> Result<(), SearchError> {
    let segments = index.searchable_segment_metas()?;
    let in_use = |name: &str| {
        segments
            .iter()
            .filter(|segment| name.starts_with(&segment.id().uuid_string()))
            .any(|segment| {
                // Delete lists of other commits may be truncated, but are never read.
                !name.ends_with(".del")
                    || segment
                        .delete_opstamp()
                        .is_some_and(|at| name.contains(&format!(".{at}.")))
            })
    };
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if in_use(&name) {
            let whole = index.directory().validate_checksum(Path::new(&name));
            if !whole.is_ok_and(|whole| whole) {
                return Err(SearchError::Storage(format!("{name} is damaged").into()));
            }
        }
    }
    Ok(())
}
