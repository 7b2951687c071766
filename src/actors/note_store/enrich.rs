//! What a language model adds to notes later: more entities, and which notes repeat or contradict each other.
//!
//! The queue is a table, so no waiting note is lost. A note leaves it in the transaction that stores the result.

use std::sync::Arc;

use uuid::Uuid;

use super::evolution::SimilarNotesQuery;
use super::state::Memory;
use super::wording::Wording;
use crate::actors::job::blocking;
use crate::actors::note_store::core::NoteCore;
use crate::actors::note_store::documents;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::memory::digest::{self, Digest};
use crate::domain::memory::entity::{EntityDraft, Mentions, mentions_in};
use crate::domain::memory::note::{MAX_SOURCES, Note, NoteStatus};
use crate::domain::memory::tier::{Tier, confidence_of};
use crate::llm::ground::Haystack;
use crate::search::{IndexDoc, embedding_text};
use crate::store::{NotesWrite, StoredEntity, StoredRelation, WriteSource};

/// Cosine similarity from which an older note is shown to the model.
const RELATED: f32 = 0.6;
/// Source type of a text that a model wrote.
const BY_MODEL: &str = "model";

/// A note that is due, with the older notes nearest to it.
#[derive(Debug)]
pub struct WaitingNote {
    pub note: Note,
    pub candidates: Vec<Note>,
}

impl Verdict {
    /// The older note that it speaks of.
    fn older(&self) -> Option<Uuid> {
        match self {
            Self::Keep => None,
            Self::Supersedes(older) | Self::SaidBy(older) | Self::Merges { older, .. } => Some(*older),
        }
    }
}

impl WaitingNote {
    /// Its notes with their digests, so that one that is corrected meanwhile is recognised.
    pub fn digests(&self) -> Vec<(Uuid, Digest)> {
        let notes = std::iter::once(&self.note).chain(&self.candidates);
        let digest = |note: &Note| (note.id, digest::digest(&note.domain, &note.content));
        notes.map(digest).collect()
    }
}

/// The longest-waiting notes after this one.
#[derive(Debug)]
pub struct ReadWaitingNotes {
    pub after: Option<Uuid>,
    pub limit: u32,
}

impl Work for ReadWaitingNotes {
    type Core = NoteCore;
    type Reply = Vec<WaitingNote>;
    const NAME: &'static str = "next_waiting";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.next_waiting(self).await
    }
}

/// The model's verdict on a note.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The note stands on its own.
    Keep,
    /// It supersedes an older note.
    Supersedes(Uuid),
    /// An older note already says it all and supersedes it.
    SaidBy(Uuid),
    /// It and an older note are merged into one text.
    Merges { older: Uuid, text: String },
}

/// Stores the model's result for a note, and removes the note from the queue.
#[derive(Debug)]
pub struct ApplyEnrichment {
    pub note: Uuid,
    /// The notes that the model read, as it read them.
    pub read: Vec<(Uuid, Digest)>,
    pub found: Mentions,
    pub verdict: Verdict,
}

impl Work for ApplyEnrichment {
    type Core = NoteCore;
    type Reply = ();
    const NAME: &'static str = "apply_enrichment";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.apply_enrichment(self).await
    }
}

/// Counts a failed attempt at a note; the reply is the number of attempts so far.
#[derive(Debug)]
pub struct CountEnrichmentFailure(pub Uuid);

impl Work for CountEnrichmentFailure {
    type Core = NoteCore;
    type Reply = u32;
    const NAME: &'static str = "enrichment_failed";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.count_enrichment_failure(self).await
    }
}

