//! Steps along relationships, from memory. Every step compares workspace, marking and status of the relationship and of
//! both ends, so that nothing hidden can be passed through or counted.

use uuid::Uuid;

use super::super::document::{CompiledFilter, Filter, RowFilter};
use super::super::relations::Side;
use super::WorkspaceIndex;
use crate::search::vectors::table::TableEntry;

/// Which relationships a step takes, and to which nodes.
#[derive(Debug, Clone, Copy)]
pub struct StepFilter<'a> {
    /// The kinds of relationships, as in [`super::super::Relation::code`].
    pub codes: &'a [u8],
    /// What the caller may see, and what it asks of the nodes at the other end.
    pub filter: &'a Filter,
    /// Number of steps to take. Hidden relationships don't count.
    pub most: usize,
}

/// A step from one node to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Position of the node where it begins among those that were given.
    pub from: usize,
    pub relationship: Uuid,
    pub code: u8,
    /// Whether the relationship leads to `node` rather than back.
    pub outgoing: bool,
    /// Confidence of the relationship, 0 to 1.
    pub confidence: f64,
    pub node: Uuid,
    /// The kind of node, as in [`super::super::Facts::with_code`].
    pub node_code: u8,
    /// A hash of its STIX type, as [`super::super::hash_of_type`] tells it; 0 if it is no STIX object.
    pub node_stix_type: u32,
    /// 0 to 1.
    pub node_confidence: f64,
    /// When the node was ingested, in microseconds since 1970.
    pub ingested_at: i64,
}

impl WorkspaceIndex {
    /// Takes the steps from these nodes that the caller may see, the newest relationships of each node first.
    pub fn steps(&self, from: &[Uuid], along: StepFilter<'_>, mut take: impl FnMut(Step)) {
        self.activity.touch();
        let allowed = CompiledFilter::of(along.filter);
        let (table, relations) = (self.table(), self.relations());
        let mut left = along.most;
        for (place, near) in from.iter().enumerate() {
            if !table.class(*near).is_some_and(|class| allowed.sees(class)) {
                continue;
            }
            for side in Side::BOTH {
                let related = relations.at(*near, side, |class| allowed.passage(class));
                let mut related = related.filter(|seen| along.codes.contains(&seen.facts.code));
                while let Some(seen) = related.next().filter(|_| left > 0) {
                    let far = TableEntry {
                        table: &table,
                        node: seen.far,
                    };
                    let known = table.head_hinted(seen.far, seen.met);
                    let known = known.filter(|head| allowed.row(head.class, &far));
                    let Some(known) = known else { continue };
                    left -= 1;
                    take(Step {
                        from: place,
                        relationship: seen.id,
                        code: seen.facts.code,
                        outgoing: side == Side::Source,
                        confidence: seen.facts.confidence,
                        node: seen.far,
                        node_code: known.facts.code,
                        node_stix_type: known.facts.stix_type,
                        node_confidence: known.facts.confidence,
                        ingested_at: known.facts.ingested_at,
                    });
                }
            }
        }
    }
}
