//! A pull: reads a collection page by page and stages each page before the next one is asked for.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;
use uuid::Uuid;

use super::{PullEnd, PullerHandle, TaxiiPullerCore};
use crate::actors::graph_store::{IngestStix, plan_objects};
use crate::actors::worker::{Access, Work};
use crate::capacity::{bulk_runtime_or, run_heavy};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::{DomainError, PullFailure};
use crate::domain::feed::stage::Stager;
use crate::domain::feed::{Feed, InputKind, check_default};
use crate::domain::packing::unpack;
use crate::domain::principal::{Principal, SUSPENDED};
use crate::domain::stix::bundle::DEFAULT_CONFIDENCE;
use crate::domain::stix::ingest::{StixDefaults, StixPlan, StixSupport};
use crate::domain::stix::marking::learn;
use crate::domain::stix::object::type_of_id;
use crate::domain::stix::objects::Objects;
use crate::domain::tlp::Tlp;
use crate::outbound::GuardedClient;
use crate::store::{DELETED, INTERRUPTED, NewFeedBatch, PageWrite, ReceivedPage};
use crate::taxii::{CollectionUrl, Pull, PullCursor, PullError, PullErrorKind, PullSettings, PulledPage};

/// Starts the pull of a feed into a new batch, or resumes a failed one.
#[derive(Debug)]
pub struct StartPull {
    pub by: Principal,
    pub from: PullFrom,
}

/// What is to be pulled.
#[derive(Debug, Clone, Copy)]
pub enum PullFrom {
    Feed(Uuid),
    /// A batch whose pull has failed.
    Batch(Uuid),
}

/// A pull that runs.
#[derive(Debug)]
pub struct PullHandle {
    pub batch: Uuid,
    ended: watch::Receiver<PullEnd>,
}

impl Work for StartPull {
    type Core = TaxiiPullerCore;
    type Reply = PullHandle;
    const NAME: &'static str = "start_pull";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        core.start_pull(self.by, self.from).await
    }
}

impl PullerHandle {
    /// Pulls a feed and waits for the end of the pull, but at most `patience`. Holds no permit of the actor meanwhile.
    ///
    /// # Errors
    /// What stopped the pull, if that is known by then.
    pub async fn pull(&self, by: Principal, from: PullFrom, patience: Duration) -> Result<Uuid, DomainError> {
        let PullHandle { batch, mut ended } = self.call(StartPull { by, from }).await?;
        let ended = tokio::time::timeout(patience, ended.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(how)) => how.clone().unwrap_or(Ok(())).map(|()| batch),
            // Still running, or the task is gone: the batch tells.
            Ok(Err(_)) | Err(_) => Ok(batch),
        }
    }
}

/// What a pull reads, and the batch that it fills.
struct PullTarget {
    feed: Uuid,
    /// The URL of the collection.
    url: String,
    batch: Uuid,
    /// Marking of objects that state none.
    default_tlp: Tlp,
    /// Whether the batch exists already.
    resumed: bool,
}

/// One pull of one feed.
struct PullRun {
    by: Principal,
    feed: Feed,
    default_tlp: Tlp,
    batch: Uuid,
    run: i64,
    /// The highest marking that the workspace may see.
    highest: Tlp,
    pull: Pull<Arc<GuardedClient>>,
}