impl NoteCore {
    async fn next_waiting(&self, message: ReadWaitingNotes) -> Result<Vec<WaitingNote>, DomainError> {
        let memory = self.memory().await?;
        let ws = memory.workspace;
        let ReadWaitingNotes { after, limit } = message;
        let ids = self.notes.store.waiting_for_enrichment(ws, after, limit).await?;
        let mut notes = self.notes.store.notes_by_id(ws, &ids).await?;
        notes.sort_unstable_by_key(|note| note.id);
        // A remote model would cost one more request per note; word search is enough.
        let index = (!self.notes.remote_model()).then(|| Arc::clone(&self.notes.index));
        let texts = notes.clone();
        let asked = blocking(move || {
            let embed = |note: &Note| {
                let text = embedding_text("", &[], &note.content);
                index.as_ref()?.embed_query(&text).ok()
            };
            Ok(texts
                .iter()
                .map(|note| SimilarNotesQuery::of(note, embed(note)))
                .collect::<Vec<_>>())
        })
        .await?;
        let near = self.candidates(memory, asked, RELATED).await?;
        let mut waiting = Vec::with_capacity(notes.len());
        for note in notes {
            let ids = near
                .iter()
                .find(|(id, _)| *id == note.id)
                .map(|(_, found)| found.as_slice());
            let mut candidates = self.notes.store.notes_by_id(ws, ids.unwrap_or_default()).await?;
            candidates.retain(|other| other.superseded_by.is_none() && other.id < note.id);
            waiting.push(WaitingNote { note, candidates });
        }
        Ok(waiting)
    }

    async fn apply_enrichment(&self, message: ApplyEnrichment) -> Result<(), DomainError> {
        let memory = self.memory().await?;
        let ws = memory.workspace;
        let state = self.notes.state(ws);
        let (rev, docs, entries) = {
            let turn = self.notes.turn(ws, &state).await?;
            memory.refresh(&self.notes.store, &turn).await?;
            if memory.is_changed(message.note, &message.read) {
                // It stays in the queue, and the model reads it as it is now.
                return Ok(());
            }
            let note = self.notes.store.notes_by_id(ws, &[message.note]).await?.pop();
            let older: Vec<Uuid> = message.verdict.older().into_iter().collect();
            let older = self.notes.store.notes_by_id(ws, &older).await?.pop();
            let is_changed = message
                .verdict
                .older()
                .is_some_and(|older| memory.is_changed(older, &message.read));
            let verdict = if is_changed {
                Verdict::Keep
            } else {
                message.verdict
            };
            let mut write = NotesWrite {
                enriched: vec![message.note],
                source: WriteSource::Model,
                ..NotesWrite::default()
            };
            let mut docs = Vec::new();
            if let Some(note) = note.filter(|note| memory.graph().is_active(note.id)) {
                add_mentions(memory, &mut write, &note, &message.found);
                let notes = [&note, older.as_ref().unwrap_or(&note)];
                judge(memory, &mut write, &mut docs, notes, verdict);
            }
            if (memory.tuning)().audited && !write.superseded.is_empty() {
                write.audit.push(entry(ws, message.note, &write));
            }
            let merged = write.notes.iter();
            let wordings = merged.map(|(note, digest)| Arc::new(Wording::of(note, *digest, None)));
            let wordings = wordings.collect();
            let (rev, entries) = self.write_memory(memory, &turn, write, wordings).await?;
            docs.iter_mut().for_each(|doc: &mut IndexDoc| doc.rev = rev);
            state.record_durable(rev);
            (rev, docs, entries)
        };
        self.show_docs(memory, &state, rev, docs).await;
        self.chain_all(ws, entries).await;
        Ok(())
    }

    async fn count_enrichment_failure(&self, message: CountEnrichmentFailure) -> Result<u32, DomainError> {
        let memory = self.memory().await?;
        self.notes
            .store
            .count_enrichment_failure(memory.workspace, message.0)
            .await
    }
}

impl Memory {
    /// Whether a note says something else than when it was read.
    fn is_changed(&self, note: Uuid, read: &[(Uuid, Digest)]) -> bool {
        let before = read.iter().find(|(id, _)| *id == note).map(|(_, digest)| digest);
        let graph = self.graph();
        let now = graph.note(note).map(|note| &note.digest);
        before.zip(now).is_some_and(|(before, now)| before != now)
    }
}

