//! The search index: a derived copy of the nodes, built for queries.
//!
//! The database is the source of truth. This index can be discarded at any time and is rebuilt by applying every row
//! again; after a crash the owner applies the rows above `checkpoint()`.
//!
//! - One index per workspace ([`WorkspaceIndex`]): text (tantivy, BM25) and vectors (mapped files, searched by sketch)
//!   under one commit. Nothing of one workspace, not even its word frequencies, reaches another.
//! - What a score is computed with (frequencies, numbers, lengths, how deep to look) is counted over the nodes that the
//!   caller may see, so that hidden ones change no score and no order.
//! - Rows the caller may not see are excluded while candidates are collected, so `limit` counts visible rows. The rows
//!   loaded for the response must still pass `Visible::filter`.
//! - All calls block and none is async; the owner runs them on blocking threads.
//!
//! The index does not read the database, decide on access rights, or know about graph neighbours.

mod document;
mod error;
mod index;
mod keyword;
mod query;
mod relations;
#[cfg(test)]
mod tests;
mod text;
mod vectors;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use uuid::Uuid;

pub use document::facts::{Facts, hash_of_type};
pub use document::{
    Ends, Filter, Hit, IndexDoc, KeyHit, KeyKind, Mode, Population, Relation, RowPredicate, StructuredQuery,
};
pub use error::{EmbedError, SearchError};
pub use index::examine::examine;
use index::writers::WriterPool;
pub use index::{Step, StepFilter, WorkspaceIndex};
pub use keyword::networks::NetworkHits;
pub use query::SearchResults;
pub use query::floor::{SCORE_FLOOR, rank_part};
pub use query::fusion::LEADING_SCORE;
pub use query::rare::is_code_word;
pub use query::reasons::{Reason, Reasons};
pub use query::votes::{Vote, Votes};
pub use text::analyzer::tokenize;
pub use text::canonical_key;
pub use text::starts::KeyStarts;
pub(crate) use vectors::dot::cosine;
pub use vectors::embed::{BUILTIN_MODEL, BuiltinEmbedder, Embedder, embedding_text, quantize};

use crate::domain::ids::IdSecret;

/// Operator settings of the index.
#[derive(Debug, Clone)]
pub struct IndexSettings {
    /// Write buffer per workspace in bytes, at least 15 MB.
    pub writer_heap_bytes: usize,
    /// Number of workspaces kept open for writing, at about 4 MB each.
    pub open_writers: usize,
    /// Documents that a workspace may hold in memory before they are written to its text index together; with 0 every
    /// write commits.
    pub fresh_docs: usize,
}

impl Default for IndexSettings {
    fn default() -> Self {
        IndexSettings {
            writer_heap_bytes: 20_000_000,
            open_writers: 8,
            fresh_docs: 0,
        }
    }
}

/// A workspace's slot in the map, with a lock of its own so that a slow opening delays only that workspace.
type Slot = Arc<Mutex<Option<Arc<WorkspaceIndex>>>>;

/// The indexes of all workspaces, each opened on first use.
pub struct SearchIndex {
    dir: Option<PathBuf>,
    embedder: Arc<dyn Embedder>,
    fingerprint: String,
    settings: IndexSettings,
    id_secret: Arc<IdSecret>,
    slots: Mutex<HashMap<Uuid, Slot>>,
    writers: Arc<WriterPool>,
}

impl SearchIndex {
    /// Creates indexes under the directory, or in memory if there is none. No workspace is opened yet.
    /// `id_secret` is what the ids of the nodes are made with.
    pub fn open(
        dir: Option<&Path>,
        embedder: Arc<dyn Embedder>,
        settings: IndexSettings,
        id_secret: Arc<IdSecret>,
    ) -> Result<Self, SearchError> {
        if let Some(dir) = dir {
            crate::files::private_dir(dir)?;
        }
        let fingerprint = format!(
            "schema {}\nembedder {}\ndimension {}\n",
            keyword::schema::SCHEMA_VERSION,
            embedder.id(),
            embedder.dimension()
        );
        Ok(SearchIndex {
            dir: dir.map(Path::to_owned),
            embedder,
            fingerprint,
            writers: Arc::new(WriterPool::new(settings.open_writers)),
            settings,
            id_secret,
            slots: Mutex::new(HashMap::new()),
        })
    }

