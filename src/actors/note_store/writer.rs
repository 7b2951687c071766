//! Ingest of notes: prepared in parallel, written in groups.
//!
//! Notes that arrive while others are written form the next group, so the cost of a durable write and an index commit is
//! shared by all of them. One task writes all groups (`pipeline.rs`), so checking for known notes and writing can't race.
//! What takes long is done before: deriving entities and vectors, and searching the stored notes for near-duplicates.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::Remember;
use super::evolution::NearDuplicates;
use super::known_names::NoteNames;
use super::prepare::{PreparedNote, prepare};
use super::queue::{Asker, Outcomes, PendingRequest};
use super::state::Memory;
use super::tuning::Tuning;
use super::wording::Wording;
use crate::actors::audit_writer::ChainAll;
use crate::actors::indexed_store::{Turn, WorkspaceState};
use crate::actors::job::blocking;
use crate::actors::note_store::core::NoteCore;
use crate::actors::note_store::documents::Notes;
use crate::clock;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::memory::note::{NewNote, Note};
use crate::search::IndexDoc;
use crate::store::NotesWrite;

/// Bytes of text that are prepared at once, in about a millisecond: handing them to another thread would cost more.
const SHORT: usize = 4 << 10;

impl NoteCore {
    /// Ingests notes; they are durable and searchable when this returns.
    pub(super) async fn remember(self: &Arc<Self>, message: Remember) -> Result<Outcomes, DomainError> {
        let Remember { notes, from, permit } = message;
        let memory = self.memory().await?;
        // What the index lacks must be there before anything is compared with it.
        self.notes_index(memory).await?;
        let tuning = (memory.tuning)();
        let mut notes = self.prepare_notes(memory, notes, &tuning).await?;
        let mut new: Vec<&mut PreparedNote> = notes.iter_mut().flatten().filter(|new| new.evolve).collect();
        self.look_up(memory, &mut new, &tuning).await?;
        let (done, outcome) = oneshot::channel();
        let request = PendingRequest {
            notes,
            from,
            done,
            _permit: permit,
        };
        if memory.enqueue(request) {
            tokio::spawn(Arc::clone(self).write_queue());
        }
        outcome
            .await
            .unwrap_or_else(|error| Err(DomainError::internal("the write failed unexpectedly", error)))
    }

    async fn prepare_notes(
        &self,
        memory: &Memory,
        notes: Vec<NewNote>,
        tuning: &Tuning,
    ) -> Result<Vec<Result<PreparedNote, DomainError>>, DomainError> {
        let ids = memory.ids;
        let index = (!self.notes.remote_model()).then(|| Arc::clone(&self.notes.index));
        if notes.iter().map(|note| note.content.len()).sum::<usize>() <= SHORT {
            let mut names = NoteNames::of(&memory.graph);
            let prepare = |note| prepare(ids, note, tuning, index.as_deref(), &mut names);
            return Ok(notes.into_iter().map(prepare).collect());
        }
        let (tuning, graph) = (tuning.clone(), Arc::clone(&memory.graph));
        blocking(move || {
            let mut names = NoteNames::of(&graph);
            let prepare = |note| prepare(ids, note, &tuning, index.as_deref(), &mut names);
            Ok(notes.into_iter().map(prepare).collect())
        })
        .await
    }

