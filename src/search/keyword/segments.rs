//! The segments of the text index, opened once for all searches until they are merged.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tantivy::columnar::ColumnValues;
use tantivy::index::SegmentId;
use tantivy::postings::{Postings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, InvertedIndexReader, Searcher, SegmentReader, TERMINATED};
use uuid::Uuid;

use super::memtable::TextField;
use super::networks::NetworkBook;
use super::schema::{CLASS, Fields, HIGH, LOW, node_of};
use super::score_bounds::ScoreBounds;
use super::segment_counts::{self, Lengths, SegmentCounts};
use crate::search::document::{GONE, KeyKind};
use crate::search::error::SearchError;

/// A segment with its terms, and with the columns that identify each document's node and visibility.
pub(in crate::search) struct Segment {
    pub(in crate::search) reader: SegmentReader,
    pub(in crate::search) keys: Arc<InvertedIndexReader>,
    title: Arc<InvertedIndexReader>,
    body: Arc<InvertedIndexReader>,
    passage: Arc<InvertedIndexReader>,
    high: Arc<dyn ColumnValues<u64>>,
    low: Arc<dyn ColumnValues<u64>>,
    class: Arc<dyn ColumnValues<u64>>,
    fields: Fields,
    lengths: OnceLock<Lengths>,
    /// Number of deleted documents.
    pub(in crate::search) deleted: usize,
    pub(super) counts: Arc<SegmentCounts>,
    pub(super) peaks: Arc<ScoreBounds>,
    networks: Arc<OnceLock<NetworkBook>>,
}

impl Segment {
    /// Opens a version of a segment. What is known of an older one holds for it, too.
    fn open(reader: &SegmentReader, fields: &Fields, older: Option<&Segment>) -> Result<Self, SearchError> {
        let column = |name| reader.fast_fields().column_first_or_default::<u64>(name);
        let counts = older.map(|older| Arc::clone(&older.counts)).unwrap_or_default();
        let (counts, deleted) = match counts.note_deleted(reader) {
            Some(deleted) => (counts, deleted),
            None => {
                let counts = Arc::<SegmentCounts>::default();
                let deleted = counts.note_deleted(reader).unwrap_or_default();
                (counts, deleted)
            }
        };
        Ok(Segment {
            // A bound on what a word adds holds without some of the documents, too.
            peaks: older.map(|older| Arc::clone(&older.peaks)).unwrap_or_default(),
            // Deleted documents are told by the reader.
            networks: older.map(|older| Arc::clone(&older.networks)).unwrap_or_default(),
            fields: *fields,
            lengths: OnceLock::new(),
            deleted,
            counts,
            high: column(HIGH)?,
            low: column(LOW)?,
            class: column(CLASS)?,
            keys: reader.inverted_index(fields.key)?,
            title: reader.inverted_index(fields.title)?,
            body: reader.inverted_index(fields.body)?,
            passage: reader.inverted_index(fields.passage)?,
            reader: reader.clone(),
        })
    }

    /// The terms of a field.
    pub(super) fn words(&self, field: TextField) -> &InvertedIndexReader {
        match field {
            TextField::Title => &self.title,
            TextField::Body => &self.body,
            TextField::Passage => &self.passage,
        }
    }

    /// Passes every document that carries a key, and how, to `each`, until it returns false.
    pub(in crate::search) fn carriers(
        &self,
        key: &TermInfo,
        mut each: impl FnMut(DocId, KeyKind) -> bool,
    ) -> Result<(), SearchError> {
        let mut docs = self
            .keys
            .read_postings_from_terminfo(key, IndexRecordOption::WithFreqs)?;
        let mut doc = docs.doc();
        while doc != TERMINATED && each(doc, KeyKind::of_times(docs.term_freq())) {
            doc = docs.advance();
        }
        Ok(())
    }

    pub(in crate::search) fn class(&self, doc: DocId) -> u8 {
        u8::try_from(self.class.get_val(doc)).unwrap_or(GONE)
    }

    /// Reads the classes of successive documents.
    pub(super) fn read_classes(&self, first: DocId, classes: &mut [u64]) {
        self.class.get_range(u64::from(first), classes);
    }

    /// The lengths of its nodes, added up by the first search.
    pub(super) fn lengths(&self) -> Result<&Lengths, SearchError> {
        match self.lengths.get() {
            Some(lengths) => Ok(lengths),
            None => {
                let lengths = segment_counts::lengths(self, &self.fields)?;
                Ok(self.lengths.get_or_init(|| lengths))
            }
        }
    }

    /// The addresses and networks of its nodes, collected by the first look-up.
    pub(super) fn networks(&self) -> Result<&NetworkBook, SearchError> {
        match self.networks.get() {
            Some(book) => Ok(book),
            None => {
                let book = NetworkBook::of_segment(self)?;
                Ok(self.networks.get_or_init(|| book))
            }
        }
    }