impl TaxiiPullerCore {
    async fn start_pull(self: &Arc<Self>, by: Principal, from: PullFrom) -> Result<PullHandle, DomainError> {
        let ws = by.workspace.id;
        let target = self.target(&by, from).await?;
        // The workspace may see less than when the feed was registered, and would not see its own batch.
        check_default(target.default_tlp, by.workspace.clearance())?;
        // The allow-list may have changed since the feed was registered.
        let collection = self.collection(&target.url)?;
        let new = NewFeedBatch {
            id: target.batch,
            feed: Some(target.feed),
            user: by.user_id(),
            input_kind: InputKind::TaxiiPull,
            default_tlp: target.default_tlp,
            now: clock::now(),
        };
        let entry = AuditEntry::by(&by, "feed.pull", "feed_batch", Outcome::Success, new.now)
            .on(target.batch)
            .with("feed_source_id", target.feed.to_string())
            .with("resumed", target.resumed);
        let begun = self.store.begin_pull(ws, &new, target.resumed, &entry).await?;
        if let Some(interrupted) = begun.interrupted {
            self.chain(interrupted).await;
        }
        self.chain(entry).await;
        let running = PullRun {
            highest: by.workspace.clearance().highest(),
            by,
            pull: self.client_of(collection, &begun.cursor)?,
            feed: begun.feed,
            default_tlp: begun.default_tlp,
            batch: target.batch,
            run: begun.run,
        };
        Ok(self.spawn(running))
    }

    /// What a pull reads, and the batch that it fills.
    async fn target(&self, by: &Principal, from: PullFrom) -> Result<PullTarget, DomainError> {
        let ws = by.workspace.id;
        let (known, feed) = match from {
            PullFrom::Feed(feed) => (None, Some(feed)),
            PullFrom::Batch(batch) => {
                let highest = by.workspace.clearance().highest();
                let known = self.store.feed_batch(ws, batch, highest).await?;
                let known = known.ok_or(DomainError::NotFound("batch"))?;
                let is_pull = known.input_kind == InputKind::TaxiiPull;
                let feed = known.feed_source_id.filter(|_| is_pull);
                (Some(known), feed)
            }
        };
        let feed = feed.ok_or_else(|| DomainError::Conflict("the batch is not a pull of a feed".into()))?;
        let registered = self.store.feed(ws, feed).await?;
        let registered = registered.ok_or(DomainError::NotFound("feed"))?;
        Ok(PullTarget {
            feed,
            url: registered.connector_config_ref,
            batch: known.as_ref().map_or_else(Uuid::now_v7, |batch| batch.id),
            // A batch keeps the default with which it began.
            default_tlp: known
                .as_ref()
                .map_or(registered.default_tlp, |batch| batch.default_tlp),
            resumed: known.is_some(),
        })
    }

    fn client_of(
        &self,
        collection: CollectionUrl,
        cursor: &str,
    ) -> Result<Pull<Arc<GuardedClient>>, DomainError> {
        let cursor: PullCursor = serde_json::from_str(cursor)
            .map_err(|error| DomainError::internal("the feed's cursor can't be read", error))?;
        let settings = PullSettings::from(&self.settings);
        let client = Arc::clone(&self.client);
        Ok(Pull::new(client, collection, cursor, settings, clock::now()))
    }

    fn spawn(self: &Arc<Self>, running: PullRun) -> PullHandle {
        let (say, ended) = watch::channel(None);
        let (ws, batch) = (running.by.workspace.id, running.batch);
        self.running.lock().insert(batch, ended.clone());
        let core = Arc::clone(self);
        tokio::spawn(async move {
            let pull = bulk_runtime_or(&Handle::current()).spawn(Arc::clone(&core).run_pull(running));
            let how = match pull.await {
                Ok(how) => how,
                Err(panic) => {
                    if let Err(error) = core.end_interrupted(ws, batch).await {
                        tracing::warn!(%error, %batch, "a pull that panicked could not be ended");
                    }
                    Err(DomainError::internal("the pull failed unexpectedly", panic))
                }
            };
            core.running.lock().remove(&batch);
            say.send_replace(Some(how));
        });
        PullHandle { batch, ended }
    }

