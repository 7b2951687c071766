//! Sliding windows: a request is admitted if fewer than the limit were admitted within the window that ends with it.
//!
//! A fixed window would admit twice the limit around its edge. The price of a log is memory, so requests that come
//! shortly after one another share an entry, which is forgotten with the last of them: no window ever holds more
//! than the limit, and a request is forgotten at most a [`STEPS`]th of the window late.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::RateState;

/// Requests within this fraction of a window share an entry, so a window has at most two entries more than this.
const STEPS: u32 = 1024;

/// A limit: most requests within a length of time.
pub type Limit = (u32, Duration);

/// The requests that were admitted during the last `span`.
#[derive(Debug, Clone)]
struct Window {
    span: Duration,
    /// Oldest first: the time of the last request of the entry, and how many it stands for.
    entries: VecDeque<(Instant, u32)>,
    /// Requests in all entries.
    used: u32,
    /// Time of the first request of the newest entry.
    opened: Instant,
}

impl Window {
    fn new(span: Duration, now: Instant) -> Self {
        Self {
            span,
            entries: VecDeque::new(),
            used: 0,
            opened: now,
        }
    }

    /// Forgets what is older than the window.
    fn slide(&mut self, now: Instant) {
        while let Some((at, count)) = self.entries.front()
            && now.saturating_duration_since(*at) >= self.span
        {
            self.used -= count;
            self.entries.pop_front();
        }
    }

    fn add(&mut self, now: Instant) {
        self.used += 1;
        let shared = now.saturating_duration_since(self.opened) < self.span / STEPS;
        match self.entries.back_mut().filter(|_| shared) {
            Some((last, count)) => {
                *last = now;
                *count += 1;
            }
            None => {
                self.entries.push_back((now, 1));
                self.opened = now;
            }
        }
    }

    /// Time until a request will be admitted; `None` if it is now. More than `limit` may be in use if the limit was
    /// lowered.
    fn wait(&self, limit: u32, now: Instant) -> Option<Duration> {
        let mut excess = self.used.checked_sub(limit)?;
        for (at, count) in &self.entries {
            if *count > excess {
                return Some(self.left(*at, now));
            }
            excess -= count;
        }
        Some(self.span)
    }

    /// Time until an entry is forgotten.
    fn left(&self, at: Instant, now: Instant) -> Duration {
        self.span.saturating_sub(now.saturating_duration_since(at))
    }

    fn state(&self, limit: u32, now: Instant) -> RateState {
        let oldest = self.entries.front();
        RateState {
            allowed: true,
            limit,
            remaining: limit.saturating_sub(self.used),
            reset: oldest.map_or(Duration::ZERO, |(at, _)| self.left(*at, now)),
        }
    }
}

/// The windows of one caller. A request counts in all of them or in none.
#[derive(Debug, Clone)]
pub(super) struct Windows(Vec<Window>);

impl Windows {
    pub(super) fn new(limits: &[Limit], now: Instant) -> Self {
        Self(limits.iter().map(|(_, span)| Window::new(*span, now)).collect())
    }

    /// Counts a request if every window admits it. The reply is the state of the window that is nearest to refusing,
    /// or of the refusing one that takes longest to admit again. `limits` must have the lengths that the windows were
    /// made with.
    pub(super) fn take(&mut self, limits: &[Limit], now: Instant) -> RateState {
        self.slide(now);
        let pairs = self.0.iter().zip(limits);
        let refused = pairs.filter_map(|(window, (limit, _))| {
            let reset = window.wait(*limit, now)?;
            Some(RateState {
                allowed: false,
                limit: *limit,
                remaining: 0,
                reset,
            })
        });
        if let Some(state) = refused.max_by_key(|state| state.reset) {
            return state;
        }
        self.0.iter_mut().for_each(|window| window.add(now));
        let states = self.0.iter().zip(limits);
        let states = states.map(|(window, (limit, _))| window.state(*limit, now));
        let nearest = states.min_by_key(|state| (state.remaining, Reverse(state.reset)));
        nearest.unwrap_or(RateState::UNLIMITED)
    }

    pub(super) fn slide(&mut self, now: Instant) {
        self.0.iter_mut().for_each(|window| window.slide(now));
    }

    /// Entries of all windows, which determine their memory.
    pub(super) fn entries(&self) -> usize {
        self.0.iter().map(|window| window.entries.len()).sum()
    }

