//! How many documents of a segment have a word, and how long they are, by marking.
//!
//! The text index knows both for all documents together, deleted ones included. Here they are counted for those that
//! stand: a rare word's list is read each time, and what a longer one says is kept as long as the segment lives. What
//! is deleted later is taken off, and so is what newer documents in memory take the place of. If all documents of a segment
//! have one marking, nothing need be read.

use std::collections::HashMap;

use parking_lot::Mutex;
use tantivy::fastfield::AliveBitSet;
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED};

use super::memtable::TextField;
use super::schema::Fields;
use super::segments::Segment;
use crate::search::document::group_of;
use crate::search::document::marking_counts::MarkingCounts;
use crate::search::error::SearchError;

/// Documents with a word from which their number is kept.
const FROM: u32 = 64;
/// Words of a segment that are kept: some 100 bytes each.
const MOST_WORDS: usize = 4096;
/// How many documents of a list are read in the time that one deleted one is looked up.
const LOOK_UP: usize = 16;
/// Classes of documents that are read together.
const AT_ONCE: usize = 1024;

/// Numbers of words of the nodes in a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lengths {
    title: MarkingCounts,
    body: MarkingCounts,
    /// The group of all nodes, deleted ones included, if they have the same.
    only_group: Option<usize>,
}

impl Lengths {
    /// Those of a field. That of a passage is taken for a usual one.
    pub(in crate::search) fn of(&self, field: TextField) -> MarkingCounts {
        match field {
            TextField::Title => self.title,
            TextField::Body => self.body,
            TextField::Passage => MarkingCounts::default(),
        }
    }

    /// The words of both together.
    pub(in crate::search) fn and(self, other: Lengths) -> Self {
        Lengths {
            title: self.title.and(other.title),
            body: self.body.and(other.body),
            only_group: None,
        }
    }
}

/// What is known of a segment in all of its versions, which differ in what has been deleted.
#[derive(Default)]
pub(super) struct SegmentCounts(Mutex<KnownCounts>);

#[derive(Default)]
struct KnownCounts {
    /// The deleted documents, in the order in which they were found to be, and those alive in the newest version.
    deleted: Vec<DocId>,
    alive: Option<AliveBitSet>,
    words: HashMap<(TextField, usize), WordCounts>,
}

/// Numbers of documents with a word, without so many of the deleted ones.
#[derive(Clone, Copy)]
struct WordCounts {
    counts: MarkingCounts,
    deleted: usize,
}

impl SegmentCounts {
    /// Takes note of what is deleted in a version of the segment, and returns how many that are. `None` for a version older
    /// than one that is known.
    pub(super) fn note_deleted(&self, reader: &SegmentReader) -> Option<usize> {
        let mut known = self.0.lock();
        let deleted = reader.num_deleted_docs() as usize;
        let missing = deleted.checked_sub(known.deleted.len())?;
        if missing > 0 {
            let alive = known.alive.take();
            let was_alive = |doc: &DocId| alive.as_ref().is_none_or(|alive| alive.is_alive(*doc));
            let newly = (0..reader.max_doc()).filter(|doc| reader.is_deleted(*doc) && was_alive(doc));
            known.deleted.extend(newly.take(missing));
            known.alive = reader.alive_bitset().cloned();
        }
        Some(deleted)
    }

    /// How many nodes of the segment have a word, by marking, without those of these documents, in ascending order.
    pub(super) fn of_word(
        &self,
        segment: &Segment,
        word: (TextField, &TermInfo),
        replaced: &[DocId],
    ) -> Result<MarkingCounts, SearchError> {
        let counts = self.of_indexed(segment, word)?;
        without(counts, segment, word, replaced)
    }

    fn of_indexed(
        &self,
        segment: &Segment,
        (name, info): (TextField, &TermInfo),
    ) -> Result<MarkingCounts, SearchError> {
        if let Some(group) = segment.lengths()?.only_group.filter(|_| segment.deleted == 0) {
            return Ok(MarkingCounts::of_group(group, u64::from(info.doc_freq)));
        }
        if info.doc_freq < FROM {
            return count(segment, (name, info));
        }
        self.of_common_word(segment, (name, info))
    }

