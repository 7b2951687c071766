//! Votes of passages for the nodes that they are about: a sentence that resembles the question speaks for both ends of
//! the relationship that it describes.
//!
//! A passage votes only if the caller may see it and everything that it is about. This is checked while passages are
//! collected, so hidden ones take nobody's place. Nor do those that are about no node the caller asks for, if it sets
//! filters.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::domain::tlp::Tlp;
use crate::search::document::{Candidate, CompiledFilter, RowFilter};
use crate::search::vectors::table::{Table, TableEntry};

/// Passages that each leg contributes.
pub(super) const DEPTH: usize = 100;
/// Share of the words in a passage's weight; the rest is that of the meaning.
const WORDS: f32 = 2.0 / 3.0;
/// Rank at which a passage weighs half as much as the first.
const HALF_RANK: f32 = 30.0;
/// Passages of one node that count, and what each counts for compared with the one before: a node with hundreds must
/// not win by their number.
const MAX_PASSAGES: usize = 5;
const NEXT: f32 = 0.6;
/// Cosines up to which a passage doesn't count, and from which it counts in full.
const UNLIKE: f32 = 0.1;
const ALIKE: f32 = 0.4;
/// Share of the weight that counts for the source of a relationship: its text describes the target.
const SOURCE_SHARE: f32 = 0.02;
/// Share that counts if the question mentions one end: the passage then resembles it by what surrounds the subject.
const CONTEXT_SHARE: f32 = 0.1;

/// The passages that may vote.
pub(in crate::search) struct Voters<'a> {
    pub(in crate::search) allowed: &'a CompiledFilter,
    pub(in crate::search) table: &'a Table,
}

impl RowFilter for Voters<'_> {
    #[inline]
    fn class(&self, class: u8) -> bool {
        self.allowed.passage(class)
    }

    fn sees(&self, class: u8) -> bool {
        self.class(class)
    }

    fn highest_tlp(&self) -> Tlp {
        self.allowed.highest_tlp()
    }

    fn row(&self, class: u8, passage: &impl Candidate) -> bool {
        let sees_ends = || {
            let classes = passage.classes_of_ends();
            classes.is_some_and(|ends| ends.iter().all(|class| self.allowed.end(*class)))
        };
        self.class(class) && sees_ends() && self.may_speak(passage)
    }
}

impl Voters<'_> {
    /// Where results are narrowed, passages about others would take the places of those that speak for one.
    fn may_speak(&self, passage: &impl Candidate) -> bool {
        self.allowed.widest().is_none()
            || passage
                .ends()
                .is_some_and(|ends| ends.nodes().any(|node| self.wants(node)))
    }

    /// Whether a node may be a result.
    fn wants(&self, node: Uuid) -> bool {
        let known = TableEntry {
            table: self.table,
            node,
        };
        let class = self.table.class(node);
        class.is_some_and(|class| self.allowed.row(class, &known))
    }
}

/// What passages say for one node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vote {
    pub weight: f32,
    /// The highest keyword score of one of the passages, as far as it counts.
    pub words: f32,
    /// The highest cosine of one of the passages, and the highest keyword score, whatever they count.
    pub alike: f32,
    pub best_words: f32,
    /// The passages, strongest first, and their shares of all that they say together: by weight and by words alike.
    pub passages: Vec<(Uuid, f32)>,
}

/// What one passage says for a node: its weight, and its keyword score as far as it counts.
struct PassageVote {
    passage: Uuid,
    weight: f32,
    words: f32,
    alike: f32,
    best_words: f32,
}

/// The votes for each node.
pub type Votes = HashMap<Uuid, Vote>;

/// Counts the votes of the passages that the legs found, for nodes that may be results. A mentioned node gets none: its
/// own place is certain.
pub(super) fn count(
    words: &[(Uuid, f32)],
    near: &[(Uuid, f32)],
    voters: &Voters<'_>,
    mentioned: &HashSet<Uuid>,
    cosine: impl Fn(Uuid) -> Option<f32>,
) -> Votes {
    let mut said: HashMap<Uuid, Vec<PassageVote>> = HashMap::new();
    let by_words: HashMap<Uuid, f32> = words.iter().copied().collect();
    for (passage, weight) in weights(words, near) {
        let alike = cosine(passage);
        let resemblance = resemblance(alike);
        let score = by_words.get(&passage).copied().unwrap_or(0.0);
        let Some(ends) = voters.table.ends(passage) else {
            continue;
        };
        let is_context = ends.nodes().any(|node| mentioned.contains(&node));
        let counts = if is_context { CONTEXT_SHARE } else { 1.0 };
        for node in ends.nodes().filter(|node| !mentioned.contains(node)) {
            let share = counts * if ends.is_source(node) { SOURCE_SHARE } else { 1.0 };
            if voters.wants(node) {
                let said: &mut Vec<PassageVote> = said.entry(node).or_default();
                said.push(PassageVote {
                    passage,
                    weight: weight * resemblance * share,
                    words: score * share,
                    alike: alike.unwrap_or(0.0),
                    best_words: score,
                });
            }
        }
    }
    let votes = said.into_iter();
    votes.map(|(node, said)| (node, Vote::of(said))).collect()
}

