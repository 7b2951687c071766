//! Lists and counts over the graph in memory.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use uuid::Uuid;

use super::graph::{EntityFilter, EntityState, MemoryGraph, NoteState};
use super::node::Node;
use crate::domain::memory::entity::{EntityKey, canonical_type, known_types};
use crate::domain::memory::view::{
    DomainCount, EntityRelationship, EntitySort, EntityView, GraphEdge, GraphNode, MENTIONS, MemoryCounts,
    Page, SUPERSEDES, SortDirection, TypeCount,
};
use crate::store::StoredRelation;

/// The lists of the API.
impl MemoryGraph {
    pub(super) fn entity_view(&self, entity: &EntityState) -> EntityView {
        EntityView {
            id: entity.public_id(),
            name: entity.name().to_owned(),
            node_type: entity.entity_type.to_string(),
            aliases: entity.aliases().to_vec(),
            confidence: entity.confidence,
            connected_count: entity.degree(),
            entity_type: entity.entity_type.to_string(),
            entity_value: entity.value.to_string(),
            note_count: entity.note_count(),
            tier: entity.tier().map(|tier| tier.as_str().to_owned()),
            merged: self.merged_into(entity.id),
        }
    }

    /// Entities, then notes, each oldest first.
    pub(super) fn nodes(&self, page: Page, node_type: Option<&str>, part: Option<&str>) -> Vec<GraphNode> {
        let node_type = node_type.map(canonical_type);
        let kinds: Vec<String> = node_type.into_iter().collect();
        let part = part.map(str::to_lowercase);
        let nodes = self.all_nodes();
        nodes
            .filter(|node| node.fits(&kinds, part.as_deref()))
            .skip(page.offset)
            .take(page.limit)
            .map(|node| self.to_graph_node(node))
            .collect()
    }

    /// Relationships between entities, then each note's mentions and the note it superseded.
    pub(super) fn edges(&self, page: Page) -> Vec<GraphEdge> {
        let relations = self
            .shown_relations()
            .filter_map(|relation| self.relation_edge(relation));
        let of_note = |head: &NoteState| {
            let mentions = self.mentioned_by(head).map(|id| (id, MENTIONS));
            let superseding = head.superseded_by.iter().map(|id| (*id, SUPERSEDES));
            mentions.chain(superseding).collect::<Vec<_>>()
        };
        let from_notes = self
            .notes_by_age()
            .flat_map(|head| of_note(head).into_iter().map(move |end| (head, end)));
        let taken = self.relation_count().saturating_sub(page.offset).min(page.limit);
        let mut edges: Vec<GraphEdge> = relations.skip(page.offset).take(page.limit).collect();
        let skipped = page.offset.saturating_sub(self.relation_count());
        let rest = from_notes.skip(skipped).take(page.limit - taken);
        edges.extend(rest.filter_map(|(head, (other, kind))| self.note_edge(head, other, kind)));
        edges
    }

    pub(super) fn relation_edge(&self, relation: &StoredRelation) -> Option<GraphEdge> {
        Some(GraphEdge {
            id: relation.id,
            source: self.entity(&relation.source)?.public_id(),
            target: self.entity(&relation.target)?.public_id(),
            relationship: relation.relationship.clone(),
            created_at: relation.created_at,
        })
    }

    pub(super) fn note_edge(&self, head: &NoteState, other: Uuid, kind: &str) -> Option<GraphEdge> {
        let (source, target, created_at) = if kind == SUPERSEDES {
            let newer = self.note(other)?;
            (newer.id.to_string(), head.id.to_string(), newer.created_at)
        } else {
            let entity = self.entity(&other)?;
            (head.id.to_string(), entity.public_id(), head.created_at)
        };
        Some(GraphEdge {
            id: note_edge_id(head.id, other, kind),
            source,
            target,
            relationship: kind.to_owned(),
            created_at,
        })
    }

    /// A page of the entities that match the filter, and the total number of matches.
    pub(super) fn list_entities(
        &self,
        filter: &EntityFilter,
        order: EntityOrder,
        page: Page,
    ) -> (Vec<EntityView>, usize) {
        let part = filter.part.as_deref().map(str::to_lowercase);
        let wanted = filter.entity_type.as_deref().map(canonical_type);
        let kinds: Vec<String> = wanted.into_iter().collect();
        let of_tier = |entity: &EntityState| {
            filter
                .tier
                .as_ref()
                .is_none_or(|wanted| entity.tier().is_some_and(|tier| tier.as_str() == wanted))
        };
        let mut fitting: Vec<&EntityState> = self
            .entities_by_key()
            .filter(|entity| of_tier(entity) && Node::Entity(entity).fits(&kinds, part.as_deref()))
            .collect();
        order.sort(&mut fitting);
        let shown = fitting.iter().skip(page.offset).take(page.limit);
        (
            shown.map(|entity| self.entity_view(entity)).collect(),
            fitting.len(),
        )
    }

