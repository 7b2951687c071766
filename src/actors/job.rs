//! Runs the work behind an actor's reply on the multi-thread runtime.

use std::future::Future;

use actix::ResponseFuture;
use tokio::runtime::Handle;
use tracing::{Instrument, Span};

use super::handle::InFlight;
use crate::domain::error::DomainError;

/// Spawns `work` on the multi-thread runtime. It is not cancelled when the caller goes away, and a panic fails only
/// its own reply.
pub(super) fn run<T: Send + 'static>(
    runtime: &Handle,
    guard: InFlight,
    span: Span,
    work: impl Future<Output = Result<T, DomainError>> + Send + 'static,
) -> ResponseFuture<Result<T, DomainError>> {
    let task = runtime.spawn(
        async move {
            let _guard = guard;
            work.await
        }
        .instrument(span),
    );
    Box::pin(async move { joined(task.await) })
}

/// Runs CPU-heavy or blocking work off the async threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DomainError> + Send + 'static,
) -> Result<T, DomainError> {
    joined(crate::blocking::spawn(work).await)
}

/// Starts work on another task and returns a future that waits for it. The work is not cancelled when that future is
/// dropped, so it must be read-only.
pub(super) fn beside<T: Send + 'static>(
    work: impl Future<Output = Result<T, DomainError>> + Send + 'static,
) -> impl Future<Output = Result<T, DomainError>> {
    let task = tokio::spawn(work.in_current_span());
    async move { joined(task.await) }
}

fn joined<T>(result: Result<Result<T, DomainError>, tokio::task::JoinError>) -> Result<T, DomainError> {
    result.unwrap_or_else(|error| Err(DomainError::internal("the request failed unexpectedly", error)))
}
