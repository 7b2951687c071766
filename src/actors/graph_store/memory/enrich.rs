//! What a language model adds to notes afterwards: more entities, and which notes say the same or contradict.
//!
//! The queue is a table, so nothing that waits is lost; a note leaves it in the transaction that stores what came out.

use std::sync::Arc;

use uuid::Uuid;

use super::{Memory, NoteStatus};
use crate::actors::graph_store::GraphStore;
use crate::actors::graph_store::core::GraphCore;
use crate::actors::graph_store::documents;
use crate::actors::handle::{Access, Request};
use crate::actors::job::{self, blocking};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::memory::entity::Mentions;
use crate::domain::memory::note::Note;
use crate::domain::memory::tier::{Tier, confidence_of};
use crate::domain::memory::{digest, entity::mentions_in};
use crate::search::{IndexDoc, embedding_text};
use crate::store::{NotesWrite, StoredEntity, StoredRelation, entity_id, relation_id};

/// Cosine from which an older note is shown to the model.
const RELATED: f32 = 0.6;
/// Source type of a text that a model wrote.
const BY_MODEL: &str = "model";

/// A note whose turn it is, with the older notes nearest to it.
#[derive(Debug)]
pub struct WaitingNote {
    pub note: Note,
    pub candidates: Vec<Note>,
}

/// The notes that wait longest.
#[derive(Debug)]
pub struct NextWaiting {
    pub limit: usize,
}

impl Request for NextWaiting {
    type Reply = Vec<WaitingNote>;
    const NAME: &'static str = "next_waiting";
    const ACCESS: Access = Access::Read;
}

/// What a model made of a note.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It stands for itself.
    Keep,
    /// It takes the place of an older one.
    Supersedes(Uuid),
    /// An older one says it all and takes its place.
    SaidBy(Uuid),
    /// It and an older one become one text.
    Merges { older: Uuid, text: String },
}

/// Stores what a model made of a note, and takes the note out of the queue.
#[derive(Debug)]
pub struct ApplyEnrichment {
    pub note: Uuid,
    pub found: Mentions,
    pub verdict: Verdict,
}

impl Request for ApplyEnrichment {
    type Reply = ();
    const NAME: &'static str = "apply_enrichment";
    const ACCESS: Access = Access::Write;
}

/// Counts a failed attempt at a note; the reply is how many there were.
#[derive(Debug)]
pub struct EnrichmentFailed(pub Uuid);

impl Request for EnrichmentFailed {
    type Reply = u32;
    const NAME: &'static str = "enrichment_failed";
    const ACCESS: Access = Access::Write;
}

job::delegate! {
    GraphStore:
    NextWaiting => next_waiting,
    ApplyEnrichment => apply_enrichment,
    EnrichmentFailed => enrichment_failed,
}

impl GraphCore {
    async fn next_waiting(&self, message: NextWaiting) -> Result<Vec<WaitingNote>, DomainError> {
        let memory = self.memory().await?;
        let ws = memory.workspace;
        let mut ids = self.store.waiting_for_enrichment(ws).await?;
        ids.truncate(message.limit);
        let mut notes = self.store.notes_by_id(ws, &ids).await?;
        notes.sort_by_key(|note| ids.iter().position(|id| *id == note.id));
        let (index, remote) = (Arc::clone(&self.index), self.remote_model());
        let texts: Vec<(Uuid, String)> = notes.iter().map(|note| (note.id, note.content.clone())).collect();
        let asked = blocking(move || {
            let embed = |text: &str| {
                index
                    .embed_query(&embedding_text("", &[], text))
                    .ok()
                    .filter(|_| !remote)
            };
            Ok(texts
                .into_iter()
                .map(|(id, text)| (id, embed(&text), text))
                .collect::<Vec<_>>())
        })
        .await?;
        let asked = asked
            .into_iter()
            .map(|(id, vector, text)| (id, text, vector))
            .collect();
        let near = self.candidates(memory, asked, RELATED).await?;
        let mut waiting = Vec::with_capacity(notes.len());
        for note in notes {
            let ids = near
                .iter()
                .find(|(id, _)| *id == note.id)
                .map(|(_, found)| found.as_slice());
            let mut candidates = self.store.notes_by_id(ws, ids.unwrap_or_default()).await?;
            candidates.retain(|other| {
                other.superseded_by.is_none() && other.domain == note.domain && other.id < note.id
            });
            waiting.push(WaitingNote { note, candidates });
        }
        Ok(waiting)
    }