    /// Every relationship of an entity.
    pub(super) fn relationships_of(&self, key: &EntityKey) -> Vec<EntityRelationship> {
        let Some(entity) = self.with_key(key) else {
            return Vec::new();
        };
        self.relations_of(entity)
            .filter_map(|relation| {
                Some(EntityRelationship {
                    relationship: relation.relationship.clone(),
                    outgoing: relation.source == entity.id,
                    properties: relation.properties.clone().unwrap_or_default(),
                    node: self.entity_view(self.other_end(entity, relation)?),
                })
            })
            .collect()
    }

    /// Number of nodes and of edges.
    pub(super) fn size(&self) -> (usize, usize) {
        (
            self.entity_count() + self.note_count(),
            self.relation_count() + self.note_edges,
        )
    }

    pub(super) fn counts(&self) -> MemoryCounts {
        let mut by_type: BTreeMap<String, TypeCount> = known_types()
            .map(|name| (name.to_owned(), TypeCount::default()))
            .collect();
        for (_, entity) in self.standing_entities() {
            let count = by_type.entry(entity.entity_type.to_string()).or_default();
            count.unique_entities += 1;
            count.total_mappings += entity.notes.len();
        }
        let (graph_nodes, graph_edges) = self.size();
        MemoryCounts {
            notes: self.note_count(),
            notes_created: 0,
            entities: self.entity_count(),
            graph_nodes,
            graph_edges,
            is_writable: true,
            by_type,
        }
    }

    /// The domains with most notes, at most `limit`.
    pub(super) fn list_domains(&self, limit: usize) -> Vec<DomainCount> {
        let counted = self.domains.iter();
        let mut domains: Vec<(&str, usize)> = counted.map(|(name, notes)| (&**name, *notes)).collect();
        keep_first(&mut domains, limit, |a, b| {
            b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0))
        });
        let count = |(name, notes): (&str, usize)| DomainCount {
            name: name.to_owned(),
            notes,
        };
        domains.into_iter().map(count).collect()
    }
}

/// The id of an edge from a note to what it mentions, or to the note that superseded it.
pub(super) fn note_edge_id(note: Uuid, other: Uuid, kind: &str) -> Uuid {
    Uuid::new_v5(&note, format!("{kind}\0{other}").as_bytes())
}

/// Keeps the first `limit` items of an order, sorted; whether there were more. Takes linear time plus that of sorting
/// what is kept.
pub(super) fn keep_first<T>(
    items: &mut Vec<T>,
    limit: usize,
    mut order: impl FnMut(&T, &T) -> Ordering,
) -> bool {
    let more = items.len() > limit;
    if more {
        items.select_nth_unstable_by(limit, &mut order);
        items.truncate(limit);
    }
    items.sort_unstable_by(order);
    more
}

/// How a list of entities is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityOrder {
    pub by: EntitySort,
    pub direction: SortDirection,
}

/// By type, then value.
impl Default for EntityOrder {
    fn default() -> Self {
        Self {
            by: EntitySort::Type,
            direction: SortDirection::Ascending,
        }
    }
}

impl EntityOrder {
    /// Sorts entities that are in the order of their keys; equal ones stay in that order.
    fn sort(self, entities: &mut [&EntityState]) {
        // Entities without a note come after those of the last tier.
        let key = |entity: &&EntityState| match self.by {
            EntitySort::Name => (entity.name().to_lowercase(), 0),
            EntitySort::Type => (entity.entity_type.to_string(), 0),
            EntitySort::Notes => (String::new(), entity.note_count()),
            EntitySort::Connections => (String::new(), entity.degree()),
            EntitySort::Tier => (
                String::new(),
                entity.tier().map_or(usize::MAX, |tier| tier as usize),
            ),
        };
        match (self.by, self.direction) {
            (EntitySort::Type, SortDirection::Ascending) => {}
            (_, SortDirection::Ascending) => entities.sort_by_cached_key(key),
            (_, SortDirection::Descending) => entities.sort_by_cached_key(|entity| Reverse(key(entity))),
        }
    }
}

#[cfg(test)]
mod tests;
