//! One node with what is around it.

use uuid::Uuid;

use crate::actors::note_store::graph::{EntityState, MemoryGraph, NoteState};
use crate::actors::note_store::lists::note_edge_id;
use crate::actors::note_store::node::Node;
use crate::domain::memory::view::{
    ConnectedNode, MENTIONS, Neighbour, NodeDetails, NoteSummary, Page, SUPERSEDES,
};
use crate::store::StoredRelation;

impl MemoryGraph {
    /// A node with a page of its notes and of its neighbours; `None` if there is no such node. The context of each note
    /// is its label.
    pub(super) fn details(&self, id: &str, page: Page) -> Option<NodeDetails> {
        let node = self.find(id)?;
        let degree = self.degree(node);
        let (notes, total_notes, neighbours, total_neighbours) = match node {
            Node::Entity(entity) => (
                self.page_of_notes(entity, page),
                entity.note_count(),
                self.page_of_related(entity, page),
                entity.relations.len(),
            ),
            Node::Note(head) => (Vec::new(), 0, self.page_of_ends(head, page), degree),
        };
        Some(NodeDetails {
            node: ConnectedNode {
                node: self.to_graph_node(node),
                degree,
            },
            notes,
            total_notes,
            neighbours,
            total_neighbours,
        })
    }

    /// The active notes that mention an entity, newest first.
    pub(in crate::actors::note_store) fn page_of_notes(
        &self,
        entity: &EntityState,
        page: Page,
    ) -> Vec<NoteSummary> {
        let notes = entity.notes.iter().rev().filter_map(|slot| self.note_in(*slot));
        let active = notes.filter(|note| note.is_active());
        let summary = |head: &NoteState| NoteSummary {
            id: head.id,
            context: head.label.to_string(),
            domain: head.domain.to_string(),
            tier: head.tier.as_str().to_owned(),
            confidence: head.confidence,
            created_at: head.created_at,
        };
        active.skip(page.offset).take(page.limit).map(summary).collect()
    }

    /// The entities related to an entity, the oldest relationship first.
    fn page_of_related(&self, entity: &EntityState, page: Page) -> Vec<Neighbour> {
        let relations = self.relations_of(entity).skip(page.offset).take(page.limit);
        let neighbour = |relation: &StoredRelation| {
            Some(Neighbour {
                edge_id: relation.id,
                relationship: relation.relationship.clone(),
                outgoing: relation.source == entity.id,
                node: self.to_graph_node(Node::Entity(self.other_end(entity, relation)?)),
            })
        };
        relations.filter_map(neighbour).collect()
    }

    /// What a note mentions, the notes that it superseded, and the one that superseded it.
    fn page_of_ends(&self, head: &NoteState, page: Page) -> Vec<Neighbour> {
        let mentioned = self.mentioned_by(head).map(|id| End {
            edge_id: note_edge_id(head.id, id, MENTIONS),
            relationship: MENTIONS,
            outgoing: true,
            other: id,
        });
        let older = self.older_than(head.id).filter_map(|slot| self.note_in(slot));
        let older = older.map(|older| End {
            edge_id: note_edge_id(older.id, head.id, SUPERSEDES),
            relationship: SUPERSEDES,
            outgoing: true,
            other: older.id,
        });
        let newer = head.superseded_by.iter().map(|id| End {
            edge_id: note_edge_id(head.id, *id, SUPERSEDES),
            relationship: SUPERSEDES,
            outgoing: false,
            other: *id,
        });
        let ends = mentioned.chain(older).chain(newer);
        let shown = ends.skip(page.offset).take(page.limit);
        shown.filter_map(|end| self.neighbour_at(&end)).collect()
    }

    fn neighbour_at(&self, end: &End) -> Option<Neighbour> {
        let entity = self.entity(&end.other).map(Node::Entity);
        let node = entity.or_else(|| self.note(end.other).map(Node::Note))?;
        Some(Neighbour {
            edge_id: end.edge_id,
            relationship: end.relationship.to_owned(),
            outgoing: end.outgoing,
            node: self.to_graph_node(node),
        })
    }
}

/// The other end of an edge of a note.
struct End {
    edge_id: Uuid,
    relationship: &'static str,
    outgoing: bool,
    other: Uuid,
}