    /// Length of the longest window.
    pub(super) fn span(&self) -> Duration {
        self.0.iter().map(|window| window.span).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPAN: Duration = Duration::from_secs(60);

    /// Requests of a log that a window of this length counts at `now`.
    fn counted(log: &[Instant], span: Duration, now: Instant) -> usize {
        log.iter().filter(|at| now.duration_since(**at) < span).count()
    }

    /// Gaps between requests, in runs: bursts, steady streams, and pauses about as long as the window.
    fn gaps() -> impl Strategy<Value = Vec<Duration>> {
        let micros = prop_oneof![
            2 => Just(0_u64),
            4 => 1_000_u64..120_000,
            2 => 0_u64..10_000_000,
            2 => 58_000_000_u64..61_000_000,
        ];
        let runs = prop::collection::vec((micros, 1_usize..80), 1..12);
        runs.prop_map(|runs| {
            let repeated = |(micros, times)| std::iter::repeat_n(Duration::from_micros(micros), times);
            // A pause is not repeated: the next one would find nothing left to count.
            let times = |(micros, times)| (micros, if micros > 10_000_000 { 1 } else { times });
            runs.into_iter().map(times).flat_map(repeated).collect()
        })
    }

    proptest! {
        #[test]
        fn a_window_agrees_with_a_log_of_every_request(
            gaps in gaps(),
            limit in 1_u32..120,
        ) {
            let limits = [(limit, SPAN)];
            let mut now = Instant::now();
            let mut windows = Windows::new(&limits, now);
            let mut log = Vec::new();
            for gap in gaps {
                now += gap;
                let state = windows.take(&limits, now);
                let (strict, late) = (counted(&log, SPAN, now), counted(&log, SPAN + SPAN / STEPS, now));
                if state.allowed {
                    prop_assert!(strict < limit as usize);
                    log.push(now);
                } else {
                    prop_assert!(late >= limit as usize);
                    let before = now + state.reset - Duration::from_nanos(1);
                    prop_assert!(!windows.clone().take(&limits, before).allowed);
                    prop_assert!(windows.clone().take(&limits, now + state.reset).allowed);
                }
                prop_assert_eq!(state.remaining == 0, windows.0[0].used == limit);
                prop_assert!(windows.entries() <= limit as usize);
            }
        }

        #[test]
        fn several_windows_admit_what_each_of_them_does(
            gaps in gaps(),
            (few, many) in (1_u32..20, 10_u32..120),
        ) {
            let limits = [(few, SPAN / 12), (many, SPAN)];
            let mut now = Instant::now();
            let mut windows = Windows::new(&limits, now);
            let mut log = Vec::new();
            for gap in gaps {
                now += gap;
                let state = windows.take(&limits, now);
                if state.allowed {
                    log.push(now);
                    for (limit, span) in limits {
                        prop_assert!(counted(&log, span, now) <= limit as usize);
                    }
                } else {
                    let late = |(limit, span): Limit| {
                        counted(&log, span + span / STEPS, now) >= limit as usize
                    };
                    prop_assert!(limits.into_iter().any(late));
                    prop_assert!(windows.clone().take(&limits, now + state.reset).allowed);
                }
            }
        }
    }

    #[test]
    fn no_more_than_the_limit_passes_around_the_edge_of_a_window() {
        let (limits, start) = ([(10, SPAN)], Instant::now());
        let mut windows = Windows::new(&limits, start);
        let nearly = start + SPAN - Duration::from_secs(1);
        let admitted =
            |windows: &mut Windows, at| (0..20).filter(|_| windows.take(&limits, at).allowed).count();
        assert_eq!(admitted(&mut windows, nearly), 10);
        assert_eq!(admitted(&mut windows, start + SPAN), 0);
        assert_eq!(admitted(&mut windows, nearly + SPAN), 10);
    }

    #[test]
    fn a_busy_window_keeps_few_entries_and_a_lowered_limit_frees_it_late() {
        let (limits, start) = ([(1_000_000, SPAN)], Instant::now());
        let mut windows = Windows::new(&limits, start);
        let millisecond = Duration::from_millis(1);
        for n in 0..120_000 {
            assert!(windows.take(&limits, start + millisecond * n).allowed);
        }
        assert!(windows.entries() <= STEPS as usize + 2, "{}", windows.entries());
        let now = start + millisecond * 120_000;
        let state = windows.take(&[(30_000, SPAN)], now);
        assert_eq!((state.allowed, state.remaining), (false, 0));
        assert!(
            state.reset.abs_diff(SPAN / 2) <= SPAN / STEPS,
            "{:?}",
            state.reset
        );
        assert!(windows.take(&[(30_000, SPAN)], now + state.reset).allowed);
    }

    #[test]
    fn the_reply_is_that_of_the_window_nearest_to_refusing() {
        let hour = Duration::from_secs(3600);
        let (limits, start) = ([(10, hour), (15, hour * 24)], Instant::now());
        let mut windows = Windows::new(&limits, start);
        let first = windows.take(&limits, start);
        assert_eq!((first.limit, first.remaining, first.reset), (10, 9, hour));
        for _ in 1..10 {
            windows.take(&limits, start);
        }
        let refused = windows.take(&limits, start);
        assert_eq!((refused.allowed, refused.limit, refused.reset), (false, 10, hour));
        for left in (0..5).rev() {
            let state = windows.take(&limits, start + hour);
            assert_eq!((state.allowed, state.limit, state.remaining), (true, 15, left));
        }
        // The window of an hour would still admit it, and does not count what the other one refuses.
        let refused = windows.take(&limits, start + hour);
        assert_eq!((refused.limit, refused.reset), (15, hour * 23));
        assert_eq!(windows.0[0].used, 5);
    }
}
