//! The index of one workspace: grouped writes, and searches at any time.
//!
//! Guarantees: `apply` returns once its documents are searchable; a document never replaces a newer version of the same
//! node; applying a document twice changes nothing; the checkpoint is stored in the same commit as the documents it
//! covers, and never decreases.

mod activity;
mod commit;
mod directory;
pub(super) mod examine;
mod look_up;
mod merging;
mod purge;
mod steps;
mod storage;
mod tidy;
pub(super) mod writers;

pub use steps::{Step, StepFilter};

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tantivy::{Index, IndexReader};
use uuid::Uuid;

use self::activity::Activity;
use self::writers::{WriterPool, WriterState};
use super::IndexSettings;
use super::document::{CompiledFilter, Filter, Hit, IndexDoc, Mode, StructuredQuery};
use super::error::SearchError;
use super::keyword::memtable::Memtable;
use super::keyword::schema::Fields;
use super::keyword::segments::{SegmentCache, Segments};
use super::keyword::{Keywords, TextScope};
use super::query::calibration;
use super::query::reasons::{self, Reasons};
use super::query::{self, Query, SearchResults};
use super::relations::Relations;
use super::vectors::embed::Embedder;
use super::vectors::rows::scale_of;
use super::vectors::table::{NodeState, Table};
use crate::domain::ids::WorkspaceIds;

/// Minimum writer heap accepted by the text index.
const MIN_WRITER_HEAP: usize = 15_000_000;

/// A call of `apply` that waits for its commit.
struct QueuedWrite {
    docs: Vec<IndexDoc>,
    checkpoint: u64,
    /// Number of rollbacks before earlier parts of it were staged.
    staged: Option<u64>,
    outcome: OnceLock<Result<(), SearchError>>,
}

/// The index of one workspace. All methods block; do not call them on async threads.
pub struct WorkspaceIndex {
    ids: WorkspaceIds,
    index: Index,
    reader: IndexReader,
    segments: SegmentCache,
    fields: Fields,
    dir: Option<PathBuf>,
    table: RwLock<Table>,
    /// Locked after the table where both are.
    relations: RwLock<Relations>,
    dimension: usize,
    /// Whether the floor of scores was fitted to the cosines of the model.
    has_floor: bool,
    writer_heap: usize,
    checkpoint: AtomicU64,
    /// Documents that are searchable but not yet in the text index.
    fresh: RwLock<Memtable>,
    most_fresh: usize,
    queue: Mutex<Vec<Arc<QueuedWrite>>>,
    writing: Arc<Mutex<WriterState>>,
    writers: Arc<WriterPool>,
    /// Number of writes that were rolled back.
    rollbacks: AtomicU64,
    activity: Activity,
}

impl WorkspaceIndex {
    pub(super) fn open(
        dir: Option<&Path>,
        fingerprint: &str,
        embedder: &dyn Embedder,
        settings: &IndexSettings,
        writers: Arc<WriterPool>,
        ids: WorkspaceIds,
    ) -> Result<Self, SearchError> {
        let dimension = embedder.dimension();
        let opened = storage::open(dir, fingerprint, dimension)?;
        let visible = calibration::visible_nodes(&opened.table);
        Ok(WorkspaceIndex {
            ids,
            index: opened.index,
            segments: SegmentCache::new(opened.reader.searcher()),
            reader: opened.reader,
            fields: opened.fields,
            dir: dir.map(Path::to_owned),
            table: RwLock::new(opened.table),
            relations: RwLock::new(opened.relations),
            dimension,
            has_floor: embedder.has_floor(),
            writer_heap: settings.writer_heap_bytes.max(MIN_WRITER_HEAP),
            checkpoint: AtomicU64::new(opened.commit.checkpoint),
            fresh: RwLock::default(),
            most_fresh: settings.fresh_docs,
            queue: Mutex::new(Vec::new()),
            writing: Arc::new(Mutex::new(WriterState::new(opened.commit, visible))),
            writers,
            rollbacks: AtomicU64::new(0),
            activity: Activity::new(),
        })
    }

