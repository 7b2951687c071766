//! The best documents of a segment for a query of several words: BM25 with the MaxScore rule.
//!
//! Documents are taken in windows. The scores of the words that decide are summed up list by list, and only the
//! documents that have such a word are looked at. Words that even together cannot lift a document over the threshold are
//! looked up only for documents that are near it (Turtle and Flood, "Query evaluation: strategies and optimizations",
//! Information Processing and Management 31, 1995), unless that would be most of them. The result is the same as that of
//! adding up all lists.

use std::ops::Range;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, InvertedIndexReader, SegmentReader};

use super::term_weight::TermWeight;
use crate::search::error::SearchError;

/// Documents in the first window and in the largest one. Each window is twice as long as the one before.
const FIRST_WINDOW: DocId = 4096;
const LARGEST_WINDOW: DocId = 16_384;
/// Documents of a block of postings, at most.
const BLOCK: usize = 128;
/// Successive documents of a window whose sums are compared together: one cache line.
const GROUP: usize = 16;
/// Share of the threshold up to which words are looked up rather than summed up. Above, most documents with one of the
/// other words would be near enough to the threshold to be looked up.
const LOOKED_UP: f32 = 0.6;
/// How many documents are summed up in the time that one is looked up.
const TIMES: u64 = 3;
/// What sums of the same numbers in another order may differ by.
const ROUNDING: f32 = 1e-5;

/// A word in one field of a segment, with its weight in the whole index.
pub(super) struct ScoredTerm<'a> {
    pub(super) field: Field,
    pub(super) terms: &'a InvertedIndexReader,
    pub(in crate::search) info: &'a TermInfo,
    pub(in crate::search) weight: &'a TermWeight,
    /// A bound on what the word adds to a score.
    pub(in crate::search) most: f32,
}

/// The documents of a segment that have a word in one field.
struct List<'a> {
    postings: BlockSegmentPostings,
    norms: FieldNormReader,
    weight: &'a TermWeight,
    /// A bound on what the word adds to a score.
    most: f32,
    /// Position in the current block.
    at: usize,
}

impl<'a> List<'a> {
    fn open(segment: &SegmentReader, word: &ScoredTerm<'a>) -> Result<Self, SearchError> {
        let with_freqs = IndexRecordOption::WithFreqs;
        Ok(List {
            postings: word
                .terms
                .read_block_postings_from_terminfo(word.info, with_freqs)?,
            norms: segment.get_fieldnorms_reader(word.field)?,
            most: word.most,
            weight: word.weight,
            at: 0,
        })
    }

    /// The first document that has not been added up.
    fn next(&self) -> Option<DocId> {
        self.postings.docs().get(self.at).copied()
    }

    /// Leaves out what has not been added up before `start`.
    fn skip_to(&mut self, start: DocId) {
        if self.next().is_some_and(|next| next < start) {
            self.at = self.postings.seek(start);
        }
    }

    /// Adds the scores of all documents before `end` to their sums in a window that begins with `start`.
    fn add_up_to(&mut self, start: DocId, end: DocId, window: &mut Window) {
        loop {
            let docs = self.postings.docs();
            let (all, behind) = (docs.len(), docs.partition_point(|doc| *doc < end));
            let read = self.at..behind;
            let docs = docs.get(read.clone()).unwrap_or_default();
            let freqs = self.postings.freqs().get(read).unwrap_or_default();
            // In two steps, so that one score is not waited for while the next is computed.
            let mut scores = [0.0; BLOCK];
            for ((score, &doc), &freq) in scores.iter_mut().zip(docs).zip(freqs) {
                *score = self.weight.score(self.norms.fieldnorm_id(doc), freq);
            }
            for (&doc, &score) in docs.iter().zip(&scores) {
                window.add((doc - start) as usize, score);
            }
            self.at = behind;
            if behind < all || all == 0 {
                return;
            }
            self.postings.advance();
            self.at = 0;
        }
    }

