//! Handles to the actors of the local service. Only this module sends them messages.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::actors::audit_writer::AuditHandle;
use crate::actors::backup_writer::BackupHandle;
use crate::actors::config_owner::ConfigHandle;
use crate::actors::enricher::EnricherHandle;
use crate::actors::extractor::ExtractorHandle;
use crate::actors::note_store::NoteHandle;
use crate::actors::rate_limiter::RateLimiterHandle;
use crate::actors::telemetry_tailer::{TelemetryEntry, TelemetryHandle};
use crate::actors::write_semaphore::WriteSemaphoreHandle;
use crate::config::local::LocalSettings;

/// The actor handles.
#[derive(Clone)]
pub(super) struct LocalHandles {
    /// The effective settings.
    pub(super) settings: watch::Receiver<Arc<LocalSettings>>,
    pub(super) notes: NoteHandle,
    pub(super) audit: AuditHandle,
    pub(super) backup: BackupHandle,
    pub(super) semaphore: WriteSemaphoreHandle,
    pub(super) extractor: ExtractorHandle,
    pub(super) enricher: EnricherHandle,
    pub(super) telemetry: TelemetryHandle,
    /// Keeps entries in order and never blocks the sender.
    pub(super) entries: mpsc::Sender<TelemetryEntry>,
    pub(super) config: ConfigHandle,
    pub(super) limiter: RateLimiterHandle,
}

impl LocalHandles {
    /// The current settings.
    pub(super) fn settings(&self) -> Arc<LocalSettings> {
        Arc::clone(&self.settings.borrow())
    }
}
