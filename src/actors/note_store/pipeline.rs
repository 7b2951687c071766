//! Groups of notes on their way into the database, one after the other.
//!
//! All requests that wait share a transaction, whose cost is the wait for the disk. Groups land in the order of their
//! revisions, as a restart reads them.
//!
//! After a panic it is unknown what has become durable: the graph and the index are then completed from the database.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::evolution::NearDuplicates;
use super::group::Group;
use super::queue::{Outcomes, PendingRequest};
use super::state::Memory;
use super::tuning::Tuning;
use super::writer::GroupOutcome;
use crate::actors::indexed_store::WorkspaceState;
use crate::actors::note_store::core::NoteCore;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::memory::note::Note;

impl NoteCore {
    /// Writes requests until none wait.
    pub(super) async fn write_queue(self: Arc<Self>) {
        let memory = &self.memory;
        let state = self.notes.state(memory.workspace);
        let mut pipeline = Pipeline {
            core: &self,
            memory,
            state: &state,
            in_flight: None,
            ended: false,
        };
        pipeline.run().await;
    }

    /// Records that it is unknown whether this revision became durable.
    fn distrust(&self, memory: &Memory, rev: u64) {
        memory.distrust();
        let state = self.notes.state(memory.workspace);
        let mut unindexed = state.backlog();
        unindexed.lacks_vectors_from(rev);
        unindexed.behind = true;
    }

    /// Waits for the group that a pipeline left behind, then goes on with the queue.
    pub(super) async fn take_over(self: Arc<Self>, left: Option<(u64, PartTask)>) {
        if let Some((rev, written)) = left {
            // Dropping what was written tells its callers.
            drop(written.await);
            self.distrust(&self.memory, rev);
        }
        self.write_queue().await;
    }
}

/// The task that writes a part.
pub(super) type PartTask = JoinHandle<(RequestGroup, Result<(), DomainError>)>;

/// Requests that share a transaction, with their outcomes if it succeeds.
pub(super) struct RequestGroup {
    group: Group,
    asked: Vec<(PendingRequest, Outcomes)>,
}

/// The only task that writes waiting requests.
struct Pipeline<'a> {
    core: &'a Arc<NoteCore>,
    memory: &'a Memory,
    state: &'a WorkspaceState,
    /// The group that is being written, by its revision.
    in_flight: Option<(u64, PartTask)>,
    ended: bool,
}

impl Drop for Pipeline<'_> {
    fn drop(&mut self) {
        // After a panic the requests that it interrupted are gone; the others still want to be written.
        if !self.ended
            && let Ok(runtime) = Handle::try_current()
        {
            let left = self.in_flight.take();
            runtime.spawn(Arc::clone(self.core).take_over(left));
        }
    }
}

impl Pipeline<'_> {
    async fn run(&mut self) {
        loop {
            let waits = self.memory.queue().len() > 0;
            if waits {
                self.write_group().await;
            } else if self.memory.queue().may_end() {
                self.ended = true;
                return;
            }
        }
    }

    /// Writes all requests that wait, and shows them once they are durable.
    async fn write_group(&mut self) {
        let turn = self.core.notes.turn(self.memory.workspace, self.state).await;
        let mut requests = self.memory.queue().take();
        let turn = match turn {
            Ok(turn) => turn,
            Err(error) => return self.refuse(requests, &error),
        };
        let tuning = (self.memory.tuning)();
        let known = self
            .core
            .find_known(self.memory, (self.state, &turn), &mut requests, &tuning);
        let (known, stored) = match known.await {
            Ok(known) => known,
            Err(error) => return self.refuse(requests, &error),
        };
        let now = clock::now();
        let part = self.part(requests, &known, stored, &tuning, now);
        let rev = turn.after() + 1;
        let (_, written) = self.in_flight.insert((rev, self.write(part, rev, now)));
        match written.await {
            Ok((part, outcome)) => self.land(part, outcome.map(|()| rev)),
            // A task that panicked takes its callers' channels with it, which tells them.
            Err(_) => self.core.distrust(self.memory, rev),
        }
        self.in_flight = None;
    }

    fn refuse(&self, requests: Vec<PendingRequest>, error: &DomainError) {
        let askers = requests.into_iter().map(|request| request.done);
        self.core.show(GroupOutcome::with_error(askers, error));
    }

    fn part(
        &self,
        requests: Vec<PendingRequest>,
        known: &NearDuplicates,
        stored: HashMap<Uuid, Note>,
        tuning: &Tuning,
        now: DateTime<Utc>,
    ) -> RequestGroup {
        let mut group = Group::of(stored, self.memory.enrichment.depth());
        let asked = requests.into_iter().map(|request| {
            let notes = request.notes.iter().map(|prepared| match prepared {
                Ok(prepared) => Ok(group.add(self.memory, prepared, known, request.from, tuning)),
                Err(error) => Err(error.clone()),
            });
            let outcomes = notes.collect();
            (request, outcomes)
        });
        let asked = asked.collect();
        group.write.stamp(now);
        RequestGroup { group, asked }
    }

    /// Writes a part durably in a task of its own.
    fn write(&self, part: RequestGroup, rev: u64, now: DateTime<Utc>) -> PartTask {
        let (ws, store) = (self.memory.workspace, Arc::clone(&self.core.notes.store));
        tokio::spawn(async move {
            let outcome = if part.group.is_empty() {
                Ok(())
            } else {
                store.write_notes(ws, &part.group.write, rev, now).await
            };
            (part, outcome)
        })
    }

    /// Shows a written part in the graph, then to searches and its callers.
    fn land(&self, part: RequestGroup, rev: Result<u64, DomainError>) {
        let RequestGroup { mut group, asked } = part;
        let landed = match rev {
            Err(error) => {
                self.memory.doubt(&error);
                GroupOutcome::with_error(asked.into_iter().map(|(request, _)| request.done), &error)
            }
            Ok(rev) => {
                let answers = asked.into_iter();
                let answers = answers.map(|(request, outcomes)| (request.done, Ok(outcomes)));
                let mut landed = GroupOutcome::with_answers(answers);
                if !group.is_empty() {
                    group.docs.iter_mut().for_each(|doc| doc.rev = rev);
                    landed.docs = group.docs;
                    landed.entries = std::mem::take(&mut group.write.audit);
                    self.memory.apply_write(rev, group.write, group.wordings);
                    self.state.record_durable(rev);
                    landed.rev = Some(rev);
                }
                landed
            }
        };
        self.core.show(landed);
    }
}
