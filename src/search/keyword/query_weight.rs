//! What the words of a query weigh together, and how much of that any node has.

use tantivy::query::Bm25Weight;

use super::{Keywords, TextScope};
use crate::search::error::SearchError;

/// What the words of a query weigh together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::search) struct QueryWeight {
    /// Number of distinct words.
    pub(in crate::search) words: usize,
    /// In a text that has each of them any number of times.
    pub(in crate::search) most: f32,
    /// The part of that for the words that any node has.
    pub(in crate::search) known: f32,
    /// Number of nodes that the caller may see.
    pub(in crate::search) nodes: u64,
}

impl Keywords<'_> {
    /// What these words weigh in texts that the caller may see.
    pub(in crate::search) fn query_weight(
        &self,
        words: &[(String, f32)],
    ) -> Result<QueryWeight, SearchError> {
        let nodes = self.table.nodes(self.groups).max(1);
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
            let word = Bm25Weight::for_one_term_without_explain(found.min(nodes), nodes, 1.0);
            let most = word.boost_by(*times).max_score();
            weight.most += most;
            weight.known += if found > 0 { most } else { 0.0 };
        }
        Ok(weight)
    }
}
