//! Documents that are searchable but not yet in the text index.
//!
//! A commit of the text index costs several milliseconds however small it is. Small writes therefore go into in-memory
//! maps that every search also queries, and reach the index together with later ones. Durability does not depend on
//! them: the stored checkpoint does not cover them, so after a crash the owner applies these documents again.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tantivy::fieldnorm::FieldNormReader;
use uuid::Uuid;

use super::KeyedDoc;
use super::networks::{END_KEY, FIRST_KEY, NetworkBook, network_of_key};
use super::replaced_docs::{ReplacedBySegment, ReplacedDocs};
use super::schema::{body_of, keys_of, title_of};
use super::segments::Segment;
use super::term_weight::TermWeight;
use crate::search::document::marking_counts::MarkingCounts;
use crate::search::document::{IndexDoc, KeyKind};
use crate::search::error::SearchError;
use crate::search::text::analyzer::tokenize;

/// A text field of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TextField {
    Title,
    Body,
    Passage,
}

/// The words of one field in all documents.
#[derive(Debug, Default)]
struct FieldPostings {
    /// For each word the documents that have it, and how often.
    postings: HashMap<String, Vec<(Slot, u32)>>,
    /// Number of words of each document, in the rounded form in which the text index keeps it.
    lengths: Vec<u8>,
    /// Number of words of all documents that are not outdated, so rounded.
    total: MarkingCounts,
}

impl FieldPostings {
    /// Adds the next document.
    fn add<'a>(&mut self, (slot, class): (Slot, u8), texts: impl Iterator<Item = &'a String>) {
        let mut length = 0;
        for word in texts.flat_map(|text| tokenize(text)) {
            length += 1;
            let postings = self.postings.entry(word).or_default();
            match postings.last_mut().filter(|(last, _)| *last == slot) {
                Some((_, count)) => *count += 1,
                None => postings.push((slot, 1)),
            }
        }
        let length = FieldNormReader::fieldnorm_to_id(length);
        self.lengths.push(length);
        self.total
            .add(class, u64::from(FieldNormReader::id_to_fieldnorm(length)));
    }

    fn with(&self, word: &str) -> &[(Slot, u32)] {
        self.postings.get(word).map_or(&[], Vec::as_slice)
    }

    /// No longer counts the words of a document.
    fn forget(&mut self, slot: Slot, class: u8) {
        let length = FieldNormReader::id_to_fieldnorm(self.length(slot));
        self.total.subtract(class, u64::from(length));
    }

    fn length(&self, slot: Slot) -> u8 {
        self.lengths.get(slot as usize).copied().unwrap_or_default()
    }
}

/// Position of a document in the order in which they came.
type Slot = u32;

/// A document that waits for its commit.
#[derive(Debug)]
struct MemtableDoc {
    doc: IndexDoc,
    class: u8,
    /// Whether the text index holds an older version.
    replaces: bool,
    /// Whether a newer version came before the commit.
    outdated: bool,
}

/// A query term and its weight.
pub(super) struct WeightedTerm {
    pub(in crate::search) word: String,
    pub(super) field: TextField,
    pub(in crate::search) weight: TermWeight,
}

/// The fresh documents of a workspace.
#[derive(Debug, Default)]
pub(in crate::search) struct Memtable {
    docs: Vec<MemtableDoc>,
    slots: HashMap<Uuid, Slot>,
    title: FieldPostings,
    body: FieldPostings,
    passage: FieldPostings,
    /// Those of which the text index holds an older version, in the order in which they came, and where that is.
    replaced: Vec<Uuid>,
    replaced_docs: ReplacedBySegment,
    keys: BTreeMap<String, Vec<(Slot, KeyKind)>>,
    /// Revision up to which the index is complete together with these documents.
    checkpoint: u64,
    since: Option<Instant>,
}

impl Memtable {
    pub(in crate::search) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn has_docs(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whether there is nothing to write, not even a newer checkpoint.
    pub(in crate::search) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.checkpoint == 0
    }

    pub(in crate::search) fn checkpoint(&self) -> u64 {
        self.checkpoint
    }

