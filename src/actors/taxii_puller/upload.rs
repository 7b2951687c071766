//! The same review for a bundle that a person uploads.

use std::sync::Arc;

use tokio::sync::watch;
use uuid::Uuid;

use super::pull::definitions_of;
use super::{PullEnd, TaxiiPullerCore};
use crate::actors::worker::{Access, Work};
use crate::capacity::run_heavy;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::feed::stage::{StagedPage, Stager};
use crate::domain::feed::{InputKind, check_default};
use crate::domain::principal::Principal;
use crate::domain::stix::ingest::StixPlan;
use crate::domain::stix::objects::Objects;
use crate::domain::tlp::Tlp;
use crate::store::{NewFeedBatch, PageWrite, ReceivedPage};

/// Objects staged in one transaction.
const PAGE: usize = 500;

/// Stages the objects of a bundle for review.
#[derive(Debug)]
pub struct StageBundle {
    pub by: Principal,
    pub objects: Objects,
    /// The feed that it belongs to: what that feed brought already is not staged again.
    pub feed: Option<Uuid>,
    /// Marking of objects that state none; by default the feed's.
    pub default_tlp: Option<Tlp>,
}

impl Work for StageBundle {
    type Core = TaxiiPullerCore;
    type Reply = Uuid;
    const NAME: &'static str = "stage_bundle";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    fn is_bulk(&self) -> bool {
        true
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let Self {
            by,
            objects,
            feed,
            default_tlp,
        } = self;
        let (ws, highest) = (by.workspace.id, by.workspace.clearance().highest());
        let of_feed = match feed {
            None => None,
            Some(feed) => {
                let found = core.store.feed(ws, feed).await?;
                Some(found.ok_or(DomainError::NotFound("feed"))?)
            }
        };
        let stated = default_tlp.or(of_feed.map(|feed| feed.default_tlp));
        if let Some(level) = stated {
            check_default(level, by.workspace.clearance())?;
        }
        let batch = NewFeedBatch {
            id: Uuid::now_v7(),
            feed,
            user: by.user_id(),
            input_kind: InputKind::StixBundle,
            default_tlp: stated.unwrap_or(Tlp::Green.min(highest)),
            now: clock::now(),
        };
        let source = feed.unwrap_or(batch.id);
        let (plan, stager) = core
            .plan_objects((ws, highest), source, objects, (batch.default_tlp, batch.now))
            .await?;
        let entry =
            AuditEntry::by(&by, "feed.upload", "feed_batch", Outcome::Success, batch.now).on(batch.id);
        let entry = match feed {
            Some(feed) => entry.with("feed_source_id", feed.to_string()),
            None => entry,
        };
        let _registered = core.register_upload(batch.id);
        core.store.begin_upload(ws, &batch, &entry).await?;
        core.chain(entry).await;
        core.fill_upload(&by, (&batch, source), (plan, stager)).await?;
        Ok(batch.id)
    }
}

/// An upload that runs; forgotten when dropped.
pub(super) struct UploadGuard {
    core: Arc<TaxiiPullerCore>,
    batch: Uuid,
    _ended: watch::Sender<PullEnd>,
}

impl Drop for UploadGuard {
    fn drop(&mut self) {
        self.core.running.lock().remove(&self.batch);
    }
}

impl TaxiiPullerCore {
    /// Keeps the sweep from a batch that this process fills.
    pub(super) fn register_upload(self: &Arc<Self>, batch: Uuid) -> UploadGuard {
        let (sender, receiver) = watch::channel(None);
        self.running.lock().insert(batch, receiver);
        UploadGuard {
            core: Arc::clone(self),
            batch,
            _ended: sender,
        }
    }

    /// Fills a batch that has begun, or records why that failed.
    pub(super) async fn fill_upload(
        &self,
        by: &Principal,
        (batch, source): (&NewFeedBatch, Uuid),
        planned: (StixPlan, Stager),
    ) -> Result<(), DomainError> {
        let upload = self.stage_upload(by, (batch, source), planned);
        let staged = self.with_signs_of_life(by.workspace.id, batch.id, upload).await;
        if let Err(error) = &staged {
            self.fail_upload(by, batch.id, &error.to_string()).await?;
        }
        staged
    }

    async fn fail_upload(&self, by: &Principal, batch: Uuid, reason: &str) -> Result<(), DomainError> {
        let (ws, now) = (by.workspace.id, clock::now());
        let entry = AuditEntry::by(by, "feed.upload_failed", "feed_batch", Outcome::Failure, now)
            .on(batch)
            .with_text("reason", reason);
        if self
            .store
            .fail_pull(ws, (batch, None), reason, now, &entry)
            .await?
        {
            self.chain(entry).await;
        }
        Ok(())
    }

    /// Stages a plan part by part; what it refers to comes first, with its skipped objects.
    async fn stage_upload(
        &self,
        by: &Principal,
        (batch, source): (&NewFeedBatch, Uuid),
        (plan, stager): (StixPlan, Stager),
    ) -> Result<(), DomainError> {
        let ws = by.workspace.id;
        let StixPlan {
            nodes,
            relationships,
            supporting,
            skips,
            ..
        } = plan.into_reviewable();
        let (defined, _) = definitions_of(&supporting)?;
        let mut received = Some(ReceivedPage { unreadable: 0 });
        let stager = Arc::new(stager);
        let (mut nodes, mut edges) = (nodes.into_iter(), relationships.into_iter());
        let mut support = supporting;
        let mut skips = Some(skips);
        loop {
            let of_nodes: Vec<_> = nodes.by_ref().take(PAGE).collect();
            let of_edges: Vec<_> = edges.by_ref().take(PAGE - of_nodes.len()).collect();
            let last = nodes.len() == 0 && edges.len() == 0;
            let stager = Arc::clone(&stager);
            let objects = run_heavy(Some(ws), move || {
                let nodes = of_nodes.into_iter().map(|node| stager.node(node));
                let edges = of_edges.into_iter().map(|edge| stager.relationship(edge));
                Ok(nodes.chain(edges).collect())
            });
            let mut page = StagedPage {
                objects: objects.await?,
                support: std::mem::take(&mut support),
                skips: skips.take().unwrap_or_default(),
            };
            page.drop_overmarked();
            self.stage_part(by, batch, page, received.take(), false).await?;
            if last {
                break;
            }
        }
        self.renew(ws, source, &defined).await?;
        self.stage_part(by, batch, StagedPage::default(), None, true)
            .await
    }

    async fn stage_part(
        &self,
        by: &Principal,
        batch: &NewFeedBatch,
        page: StagedPage,
        received: Option<ReceivedPage>,
        last: bool,
    ) -> Result<(), DomainError> {
        let now = clock::now();
        let last = last.then(|| {
            AuditEntry::by(by, "feed.upload_done", "feed_batch", Outcome::Success, now).on(batch.id)
        });
        let write = PageWrite {
            batch: batch.id,
            run: 1,
            page,
            received,
            cursor: None,
            last: last.clone(),
            highest: by.workspace.clearance().highest(),
            now,
        };
        let ws = by.workspace.id;
        let _turn = self.turn(ws, batch.id).await;
        self.store.stage_page(ws, &write).await?;
        if let Some(entry) = last {
            self.chain(entry).await;
        }
        Ok(())
    }
}