    /// What is known of the notes of a group: the near-duplicates, and the stored notes that are repeated with something
    /// new about them.
    pub(super) async fn find_known(
        &self,
        memory: &Memory,
        (state, turn): (&WorkspaceState, &Turn<'_, Notes>),
        requests: &mut [PendingRequest],
        tuning: &Tuning,
    ) -> Result<(NearDuplicates, HashMap<Uuid, Note>), DomainError> {
        memory.refresh(&self.notes.store, turn).await?;
        self.look_again(memory, state, requests, tuning).await?;
        let notes: Vec<&PreparedNote> = requests
            .iter()
            .flat_map(|request| &request.notes)
            .flatten()
            .collect();
        let known = NearDuplicates::of(memory, &notes, tuning);
        Ok((known, self.find_repeated(memory, &notes).await?))
    }

    /// Looks up again the notes whose search was so long ago that what was written since is no longer remembered.
    async fn look_again(
        &self,
        memory: &Memory,
        state: &WorkspaceState,
        pending: &mut [PendingRequest],
        tuning: &Tuning,
    ) -> Result<(), DomainError> {
        let all = pending.iter_mut().flat_map(|request| &mut request.notes);
        let mut late: Vec<&mut PreparedNote> = {
            let recent = memory.recent();
            let is_late = |note: &&mut PreparedNote| note.evolve && !recent.reaches(note.looked.seen);
            all.flatten().filter(is_late).collect()
        };
        if late.is_empty() {
            return Ok(());
        }
        state.wait_until_indexed().await?;
        self.look_up(memory, &mut late, tuning).await
    }

    /// Writes durably, and shows the write in the graph; returns its number and its audit entries.
    pub(super) async fn write_memory(
        &self,
        memory: &Memory,
        turn: &Turn<'_, Notes>,
        mut write: NotesWrite,
        wordings: Vec<Arc<Wording>>,
    ) -> Result<(u64, Vec<AuditEntry>), DomainError> {
        let now = clock::now();
        write.stamp(now);
        let rev = turn.after() + 1;
        let written = self
            .notes
            .store
            .write_notes(memory.workspace, &write, rev, now)
            .await;
        written.inspect_err(|error| memory.doubt(error))?;
        let entries = std::mem::take(&mut write.audit);
        memory.apply_write(rev, write, wordings);
        Ok((rev, entries))
    }

    /// Makes a written group visible to searches, then replies; returns at once.
    pub(super) fn show(self: &Arc<Self>, landed: GroupOutcome) {
        let core = Arc::clone(self);
        tokio::spawn(async move {
            core.show_group(&core.memory, landed).await;
        });
    }

    async fn show_group(&self, memory: &Memory, landed: GroupOutcome) {
        let GroupOutcome {
            rev,
            docs,
            entries,
            answers,
        } = landed;
        if let Some(rev) = rev {
            let state = self.notes.state(memory.workspace);
            self.show_docs(memory, &state, rev, docs).await;
        }
        let answered = async {
            for (answer, outcome) in answers {
                // The caller may have gone away; the notes are stored anyway.
                answer.send(outcome).ok();
            }
        };
        // The entries come first: after the last answer the service may be told to stop.
        tokio::join!(self.chain_all(memory.workspace, entries), answered);
    }

    /// Indexes what a committed revision changed.
    pub(super) async fn show_docs(
        &self,
        memory: &Memory,
        state: &WorkspaceState,
        rev: u64,
        docs: Vec<IndexDoc>,
    ) {
        let ws = memory.workspace;
        let applied = async {
            let target = self.notes_index(memory).await?;
            let embed = !self.notes.remote_model();
            self.notes.apply(ws, &target, docs, state.mark(rev), embed).await
        };
        let applied = applied.await;
        self.notes.record_indexed(ws, state, rev, applied);
    }

    /// Hands entries that are already in the log to the audit writer to be linked.
    pub(super) async fn chain_all(&self, tenant: Uuid, entries: Vec<AuditEntry>) {
        if entries.is_empty() {
            return;
        }
        if let Err(error) = self.notes.audit().call(ChainAll { tenant, entries }).await {
            // Not lost: unlinked entries are linked at the next start.
            tracing::warn!(?error, "audit entries wait for their links");
        }
    }
}

/// A group after its transaction.
#[derive(Default)]
pub(super) struct GroupOutcome {
    /// Its revision; `None` when nothing was written.
    pub(super) rev: Option<u64>,
    pub(super) docs: Vec<IndexDoc>,
    pub(super) entries: Vec<AuditEntry>,
    answers: Vec<(Asker, Result<Outcomes, DomainError>)>,
}

impl GroupOutcome {
    pub(super) fn with_answers(
        answers: impl Iterator<Item = (Asker, Result<Outcomes, DomainError>)>,
    ) -> Self {
        Self {
            answers: answers.collect(),
            ..Self::default()
        }
    }

    pub(super) fn with_error(askers: impl Iterator<Item = Asker>, error: &DomainError) -> Self {
        Self::with_answers(askers.map(|asker| (asker, Err(error.clone()))))
    }
}