    /// The lengths of these documents.
    pub(super) fn lengths_of(&self, docs: &[DocId]) -> Result<Lengths, SearchError> {
        segment_counts::lengths_of(self, &self.fields, docs)
    }

    /// Reads the lower halves of the ids of successive documents.
    pub(super) fn read_lows(&self, first: DocId, lows: &mut [u64]) {
        self.low.get_range(u64::from(first), lows);
    }

    pub(in crate::search) fn node(&self, doc: DocId) -> Uuid {
        node_of(self.high.get_val(doc), self.low.get_val(doc))
    }
}

/// All segments of a commit.
pub(in crate::search) struct Segments {
    /// The largest first, as it most likely holds the best documents, which raise the threshold for the others.
    all: Vec<Arc<Segment>>,
}

impl Segments {
    pub(in crate::search) fn iter(&self) -> impl ExactSizeIterator<Item = &Segment> {
        self.all.iter().map(Arc::as_ref)
    }

    /// Opens the segments that are not open yet.
    fn open(searcher: &Searcher, fields: &Fields, opened: &[Arc<Segment>]) -> Result<Self, SearchError> {
        let mut all = Vec::with_capacity(searcher.segment_readers().len());
        for reader in searcher.segment_readers() {
            let older = opened
                .iter()
                .find(|segment| segment.reader.segment_id() == reader.segment_id());
            all.push(match older {
                Some(same) if same.reader.delete_opstamp() == reader.delete_opstamp() => Arc::clone(same),
                older => Arc::new(Segment::open(reader, fields, older.map(Arc::as_ref))?),
            });
        }
        all.sort_by_key(|segment| Reverse(segment.reader.max_doc()));
        Ok(Segments { all })
    }
}

/// The segments that searches have opened.
pub(in crate::search) struct SegmentCache(Mutex<CachedSegments>);

struct CachedSegments {
    /// The commit that searches see.
    commit: Searcher,
    /// Its segments, once it has been searched.
    newest: Option<Arc<Segments>>,
    /// All that are open. The newest commit has them too, unless they were merged.
    opened: Vec<Arc<Segment>>,
}

impl SegmentCache {
    pub(in crate::search) fn new(commit: Searcher) -> Self {
        SegmentCache(Mutex::new(CachedSegments {
            commit,
            newest: None,
            opened: Vec::new(),
        }))
    }

    /// The segments of the commit that searches see.
    pub(in crate::search) fn get(&self, fields: &Fields) -> Result<Arc<Segments>, SearchError> {
        let (commit, opened) = {
            let known = self.0.lock();
            if let Some(known) = &known.newest {
                return Ok(Arc::clone(known));
            }
            (known.commit.clone(), known.opened.clone())
        };
        let generation = commit.generation().generation_id();
        let segments = Arc::new(Segments::open(&commit, fields, &opened)?);
        let mut known = self.0.lock();
        if known.commit.generation().generation_id() == generation {
            known.opened.clone_from(&segments.all);
            known.newest = Some(Arc::clone(&segments));
        }
        Ok(segments)
    }

    /// Shows a newer commit to searches, and lets go of the files that it no longer has.
    pub(in crate::search) fn show(&self, commit: Searcher) {
        let segments = commit.segment_readers().iter();
        let newest: HashSet<SegmentId> = segments.map(SegmentReader::segment_id).collect();
        let mut known = self.0.lock();
        known.commit = commit;
        known.newest = None;
        known
            .opened
            .retain(|segment| newest.contains(&segment.reader.segment_id()));
    }
}

#[cfg(test)]
mod tests {
    use crate::search::IndexSettings;
    use crate::search::tests::{doc, id, open_with};

    use super::*;

    #[test]
    fn a_commit_opens_only_what_it_changes() {
        let settings = IndexSettings {
            fresh_docs: 0,
            ..IndexSettings::default()
        };
        let index = open_with(None, "word-hash", settings).workspace(id(0)).unwrap();
        let opened = || index.segments().unwrap().all.clone();
        let docs = (0..4).map(|n| doc(n, "Actor", "text"));
        index.apply(docs.collect(), 1).unwrap();
        let [first] = opened().try_into().unwrap_or_else(|_| panic!("one segment"));
        index.apply(vec![doc(4, "Actor", "text")], 2).unwrap();
        let both = opened();
        assert_eq!(both.len(), 2);
        assert!(Arc::ptr_eq(&first, &both[0]));
        let mut newer = doc(0, "Actor", "text");
        newer.rev = 2;
        index.apply(vec![newer], 3).unwrap();
        let all = opened();
        assert_eq!(all.len(), 3);
        assert!(!Arc::ptr_eq(&first, &all[0]) && Arc::ptr_eq(&first.peaks, &all[0].peaks));
        assert_eq!(all[0].reader.num_docs(), 3);
        assert!(all.iter().any(|segment| Arc::ptr_eq(segment, &both[1])));
    }
}