    /// The index of a workspace, opened if necessary.
    pub fn workspace(&self, workspace: Uuid) -> Result<Arc<WorkspaceIndex>, SearchError> {
        let slot = self.slots.lock().entry(workspace).or_default().clone();
        let mut open = slot.lock();
        if let Some(index) = &*open {
            return Ok(index.clone());
        }
        let dir = self.dir_of(workspace);
        let index = WorkspaceIndex::open(
            dir.as_deref(),
            &self.fingerprint,
            self.embedder.as_ref(),
            &self.settings,
            self.writers.clone(),
            self.id_secret.ids_of(workspace),
        )?;
        let index = Arc::new(index);
        *open = Some(index.clone());
        Ok(index)
    }

    /// Removes a workspace's index. The next use starts an empty one with checkpoint 0. All calls on the old one must
    /// have ended.
    pub fn discard(&self, workspace: Uuid) -> Result<(), SearchError> {
        let slot = self.slots.lock().entry(workspace).or_default().clone();
        let mut open = slot.lock();
        *open = None;
        match self.dir_of(workspace) {
            Some(dir) if dir.exists() => Ok(fs::remove_dir_all(dir)?),
            _ => Ok(()),
        }
    }

    /// The model that makes the vectors of this index.
    pub fn embedder(&self) -> &Arc<dyn Embedder> {
        &self.embedder
    }

    /// The quantised vector of a query.
    pub fn embed_query(&self, query: &str) -> Result<Vec<i8>, SearchError> {
        Ok(quantize(&self.embedder.embed_query(query)?))
    }

    /// The quantised vectors of many texts, in order.
    pub fn embed_texts(&self, texts: &[&str]) -> Result<Vec<Vec<i8>>, SearchError> {
        let vectors = self.embedder.embed(texts)?;
        if vectors.len() != texts.len() {
            return Err(EmbedError("one vector per text expected".into()).into());
        }
        Ok(vectors.iter().map(|vector| quantize(vector)).collect())
    }

    /// Closes the writers idle for at least `idle`, and the on-disk workspaces not used for that long.
    pub fn close_idle(&self, idle: Duration) -> Result<(), SearchError> {
        let slots: Vec<(Uuid, Slot)> = self
            .slots
            .lock()
            .iter()
            .map(|(id, slot)| (*id, slot.clone()))
            .collect();
        for (_, slot) in slots {
            let mut open = slot.lock();
            let Some(index) = &*open else { continue };
            index.close_idle(idle)?;
            // Nobody else holds it, and nobody can obtain it while its slot is locked.
            let is_unused = Arc::strong_count(index) == 1 && index.idle_for() >= idle;
            if self.dir.is_some() && is_unused && (idle.is_zero() || !index.is_tidying()) {
                *open = None;
            }
        }
        Ok(())
    }

    /// Writes documents that have been only in memory for at least `age` into their text indexes, and merges segments of
    /// those that nothing has been written to for as long.
    ///
    /// # Errors
    /// The newest failure. A workspace that fails does not keep others from being written.
    pub fn keep_up(&self, age: Duration) -> Result<(), SearchError> {
        let slots: Vec<Slot> = self.slots.lock().values().cloned().collect();
        let mut outcome = Ok(());
        for slot in slots {
            let index = slot.lock().clone();
            if let Some(index) = index {
                let kept = index.flush_older_than(age).and_then(|()| index.tidy(age));
                outcome = kept.and(outcome);
            }
        }
        outcome
    }

    /// Ends all writing; earlier commits are already on disk.
    pub fn close(&self) -> Result<(), SearchError> {
        self.close_idle(Duration::ZERO)
    }

    fn dir_of(&self, workspace: Uuid) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(workspace.to_string()))
    }
}
