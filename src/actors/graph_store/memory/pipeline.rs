//! Groups of notes on their way into the database, several at once.
//!
//! The engine works on the rows of a transaction one after the other, on one core, and then waits for the disk. So the
//! next group is begun while the one before is still in flight. A request whose claims meet those of a group in flight
//! waits until that group has landed. Groups land in the order of their revisions, as a restart reads them.
//!
//! After a panic it is unknown what has become durable: the graph and the index are then completed from the database.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::runtime::Handle;
use tokio::sync::RwLockReadGuard;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::claims::Claims;
use super::evolution::NearDuplicates;
use super::group::Group;
use super::queue::{LEAST, Outcomes, PendingRequest};
use super::state::Memory;
use super::tuning::Tuning;
use super::writer::GroupOutcome;
use crate::actors::graph_store::core::GraphCore;
use crate::actors::graph_store::workspace::WorkspaceState;
use crate::capacity;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::memory::note::Note;

impl GraphCore {
    /// Writes requests until none wait.
    pub(super) async fn write_queue(self: Arc<Self>) {
        let Ok(memory) = self.memory_of() else {
            return;
        };
        let state = self.state(memory.workspace);
        let mut pipeline = Pipeline {
            core: &self,
            memory,
            state: &state,
            in_flight: VecDeque::new(),
            blocked: false,
            ended: false,
        };
        pipeline.run().await;
    }

    /// Number of transactions that may run at once. Another process that follows the journal of writes must meet
    /// revisions in order, so with a shared database it is one.
    fn most_transactions(&self) -> usize {
        if self.surroundings.shared_store {
            1
        } else {
            capacity::cores()
        }
    }

    /// Records that it is unknown whether these revisions became durable.
    fn distrust(&self, memory: &Memory, revs: impl IntoIterator<Item = u64>) {
        memory.distrust();
        let state = self.state(memory.workspace);
        let mut unindexed = state.backlog();
        for rev in revs {
            unindexed.lacks_vectors_from(rev);
            unindexed.behind = true;
        }
    }

    /// Waits for the groups that a pipeline left behind, then goes on with the queue.
    pub(super) async fn take_over(self: Arc<Self>, left: Vec<(u64, PartTask)>) {
        let mut revs = Vec::with_capacity(left.len());
        for (rev, written) in left {
            // Dropping what was written tells its callers.
            drop(written.await);
            revs.push(rev);
        }
        if let Ok(memory) = self.memory_of() {
            self.distrust(memory, revs);
        }
        self.write_queue().await;
    }
}

/// A group that is being written.
struct GroupInFlight<'a> {
    claims: Claims,
    rev: u64,
    /// Number of its notes that will wait for a language model.
    queued: u64,
    written: PartTask,
    /// Keeps the other writers of the workspace out.
    _turn: RwLockReadGuard<'a, ()>,
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
    core: &'a Arc<GraphCore>,
    memory: &'a Memory,
    state: &'a WorkspaceState,
    /// Oldest first.
    in_flight: VecDeque<GroupInFlight<'a>>,
    /// Whether the requests at the front of the queue must wait until a group has landed.
    blocked: bool,
    ended: bool,
}

impl Drop for Pipeline<'_> {
    fn drop(&mut self) {
        // After a panic the requests that it interrupted are gone; the others still want to be written.
        if !self.ended
            && let Ok(runtime) = Handle::try_current()
        {
            let left = self.in_flight.drain(..).map(|group| (group.rev, group.written));
            runtime.spawn(Arc::clone(self.core).take_over(left.collect()));
        }
    }
}

impl<'a> Pipeline<'a> {
    async fn run(&mut self) {
        loop {
            while self.begin().await {}
            let Some(oldest) = self.in_flight.front_mut() else {
                self.ended = self.memory.queue().may_end();
                if self.ended {
                    return;
                }
                continue;
            };
            tokio::select! {
                written = &mut oldest.written => {
                    let rev = oldest.rev;
                    // Its claims hold until it has landed.
                    match written {
                        Ok((part, outcome)) => self.land(part, outcome.map(|()| rev)),
                        // A task that panicked takes its callers' channels with it, which tells them.
                        Err(_) => self.core.distrust(self.memory, [rev]),
                    }
                    self.in_flight.pop_front();
                    self.blocked = false;
                }
                () = self.memory.arrival() => {}
            }
        }
    }

