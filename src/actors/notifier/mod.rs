//! Owns the pilot requests, and the e-mails that tell the operator of them.
//!
//! A request is acknowledged once it is durable, together with the e-mail to be sent. Sending happens beside the
//! requests, one e-mail after the other, so a slow or dead mail server holds up nobody and loses nothing. An e-mail is
//! claimed before it is sent; several processes can therefore share one outbox. If a process dies between the server's
//! acceptance and the record of it, the e-mail is sent again with the same Message-ID.

mod delivery;
mod requests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, Notify};
use tokio::task::AbortHandle;

pub use self::requests::{ListPilotRequests, SubmitPilot};
use super::audit_writer::{AuditHandle, Chain};
use super::worker::{ActorCore, Tenant, WorkerHandle};
use crate::config::NotifierSettings;
use crate::domain::audit::AuditEntry;
use crate::mail::Mailer;
use crate::store::Store;

/// Handle to the notifier.
pub type NotifierHandle = WorkerHandle<NotifierCore>;

/// State shared by all requests to the notifier.
pub struct NotifierCore {
    store: Arc<Store>,
    audit: AuditHandle,
    /// `None` where e-mail is off.
    mailer: Option<Mailer>,
    retry: Duration,
    patience: Duration,
    /// Whether other processes use the database too.
    shared_store: bool,
    /// Wakes the delivery when something was submitted.
    submitted: Notify,
    /// Held while an e-mail is being sent.
    sending: Arc<Mutex<()>>,
    /// The task that sends.
    current: parking_lot::Mutex<Option<AbortHandle>>,
    stopping: AtomicBool,
}

impl ActorCore for NotifierCore {
    type Tenant = Tenant;

    const NAME: &'static str = "notifier";

    /// Sends what is in the outbox.
    fn upkeep(self: &Arc<Self>) -> Vec<BoxFuture<'static, ()>> {
        if self.mailer.is_none() {
            return Vec::new();
        }
        vec![Box::pin(delivery::run(Arc::clone(self)))]
    }
}

impl NotifierCore {
    /// The notifier of a store; `mailer` is `None` where e-mail is off.
    pub fn new(
        store: Arc<Store>,
        audit: AuditHandle,
        mailer: Option<Mailer>,
        settings: &NotifierSettings,
        shared_store: bool,
    ) -> Self {
        metrics::gauge!("outbox_pending").set(0.0);
        // A counter that begins with its first event shows no increase.
        for outcome in ["sent", "failed", "dead"] {
            metrics::counter!("notifications_total", "outcome" => outcome).increment(0);
        }
        Self {
            store,
            audit,
            mailer,
            retry: Duration::from_secs(settings.retry_seconds),
            patience: Duration::from_secs(settings.give_up_days * 86_400),
            shared_store,
            submitted: Notify::new(),
            sending: Arc::default(),
            current: parking_lot::Mutex::default(),
            stopping: AtomicBool::new(false),
        }
    }

    /// Begins no further e-mail, and waits at most `deadline` for the one that is being sent.
    pub async fn stop(&self, deadline: Duration) {
        self.stopping.store(true, Ordering::Release);
        if tokio::time::timeout(deadline, self.sending.lock()).await.is_ok() {
            return;
        }
        tracing::warn!("an e-mail was still being sent at the deadline; it may be sent again");
        if let Some(task) = self.current.lock().take() {
            task.abort();
        }
    }

    async fn chain(&self, entry: AuditEntry) {
        if let Err(error) = self.audit.call(Chain(entry)).await {
            // Not lost: unlinked entries are linked at the next start.
            tracing::warn!(?error, "audit entry waits for its link");
        }
    }
}