    /// Indexes the documents, which are searchable once this returns. A small write may stay in memory until a later
    /// commit to the text index, which also stores the checkpoint. The caller guarantees that every row with a rev up
    /// to the checkpoint has been applied. Calls that arrive during a write share the next one and its outcome. A
    /// checkpoint lower than the stored one is ignored.
    pub fn apply(&self, docs: Vec<IndexDoc>, checkpoint: u64) -> Result<(), SearchError> {
        self.enqueue_write(docs, checkpoint, None)
    }

    /// Ends a large write whose first parts were handed over with [`WorkspaceIndex::stage`]; all are searchable once
    /// this returns. `rollbacks` is what [`WorkspaceIndex::rollbacks`] said before the first part.
    ///
    /// # Errors
    /// When the parts were lost since, because another write failed; nothing is applied then.
    pub fn apply_staged(
        &self,
        docs: Vec<IndexDoc>,
        checkpoint: u64,
        rollbacks: u64,
    ) -> Result<(), SearchError> {
        self.enqueue_write(docs, checkpoint, Some(rollbacks))
    }

    fn enqueue_write(
        &self,
        docs: Vec<IndexDoc>,
        checkpoint: u64,
        staged: Option<u64>,
    ) -> Result<(), SearchError> {
        self.activity.touch();
        self.check_all(&docs)?;
        let job = Arc::new(QueuedWrite {
            docs,
            checkpoint,
            staged,
            outcome: OnceLock::new(),
        });
        self.queue.lock().push(job.clone());
        let mut writing = self.writing.lock();
        if let Some(outcome) = job.outcome.get() {
            return outcome.clone();
        }
        let jobs = std::mem::take(&mut *self.queue.lock());
        if !jobs.iter().any(|other| Arc::ptr_eq(other, &job)) {
            return Err(SearchError::Index(
                "the commit this write was part of did not end".into(),
            ));
        }
        let now = self.rollbacks();
        let is_lost = |job: &Arc<QueuedWrite>| job.staged.is_some_and(|staged| staged != now);
        let (lost, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_lost);
        // Only the holder of the write lock sets outcomes, so none is set twice.
        for job in &lost {
            let error = SearchError::Index("the first parts of this write were rolled back".into());
            let _ = job.outcome.set(Err(error));
        }
        let outcome = self.commit(&mut writing, &jobs);
        for job in &jobs {
            let _ = job.outcome.set(outcome.clone());
        }
        job.outcome.get().cloned().unwrap_or(outcome)
    }

    /// Hands over the first parts of a large write, which [`WorkspaceIndex::apply_staged`] ends.
    pub fn stage(&self, docs: Vec<IndexDoc>) -> Result<(), SearchError> {
        self.activity.touch();
        self.check_all(&docs)?;
        let mut writing = self.writing.lock();
        writing.used = Instant::now();
        let docs = self.newest(docs.iter());
        let holds_older = docs.iter().any(|doc| self.memtable().holds(doc.node_id));
        if holds_older {
            self.flush_memtable(&mut writing)?;
        }
        let outcome = self.add(&mut writing, &docs);
        self.or_roll_back(&mut writing, outcome)
    }

    /// Number of writes that have been rolled back so far.
    pub fn rollbacks(&self) -> u64 {
        self.rollbacks.load(Ordering::SeqCst)
    }

    /// Writes documents that have been only in memory for at least `age` into the text index.
    pub fn flush_older_than(&self, age: Duration) -> Result<(), SearchError> {
        if !self.memtable().is_older_than(age) {
            return Ok(());
        }
        let mut writing = self.writing.lock();
        writing.used = Instant::now();
        self.flush_memtable(&mut writing)
    }

