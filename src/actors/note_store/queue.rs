//! Requests that wait to be written.

use std::collections::VecDeque;
use std::net::IpAddr;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::prepare::PreparedNote;
use crate::domain::error::DomainError;
use crate::domain::memory::note::RememberOutcome;

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

/// The queue, oldest request first, and whether a task writes what is in it.
#[derive(Default)]
pub(super) struct Queue {
    requests: VecDeque<PendingRequest>,
    has_writer: bool,
}

impl Queue {
    /// Adds a request; returns whether a task must be started that writes it.
    pub(super) fn push(&mut self, request: PendingRequest) -> bool {
        self.requests.push_back(request);
        !std::mem::replace(&mut self.has_writer, true)
    }

    /// Takes all requests, oldest first.
    pub(super) fn take(&mut self) -> Vec<PendingRequest> {
        self.requests.drain(..).collect()
    }

    /// Lets the task end if nothing waits; returns whether it may.
    pub(super) fn may_end(&mut self) -> bool {
        self.has_writer = !self.requests.is_empty();
        !self.has_writer
    }

    /// Number of waiting requests.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }
}
