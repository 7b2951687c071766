//! Retries a transaction that lost a race, with jitter and within a budget.

use std::future::Future;
use std::time::Duration;

use rand::Rng;
use surrealdb::types::QueryError;

use super::error::StoreError;

const TRIES: u32 = 10;

/// Runs `attempt` until it succeeds, fails for a reason other than a conflict, or the budget is used up. For writes
/// whose attempts check what exists first: to them a row that already exists is a lost race.
pub(in crate::store) async fn with_retry<T, F>(attempt: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    retry_when(is_conflict, attempt).await
}

/// Like [`with_retry`], for writes that report an existing row to the caller.
pub(in crate::store) async fn with_race_retry<T, F>(attempt: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    retry_when(lost_race, attempt).await
}

async fn retry_when<T, F>(
    again: impl Fn(&surrealdb::Error) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut tries = 0;
    loop {
        match attempt().await {
            Err(StoreError::Database(error)) if again(&error) && tries + 1 < TRIES => {
                tries += 1;
                let ceiling = (2u64 << tries.min(6)).min(100);
                let pause = rand::rng().random_range(1..=ceiling);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            other => return other,
        }
    }
}

/// Whether the transaction lost a race or found a row that another one wrote in the meantime.
fn is_conflict(error: &surrealdb::Error) -> bool {
    lost_race(error) || error.is_already_exists() || error.message().contains("already contains")
}

/// Whether the transaction lost a race. A client transaction's commit reports it as plain text only.
pub(in crate::store) fn lost_race(error: &surrealdb::Error) -> bool {
    matches!(error.query_details(), Some(QueryError::TransactionConflict)) || {
        let text = error.message();
        text.contains("can be retried") || text.contains("retry required")
    }
}