    async fn apply_enrichment(&self, message: ApplyEnrichment) -> Result<(), DomainError> {
        let memory = self.memory().await?;
        let ws = memory.workspace;
        let state = self.state(ws);
        let note = self.store.notes_by_id(ws, &[message.note]).await?.pop();
        let (rev, docs, entries) = {
            let _turn = state.writing.lock().await;
            let mut write = NotesWrite {
                enriched: vec![message.note],
                ..NotesWrite::default()
            };
            let mut docs = Vec::new();
            if let Some(note) = note.filter(|note| memory.graph().is_active(note.id)) {
                add_mentions(memory, &mut write, &note, &message.found);
                judge(memory, &mut write, &mut docs, &note, message.verdict);
            }
            if (memory.tuning)().audited && !write.superseded.is_empty() {
                write.audit.push(entry(ws, message.note, &write));
            }
            let rev = self.store.write_notes(ws, &write, clock::now()).await?;
            docs.iter_mut().for_each(|doc: &mut IndexDoc| doc.rev = rev);
            memory.took(&write);
            Self::committed(&state, rev);
            (rev, docs, write.audit)
        };
        self.index_revision(ws, &state, rev, docs).await;
        for entry in entries {
            self.chain(entry).await;
        }
        Ok(())
    }

    async fn enrichment_failed(&self, message: EnrichmentFailed) -> Result<u32, DomainError> {
        let memory = self.memory().await?;
        self.store.enrichment_failed(memory.workspace, message.0).await
    }
}

/// Adds the entities and relationships that are new to the note or the graph.
fn add_mentions(memory: &Memory, write: &mut NotesWrite, note: &Note, found: &Mentions) {
    let graph = memory.graph();
    let ids: Vec<Uuid> = found
        .entities
        .iter()
        .map(|entity| entity_id(memory.workspace, &entity.key))
        .collect();
    let mut mentions = note.mentions.clone();
    for (draft, id) in found.entities.iter().zip(&ids) {
        if !graph.has_entity(*id) && !write.entities.iter().any(|entity| entity.id == *id) {
            write.entities.push(StoredEntity {
                id: *id,
                draft: draft.clone(),
                created_at: clock::now(),
            });
        }
        if !mentions.contains(id) {
            mentions.push(*id);
        }
    }
    if mentions.len() > note.mentions.len() {
        write.mentions.push((note.id, mentions));
    }
    for relation in &found.relations {
        let (Some(&source), Some(&target)) = (ids.get(relation.source), ids.get(relation.target)) else {
            continue;
        };
        let id = relation_id(memory.workspace, source, &relation.relationship, target);
        if source != target
            && graph.relation(id).is_none()
            && !write.relations.iter().any(|known| known.id == id)
        {
            write.relations.push(StoredRelation {
                id,
                source,
                target,
                relationship: relation.relationship.clone(),
                confidence: relation.confidence,
                proof: Some(relation.proof.clone()),
                note: Some(note.id),
                properties: None,
                created_at: clock::now(),
            });
        }
    }
}

/// Carries a verdict out, unless one of the notes lost its place in the meantime.
fn judge(memory: &Memory, write: &mut NotesWrite, docs: &mut Vec<IndexDoc>, note: &Note, verdict: Verdict) {
    let active = |id: Uuid| memory.graph().is_active(id);
    let mut supersede = |old: Uuid, by: Uuid| {
        write.superseded.push((old, by));
        docs.push(IndexDoc::removal(old, 0));
    };
    match verdict {
        Verdict::Keep => {}
        Verdict::Supersedes(older) if active(older) => supersede(older, note.id),
        Verdict::SaidBy(older) if active(older) => supersede(note.id, older),
        Verdict::Merges { older, text } if active(older) => {
            let merged = merged_note(memory.workspace, note, text);
            supersede(older, merged.id);
            supersede(note.id, merged.id);
            docs.push(documents::of_note(&merged, 0));
            let digest = hex::encode(digest::digest(&merged.domain, &merged.content));
            write.notes.push((merged, digest));
        }
        Verdict::Supersedes(_) | Verdict::SaidBy(_) | Verdict::Merges { .. } => {}
    }
}

/// The text of two notes in one; both stay readable, and its tier says who wrote it.
fn merged_note(ws: Uuid, note: &Note, text: String) -> Note {
    // What it mentions was in one of the two, so the graph knows it all.
    let mentions = mentions_in(&text).entities;
    Note {
        id: Uuid::now_v7(),
        mentions: mentions.iter().map(|entity| entity_id(ws, &entity.key)).collect(),
        content: text,
        domain: note.domain.clone(),
        source_type: BY_MODEL.into(),
        source_ref: note.source_ref.clone(),
        tier: Tier::C.as_str().into(),
        confidence: confidence_of(Tier::C).min(note.confidence),
        flags: note.flags.clone(),
        superseded_by: None,
        created_at: clock::now(),
    }
}

fn entry(ws: Uuid, note: Uuid, write: &NotesWrite) -> AuditEntry {
    let here = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    let superseded: Vec<String> = write
        .superseded
        .iter()
        .map(|(old, by)| format!("{old} by {by}"))
        .collect();
    AuditEntry::anonymous(ws, here, "memory.evolve", "note", Outcome::Success, clock::now())
        .on(note)
        .with("status", NoteStatus::Updated.as_str())
        .with("superseded", superseded)
}
