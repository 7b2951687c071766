//! A node of the graph in memory, and its way to the nodes around it.

use std::cmp::Ordering;

use uuid::Uuid;

use super::graph::{EntityState, MemoryGraph, NoteState};
use crate::domain::memory::entity::EntityKey;
use crate::domain::memory::view::{GraphNode, NOTE_TYPE};
use crate::store::StoredRelation;

/// An entity or a note.
#[derive(Debug, Clone, Copy)]
pub(super) enum Node<'a> {
    Entity(&'a EntityState),
    Note(&'a NoteState),
}

impl Node<'_> {
    /// What tells it from every other node in this process; not the id that clients see.
    pub(super) fn key(self) -> Uuid {
        match self {
            Self::Entity(entity) => entity.id,
            Self::Note(head) => head.id,
        }
    }

    /// Whether it is of one of these types (of any, if there are none) and has `part` in a name. Types are canonical,
    /// `part` is in lower case.
    pub(super) fn fits(self, types: &[String], part: Option<&str>) -> bool {
        let own = match self {
            Self::Entity(entity) => &*entity.entity_type,
            Self::Note(_) => NOTE_TYPE,
        };
        (types.is_empty() || types.iter().any(|wanted| wanted == own))
            && part.is_none_or(|part| self.contains(part))
    }

    fn contains(self, part: &str) -> bool {
        let contains = |name: &str| name.to_lowercase().contains(part);
        match self {
            Self::Entity(entity) => entity.all_names().any(contains),
            Self::Note(head) => contains(&head.label),
        }
    }

    /// Compares the ids that clients see, without building them.
    pub(super) fn cmp_id(self, other: Self) -> Ordering {
        // UUIDs are ordered as their texts are.
        if let (Self::Note(first), Self::Note(second)) = (self, other) {
            return first.id.cmp(&second.id);
        }
        let mut buffers = [[0; uuid::fmt::Hyphenated::LENGTH]; 2];
        let [first, second] = &mut buffers;
        let parts = self.id_parts(first).into_iter().flat_map(str::bytes);
        parts.cmp(other.id_parts(second).into_iter().flat_map(str::bytes))
    }

    fn id_parts<'b>(&'b self, buffer: &'b mut [u8]) -> [&'b str; 3] {
        match self {
            Self::Entity(entity) => [&entity.entity_type, ":", &entity.value],
            Self::Note(head) => [head.id.hyphenated().encode_lower(buffer), "", ""],
        }
    }
}

/// From node to node.
impl MemoryGraph {
    /// Entities, then notes, each oldest first.
    pub(super) fn all_nodes(&self) -> impl Iterator<Item = Node<'_>> {
        let entities = self.standing_entities().map(|(_, entity)| Node::Entity(entity));
        entities.chain(self.notes_by_age().map(Node::Note))
    }

    /// The node with the id that clients see; the value of an entity may have any spelling.
    pub(super) fn find(&self, id: &str) -> Option<Node<'_>> {
        if let Some((entity_type, value)) = id.split_once(':') {
            let key = EntityKey {
                entity_type: entity_type.to_owned(),
                value: value.to_owned(),
            };
            let canonical = || self.with_key(&EntityKey::new(entity_type, value).ok()?);
            return self.with_key(&key).or_else(canonical).map(Node::Entity);
        }
        self.note(id.parse().ok()?).map(Node::Note)
    }

    /// Number of edges of a node.
    pub(super) fn degree(&self, node: Node<'_>) -> usize {
        match node {
            Node::Entity(entity) => entity.degree(),
            Node::Note(head) => {
                let older = self.older_than(head.id).len();
                head.mentions.len() + older + usize::from(head.superseded_by.is_some())
            }
        }
    }

    /// The nodes one edge away: of an entity its related entities, then its notes, newest first.
    pub(super) fn neighbours<'a>(&'a self, node: Node<'a>) -> Box<dyn Iterator<Item = Node<'a>> + 'a> {
        match node {
            Node::Entity(entity) => {
                let related = self
                    .relations_of(entity)
                    .filter_map(|relation| self.other_end(entity, relation));
                let notes = entity.notes.iter().rev().filter_map(|slot| self.note_in(*slot));
                Box::new(related.map(Node::Entity).chain(notes.map(Node::Note)))
            }
            Node::Note(head) => {
                let mentioned = head.mentions.iter().filter_map(|slot| self.entity_in(*slot));
                let older = self.older_than(head.id).filter_map(|slot| self.note_in(slot));
                let newer = head.superseded_by.and_then(|id| self.note(id));
                let notes = older.chain(newer).map(Node::Note);
                Box::new(mentioned.map(Node::Entity).chain(notes))
            }
        }
    }

    /// The relationships of an entity, oldest first.
    pub(super) fn relations_of<'a>(
        &'a self,
        entity: &'a EntityState,
    ) -> impl Iterator<Item = &'a StoredRelation> {
        let slots = entity.relations.iter();
        slots.filter_map(|slot| self.relation_in(*slot))
    }

    /// The entity at the other end of a relationship.
    pub(super) fn other_end(&self, entity: &EntityState, relation: &StoredRelation) -> Option<&EntityState> {
        let is_source = relation.source == entity.id;
        self.entity(if is_source {
            &relation.target
        } else {
            &relation.source
        })
    }

    /// The node as clients see it.
    pub(super) fn to_graph_node(&self, node: Node<'_>) -> GraphNode {
        match node {
            Node::Entity(entity) => GraphNode {
                id: entity.public_id(),
                label: entity.name().to_owned(),
                node_type: entity.entity_type.to_string(),
                tier: entity.tier().map(|tier| tier.as_str().to_owned()),
                aliases: entity.aliases().to_vec(),
                confidence: entity.confidence,
                created_at: entity.created_at,
            },
            Node::Note(head) => GraphNode {
                id: head.id.to_string(),
                label: head.label.to_string(),
                node_type: NOTE_TYPE.into(),
                tier: Some(head.tier.as_str().to_owned()),
                aliases: Vec::new(),
                confidence: head.confidence,
                created_at: head.created_at,
            },
        }
    }
}