/// Adds the entities and relationships that are new to the note or to the graph.
fn add_mentions(memory: &Memory, write: &mut NotesWrite, note: &Note, found: &Mentions) {
    let ids = known_entities(memory, write, &found.entities);
    let graph = memory.graph();
    let mut mentions = note.mentions.clone();
    for id in &ids {
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
        let id = memory.ids.relation(source, &relation.relationship, target);
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

/// The ids of these entities; missing ones are written. A tool that the graph knows as malware counts as malware.
fn known_entities(memory: &Memory, write: &mut NotesWrite, drafts: &[EntityDraft]) -> Vec<Uuid> {
    let graph = memory.graph();
    let mut known = |draft: &EntityDraft| {
        let id = memory.ids.entity(&draft.key);
        if graph.has_entity(id) {
            return id;
        }
        let malware = draft.key.as_malware();
        let malware = malware.map(|key| memory.ids.entity(&key));
        if let Some(malware) = malware.filter(|id| graph.has_entity(*id)) {
            return malware;
        }
        if !write.entities.iter().any(|entity| entity.id == id) {
            write.entities.push(StoredEntity {
                id,
                draft: draft.clone(),
                created_at: clock::now(),
                merged_into: None,
            });
        }
        id
    };
    drafts.iter().map(&mut known).collect()
}

/// Applies a verdict, unless one of the notes has been superseded in the meantime. In a merge, the second note is the
/// older one.
fn judge(
    memory: &Memory,
    write: &mut NotesWrite,
    docs: &mut Vec<IndexDoc>,
    notes: [&Note; 2],
    verdict: Verdict,
) {
    let active = |id: Uuid| memory.graph().is_active(id);
    let [note, _] = notes;
    let mut superseded = Vec::new();
    match verdict {
        Verdict::Supersedes(older) if active(older) => superseded.push((older, note.id)),
        Verdict::SaidBy(older) if active(older) => superseded.push((note.id, older)),
        Verdict::Merges { older, text } if active(older) => {
            let merged = merged_note(memory, write, notes, text);
            superseded.extend([(older, merged.id), (note.id, merged.id)]);
            docs.push(documents::of_note(&merged, 0));
            let digest = digest::digest(&merged.domain, &merged.content);
            write.notes.push((merged, digest));
        }
        Verdict::Keep | Verdict::Supersedes(_) | Verdict::SaidBy(_) | Verdict::Merges { .. } => {}
    }
    docs.extend(superseded.iter().map(|(old, _)| IndexDoc::removal(*old, 0)));
    write.superseded.extend(superseded);
}

/// Merges two notes into a new one. Both stay readable, and the new note's tier says who wrote it.
fn merged_note(memory: &Memory, write: &mut NotesWrite, notes: [&Note; 2], text: String) -> Note {
    let mut mentions = known_entities(memory, write, &mentions_in(&text).entities);
    let haystack = Haystack::new(&text);
    // Keep what a model once found in either note, if the text still contains it.
    for id in mentions_of_both(memory, write, notes) {
        let drafted = write.entities.iter().find(|entity| entity.id == id).cloned();
        let drafted = drafted.or_else(|| memory.graph().own_entity(id));
        let stands = drafted.is_some_and(|StoredEntity { draft, .. }| {
            let mut names = [&draft.key.value, &draft.name].into_iter().chain(&draft.aliases);
            names.any(|name| haystack.name(name).is_some())
        });
        if stands && !mentions.contains(&id) {
            mentions.push(id);
        }
    }
    let [note, older] = notes;
    let mut flags = note.flags.clone();
    flags.extend(
        older
            .flags
            .iter()
            .filter(|flag| !note.flags.contains(flag))
            .cloned(),
    );
    let mut source_refs = note.source_refs.clone();
    let others = older.source_refs.iter();
    source_refs.extend(
        others
            .filter(|source| !note.source_refs.contains(source))
            .cloned(),
    );
    source_refs.truncate(MAX_SOURCES);
    Note {
        id: Uuid::now_v7(),
        source_refs,
        mentions,
        content: text,
        domain: note.domain.clone(),
        source_type: BY_MODEL.into(),
        source_ref: note.source_ref.clone(),
        tier: Tier::C.as_str().into(),
        confidence: confidence_of(Tier::C).min(note.confidence).min(older.confidence),
        flags,
        superseded_by: None,
        created_at: clock::now(),
    }
}

/// What the notes mention, including the additions of this write.
fn mentions_of_both(memory: &Memory, write: &NotesWrite, notes: [&Note; 2]) -> Vec<Uuid> {
    let graph = memory.graph();
    let stored = notes.iter().filter_map(|note| graph.note(note.id));
    let added = write.mentions.iter().flat_map(|(_, mentions)| mentions);
    stored
        .flat_map(|head| graph.own_mentions_of(head))
        .chain(added.copied())
        .collect()
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