    pub(in crate::search) fn is_older_than(&self, age: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= age)
    }

    /// Adds a document, replacing any older version of it.
    pub(in crate::search) fn put(&mut self, doc: &IndexDoc, known: bool) {
        let Ok(slot) = Slot::try_from(self.docs.len()) else {
            return;
        };
        let older = self.slots.insert(doc.node_id, slot);
        let older = older.and_then(|slot| Some((slot, self.docs.get_mut(slot as usize)?)));
        if known && older.is_none() {
            self.replaced.push(doc.node_id);
        }
        let replaces = older.map_or(known, |(slot, older)| {
            older.outdated = true;
            for words in [&mut self.title, &mut self.body, &mut self.passage] {
                words.forget(slot, older.class);
            }
            older.replaces
        });
        let class = doc.class();
        let all = Some(doc).filter(|doc| !doc.is_removal());
        let (passage, shown) = (
            all.filter(|doc| doc.ends.is_some()),
            all.filter(|doc| doc.ends.is_none()),
        );
        self.passage
            .add((slot, class), passage.into_iter().map(|doc| &doc.body));
        self.title
            .add((slot, class), shown.into_iter().flat_map(title_of));
        self.body.add((slot, class), shown.into_iter().flat_map(body_of));
        for (key, kind) in shown.into_iter().flat_map(keys_of) {
            self.keys.entry(key).or_default().push((slot, kind));
        }
        self.docs.push(MemtableDoc {
            class,
            replaces,
            outdated: false,
            doc: doc.clone(),
        });
        self.since.get_or_insert_with(Instant::now);
    }

    pub(in crate::search) fn complete_up_to(&mut self, checkpoint: u64) {
        self.checkpoint = self.checkpoint.max(checkpoint);
        self.since.get_or_insert_with(Instant::now);
    }

    /// The documents in a fixed order, and whether each replaces an indexed one.
    pub(in crate::search) fn docs(&self) -> Vec<(&IndexDoc, bool)> {
        let current = self.docs.iter().filter(|fresh| !fresh.outdated);
        let mut docs: Vec<_> = current.map(|fresh| (&fresh.doc, fresh.replaces)).collect();
        docs.sort_unstable_by_key(|(doc, _)| doc.node_id);
        docs
    }

    /// Whether the text index's version of this node is outdated.
    pub(in crate::search) fn holds(&self, node: Uuid) -> bool {
        self.slots.contains_key(&node)
    }

    /// The documents of a segment that are outdated; `None` if no segment has any.
    pub(super) fn replaced_in(&self, segment: &Segment) -> Result<Option<Arc<ReplacedDocs>>, SearchError> {
        if self.replaced.is_empty() {
            return Ok(None);
        }
        self.replaced_docs.of(segment, &self.replaced).map(Some)
    }

    fn words(&self, field: TextField) -> &FieldPostings {
        match field {
            TextField::Title => &self.title,
            TextField::Body => &self.body,
            TextField::Passage => &self.passage,
        }
    }

    /// A document, unless there is a newer version of it.
    fn current(&self, slot: Slot) -> Option<&MemtableDoc> {
        self.docs.get(slot as usize).filter(|fresh| !fresh.outdated)
    }

    /// Number of words of a field in all nodes.
    pub(super) fn words_of(&self, field: TextField) -> MarkingCounts {
        self.words(field).total
    }

    /// Number of nodes that have the word in the field.
    pub(super) fn nodes_with(&self, field: TextField, word: &str) -> MarkingCounts {
        let mut counts = MarkingCounts::default();
        self.holders(field, word)
            .for_each(|(_, class)| counts.add(class, 1));
        counts
    }

    /// Whether any document has the word in the field.
    pub(super) fn has(&self, field: TextField, word: &str) -> bool {
        self.holders(field, word).next().is_some()
    }

    /// The documents that have the word in the field, with their classes.
    pub(super) fn holders(&self, field: TextField, word: &str) -> impl Iterator<Item = (Uuid, u8)> {
        let with = self.words(field).with(word).iter();
        with.filter_map(|(slot, _)| {
            let fresh = self.current(*slot)?;
            Some((fresh.doc.node_id, fresh.class))
        })
    }

    /// Every document that has one of the words, with its class and BM25 score.
    pub(super) fn scores(&self, terms: &[WeightedTerm]) -> impl Iterator<Item = (Uuid, u8, f32)> {
        let mut scores: HashMap<Slot, f32> = HashMap::new();
        for term in terms {
            let words = self.words(term.field);
            for (slot, count) in words.with(&term.word) {
                *scores.entry(*slot).or_default() += term.weight.score(words.length(*slot), *count);
            }
        }
        scores.into_iter().filter_map(|(slot, score)| {
            let fresh = self.current(slot)?;
            Some((fresh.doc.node_id, fresh.class, score))
        })
    }

    /// The documents that carry this canonical key.
    pub(in crate::search) fn with_key(&self, key: &str) -> impl Iterator<Item = KeyedDoc> {
        self.keys
            .get(key)
            .into_iter()
            .flatten()
            .filter_map(|(slot, kind)| {
                let fresh = self.current(*slot)?;
                Some(KeyedDoc {
                    node: fresh.doc.node_id,
                    kind: *kind,
                    class: fresh.class,
                })
            })
    }

    /// The keys from this one on, in order.
    pub(super) fn keys_from<'a>(&'a self, from: &str) -> impl Iterator<Item = &'a String> + use<'a> {
        let later = (Bound::Included(from), Bound::Unbounded);
        self.keys.range::<str, _>(later).map(|(key, _)| key)
    }

    /// The addresses and networks of the documents, by their slots.
    pub(super) fn networks(&self) -> NetworkBook {
        let keys = self
            .keys
            .range::<str, _>((Bound::Included(FIRST_KEY), Bound::Excluded(END_KEY)));
        let networks = keys.filter_map(|(key, carriers)| Some((network_of_key(key)?, carriers)));
        let entries = networks.flat_map(|(network, carriers)| {
            let named = carriers.iter().filter(|(_, kind)| *kind != KeyKind::Alias);
            named.filter_map(move |(slot, _)| Some((network, *slot, self.current(*slot)?.class)))
        });
        NetworkBook::of(entries)
    }

    /// The document in a slot and its class, unless there is a newer version of it.
    pub(super) fn node_at(&self, slot: Slot) -> Option<(Uuid, u8)> {
        let fresh = self.current(slot)?;
        Some((fresh.doc.node_id, fresh.class))
    }

    /// The documents with an identifier or name that starts with the prefix.
    pub(in crate::search) fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (Uuid, u8)> + 'a {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let keys = self.keys.range::<str, _>(from);
        let carriers = keys
            .take_while(move |(key, _)| key.starts_with(prefix))
            .flat_map(|(_, carriers)| carriers);
        carriers
            .filter(|(_, kind)| *kind != KeyKind::Alias)
            .filter_map(|(slot, _)| {
                let fresh = self.current(*slot)?;
                Some((fresh.doc.node_id, fresh.class))
            })
    }
}