    async fn run_pull(self: Arc<Self>, mut running: PullRun) -> Result<(), DomainError> {
        let (ws, batch) = (running.by.workspace.id, running.batch);
        let pulled = self
            .with_signs_of_life(ws, batch, self.pull_pages(&mut running))
            .await;
        let Err(mut error) = pulled else {
            return Ok(());
        };
        let text = error.to_string();
        let entry = running
            .entry("feed.pull_failed", Outcome::Failure)
            .with_text("reason", &text);
        let (run, now) = (Some(running.run), clock::now());
        match self.store.fail_pull(ws, (batch, run), &text, now, &entry).await {
            Ok(true) => self.chain(entry).await,
            // Another process has taken the pull over.
            Ok(false) => {}
            // A later pull or the sweep ends it.
            Err(error) => tracing::warn!(%error, %batch, "a failed pull could not be recorded"),
        }
        if let DomainError::PullFailed { batch: kept_in, .. } = &mut error {
            *kept_in = Some(batch);
        }
        Err(error)
    }

    async fn pull_pages(&self, running: &mut PullRun) -> Result<(), DomainError> {
        let ws = running.by.workspace.id;
        let place = self.unless_stopping(self.places.take(Some(ws))).await?;
        let _place = place.ok_or(DomainError::Busy {
            actor: "taxii_puller",
        })?;
        self.require_active(ws, running.feed.id).await?;
        self.renew_known(ws, running.feed.id, running.highest).await?;
        loop {
            let page = self.unless_stopping(running.pull.next_page()).await?;
            self.require_active(ws, running.feed.id).await?;
            // The pull asks for no page beyond the last, which ends this loop.
            let page = page.map_err(failure)?.ok_or_else(already_ended_error)?;
            let last = page.last;
            self.stage(running, page).await?;
            if last {
                return Ok(());
            }
        }
    }

    /// Ends a pull whose workspace was suspended or whose feed was deleted meanwhile: no page is staged from then on.
    async fn require_active(&self, ws: Uuid, feed: Uuid) -> Result<(), DomainError> {
        let workspace = self.store.workspace(ws).await?;
        if workspace.is_none_or(|workspace| workspace.suspended) {
            return Err(pull_failed(PullFailure::Refused, SUSPENDED));
        }
        match self.store.feed(ws, feed).await? {
            Some(_) => Ok(()),
            None => Err(pull_failed(PullFailure::Refused, DELETED)),
        }
    }

