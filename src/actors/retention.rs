//! Retention sweeper: removes expired recall sessions, finished batches, old e-mails and revoked tokens that have expired,
//! once an hour, and warns of API keys that expire soon.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::{Instant, MissedTickBehavior};

use crate::clock;
use crate::config::RetentionSettings;
use crate::domain::error::DomainError;
use crate::store::Store;

/// Delay of the first sweep, to keep it out of the start-up.
const FIRST_SWEEP: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long before its end an API key is warned of, and how often.
const WARNING: TimeDelta = TimeDelta::days(14);
const WARNED_EVERY: TimeDelta = TimeDelta::days(1);

/// Sweeps for as long as the service runs. A failed sweep is logged; the next one catches up.
pub async fn run(store: Arc<Store>, retention: RetentionSettings) {
    let mut ticks = tokio::time::interval_at(Instant::now() + FIRST_SWEEP, INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut warned: Option<DateTime<Utc>> = None;
    loop {
        ticks.tick().await;
        let now = clock::now();
        if let Err(error) = sweep(&store, &retention, now).await {
            tracing::warn!(%error, "sweeping what has ended failed");
        }
        let is_due = warned.is_none_or(|warned| now - warned >= WARNED_EVERY);
        match warn_of_ending_keys(&store, now, is_due).await {
            Ok(()) if is_due => warned = Some(now),
            Ok(()) => {}
            Err(error) => tracing::warn!(%error, "looking for API keys that expire soon failed"),
        }
    }
}

/// Counts the API keys that expire soon, and names them in the log if that is due.
async fn warn_of_ending_keys(store: &Store, now: DateTime<Utc>, is_due: bool) -> Result<(), DomainError> {
    let ending = store.ending_api_keys(now, now + WARNING).await?;
    metrics::gauge!("api_keys_ending").set(ending.len() as f64);
    for key in ending.iter().filter(|_| is_due) {
        let expires_at = key.expires_at.map(|time| time.to_rfc3339()).unwrap_or_default();
        tracing::warn!(
            workspace = %key.ws,
            key = %key.id,
            name = key.name,
            expires_at,
            "an API key expires soon: make another one and hand it out before"
        );
    }
    Ok(())
}

/// Removes everything whose retention period has ended by `now`.
async fn sweep(store: &Store, retention: &RetentionSettings, now: DateTime<Utc>) -> Result<(), DomainError> {
    if let Some(before) = end_of_period(now, retention.recall_session_days) {
        report("recall_session", store.sweep_sessions(before).await?);
    }
    if let Some(before) = end_of_period(now, retention.finished_batch_days) {
        report("staging_batch", store.sweep_batches(before).await?);
        report("feed_batch", store.sweep_feed_batches(before).await?);
        report("hand_in", store.sweep_hand_ins(before).await?);
    }
    if let Some(before) = end_of_period(now, retention.outbox_days) {
        report("outbox", store.sweep_outbox(before).await?);
    }
    // An expired token is refused anyway.
    report("revoked_token", store.sweep_tokens(now).await?);
    Ok(())
}

/// Cut-off time: anything older has expired. `None` where the setting keeps records for ever.
fn end_of_period(now: DateTime<Utc>, days: u32) -> Option<DateTime<Utc>> {
    let period = TimeDelta::days(i64::from(days));
    (days > 0).then(|| now - period)
}

fn report(kind: &'static str, swept: usize) {
    metrics::counter!("retention_swept_total", "kind" => kind)
        .increment(u64::try_from(swept).unwrap_or(u64::MAX));
    if swept > 0 {
        tracing::info!(
            kind,
            swept,
            "removed what has reached the end of its retention period"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_days_keep_for_ever_and_days_count_back_from_now() {
        let now = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(100);
        assert_eq!(end_of_period(now, 0), None);
        assert_eq!(
            end_of_period(now, 90),
            Some(DateTime::UNIX_EPOCH + TimeDelta::days(10))
        );
    }
}
