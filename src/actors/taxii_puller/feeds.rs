//! Registering, reading and changing feeds.

use std::sync::Arc;

use uuid::Uuid;

use super::TaxiiPullerCore;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::feed::{Feed, FeedChange, NewFeed};
use crate::domain::principal::Principal;
use crate::taxii::CollectionUrl;

/// Registers a feed.
#[derive(Debug)]
pub struct RegisterFeed {
    pub by: Principal,
    pub feed: NewFeed,
}

/// All feeds of the workspace, by name.
#[derive(Debug)]
pub struct ListFeeds {
    pub by: Principal,
}

/// One feed.
#[derive(Debug)]
pub struct ReadFeed {
    pub by: Principal,
    pub feed: Uuid,
}

/// Changes a feed; its new redistribution state holds at once, for what it brought before too.
#[derive(Debug)]
pub struct ChangeFeed {
    pub by: Principal,
    pub feed: Uuid,
    pub change: FeedChange,
}

/// Deletes a feed, and ends its pull.
#[derive(Debug)]
pub struct DeleteFeed {
    pub by: Principal,
    pub feed: Uuid,
}

impl Work for RegisterFeed {
    type Core = TaxiiPullerCore;
    type Reply = Feed;
    const NAME: &'static str = "register_feed";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let Self { by, feed } = self;
        core.collection(&feed.connector_config_ref)?;
        feed.check(by.workspace.clearance())?;
        let now = clock::now();
        let feed = feed.into_feed(Uuid::now_v7(), now);
        let entry = AuditEntry::by(&by, "feed.register", "feed", Outcome::Success, now)
            .on(feed.id)
            .with_text("name", &feed.name)
            .with("default_tlp", feed.default_tlp.as_str())
            .with("redistribution_state", feed.redistribution_state.as_str());
        core.store.register_feed(by.workspace.id, &feed, &entry).await?;
        core.chain(entry).await;
        Ok(feed)
    }
}

impl Work for ListFeeds {
    type Core = TaxiiPullerCore;
    type Reply = Vec<Feed>;
    const NAME: &'static str = "list_feeds";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let mut feeds = core.store.feeds(self.by.workspace.id).await?;
        for feed in &mut feeds {
            core.hide_batch(&self.by, feed).await?;
        }
        Ok(feeds)
    }
}

impl Work for ReadFeed {
    type Core = TaxiiPullerCore;
    type Reply = Feed;
    const NAME: &'static str = "read_feed";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let found = core.store.feed(self.by.workspace.id, self.feed).await?;
        let mut feed = found.ok_or(DomainError::NotFound("feed"))?;
        core.hide_batch(&self.by, &mut feed).await?;
        Ok(feed)
    }
}

impl Work for ChangeFeed {
    type Core = TaxiiPullerCore;
    type Reply = Feed;
    const NAME: &'static str = "change_feed";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let Self { by, feed, change } = self;
        change.check(by.workspace.clearance())?;
        let now = clock::now();
        let mut entry = AuditEntry::by(&by, "feed.change", "feed", Outcome::Success, now).on(feed);
        for (field, value) in change.fields() {
            entry = match field {
                "name" | "description" => entry.with_text(field, &value),
                _ => entry.with(field, value),
            };
        }
        let mut changed = core
            .store
            .change_feed(by.workspace.id, feed, &change, (now, &entry))
            .await?;
        core.chain(entry).await;
        core.hide_batch(&by, &mut changed).await?;
        Ok(changed)
    }
}

impl Work for DeleteFeed {
    type Core = TaxiiPullerCore;
    type Reply = ();
    const NAME: &'static str = "delete_feed";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let Self { by, feed } = self;
        let (ws, now) = (by.workspace.id, clock::now());
        let entries = core.store.delete_feed(ws, feed, &by, now).await?;
        for entry in entries {
            core.chain(entry).await;
        }
        Ok(())
    }
}

impl TaxiiPullerCore {
    /// Leaves out the batch that is being pulled, if it does not exist for the caller.
    async fn hide_batch(&self, by: &Principal, feed: &mut Feed) -> Result<(), DomainError> {
        if let Some(batch) = feed.running_batch_id {
            let highest = by.workspace.clearance().highest();
            let seen = self.store.feed_batch(by.workspace.id, batch, highest).await?;
            feed.running_batch_id = seen.map(|batch| batch.id);
        }
        Ok(())
    }

    /// The collection at a URL, if this service may read from there.
    pub(super) fn collection(&self, url: &str) -> Result<CollectionUrl, DomainError> {
        const FIELD: &str = "connector_config_ref";
        let url = self
            .client
            .check(url)
            .map_err(|refusal| DomainError::invalid(FIELD, format!("is refused: {refusal}")))?;
        CollectionUrl::parse(&url).map_err(|error| DomainError::invalid(FIELD, error.to_string()))
    }
}
