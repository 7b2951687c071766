//! Documents that are searchable but not yet in the text index.
//!
//! A commit of the text index costs several milliseconds however small it is. Small writes therefore go into in-memory
//! maps that every search also queries, and reach the index together with later ones. Durability does not depend on
//! them: the stored checkpoint does not cover them, so after a crash the owner applies these documents again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::analyzer::tokenize;
use super::document::{IndexDoc, KeyKind, class_of};
use super::keyword::Keyed;
use super::schema::keys_of;
use crate::domain::node::NodeStatus;

/// The usual BM25 constants, as in the text index.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// A text field of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextField {
    Title,
    Body,
}

/// Word counts of one field.
#[derive(Debug, Default)]
struct Words {
    counts: HashMap<String, u32>,
    total: u32,
}

impl Words {
    fn of<'a>(texts: impl Iterator<Item = &'a String>) -> Self {
        let mut words = Words::default();
        for word in texts.flat_map(|text| tokenize(text)) {
            *words.counts.entry(word).or_default() += 1;
            words.total += 1;
        }
        words
    }
}

/// A document with everything that a search needs.
#[derive(Debug)]
struct FreshDoc {
    doc: IndexDoc,
    class: u8,
    /// Whether the text index holds an older version.
    replaces: bool,
    title: Words,
    body: Words,
    keys: Vec<(String, KeyKind)>,
}

/// A query term and its weight.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) word: String,
    pub(super) field: TextField,
    /// Inverse document frequency times the term's weight in the query.
    pub(super) weight: f32,
    /// Mean length of the field.
    pub(super) mean_length: f32,
}

/// The fresh documents of a workspace.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    docs: HashMap<Uuid, FreshDoc>,
    /// Revision up to which the index is complete together with these documents.
    checkpoint: u64,
    since: Option<Instant>,
}

impl Fresh {
    pub(super) fn len(&self) -> usize {
        self.docs.len()
    }

    pub(super) fn has_docs(&self) -> bool {
        !self.docs.is_empty()
    }

    /// Whether there is nothing to write, not even a newer checkpoint.
    pub(super) fn is_empty(&self) -> bool {
        self.docs.is_empty() && self.checkpoint == 0
    }

    pub(super) fn checkpoint(&self) -> u64 {
        self.checkpoint
    }

    pub(super) fn is_older_than(&self, age: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= age)
    }

    /// Adds a document, replacing any older version of it.
    pub(super) fn put(&mut self, doc: &IndexDoc, known: bool) {
        let replaces = match self.docs.get(&doc.node_id) {
            Some(older) => older.replaces,
            None => known,
        };
        let shown = doc.status != NodeStatus::Merged;
        let (title, body) = if shown {
            let title = std::iter::once(&doc.name).chain(&doc.aliases);
            let body = std::iter::once(&doc.body).chain(&doc.identifiers);
            (Words::of(title), Words::of(body))
        } else {
            Default::default()
        };
        let fresh = FreshDoc {
            class: class_of(doc.node_type, doc.status, doc.tlp),
            replaces,
            title,
            body,
            keys: if shown { keys_of(doc) } else { Vec::new() },
            doc: doc.clone(),
        };
        self.docs.insert(doc.node_id, fresh);
        self.since.get_or_insert_with(Instant::now);
    }

    pub(super) fn complete_up_to(&mut self, checkpoint: u64) {
        self.checkpoint = self.checkpoint.max(checkpoint);
        self.since.get_or_insert_with(Instant::now);
    }

    /// The documents in a fixed order, and whether each replaces an indexed one.
    pub(super) fn docs(&self) -> Vec<(&IndexDoc, bool)> {
        let mut docs: Vec<_> = self
            .docs
            .values()
            .map(|fresh| (&fresh.doc, fresh.replaces))
            .collect();
        docs.sort_unstable_by_key(|(doc, _)| doc.node_id);
        docs
    }

    /// Whether the text index's version of this node is outdated.
    pub(super) fn holds(&self, node: Uuid) -> bool {
        self.docs.contains_key(&node)
    }

    /// Number of documents that have the word in the field.
    pub(super) fn doc_freq(&self, field: TextField, word: &str) -> usize {
        let docs = self.docs.values();
        docs.filter(|fresh| fresh.words(field).counts.contains_key(word))
            .count()
    }

    /// Every document that has one of the words, with its class and BM25 score.
    pub(super) fn scores(&self, terms: &[Term]) -> impl Iterator<Item = (Uuid, u8, f32)> {
        self.docs.values().filter_map(|fresh| {
            let score: f32 = terms.iter().map(|term| fresh.score(term)).sum();
            (score > 0.0).then_some((fresh.doc.node_id, fresh.class, score))
        })
    }

    /// The documents that carry this canonical key.
    pub(super) fn with_key<'a>(&'a self, key: &'a str) -> impl Iterator<Item = Keyed> + 'a {
        self.docs.values().filter_map(move |fresh| {
            let kinds = fresh
                .keys
                .iter()
                .filter(|(own, _)| own == key)
                .map(|(_, kind)| *kind);
            Some(Keyed {
                node: fresh.doc.node_id,
                kind: kinds.max()?,
                class: fresh.class,
            })
        })
    }

    /// The documents with an identifier or name that starts with the prefix.
    pub(super) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (Uuid, u8)> + 'a {
        let begins =
            move |(key, kind): &(String, KeyKind)| *kind != KeyKind::Alias && key.starts_with(prefix);
        let docs = self
            .docs
            .values()
            .filter(move |fresh| fresh.keys.iter().any(begins));
        docs.map(|fresh| (fresh.doc.node_id, fresh.class))
    }
}

impl FreshDoc {
    fn words(&self, field: TextField) -> &Words {
        match field {
            TextField::Title => &self.title,
            TextField::Body => &self.body,
        }
    }

    fn score(&self, term: &Term) -> f32 {
        let words = self.words(term.field);
        let Some(count) = words.counts.get(&term.word) else {
            return 0.0;
        };
        let (count, length) = (*count as f32, words.total as f32);
        let norm = K1 * (1.0 - B + B * length / term.mean_length.max(1.0));
        term.weight * count * (1.0 + K1) / (count + norm)
    }
}

/// Inverse document frequency as defined by BM25.
pub(super) fn idf(docs: usize, with_word: usize) -> f32 {
    let (docs, with_word) = (docs as f32, (with_word as f32).min(docs as f32));
    (1.0 + (docs - with_word + 0.5) / (with_word + 0.5)).ln()
}
