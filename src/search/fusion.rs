//! Fuses the keyword list, the vector list and the exact matches into one.
//!
//! Each leg's scores over all candidates are normalised to z-scores and added, and the votes of passages to them. A
//! candidate missing from the keyword list takes that list's lowest score; a missing cosine is looked up.
//!
//! The final score is between 0 and 1 and falls with the rank, in bands: 0.95–1 if the query is the node's name or
//! identifier; 0.90–0.95 if it is an alias; 0.80–0.90 if a name makes up much of the query; below 0.80 the fused score
//! through a logistic curve. It orders the results of one query and is not a probability.

use std::collections::HashMap;

use uuid::Uuid;

use super::document::{Hit, KeyKind};
use super::phrases::{Exact, Named};
use super::votes::Votes;

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
/// The BM25 score that maps to 0.5.
const HALF_BM25: f32 = 10.0;

/// Lower end and width of the final score's band.
fn band(exact: Exact) -> (f32, f32) {
    match exact.whole {
        Some(KeyKind::Identifier | KeyKind::Name) => (0.95, 0.05),
        Some(KeyKind::Alias) => (0.90, 0.05),
        None if exact.share >= MAIN_SHARE => (0.80, 0.10),
        None => (0.0, 0.80),
    }
}

/// What the legs of a blended search found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Legs<'a> {
    pub(super) keyword: &'a [(Uuid, f32)],
    pub(super) vector: &'a [(Uuid, f32)],
    pub(super) votes: &'a Votes,
}

/// Fuses the legs, each cut off after `depth`; `cosine` returns the vector score of any node.
pub(super) fn blend(
    legs: &Legs<'_>,
    named: &Named,
    depth: usize,
    cosine: impl Fn(Uuid) -> Option<f32>,
) -> Vec<Hit> {
    let Legs {
        keyword,
        vector,
        votes,
    } = *legs;
    let listed = keyword.iter().chain(vector).map(|(node, _)| *node);
    let nodes = candidates(listed.chain(votes.keys().copied()), named);
    let words = leg_scores(&nodes, keyword, depth, |_| None);
    let meaning = leg_scores(&nodes, vector, depth, cosine);
    let scored = nodes
        .iter()
        .zip(words.iter().zip(&meaning))
        .map(|(&node, (word, meaning))| {
            let exact = named.nodes.get(&node).copied().unwrap_or_default();
            let vote = votes.get(&node).map_or(0.0, |vote| vote.weight);
            let fused = (word + VECTOR_WEIGHT * meaning) / (1.0 + VECTOR_WEIGHT) + VOTE_WEIGHT * vote;
            (node, exact, fused + NAME_BONUS * exact.share)
        });
    ranked(scored.collect(), |z| 1.0 / (1.0 + (-z / 2.0).exp()))
}

/// The keyword list alone, plus the nodes that the query names.
pub(super) fn keyword_only(keyword: &[(Uuid, f32)], named: &Named) -> Vec<Hit> {
    let listed: HashMap<Uuid, f32> = keyword.iter().copied().collect();
    let scored = candidates(keyword.iter().map(|(node, _)| *node), named)
        .into_iter()
        .map(|node| {
            let exact = named.nodes.get(&node).copied().unwrap_or_default();
            (node, exact, listed.get(&node).copied().unwrap_or(0.0))
        });
    ranked(scored.collect(), |score| score / (score + HALF_BM25))
}

/// Every listed or named node once, in a fixed order.
fn candidates(listed: impl Iterator<Item = Uuid>, named: &Named) -> Vec<Uuid> {
    let mut nodes: Vec<Uuid> = listed.chain(named.nodes.keys().copied()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Sorts by band, then score, then id, and maps the result into 0..1.
fn ranked(mut scored: Vec<(Uuid, Exact, f32)>, unit: impl Fn(f32) -> f32) -> Vec<Hit> {
    let best = scored.iter().map(|(.., score)| *score).fold(0.0, f32::max);
    for (_, exact, score) in &mut scored {
        if exact.share > 0.0 {
            *score = score.max(best * NAMED_FLOOR);
        }
    }
    scored.sort_unstable_by(|(node, exact, score), (other, other_exact, other_score)| {
        let by_band = band(*other_exact).0.total_cmp(&band(*exact).0);
        by_band
            .then_with(|| other_score.total_cmp(score))
            .then_with(|| node.cmp(other))
    });
    let hit = |(node_id, exact, score): (Uuid, Exact, f32)| {
        let (low, width) = band(exact);
        Hit {
            node_id,
            score: low + width * unit(score).clamp(0.0, 1.0),
        }
    };
    scored.into_iter().map(hit).collect()
}

/// The z-score of every node in one leg. A node missing from the list gets the score from `known`, or else the lowest
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
    z_scores(nodes.iter().map(score).collect())
}

fn z_scores(scores: Vec<f32>) -> Vec<f32> {
    let count = scores.len().max(1) as f32;
    let mean = scores.iter().sum::<f32>() / count;
    let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f32>() / count;
    let deviation = variance.sqrt();
    let z = |score: f32| {
        if deviation > 1e-6 {
            (score - mean) / deviation
        } else {
            0.0
        }
    };
    scores.into_iter().map(z).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn legs<'a>(keyword: &'a [(Uuid, f32)], vector: &'a [(Uuid, f32)], votes: &'a Votes) -> Legs<'a> {
        Legs {
            keyword,
            vector,
            votes,
        }
    }

    #[test]
    fn being_first_in_both_legs_is_best() {
        let keyword = [(id(1), 9.0), (id(2), 8.0), (id(3), 1.0)];
        let vector = [(id(1), 0.9), (id(3), 0.8), (id(2), 0.1)];
        let hits = blend(
            &legs(&keyword, &vector, &Votes::new()),
            &Named::default(),
            3,
            |_| None,
        );
        assert_eq!(hits.first().map(|hit| hit.node_id), Some(id(1)));
    }

    #[test]
    fn the_only_keyword_match_counts() {
        let vector: Vec<(Uuid, f32)> = (1..=50u8)
            .map(|n| (id(u128::from(n)), 0.5 - f32::from(n) / 500.0))
            .collect();
        let hits = blend(
            &legs(&[(id(40), 7.0)], &vector, &Votes::new()),
            &Named::default(),
            100,
            |_| None,
        );
        assert_eq!(hits.first().map(|hit| hit.node_id), Some(id(40)));
    }

    #[test]
    fn bands_are_in_order_and_scores_fall() {
        let mut named = Named::default();
        named.nodes.insert(
            id(1),
            Exact {
                share: 0.5,
                ..Exact::default()
            },
        );
        named.nodes.insert(
            id(2),
            Exact {
                whole: Some(KeyKind::Alias),
                share: 1.0,
                mention: false,
            },
        );
        named.nodes.insert(
            id(3),
            Exact {
                whole: Some(KeyKind::Name),
                share: 1.0,
                mention: false,
            },
        );
        let hits = blend(
            &legs(&[(id(4), 99.0)], &[(id(5), 1.0)], &Votes::new()),
            &named,
            100,
            |_| None,
        );
        let order: Vec<Uuid> = hits.iter().map(|hit| hit.node_id).collect();
        assert_eq!(order.get(..3), Some([id(3), id(2), id(1)].as_slice()));
        assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
        assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
    }
}
