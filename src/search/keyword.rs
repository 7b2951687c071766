//! The keyword leg: BM25 over title and body of the nodes or over the passages, and exact look-up of canonical keys.
//!
//! Rows the caller may not see are skipped during collection, so `limit` counts visible rows only and raises the
//! threshold only with them. How common words are, how many nodes there are and how long, is counted over the nodes that the
//! caller may see, whatever it asks of results, so that what is hidden changes no score. Passages are weighed by the same
//! numbers.

mod holders;
pub(super) mod memtable;
pub(super) mod networks;
pub(super) mod node_set_query;
mod partitions;
pub(super) mod query_weight;
mod replaced_docs;
pub(super) mod schema;
mod score_bounds;
mod segment_counts;
pub(super) mod segments;
mod shared;
mod term_weight;
pub(super) mod top;
mod union;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use tantivy::postings::TermInfo;
use tantivy::query::Bm25Weight;
use tantivy::schema::Field;
use tantivy::{DocId, Term};
use uuid::Uuid;

use self::memtable::{Memtable, TextField};
use self::partitions::{PartitionPolicy, Partitions};
use self::schema::{Fields, is_stix_id};
use self::segments::{Segment, Segments};
use self::term_weight::{ScoreGrid, TermWeight};
use self::top::Top;
use self::union::ScoredTerm;
use super::document::facts::Facts;
use super::document::marking_counts::VisibleGroups;
use super::document::{Candidate, CompiledFilter, Ends, KeyKind, RowFilter};
use super::error::SearchError;
use super::text::analyzer::tokenize;
use super::text::canonical_key;
use super::vectors::table::{Table, TableEntry};
use crate::domain::ids::WorkspaceIds;

/// Length of a usual passage, in words.
const PASSAGE_WORDS: f32 = 20.0;
/// Weight of a word from a name that is only mentioned.
const MENTION_WEIGHT: f32 = 0.1;
/// Maximum number of distinct query words; longer queries keep the rarest.
const MAX_TERMS: usize = 48;
/// Maximum number of nodes per key; only very common names are shared by more than a handful. Of more, those with the
/// strongest kind are kept.
const MAX_PER_KEY: usize = 100;
/// Nodes that are met before those with the lowest ids are taken.
const MAX_LOOKED_AT: usize = 10_000;

/// A segment, and what a search must know besides.
struct SegmentView<'a> {
    segment: &'a Segment,
    /// Documents newer than the segment.
    fresh: &'a Memtable,
    table: &'a Table,
}

/// A document of a segment.
struct SegmentDoc<'a> {
    rows: &'a SegmentView<'a>,
    doc: DocId,
}

impl Candidate for SegmentDoc<'_> {
    fn node(&self) -> Uuid {
        self.rows.segment.node(self.doc)
    }

    fn ends(&self) -> Option<Ends> {
        self.rows.table.ends(self.node())
    }

    fn classes_of_ends(&self) -> Option<[u8; 2]> {
        self.rows.table.classes_of_ends(self.node())
    }

    fn facts(&self) -> Option<Facts> {
        Some(self.rows.table.head(self.node())?.facts)
    }
}

impl SegmentView<'_> {
    fn shows(&self, doc: DocId, allowed: &impl RowFilter) -> bool {
        !self.segment.reader.is_deleted(doc)
            && allowed.row(self.segment.class(doc), &SegmentDoc { rows: self, doc })
            && !(self.fresh.has_docs() && self.fresh.holds(self.segment.node(doc)))
    }
}

/// A word in one field of the text index.
struct Word {
    name: TextField,
    field: Field,
    /// Where it is in each segment.
    places: Vec<Option<TermInfo>>,
    weight: TermWeight,
    /// Mean number of words in the field among the nodes of these groups, which the weight was computed with.
    mean_length: f32,
    groups: VisibleGroups,
}

/// A word of the query in one field, before its weight is rounded.
struct AskedWord<'a> {
    name: TextField,
    text: &'a str,
    places: Vec<Option<TermInfo>>,
    weight: Bm25Weight,
    mean_length: f32,
}

