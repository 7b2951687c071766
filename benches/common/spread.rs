//! Median and 95th percentile of latencies.

use std::time::Duration;

/// Latencies in milliseconds.
#[derive(Clone, Copy)]
pub struct Spread {
    pub p50: f64,
    pub p95: f64,
}

impl Spread {
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: f64| {
            let rank = (share * times.len() as f64).ceil() as usize;
            let time = times.get(rank.saturating_sub(1));
            time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
        };
        Self {
            p50: at(0.5),
            p95: at(0.95),
        }
    }
}
