//! Runs the work behind an actor's reply on the multi-thread runtime.

use std::future::Future;

use actix::dev::{MessageResponse, OneshotSender};
use actix::{Actor, Message};
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tracing::{Instrument, Span};

use super::handle::InFlight;
use crate::domain::error::DomainError;

/// Work that runs on the multi-thread runtime, as the result of a handler. Its reply goes from there to the caller and
/// does not wait for the actor's thread.
#[derive(Debug)]
pub struct TaskReply<T> {
    runtime: Handle,
    task: JoinHandle<Result<T, DomainError>>,
}

impl<A, M, T> MessageResponse<A, M> for TaskReply<T>
where
    A: Actor,
    M: Message<Result = Result<T, DomainError>>,
    T: Send + 'static,
{
    fn handle(self, _: &mut A::Context, caller: Option<OneshotSender<M::Result>>) {
        let Self { runtime, task } = self;
        if let Some(caller) = caller {
            runtime.spawn(async move {
                // The caller may have gone away.
                caller.send(flatten_join(task.await)).ok();
            });
        }
    }
}

/// Spawns `work` on the multi-thread runtime. It is not cancelled when the caller goes away, and a panic fails only
/// its own reply.
pub(super) fn run<T: Send + 'static>(
    runtime: &Handle,
    guard: InFlight,
    span: Span,
    work: impl Future<Output = Result<T, DomainError>> + Send + 'static,
) -> TaskReply<T> {
    let task = runtime.spawn(
        async move {
            let _guard = guard;
            work.await
        }
        .instrument(span),
    );
    TaskReply {
        runtime: runtime.clone(),
        task,
    }
}

/// Runs CPU-heavy or blocking work off the async threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DomainError> + Send + 'static,
) -> Result<T, DomainError> {
    flatten_join(crate::blocking::spawn(work).await)
}

/// Starts work on another task and returns a future that waits for it. The work is not cancelled when that future is
/// dropped, so it must be read-only.
pub(super) fn spawn_read<T: Send + 'static>(
    work: impl Future<Output = Result<T, DomainError>> + Send + 'static,
) -> impl Future<Output = Result<T, DomainError>> {
    let task = tokio::spawn(work.in_current_span());
    async move { flatten_join(task.await) }
}

fn flatten_join<T>(result: Result<Result<T, DomainError>, JoinError>) -> Result<T, DomainError> {
    result.unwrap_or_else(|error| Err(DomainError::internal("the request failed unexpectedly", error)))
}
