//! Notes that a user corrects or replaces by others.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::core::NoteCore;
use super::documents;
use super::group::Group;
use super::known_names::NoteNames;
use super::prepare::{PreparedNote, prepare};
use super::state::Memory;
use crate::actors::job::blocking;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::memory::change::{ChangeKind, MemoryChange};
use crate::domain::memory::digest;
use crate::domain::memory::note::{NewNote, Note};
use crate::search::IndexDoc;
use crate::store::{NoteVersion, NotesWrite, StoredRelation, WriteSource};

/// What a user says of a note from now on; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteCorrection {
    pub content: Option<String>,
    pub domain: Option<String>,
    pub source_type: Option<String>,
    pub source_ref: Option<String>,
}

/// Corrects a note; what it said before is kept as a version.
#[derive(Debug)]
pub struct CorrectNote {
    pub id: Uuid,
    pub correction: NoteCorrection,
    pub from: IpAddr,
    pub permit: Option<OwnedSemaphorePermit>,
}

impl Work for CorrectNote {
    type Core = NoteCore;
    type Reply = ();
    const NAME: &'static str = "correct_note";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.correct_note(self).await
    }
}

/// Replaces a note by another, as a near-duplicate does.
#[derive(Debug)]
pub struct SupersedeNote {
    pub id: Uuid,
    pub by: Uuid,
    pub from: IpAddr,
    pub permit: Option<OwnedSemaphorePermit>,
}

impl Work for SupersedeNote {
    type Core = NoteCore;
    type Reply = ();
    const NAME: &'static str = "supersede_note";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.supersede_note(self).await
    }
}

impl NoteCore {
    /// Writes in the turn what `plan` makes of the memory as it is then, and shows it everywhere. Returns what `plan`
    /// returned; nothing is written if it planned nothing.
    pub(super) async fn change<T>(
        &self,
        plan: impl AsyncFnOnce(&Self, &Memory, &mut NotesWrite, &mut Vec<IndexDoc>) -> Result<T, DomainError>,
    ) -> Result<T, DomainError> {
        let memory = self.memory().await?;
        let ws = memory.workspace;
        self.notes_index(memory).await?;
        let state = self.notes.state(ws);
        let turn = self.notes.turn(ws, &state).await?;
        memory.refresh(&self.notes.store, &turn).await?;
        let (mut write, mut docs) = (NotesWrite::default(), Vec::new());
        write.source = WriteSource::User;
        let planned = plan(self, memory, &mut write, &mut docs).await?;
        if write.is_empty() {
            return Ok(planned);
        }
        if !(memory.tuning)().audited {
            write.audit.clear();
        }
        let (rev, entries) = self.write_memory(memory, &turn, write, Vec::new()).await?;
        // What was compared with the notes as they were is compared again.
        memory.recent().forget(rev);
        docs.iter_mut().for_each(|doc: &mut IndexDoc| doc.rev = rev);
        state.record_durable(rev);
        drop(turn);
        self.show_docs(memory, &state, rev, docs).await;
        self.chain_all(ws, entries).await;
        Ok(planned)
    }

    /// A note as it is stored.
    pub(super) async fn stored_note(&self, memory: &Memory, id: Uuid) -> Result<Note, DomainError> {
        let mut found = self.notes.store.notes_by_id(memory.workspace, &[id]).await?;
        found.pop().ok_or(DomainError::NotFound("note"))
    }

    async fn correct_note(&self, message: CorrectNote) -> Result<(), DomainError> {
        let CorrectNote {
            id,
            correction,
            from,
            permit: _permit,
        } = message;
        self.change(async move |core, memory, write, docs| {
            let note = core.stored_note(memory, id).await?;
            let prepared = core.prepare_correction(memory, &note, &correction).await?;
            let changed = changes_between(&note, &prepared.note);
            let Some((mut before, mut after)) = changed else {
                return Ok(());
            };
            let versions = core.notes.store.note_versions(memory.workspace, id).await?;
            let number = versions.len() as u64 + 1;
            before.insert("version".into(), json!(number));
            after.insert("version".into(), json!(number + 1));
            core.plan_correction(memory, (write, docs), &note, prepared)
                .await?;
            write.versions.push(NoteVersion::of(&note, number));
            let change = MemoryChange::of_note(ChangeKind::Changed, id, "user");
            write
                .history
                .push(change.from_to(Some(Value::Object(before)), Some(Value::Object(after))));
            write
                .audit
                .push(entry(memory.workspace, from, "memory.correct", id));
            Ok(())
        })
        .await
    }

