//! Lists and counts over the graph in memory.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::graph::{EntityFilter, EntityState, MemoryGraph};
use crate::domain::memory::entity::{EntityKey, canonical_type, known_types};
use crate::domain::memory::view::{
    EntityRelationship, EntityView, GraphEdge, GraphNode, MENTIONS, MemoryCounts, NOTE_TYPE, Page,
    SUPERSEDES, TypeCount,
};
use crate::store::NoteHead;

/// The lists of the API.
impl MemoryGraph {
    fn entity_view(&self, entity: &EntityState) -> EntityView {
        let draft = &entity.stored.draft;
        EntityView {
            id: draft.key.to_string(),
            name: draft.name.clone(),
            node_type: draft.key.entity_type.clone(),
            aliases: draft.aliases.clone(),
            confidence: draft.confidence,
            connected_count: entity.notes.len() + entity.relations.len(),
            entity_type: draft.key.entity_type.clone(),
            entity_value: draft.key.value.clone(),
            note_count: self.active_notes(entity).count(),
            tier: self.active_notes(entity).map(|head| &head.tier).min().cloned(),
        }
    }

    fn entity_node(&self, entity: &EntityState) -> GraphNode {
        let draft = &entity.stored.draft;
        GraphNode {
            id: draft.key.to_string(),
            label: draft.name.clone(),
            node_type: draft.key.entity_type.clone(),
            tier: self.active_notes(entity).map(|head| &head.tier).min().cloned(),
            aliases: draft.aliases.clone(),
            confidence: draft.confidence,
            created_at: entity.stored.created_at,
        }
    }

    fn note_node(head: &NoteHead) -> GraphNode {
        GraphNode {
            id: head.id.to_string(),
            label: head.label.clone(),
            node_type: NOTE_TYPE.into(),
            tier: Some(head.tier.clone()),
            aliases: Vec::new(),
            confidence: head.confidence,
            created_at: head.created_at,
        }
    }

    /// Entities, then notes, each oldest first.
    pub(super) fn nodes(&self, page: Page, node_type: Option<&str>, part: Option<&str>) -> Vec<GraphNode> {
        let part = part.map(str::to_lowercase);
        let node_type = node_type.map(canonical_type);
        let node_type = node_type.as_deref();
        let entities = self.entities.iter().filter(|entity| {
            node_type.is_none_or(|wanted| entity.stored.draft.key.entity_type == wanted)
                && contains(entity, part.as_deref())
        });
        let wants_notes = node_type.is_none_or(|wanted| wanted == NOTE_TYPE);
        let notes = self
            .order
            .iter()
            .filter(|_| wants_notes)
            .filter_map(|id| self.notes.get(id));
        let notes = notes.filter(|head| {
            part.as_deref()
                .is_none_or(|part| head.label.to_lowercase().contains(part))
        });
        entities
            .map(Listed::Entity)
            .chain(notes.map(Listed::Note))
            .skip(page.offset)
            .take(page.limit)
            .map(|listed| match listed {
                Listed::Entity(entity) => self.entity_node(entity),
                Listed::Note(head) => Self::note_node(head),
            })
            .collect()
    }

    /// Relationships between entities, then each note's mentions and the note it superseded.
    pub(super) fn edges(&self, page: Page) -> Vec<GraphEdge> {
        let relations = self.relations.iter().filter_map(|relation| {
            Some(GraphEdge {
                id: relation.id,
                source: self.entity(&relation.source)?.stored.draft.key.to_string(),
                target: self.entity(&relation.target)?.stored.draft.key.to_string(),
                relationship: relation.relationship.clone(),
                created_at: relation.created_at,
            })
        });
        let of_note = |head: &NoteHead| {
            let mentions = head.mentions.iter().map(|id| (*id, MENTIONS));
            let superseding = head.superseded_by.iter().map(|id| (*id, SUPERSEDES));
            mentions.chain(superseding).collect::<Vec<_>>()
        };
        let heads = self.order.iter().filter_map(|id| self.notes.get(id));
        let from_notes = heads.flat_map(|head| of_note(head).into_iter().map(move |end| (head, end)));
        let taken = self.relations.len().saturating_sub(page.offset).min(page.limit);
        let mut edges: Vec<GraphEdge> = relations.skip(page.offset).take(page.limit).collect();
        let skipped = page.offset.saturating_sub(self.relations.len());
        let rest = from_notes.skip(skipped).take(page.limit - taken);
        edges.extend(rest.filter_map(|(head, (other, kind))| self.note_edge(head, other, kind)));
        edges
    }

