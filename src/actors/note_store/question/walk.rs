//! The relationships between the entities, as questions follow them.

use chrono::{DateTime, Utc};

use super::{is_sponsor, kind_of};
use crate::actors::note_store::graph::{EntityState, MemoryGraph, Slot};
use crate::domain::question::Period;
use crate::domain::question::walk::{self, Edge, Goal, Graph, Hop, Start, code_of_label};
use crate::store::StoredRelation;

/// The entity type of techniques.
const TECHNIQUE: &str = "attack_pattern";

pub(in crate::actors::note_store) type Walk = walk::Walk<Slot, Slot>;
pub(in crate::actors::note_store) type Answer = walk::Answer<Slot, Slot>;

impl Graph for MemoryGraph {
    type Thing = Slot;
    type Relationship = Slot;
    /// Any label can be written, and rules attribute malware to groups.
    const HAS_FREE_LABELS: bool = true;
    const KEPT: usize = 8;

    fn visit_edges(
        &self,
        from: &[Start<Slot>],
        to: &Goal,
        most: usize,
        mut visit: impl FnMut(usize, Edge<Slot, Slot>),
    ) {
        let mut left = most;
        for (place, start) in from.iter().enumerate() {
            let Some(near) = self.entity_in(start.thing) else {
                continue;
            };
            let examined = near.relations.len().min(left);
            left -= examined;
            let newest = near.relations.iter().rev().take(examined);
            for edge in newest.filter_map(|slot| self.edge_from(near, *slot, to)) {
                visit(place, edge);
            }
        }
    }

    /// `t1003.001` is one of `t1003`.
    fn sub_techniques(&self, technique: Slot) -> Vec<Slot> {
        let whole = self.entity_in(technique);
        let whole = whole.filter(|entity| *entity.entity_type == *TECHNIQUE && !entity.value.contains('.'));
        let Some(start) = whole.map(|entity| format!("{}.", entity.value)) else {
            return Vec::new();
        };
        let is_part =
            |entity: &EntityState| *entity.entity_type == *TECHNIQUE && entity.value.starts_with(&start);
        self.slots_from(TECHNIQUE, &start)
            .take_while(|slot| self.entity_in(*slot).is_some_and(is_part))
            .collect()
    }
}

impl MemoryGraph {
    /// A relationship of an entity, if it leads to the goal.
    fn edge_from(&self, near: &EntityState, slot: Slot, to: &Goal) -> Option<Edge<Slot, Slot>> {
        let relation = self.relation_in(slot)?;
        let outgoing = relation.source == near.id;
        let far = self.entity_slot(if outgoing {
            relation.target
        } else {
            relation.source
        })?;
        let entity = self.entity_in(far)?;
        let kind = kind_of(&entity.entity_type).filter(|kind| to.kinds.contains(kind))?;
        let is_of_other_time = |period: &Period| is_seen_in(relation, period) == Some(false);
        if is_sponsor(&entity.entity_type) || to.period.as_ref().is_some_and(is_of_other_time) {
            return None;
        }
        Some(Edge {
            hop: Hop {
                relationship: slot,
                label: code_of_label(&relation.relationship),
                outgoing,
                confidence: relation.confidence,
            },
            to: far,
            kind,
            confidence: entity.confidence,
            recorded_at: relation.created_at.timestamp_micros(),
        })
    }
}

/// Whether a relationship's properties say that it was seen in a period; `None` if they don't tell when it was. A
/// question for what was entered in a period does not ask when it was seen.
pub(super) fn is_seen_in(relation: &StoredRelation, period: &Period) -> Option<bool> {
    let properties = relation.properties.as_ref().filter(|_| !period.entered)?;
    let time = |key: &str| -> Option<DateTime<Utc>> { properties.get(key)?.as_str()?.parse().ok() };
    let (first, last) = (time("first_seen"), time("last_seen"));
    Some(period.covers(first.or(last)?, last.or(first)?))
}