    /// The note with its correction, and everything derived from it.
    async fn prepare_correction(
        &self,
        memory: &Memory,
        note: &Note,
        correction: &NoteCorrection,
    ) -> Result<PreparedNote, DomainError> {
        let given = |new: &Option<String>, old: &str| new.clone().unwrap_or_else(|| old.to_owned());
        let new = NewNote {
            content: given(&correction.content, &note.content),
            domain: given(&correction.domain, &note.domain),
            source_type: given(&correction.source_type, &note.source_type),
            source_ref: given(&correction.source_ref, &note.source_ref),
            evolve: true,
        };
        let (tuning, graph, ids) = ((memory.tuning)(), Arc::clone(&memory.graph), memory.ids);
        let index = (!self.notes.remote_model()).then(|| Arc::clone(&self.notes.index));
        let prepared = blocking(move || {
            let mut names = NoteNames::of(&graph);
            prepare(ids, new, &tuning, index.as_deref(), &mut names)
        });
        let mut prepared = prepared.await?;
        let new = &mut prepared.note;
        new.id = note.id;
        new.created_at = note.created_at;
        new.superseded_by = note.superseded_by;
        if new.source_type == note.source_type {
            new.tier.clone_from(&note.tier);
            new.confidence = note.confidence;
        }
        if new.source_ref == note.source_ref {
            new.source_refs.clone_from(&note.source_refs);
        }
        if new.content == note.content {
            // A language model may have found more in it than the rules do.
            new.mentions.clone_from(&note.mentions);
            new.flags.clone_from(&note.flags);
        }
        Ok(prepared)
    }

    async fn plan_correction(
        &self,
        memory: &Memory,
        (write, docs): (&mut NotesWrite, &mut Vec<IndexDoc>),
        old: &Note,
        prepared: PreparedNote,
    ) -> Result<(), DomainError> {
        if prepared.note.content != old.content {
            let ws = memory.workspace;
            let mut group = Group::default();
            group.add_mentioned(memory, &prepared);
            write.entities = std::mem::take(&mut group.write.entities);
            write.renamed_entities = std::mem::take(&mut group.write.renamed_entities);
            write.relations = std::mem::take(&mut group.write.relations);
            let mentions = &prepared.note.mentions;
            let relations = prepared.mentions.relations.iter().filter_map(|relation| {
                let (source, target) = (mentions.get(relation.source)?, mentions.get(relation.target)?);
                Some(memory.ids.relation(*source, &relation.relationship, *target))
            });
            let stated: Vec<Uuid> = relations.collect();
            write
                .restated
                .extend(restatements(memory, old, &prepared, &stated));
            self.release(memory, write, old, (mentions, &stated)).await?;
            let waiting = self.notes.store.is_waiting(ws, old.id).await?;
            if !waiting && memory.enrichment.depth() < (memory.tuning)().most_waiting {
                write.enrich.push(old.id);
            }
        }
        let mut doc = documents::of_note(&prepared.note, 0);
        doc.vector.clone_from(&prepared.wording.vector);
        docs.push(doc);
        let digest = digest::digest(&prepared.note.domain, &prepared.note.content);
        write.corrected.push((prepared.note, digest));
        Ok(())
    }

    async fn supersede_note(&self, message: SupersedeNote) -> Result<(), DomainError> {
        let SupersedeNote {
            id,
            by,
            from,
            permit: _permit,
        } = message;
        self.change(async move |_, memory, write, docs| {
            let graph = memory.graph();
            let old = graph.note(id).ok_or(DomainError::NotFound("note"))?;
            if graph.note(by).is_none() {
                return Err(DomainError::NotFound("note"));
            }
            if graph.is_or_becomes(by, id) {
                let rule = "must be another note, and none that this one has superseded";
                return Err(DomainError::invalid("by", rule));
            }
            if old.superseded_by == Some(by) {
                return Ok(());
            }
            write.superseded.push((id, by));
            docs.push(IndexDoc::removal(id, 0));
            let entry = entry(memory.workspace, from, "memory.supersede", id);
            write.audit.push(entry.with("by", by.to_string()));
            Ok(())
        })
        .await
    }
}

/// What differs between a note and its correction, before and after, without the texts; `None` if nothing does.
fn changes_between(old: &Note, new: &Note) -> Option<(Map<String, Value>, Map<String, Value>)> {
    let (mut before, mut after) = (Map::new(), Map::new());
    for (field, old, new) in [
        ("domain", &old.domain, &new.domain),
        ("source_type", &old.source_type, &new.source_type),
        ("source_ref", &old.source_ref, &new.source_ref),
        ("tier", &old.tier, &new.tier),
    ] {
        if old != new {
            before.insert(field.into(), json!(old));
            after.insert(field.into(), json!(new));
        }
    }
    (!before.is_empty() || old.content != new.content).then_some((before, after))
}

pub(super) fn entry(ws: Uuid, from: IpAddr, action: &'static str, note: Uuid) -> AuditEntry {
    AuditEntry::anonymous(ws, from, action, "note", Outcome::Success, clock::now()).on(note)
}

/// The relationships that a note stated before its correction and states after it, each as the new text says it.
fn restatements(memory: &Memory, old: &Note, new: &PreparedNote, stated: &[Uuid]) -> Vec<StoredRelation> {
    let (graph, mentions) = (memory.graph(), &new.note.mentions);
    let of_text = new.mentions.relations.iter().filter_map(|relation| {
        let (source, target) = (mentions.get(relation.source)?, mentions.get(relation.target)?);
        let id = memory.ids.relation(*source, &relation.relationship, *target);
        let known = graph
            .own_relation(id)
            .filter(|known| known.note == Some(old.id))?;
        Some(StoredRelation {
            proof: Some(relation.proof.clone()),
            ..known
        })
    });
    of_text.filter(|relation| stated.contains(&relation.id)).collect()
}