    fn of_common_word(
        &self,
        segment: &Segment,
        (name, info): (TextField, &TermInfo),
    ) -> Result<MarkingCounts, SearchError> {
        let key = (name, info.postings_range.start);
        let known = {
            let state = self.0.lock();
            state.words.get(&key).and_then(|word| {
                // None if what is known is that of a newer version.
                let deleted = state.deleted.get(word.deleted..segment.deleted)?;
                Some((word.counts, deleted.to_vec()))
            })
        };
        let counts = match known {
            Some((counts, deleted)) if deleted.is_empty() => return Ok(counts),
            Some((counts, mut deleted)) if deleted.len() * LOOK_UP < info.doc_freq as usize => {
                deleted.sort_unstable();
                without(counts, segment, (name, info), &deleted)?
            }
            Some(_) | None => count(segment, (name, info))?,
        };
        let mut state = self.0.lock();
        let is_older = state
            .words
            .get(&key)
            .is_none_or(|word| word.deleted < segment.deleted);
        if is_older {
            if state.words.len() >= MOST_WORDS {
                state.words.clear();
            }
            let deleted = segment.deleted;
            state.words.insert(key, WordCounts { counts, deleted });
        }
        Ok(counts)
    }
}

/// Counts the documents with a word that are not deleted.
fn count(segment: &Segment, (name, info): (TextField, &TermInfo)) -> Result<MarkingCounts, SearchError> {
    let words = segment.words(name);
    let mut counts = MarkingCounts::default();
    let mut docs = words.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    let mut doc = docs.doc();
    while doc != TERMINATED {
        if !segment.reader.is_deleted(doc) {
            counts.add(segment.class(doc), 1);
        }
        doc = docs.advance();
    }
    Ok(counts)
}

/// The counts without those of these documents, in ascending order, that have the word.
fn without(
    mut counts: MarkingCounts,
    segment: &Segment,
    (name, info): (TextField, &TermInfo),
    gone: &[DocId],
) -> Result<MarkingCounts, SearchError> {
    if gone.is_empty() {
        return Ok(counts);
    }
    let words = segment.words(name);
    let mut docs = words.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    for &doc in gone {
        if docs.doc() < doc {
            docs.seek(doc);
        }
        if docs.doc() == doc {
            counts.subtract(segment.class(doc), 1);
        }
    }
    Ok(counts)
}

/// Adds up the lengths of a segment's nodes, in the rounded form in which the text index keeps them.
pub(in crate::search) fn lengths(segment: &Segment, fields: &Fields) -> Result<Lengths, SearchError> {
    let reader = &segment.reader;
    let (titles, bodies) = (
        reader.get_fieldnorms_reader(fields.title)?,
        reader.get_fieldnorms_reader(fields.body)?,
    );
    let (mut lengths, mut groups) = (Lengths::default(), 0u32);
    let mut classes = [0u64; AT_ONCE];
    for start in (0..reader.max_doc()).step_by(AT_ONCE) {
        let docs = start..reader.max_doc().min(start + AT_ONCE as DocId);
        let Some(classes) = classes.get_mut(..docs.len()) else {
            continue;
        };
        segment.read_classes(start, classes);
        for (doc, class) in docs.zip(classes) {
            let Some((class, group)) = u8::try_from(*class)
                .ok()
                .and_then(|class| Some((class, group_of(class)?)))
            else {
                continue;
            };
            groups |= 1 << group;
            if !reader.is_deleted(doc) {
                lengths.title.add(class, u64::from(titles.fieldnorm(doc)));
                lengths.body.add(class, u64::from(bodies.fieldnorm(doc)));
            }
        }
    }
    lengths.only_group = groups.is_power_of_two().then(|| groups.trailing_zeros() as usize);
    Ok(lengths)
}

/// Adds up the lengths of some of them.
pub(super) fn lengths_of(segment: &Segment, fields: &Fields, docs: &[DocId]) -> Result<Lengths, SearchError> {
    let reader = &segment.reader;
    let (titles, bodies) = (
        reader.get_fieldnorms_reader(fields.title)?,
        reader.get_fieldnorms_reader(fields.body)?,
    );
    let mut lengths = Lengths::default();
    for &doc in docs {
        let class = segment.class(doc);
        lengths.title.add(class, u64::from(titles.fieldnorm(doc)));
        lengths.body.add(class, u64::from(bodies.fieldnorm(doc)));
    }
    Ok(lengths)
}
