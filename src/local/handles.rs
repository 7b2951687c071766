//! The ways to the actors of the local service; only this folder sends them messages.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::actors::audit_writer::AuditHandle;
use crate::actors::config_owner::ConfigHandle;
use crate::actors::enricher::EnricherHandle;
use crate::actors::extractor::ExtractorHandle;
use crate::actors::graph_store::GraphHandle;
use crate::actors::rate_limiter::RateLimiterHandle;
use crate::actors::telemetry_tailer::{TelemetryEntry, TelemetryHandle};
use crate::actors::write_semaphore::WriteSemaphoreHandle;
use crate::config::local::LocalSettings;

/// The ways to the actors.
#[derive(Clone)]
pub(super) struct LocalHandles {
    /// The settings in effect.
    pub(super) settings: watch::Receiver<Arc<LocalSettings>>,
    pub(super) graph: GraphHandle,
    pub(super) audit: AuditHandle,
    pub(super) semaphore: WriteSemaphoreHandle,
    pub(super) extractor: ExtractorHandle,
    pub(super) enricher: EnricherHandle,
    pub(super) telemetry: TelemetryHandle,
    /// Takes entries in the order in which they are given, and never holds anybody up.
    pub(super) entries: mpsc::Sender<TelemetryEntry>,
    pub(super) config: ConfigHandle,
    pub(super) limiter: RateLimiterHandle,
}

impl LocalHandles {
    /// The settings of this moment.
    pub(super) fn settings(&self) -> Arc<LocalSettings> {
        Arc::clone(&self.settings.borrow())
    }
}
