//! Fuses the keyword list, the vector list and the exact matches into one.
//!
//! Each leg's scores over all candidates are normalised to z-scores and added, and the votes of passages to them. A
//! candidate missing from the keyword list takes that list's lowest score; a missing cosine is looked up. A passage that
//! has more of the words than its node lends the node a part of its keyword score before that: where no node has any of
//! them, votes alone would lose to whatever is least unlike in meaning.
//!
//! The final score is between 0 and 1 and falls with the rank, in bands: 0.95–1 if the query is the node's name or
//! identifier; 0.90–0.95 if it is an alias; 0.80–0.90 if a name makes up much of the query, or the node holds an exact rare
//! word of it; below 0.80 the fused score through a logistic curve. It orders the results of one query and is not a
//! probability.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::floor::{Likeness, SCORE_FLOOR};
use super::phrases::{ExactMatch, NameMatches, TEXT_WORDS};
use super::votes::Votes;
use crate::domain::why::{MatchedBy, Shares};
use crate::search::document::{Hit, KeyKind};
use crate::search::keyword::query_weight::QueryWeight;

/// Share of the query from which a name is taken as its subject.
const MAIN_SHARE: f32 = 0.4;
/// Bonus for a name that is the whole query, in standard deviations; smaller parts add their share of it.
const NAME_BONUS: f32 = 5.0;
/// A node named by the query scores at least this fraction of the best.
const NAMED_FLOOR: f32 = 0.7;
/// Weight of the vector leg relative to the keyword leg. Keyword scores have the longer tail, so at equal weight their
/// best would override the vectors.
const VECTOR_WEIGHT: f32 = 1.3;
/// What the vote of one passage that is first in both legs adds, in standard deviations.
const VOTE_WEIGHT: f32 = 2.0;
/// Part of a passage's keyword score that its node may have as its own. Passages are short, so equal words score higher
/// in them.
const LENT: f32 = 0.3;
/// The BM25 score that maps to 0.5.
const HALF_BM25: f32 = 10.0;

/// Lowest score of a node whose name makes up much of the query, or that holds an exact rare word of it.
pub const LEADING_SCORE: f32 = 0.80;

/// Lower end and width of the final score's band.
fn band(exact: ExactMatch) -> (f32, f32) {
    match exact.whole {
        Some(KeyKind::Identifier | KeyKind::Name) => (0.95, 0.05),
        Some(KeyKind::Alias) => (0.90, 0.05),
        None if exact.share >= MAIN_SHARE => (LEADING_SCORE, 0.10),
        None => (0.0, LEADING_SCORE),
    }
}

/// What the legs of a blended search found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Legs<'a> {
    pub(in crate::search) keyword: &'a [(Uuid, f32)],
    pub(in crate::search) vector: &'a [(Uuid, f32)],
    pub(in crate::search) votes: &'a Votes,
    pub(in crate::search) query_weight: &'a QueryWeight,
    /// Whether the floor was fitted to the cosines of the model.
    pub(in crate::search) has_floor: bool,
}

/// A node that one of the legs found or the query names.
#[derive(Debug, Clone, Copy)]
struct BlendCandidate {
    node: Uuid,
    exact: ExactMatch,
    /// z-scores.
    words: f32,
    meaning: f32,
    /// What the z-score of the words would be without the passages.
    own_words: f32,
    /// Weight of the votes.
    votes: f32,
    likeness: Likeness,
}

impl BlendCandidate {
    fn score(&self) -> f32 {
        let fused = (self.words + VECTOR_WEIGHT * self.meaning) / (1.0 + VECTOR_WEIGHT);
        fused + VOTE_WEIGHT * self.votes + NAME_BONUS * self.exact.share
    }
}

/// The candidates of a blended search.
#[derive(Debug)]
pub(super) struct Blend<'a> {
    candidates: Vec<BlendCandidate>,
    query_weight: &'a QueryWeight,
    has_floor: bool,
}