    /// What the word adds to a document's score. The documents asked for must ascend.
    fn score(&mut self, doc: DocId) -> f32 {
        let place = self.postings.seek(doc);
        if place < self.postings.block_len() && self.postings.doc(place) == doc {
            let freq = self.postings.freq(place);
            return self.weight.score(self.norms.fieldnorm_id(doc), freq);
        }
        0.0
    }
}

/// What a word adds to the best of its documents, replaced ones included, before it is rounded.
pub(in crate::search) fn highest(segment: &SegmentReader, word: &ScoredTerm<'_>) -> Result<f32, SearchError> {
    let mut list = List::open(segment, word)?;
    let mut highest = 0f32;
    while !list.postings.docs().is_empty() {
        let docs = list.postings.docs().iter().zip(list.postings.freqs());
        let scores = docs.map(|(&doc, &freq)| list.weight.exact_score(list.norms.fieldnorm_id(doc), freq));
        highest = scores.fold(highest, f32::max);
        list.postings.advance();
    }
    Ok(highest)
}

/// Sums of scores of successive documents.
struct Window {
    sums: Vec<[f32; GROUP]>,
    /// The groups to which something was added.
    met: Vec<bool>,
}

impl Window {
    fn new(docs: usize) -> Self {
        let groups = docs.div_ceil(GROUP);
        Window {
            sums: vec![[0.0; GROUP]; groups],
            met: vec![false; groups],
        }
    }

    #[inline]
    fn add(&mut self, place: usize, score: f32) {
        let group = place / GROUP;
        if let (Some(sums), Some(met)) = (self.sums.get_mut(group), self.met.get_mut(group)) {
            sums[place % GROUP] += score;
            *met = true;
        }
    }

    /// Passes the places with sums above zero that are no less than `least`, in ascending order, with their sums, to
    /// `each`, which returns the new least one. All sums are zero afterwards.
    #[inline]
    fn drain(&mut self, mut least: f32, mut each: impl FnMut(usize, f32) -> f32) {
        for (group, (sums, met)) in self.sums.iter_mut().zip(&mut self.met).enumerate() {
            if !std::mem::take(met) {
                continue;
            }
            let reaches = |sum: f32, least: f32| sum >= least.max(f32::MIN_POSITIVE);
            // Most groups have no such sum, which is found out without a branch for each.
            if sums.iter().fold(false, |any, sum| any | reaches(*sum, least)) {
                for (place, sum) in sums.iter().enumerate() {
                    if reaches(*sum, least) {
                        least = each(group * GROUP + place, *sum);
                    }
                }
            }
            sums.fill(0.0);
        }
    }
}

/// Passes those of these documents that score no less than the threshold, in ascending order, to `each`, which returns
/// the new threshold. The ranges must ascend.
pub(super) fn for_each_above(
    segment: &SegmentReader,
    words: &[ScoredTerm<'_>],
    docs: &[Range<DocId>],
    threshold: f32,
    each: &mut dyn FnMut(DocId, f32) -> f32,
) -> Result<(), SearchError> {
    let mut lists = words
        .iter()
        .map(|word| List::open(segment, word))
        .collect::<Result<Vec<_>, _>>()?;
    // Those that can add least come first, in a fixed order.
    lists.sort_by(|a, b| a.most.total_cmp(&b.most));
    let mut union = Union {
        bounds: bounds(&lists),
        lists,
        threshold,
        window: Window::new(LARGEST_WINDOW.min(segment.max_doc()) as usize),
    };
    docs.iter().for_each(|docs| union.look_through(docs, each));
    Ok(())
}

/// What is known of a list and those before it.
struct Bound {
    /// A bound on what they add together.
    most: f32,
    /// Number of documents in the list, and in all lists after it.
    docs: u64,
    after: u64,
}

fn bounds(lists: &[List<'_>]) -> Vec<Bound> {
    let docs = |list: &List<'_>| u64::from(list.postings.doc_freq());
    let mut after: u64 = lists.iter().map(docs).sum();
    let mut most = 0.0;
    let bound = |list: &List<'_>| {
        most += list.most;
        after -= docs(list);
        Bound {
            most,
            docs: docs(list),
            after,
        }
    };
    lists.iter().map(bound).collect()
}

/// A search through a segment.
struct Union<'a> {
    /// Those that can add least come first.
    lists: Vec<List<'a>>,
    bounds: Vec<Bound>,
    threshold: f32,
    window: Window,
}

