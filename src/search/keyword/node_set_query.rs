//! The documents of replaced nodes, as a query to delete them by.
//!
//! The text index holds no terms for the ids of nodes: one for each document and all different, they would be the
//! most expensive part of every commit and merge. Documents are found by a scan of the id columns instead, once for
//! all nodes that a commit replaces.

use std::collections::HashSet;
use std::sync::Arc;

use tantivy::query::{BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{BitSet, DocId, Score, SegmentReader, TantivyError};
use uuid::Uuid;

use super::schema::{HIGH, LOW};

/// Matches the documents of these nodes.
#[derive(Debug, Clone)]
pub(in crate::search) struct NodeSetQuery(Arc<HashSet<(u64, u64)>>);

impl NodeSetQuery {
    pub(in crate::search) fn new(nodes: impl Iterator<Item = Uuid>) -> Self {
        NodeSetQuery(Arc::new(nodes.map(|node| node.as_u64_pair()).collect()))
    }

    pub(in crate::search) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Query for NodeSetQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for NodeSetQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let column = |name| reader.fast_fields().column_first_or_default::<u64>(name);
        let (high, low) = (column(HIGH)?, column(LOW)?);
        let mut docs = BitSet::with_max_value(reader.max_doc());
        (0..reader.max_doc())
            .filter(|doc| self.0.contains(&(high.get_val(*doc), low.get_val(*doc))))
            .for_each(|doc| {
                docs.insert(doc);
            });
        Ok(Box::new(ConstScorer::new(BitSetDocSet::from(docs), boost)))
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        Err(TantivyError::InvalidArgument("a deletion has no score".into()))
    }
}