impl Word {
    /// The word in a segment; `None` if it is in none of its documents.
    fn in_segment<'a>(
        &'a self,
        segment: &'a Segment,
        number: usize,
    ) -> Result<Option<ScoredTerm<'a>>, SearchError> {
        let Some(info) = self.places.get(number).and_then(Option::as_ref) else {
            return Ok(None);
        };
        let word = ScoredTerm {
            field: self.field,
            terms: segment.words(self.name),
            info,
            weight: &self.weight,
            most: self.weight.max_score(),
        };
        let peaks = &segment.peaks;
        let most = peaks.bound(&segment.reader, self.name, (self.groups, self.mean_length), &word)?;
        let most = self.weight.bound(most);
        Ok(Some(ScoredTerm { most, ..word }))
    }
}

/// A document that carries a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyedDoc {
    pub(super) node: Uuid,
    pub(super) kind: KeyKind,
    pub(super) class: u8,
}

/// What a search by words looks through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextScope {
    Nodes,
    /// The names of nodes alone.
    Names,
    Passages,
}

impl TextScope {
    fn fields(self) -> &'static [TextField] {
        match self {
            TextScope::Nodes => &[TextField::Title, TextField::Body],
            TextScope::Names => &[TextField::Title],
            TextScope::Passages => &[TextField::Passage],
        }
    }
}

/// A snapshot of the text index.
pub(super) struct Keywords<'a> {
    pub(super) segments: &'a Segments,
    pub(super) fields: &'a Fields,
    pub(super) fresh: &'a Memtable,
    pub(super) table: &'a Table,
    pub(super) ids: WorkspaceIds,
    /// The nodes over which words are counted: those that the caller may see.
    pub(super) groups: VisibleGroups,
}