impl Union<'_> {
    /// Number of lists, from the first on, that are looked up. It never falls, as the threshold doesn't.
    fn common(&self) -> usize {
        let mut common = self
            .bounds
            .partition_point(|bound| !reaches(bound.most, self.threshold));
        while let Some(last) = common.checked_sub(1).and_then(|last| self.bounds.get(last))
            && last.most > LOOKED_UP * self.threshold
            && last.docs <= TIMES * last.after
        {
            common -= 1;
        }
        common
    }

    fn look_through(&mut self, docs: &Range<DocId>, each: &mut dyn FnMut(DocId, f32) -> f32) {
        let (mut start, mut length) = (docs.start, FIRST_WINDOW);
        loop {
            let common = self.common();
            let Union {
                lists,
                bounds,
                threshold,
                window,
            } = self;
            let Some((common, deciding)) = lists.split_at_mut_checked(common) else {
                return;
            };
            deciding.iter_mut().for_each(|list| list.skip_to(start));
            // Nodes and passages are mostly written apart, so a list may begin far behind.
            let next = deciding.iter().filter_map(List::next).min();
            let Some(next) = next.filter(|next| *next < docs.end) else {
                return;
            };
            start = next.max(start);
            let end = docs.end.min(start.saturating_add(length));
            for list in deciding {
                list.add_up_to(start, end, window);
            }
            let rest = bounds
                .get(common.len().wrapping_sub(1))
                .map_or(0.0, |bound| bound.most);
            window.drain(least(*threshold, rest), |place, sum| {
                let doc = start + place as DocId;
                if let Some(score) = total(common, bounds, (doc, sum), *threshold) {
                    *threshold = each(doc, score);
                }
                least(*threshold, rest)
            });
            start = end;
            length = LARGEST_WINDOW.min(length * 2);
        }
    }
}

