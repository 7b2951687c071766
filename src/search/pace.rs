//! Keeps merges of the text index from taking the processor away from requests.
//!
//! A merge runs on one thread of its workspace's writer. While the workspace is in use, merges together may take a
//! quarter of the cores: on a machine with fewer than four cores the merging thread rests before it writes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::capacity::cores;

/// Prefix of the names of the text index's merging threads.
const MERGING: &str = "merge_thread";
/// Share of the cores that merging may take (1 in 4).
const SHARE: f64 = 0.25;
/// How long after its last call a workspace still counts as in use.
const IN_USE: Duration = Duration::from_millis(200);
/// Longest time worked between two rests that is made up for: a thread that waited for the disk has not worked.
const LONGEST_WORK: Duration = Duration::from_millis(250);

/// When a workspace was used last.
#[derive(Debug)]
pub(super) struct Activity {
    born: Instant,
    /// Milliseconds from `born` to the last call.
    used: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Self {
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
    pub(super) fn idle_for(&self) -> Duration {
        let used = Duration::from_millis(self.used.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(used)
    }
}

/// The pace of one merge.
#[derive(Debug)]
pub(super) struct Pace {
    activity: Arc<Activity>,
    /// Time to rest for each second worked.
    rest_per_work: f64,
    since: Instant,
}

impl Pace {
    /// The pace of this thread, if it is a merging thread that could take more than its share.
    pub(super) fn of_this_thread(activity: &Arc<Activity>) -> Option<Self> {
        let merges = thread::current()
            .name()
            .is_some_and(|name| name.starts_with(MERGING));
        let rest_per_work = rest_per_work(cores() as f64);
        (merges && rest_per_work > 0.0).then(|| Pace {
            activity: Arc::clone(activity),
            rest_per_work,
            since: Instant::now(),
        })
    }

    /// Rests for the time worked since the last rest, while the workspace is in use.
    pub(super) fn rest(&mut self) {
        if self.activity.idle_for() < IN_USE {
            let worked = self.since.elapsed().min(LONGEST_WORK);
            // A merging thread runs no actors.
            #[allow(clippy::disallowed_methods)]
            thread::sleep(worked.mul_f64(self.rest_per_work));
        }
        self.since = Instant::now();
    }
}

/// How long one thread must rest for each second of work to take no more than the share of these cores.
fn rest_per_work(cores: f64) -> f64 {
    (1.0 / (cores * SHARE) - 1.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_takes_no_more_than_a_quarter_of_the_cores() {
        for (cores, rest) in [(1.0, 3.0), (2.0, 1.0), (4.0, 0.0), (16.0, 0.0)] {
            assert_eq!(rest_per_work(cores), rest, "{cores} cores");
        }
    }

    #[test]
    fn a_merge_rests_only_while_its_workspace_is_in_use() {
        let activity = Arc::new(Activity::new());
        let mut pace = Pace {
            activity: Arc::clone(&activity),
            rest_per_work: 1.0,
            since: Instant::now(),
        };
        let worked = Duration::from_millis(20);
        let rested = |pace: &mut Pace| {
            pace.since = Instant::now() - worked;
            let begun = Instant::now();
            pace.rest();
            begun.elapsed()
        };
        activity.touch();
        assert!(rested(&mut pace) >= worked);
        // Nothing can rest for this long after a call that lies so far back.
        let idle = Arc::new(Activity {
            born: Instant::now() - Duration::from_secs(60),
            used: AtomicU64::new(0),
        });
        pace.activity = idle;
        assert!(rested(&mut pace) < worked);
    }
}
