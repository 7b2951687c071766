//! Notes on their way into the database in one transaction.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use uuid::Uuid;

use super::evolution::NearDuplicates;
use super::prepare::PreparedNote;
use super::state::Memory;
use super::tuning::Tuning;
use super::wording::Wording;
use crate::actors::note_store::documents;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::memory::digest::Digest;
use crate::domain::memory::note::{Note, NoteStatus, RememberOutcome};
use crate::search::IndexDoc;
use crate::store::{NotesWrite, StoredEntity, StoredRelation};

/// The notes of one transaction, and everything else that it writes.
#[derive(Default)]
pub(super) struct Group {
    pub(super) write: NotesWrite,
    pub(super) docs: Vec<IndexDoc>,
    /// The notes that are new.
    pub(super) wordings: Vec<Arc<Wording>>,
    new_entities: HashSet<Uuid>,
    new_relations: HashSet<Uuid>,
    /// Notes of this group by digest.
    digests: HashMap<Digest, RememberOutcome>,
    /// Notes that were already known, and the notes that stand for them.
    known: HashMap<Uuid, Uuid>,
    /// Stored notes that say the same as a note of this group.
    stored: HashMap<Uuid, Note>,
    /// Number of notes that wait for a language model already.
    waiting: u64,
}

impl Group {
    /// An empty group; `stored` are the stored notes that its notes repeat with something new about them, `waiting` is
    /// the number of notes that wait for a language model already.
    pub(super) fn of(stored: HashMap<Uuid, Note>, waiting: u64) -> Self {
        Self {
            stored,
            waiting,
            ..Self::default()
        }
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.write.notes.is_empty() && self.write.repeated.is_empty()
    }

    /// Adds a note, unless the same note already exists.
    pub(super) fn add(
        &mut self,
        memory: &Memory,
        prepared: &PreparedNote,
        known: &NearDuplicates,
        from: IpAddr,
        tuning: &Tuning,
    ) -> RememberOutcome {
        let entities = prepared
            .mentions
            .entities
            .iter()
            .map(|entity| entity.key.value.clone())
            .collect();
        if prepared.evolve
            && let Some(existing) = self.duplicate(memory, &prepared.digest)
        {
            self.known.insert(prepared.note.id, existing);
            let remembered = RememberOutcome {
                note_id: existing,
                status: NoteStatus::Duplicate,
                entities,
                superseded: None,
            };
            if self.repeat(existing, &prepared.note) && tuning.audited {
                let entry = entry(memory.workspace, from, prepared, &remembered);
                self.write.audit.push(entry);
            }
            return remembered;
        }
        let id = prepared.note.id;
        let near = known
            .near_duplicate(id)
            .map(|old| self.known.get(&old).copied().unwrap_or(old));
        let superseded = near.filter(|old| {
            // Two notes of one group can't both supersede a third.
            !self.write.superseded.iter().any(|(taken, _)| taken == old)
        });
        let remembered = RememberOutcome {
            note_id: id,
            status: if superseded.is_some() {
                NoteStatus::Updated
            } else {
                NoteStatus::Created
            },
            entities,
            superseded,
        };
        if let Some(old) = superseded {
            self.write.superseded.push((old, id));
            // The superseded note may be part of this very group.
            self.docs.retain(|doc| doc.node_id != old);
            self.write.enrich.retain(|waiting| *waiting != old);
            self.digests.retain(|_, earlier| earlier.note_id != old);
            self.docs.push(IndexDoc::removal(old, 0));
        }
        self.add_mentioned(memory, prepared);
        let mut doc = documents::of_note(&prepared.note, 0);
        doc.vector.clone_from(&prepared.wording.vector);
        self.docs.push(doc);
        self.write.notes.push((prepared.note.clone(), prepared.digest));
        self.wordings.push(Arc::clone(&prepared.wording));
        self.digests.insert(prepared.digest, remembered.clone());
        let waiting = self.waiting + self.write.enrich.len() as u64;
        if prepared.evolve && waiting < tuning.most_waiting {
            self.write.enrich.push(id);
        }
        if tuning.audited {
            self.write
                .audit
                .push(entry(memory.workspace, from, prepared, &remembered));
        }
        remembered
    }

    /// Adds to a note what its repetition brings; returns whether it changed.
    fn repeat(&mut self, existing: Uuid, again: &Note) -> bool {
        let mut new = self.write.notes.iter_mut().map(|(note, _)| note);
        if let Some(note) = new.find(|note| note.id == existing) {
            return note.repeat(again);
        }
        let Some(note) = self.stored.get_mut(&existing) else {
            return false;
        };
        let changed = note.repeat(again);
        if changed {
            self.write.repeated.retain(|known| known.id != existing);
            self.write.repeated.push(note.clone());
        }
        changed
    }

    fn duplicate(&self, memory: &Memory, digest: &Digest) -> Option<Uuid> {
        let here = self.digests.get(digest).map(|remembered| remembered.note_id);
        let there = memory.graph().duplicate_of(digest);
        here.or_else(|| there.filter(|id| !self.write.superseded.iter().any(|(old, _)| old == id)))
    }

    /// Adds the entities and relationships of a note that the graph does not know yet.
    pub(super) fn add_mentioned(&mut self, memory: &Memory, prepared: &PreparedNote) {
        let graph = memory.graph();
        let created_at = prepared.note.created_at;
        for (draft, id) in prepared.mentions.entities.iter().zip(&prepared.note.mentions) {
            if let Some(known) = graph.entity(id) {
                let has = |alias: &String| known.aliases().contains(alias);
                if known.id != *id || !draft.aliases.iter().all(has) {
                    let stored = graph.own_entity(*id).into_iter();
                    stored.for_each(|stored| self.write.rename(stored, &draft.aliases));
                }
            } else if self.new_entities.insert(*id) {
                self.write.entities.push(StoredEntity {
                    id: *id,
                    draft: draft.clone(),
                    created_at,
                    merged_into: None,
                });
            } else if let Some(new) = self.write.entities.iter_mut().find(|new| new.id == *id) {
                new.draft.add_aliases(&draft.aliases);
            }
        }
        for relation in &prepared.mentions.relations {
            let mentions = &prepared.note.mentions;
            let (Some(&source), Some(&target)) =
                (mentions.get(relation.source), mentions.get(relation.target))
            else {
                continue;
            };
            let id = memory.ids.relation(source, &relation.relationship, target);
            if graph.relation(id).is_none() && self.new_relations.insert(id) {
                self.write.relations.push(StoredRelation {
                    id,
                    source,
                    target,
                    relationship: relation.relationship.clone(),
                    confidence: relation.confidence,
                    proof: Some(relation.proof.clone()),
                    note: Some(prepared.note.id),
                    properties: None,
                    created_at,
                });
            }
        }
    }
}

fn entry(ws: Uuid, from: IpAddr, prepared: &PreparedNote, remembered: &RememberOutcome) -> AuditEntry {
    let note = &prepared.note;
    let entry = AuditEntry::anonymous(
        ws,
        from,
        "memory.remember",
        "note",
        Outcome::Success,
        note.created_at,
    )
    .on(remembered.note_id)
    .with("status", remembered.status.as_str())
    .with("domain", note.domain.as_str())
    .with("source_type", note.source_type.as_str())
    .with("flags", note.flags.clone());
    match remembered.superseded {
        Some(old) => entry.with("supersedes", old.to_string()),
        None => entry,
    }
}
