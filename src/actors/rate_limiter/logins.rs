//! Failed sign-ins per key in a sliding window.
//!
//! An attempt takes a slot before its password is checked, and there are only as many slots as failures left.
//! Parallel guesses therefore can't exceed the limit, while successful sign-ins merely wait for each other.
//!
//! The number of keys with failures is bounded. Beyond it the key with the fewest failures is forgotten, so that a lock
//! outlasts anything but as many other locks, each of which costs five sign-ins with all their password hashes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::RateState;
use crate::actors::handle::{Access, Request};
use crate::capacity::Tenant;

/// How long a failure counts.
const WINDOW: Duration = Duration::from_secs(15 * 60);
/// The failure with this number is answered with 429; no further attempt is made until the oldest one expires.
const FAILURES: usize = 5;
/// Most keys with failures that are remembered. One takes about 600 bytes, so 60 MiB.
const MAX_KEYS: usize = 100_000;

/// Requests a slot for one sign-in attempt.
#[derive(Debug)]
pub struct BeginLogin {
    pub key: String,
}

impl Request for BeginLogin {
    type Reply = LoginGate;
    const NAME: &'static str = "begin_login";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }
}

/// Whether a sign-in attempt may proceed.
#[derive(Debug)]
pub enum LoginGate {
    /// May proceed once there is a slot.
    Open(LoginLine),
    /// Refused whatever the password.
    Locked(RateState),
}

/// Queue for a slot.
#[derive(Debug)]
pub struct LoginLine {
    key: String,
    places: Arc<Semaphore>,
}

impl LoginLine {
    /// Waits for a slot; `None` when the last allowed failure came first.
    pub async fn place(self) -> Option<LoginPlace> {
        let Self { key, places } = self;
        let permit = places.acquire_owned().await.ok()?;
        Some(LoginPlace { key, permit })
    }
}

/// The slot of one attempt. If it is dropped without [`EndLogin`], the attempt does not count: its result was never
/// revealed.
#[derive(Debug)]
pub struct LoginPlace {
    key: String,
    permit: OwnedSemaphorePermit,
}

/// Releases a slot: a failure is recorded, a success clears earlier failures.
#[derive(Debug)]
pub struct EndLogin {
    pub place: LoginPlace,
    pub failed: bool,
}

impl Request for EndLogin {
    type Reply = RateState;
    const NAME: &'static str = "end_login";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }
}

/// Failures and slots of one key: together always [`FAILURES`].
#[derive(Debug)]
struct Account {
    /// Oldest first.
    failures: VecDeque<Instant>,
    /// Closed by the last failure, so that queued attempts are refused.
    places: Arc<Semaphore>,
    /// Where it stands in [`Logins::order`].
    rank: Option<Rank>,
}

/// Number of failures, and of the call that changed it. The lowest rank is forgotten first.
type Rank = (usize, u64);

impl Account {
    fn new() -> Self {
        Self {
            failures: VecDeque::new(),
            places: Arc::new(Semaphore::new(FAILURES)),
            rank: None,
        }
    }

    fn slide(&mut self, now: Instant) {
        let is_old = |at: &&Instant| now.duration_since(**at) >= WINDOW;
        let old = self.failures.iter().take_while(is_old).count();
        self.forget(old);
    }

    fn forget(&mut self, count: usize) {
        self.failures.drain(..count);
        if count > 0 && self.places.is_closed() {
            let left = FAILURES.saturating_sub(self.failures.len());
            self.places = Arc::new(Semaphore::new(left));
        } else {
            self.places.add_permits(count);
        }
    }

    fn end(&mut self, permit: OwnedSemaphorePermit, failed: bool, now: Instant) {
        let own = Arc::ptr_eq(permit.semaphore(), &self.places);
        if !failed {
            drop(permit);
            self.forget(self.failures.len());
            return;
        }
        if own {
            permit.forget();
        } else {
            // The slot dates from before a restart of the actor.
            self.places.forget_permits(1);
        }
        self.failures.push_back(now);
        if self.failures.len() >= FAILURES {
            self.places.close();
        }
    }

    fn state(&self, now: Instant) -> RateState {
        let used = self.failures.len().min(FAILURES);
        let oldest = self.failures.front();
        RateState {
            allowed: used < FAILURES,
            limit: FAILURES as u32,
            remaining: (FAILURES - used) as u32,
            reset: oldest.map_or(Duration::ZERO, |at| {
                WINDOW.saturating_sub(now.duration_since(*at))
            }),
        }
    }

    /// Whether the entry holds no information and can be removed.
    fn is_idle(&self) -> bool {
        self.failures.is_empty() && Arc::strong_count(&self.places) == 1
    }
}

