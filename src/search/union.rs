//! The best documents of a segment for a query of several words: BM25 with the MaxScore rule.
//!
//! Documents are taken in windows. The scores of the words that decide are summed up list by list, and only the
//! documents that have such a word are looked at. The words that are too common to lift a document over the threshold
//! on their own are looked up only for documents that are near it (Turtle and Flood, "Query evaluation: strategies and
//! optimizations", Information Processing and Management 31, 1995). The result is the same as that of adding up all
//! lists.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::query::Bm25Weight;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, InvertedIndexReader, SegmentReader};

use super::error::SearchError;

/// Documents in the first window and in the largest one. Each window is twice as long as the one before.
const FIRST_WINDOW: DocId = 4096;
const LARGEST_WINDOW: DocId = 16_384;
/// Documents of a window in one word of its bit set.
const BITS: usize = u64::BITS as usize;
/// What sums of the same numbers in another order may differ by.
const ROUNDING: f32 = 1e-5;

/// A word in one field of a segment, with its weight in the whole index.
pub(super) struct Scored<'a> {
    pub(super) field: Field,
    pub(super) terms: &'a InvertedIndexReader,
    pub(super) info: &'a TermInfo,
    pub(super) weight: &'a Bm25Weight,
    /// A bound on what the word adds to a score.
    pub(super) most: f32,
}

/// The documents of a segment that have a word in one field.
struct List<'a> {
    postings: BlockSegmentPostings,
    norms: FieldNormReader,
    weight: &'a Bm25Weight,
    /// A bound on what the word adds to a score.
    most: f32,
    /// Position in the current block.
    at: usize,
}

