//! The write side of a workspace's index: what is kept in memory, what is committed, and what a failure undoes.
//!
//! A commit of the text index names the rows of the table that belong to it. Both are taken back to the last commit
//! when a write fails, and by a restart.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use tantivy::IndexWriter;
use tantivy::indexer::IndexWriterOptions;
use uuid::Uuid;

use super::super::document::IndexDoc;
use super::super::error::SearchError;
use super::super::relations::Relations;
use super::merging::WritingMergePolicy;
use super::storage;
use super::storage::Commit;
use super::writers::WriterState;
use super::{QueuedWrite, WorkspaceIndex, state_of};
use crate::capacity::lower_priority;
use crate::search::keyword::memtable::Memtable;
use crate::search::keyword::node_set_query::NodeSetQuery;
use crate::search::keyword::schema::document;
use crate::search::query::calibration;
use crate::search::vectors::rows::NewRow;
use crate::search::vectors::table::Table;

/// Largest write whose documents are kept in memory: there each is analysed once more than in a commit.
const FEW: usize = 256;

impl WorkspaceIndex {
    pub(super) fn commit(
        &self,
        writing: &mut WriterState,
        jobs: &[Arc<QueuedWrite>],
    ) -> Result<(), SearchError> {
        writing.used = Instant::now();
        let docs = self.newest(jobs.iter().flat_map(|job| &job.docs));
        let checkpoint = jobs
            .iter()
            .map(|job| job.checkpoint)
            .fold(self.checkpoint(), u64::max);
        if docs.is_empty() && checkpoint == self.checkpoint() && !writing.staged {
            return Ok(());
        }
        let few = docs.len() <= FEW && self.memtable().len() + docs.len() <= self.most_fresh;
        if few && !docs.is_empty() && !writing.staged {
            return self.keep(&docs, checkpoint);
        }
        self.flush(writing, &docs, checkpoint)
    }

    /// Makes a few documents searchable in memory.
    fn keep(&self, docs: &[&IndexDoc], checkpoint: u64) -> Result<(), SearchError> {
        let mut fresh = self.fresh.write();
        let known: Vec<bool> = {
            let table = self.table();
            docs.iter().map(|doc| table.node(doc.node_id).is_some()).collect()
        };
        self.record(docs)?;
        for (doc, known) in docs.iter().zip(known) {
            fresh.put(doc, known);
        }
        fresh.complete_up_to(checkpoint);
        Ok(())
    }

    /// Records versions and vectors of documents, and the relationships that they describe: all or, on an error, none.
    fn record(&self, docs: &[&IndexDoc]) -> Result<(), SearchError> {
        // Only the holder of the write lock records anything, so nothing changes between the two looks.
        let (rows, edges): (Vec<NewRow<'_>>, Vec<NewRow<'_>>) = {
            let (table, relations) = (self.table(), self.relations());
            let is_row = |doc: &&&IndexDoc| doc.is_searched() || table.node(doc.node_id).is_some();
            let is_edge = |doc: &&&IndexDoc| doc.relation.is_some() || relations.rev(doc.node_id).is_some();
            let rows = docs.iter().filter(is_row).map(|doc| NewRow::of(doc));
            let edges = docs.iter().filter(is_edge).map(|doc| NewRow::of_relation(doc));
            (rows.collect(), edges.collect())
        };
        let (mut table, mut relations) = (self.table_mut(), self.relations_mut());
        let before = relations.rows().extent().len;
        relations.put(&edges)?;
        let recorded = table.put(&rows);
        if recorded.is_err() {
            relations.truncate_rows(before);
        }
        recorded
    }

    /// Adds documents to the text index and the table, without a commit.
    pub(super) fn add(&self, writing: &mut WriterState, docs: &[&IndexDoc]) -> Result<(), SearchError> {
        let known: Vec<Uuid> = {
            let table = self.table();
            let ids = docs.iter().map(|doc| doc.node_id);
            ids.filter(|node| writing.suspect || table.node(*node).is_some())
                .collect()
        };
        writing.staged = true;
        self.write(writing, docs, known.into_iter())?;
        self.record(docs)
    }

    fn write(
        &self,
        writing: &mut WriterState,
        docs: &[&IndexDoc],
        replaced: impl Iterator<Item = Uuid>,
    ) -> Result<(), SearchError> {
        let writer = match &mut writing.writer {
            Some(writer) => writer,
            none => none.insert(self.open_writer()?),
        };
        let replaced = NodeSetQuery::new(replaced);
        if !replaced.is_empty() {
            writer.delete_query(Box::new(replaced))?;
        }
        for doc in docs.iter().filter(|doc| doc.is_searched()) {
            writer.add_document(document(&self.fields, doc))?;
        }
        Ok(())
    }

    /// Writes these documents and those that are only in memory into the text index.
    pub(super) fn flush(
        &self,
        writing: &mut WriterState,
        docs: &[&IndexDoc],
        checkpoint: u64,
    ) -> Result<(), SearchError> {
        let outcome = self.try_flush(writing, docs, checkpoint);
        self.or_roll_back(writing, outcome)
    }

