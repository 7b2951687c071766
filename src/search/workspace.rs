//! The index of one workspace: grouped writes, and searches at any time.
//!
//! Guarantees: `apply` returns once its documents are searchable; a document never replaces a newer version of the same
//! node; applying a document twice changes nothing; the checkpoint is stored in the same commit as the documents it
//! covers, and never decreases.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use tantivy::indexer::IndexWriterOptions;
use tantivy::{Index, IndexReader, IndexWriter, Searcher, Term};
use uuid::Uuid;

use super::document::{Allowed, Filter, Hit, IndexDoc, KeyHit, Mode, StructuredQuery, class_of};
use super::error::SearchError;
use super::fresh::Fresh;
use super::keyword::Keywords;
use super::query::{self, Query};
use super::schema::{Fields, document};
use super::storage;
use super::text::canonical_key;
use super::vectors::Vectors;
use super::writers::{Writers, Writing};
use super::{IndexSettings, Shared};
use crate::domain::node::NodeStatus;

/// Minimum writer heap accepted by the text index.
const MIN_WRITER_HEAP: usize = 15_000_000;

/// A call of `apply` that waits for its commit.
struct QueuedWrite {
    docs: Vec<IndexDoc>,
    checkpoint: u64,
    outcome: OnceLock<Result<(), SearchError>>,
}