    /// Waits for something from outside, unless the service stops.
    async fn unless_stopping<T>(&self, work: impl Future<Output = T>) -> Result<T, DomainError> {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            done = work => Ok(done),
            _ = stopping.wait_for(|stop| *stop) => Err(pull_failed(PullFailure::FarSide, INTERRUPTED)),
        }
    }

    async fn stage(&self, running: &PullRun, page: PulledPage) -> Result<(), DomainError> {
        let (ws, source) = (running.by.workspace.id, running.feed.id);
        let received = ReceivedPage {
            unreadable: u64::try_from(page.unreadable).unwrap_or(u64::MAX),
        };
        let cursor = serde_json::to_string(&page.cursor)
            .map_err(|error| DomainError::internal("the feed's cursor can't be written", error))?;
        let last = page.last;
        let objects = run_heavy(Some(ws), move || Ok(objects_of(page))).await?;
        // The same at each delivery, so that an object without times is the same version each time.
        let (default, filled_in) = (running.default_tlp, running.feed.created_at);
        let (plan, stager) = self
            .plan_objects((ws, running.highest), source, objects, (default, filled_in))
            .await?;
        let staged = run_heavy(Some(ws), move || Ok(stager.page(plan))).await?;
        let (defined, definitions) = definitions_of(&staged.support)?;
        let mut write = PageWrite {
            batch: running.batch,
            run: running.run,
            page: staged,
            received: Some(received),
            cursor: Some(cursor),
            last: None,
            highest: running.highest,
            now: clock::now(),
        };
        if !defined.is_empty() {
            // Before the cursor moves on: a page that fails here is delivered again.
            self.serve_committed(running, &defined, definitions).await?;
            self.stage_page(ws, &write).await?;
            self.renew(ws, source, &defined).await?;
            write = write.without_page();
        }
        if last || defined.is_empty() {
            write.last = last.then(|| running.entry("feed.pull_done", Outcome::Success));
            self.stage_page(ws, &write).await?;
        }
        if let Some(entry) = write.last {
            self.chain(entry).await;
        }
        Ok(())
    }

    async fn stage_page(&self, ws: Uuid, write: &PageWrite) -> Result<(), DomainError> {
        let _turn = self.turn(ws, write.batch).await;
        self.store.stage_page(ws, write).await
    }

    /// Takes in the definitions of markings that objects committed earlier wait for. A marking is no item: it says how
    /// the items of its feed are to be treated.
    async fn serve_committed(
        &self,
        running: &PullRun,
        defined: &[String],
        definitions: Objects,
    ) -> Result<(), DomainError> {
        let ws = running.by.workspace.id;
        if !self.store.has_held_objects_for(ws, defined).await? {
            return Ok(());
        }
        let message = IngestStix {
            by: running.by.clone(),
            objects: definitions,
            defaults: StixDefaults {
                tlp: running.default_tlp,
                confidence: DEFAULT_CONFIDENCE,
                now: running.feed.created_at,
            },
            origin: Some(running.feed.id).into(),
        };
        self.graph.call(message).await.map(drop)
    }

    /// Validates objects, and returns what proposes a marking for each. Objects without a marking or times get the
    /// defaults.
    pub(super) async fn plan_objects(
        &self,
        (ws, highest): (Uuid, Tlp),
        source: Uuid,
        objects: Objects,
        (default, filled_in): (Tlp, DateTime<Utc>),
    ) -> Result<(StixPlan, Stager), DomainError> {
        let known = self
            .store
            .feed_markings(ws, source, (&objects.referenced_markings(), highest))
            .await?;
        let mut markings = known.clone();
        learn(&mut markings, objects.defined_markings().clone());
        let stager = Stager {
            markings,
            default_tlp: default,
            warninglists: self.warninglists.current(),
        };
        let defaults = StixDefaults {
            tlp: default,
            confidence: DEFAULT_CONFIDENCE,
            now: filled_in,
        };
        let mut plan = plan_objects(ws, objects, defaults, known).await?;
        plan.settle_definitions(highest);
        Ok((plan, stager))
    }
}

impl PullRun {
    fn entry(&self, action: &str, outcome: Outcome) -> AuditEntry {
        AuditEntry::by(&self.by, action, "feed_batch", outcome, clock::now())
            .on(self.batch)
            .with("feed_source_id", self.feed.id.to_string())
    }
}

/// The objects of a page; one that can't be parsed is skipped alone.
fn objects_of(page: PulledPage) -> Objects {
    let (mut text, mut places) = (String::new(), Vec::with_capacity(page.objects.len()));
    for object in page.objects {
        let start = text.len();
        text.push_str(object.get());
        places.push(start..text.len());
    }
    Objects::read_leniently(text, places)
}

/// The markings among supporting objects, and their definitions.
pub(super) fn definitions_of(support: &[StixSupport]) -> Result<(Vec<String>, Objects), DomainError> {
    let (mut ids, mut definitions) = (Vec::new(), Vec::new());
    for object in support {
        if type_of_id(&object.stix_id) == Some("marking-definition") {
            ids.push(object.stix_id.clone());
            let definition = unpack(&object.raw)
                .map_err(|error| DomainError::internal("a packed object can't be read", error))?;
            definitions.push(Value::Object(definition));
        }
    }
    Ok((ids, definitions.into()))
}

fn already_ended_error() -> DomainError {
    pull_failed(PullFailure::FarSide, "the collection ended twice")
}

fn pull_failed(failure: PullFailure, what: &str) -> DomainError {
    DomainError::PullFailed {
        failure,
        what: what.to_owned(),
        batch: None,
    }
}

fn failure(error: PullError) -> DomainError {
    let failure = match error.kind() {
        PullErrorKind::Policy => PullFailure::Refused,
        PullErrorKind::Timeout => PullFailure::Slow,
        PullErrorKind::FarSide => PullFailure::FarSide,
    };
    pull_failed(failure, &error.to_string())
}