    fn note_edge(&self, head: &NoteHead, other: Uuid, kind: &str) -> Option<GraphEdge> {
        let (source, target, created_at) = if kind == SUPERSEDES {
            let newer = self.notes.get(&other)?;
            (newer.id.to_string(), head.id.to_string(), newer.created_at)
        } else {
            let entity = self.entity(&other)?;
            (
                head.id.to_string(),
                entity.stored.draft.key.to_string(),
                head.created_at,
            )
        };
        Some(GraphEdge {
            id: Uuid::new_v5(&head.id, format!("{kind}\0{other}").as_bytes()),
            source,
            target,
            relationship: kind.to_owned(),
            created_at,
        })
    }

    /// A page of the entities that match the filter, ordered by type and value, and the total number of matches.
    pub(super) fn list_entities(&self, filter: &EntityFilter, page: Page) -> (Vec<EntityView>, usize) {
        let part = filter.part.as_deref().map(str::to_lowercase);
        let wanted = filter.entity_type.as_deref().map(canonical_type);
        let fits = |entity: &&EntityState| {
            let kind = &entity.stored.draft.key.entity_type;
            wanted.as_ref().is_none_or(|wanted| kind == wanted)
                && contains(entity, part.as_deref())
                && filter
                    .tier
                    .as_ref()
                    .is_none_or(|tier| self.active_notes(entity).map(|head| &head.tier).min() == Some(tier))
        };
        let fitting: Vec<&EntityState> = self
            .by_key
            .values()
            .filter_map(|slot| self.entities.get(*slot))
            .filter(fits)
            .collect();
        let shown = fitting.iter().skip(page.offset).take(page.limit);
        (
            shown.map(|entity| self.entity_view(entity)).collect(),
            fitting.len(),
        )
    }

    /// Every relationship of an entity.
    pub(super) fn relationships_of(&self, key: &EntityKey) -> Vec<EntityRelationship> {
        let Some(entity) = self.by_key.get(key).and_then(|slot| self.entities.get(*slot)) else {
            return Vec::new();
        };
        let relations = entity
            .relations
            .iter()
            .filter_map(|slot| self.relations.get(*slot));
        relations
            .filter_map(|relation| {
                let outgoing = relation.source == entity.stored.id;
                let other = if outgoing {
                    relation.target
                } else {
                    relation.source
                };
                Some(EntityRelationship {
                    relationship: relation.relationship.clone(),
                    outgoing,
                    properties: relation.properties.clone().unwrap_or_default(),
                    node: self.entity_view(self.entity(&other)?),
                })
            })
            .collect()
    }

    pub(super) fn counts(&self) -> MemoryCounts {
        let mut by_type: BTreeMap<String, TypeCount> = known_types()
            .map(|name| (name.to_owned(), TypeCount::default()))
            .collect();
        for entity in &self.entities {
            let count = by_type
                .entry(entity.stored.draft.key.entity_type.clone())
                .or_default();
            count.unique_entities += 1;
            count.total_mappings += entity.notes.len();
        }
        MemoryCounts {
            notes: self.notes.len(),
            notes_created: 0,
            entities: self.entities.len(),
            graph_nodes: self.entities.len() + self.notes.len(),
            graph_edges: self.relations.len() + self.note_edges,
            is_writable: true,
            by_type,
        }
    }
}

enum Listed<'a> {
    Entity(&'a EntityState),
    Note(&'a NoteHead),
}

fn contains(entity: &EntityState, part: Option<&str>) -> bool {
    let Some(part) = part else { return true };
    let draft = &entity.stored.draft;
    let mut names = [&draft.key.value, &draft.name].into_iter().chain(&draft.aliases);
    names.any(|name| name.to_lowercase().contains(part))
}