/// How much a passage's likeness to the question lets it count, 0 to 1: ranks alone would let the best of passages about
/// something else speak. A passage without a vector counts by its words.
fn resemblance(cosine: Option<f32>) -> f32 {
    cosine.map_or(1.0, |cosine| {
        ((cosine - UNLIKE) / (ALIKE - UNLIKE)).clamp(0.0, 1.0)
    })
}

/// The weight of each passage by its ranks in the two legs. Passages that score the same have the same rank, since their
/// order is that of random ids.
fn weights(words: &[(Uuid, f32)], near: &[(Uuid, f32)]) -> HashMap<Uuid, f32> {
    let mut weights: HashMap<Uuid, f32> = HashMap::new();
    for (leg, share) in [(words, WORDS), (near, 1.0 - WORDS)] {
        let mut rank = 0.0;
        for tied in leg.chunk_by(|(_, score), (_, next)| score.total_cmp(next).is_eq()) {
            for (passage, _) in tied {
                *weights.entry(*passage).or_default() += share * HALF_RANK / (rank + HALF_RANK);
            }
            rank += tied.len() as f32;
        }
    }
    weights
}

impl Vote {
    /// What the strongest of the passages say together. One unlike the question has no weight, but its words count.
    fn of(mut said: Vec<PassageVote>) -> Self {
        said.sort_unstable_by(|a, b| {
            let by_weight = b.weight.total_cmp(&a.weight);
            let by_words = || b.words.total_cmp(&a.words);
            by_weight
                .then_with(by_words)
                .then_with(|| a.passage.cmp(&b.passage))
        });
        said.truncate(MAX_PASSAGES);
        let most = |of: fn(&PassageVote) -> f32| said.iter().map(of).fold(0.0, f32::max);
        let (alike, best_words) = (most(|said| said.alike), most(|said| said.best_words));
        let mut part = 1.0;
        for said in &mut said {
            said.weight *= part;
            part *= NEXT;
        }
        let sum = |of: fn(&PassageVote) -> f32| said.iter().map(of).sum::<f32>();
        let (weight, words) = (sum(|said| said.weight), sum(|said| said.words));
        let share_of = |part: f32, all: f32| if all > 0.0 { part / all } else { 0.0 };
        let claim = |said: &PassageVote| share_of(said.weight, weight) + share_of(said.words, words);
        let claims: f32 = said.iter().map(claim).sum();
        let passages = said
            .iter()
            .map(|said| (said.passage, share_of(claim(said), claims)));
        Vote {
            weight,
            words: said.iter().map(|said| said.words).fold(0.0, f32::max),
            alike,
            best_words,
            passages: passages.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_weak_passages_do_not_outweigh_a_few_strong_ones() {
        let list = |weights: &[f32]| {
            let said = |weight: &f32| PassageVote {
                passage: Uuid::new_v4(),
                weight: *weight,
                words: 0.0,
                alike: 0.0,
                best_words: 0.0,
            };
            Vote::of(weights.iter().map(said).collect())
        };
        assert!(list(&[0.1; 300]).weight < list(&[0.4, 0.3]).weight);
        assert!(list(&[0.4, 0.3]).weight > list(&[0.4]).weight);
    }

    #[test]
    fn the_shares_of_the_passages_are_all_of_the_vote() {
        let said = |number: u128, weight: f32, words: f32| PassageVote {
            passage: Uuid::from_u128(number),
            weight,
            words,
            alike: 0.0,
            best_words: 0.0,
        };
        let vote = Vote::of(vec![said(1, 0.2, 4.0), said(2, 0.9, 1.0), said(3, 0.5, 0.0)]);
        let order: Vec<u128> = vote
            .passages
            .iter()
            .map(|(passage, _)| passage.as_u128())
            .collect();
        assert_eq!(order, [2, 3, 1]);
        let sum: f32 = vote.passages.iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-6);
        // By words alone.
        let vote = Vote::of(vec![said(1, 0.0, 4.0)]);
        assert_eq!(vote.passages, [(Uuid::from_u128(1), 1.0)]);
        assert!((vote.words - 4.0).abs() < 1e-6);
    }

    #[test]
    fn only_passages_that_are_named_lend_their_words() {
        let said = |number: u128| PassageVote {
            passage: Uuid::from_u128(number),
            weight: 1.0 / number as f32,
            words: number as f32,
            alike: 0.0,
            best_words: 0.0,
        };
        let vote = Vote::of((1..=20).map(said).collect());
        assert_eq!(vote.passages.len(), MAX_PASSAGES);
        assert!((vote.words - MAX_PASSAGES as f32).abs() < 1e-6);
    }

    #[test]
    fn a_passage_found_by_both_legs_weighs_most() {
        let [one, two, three] = [1, 2, 3].map(Uuid::from_u128);
        let found = weights(&[(one, 9.0), (two, 5.0)], &[(one, 0.9), (three, 0.8)]);
        assert!((found[&one] - 1.0).abs() < 1e-6);
        assert!(found[&one] > found[&two] && found[&two] > found[&three]);
        let tied = weights(&[(one, 9.0), (two, 5.0), (three, 5.0)], &[]);
        assert_eq!(tied[&two].to_bits(), tied[&three].to_bits());
    }
}
