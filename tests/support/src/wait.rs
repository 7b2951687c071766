//! Waiting for a condition. Tests wait for what they need, not for a length of time.

use std::fmt::Debug;
use std::future::{Future, ready};
use std::panic::Location;
use std::time::{Duration, Instant};

/// Longest wait for a condition.
const PATIENCE: Duration = Duration::from_secs(300);
/// First and longest pause between two attempts; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(64);

/// Repeats `attempt` until it succeeds, and returns its value.
///
/// # Panics
/// With the last error and the caller's line, when it does not succeed within five minutes.
#[track_caller]
pub fn eventually<T, E: Debug, F: Future<Output = Result<T, E>>>(
    mut attempt: impl FnMut() -> F,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            match attempt().await {
                Ok(value) => return value,
                Err(error) => assert!(
                    Instant::now() < deadline,
                    "{caller}: after {PATIENCE:?} still {error:?}"
                ),
            }
            tokio::time::sleep(pause).await;
            pause = MAX_PAUSE.min(2 * pause);
        }
    }
}

/// Waits until `condition` holds.
///
/// # Panics
/// With the caller's line, when it does not hold within five minutes.
#[track_caller]
pub fn until(mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    eventually(move || ready(if condition() { Ok(()) } else { Err("false") }))
}
