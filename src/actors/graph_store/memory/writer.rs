//! Ingest of notes: prepared in parallel, written in groups.
//!
//! Notes that arrive during a transaction go into the next one, so the cost of a durable write and an index commit is
//! shared by all of them. Groups run one after another, so checking for known notes and writing can't race.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::iter::once;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::evolution::Known;
use super::prepare::{Prepared, prepare};
use super::state::{Asker, Memory, Outcomes, Pending};
use super::tuning::Tuning;
use super::{FoundNote, IngestRelationship, ReadNote, Remember};
use crate::actors::graph_store::core::GraphCore;
use crate::actors::graph_store::documents;
use crate::actors::job::blocking;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::memory::entity::EntityDraft;
use crate::domain::memory::note::{self, Note, NoteStatus, Remembered};
use crate::search::IndexDoc;
use crate::store::{NoteHead, NotesWrite, StoredEntity, StoredRelation, entity_id, relation_id};

/// One group being written to the database.
#[derive(Default)]
struct Group {
    write: NotesWrite,
    docs: Vec<IndexDoc>,
    new_entities: HashSet<Uuid>,
    new_relations: HashSet<Uuid>,
    /// Notes of this group by digest.
    digests: HashMap<String, Remembered>,
    /// Notes that were already known, and the notes that stand for them.
    known: HashMap<Uuid, Uuid>,
    /// Stored notes that say the same as a note of this group.
    stored: HashMap<Uuid, Note>,
}

impl GraphCore {
    /// Ingests notes; they are durable and searchable when this returns.
    pub(super) async fn remember(&self, message: Remember) -> Result<Outcomes, DomainError> {
        let Remember { notes, from, permit } = message;
        let memory = self.memory().await?;
        self.index_of(memory.workspace).await?;
        let tuning = (memory.tuning)();
        let index = (!self.remote_model()).then(|| Arc::clone(&self.index));
        let ws = memory.workspace;
        let prepared = blocking(move || {
            let prepare = |note| prepare(ws, note, &tuning, index.as_deref());
            Ok(notes.into_iter().map(prepare).collect())
        })
        .await?;
        let (done, mut outcome) = oneshot::channel();
        memory.queue().push(Pending {
            notes: prepared,
            from,
            done,
            _permit: permit,
        });
        let state = self.state(ws);
        let written = {
            let _turn = state.writing.lock().await;
            // The previous holder of the turn may have written these notes along with its own.
            if let Ok(outcome) = outcome.try_recv() {
                return outcome;
            }
            let group = std::mem::take(&mut *memory.queue());
            self.write_group(memory, group).await
        };
        self.show(memory, written).await;
        outcome
            .await
            .unwrap_or_else(|error| Err(DomainError::internal("the write failed unexpectedly", error)))
    }

    /// Writes a group; call under the workspace's write lock.
    async fn write_group(&self, memory: &Memory, pending: Vec<Pending>) -> Written {
        let outcome = self.try_group(memory, &pending).await;
        let answers: Vec<_> = pending.into_iter().map(|request| request.done).collect();
        match outcome {
            Ok((rev, docs, entries, outcomes)) => Written {
                rev: Some(rev),
                docs,
                entries,
                answers: answers.into_iter().zip(outcomes.into_iter().map(Ok)).collect(),
            },
            Err(error) => Written {
                rev: None,
                docs: Vec::new(),
                entries: Vec::new(),
                answers: answers
                    .into_iter()
                    .map(|answer| (answer, Err(error.clone())))
                    .collect(),
            },
        }
    }

