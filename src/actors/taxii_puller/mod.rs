//! Owns the threat feeds: their pulls, the staging of what they bring, its review and the cursors.
//!
//! A pull runs as a task of its own, so a slow server holds up neither requests nor other feeds. Each feed has at most
//! one pull. The database keeps the state of every pull: a page is staged in one transaction with the feed's cursor.
//! Calls the graph and the audit writer.

mod commit;
mod feeds;
mod hand_in;
mod pull;
mod review;
mod upload;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, watch};
use uuid::Uuid;

pub use self::commit::{CommitFeedItems, FeedCommit, MAX_ITEMS};
pub use self::feeds::{ChangeFeed, DeleteFeed, ListFeeds, ReadFeed, RegisterFeed};
pub use self::hand_in::{ReadHandIn, TakeEnvelope};
pub use self::pull::{PullFrom, PullHandle, StartPull};
pub use self::review::{DecideItem, FeedBatchView, ListFeedBatches, ReadFeedBatch, ReadItem};
pub use self::upload::StageBundle;
use super::audit_writer::{AuditHandle, Chain};
use super::graph_store::GraphHandle;
use super::keyed_locks::KeyedLocks;
use super::worker::{ActorCore, WorkerHandle, every};
use crate::capacity::Shares;
use crate::clock;
use crate::config::FeedSettings;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::tlp::Tlp;
use crate::outbound::GuardedClient;
use crate::store::{INTERRUPTED, PULL_SILENCE, Store, interrupted_entry};
use crate::warninglists::WarninglistsHandle;

/// Handle to the puller.
pub type PullerHandle = WorkerHandle<TaxiiPullerCore>;

/// How often abandoned pulls are looked for.
const SWEEP: Duration = Duration::from_secs(30);
/// How often a batch that is being filled says so.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Pulls that may wait for a free place.
const WAITING_PULLS: usize = 1000;

/// How a running pull ended: `None` while it runs.
type PullEnd = Option<Result<(), DomainError>>;

/// State shared by all requests to the puller.
pub struct TaxiiPullerCore {
    store: Arc<Store>,
    graph: GraphHandle,
    audit: AuditHandle,
    client: Arc<GuardedClient>,
    settings: FeedSettings,
    /// Whether other processes use the database too.
    shared_store: bool,
    started: DateTime<Utc>,
    places: Shares,
    /// The pulls of this process, by batch.
    running: Mutex<HashMap<Uuid, watch::Receiver<PullEnd>>>,
    /// Turns at batches: pages, decisions and commits change the counts in the same row.
    turns: KeyedLocks,
    /// Tells running pulls to end.
    stopping: watch::Sender<bool>,
    warninglists: WarninglistsHandle,
}

impl ActorCore for TaxiiPullerCore {
    type Tenant = Uuid;

    const NAME: &'static str = "taxii_puller";

    /// Ends pulls whose process died, so that they can be resumed.
    fn upkeep(self: &Arc<Self>) -> Vec<BoxFuture<'static, ()>> {
        let core = Arc::clone(self);
        let sweep = move || {
            let core = Arc::clone(&core);
            async move {
                if let Err(error) = core.end_abandoned().await {
                    tracing::warn!(%error, "looking for interrupted pulls failed");
                }
            }
        };
        vec![every(SWEEP, sweep)]
    }
}

impl TaxiiPullerCore {
    /// The feeds of a store; `client` is the only way to a feed's server.
    pub fn new(
        store: Arc<Store>,
        graph: GraphHandle,
        audit: AuditHandle,
        client: GuardedClient,
        settings: FeedSettings,
        shared_store: bool,
    ) -> Self {
        let places = Shares::new(settings.concurrent_pulls, 1, WAITING_PULLS);
        Self {
            store,
            graph,
            audit,
            client: Arc::new(client),
            settings,
            shared_store,
            started: clock::now(),
            places,
            running: Mutex::default(),
            turns: KeyedLocks::default(),
            stopping: watch::Sender::new(false),
            warninglists: WarninglistsHandle::default(),
        }
    }

