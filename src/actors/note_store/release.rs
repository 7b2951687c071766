//! What goes with a note that is removed or says something else: the relationships and entities that it alone stated.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::core::NoteCore;
use super::graph::MemoryGraph;
use super::known_names::NoteNames;
use super::state::Memory;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::memory::change::{ChangeKind, MemoryChange};
use crate::domain::memory::entity::mentions_with;
use crate::domain::memory::note::Note;
use crate::store::{NotesWrite, StoredRelation};

/// Most other notes that are read for a statement, and how many at a time.
const MAX_READ: usize = 200;
const READ: usize = 20;

/// What a note states: source, relationship and target, with the sentence.
type Statements = HashMap<(Uuid, String, Uuid), String>;

impl MemoryGraph {
    /// The other notes that mention both ends of a relationship, the newest first.
    fn notes_with_both(&self, relation: &StoredRelation, but: Uuid) -> Vec<Uuid> {
        let ends = [relation.source, relation.target].map(|end| self.entity(&end));
        let [Some(source), Some(target)] = ends else {
            return Vec::new();
        };
        let (rarer, other) = match source.notes.len() <= target.notes.len() {
            true => (source, target.id),
            false => (target, source.id),
        };
        let notes = rarer.notes.iter().rev().filter_map(|slot| self.note_in(*slot));
        let both = notes.filter(|note| note.id != but && self.mentioned_by(note).any(|id| id == other));
        both.take(MAX_READ).map(|note| note.id).collect()
    }

    /// Whether a note other than this one mentions an entity itself, not only what stands for it.
    fn is_mentioned_by_another(&self, entity: Uuid, but: Uuid) -> bool {
        let listed = self
            .entity(&entity)
            .into_iter()
            .flat_map(|entity| entity.notes.iter());
        let mut others = listed
            .filter_map(|slot| self.note_in(*slot))
            .filter(|note| note.id != but);
        others.any(|note| self.own_mentions_of(note).contains(&entity))
    }
}

impl NoteCore {
    /// Adds to a write what goes when a note no longer states what it did. `stays` are the entities and relationships that it
    /// still states.
    pub(super) async fn release(
        &self,
        memory: &Memory,
        write: &mut NotesWrite,
        note: &Note,
        (mentions, relations): (&[Uuid], &[Uuid]),
    ) -> Result<(), DomainError> {
        let stated = self.stated_by(memory, note, relations);
        // Each note is read once, however many relationships it may state.
        let mut read = HashMap::new();
        for relation in stated {
            if relation.properties.is_some() {
                // Somebody has stated it directly, too.
                write.restated.push(StoredRelation {
                    note: None,
                    proof: None,
                    ..relation
                });
                continue;
            }
            let others = memory.graph().notes_with_both(&relation, note.id);
            match self.restated(memory, &relation, (&others, &mut read)).await? {
                Some(restated) => write.restated.push(restated),
                None => {
                    self.read_again(memory, write, &others).await?;
                    write.touched.push(relation.source);
                    write.removed.relations.push(relation.id);
                }
            }
        }
        let gone: HashSet<Uuid> = write.removed.relations.iter().copied().collect();
        let graph = memory.graph();
        for id in note.mentions.iter().filter(|id| !mentions.contains(id)) {
            let mut left = graph.own_relations_of(*id).into_iter();
            let is_new_end = |relation: &StoredRelation| relation.source == *id || relation.target == *id;
            let is_known = graph.is_mentioned_by_another(*id, note.id)
                || left.any(|relation| !gone.contains(&relation.id))
                || write.relations.iter().any(is_new_end)
                || graph.is_merged_into(*id);
            let Some(entity) = graph.own_entity(*id).filter(|_| !is_known) else {
                continue;
            };
            let change = MemoryChange::of_entity(ChangeKind::Deleted, *id, &entity.draft.key, "user");
            write.history.push(change);
            write.removed.entities.push(*id);
        }
        Ok(())
    }

    /// The relationships that are known from a note, without those that it still states.
    fn stated_by(&self, memory: &Memory, note: &Note, still: &[Uuid]) -> Vec<StoredRelation> {
        let graph = memory.graph();
        let of = |entity: Uuid| {
            let all = graph.own_relations_of(entity).into_iter();
            all.filter(move |relation| relation.source == entity)
        };
        let all = note.mentions.iter().copied().flat_map(of);
        all.filter(|relation| relation.note == Some(note.id) && !still.contains(&relation.id))
            .collect()
    }

    /// A relationship as another of these notes states it, if the rules find it in one.
    async fn restated(
        &self,
        memory: &Memory,
        relation: &StoredRelation,
        (others, read): (&[Uuid], &mut HashMap<Uuid, Statements>),
    ) -> Result<Option<StoredRelation>, DomainError> {
        let wanted = (relation.source, relation.relationship.clone(), relation.target);
        for part in others.chunks(READ) {
            let unread: Vec<Uuid> = part.iter().copied().filter(|id| !read.contains_key(id)).collect();
            if !unread.is_empty() {
                read.extend(self.statements_of(memory, &unread).await?);
            }
            let stated = part
                .iter()
                .find_map(|note| Some((*note, read.get(note)?.get(&wanted)?)));
            if let Some((note, proof)) = stated {
                return Ok(Some(StoredRelation {
                    note: Some(note),
                    proof: Some(proof.clone()),
                    ..relation.clone()
                }));
            }
        }
        Ok(None)
    }

    /// The relationships that the rules find in notes.
    async fn statements_of(
        &self,
        memory: &Memory,
        notes: &[Uuid],
    ) -> Result<Vec<(Uuid, Statements)>, DomainError> {
        let notes = self.notes.store.notes_by_id(memory.workspace, notes).await?;
        let (graph, ids) = (Arc::clone(&memory.graph), memory.ids);
        blocking(move || {
            let names = NoteNames::of(&graph);
            let statements = |note: &Note| {
                let found = mentions_with(&note.content, &names.in_text(&note.content));
                let id = |at: usize| found.entities.get(at).map(|entity| ids.entity(&entity.key));
                let stated = found.relations.iter().rev().filter_map(|stated| {
                    let ends = (id(stated.source)?, id(stated.target)?);
                    let key = (ends.0, stated.relationship.clone(), ends.1);
                    // The first sentence that states it stays.
                    Some((key, stated.proof.clone()))
                });
                (note.id, stated.collect())
            };
            Ok(notes.iter().map(statements).collect())
        })
        .await
    }

    /// Lets a language model read notes again, of which one may have stated what only it can find.
    async fn read_again(
        &self,
        memory: &Memory,
        write: &mut NotesWrite,
        notes: &[Uuid],
    ) -> Result<(), DomainError> {
        let most = (memory.tuning)().most_waiting;
        for note in notes.iter().take(READ) {
            let is_planned = write.enrich.contains(note);
            let room = memory.enrichment.depth() + (write.enrich.len() as u64) < most;
            let is_due = room && !is_planned && memory.graph().is_active(*note);
            if is_due && !self.notes.store.is_waiting(memory.workspace, *note).await? {
                write.enrich.push(*note);
            }
        }
        Ok(())
    }
}
