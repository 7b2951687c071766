//! How busy an actor is, for operators.

use std::time::Duration;

use parking_lot::Mutex;

use crate::capacity::TenantShare;
use crate::config::ActorSettings;

/// Waits that are remembered: the last ones.
const REMEMBERED: usize = 1000;

/// How busy an actor is.
#[derive(Debug, Clone)]
pub struct ActorStatus {
    pub name: &'static str,
    pub reads: GateStatus,
    pub writes: GateStatus,
    /// Since the start of the process.
    pub restarts: u64,
    pub settings: ActorSettings,
}

/// How busy one gate of an actor is.
#[derive(Debug, Clone, Default)]
pub struct GateStatus {
    /// Requests that are being worked on.
    pub in_flight: usize,
    /// Requests that wait for a permit.
    pub waiting: usize,
    /// Requests that were refused or timed out since the start of the process.
    pub refused: u64,
    /// The wait for a permit that 95 % of the last thousand requests did not exceed.
    pub wait_p95: Duration,
    /// Who holds permits or waits for one.
    pub shares: Vec<TenantShare>,
}

/// The last waits for a permit.
#[derive(Debug, Default)]
pub(super) struct WaitTimes(Mutex<(Vec<Duration>, usize)>);

impl WaitTimes {
    pub(super) fn add(&self, wait: Duration) {
        let (waits, next) = &mut *self.0.lock();
        match waits.get_mut(*next) {
            Some(oldest) => *oldest = wait,
            None => waits.push(wait),
        }
        *next = (*next + 1) % REMEMBERED;
    }

    pub(super) fn p95(&self) -> Duration {
        let mut waits = self.0.lock().0.clone();
        waits.sort_unstable();
        let at = (waits.len() * 95).div_ceil(100).saturating_sub(1);
        waits.get(at).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thousand_waits_count() {
        let waits = WaitTimes::default();
        assert_eq!(waits.p95(), Duration::ZERO);
        for ms in 1..=100 {
            waits.add(Duration::from_millis(ms));
        }
        assert_eq!(waits.p95(), Duration::from_millis(95));
        for _ in 0..REMEMBERED {
            waits.add(Duration::from_millis(7));
        }
        assert_eq!(waits.p95(), Duration::from_millis(7));
    }
}