    async fn try_group(
        &self,
        memory: &Memory,
        pending: &[Pending],
    ) -> Result<(u64, Vec<IndexDoc>, Vec<AuditEntry>, Vec<Outcomes>), DomainError> {
        memory.refresh(&self.store).await?;
        let tuning = (memory.tuning)();
        let notes: Vec<&Prepared> = pending
            .iter()
            .flat_map(|request| &request.notes)
            .flatten()
            .collect();
        let known = self.known(memory, &notes, &tuning).await?;
        let mut group = Group {
            stored: self.repeated(memory, &notes).await?,
            ..Group::default()
        };
        let mut outcomes = Vec::with_capacity(pending.len());
        for request in pending {
            let outcome = request.notes.iter().map(|prepared| match prepared {
                Ok(prepared) => Ok(group.add(memory, prepared, &known, request.from, &tuning)),
                Err(error) => Err(error.clone()),
            });
            outcomes.push(outcome.collect());
        }
        let Group {
            mut write, mut docs, ..
        } = group;
        if write.notes.is_empty() && write.repeated.is_empty() {
            return Ok((0, docs, Vec::new(), outcomes));
        }
        let now = clock::now();
        write.stamp(now);
        let rev = self.store.write_notes(memory.workspace, &write, now).await?;
        docs.iter_mut().for_each(|doc| doc.rev = rev);
        memory.took(&write);
        Self::committed(&self.state(memory.workspace), rev);
        Ok((rev, docs, write.audit, outcomes))
    }

    /// Makes a written group visible to searches, then replies.
    async fn show(&self, memory: &Memory, written: Written) {
        let Written {
            rev,
            docs,
            entries,
            answers,
        } = written;
        if let Some(rev) = rev.filter(|rev| *rev > 0) {
            let state = self.state(memory.workspace);
            self.index_revision(memory.workspace, &state, rev, once(ready(Ok(docs))))
                .await;
        }
        for (answer, outcome) in answers {
            // The caller may have gone away; the notes are stored anyway.
            answer.send(outcome).ok();
        }
        for entry in entries {
            self.chain(entry).await;
        }
    }

    /// Writes one edge, and its two ends if they are new.
    pub(super) async fn ingest_relationship(&self, message: IngestRelationship) -> Result<Uuid, DomainError> {
        let memory = self.memory().await?;
        let ws = memory.workspace;
        let state = self.state(ws);
        let _turn = state.writing.lock().await;
        memory.refresh(&self.store).await?;
        let now = clock::now();
        let mut write = NotesWrite::default();
        let mut end = |draft: EntityDraft| {
            let id = entity_id(ws, &draft.key);
            let known = memory.graph().has_entity(id);
            if !known && !write.entities.iter().any(|entity| entity.id == id) {
                write.entities.push(StoredEntity {
                    id,
                    draft,
                    created_at: now,
                });
            }
            id
        };
        let (source, target) = (end(message.source), end(message.target));
        let id = relation_id(ws, source, &message.relationship, target);
        let known = memory.graph().relation(id).cloned();
        let confidence = message
            .properties
            .get("confidence")
            .and_then(serde_json::Value::as_f64);
        let relation = StoredRelation {
            id,
            source,
            target,
            relationship: message.relationship,
            confidence: confidence.unwrap_or(1.0).clamp(0.0, 1.0),
            proof: known.as_ref().and_then(|known| known.proof.clone()),
            note: known.as_ref().and_then(|known| known.note),
            properties: Some(message.properties),
            created_at: known.as_ref().map_or(now, |known| known.created_at),
        };
        if known.is_some() {
            write.changed_relations.push(relation);
        } else {
            write.relations.push(relation);
        }
        if (memory.tuning)().audited {
            let entry =
                AuditEntry::anonymous(ws, message.from, "memory.relate", "edge", Outcome::Success, now);
            write.audit.push(entry.on(id));
        }
        let rev = self.store.write_notes(ws, &write, now).await?;
        memory.took(&write);
        self.store.observe_rev(rev);
        for entry in write.audit {
            self.chain(entry).await;
        }
        Ok(id)
    }

    /// Reads one note in full.
    pub(super) async fn read_note(&self, message: ReadNote) -> Result<FoundNote, DomainError> {
        let memory = self.memory().await?;
        let mut found = self.store.notes_by_id(memory.workspace, &[message.0]).await?;
        let note = found.pop().ok_or(DomainError::NotFound("note"))?;
        Ok(FoundNote {
            entities: memory.graph().values(&note.mentions),
            score: 1.0,
            note,
        })
    }
}