/// Recent sign-ins.
#[derive(Debug)]
pub(super) struct Logins {
    accounts: HashMap<Arc<str>, Account>,
    /// The accounts with failures.
    order: BTreeMap<Rank, Arc<str>>,
    /// Counts changes of ranks.
    turn: u64,
    most_keys: usize,
}

impl Default for Logins {
    fn default() -> Self {
        Self {
            accounts: HashMap::new(),
            order: BTreeMap::new(),
            turn: 0,
            most_keys: MAX_KEYS,
        }
    }
}

impl Logins {
    pub(super) fn begin(&mut self, key: String, now: Instant) -> LoginGate {
        let account = self.accounts.entry(key.as_str().into());
        let account = account.or_insert_with(Account::new);
        account.slide(now);
        let gate = if account.places.is_closed() {
            LoginGate::Locked(account.state(now))
        } else {
            LoginGate::Open(LoginLine {
                key: key.clone(),
                places: Arc::clone(&account.places),
            })
        };
        self.rank(&key);
        gate
    }

    pub(super) fn end(&mut self, done: EndLogin, now: Instant) -> RateState {
        let LoginPlace { key, permit } = done.place;
        let account = self.accounts.entry(key.as_str().into());
        let account = account.or_insert_with(Account::new);
        account.slide(now);
        account.end(permit, done.failed, now);
        let state = account.state(now);
        self.rank(&key);
        state
    }

    pub(super) fn sweep(&mut self, now: Instant) {
        let order = &mut self.order;
        self.accounts.retain(|_, account| {
            account.slide(now);
            let rank = account.rank.filter(|_| account.failures.is_empty());
            if let Some(rank) = rank {
                order.remove(&rank);
                account.rank = None;
            }
            !account.is_idle()
        });
    }