    /// The feeds with these warninglists; without any, no item is warned of.
    #[must_use]
    pub fn with_warninglists(mut self, warninglists: WarninglistsHandle) -> Self {
        self.warninglists = warninglists;
        self
    }

    /// Ends the running pulls between two pages; they can be resumed. Waits at most `deadline`.
    pub async fn stop(&self, deadline: Duration) {
        self.stopping.send_replace(true);
        let running: Vec<_> = self.running.lock().values().cloned().collect();
        let all = async {
            for mut pull in running {
                pull.wait_for(Option::is_some).await.ok();
            }
        };
        tokio::time::timeout(deadline, all).await.ok();
    }

    async fn end_abandoned(&self) -> Result<(), DomainError> {
        let silent = clock::now() - PULL_SILENCE;
        // No other process can have an embedded store open, so what ran before this process started has ended.
        let before = if self.shared_store {
            silent
        } else {
            silent.max(self.started)
        };
        for (ws, batch) in self.store.abandoned_pulls(before).await? {
            if !self.running.lock().contains_key(&batch) {
                self.end_interrupted(ws, batch).await?;
            }
        }
        Ok(())
    }

    /// Ends the run of a batch whose process or task has died.
    async fn end_interrupted(&self, ws: Uuid, batch: Uuid) -> Result<(), DomainError> {
        let now = clock::now();
        let entry = interrupted_entry(ws, batch, now);
        if self
            .store
            .fail_pull(ws, (batch, None), INTERRUPTED, now, &entry)
            .await?
        {
            self.chain(entry).await;
            tracing::info!(%batch, "a pull was interrupted; it can be resumed");
        }
        Ok(())
    }

    /// Does the work on a batch that is being filled, with signs of life until it ends.
    async fn with_signs_of_life<T>(&self, ws: Uuid, batch: Uuid, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = self.stay_alive(ws, batch) => match never {},
        }
    }

    async fn stay_alive(&self, ws: Uuid, batch: Uuid) -> Infallible {
        let mut ticks = tokio::time::interval(SIGN_OF_LIFE);
        ticks.reset();
        loop {
            ticks.tick().await;
            if let Err(error) = self.store.keep_pull_alive(ws, batch, clock::now()).await {
                // The next tick says it again.
                tracing::debug!(%error, %batch, "a sign of life got lost");
            }
        }
    }

    /// Marks items again that wait for these markings, which are defined now.
    async fn renew(&self, ws: Uuid, source: Uuid, markings: &[String]) -> Result<(), DomainError> {
        for marking in markings {
            loop {
                let renewed = self
                    .store
                    .renew_waiting(ws, source, marking, clock::now())
                    .await?;
                for entry in renewed.entries {
                    self.chain(entry).await;
                }
                if !renewed.more {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Marks items again that wait for markings which are known by now: an earlier run was interrupted in between, or the
    /// definition came another way.
    async fn renew_known(&self, ws: Uuid, source: Uuid, highest: Tlp) -> Result<(), DomainError> {
        let waiting = self.store.waiting_markings(ws, source).await?;
        let known = self.store.feed_markings(ws, source, (&waiting, highest)).await?;
        let known: Vec<String> = known.into_keys().collect();
        self.renew(ws, source, &known).await
    }

    /// Waits for the turn at a batch. Transactions on its row that run side by side would fail each other.
    async fn turn(&self, ws: Uuid, batch: Uuid) -> OwnedMutexGuard<()> {
        // By workspace, so that nobody waits for a batch of another one, and learns that it exists.
        self.turns.take(Uuid::new_v5(&ws, batch.as_bytes())).await
    }

    async fn chain(&self, entry: AuditEntry) {
        if let Err(error) = self.audit.call(Chain(entry)).await {
            // Not lost: unlinked entries are linked at the next start.
            tracing::warn!(?error, "audit entry waits for its link");
        }
    }
}
