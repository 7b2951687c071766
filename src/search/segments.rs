//! The segments of the text index, opened once for all searches of the same commit.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::columnar::ColumnValues;
use tantivy::postings::{Postings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, IndexReader, InvertedIndexReader, Searcher, SegmentReader, TERMINATED, Term};
use uuid::Uuid;

use super::document::{GONE, KeyKind};
use super::error::SearchError;
use super::fresh::TextField;
use super::peaks::Peaks;
use super::schema::{CLASS, Fields, HIGH, LOW, PASSAGE, node_of};

/// A segment with its terms, and with the columns that identify each document's node and visibility.
pub(super) struct Segment {
    pub(super) reader: SegmentReader,
    pub(super) keys: Arc<InvertedIndexReader>,
    title: Arc<InvertedIndexReader>,
    body: Arc<InvertedIndexReader>,
    passage: Arc<InvertedIndexReader>,
    high: Arc<dyn ColumnValues<u64>>,
    low: Arc<dyn ColumnValues<u64>>,
    class: Arc<dyn ColumnValues<u64>>,
    /// Number of documents that are passages, replaced ones included.
    pub(super) passages: u64,
    pub(super) peaks: Peaks,
}

impl Segment {
    fn open(reader: &SegmentReader, fields: &Fields) -> Result<Self, SearchError> {
        let column = |name| reader.fast_fields().column_first_or_default::<u64>(name);
        let keys = reader.inverted_index(fields.key)?;
        let passages = keys.doc_freq(&Term::from_field_text(fields.key, PASSAGE))?;
        Ok(Segment {
            passages: u64::from(passages),
            high: column(HIGH)?,
            low: column(LOW)?,
            class: column(CLASS)?,
            keys,
            title: reader.inverted_index(fields.title)?,
            body: reader.inverted_index(fields.body)?,
            passage: reader.inverted_index(fields.passage)?,
            reader: reader.clone(),
            peaks: Peaks::default(),
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
    pub(super) fn carriers(
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

    pub(super) fn class(&self, doc: DocId) -> u8 {
        u8::try_from(self.class.get_val(doc)).unwrap_or(GONE)
    }

    pub(super) fn node(&self, doc: DocId) -> Uuid {
        node_of(self.high.get_val(doc), self.low.get_val(doc))
    }
}

/// All segments of a commit.
pub(super) struct Segments {
    pub(super) searcher: Searcher,
    /// The largest first, as it most likely holds the best documents, which raise the threshold for the others.
    pub(super) all: Vec<Segment>,
}

impl Segments {
    fn open(searcher: Searcher, fields: &Fields) -> Result<Self, SearchError> {
        let segments = searcher.segment_readers().iter();
        let mut all = segments
            .map(|reader| Segment::open(reader, fields))
            .collect::<Result<Vec<_>, _>>()?;
        all.sort_by_key(|segment| Reverse(segment.reader.max_doc()));
        Ok(Segments { searcher, all })
    }
}

/// The segments of the commit that was searched last.
#[derive(Default)]
pub(super) struct Opened(Mutex<Option<Arc<Segments>>>);

impl Opened {
    /// The segments of the newest commit.
    pub(super) fn of(&self, reader: &IndexReader, fields: &Fields) -> Result<Arc<Segments>, SearchError> {
        let searcher = reader.searcher();
        let newest = searcher.generation().generation_id();
        let is_newest = |known: &Arc<Segments>| known.searcher.generation().generation_id() == newest;
        let known = self.known().clone();
        if let Some(known) = known.filter(is_newest) {
            return Ok(known);
        }
        let segments = Arc::new(Segments::open(searcher, fields)?);
        *self.known() = Some(Arc::clone(&segments));
        Ok(segments)
    }

    /// Lets go of the files of a commit that is no longer the newest.
    pub(super) fn close(&self) {
        *self.known() = None;
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<Arc<Segments>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