    /// Puts an account where it belongs after its failures may have changed, forgets it if it has none, and keeps the
    /// number of accounts within bounds.
    fn rank(&mut self, key: &str) {
        let Some((key, account)) = self.accounts.get_key_value(key) else {
            return;
        };
        let (key, failures, idle) = (Arc::clone(key), account.failures.len(), account.is_idle());
        let old = account.rank;
        if idle {
            self.accounts.remove(&key);
        }
        if old.map_or(0, |(failures, _)| failures) == failures {
            return;
        }
        if let Some(old) = old {
            self.order.remove(&old);
        }
        self.turn += 1;
        let rank = (failures > 0).then_some((failures, self.turn));
        if let Some(account) = self.accounts.get_mut(&key) {
            account.rank = rank;
        }
        if let Some(rank) = rank {
            self.order.insert(rank, key);
        }
        while self.order.len() > self.most_keys
            && let Some((_, least)) = self.order.pop_first()
        {
            self.accounts.remove(&least);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// The queue for an attempt that is not locked out.
    fn line(logins: &mut Logins, key: &str, now: Instant) -> LoginLine {
        match logins.begin(key.into(), now) {
            LoginGate::Open(line) => line,
            LoginGate::Locked(state) => panic!("{state:?}"),
        }
    }

    fn place(logins: &mut Logins, key: &str, now: Instant) -> LoginPlace {
        line(logins, key, now).place().now_or_never().unwrap().unwrap()
    }

    fn attempt(logins: &mut Logins, failed: bool, now: Instant) -> RateState {
        let place = place(logins, "a", now);
        logins.end(EndLogin { place, failed }, now)
    }

    fn is_locked(logins: &mut Logins, key: &str, now: Instant) -> bool {
        matches!(logins.begin(key.into(), now), LoginGate::Locked(_))
    }

    #[test]
    fn the_fifth_failure_locks_and_the_state_says_how_many_are_left() {
        let (mut logins, now) = (Logins::default(), Instant::now());
        let left: Vec<u32> = (0..5)
            .map(|_| attempt(&mut logins, true, now).remaining)
            .collect();
        assert_eq!(left, [4, 3, 2, 1, 0]);
        let LoginGate::Locked(state) = logins.begin("a".into(), now + WINDOW / 3) else {
            panic!("not locked");
        };
        assert_eq!((state.allowed, state.limit, state.remaining), (false, 5, 0));
        assert_eq!(state.reset, WINDOW * 2 / 3);
        assert!(!is_locked(&mut logins, "b", now));
    }

    #[test]
    fn the_window_slides_failure_by_failure() {
        let (mut logins, start) = (Logins::default(), Instant::now());
        let minute = Duration::from_secs(60);
        for n in 0..5 {
            attempt(&mut logins, true, start + minute * n);
        }
        let before = start + WINDOW - Duration::from_millis(1);
        assert!(is_locked(&mut logins, "a", before));
        // Only the first failure has expired: one more guess, and another one a minute later.
        for n in 0..4 {
            let state = attempt(&mut logins, true, start + WINDOW + minute * n);
            assert_eq!((state.allowed, state.reset), (false, minute), "{n}");
            assert!(is_locked(&mut logins, "a", start + WINDOW + minute * n));
        }
    }

    #[test]
    fn successes_count_for_nothing_and_forget_the_failures_before() {
        let (mut logins, now) = (Logins::default(), Instant::now());
        for _ in 0..20 {
            assert_eq!(attempt(&mut logins, false, now).remaining, 5);
        }
        for _ in 0..4 {
            attempt(&mut logins, true, now);
        }
        let state = attempt(&mut logins, false, now);
        assert_eq!((state.remaining, state.reset), (5, Duration::ZERO));
        assert_eq!(logins.accounts.len(), 0, "nothing to remember");
    }

    #[test]
    fn more_attempts_at_a_time_than_failures_are_left_wait_and_are_refused_by_the_last_failure() {
        let (mut logins, now) = (Logins::default(), Instant::now());
        let mut under_way: Vec<_> = (0..5).map(|_| place(&mut logins, "a", now)).collect();
        let mut waiting = Box::pin(line(&mut logins, "a", now).place());
        let mut second = Box::pin(line(&mut logins, "a", now).place());
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        // A success frees one slot; so does an attempt that is dropped.
        let place = under_way.pop().unwrap();
        logins.end(EndLogin { place, failed: false }, now);
        let next = waiting.as_mut().now_or_never().unwrap().unwrap();
        drop(next);
        under_way.push(second.as_mut().now_or_never().unwrap().unwrap());
        let mut third = Box::pin(line(&mut logins, "a", now).place());
        assert!(third.as_mut().now_or_never().is_none());
        for place in under_way {
            logins.end(EndLogin { place, failed: true }, now);
        }
        assert!(third.as_mut().now_or_never().unwrap().is_none());
        assert!(is_locked(&mut logins, "a", now));
    }

    #[test]
    fn accounts_are_swept_when_nothing_is_left_to_remember() {
        let (mut logins, now) = (Logins::default(), Instant::now());
        attempt(&mut logins, true, now);
        let kept = place(&mut logins, "b", now);
        logins.sweep(now);
        assert_eq!(logins.accounts.len(), 2);
        logins.sweep(now + WINDOW);
        assert!(
            logins.accounts.contains_key("b") && logins.accounts.len() == 1,
            "an attempt is under way"
        );
        drop(kept);
        logins.sweep(now + WINDOW);
        assert!(logins.accounts.is_empty());
    }

    #[test]
    fn a_place_of_before_a_restart_still_counts() {
        let (mut before, mut after, now) = (Logins::default(), Logins::default(), Instant::now());
        for n in 1..=5 {
            let place = place(&mut before, "a", now);
            let state = after.end(EndLogin { place, failed: true }, now);
            assert_eq!(state.remaining, 5 - n);
        }
        assert!(is_locked(&mut after, "a", now));
    }
    #[test]
    fn a_flood_of_failures_is_bounded_and_opens_no_lock() {
        let (mut logins, now) = (Logins::default(), Instant::now());
        logins.most_keys = 100;
        let fail = |logins: &mut Logins, key: &str, times: u32| {
            for _ in 0..times {
                let place = place(logins, key, now);
                logins.end(EndLogin { place, failed: true }, now);
            }
        };
        fail(&mut logins, "locked", 5);
        fail(&mut logins, "nearly", 4);
        for n in 0..10_000 {
            fail(&mut logins, &format!("flood {n}"), 1 + n % 3);
            assert!(logins.accounts.len() <= 100 && logins.order.len() <= 100);
        }
        assert!(is_locked(&mut logins, "locked", now));
        fail(&mut logins, "nearly", 1);
        assert!(is_locked(&mut logins, "nearly", now));
        logins.sweep(now + WINDOW);
        assert_eq!((logins.accounts.len(), logins.order.len()), (0, 0));
    }

    #[test]
    fn a_key_that_is_forgotten_during_an_attempt_still_counts_its_failure() {
        let (mut logins, now) = (Logins::default(), Instant::now());
        logins.most_keys = 1;
        let first = place(&mut logins, "a", now);
        logins.end(
            EndLogin {
                place: first,
                failed: true,
            },
            now,
        );
        let under_way = place(&mut logins, "a", now);
        let other = place(&mut logins, "b", now);
        logins.end(
            EndLogin {
                place: other,
                failed: true,
            },
            now,
        );
        assert!(!logins.accounts.contains_key("a"));
        let state = logins.end(
            EndLogin {
                place: under_way,
                failed: true,
            },
            now,
        );
        assert_eq!(state.remaining, 4);
        assert_eq!(logins.order.len(), 1);
    }
}