    fn memtable(&self) -> RwLockReadGuard<'_, Memtable> {
        self.fresh.read()
    }

    fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read()
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write()
    }

    fn relations(&self) -> RwLockReadGuard<'_, Relations> {
        self.relations.read()
    }

    fn relations_mut(&self) -> RwLockWriteGuard<'_, Relations> {
        self.relations.write()
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
        let found = self.find(query, query_vector, mode, filter, (limit, false))?;
        Ok(found.hits)
    }

    /// [`WorkspaceIndex::search`] with the floor of its scores and, to `explain` them, the reasons of the results and the
    /// passages that spoke for them.
    pub fn find(
        &self,
        query: &str,
        query_vector: Option<&[i8]>,
        mode: Mode,
        filter: &Filter,
        (limit, explain): (usize, bool),
    ) -> Result<SearchResults, SearchError> {
        self.activity.touch();
        if let Some(vector) = query_vector {
            self.check(vector)?;
        }
        let fresh = self.memtable();
        let segments = self.segments()?;
        let table = self.table();
        let allowed = CompiledFilter::of(filter);
        let question = Query {
            text: query,
            vector: query_vector,
            mode,
            allowed: &allowed,
            limit,
            explain,
            has_floor: self.has_floor,
        };
        let keywords = self.keywords((&segments, &fresh), &table, &allowed);
        query::answer(&question, &keywords, &table)
    }

    /// Nodes that the words may be a name of: at most `limit` with some of the words in their names, and as many that
    /// mean something alike. Those most alike in meaning come first.
    pub fn find_similar(
        &self,
        words: &str,
        vector: Option<&[i8]>,
        filter: &Filter,
        limit: usize,
    ) -> Result<Vec<Uuid>, SearchError> {
        self.activity.touch();
        vector.map_or(Ok(()), |vector| self.check(vector))?;
        let fresh = self.memtable();
        let segments = self.segments()?;
        let table = self.table();
        let allowed = CompiledFilter::of(filter);
        let keywords = self.keywords((&segments, &fresh), &table, &allowed);
        let weighted = keywords.weigh_terms(words, &HashSet::new())?;
        let mut found = keywords.best(TextScope::Names, &weighted, &allowed, limit)?;
        if let Some(vector) = vector {
            found.extend(table.nearest_approximate(vector, &allowed, limit));
            let scale = scale_of(vector);
            for (node, score) in &mut found {
                *score = table.cosine(*node, vector, scale).unwrap_or(f32::MIN);
            }
        }
        found.sort_by(|(node, score), (other, than)| than.total_cmp(score).then_with(|| node.cmp(other)));
        found.dedup();
        Ok(found.into_iter().map(|(node, _)| node).collect())
    }

    /// Nodes of the given types that carry one of the keys; if no key is given or known, those that match the text.
    pub fn search_structured(
        &self,
        query: &StructuredQuery,
        query_vector: Option<&[i8]>,
        filter: &Filter,
        limit: usize,
    ) -> Result<Vec<Hit>, SearchError> {
        let found = self.run_structured(query, query_vector, filter, (limit, false))?;
        Ok(found.hits)
    }

    /// [`WorkspaceIndex::search_structured`], with the reasons of the results and the passages that spoke for them.
    pub fn search_structured_explained(
        &self,
        query: &StructuredQuery,
        query_vector: Option<&[i8]>,
        filter: &Filter,
        limit: usize,
    ) -> Result<SearchResults, SearchError> {
        self.run_structured(query, query_vector, filter, (limit, true))
    }

    fn run_structured(
        &self,
        query: &StructuredQuery,
        query_vector: Option<&[i8]>,
        filter: &Filter,
        (limit, explain): (usize, bool),
    ) -> Result<SearchResults, SearchError> {
        let filter = filter.narrow_to_types(&query.node_types);
        let keys: Vec<&str> = query.keys.iter().map(String::as_str).collect();
        let carried = self.lookup(&keys, &filter)?;
        if carried.is_empty() && !query.text.trim().is_empty() {
            return self.find(
                &query.text,
                query_vector,
                Mode::Blended,
                &filter,
                (limit, explain),
            );
        }
        let reasons = if explain {
            reasons::of_keys(&carried, &keys)
        } else {
            Reasons::new()
        };
        let mut found = SearchResults::from(query::by_keys(carried));
        found.hits.truncate(limit);
        found.reasons = reasons;
        Ok(found)
    }

    /// The checkpoint of the last commit; rows with a higher rev must be applied again.
    pub fn checkpoint(&self) -> u64 {
        self.checkpoint.load(Ordering::SeqCst)
    }

    /// Number of indexed nodes and passages, including merged ones.
    pub fn len(&self) -> usize {
        self.table().len()
    }

    /// Number of nodes that the filter accepts by type, status and marking.
    pub fn count(&self, filter: &Filter) -> usize {
        self.table().count(&CompiledFilter::of(filter))
    }

    /// The nodes that the filter accepts by type, status and marking, in no order.
    pub fn nodes(&self, filter: &Filter) -> Vec<Uuid> {
        self.table().ids_of(&CompiledFilter::of(filter))
    }

    /// Whether the filter accepts a node by status and marking, whatever its type.
    pub fn sees(&self, node: Uuid, filter: &Filter) -> bool {
        let class = self.table().class(node);
        class.is_some_and(|class| CompiledFilter::of(filter).end(class))
    }

    /// Whether the index is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this version of the node, passage or relationship, or a newer one, is indexed.
    pub fn contains(&self, id: Uuid, rev: u64) -> bool {
        let (table, relations) = (self.table(), self.relations());
        state_of(id, &table, &relations).is_some_and(|state| state.rev >= rev)
    }

    /// Drops the writer, its threads and buffers if it has been idle for at least `idle`.
    pub fn close_idle(&self, idle: Duration) -> Result<(), SearchError> {
        let Some(mut writing) = self.writing.try_lock() else {
            return Ok(());
        };
        let is_last = idle.is_zero();
        if writing.used.elapsed() < idle || self.tidies(&mut writing) && !is_last {
            return Ok(());
        }
        self.flush_memtable(&mut writing)?;
        let Some(writer) = writing.writer.take() else {
            return Ok(());
        };
        if !writing.is_tidying() {
            writer.wait_merging_threads()?;
        }
        // Releases the merged segments.
        self.reader.reload()?;
        self.segments.show(self.reader.searcher());
        Ok(())
    }

    /// Time since the last call.
    pub(super) fn idle_for(&self) -> Duration {
        self.activity.idle_for()
    }

    fn check_all(&self, docs: &[IndexDoc]) -> Result<(), SearchError> {
        let mut vectors = docs.iter().filter_map(|doc| doc.vector.as_ref());
        vectors.try_for_each(|vector| self.check(vector))
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

    /// The text index as it is for callers who may see what is allowed.
    fn keywords<'a>(
        &'a self,
        (segments, fresh): (&'a Segments, &'a Memtable),
        table: &'a Table,
        allowed: &CompiledFilter,
    ) -> Keywords<'a> {
        Keywords {
            segments,
            fields: &self.fields,
            fresh,
            table,
            ids: self.ids,
            groups: allowed.groups(),
        }
    }

    pub(super) fn segments(&self) -> Result<Arc<Segments>, SearchError> {
        self.segments.get(&self.fields)
    }
}

/// The indexed version of a node, passage or relationship.
fn state_of(id: Uuid, table: &Table, relations: &Relations) -> Option<NodeState> {
    let text = table.node(id);
    match relations.rev(id) {
        Some(rev) => Some(NodeState {
            rev: text.map_or(rev, |text| text.rev.max(rev)),
            has_vector: text.is_some_and(|text| text.has_vector),
        }),
        None => text,
    }
}