impl<'a> List<'a> {
    fn open(segment: &SegmentReader, word: &Scored<'a>) -> Result<Self, SearchError> {
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

    /// Adds the scores of all documents before `end` to their sums in a window that begins with `start`.
    fn add_up_to(&mut self, start: DocId, end: DocId, window: &mut Window) {
        loop {
            let docs = self.postings.docs();
            let (all, behind) = (docs.len(), docs.partition_point(|doc| *doc < end));
            let read = self.at..behind;
            let docs = docs.get(read.clone()).unwrap_or_default();
            let freqs = self.postings.freqs().get(read).unwrap_or_default();
            for (&doc, &freq) in docs.iter().zip(freqs) {
                let score = self.weight.score(self.norms.fieldnorm_id(doc), freq);
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

/// What a word adds to the best of its documents, replaced ones included.
pub(super) fn highest(segment: &SegmentReader, word: &Scored<'_>) -> Result<f32, SearchError> {
    let mut list = List::open(segment, word)?;
    let mut highest = 0f32;
    while !list.postings.docs().is_empty() {
        let docs = list.postings.docs().iter().zip(list.postings.freqs());
        let scores = docs.map(|(&doc, &freq)| list.weight.score(list.norms.fieldnorm_id(doc), freq));
        highest = scores.fold(highest, f32::max);
        list.postings.advance();
    }
    Ok(highest)
}

/// Sums of scores of successive documents.
struct Window {
    sums: Vec<f32>,
    /// One bit for each sum, set where something was added.
    met: Vec<u64>,
}

impl Window {
    fn new(docs: usize) -> Self {
        Window {
            sums: vec![0.0; docs],
            met: vec![0; docs.div_ceil(BITS)],
        }
    }

    #[inline]
    fn add(&mut self, place: usize, score: f32) {
        if let (Some(sum), Some(word)) = (self.sums.get_mut(place), self.met.get_mut(place / BITS)) {
            *sum += score;
            *word |= 1 << (place % BITS);
        }
    }

    /// Passes the places to which something was added, in ascending order, with their sums, which are zero afterwards.
    #[inline]
    fn drain(&mut self, mut each: impl FnMut(usize, f32)) {
        for (number, word) in self.met.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let place = number * BITS + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                each(
                    place,
                    self.sums.get_mut(place).map(std::mem::take).unwrap_or_default(),
                );
            }
        }
    }
}

/// Passes the documents that score no less than the threshold, in ascending order, to `each`, which returns the new
/// threshold.
pub(super) fn for_each_above(
    segment: &SegmentReader,
    words: &[Scored<'_>],
    mut threshold: f32,
    each: &mut dyn FnMut(DocId, f32) -> f32,
) -> Result<(), SearchError> {
    let mut lists = words
        .iter()
        .map(|word| List::open(segment, word))
        .collect::<Result<Vec<_>, _>>()?;
    // Those that can add least come first, in a fixed order.
    lists.sort_by(|a, b| a.most.total_cmp(&b.most));
    let most: Vec<f32> = lists
        .iter()
        .scan(0.0, |sum, list| {
            *sum += list.most;
            Some(*sum)
        })
        .collect();
    let mut window = Window::new(LARGEST_WINDOW.min(segment.max_doc()) as usize);
    let (mut start, mut length) = (0, FIRST_WINDOW);
    loop {
        let common = most.partition_point(|most| !reaches(*most, threshold));
        let Some((common, deciding)) = lists.split_at_mut_checked(common) else {
            return Ok(());
        };
        // Nodes and passages are mostly written apart, so a list may begin far behind.
        let Some(next) = deciding.iter().filter_map(List::next).min() else {
            return Ok(());
        };
        start = next.max(start);
        let end = segment.max_doc().min(start.saturating_add(length));
        for list in deciding {
            list.add_up_to(start, end, &mut window);
        }
        let rest = most.get(common.len().wrapping_sub(1)).copied().unwrap_or(0.0);
        window.drain(|place, sum| {
            let doc = start + place as DocId;
            if reaches(sum + rest, threshold)
                && let Some(score) = total(common, &most, (doc, sum), threshold)
            {
                threshold = each(doc, score);
            }
        });
        start = end;
        length = LARGEST_WINDOW.min(length * 2);
    }
}

/// The whole score of a document that scores this much by the deciding words, unless it stays below the threshold.
fn total(common: &mut [List<'_>], most: &[f32], (doc, sum): (DocId, f32), threshold: f32) -> Option<f32> {
    let mut score = sum;
    for (list, most) in common.iter_mut().zip(most).rev() {
        if !reaches(score + most, threshold) {
            return None;
        }
        score += list.score(doc);
    }
    (score >= threshold).then_some(score)
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
    use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
    use tantivy::schema::{Schema, TextFieldIndexing, TextOptions};
    use tantivy::{Index, Term, doc};

    use super::*;

    const BOOSTS: [f32; 4] = [1.0, 0.1, 1.7, 1.0];

    /// The best documents of all segments by the function under test.
    fn best(searcher: &tantivy::Searcher, words: &[(Term, Bm25Weight)], limit: usize) -> Vec<f32> {
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
            let words: Vec<Scored<'_>> = found
                .iter()
                .map(|(terms, info, field, weight)| Scored {
                    field: *field,
                    terms,
                    info,
                    weight,
                    most: weight.max_score(),
                })
                .map(|word| Scored {
                    most: highest(segment, &word).unwrap(),
                    ..word
                })
                .collect();
            let threshold = scores.get(limit - 1).copied().unwrap_or(f32::MIN);
            for_each_above(segment, &words, threshold, &mut |_, score| {
                let place = scores.partition_point(|other| *other >= score);
                scores.insert(place, score);
                scores.truncate(limit);
                scores.get(limit - 1).copied().unwrap_or(f32::MIN)
            })
            .unwrap();
        }
        scores
    }

    fn weight(searcher: &tantivy::Searcher, term: &Term, boost: f32) -> Bm25Weight {
        Bm25Weight::for_terms(searcher, std::slice::from_ref(term))
            .unwrap()
            .boost_by(boost)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Documents are drawn so that some words are in nearly all of them and some in few, over several windows.
        #[test]
        fn the_best_are_those_of_adding_up_all_lists(
            seed in any::<u64>(),
            docs in prop_oneof![1usize..400, 9_000usize..20_000],
            segments in 1usize..4,
            limit in 1usize..120,
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
            let scored: Vec<(Term, Bm25Weight)> = terms
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

            let found = best(&searcher, &scored, limit);
            prop_assert_eq!(found.len(), expected.len());
            for (found, (expected, _)) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() <= 1e-4 * expected, "{} instead of {}", found, expected);
            }
        }
    }
}
