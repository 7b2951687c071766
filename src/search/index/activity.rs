//! When a workspace was used last: an index that nobody uses is closed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When a workspace was used last.
#[derive(Debug)]
pub(super) struct Activity {
    born: Instant,
    /// Milliseconds from `born` to the last call.
    used: AtomicU64,
}

impl Activity {
    pub(in crate::search) fn new() -> Self {
        Activity {
            born: Instant::now(),
            used: AtomicU64::new(0),
        }
    }

    pub(super) fn touch(&self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used.store(now, Ordering::Relaxed);
    }

    /// Time since the last call.
    pub(in crate::search) fn idle_for(&self) -> Duration {
        let used = Duration::from_millis(self.used.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_begins_with_the_last_call() {
        let minute = Duration::from_secs(60);
        let activity = Activity {
            born: Instant::now() - minute,
            used: AtomicU64::new(0),
        };
        assert!(activity.idle_for() >= minute);
        activity.touch();
        assert!(activity.idle_for() < minute);
    }
}