/// Fuses the legs, each cut off after `depth`; `cosine` returns the vector score of any node.
pub(super) fn blend<'a>(
    legs: &Legs<'a>,
    named: &NameMatches,
    depth: usize,
    cosine: impl Fn(Uuid) -> Option<f32>,
) -> Blend<'a> {
    let Legs {
        keyword,
        vector,
        votes,
        query_weight,
        has_floor,
    } = *legs;
    let listed = keyword.iter().chain(vector).map(|(node, _)| *node);
    let nodes = candidates(listed.chain(votes.keys().copied()), named);
    let own_words = leg_scores(&nodes, keyword, depth, |_| None);
    let meaning = leg_scores(&nodes, vector, depth, cosine);
    let lent = |node: &Uuid| votes.get(node).map_or(0.0, |vote| LENT * vote.words);
    let words: Vec<f32> = nodes
        .iter()
        .zip(&own_words)
        .map(|(node, own)| own.max(lent(node)))
        .collect();
    let (of_words, of_meaning) = (Spread::of(&words), Spread::of(&meaning));
    let candidate = |(at, &node): (usize, &Uuid)| {
        let score = |scores: &[f32]| scores.get(at).copied().unwrap_or_default();
        let vote = votes.get(&node);
        BlendCandidate {
            node,
            exact: named.nodes.get(&node).copied().unwrap_or_default(),
            words: of_words.z_score(score(&words)),
            meaning: of_meaning.z_score(score(&meaning)),
            own_words: of_words.z_score(score(&own_words)),
            votes: vote.map_or(0.0, |vote| vote.weight),
            likeness: Likeness {
                cosine: Some(score(&meaning).max(vote.map_or(0.0, |vote| vote.alike))),
                words: {
                    let score = score(&own_words);
                    let passages = vote.into_iter().flat_map(|vote| &vote.passages);
                    let held = passages.map(|(passage, _)| query_weight.held_by(*passage));
                    let spoken = vote.map_or(0.0, |vote| vote.best_words);
                    let spoken = query_weight.share(held.fold(spoken, f32::max));
                    query_weight.share_in(node, score).max(spoken)
                },
            },
        }
    };
    Blend {
        candidates: nodes.iter().enumerate().map(candidate).collect(),
        query_weight,
        has_floor,
    }
}

impl Blend<'_> {
    /// The candidates with their final scores, best first.
    pub(super) fn into_hits(self) -> Vec<Hit> {
        let scored = self.candidates.iter().map(|one| ScoredCandidate {
            node: one.node,
            exact: one.exact,
            score: one.score(),
            likeness: one.likeness,
            is_likely: !self.has_floor || one.exact.share > 0.0 || one.likeness.is_answer(self.query_weight),
        });
        rank_hits(scored.collect(), self.query_weight, |z| {
            1.0 / (1.0 + (-z / 2.0).exp())
        })
    }

    /// What each score is made of. A leg gives a candidate what it has over the candidate that the leg likes least, so
    /// that no part is negative and the parts of two candidates differ by what their scores do. Where all are alike, the
    /// legs that list the candidate have equal parts.
    pub(in crate::search) fn shares(&self, legs: &Legs<'_>) -> HashMap<Uuid, Shares> {
        let least =
            |of: fn(&BlendCandidate) -> f32| self.candidates.iter().map(of).fold(f32::INFINITY, f32::min);
        let (least_words, least_meaning) = (least(|one| one.own_words), least(|one| one.meaning));
        let best = self
            .candidates
            .iter()
            .map(BlendCandidate::score)
            .fold(0.0, f32::max);
        let lists = |list: &[(Uuid, f32)]| list.iter().map(|(node, _)| *node).collect::<HashSet<Uuid>>();
        let (by_words, by_meaning) = (lists(legs.keyword), lists(legs.vector));
        let part = |listed: bool| if listed { 1.0 } else { 0.0 };
        let shares = |one: &BlendCandidate| {
            let raised = if one.exact.share > 0.0 {
                (best * NAMED_FLOOR - one.score()).max(0.0)
            } else {
                0.0
            };
            let words = (one.own_words - least_words) / (1.0 + VECTOR_WEIGHT);
            let lent = (one.words - one.own_words) / (1.0 + VECTOR_WEIGHT);
            let meaning = VECTOR_WEIGHT * (one.meaning - least_meaning) / (1.0 + VECTOR_WEIGHT);
            let name = NAME_BONUS * one.exact.share + raised;
            let shares = Shares::of(words + name, meaning, lent + VOTE_WEIGHT * one.votes);
            shares.or(|| {
                Shares::of(
                    part(by_words.contains(&one.node)),
                    part(by_meaning.contains(&one.node)),
                    0.0,
                )
            })
        };
        self.candidates
            .iter()
            .map(|one| (one.node, shares(one)))
            .collect()
    }
}