impl<'a> Keywords<'a> {
    fn rows(&self) -> impl Iterator<Item = SegmentView<'a>> {
        self.segments.iter().map(|segment| SegmentView {
            segment,
            fresh: self.fresh,
            table: self.table,
        })
    }

    fn table_entry(&self, node: Uuid) -> TableEntry<'a> {
        TableEntry {
            table: self.table,
            node,
        }
    }

    /// The best visible nodes or passages by BM25. Words of names that the query only mentions get a low weight.
    pub(super) fn best(
        &self,
        texts: TextScope,
        words: &[(String, f32)],
        allowed: &impl RowFilter,
        limit: usize,
    ) -> Result<Vec<(Uuid, f32)>, SearchError> {
        let mut top = Top::new(limit);
        let (scored, fresh) = self.score_terms(texts, words)?;
        for (node, class, score) in self.fresh.scores(&fresh) {
            if allowed.row(class, &self.table_entry(node)) {
                top.offer(node, score);
            }
        }
        let segments: Vec<(SegmentView<'_>, Vec<ScoredTerm<'_>>)> = self
            .rows()
            .enumerate()
            .map(|(number, rows)| {
                let words = scored.iter();
                let words = words.filter_map(|word| word.in_segment(rows.segment, number).transpose());
                Ok((rows, words.collect::<Result<_, _>>()?))
            })
            .collect::<Result<_, SearchError>>()?;
        let sizes: Vec<DocId> = segments
            .iter()
            .map(|(rows, _)| rows.segment.reader.max_doc())
            .collect();
        let top = Partitions::of(&sizes, PartitionPolicy::USUAL).best(top, |spans, mut top| {
            for span in spans {
                let Some((rows, words)) = segments.get(span.segment) else {
                    continue;
                };
                let reader = &rows.segment.reader;
                union::for_each_above(reader, words, &span.docs, top.threshold(), &mut |doc, score| {
                    if rows.shows(doc, allowed) {
                        top.offer(rows.segment.node(doc), score);
                    }
                    top.threshold()
                })?;
            }
            Ok::<_, SearchError>(top)
        })?;
        Ok(top.into_sorted())
    }

    /// The words of the query and their weights.
    pub(super) fn weigh_terms(
        &self,
        query: &str,
        mentions: &HashSet<String>,
    ) -> Result<Vec<(String, f32)>, SearchError> {
        let weight = |(word, count): (String, usize)| {
            let repeated = 1.0 + (count as f32).ln();
            let mentioned = mentions.contains(&word);
            (
                word,
                if mentioned {
                    MENTION_WEIGHT * repeated
                } else {
                    repeated
                },
            )
        };
        Ok(self.terms(query)?.into_iter().map(weight).collect())
    }

    /// Each word in each text field, weighted by its frequency in the text index and beside it: once for either.
    fn score_terms(
        &self,
        texts: TextScope,
        words: &[(String, f32)],
    ) -> Result<(Vec<Word>, Vec<memtable::WeightedTerm>), SearchError> {
        let asked = self.asked_words(texts, words)?;
        let most = asked.iter().map(|word| word.weight.max_score()).sum();
        let grid = ScoreGrid::for_sums_up_to(most);
        let (mut indexed, mut fresh) = (Vec::with_capacity(asked.len()), Vec::new());
        for word in asked {
            let weight = TermWeight::new(word.weight, grid);
            if self.fresh.has(word.name, word.text) {
                fresh.push(memtable::WeightedTerm {
                    word: word.text.to_owned(),
                    field: word.name,
                    weight: weight.clone(),
                });
            }
            indexed.push(Word {
                name: word.name,
                field: self.field(word.name),
                places: word.places,
                weight,
                mean_length: word.mean_length,
                groups: self.groups,
            });
        }
        Ok((indexed, fresh))
    }

    /// The words that any node the caller may see has, in each text field. In passages all are looked for.
    fn asked_words<'w>(
        &self,
        texts: TextScope,
        words: &'w [(String, f32)],
    ) -> Result<Vec<AskedWord<'w>>, SearchError> {
        let nodes = self.table.nodes(self.groups).max(1);
        let mut asked = Vec::with_capacity(texts.fields().len() * words.len());
        for name in texts.fields() {
            let mean_length = self.mean_length(*name, nodes)?;
            for (text, times) in words {
                let places = self.places(*name, text)?;
                let found = match name {
                    TextField::Title | TextField::Body => self.nodes_with(*name, text, &places)?,
                    TextField::Passage => {
                        let in_bodies = self.places(TextField::Body, text)?;
                        self.nodes_with(TextField::Body, text, &in_bodies)?.max(1)
                    }
                };
                if found == 0 {
                    continue;
                }
                let weight = Bm25Weight::for_one_term_without_explain(found.min(nodes), nodes, mean_length);
                asked.push(AskedWord {
                    name: *name,
                    text,
                    places,
                    weight: weight.boost_by(*times),
                    mean_length,
                });
            }
        }
        Ok(asked)
    }

    /// Where a word is in each segment.
    fn places(&self, name: TextField, word: &str) -> Result<Vec<Option<TermInfo>>, SearchError> {
        let term = Term::from_field_text(self.field(name), word);
        let place = |segment: &Segment| segment.words(name).get_term_info(&term);
        let places = self.segments.iter().map(place).collect::<Result<_, _>>();
        Ok(places?)
    }

    fn field(&self, name: TextField) -> Field {
        match name {
            TextField::Title => self.fields.title,
            TextField::Body => self.fields.body,
            TextField::Passage => self.fields.passage,
        }
    }

    /// Number of nodes that the caller may see with a word that is at these places, or in memory.
    fn nodes_with(
        &self,
        name: TextField,
        word: &str,
        places: &[Option<TermInfo>],
    ) -> Result<u64, SearchError> {
        let mut counts = self.fresh.nodes_with(name, word);
        for (segment, place) in self.segments.iter().zip(places) {
            if let Some(info) = place {
                let replaced = self.fresh.replaced_in(segment)?;
                let replaced = replaced
                    .as_ref()
                    .map_or(&[][..], |replaced| replaced.docs.as_slice());
                counts = counts.and(segment.counts.of_word(segment, (name, info), replaced)?);
            }
        }
        Ok(counts.seen_by(self.groups))
    }

    /// Mean number of words in a field of so many nodes, all that the caller may see.
    fn mean_length(&self, name: TextField, nodes: u64) -> Result<f32, SearchError> {
        if name == TextField::Passage {
            return Ok(PASSAGE_WORDS);
        }
        let mut words = self.fresh.words_of(name);
        for segment in self.segments.iter() {
            let mut own = segment.lengths()?.of(name);
            if let Some(replaced) = self.fresh.replaced_in(segment)? {
                own = own.without(replaced.lengths.of(name));
            }
            words = words.and(own);
        }
        Ok(words.seen_by(self.groups) as f32 / nodes as f32)
    }

    /// The distinct words of the query with their counts; if there are too many, the rarest.
    fn terms(&self, query: &str) -> Result<Vec<(String, usize)>, SearchError> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for word in tokenize(query) {
            *counts.entry(word).or_default() += 1;
        }
        let mut terms: Vec<(String, usize)> = counts.into_iter().collect();
        if terms.len() > MAX_TERMS {
            let mut ranked = Vec::with_capacity(terms.len());
            for (word, count) in terms {
                let places = self.places(TextField::Body, &word)?;
                let found = self.nodes_with(TextField::Body, &word, &places)?;
                ranked.push((found, word, count));
            }
            ranked.sort_unstable();
            terms = ranked
                .into_iter()
                .filter(|(found, ..)| *found > 0)
                .take(MAX_TERMS)
                .map(|(_, w, c)| (w, c))
                .collect();
        }
        // A fixed order keeps the sums, and so the ranking, deterministic.
        terms.sort_unstable();
        Ok(terms)
    }

    /// The node whose own id follows from this STIX id.
    fn of_stix_id(&self, text: &str) -> Option<KeyedDoc> {
        let id = text.trim().to_ascii_lowercase();
        if !is_stix_id(&id) {
            return None;
        }
        let node = self.ids.node(&id);
        Some(KeyedDoc {
            node,
            kind: KeyKind::Identifier,
            class: self.table.class(node)?,
        })
    }

    /// The visible nodes of which this text is a key, in any spelling, each with its strongest kind.
    pub(super) fn with_key(
        &self,
        text: &str,
        allowed: &CompiledFilter,
    ) -> Result<Vec<KeyedDoc>, SearchError> {
        let key = canonical_key(text);
        if key.is_empty() {
            return Ok(Vec::new());
        }
        let fresh = self.fresh.with_key(&key);
        let mut found: Vec<KeyedDoc> = fresh
            .chain(self.of_stix_id(text))
            .filter(|found| allowed.row(found.class, &self.table_entry(found.node)))
            .take(MAX_LOOKED_AT)
            .collect();
        for rows in self.rows() {
            let Some(info) = rows.segment.keys.terms().get(&key)? else {
                continue;
            };
            rows.segment.carriers(&info, |doc, kind| {
                if rows.shows(doc, allowed) {
                    found.push(KeyedDoc {
                        node: rows.segment.node(doc),
                        kind,
                        class: rows.segment.class(doc),
                    });
                }
                found.len() < MAX_LOOKED_AT
            })?;
        }
        // By id, since in which order documents are met depends on hidden ones, too.
        found.sort_unstable_by_key(|found| (Reverse(found.kind), found.node));
        found.truncate(MAX_PER_KEY);
        Ok(found)
    }

    /// At most `limit` visible nodes with an identifier or name that starts with this key.
    pub(super) fn with_prefix(
        &self,
        prefix: &str,
        allowed: &CompiledFilter,
        limit: usize,
    ) -> Result<Vec<Uuid>, SearchError> {
        let fresh = self.fresh.with_prefix(prefix);
        let mut found: BTreeSet<Uuid> = fresh
            .filter(|(node, class)| allowed.row(*class, &self.table_entry(*node)))
            .map(|(node, _)| node)
            .take(MAX_LOOKED_AT)
            .collect();
        for rows in self.rows() {
            let mut keys = rows.segment.keys.terms().range().ge(prefix).into_stream()?;
            while found.len() < MAX_LOOKED_AT && keys.advance() && keys.key().starts_with(prefix.as_bytes()) {
                rows.segment.carriers(keys.value(), |doc, kind| {
                    if kind != KeyKind::Alias && rows.shows(doc, allowed) {
                        found.insert(rows.segment.node(doc));
                    }
                    found.len() < MAX_LOOKED_AT
                })?;
            }
        }
        // By id, since in which order documents are met depends on hidden ones, too.
        Ok(found.into_iter().take(limit).collect())
    }
}
