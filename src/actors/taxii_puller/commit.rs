//! Commits approved items as nodes and edges.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;
use uuid::Uuid;

use super::TaxiiPullerCore;
use crate::actors::graph_store::{IngestOutcome, IngestStix};
use crate::actors::worker::{Access, Work};
use crate::capacity::run_heavy;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::feed::ItemId;
use crate::domain::ingest_result::{IngestResult, KeptCounts};
use crate::domain::principal::Principal;
use crate::domain::stix::bundle::DEFAULT_CONFIDENCE;
use crate::domain::stix::ingest::StixDefaults;
use crate::domain::stix::objects::Objects;
use crate::store::{Choice, Review, StixOrigin};

/// Items that one commit takes at most.
pub const MAX_ITEMS: u32 = 10_000;

/// Commits these items of a batch, or all accepted ones: all of them, or, on an error, none.
#[derive(Debug)]
pub struct CommitFeedItems {
    pub by: Principal,
    pub batch: Uuid,
    pub items: Option<Vec<ItemId>>,
}

/// Outcome of a commit.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
pub struct FeedCommit {
    #[serde(flatten)]
    pub result: IngestResult,
    pub kept: KeptCounts,
    /// Items that this commit made nodes and edges.
    pub committed: u64,
    /// Items that were committed before.
    pub already_committed: u64,
    /// Relationships that stay accepted until both of their ends are nodes.
    pub waiting: Vec<ItemId>,
    /// Items of the batch that the caller may see and that are neither rejected nor committed.
    pub remaining: u64,
    /// One warning for each object that is withheld from exports, and for each that keeps a stricter marking.
    #[schema(example = json!([]))]
    pub warnings: Vec<String>,
}

impl Work for CommitFeedItems {
    type Core = TaxiiPullerCore;
    type Reply = FeedCommit;
    const NAME: &'static str = "commit_feed_items";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    fn is_bulk(&self) -> bool {
        true
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let Self { by, batch, items } = self;
        let (ws, highest) = (by.workspace.id, by.workspace.clearance().highest());
        let found = core.store.feed_batch(ws, batch, highest).await?;
        let found = found.ok_or(DomainError::NotFound("batch"))?;
        // What is shown must be what counts: a marking may have been defined since.
        core.renew_known(ws, found.feed_source_id.unwrap_or(batch), highest)
            .await?;
        let _turn = core.turn(ws, batch).await;
        let chosen = (items.as_deref(), MAX_ITEMS);
        let choice = core.store.items_to_commit(ws, batch, chosen, highest).await?;
        let mut commit = FeedCommit {
            already_committed: choice.committed,
            ..FeedCommit::default()
        };
        if !choice.items.is_empty() {
            let review = Review {
                batch,
                items: choice.items.iter().map(|chosen| chosen.item.clone()).collect(),
            };
            let message = IngestStix {
                by: by.clone(),
                objects: objects_of(ws, choice, &review).await?,
                origin: StixOrigin {
                    feed: found.feed_source_id,
                    review: Some(review),
                    ..StixOrigin::default()
                },
                defaults: StixDefaults {
                    tlp: found.default_tlp,
                    confidence: DEFAULT_CONFIDENCE,
                    now: clock::now(),
                },
            };
            core.tell(&mut commit, batch, core.graph.call(message).await?);
        }
        let now = core.store.feed_batch(ws, batch, highest).await?;
        commit.remaining = now.map_or(0, |batch| batch.pending + batch.accepted);
        Ok(commit)
    }
}

impl TaxiiPullerCore {
    fn tell(&self, commit: &mut FeedCommit, batch: Uuid, done: IngestOutcome) {
        commit.kept = done.result.kept;
        commit.result = done.result;
        commit.warnings = done.warnings;
        commit.committed = done.reviewed.committed;
        let waiting = done.reviewed.waiting.into_iter();
        commit.waiting = waiting
            .filter_map(|position| u64::try_from(position).ok())
            .map(|position| ItemId::of(batch, position))
            .collect();
    }
}

/// The objects that a review writes, and what the chosen ones refer to.
async fn objects_of(ws: Uuid, choice: Choice, review: &Review) -> Result<Objects, DomainError> {
    let newest: HashSet<i64> = review.newest().values().map(|item| item.position).collect();
    run_heavy(Some(ws), move || {
        let chosen = choice.items.into_iter();
        let written = chosen.filter(|chosen| newest.contains(&chosen.item.position));
        let (mut text, mut places) = (String::new(), Vec::new());
        for object in written.map(|chosen| chosen.object).chain(choice.support) {
            let start = text.len();
            text.push_str(&object);
            places.push(start..text.len());
        }
        Ok(Objects::read_leniently(text, places))
    })
    .await
}
