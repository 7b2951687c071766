//! Runs the work of an actor's reply on the multi-thread runtime.

use std::future::Future;

use actix::ResponseFuture;
use tokio::runtime::Handle;
use tracing::{Instrument, Span};

use super::handle::InFlight;
use crate::domain::error::DomainError;

/// Spawns `work` so that it uses every core, is not cancelled when the caller goes away, and costs only its
/// own reply when it panics.
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

/// Runs CPU-heavy or blocking work beside the async threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DomainError> + Send + 'static,
) -> Result<T, DomainError> {
    joined(crate::blocking::spawn(work).await)
}

/// Starts work on another thread while the caller goes on; what it returns waits for the end. The work is
/// not cancelled when the caller loses interest, so it must only read.
pub(super) fn beside<T: Send + 'static>(
    work: impl Future<Output = Result<T, DomainError>> + Send + 'static,
) -> impl Future<Output = Result<T, DomainError>> {
    let task = tokio::spawn(work.in_current_span());
    async move { joined(task.await) }
}

fn joined<T>(result: Result<Result<T, DomainError>, tokio::task::JoinError>) -> Result<T, DomainError> {
    result.unwrap_or_else(|error| Err(DomainError::internal("the request failed unexpectedly", error)))
}
