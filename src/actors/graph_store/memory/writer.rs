//! Ingest of notes: prepared in parallel, written in groups.
//!
//! Notes that arrive while a group is written go into the next one, so the cost of a durable write and an index commit is
//! shared by all of them. Groups run one after another, so checking for known notes and writing can't race. Within a
//! group, what is independent is written side by side. What takes long is done before: deriving entities and vectors, and
//! searching the stored notes for near-duplicates.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Remember;
use super::evolution::Known;
use super::group::Group;
use super::prepare::{Prepared, prepare};
use super::split::split;
use super::state::{Asker, Memory, Outcomes, Pending};
use super::tuning::Tuning;
use super::wording::Wording;
use crate::actors::audit_writer::ChainAll;
use crate::actors::graph_store::core::GraphCore;
use crate::actors::graph_store::workspace::WorkspaceState;
use crate::actors::job::blocking;
use crate::capacity;
use crate::clock;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::memory::note::NewNote;
use crate::search::IndexDoc;
use crate::store::NotesWrite;

/// Bytes of text that are prepared at once, in about a millisecond: handing them to another thread would cost more.
const SHORT: usize = 4 << 10;

impl GraphCore {
    /// Ingests notes; they are durable and searchable when this returns.
    pub(super) async fn remember(&self, message: Remember) -> Result<Outcomes, DomainError> {
        let Remember { notes, from, permit } = message;
        let memory = self.memory().await?;
        // What the index lacks must be there before anything is compared with it.
        self.notes_index(memory).await?;
        let tuning = (memory.tuning)();
        let mut notes = self.prepared(memory, notes, &tuning).await?;
        let mut new: Vec<&mut Prepared> = notes.iter_mut().flatten().filter(|new| new.evolve).collect();
        self.look_up(memory, &mut new, &tuning).await?;
        let (done, mut outcome) = oneshot::channel();
        memory.queue().push(Pending {
            notes,
            from,
            done,
            _permit: permit,
        });
        let state = self.state(memory.workspace);
        let written = {
            let _turn = state.writing.lock().await;
            // The previous holder of the turn may have written these notes along with its own.
            if let Ok(outcome) = outcome.try_recv() {
                return outcome;
            }
            let group = std::mem::take(&mut *memory.queue());
            self.write_group(memory, &state, group).await
        };
        self.show(memory, &state, written).await;
        outcome
            .await
            .unwrap_or_else(|error| Err(DomainError::internal("the write failed unexpectedly", error)))
    }

    async fn prepared(
        &self,
        memory: &Memory,
        notes: Vec<NewNote>,
        tuning: &Tuning,
    ) -> Result<Vec<Result<Prepared, DomainError>>, DomainError> {
        let ws = memory.workspace;
        let index = (!self.remote_model()).then(|| Arc::clone(&self.index));
        if notes.iter().map(|note| note.content.len()).sum::<usize>() <= SHORT {
            let prepare = |note| prepare(ws, note, tuning, index.as_deref());
            return Ok(notes.into_iter().map(prepare).collect());
        }
        let tuning = tuning.clone();
        blocking(move || {
            let prepare = |note| prepare(ws, note, &tuning, index.as_deref());
            Ok(notes.into_iter().map(prepare).collect())
        })
        .await
    }

    /// Writes a group; call under the workspace's write lock.
    async fn write_group(
        &self,
        memory: &Memory,
        state: &WorkspaceState,
        mut pending: Vec<Pending>,
    ) -> Written {
        let tuning = (memory.tuning)();
        let known = async {
            memory.refresh(&self.store).await?;
            self.look_again(memory, state, &mut pending, &tuning).await?;
            let notes: Vec<&Prepared> = pending
                .iter()
                .flat_map(|request| &request.notes)
                .flatten()
                .collect();
            let known = Known::of(memory, &notes, &tuning);
            Ok((known, self.repeated(memory, &notes).await?))
        };
        let mut written = Written::default();
        let (known, stored) = match known.await {
            Ok(known) => known,
            Err(error) => {
                written.refused(pending.into_iter().map(|request| request.done), &error);
                return written;
            }
        };
        let mut waiting = memory.enrichment.depth();
        let mut parts = Vec::new();
        for requests in split(memory, pending, &known, self.side_by_side()) {
            let mut group = Group::of(stored.clone(), waiting);
            let asked = requests.into_iter().map(|request| {
                let notes = request.notes.iter().map(|prepared| match prepared {
                    Ok(prepared) => Ok(group.add(memory, prepared, &known, request.from, &tuning)),
                    Err(error) => Err(error.clone()),
                });
                let outcomes = notes.collect();
                (request, outcomes)
            });
            let asked = asked.collect();
            waiting += group.write.enrich.len() as u64;
            parts.push(Part { group, asked });
        }
        self.write_parts(memory, state, parts, &mut written).await;
        written
    }

    /// Number of transactions that may run at once. Another process that follows the journal of writes must meet
    /// revisions in order, so with a shared database it is one.
    fn side_by_side(&self) -> usize {
        if self.surroundings.shared_store {
            1
        } else {
            capacity::cores()
        }
    }

