//! What the words of a query weigh together, and how much of that any node has.

use std::collections::HashMap;

use tantivy::query::Bm25Weight;
use uuid::Uuid;

use super::{Keywords, TextScope};
use crate::domain::question::is_function_word;
use crate::search::document::CompiledFilter;
use crate::search::error::SearchError;
use crate::search::query::votes::Voters;
use crate::search::text::vocabulary::names_kind;

/// Number of nodes from which it tells how rare a word is.
const MANY: u64 = 1_000;
/// Most nodes that have a word whose holders are looked up: a more common word tells little.
const FEW: u64 = 200;

/// What the words of a query weigh together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::search) struct QueryWeight {
    /// Number of distinct words.
    pub(in crate::search) words: usize,
    /// In a text that has each of them any number of times.
    pub(in crate::search) most: f32,
    /// The part of that for the words that any node has. A word that only names a kind of things, as "vulnerability" does, counts
    /// for neither where no node has it: texts tell what things are by their names.
    pub(in crate::search) known: f32,
    /// Whether a word names a kind of things and stands in no node.
    pub(in crate::search) asks_for_kind: bool,
    /// Number of nodes that the caller may see.
    pub(in crate::search) nodes: u64,
    /// What the words weigh that a node or passage has, as far as they are in few nodes. Unlike a keyword score it does not fall with
    /// the length of the text.
    pub(in crate::search) held: HashMap<Uuid, f32>,
}

impl QueryWeight {
    /// The part of what the words say that any node has.
    pub(in crate::search) fn known_share(&self) -> f32 {
        if self.asks_for_kind && self.most == 0.0 {
            return 1.0;
        }
        self.share(self.known)
    }

    /// A weight as a part of what all words weigh, 0 to 1.
    pub(in crate::search) fn share(&self, weight: f32) -> f32 {
        (weight / self.most.max(f32::MIN_POSITIVE)).min(1.0)
    }

    fn add_holders(&mut self, weight: f32, holders: Option<Vec<Uuid>>) {
        for holder in holders.into_iter().flatten() {
            *self.held.entry(holder).or_default() += weight;
        }
    }

    /// The part of the words that stands in the text of a node with this keyword score. However often a text repeats a
    /// word, the words that no node has are missing.
    pub(in crate::search) fn share_in(&self, node: Uuid, score: f32) -> f32 {
        self.share(score.min(self.known).max(self.held_by(node)))
    }

    /// What the rare words weigh that a node or passage has.
    pub(in crate::search) fn held_by(&self, id: Uuid) -> f32 {
        self.held.get(&id).copied().unwrap_or(0.0)
    }
}

impl Keywords<'_> {
    /// What these words weigh in texts that the caller may see.
    pub(in crate::search) fn query_weight(
        &self,
        words: &[(String, f32)],
        allowed: &CompiledFilter,
        voters: Option<&Voters<'_>>,
    ) -> Result<QueryWeight, SearchError> {
        let nodes = self.table.nodes(self.groups).max(1);
        // Among few nodes any word is rare, and one that is missing would weigh more than all that are there.
        let many = nodes.max(MANY);
        let mut weight = QueryWeight {
            words: words.len(),
            nodes,
            ..QueryWeight::default()
        };
        for (text, times) in words {
            let mut found = 0;
            for name in TextScope::Nodes.fields() {
                found = found.max(self.nodes_with(*name, text, &self.places(*name, text)?)?);
            }
            if is_function_word(text) {
                continue;
            }
            if found == 0 && names_kind(text) {
                weight.asks_for_kind = true;
                continue;
            }
            let word = Bm25Weight::for_one_term_without_explain(found.min(many), many, 1.0);
            let most = word.boost_by(*times).max_score();
            weight.most += most;
            weight.known += if found > 0 { most } else { 0.0 };
            if found <= FEW {
                weight.add_holders(most, self.holders(TextScope::Nodes, text, allowed, FEW as usize)?);
                if let Some(voters) = voters {
                    weight.add_holders(
                        most,
                        self.holders(TextScope::Passages, text, voters, FEW as usize)?,
                    );
                }
            }
        }
        Ok(weight)
    }
}