    /// Begins to write a group, if enough notes wait and a transaction is free; returns whether it may be called again.
    async fn begin(&mut self) -> bool {
        let alone = self.in_flight.is_empty();
        let free = self.core.most_transactions().saturating_sub(self.in_flight.len());
        let least = if alone { 1 } else { LEAST };
        if self.blocked || free == 0 || self.memory.queue().notes() < least {
            return false;
        }
        let turn = match self.state.writing.try_read() {
            Ok(turn) => turn,
            // Another writer waits until all groups have landed.
            Err(_) if !alone => return false,
            Err(_) => self.state.writing.read().await,
        };
        let mut requests = self.memory.queue().share(free);
        if !alone && self.must_be_alone(&requests) {
            self.memory.queue().requeue(requests);
            self.blocked = true;
            return false;
        }
        let tuning = (self.memory.tuning)();
        let known = self
            .core
            .find_known(self.memory, self.state, &mut requests, &tuning);
        let (known, stored) = match known.await {
            Ok(known) => known,
            Err(error) => {
                let askers = requests.into_iter().map(|request| request.done);
                self.core.show(GroupOutcome::with_error(askers, &error));
                return true;
            }
        };
        let (requests, claims) = self.without_conflicts(requests, &known, &tuning);
        if requests.is_empty() {
            self.blocked = true;
            return false;
        }
        let now = clock::now();
        let part = self.part(requests, &known, stored, &tuning, now);
        let rev = self.core.store.next_rev();
        self.in_flight.push_back(GroupInFlight {
            claims,
            rev,
            queued: part.group.write.enrich.len() as u64,
            written: self.write(part, rev, now),
            _turn: turn,
        });
        true
    }

    /// Whether these requests can be planned only once nothing is in flight: the memory must be read again, or one of
    /// their notes was looked up so long ago that it must be looked up again.
    fn must_be_alone(&self, requests: &[PendingRequest]) -> bool {
        let recent = self.memory.recent();
        let mut notes = requests.iter().flat_map(|request| &request.notes).flatten();
        self.memory.is_stale(&self.core.store)
            || notes.any(|note| note.evolve && !recent.reaches(note.looked.seen))
    }

    /// The requests that can be written beside what is in flight, and their claims. The others wait, as do those that
    /// touch the same as one that waits.
    fn without_conflicts(
        &self,
        requests: Vec<PendingRequest>,
        known: &NearDuplicates,
        tuning: &Tuning,
    ) -> (Vec<PendingRequest>, Claims) {
        let (mut taken, mut claims) = (Vec::new(), Claims::default());
        let (mut deferred, mut deferred_claims) = (Vec::new(), Claims::default());
        for request in requests {
            let own = Claims::of(self.memory, &request, known);
            let mut in_flight = self.in_flight.iter().map(|group| &group.claims);
            if deferred_claims.meet(&own, tuning) || in_flight.any(|claims| claims.meet(&own, tuning)) {
                deferred_claims.add(own);
                deferred.push(request);
            } else {
                claims.add(own);
                taken.push(request);
            }
        }
        self.memory.queue().requeue(deferred);
        (taken, claims)
    }

    fn part(
        &self,
        requests: Vec<PendingRequest>,
        known: &NearDuplicates,
        stored: HashMap<Uuid, Note>,
        tuning: &Tuning,
        now: DateTime<Utc>,
    ) -> RequestGroup {
        let queued: u64 = self.in_flight.iter().map(|group| group.queued).sum();
        let mut group = Group::of(stored, self.memory.enrichment.depth() + queued);
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
        let (ws, store) = (self.memory.workspace, Arc::clone(&self.core.store));
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
                    GraphCore::record_durable(self.state, rev);
                    landed.rev = Some(rev);
                }
                landed
            }
        };
        self.core.show(landed);
    }
}
