//! What is like a question in absolute terms, so that a question about nothing in the store has no answer.
//!
//! The ranking compares candidates with each other: of any hundred, some are first. Whether they answer is told by what does
//! not depend on the others: how much of what the words of the question say stands in a text, and how alike in meaning
//! the two are. `retrieval_quality -- --floor` measures both kinds of error.

use super::fusion::LEADING_SCORE;
use crate::domain::why::MatchedBy;
use crate::search::keyword::query_weight::QueryWeight;

/// The lowest score of a result that is likely an answer. Results below are returned only to those who ask for them.
pub const SCORE_FLOOR: f32 = 0.3;

/// The part of a score that tells a rank, as if there were no floor: for those who weigh it against other scores.
pub fn rank_part(score: f32) -> f32 {
    if score < SCORE_FLOOR {
        score / SCORE_FLOOR * LEADING_SCORE
    } else if score < LEADING_SCORE {
        (score - SCORE_FLOOR) / (LEADING_SCORE - SCORE_FLOOR) * LEADING_SCORE
    } else {
        score
    }
}

/// What the cosine, the words, and the part of the question's words that any node has, weigh together for an answer: 1.
/// Fitted to the questions of `retrieval_quality` by logistic regression.
const COSINE: f32 = 1.93;
const WORDS: f32 = 0.3;
const KNOWN: f32 = 0.81;
/// That a word is unknown says little where there are few nodes: this part of the words counts as known at least, falling to
/// none with so many nodes.
const KNOWN_AMONG_FEW: f32 = 0.45;
const MANY_NODES: f32 = 1_000.0;
/// The part of the words that stands in an answer if meaning is not asked.
const WORDS_ALONE: f32 = 0.25;

/// The part of a query's words that is known, as far as it tells anything.
fn known_part(query: &QueryWeight) -> f32 {
    let few = 1.0 - ((query.nodes as f32).ln_1p() / MANY_NODES.ln_1p()).min(1.0);
    query.known_share().max(KNOWN_AMONG_FEW * few)
}

/// What speaks for a candidate, whatever others there are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::search) struct Likeness {
    /// Cosine of the question and the candidate, or the passage about it that is most alike.
    pub(in crate::search) cosine: Option<f32>,
    /// The part of what the words of the question say that stands in its text, or in a passage about it.
    pub(in crate::search) words: f32,
}

impl Likeness {
    /// Whether it is likely an answer.
    pub(super) fn is_answer(self, query: &QueryWeight) -> bool {
        let Some(cosine) = self.cosine else {
            return self.words >= WORDS_ALONE;
        };
        // What stands in a passage is known, too.
        let known = known_part(query).max(self.words);
        COSINE * cosine.max(0.0) + WORDS * self.words + KNOWN * known >= 1.0
    }

    /// What speaks for it more.
    pub(super) fn matched(self) -> MatchedBy {
        if self.words > 0.0 && self.words >= self.cosine.unwrap_or(0.0) {
            MatchedBy::Words
        } else {
            MatchedBy::Meaning
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn query(known: f32, nodes: u64) -> QueryWeight {
        QueryWeight {
            words: 4,
            most: 20.0,
            known: 20.0 * known,
            nodes,
            ..QueryWeight::default()
        }
    }

    fn is_answer(cosine: f32, words: f32, query: QueryWeight) -> bool {
        let likeness = Likeness {
            cosine: Some(cosine),
            words,
        };
        likeness.is_answer(&query)
    }

    #[test]
    fn more_of_anything_never_makes_an_answer_less_likely() {
        let steps = || (0..=10).map(|step| step as f32 / 10.0);
        for nodes in [1, 30, 1_000, 1_000_000] {
            for (known, words) in steps().flat_map(|known| steps().map(move |words| (known, words))) {
                let mut was = false;
                for cosine in steps() {
                    let is = is_answer(cosine, words, query(known, nodes));
                    assert!(is || !was, "{cosine} {words} {known} {nodes}");
                    was = is;
                }
            }
        }
    }

    #[test]
    fn words_that_no_node_has_make_an_answer_less_likely() {
        assert!(is_answer(0.3, 0.4, query(0.9, 1_000)));
        assert!(!is_answer(0.2, 0.3, query(0.3, 1_000)));
        // A text that repeats the only word that is known has no more of the question.
        assert!(query(0.3, 1_000).share_in(Uuid::nil(), 40.0) < 0.31);
        // Where there are few nodes, most words are unknown.
        assert!(is_answer(0.43, 0.0, query(0.2, 4)));
        assert!(!is_answer(0.43, 0.0, query(0.2, 1_000)));
    }

    #[test]
    fn the_rank_of_a_score_does_not_know_the_floor() {
        let mut last = -1.0;
        for step in 0..=100 {
            let score = step as f32 / 100.0;
            let rank = rank_part(score);
            assert!((0.0..=1.0).contains(&rank));
            assert!(rank >= last || (score - SCORE_FLOOR).abs() < 1e-6, "{score}");
            last = rank;
        }
    }
}
