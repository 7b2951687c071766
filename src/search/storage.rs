//! Opens a workspace's index, on disk or in memory, and discards one that is unusable.
//!
//! Whatever is wrong with the files (another version or embedder, truncated, damaged), the remedy is the same: the
//! directory is removed and the owner fills a new one from the database.

use std::collections::HashMap;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use tantivy::columnar::BytesColumn;
use tantivy::directory::RamDirectory;
use tantivy::{Index, IndexReader, IndexSettings as TantivySettings, ReloadPolicy, SegmentReader};
use uuid::Uuid;

use super::analyzer::{ANALYZER, analyzer};
use super::directory::LazyDirectory;
use super::document::GONE;
use super::error::SearchError;
use super::graph::{Graph, print_of_vector};
use super::schema::{CLASS, Fields, HIGH, LOW, REV, VECTOR, node_of, schema};
use super::table::Table;

/// Records the schema and embedder that an index was made with.
const FINGERPRINT_FILE: &str = "fingerprint";

/// An opened index and the data read from it.
pub(super) struct Opened {
    pub(super) index: Index,
    pub(super) reader: IndexReader,
    pub(super) fields: Fields,
    pub(super) table: Table,
    pub(super) checkpoint: u64,
}

/// Opens the index in the directory, or in memory if there is none.
pub(super) fn open(dir: Option<&Path>, fingerprint: &str, dimension: usize) -> Result<Opened, SearchError> {
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
    Ok(opened)
}

fn create(dir: Option<&Path>, dimension: usize) -> Result<Opened, SearchError> {
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
    Ok(Opened {
        index,
        reader,
        fields,
        table: Table::new(dimension),
        checkpoint: 0,
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

fn reopen(dir: &Path, dimension: usize) -> Result<Opened, SearchError> {
    let (wanted, fields) = schema();
    let index = Index::open(LazyDirectory::open(dir)?)?;
    if index.schema() != wanted {
        return Err(SearchError::Storage("other schema".into()));
    }
    check(&index, dir)?;
    let checkpoint = index
        .load_metas()?
        .payload
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let reader = reader(&index)?;
    let table = read_table(&reader, Some(dir), dimension)?;
    Ok(Opened {
        index,
        reader,
        fields,
        table,
        checkpoint,
    })
}

/// Compares every file in use with its checksum.
fn check(index: &Index, dir: &Path) -> Result<(), SearchError> {
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

/// Reads the row of every node, in the order of the saved graph where it still matches.
fn read_table(reader: &IndexReader, dir: Option<&Path>, dimension: usize) -> Result<Table, SearchError> {
    let mut table = Table::new(dimension);
    let mut saved: HashMap<(Uuid, u64), usize> = HashMap::new();
    let loaded = dir.and_then(|dir| Graph::load(dir, dimension));
    if let Some((_, prints)) = &loaded {
        for (row, print) in prints.iter().enumerate() {
            table.push_gone(print.node);
            if !print.node.is_nil() {
                saved.insert((print.node, print.vector), row);
            }
        }
    }
    for segment in reader.searcher().segment_readers() {
        read_segment(segment, dimension, &saved, &mut table)?;
    }
    if let Some((graph, _)) = loaded {
        if table.gone() * 2 > graph.rows() {
            // Most of it belongs to another state of the index.
            dir.into_iter().for_each(Graph::forget);
            table.compact();
        } else {
            let epoch = table.epoch();
            table.adopt(Arc::new(graph), epoch);
        }
    }
    Ok(table)
}

fn read_segment(
    segment: &SegmentReader,
    dimension: usize,
    saved: &HashMap<(Uuid, u64), usize>,
    table: &mut Table,
) -> Result<(), SearchError> {
    let column = |name| segment.fast_fields().column_first_or_default::<u64>(name);
    let (high, low, rev, class) = (column(HIGH)?, column(LOW)?, column(REV)?, column(CLASS)?);
    let vectors = segment.fast_fields().bytes(VECTOR)?;
    let mut with_vector = Vec::new();
    for doc in segment.doc_ids_alive() {
        match vectors.as_ref().and_then(|vectors| vectors.term_ords(doc).next()) {
            Some(ord) => with_vector.push((ord, doc)),
            None => {
                let class = u8::try_from(class.get_val(doc)).unwrap_or(GONE);
                table.put(
                    node_of(high.get_val(doc), low.get_val(doc)),
                    rev.get_val(doc),
                    class,
                    None,
                );
            }
        }
    }
    let Some(vectors) = vectors else { return Ok(()) };
    with_vector.sort_unstable();
    in_order(&vectors, &with_vector, |doc, bytes| {
        let vector: Vec<i8> = bytes.iter().map(|byte| byte.cast_signed()).collect();
        let node = node_of(high.get_val(doc), low.get_val(doc));
        let class = u8::try_from(class.get_val(doc)).unwrap_or(GONE);
        if vector.len() != dimension {
            return Err(SearchError::Dimension {
                expected: dimension,
                found: vector.len(),
            });
        }
        let row = if saved.is_empty() {
            None
        } else {
            saved.get(&(node, print_of_vector(&vector)))
        };
        match row {
            Some(&row) => table.claim(row, node, rev.get_val(doc), class, &vector),
            None => table.put(node, rev.get_val(doc), class, Some(&vector)),
        }
        Ok(())
    })
}

/// Walks the column's dictionary once; `docs` must be sorted by ordinal.
fn in_order(
    column: &BytesColumn,
    docs: &[(u64, u32)],
    mut each: impl FnMut(u32, &[u8]) -> Result<(), SearchError>,
) -> Result<(), SearchError> {
    let mut stream = column.dictionary().stream()?;
    let mut pending = docs.iter().peekable();
    while stream.advance() {
        while let Some(&&(_, doc)) = pending.peek().filter(|(ord, _)| *ord == stream.term_ord()) {
            each(doc, stream.key())?;
            pending.next();
        }
    }
    match pending.next() {
        Some(_) => Err(SearchError::Storage("the vector column is incomplete".into())),
        None => Ok(()),
    }
}