    /// Writes each part in its own transaction and shows those that succeeded in the graph.
    async fn write_parts(
        &self,
        memory: &Memory,
        state: &WorkspaceState,
        mut parts: Vec<Part>,
        written: &mut Written,
    ) {
        let now = clock::now();
        parts.iter_mut().for_each(|part| part.group.write.stamp(now));
        let (mut write, mut wordings, mut revs) = (NotesWrite::default(), Vec::new(), Vec::new());
        for (mut part, rev) in self.store_parts(memory.workspace, parts, now).await {
            match rev {
                Ok(rev) => {
                    part.group.docs.iter_mut().for_each(|doc| doc.rev = rev);
                    written.docs.append(&mut part.group.docs);
                    write.append(part.group.write);
                    wordings.append(&mut part.group.wordings);
                    revs.extend(Some(rev).filter(|rev| *rev > 0));
                    let answers = part.asked.into_iter();
                    let answers = answers.map(|(request, outcomes)| (request.done, Ok(outcomes)));
                    written.answers.extend(answers);
                }
                Err(error) => {
                    let refused = part.asked.into_iter().map(|(request, _)| request.done);
                    written.refused(refused, &error);
                }
            }
        }
        let (Some(&first), Some(&last)) = (revs.iter().min(), revs.iter().max()) else {
            return;
        };
        written.entries = std::mem::take(&mut write.audit);
        // In the order in which a restart reads them.
        write.stamp(now);
        memory.took(last, write, wordings);
        Self::committed(state, first);
        Self::committed_up_to(state, last);
        written.rev = Some(first);
    }

    /// Writes parts durably, side by side; returns the revision of each, 0 where there was nothing to write.
    async fn store_parts(
        &self,
        ws: Uuid,
        parts: Vec<Part>,
        now: DateTime<Utc>,
    ) -> Vec<(Part, Result<u64, DomainError>)> {
        let write = |part: Part| {
            let store = Arc::clone(&self.store);
            async move {
                let rev = if part.group.is_empty() {
                    Ok(0)
                } else {
                    store.write_notes(ws, &part.group.write, now).await
                };
                (part, rev)
            }
        };
        // Also the first: a worker takes a task from another one's queue, but never the one spawned last.
        let tasks: Vec<_> = parts.into_iter().map(|part| tokio::spawn(write(part))).collect();
        let mut done = Vec::with_capacity(tasks.len());
        for task in tasks {
            // A part whose task panicked takes its callers' channels with it, which tells them.
            done.extend(task.await.ok());
        }
        done
    }

    /// Looks up again the notes whose search was so long ago that what was written since is no longer remembered.
    async fn look_again(
        &self,
        memory: &Memory,
        state: &WorkspaceState,
        pending: &mut [Pending],
        tuning: &Tuning,
    ) -> Result<(), DomainError> {
        let all = pending.iter_mut().flat_map(|request| &mut request.notes);
        let mut late: Vec<&mut Prepared> = {
            let recent = memory.recent();
            let is_late = |note: &&mut Prepared| note.evolve && !recent.reaches(note.looked.seen);
            all.flatten().filter(is_late).collect()
        };
        if late.is_empty() {
            return Ok(());
        }
        state.settled().await?;
        self.look_up(memory, &mut late, tuning).await
    }

    /// Writes durably, and shows the write in the graph; returns its revision and its audit entries. Call under the
    /// write lock.
    pub(super) async fn write_memory(
        &self,
        memory: &Memory,
        mut write: NotesWrite,
        wordings: Vec<Arc<Wording>>,
    ) -> Result<(u64, Vec<AuditEntry>), DomainError> {
        let now = clock::now();
        write.stamp(now);
        let rev = self.store.write_notes(memory.workspace, &write, now).await?;
        let entries = std::mem::take(&mut write.audit);
        memory.took(rev, write, wordings);
        Ok((rev, entries))
    }

    /// Makes a written group visible to searches, then replies.
    async fn show(&self, memory: &Memory, state: &WorkspaceState, written: Written) {
        let Written {
            rev,
            docs,
            entries,
            answers,
        } = written;
        if let Some(rev) = rev {
            self.show_docs(memory, state, rev, docs).await;
        }
        for (answer, outcome) in answers {
            // The caller may have gone away; the notes are stored anyway.
            answer.send(outcome).ok();
        }
        self.chain_all(memory.workspace, entries).await;
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
            let embed = !self.remote_model();
            self.apply(ws, &target, docs, state.mark(rev), embed).await
        };
        let applied = applied.await;
        self.indexed(ws, state, rev, applied);
    }

    /// Hands entries that are already in the log to the audit writer to be linked.
    pub(super) async fn chain_all(&self, tenant: Uuid, entries: Vec<AuditEntry>) {
        if entries.is_empty() {
            return;
        }
        if let Err(error) = self.audit().call(ChainAll { tenant, entries }).await {
            // Not lost: unlinked entries are linked at the next start.
            tracing::warn!(?error, "audit entries wait for their links");
        }
    }
}

/// Requests that share a transaction, with their outcomes if it succeeds.
struct Part {
    group: Group,
    asked: Vec<(Pending, Outcomes)>,
}

/// A group after its transactions.
#[derive(Default)]
struct Written {
    /// The first revision; `None` when nothing was written.
    rev: Option<u64>,
    docs: Vec<IndexDoc>,
    entries: Vec<AuditEntry>,
    answers: Vec<(Asker, Result<Outcomes, DomainError>)>,
}

impl Written {
    fn refused(&mut self, askers: impl Iterator<Item = Asker>, error: &DomainError) {
        self.answers
            .extend(askers.map(|asker| (asker, Err(error.clone()))));
    }
}
