//! Requests that wait to be written.

use std::collections::VecDeque;
use std::net::IpAddr;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::prepare::PreparedNote;
use crate::domain::error::DomainError;
use crate::domain::memory::note::RememberOutcome;

/// Fewest notes that are worth a transaction beside another one.
pub(super) const LEAST: usize = 4;

/// Outcome for each note of one request.
pub(super) type Outcomes = Vec<Result<RememberOutcome, DomainError>>;
/// Channel to the caller that waits for the outcome of a request.
pub(super) type Asker = oneshot::Sender<Result<Outcomes, DomainError>>;

/// Notes of one request waiting for their group.
pub(super) struct PendingRequest {
    pub(super) notes: Vec<Result<PreparedNote, DomainError>>,
    pub(super) from: IpAddr,
    pub(super) done: Asker,
    pub(super) _permit: Option<OwnedSemaphorePermit>,
}

impl PendingRequest {
    /// Number of notes; a request without any still needs its answer.
    fn weight(&self) -> usize {
        self.notes.len().max(1)
    }
}

/// The queue, oldest request first, and whether a task writes what is in it.
#[derive(Default)]
pub(super) struct Queue {
    requests: VecDeque<PendingRequest>,
    notes: usize,
    has_writer: bool,
}

impl Queue {
    /// Adds a request; returns whether a task must be started that writes it.
    pub(super) fn push(&mut self, request: PendingRequest) -> bool {
        self.notes += request.weight();
        self.requests.push_back(request);
        !std::mem::replace(&mut self.has_writer, true)
    }

    /// Number of waiting notes.
    pub(super) fn notes(&self) -> usize {
        self.notes
    }

    /// Takes the oldest requests: the share of one of so many transactions, which is at least [`LEAST`] notes.
    pub(super) fn share(&mut self, transactions: usize) -> Vec<PendingRequest> {
        let before = self.notes;
        let share = before.div_ceil(transactions.min(before / LEAST).max(1));
        let mut taken = Vec::new();
        while before - self.notes < share
            && let Some(request) = self.requests.pop_front()
        {
            self.notes -= request.weight();
            taken.push(request);
        }
        taken
    }

    /// Puts requests back to the front, in their order.
    pub(super) fn requeue(&mut self, requests: Vec<PendingRequest>) {
        for request in requests.into_iter().rev() {
            self.notes += request.weight();
            self.requests.push_front(request);
        }
    }

    /// Lets the task end if nothing waits; returns whether it may.
    pub(super) fn may_end(&mut self) -> bool {
        self.has_writer = !self.requests.is_empty();
        !self.has_writer
    }

    /// Number of waiting requests.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }
}
