//! The documents of the text index that newer ones in memory take the place of.
//!
//! They stay in their segments until the next commit deletes them, but no longer count. Nothing but their id columns tells
//! where they are. These are read once for what has been written since the last search, and only if it replaces anything.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tantivy::DocId;
use tantivy::index::SegmentId;
use uuid::Uuid;

use super::segment_counts::Lengths;
use super::segments::Segment;
use crate::search::error::SearchError;

/// Documents whose ids are read together.
const AT_ONCE: usize = 1024;
/// Low bits of an id that tell most documents from those that are looked for. They are random in ids of every kind.
const TELLING: u64 = 0xfff;

/// Documents of one segment.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplacedDocs {
    /// In ascending order.
    pub(in crate::search) docs: Vec<DocId>,
    pub(in crate::search) lengths: Lengths,
    /// How many of the nodes were looked for.
    nodes: usize,
}

/// Those of each segment that has been searched.
#[derive(Debug, Default)]
pub(super) struct ReplacedBySegment(Mutex<HashMap<SegmentId, Arc<ReplacedDocs>>>);

impl ReplacedBySegment {
    /// The documents of these nodes in a segment. Of the nodes there may be more than the last time, in the same order.
    pub(in crate::search) fn of(
        &self,
        segment: &Segment,
        nodes: &[Uuid],
    ) -> Result<Arc<ReplacedDocs>, SearchError> {
        let id = segment.reader.segment_id();
        let known = self.0.lock().get(&id).map(Arc::clone).unwrap_or_default();
        let Some(new) = nodes.get(known.nodes..).filter(|new| !new.is_empty()) else {
            return Ok(known);
        };
        let docs = docs_of(segment, new);
        let lengths = segment.lengths_of(&docs)?;
        let mut all = ReplacedDocs {
            docs: [known.docs.as_slice(), &docs].concat(),
            lengths: known.lengths.and(lengths),
            nodes: nodes.len(),
        };
        all.docs.sort_unstable();
        let all = Arc::new(all);
        self.0.lock().insert(id, Arc::clone(&all));
        Ok(all)
    }
}

/// The documents of these nodes that are not deleted.
fn docs_of(segment: &Segment, nodes: &[Uuid]) -> Vec<DocId> {
    let wanted: HashSet<Uuid> = nodes.iter().copied().collect();
    let mut may_be = [false; TELLING as usize + 1];
    let place = |low: u64| (low & TELLING) as usize;
    for node in nodes {
        let (_, low) = node.as_u64_pair();
        may_be
            .iter_mut()
            .skip(place(low))
            .take(1)
            .for_each(|is| *is = true);
    }
    let mut found = Vec::new();
    let mut lows = [0u64; AT_ONCE];
    let all = segment.reader.max_doc();
    for start in (0..all).step_by(AT_ONCE) {
        let docs = start..all.min(start + AT_ONCE as DocId);
        let Some(lows) = lows.get_mut(..docs.len()) else {
            continue;
        };
        segment.read_lows(start, lows);
        let near = docs
            .zip(lows)
            .filter(|(_, low)| may_be.get(place(**low)) == Some(&true));
        let is_wanted =
            |doc: &DocId| wanted.contains(&segment.node(*doc)) && !segment.reader.is_deleted(*doc);
        found.extend(near.map(|(doc, _)| doc).filter(is_wanted));
    }
    found
}