    fn try_flush(
        &self,
        writing: &mut WriterState,
        docs: &[&IndexDoc],
        checkpoint: u64,
    ) -> Result<(), SearchError> {
        let checkpoint = {
            let fresh = self.memtable();
            // A document that is replaced by one of these has been replaced in the table already.
            let older = fresh.docs();
            let replaced: Vec<Uuid> = older
                .iter()
                .filter(|(_, replaces)| writing.suspect || *replaces)
                .map(|(doc, _)| doc.node_id)
                .collect();
            let older: Vec<&IndexDoc> = older.into_iter().map(|(doc, _)| doc).collect();
            self.write(writing, &older, replaced.into_iter())?;
            fresh.checkpoint().max(checkpoint).max(self.checkpoint())
        };
        self.add(writing, docs)?;
        let commit = self.commit_of(checkpoint);
        if let Some(writer) = &mut writing.writer {
            let mut prepared = writer.prepare_commit()?;
            prepared.set_payload(&commit.payload());
            prepared.commit()?;
        }
        self.reader.reload()?;
        {
            // At once, so that no search meets a document twice. Only the holder of the write lock adds documents, so
            // nothing new is lost.
            let mut fresh = self.fresh.write();
            self.segments.show(self.reader.searcher());
            *fresh = Memtable::default();
        }
        self.checkpoint.store(checkpoint, Ordering::SeqCst);
        self.after_commit(writing, commit)
    }

    fn commit_of(&self, checkpoint: u64) -> Commit {
        let table = self.table();
        Commit {
            checkpoint,
            rows: table.rows().extent(),
            relations: self.relations().rows().extent(),
            widening: table.widening(),
        }
    }

    /// Follows up on a commit.
    fn after_commit(&self, writing: &mut WriterState, commit: Commit) -> Result<(), SearchError> {
        writing.staged = false;
        writing.suspect = false;
        if commit.rows.generation != writing.committed.rows.generation {
            self.table().rows().forget_others()?;
        }
        if commit.relations.generation != writing.committed.relations.generation {
            self.relations().rows().forget_others()?;
        }
        writing.committed = commit;
        let checked = calibration::check(&self.table(), &mut writing.calibrated);
        if let Some(widening) = checked {
            if widening.iter().any(|factor| *factor > 1) {
                tracing::info!(
                    ?widening,
                    "the embedding model needs more rows to be scored exactly"
                );
            }
            self.table_mut().widen(widening);
        }
        if let Err(error) = self.compact(writing) {
            tracing::warn!(%error, "a search index could not be compacted");
        }
        Ok(())
    }

    /// Rewrites the table, or the relationships, when much of it is gone. The next commit names the new files; until then
    /// the old ones stay.
    fn compact(&self, writing: &mut WriterState) -> Result<(), SearchError> {
        let table = {
            let table = self.table();
            table
                .wants_compaction()
                .then(|| table.compact_copy())
                .transpose()?
        };
        let relations = {
            let relations = self.relations();
            relations
                .wants_compaction()
                .then(|| relations.compact_copy())
                .transpose()?
        };
        if table.is_none() && relations.is_none() {
            return Ok(());
        }
        table.into_iter().for_each(|table| *self.table_mut() = table);
        relations
            .into_iter()
            .for_each(|relations| *self.relations_mut() = relations);
        if self.dir.is_none() {
            writing.committed = self.commit_of(writing.committed.checkpoint);
        }
        Ok(())
    }

    /// After a failure, takes text index and table back to the last commit.
    pub(super) fn or_roll_back(
        &self,
        writing: &mut WriterState,
        outcome: Result<(), SearchError>,
    ) -> Result<(), SearchError> {
        if outcome.is_err() {
            // Dropping the writer drops what it has not committed.
            writing.writer = None;
            writing.suspect = true;
            writing.staged = false;
            self.rollbacks.fetch_add(1, Ordering::SeqCst);
            self.roll_back(writing)?;
        }
        outcome
    }

    fn roll_back(&self, writing: &mut WriterState) -> Result<(), SearchError> {
        let fresh = self.memtable();
        match &self.dir {
            Some(dir) => {
                // A commit may have reached the disk although it failed.
                writing.committed = storage::last_commit(&self.index)?.unwrap_or(writing.committed);
                let Commit { rows, relations, .. } = writing.committed;
                *self.table_mut() = Table::open(Some(dir), rows, self.dimension)?;
                *self.relations_mut() = Relations::open(Some(dir), relations)?;
            }
            None => {
                self.table_mut().truncate_rows(writing.committed.rows.len);
                self.relations_mut()
                    .truncate_rows(writing.committed.relations.len);
            }
        }
        self.table_mut().widen(writing.committed.widening);
        let docs = fresh.docs();
        self.record(&docs.iter().map(|(doc, _)| *doc).collect::<Vec<_>>())
    }

    pub(super) fn flush_memtable(&self, writing: &mut WriterState) -> Result<(), SearchError> {
        if self.memtable().is_empty() && !writing.staged {
            return Ok(());
        }
        self.flush(writing, &[], self.checkpoint())
    }

    /// The documents newer than their indexed version; for each node, the newest.
    pub(super) fn newest<'a>(&self, docs: impl Iterator<Item = &'a IndexDoc>) -> Vec<&'a IndexDoc> {
        let (table, relations) = (self.table(), self.relations());
        let mut newest: HashMap<Uuid, &IndexDoc> = HashMap::new();
        for doc in docs {
            let known = state_of(doc.node_id, &table, &relations);
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

    pub(super) fn open_writer(&self) -> Result<IndexWriter, SearchError> {
        self.writers.admit(&self.writing);
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(self.writer_heap)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        // The threads of the writer inherit the priority of the one that starts them.
        let opened = thread::scope(|scope| {
            let open = || {
                lower_priority();
                self.index.writer_with_options(options)
            };
            scope.spawn(open).join()
        });
        let failed = |_| SearchError::Index("opening the writer panicked".into());
        let writer = opened.map_err(failed)??;
        writer.set_merge_policy(Box::new(WritingMergePolicy::default()));
        Ok(writer)
    }
}