/// The keyword list alone, plus the nodes that the query names.
pub(super) fn keyword_only(keyword: &[(Uuid, f32)], named: &NameMatches, weight: &QueryWeight) -> Vec<Hit> {
    let listed: HashMap<Uuid, f32> = keyword.iter().copied().collect();
    let scored = candidates(keyword.iter().map(|(node, _)| *node), named)
        .into_iter()
        .map(|node| {
            let score = listed.get(&node).copied().unwrap_or(0.0);
            let exact = named.nodes.get(&node).copied().unwrap_or_default();
            let likeness = Likeness {
                cosine: None,
                words: weight.share_in(node, score),
            };
            ScoredCandidate {
                node,
                exact,
                score,
                likeness,
                is_likely: exact.share > 0.0 || likeness.is_answer(weight),
            }
        });
    rank_hits(scored.collect(), weight, |score| score / (score + HALF_BM25))
}

/// Every listed or named node once, in a fixed order.
fn candidates(listed: impl Iterator<Item = Uuid>, named: &NameMatches) -> Vec<Uuid> {
    let mut nodes: Vec<Uuid> = listed.chain(named.nodes.keys().copied()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// A candidate before its score is mapped into a band.
#[derive(Debug, Clone, Copy)]
struct ScoredCandidate {
    node: Uuid,
    exact: ExactMatch,
    score: f32,
    likeness: Likeness,
    /// Whether it is likely an answer.
    is_likely: bool,
}

impl ScoredCandidate {
    fn matched(&self) -> MatchedBy {
        let phrase = || self.exact.phrase.map(|phrase| phrase.kind);
        match self.exact.whole.or_else(phrase) {
            Some(kind) => kind.into(),
            None if self.exact.share > 0.0 => MatchedBy::Words,
            None => self.likeness.matched(),
        }
    }
}

/// Sorts by band, then score, then id, and maps the result into 0..1: above the floor down to the last candidate that is
/// likely an answer, below it behind that.
fn rank_hits(mut scored: Vec<ScoredCandidate>, query: &QueryWeight, unit: impl Fn(f32) -> f32) -> Vec<Hit> {
    let best = scored.iter().map(|one| one.score).fold(0.0, f32::max);
    for one in scored.iter_mut().filter(|one| one.exact.share > 0.0) {
        one.score = one.score.max(best * NAMED_FLOOR);
    }
    scored.sort_unstable_by(|one, other| {
        let by_band = band(other.exact).0.total_cmp(&band(one.exact).0);
        by_band
            .then_with(|| other.score.total_cmp(&one.score))
            .then_with(|| one.node.cmp(&other.node))
    });
    let last = scored.iter().rposition(|one| one.is_likely);
    // What a long text asks for is told less by any one result: if one is an answer, all may be.
    let answers = match last {
        Some(_) if query.words >= TEXT_WORDS => scored.len(),
        Some(last) => last + 1,
        None => 0,
    };
    let hit = |(at, one): (usize, ScoredCandidate)| {
        let (low, width) = match band(one.exact) {
            (0.0, _) if at >= answers => (0.0, SCORE_FLOOR),
            (0.0, width) => (SCORE_FLOOR, width - SCORE_FLOOR),
            named => named,
        };
        Hit {
            node_id: one.node,
            score: low + width * unit(one.score).clamp(0.0, 1.0),
            matched: one.matched(),
        }
    };
    scored.into_iter().enumerate().map(hit).collect()
}

/// The score of every node in one leg. A node missing from the list gets the score from `known`, or else the lowest
/// listed one, or 0 if the list already holds every match.
fn leg_scores(
    nodes: &[Uuid],
    list: &[(Uuid, f32)],
    depth: usize,
    known: impl Fn(Uuid) -> Option<f32>,
) -> Vec<f32> {
    let listed: HashMap<Uuid, f32> = list.iter().copied().collect();
    let lowest = list
        .last()
        .filter(|_| list.len() >= depth)
        .map_or(0.0, |(_, score)| *score);
    let score = |node: &Uuid| {
        listed
            .get(node)
            .copied()
            .or_else(|| known(*node))
            .unwrap_or(lowest)
    };
    nodes.iter().map(score).collect()
}

/// How the scores of one leg are spread.
#[derive(Debug, Clone, Copy)]
struct Spread {
    mean: f32,
    deviation: f32,
}

impl Spread {
    /// Sums in the order of the scores: that of the nodes is the one of their random ids, and would show in the last bit.
    fn of(scores: &[f32]) -> Self {
        let count = scores.len().max(1) as f32;
        let mut scores = scores.to_vec();
        scores.sort_unstable_by(f32::total_cmp);
        let mean = scores.iter().sum::<f32>() / count;
        let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f32>() / count;
        Spread {
            mean,
            deviation: variance.sqrt(),
        }
    }

    /// Distance from the mean in standard deviations; 0 where all scores are alike.
    fn z_score(self, score: f32) -> f32 {
        if self.deviation > 1e-6 {
            (score - self.mean) / self.deviation
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests;