/// A group after its transaction.
struct Written {
    /// `None` when it failed, 0 when there was nothing to write.
    rev: Option<u64>,
    docs: Vec<IndexDoc>,
    entries: Vec<AuditEntry>,
    answers: Vec<(Asker, Result<Outcomes, DomainError>)>,
}

impl Group {
    /// Adds a note, unless the same note already exists.
    fn add(
        &mut self,
        memory: &Memory,
        prepared: &Prepared,
        known: &Known,
        from: IpAddr,
        tuning: &Tuning,
    ) -> Remembered {
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
            let remembered = Remembered {
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
        let remembered = Remembered {
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
        self.mentioned(memory, prepared);
        let mut doc = documents::of_note(&prepared.note, 0);
        doc.vector.clone_from(&prepared.vector);
        self.docs.push(doc);
        self.write
            .notes
            .push((prepared.note.clone(), prepared.digest.clone()));
        self.digests.insert(prepared.digest.clone(), remembered.clone());
        let waiting = memory.enrichment.depth() + self.write.enrich.len() as u64;
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

    fn duplicate(&self, memory: &Memory, digest: &str) -> Option<Uuid> {
        let here = self.digests.get(digest).map(|remembered| remembered.note_id);
        let there = memory.graph().duplicate_of(digest);
        here.or_else(|| there.filter(|id| !self.write.superseded.iter().any(|(old, _)| old == id)))
    }

    /// Adds the entities and relationships of a note that the graph does not know yet.
    fn mentioned(&mut self, memory: &Memory, prepared: &Prepared) {
        let graph = memory.graph();
        let created_at = prepared.note.created_at;
        for (draft, id) in prepared.mentions.entities.iter().zip(&prepared.note.mentions) {
            if !graph.has_entity(*id) && self.new_entities.insert(*id) {
                self.write.entities.push(StoredEntity {
                    id: *id,
                    draft: draft.clone(),
                    created_at,
                });
            }
        }
        for relation in &prepared.mentions.relations {
            let mentions = &prepared.note.mentions;
            let (Some(&source), Some(&target)) =
                (mentions.get(relation.source), mentions.get(relation.target))
            else {
                continue;
            };
            let id = relation_id(memory.workspace, source, &relation.relationship, target);
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

fn entry(ws: Uuid, from: IpAddr, prepared: &Prepared, remembered: &Remembered) -> AuditEntry {
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

impl Memory {
    /// Applies a durable write to the graph.
    pub(super) fn took(&self, write: &NotesWrite) {
        let mut graph = self.graph_mut();
        write
            .entities
            .iter()
            .cloned()
            .for_each(|entity| graph.add_entity(entity));
        let relations = write.relations.iter().chain(&write.changed_relations);
        relations
            .cloned()
            .for_each(|relation| graph.put_relation(relation));
        for (note, digest) in &write.notes {
            graph.add_note(NoteHead {
                id: note.id,
                label: note::label(&note.content),
                domain: note.domain.clone(),
                tier: note.tier.clone(),
                confidence: note.confidence,
                digest: digest.clone(),
                mentions: note.mentions.clone(),
                superseded_by: note.superseded_by,
                created_at: note.created_at,
            });
        }
        write.repeated.iter().for_each(|note| graph.repeat(note));
        for (note, mentions) in &write.mentions {
            graph.add_mentions(*note, mentions);
        }
        for (old, by) in &write.superseded {
            graph.supersede(*old, *by);
        }
        drop(graph);
        self.created
            .fetch_add(write.notes.len() as u64, Ordering::Relaxed);
        self.enrichment.done(write.enriched.len() as u64);
        if !write.enrich.is_empty() {
            self.enrichment.add(write.enrich.len() as u64);
        }
    }
}