/// The whole score of a document that scores this much by the deciding words, unless it stays below the threshold.
fn total(common: &mut [List<'_>], bounds: &[Bound], (doc, sum): (DocId, f32), threshold: f32) -> Option<f32> {
    let mut score = sum;
    for (list, bound) in common.iter_mut().zip(bounds).rev() {
        if !reaches(score + bound.most, threshold) {
            return None;
        }
        score += list.score(doc);
    }
    (score >= threshold).then_some(score)
}

/// The least sum that can reach the threshold together with the rest.
fn least(threshold: f32, rest: f32) -> f32 {
    threshold - threshold.abs() * ROUNDING - rest
}

/// Whether an upper bound allows for a score that is not below the threshold.
fn reaches(bound: f32, threshold: f32) -> bool {
    bound * (1.0 + ROUNDING) >= threshold
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tantivy::collector::TopDocs;
    use tantivy::query::{Bm25Weight, BooleanQuery, BoostQuery, Occur, Query, TermQuery};
    use tantivy::schema::{Schema, TextFieldIndexing, TextOptions};
    use tantivy::{Index, Term, doc};
    use test_support::extent;

    use super::super::term_weight::ScoreGrid;
    use super::*;

    const BOOSTS: [f32; 4] = [1.0, 0.1, 1.7, 1.0];

    /// The best documents of all segments by the function under test, which gets so many parts of each segment.
    fn best(
        searcher: &tantivy::Searcher,
        words: &[(Term, TermWeight)],
        limit: usize,
        parts: usize,
    ) -> Vec<f32> {
        let mut scores: Vec<f32> = Vec::new();
        for segment in searcher.segment_readers() {
            let found: Vec<_> = words
                .iter()
                .filter_map(|(term, weight)| {
                    let terms = segment.inverted_index(term.field()).unwrap();
                    let info = terms.get_term_info(term).unwrap()?;
                    Some((terms, info, term.field(), weight))
                })
                .collect();
            let words: Vec<ScoredTerm<'_>> = found
                .iter()
                .map(|(terms, info, field, weight)| ScoredTerm {
                    field: *field,
                    terms,
                    info,
                    weight,
                    most: weight.max_score(),
                })
                .map(|word| ScoredTerm {
                    most: word.weight.bound(highest(segment, &word).unwrap()),
                    ..word
                })
                .collect();
            let part = segment.max_doc() as usize / parts + 1;
            let docs = |start| start..segment.max_doc().min(start + part as DocId);
            let docs: Vec<_> = (0..segment.max_doc()).step_by(part).map(docs).collect();
            let (even, odd): (Vec<_>, Vec<_>) = docs
                .into_iter()
                .partition(|docs| (docs.start as usize / part).is_multiple_of(2));
            for docs in [even, odd] {
                let threshold = scores.get(limit - 1).copied().unwrap_or(f32::MIN);
                for_each_above(segment, &words, &docs, threshold, &mut |doc, score| {
                    assert!(docs.iter().any(|docs| docs.contains(&doc)));
                    let place = scores.partition_point(|other| *other >= score);
                    scores.insert(place, score);
                    scores.truncate(limit);
                    scores.get(limit - 1).copied().unwrap_or(f32::MIN)
                })
                .unwrap();
            }
        }
        scores
    }

    fn weight(searcher: &tantivy::Searcher, term: &Term, boost: f32) -> TermWeight {
        let weight = Bm25Weight::for_terms(searcher, std::slice::from_ref(term)).unwrap();
        TermWeight::new(weight.boost_by(boost), ScoreGrid::for_sums_up_to(64.0))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(extent(6, 48)))]

        /// Documents are drawn so that some words are in nearly all of them and some in few, over several windows.
        #[test]
        fn the_best_are_those_of_adding_up_all_lists(
            seed in any::<u64>(),
            docs in prop_oneof![1usize..400, 9_000usize..20_000],
            segments in 1usize..4,
            limit in 1usize..120,
            parts in 1usize..9,
        ) {
            let mut schema = Schema::builder();
            let words = TextFieldIndexing::default()
                .set_tokenizer("whitespace")
                .set_index_option(IndexRecordOption::WithFreqs);
            let field = schema.add_text_field("text", TextOptions::default().set_indexing_options(words));
            let index = Index::create_in_ram(schema.build());
            let mut writer = index.writer_with_num_threads(1, 15_000_000).unwrap();
            let mut state = seed | 1;
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            for number in 0..docs {
                let mut text = String::new();
                for (word, one_in) in [("a", 1), ("b", 3), ("c", 40), ("d", 700)] {
                    if next() % one_in == 0 {
                        (0..=next() % 4).for_each(|_| text.push_str(&format!("{word} ")));
                    }
                }
                (0..next() % 30).for_each(|_| text.push_str("filler "));
                writer.add_document(doc!(field => text)).unwrap();
                if number % (docs / segments).max(1) == 0 {
                    writer.commit().unwrap();
                }
            }
            writer.commit().unwrap();
            let searcher = index.reader().unwrap().searcher();

            let terms: BTreeMap<&str, f32> = ["a", "b", "c", "d"].into_iter().zip(BOOSTS).collect();
            let scored: Vec<(Term, TermWeight)> = terms
                .iter()
                .map(|(word, boost)| {
                    let term = Term::from_field_text(field, word);
                    (term.clone(), weight(&searcher, &term, *boost))
                })
                .collect();
            let clauses = terms.iter().map(|(word, boost)| {
                let term = TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs);
                let clause: Box<dyn Query> = Box::new(BoostQuery::new(Box::new(term), *boost));
                (Occur::Should, clause)
            });
            let query = BooleanQuery::new(clauses.collect());
            let expected = searcher.search(&query, &TopDocs::with_limit(limit).order_by_score()).unwrap();

            let found = best(&searcher, &scored, limit, parts);
            prop_assert_eq!(found.len(), expected.len());
            for (found, (expected, _)) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() <= 1e-4 * (1.0 + expected), "{} instead of {}", found, expected);
            }
        }
    }
}