/// The index of one workspace. All methods block; do not call them on async threads.
pub struct WorkspaceIndex {
    index: Index,
    reader: IndexReader,
    fields: Fields,
    vectors: Vectors,
    dimension: usize,
    writer_heap: usize,
    checkpoint: AtomicU64,
    /// Documents that are searchable but not yet in the text index.
    fresh: RwLock<Fresh>,
    most_fresh: usize,
    queue: Mutex<Vec<Arc<QueuedWrite>>>,
    writing: Arc<Mutex<Writing>>,
    writers: Arc<Writers>,
    born: Instant,
    /// Milliseconds from `born` to the last call.
    used: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WorkspaceIndex {
    pub(super) fn open(
        dir: Option<&Path>,
        fingerprint: &str,
        dimension: usize,
        settings: &IndexSettings,
        shared: Shared,
    ) -> Result<Self, SearchError> {
        let opened = storage::open(dir, fingerprint, dimension)?;
        let vectors = Vectors::new(
            opened.table,
            dimension,
            dir,
            settings.exact_scan_limit,
            shared.turn,
        );
        vectors.maintain();
        Ok(WorkspaceIndex {
            index: opened.index,
            reader: opened.reader,
            fields: opened.fields,
            vectors,
            dimension,
            writer_heap: settings.writer_heap_bytes.max(MIN_WRITER_HEAP),
            checkpoint: AtomicU64::new(opened.checkpoint),
            fresh: RwLock::default(),
            most_fresh: settings.fresh_docs,
            queue: Mutex::new(Vec::new()),
            writing: Arc::new(Mutex::new(Writing::new())),
            writers: shared.writers,
            born: Instant::now(),
            used: AtomicU64::new(0),
        })
    }

    /// Indexes the documents, which are searchable once this returns. A small write may stay in memory until a later
    /// commit to the text index, which also stores the checkpoint. The caller guarantees that every row with a rev up
    /// to the checkpoint has been applied. Calls that arrive during a write share the next one and its outcome. A
    /// checkpoint lower than the stored one is ignored.
    pub fn apply(&self, docs: Vec<IndexDoc>, checkpoint: u64) -> Result<(), SearchError> {
        self.touch();
        for vector in docs.iter().filter_map(|doc| doc.vector.as_ref()) {
            self.check(vector)?;
        }
        let job = Arc::new(QueuedWrite {
            docs,
            checkpoint,
            outcome: OnceLock::new(),
        });
        lock(&self.queue).push(job.clone());
        let mut writing = lock(&self.writing);
        if let Some(outcome) = job.outcome.get() {
            return outcome.clone();
        }
        let jobs = std::mem::take(&mut *lock(&self.queue));
        if !jobs.iter().any(|other| Arc::ptr_eq(other, &job)) {
            return Err(SearchError::Index(
                "the commit this write was part of did not end".into(),
            ));
        }
        let outcome = self.commit(&mut writing, &jobs);
        for job in &jobs {
            // Only the holder of the write lock sets outcomes, so none is set twice.
            let _ = job.outcome.set(outcome.clone());
        }
        drop(writing);
        self.vectors.maintain();
        outcome
    }

    fn commit(&self, writing: &mut Writing, jobs: &[Arc<QueuedWrite>]) -> Result<(), SearchError> {
        writing.used = Instant::now();
        let docs = self.newest(jobs);
        let checkpoint = jobs
            .iter()
            .map(|job| job.checkpoint)
            .fold(self.checkpoint(), u64::max);
        if docs.is_empty() && checkpoint == self.checkpoint() {
            return Ok(());
        }
        let few = self.fresh().len() + docs.len() <= self.most_fresh;
        self.take(&docs, checkpoint);
        if few && !docs.is_empty() {
            return Ok(());
        }
        self.flush(writing)
    }

    /// Makes documents searchable in memory.
    fn take(&self, docs: &[&IndexDoc], checkpoint: u64) {
        let mut fresh = self.fresh.write().unwrap_or_else(PoisonError::into_inner);
        let mut table = self.vectors.write();
        for doc in docs {
            fresh.put(doc, table.node(doc.node_id).is_some());
            let vector = doc.vector.as_deref().filter(|_| doc.status != NodeStatus::Merged);
            table.put(
                doc.node_id,
                doc.rev,
                class_of(doc.node_type, doc.status, doc.tlp),
                vector,
            );
        }
        fresh.complete_up_to(checkpoint);
    }

    /// Writes the documents that are only in memory into the text index.
    fn flush(&self, writing: &mut Writing) -> Result<(), SearchError> {
        let checkpoint = {
            let fresh = self.fresh();
            if fresh.is_empty() {
                return Ok(());
            }
            let checkpoint = fresh.checkpoint().max(self.checkpoint());
            if let Err(err) = self.write(writing, &fresh.docs(), checkpoint) {
                // Dropping the writer rolls back uncommitted changes.
                writing.writer = None;
                writing.suspect = true;
                return Err(err);
            }
            checkpoint
        };
        // Only the holder of the write lock adds documents, so nothing new is lost.
        *self.fresh.write().unwrap_or_else(PoisonError::into_inner) = Fresh::default();
        self.checkpoint.store(checkpoint, Ordering::SeqCst);
        Ok(())
    }

    /// Writes documents that have been only in memory for at least `age` into the text index.
    pub fn flush_older_than(&self, age: Duration) -> Result<(), SearchError> {
        if !self.fresh().is_older_than(age) {
            return Ok(());
        }
        let mut writing = lock(&self.writing);
        writing.used = Instant::now();
        self.flush(&mut writing)
    }

    fn fresh(&self) -> RwLockReadGuard<'_, Fresh> {
        self.fresh.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The documents newer than their indexed version; for each node, the newest.
    fn newest<'a>(&self, jobs: &'a [Arc<QueuedWrite>]) -> Vec<&'a IndexDoc> {
        let table = self.vectors.read();
        let mut newest: HashMap<Uuid, &IndexDoc> = HashMap::new();
        for doc in jobs.iter().flat_map(|job| &job.docs) {
            let known = table.node(doc.node_id);
            if known.is_some_and(|state| !state.is_replaced_by(doc.rev, doc.vector.is_some())) {
                continue;
            }
            newest
                .entry(doc.node_id)
                .and_modify(|held| {
                    if (doc.rev, doc.vector.is_some()) >= (held.rev, held.vector.is_some()) {
                        *held = doc;
                    }
                })
                .or_insert(doc);
        }
        // In a fixed order, so that ties at the limit are broken the same way after every rebuild.
        let mut docs: Vec<&IndexDoc> = newest.into_values().collect();
        docs.sort_unstable_by_key(|doc| doc.node_id);
        docs
    }

    fn write(
        &self,
        writing: &mut Writing,
        docs: &[(&IndexDoc, bool)],
        checkpoint: u64,
    ) -> Result<(), SearchError> {
        let writer = match &mut writing.writer {
            Some(writer) => writer,
            none => none.insert(self.open_writer()?),
        };
        for (doc, replaces) in docs {
            if writing.suspect || *replaces {
                writer.delete_term(Term::from_field_bytes(self.fields.node, doc.node_id.as_bytes()));
            }
            writer.add_document(document(&self.fields, doc))?;
        }
        let mut prepared = writer.prepare_commit()?;
        prepared.set_payload(&checkpoint.to_string());
        prepared.commit()?;
        self.reader.reload()?;
        Ok(())
    }

    fn open_writer(&self) -> Result<IndexWriter, SearchError> {
        self.writers.admit(&self.writing);
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(self.writer_heap)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        Ok(self.index.writer_with_options(options)?)
    }

    /// The nodes that best match the query among those the filter accepts. A blended search without a query vector is a
    /// keyword search.
    pub fn search(
        &self,
        query: &str,
        query_vector: Option<&[i8]>,
        mode: Mode,
        filter: &Filter,
        limit: usize,
    ) -> Result<Vec<Hit>, SearchError> {
        self.touch();
        if let Some(vector) = query_vector {
            self.check(vector)?;
        }
        let fresh = self.fresh();
        let searcher = self.reader.searcher();
        let question = Query {
            text: query,
            vector: query_vector,
            mode,
            allowed: &Allowed::of(filter),
            limit,
        };
        query::answer(&question, &self.keywords(&searcher, &fresh)?, &self.vectors)
    }

    /// The nodes that carry one of the keys as name, alias or identifier, in any spelling that [`canonical_key`] treats
    /// as equal.
    pub fn lookup(&self, keys: &[&str], filter: &Filter) -> Result<Vec<KeyHit>, SearchError> {
        self.touch();
        let fresh = self.fresh();
        let searcher = self.reader.searcher();
        let keywords = self.keywords(&searcher, &fresh)?;
        let allowed = Allowed::of(filter);
        let mut hits = Vec::new();
        for (key, text) in keys.iter().enumerate() {
            let found = keywords.with_key(&canonical_key(text), &allowed)?;
            hits.extend(found.into_iter().map(|found| KeyHit {
                key,
                node_id: found.node,
                kind: found.kind,
            }));
        }
        Ok(hits)
    }

    /// Nodes of the given types that carry one of the keys; if no key is given or known, those that match the text.
    pub fn structured(
        &self,
        query: &StructuredQuery,
        query_vector: Option<&[i8]>,
        filter: &Filter,
        limit: usize,
    ) -> Result<Vec<Hit>, SearchError> {
        let filter = filter.narrowed(&query.node_types);
        let keys: Vec<&str> = query.keys.iter().map(String::as_str).collect();
        let mut hits = query::by_keys(self.lookup(&keys, &filter)?);
        if hits.is_empty() && !query.text.trim().is_empty() {
            return self.search(&query.text, query_vector, Mode::Blended, &filter, limit);
        }
        hits.truncate(limit);
        Ok(hits)
    }

    /// The checkpoint of the last commit; rows with a higher rev must be applied again.
    pub fn checkpoint(&self) -> u64 {
        self.checkpoint.load(Ordering::SeqCst)
    }

    /// Number of indexed nodes, including merged ones.
    pub fn len(&self) -> usize {
        self.vectors.read().len()
    }

    /// Whether the index is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this version of the node, or a newer one, is indexed.
    pub fn contains(&self, node: Uuid, rev: u64) -> bool {
        self.vectors
            .read()
            .node(node)
            .is_some_and(|state| state.rev >= rev)
    }

    /// Drops the writer, its threads and buffers if it has been idle for at least `idle`.
    pub fn close_idle(&self, idle: Duration) -> Result<(), SearchError> {
        let Ok(mut writing) = self.writing.try_lock() else {
            return Ok(());
        };
        if writing.used.elapsed() < idle {
            return Ok(());
        }
        self.flush(&mut writing)?;
        let Some(writer) = writing.writer.take() else {
            return Ok(());
        };
        writer.wait_merging_threads()?;
        // Releases the merged segments.
        self.reader.reload()?;
        Ok(())
    }

    /// Waits for a running graph build; for tests, benches and orderly shutdown.
    pub fn settle(&self) {
        self.vectors.settle();
    }

    /// Time since the last call.
    pub(super) fn idle_for(&self) -> Duration {
        self.born
            .elapsed()
            .saturating_sub(Duration::from_millis(self.used.load(Ordering::Relaxed)))
    }

    fn touch(&self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used.store(now, Ordering::Relaxed);
    }

    fn check(&self, vector: &[i8]) -> Result<(), SearchError> {
        if vector.len() == self.dimension {
            return Ok(());
        }
        Err(SearchError::Dimension {
            expected: self.dimension,
            found: vector.len(),
        })
    }

    fn keywords<'a>(&'a self, searcher: &'a Searcher, fresh: &'a Fresh) -> Result<Keywords<'a>, SearchError> {
        Keywords::new(searcher, &self.fields, fresh)
    }
}
