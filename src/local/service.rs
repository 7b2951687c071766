//! Operations for a service over the memory: settings, telemetry, logs, streams, and its rate limit.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::manager::{MemoryError, MemoryManager};
use crate::actors::config_owner::{ChangeConfig, ReadConfig, ReadConfigFile, ReadConfigMeta, WithdrawConfig};
use crate::actors::enricher::{QueueState, ReadQueue};
use crate::actors::rate_limiter::{RateKey, RateState, TakeRequest};
use crate::actors::telemetry_tailer::{
    LogPage, Peer, ReadHistory, ReadLogs, ReadMetrics, StreamKind, Subscribe, Subscription, TelemetryMetrics,
};
use crate::config::local::{ChangeOutcome, ConfigIssue, ConfigMeta, LocalSettings};

/// Window of `web.rate_limit_per_minute`.
const RATE_WINDOW: Duration = Duration::from_secs(60);

impl MemoryManager {
    /// The effective settings.
    pub fn settings(&self) -> Arc<LocalSettings> {
        self.handles.settings()
    }

    /// The effective settings as a tree, with secrets hidden.
    pub(crate) async fn config(&self) -> Result<Value, MemoryError> {
        Ok(self.handles.config.call(ReadConfig).await?)
    }

    /// The settings as the text of a configuration file: those in effect and those that wait, without secrets.
    pub(crate) async fn config_file(&self) -> Result<String, MemoryError> {
        Ok(self.handles.config.call(ReadConfigFile).await?)
    }

    /// What is known about the settings: types, bounds, explanations, what waits for a restart.
    pub(crate) async fn config_meta(&self) -> Result<ConfigMeta, MemoryError> {
        Ok(self.handles.config.call(ReadConfigMeta).await?)
    }

    /// Changes settings. The inner error lists everything that is wrong with the change.
    pub(crate) async fn change_config(
        &self,
        change: Value,
        from: IpAddr,
    ) -> Result<Result<ChangeOutcome, Vec<ConfigIssue>>, MemoryError> {
        Ok(self.handles.config.call(ChangeConfig { change, from }).await?)
    }

    /// Takes back the change that waits at a dotted path. `None` if none does; the inner error as in a change.
    pub(crate) async fn withdraw_config(
        &self,
        path: String,
        from: IpAddr,
    ) -> Result<Option<Result<ChangeOutcome, Vec<ConfigIssue>>>, MemoryError> {
        Ok(self.handles.config.call(WithdrawConfig { path, from }).await?)
    }

    /// The queue of notes waiting for the language model.
    pub(crate) async fn enrichment_queue(&self) -> Result<QueueState, MemoryError> {
        Ok(self.handles.enricher.call(ReadQueue).await?)
    }

    /// Metrics of today's queries.
    pub(crate) async fn telemetry(&self) -> Result<TelemetryMetrics, MemoryError> {
        Ok(self.handles.telemetry.call(ReadMetrics).await?)
    }

    /// The queries of the last `days` days, newest first.
    pub(crate) async fn history(&self, limit: usize, days: u32) -> Result<Vec<Value>, MemoryError> {
        Ok(self.handles.telemetry.call(ReadHistory { limit, days }).await?)
    }

    /// The last lines of the log.
    pub(crate) async fn logs(&self, lines: usize, level: Option<String>) -> Result<LogPage, MemoryError> {
        Ok(self.handles.telemetry.call(ReadLogs { lines, level }).await?)
    }

    /// Follows a file from the client's last event on. The connection `peer` is closed when the stream ends.
    pub(crate) async fn follow(
        &self,
        followed: StreamKind,
        last_event_id: Option<String>,
        peer: Option<Peer>,
    ) -> Result<Subscription, MemoryError> {
        let message = Subscribe {
            followed,
            last_event_id,
            peer,
        };
        Ok(self.handles.telemetry.call(message).await?)
    }

    /// Counts a caller's request against `web.rate_limit_per_minute`.
    pub(crate) async fn count_request(&self, counted: RateKey) -> Result<RateState, MemoryError> {
        let message = TakeRequest {
            counted,
            limits: vec![(self.settings().web.rate_limit_per_minute, RATE_WINDOW)],
        };
        Ok(self.handles.limiter.call(message).await?)
    }
}
