//! Review: reading batches and items, and deciding about items.

use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::TaxiiPullerCore;
use crate::actors::graph_store::FindDuplicates;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::feed::{BatchState, FeedBatch, FeedItem, ItemId, ItemStatus};
use crate::domain::kinds::StixRow;
use crate::domain::principal::Principal;
use crate::domain::staging::ExtractedEntity;
use crate::domain::stix::properties;
use crate::store::ItemDecision;

/// A batch with a page of its items.
#[derive(Debug)]
pub struct FeedBatchView {
    pub batch: FeedBatch,
    pub items: Vec<FeedItem>,
    /// The last item of the page, if there are more.
    pub next: Option<ItemId>,
}

/// Reads a batch and a page of its items.
#[derive(Debug)]
pub struct ReadFeedBatch {
    pub by: Principal,
    pub batch: Uuid,
    pub status: Option<ItemStatus>,
    pub after: Option<ItemId>,
    pub limit: u32,
}

/// The newest batches.
#[derive(Debug)]
pub struct ListFeedBatches {
    pub by: Principal,
    pub feed: Option<Uuid>,
    pub status: Option<BatchState>,
    pub limit: u32,
    pub offset: u32,
}

/// Reads one item with its object.
#[derive(Debug)]
pub struct ReadItem {
    pub by: Principal,
    pub batch: Uuid,
    pub item: ItemId,
}

/// Accepts, rejects or marks an item.
#[derive(Debug)]
pub struct DecideItem {
    pub by: Principal,
    pub batch: Uuid,
    pub item: ItemId,
    pub decision: ItemDecision,
}

impl Work for ReadFeedBatch {
    type Core = TaxiiPullerCore;
    type Reply = FeedBatchView;
    const NAME: &'static str = "read_feed_batch";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let highest = self.by.workspace.clearance().highest();
        let ws = self.by.workspace.id;
        let batch = core.store.feed_batch(ws, self.batch, highest).await?;
        let batch = batch.ok_or(DomainError::NotFound("batch"))?;
        let after = match self.after {
            None => None,
            Some(item) => Some(
                item.position_in(self.batch)
                    .ok_or_else(|| DomainError::invalid("after", "is not an item of this batch"))?,
            ),
        };
        let one_more = self.limit.saturating_add(1);
        let mut items = core
            .store
            .feed_items(ws, self.batch, (after, one_more), self.status, highest)
            .await?;
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        core.add_candidates(&self.by, &mut items).await?;
        let next = items.last().filter(|_| more).map(|item| item.id);
        // Only a single item is shown with its object.
        items.iter_mut().for_each(|item| item.object = None);
        Ok(FeedBatchView { batch, items, next })
    }
}

impl Work for ListFeedBatches {
    type Core = TaxiiPullerCore;
    type Reply = Vec<FeedBatch>;
    const NAME: &'static str = "list_feed_batches";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let workspace = &self.by.workspace;
        core.store
            .feed_batches(
                workspace.id,
                (self.feed, self.status),
                (self.limit, self.offset),
                workspace.clearance().highest(),
            )
            .await
    }
}

impl Work for ReadItem {
    type Core = TaxiiPullerCore;
    type Reply = FeedItem;
    const NAME: &'static str = "read_feed_item";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let workspace = &self.by.workspace;
        let highest = workspace.clearance().highest();
        let found = core
            .store
            .feed_item(workspace.id, self.batch, self.item, highest)
            .await?;
        let mut found = [found.ok_or(DomainError::NotFound("item"))?];
        core.add_candidates(&self.by, &mut found).await?;
        let [item] = found;
        Ok(item)
    }
}

impl Work for DecideItem {
    type Core = TaxiiPullerCore;
    type Reply = FeedItem;
    const NAME: &'static str = "decide_feed_item";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let Self {
            by,
            batch,
            item,
            decision,
        } = self;
        let highest = by.workspace.clearance().highest();
        if decision.resolved_tlp.is_some_and(|level| level > highest) {
            let rule =
                format!("must not be above {highest}, the highest marking that this workspace may see");
            return Err(DomainError::invalid("resolved_tlp", rule));
        }
        let now = clock::now();
        let mut entry = AuditEntry::by(&by, "feed.item_change", "feed_item", Outcome::Success, now)
            .on(item)
            .with("batch_id", batch.to_string());
        if let Some(status) = decision.status {
            entry = entry.with("status", status.as_str());
        }
        if let Some(level) = decision.resolved_tlp {
            entry = entry.with("resolved_tlp", level.as_str());
        }
        let ws = by.workspace.id;
        let turn = core.turn(ws, batch).await;
        let changed = core
            .store
            .decide_item(ws, (batch, item), decision, highest, (now, &entry))
            .await?;
        drop(turn);
        core.chain(entry).await;
        let mut changed = [changed];
        core.add_candidates(&by, &mut changed).await?;
        let [mut item] = changed;
        item.object = None;
        Ok(item)
    }
}

impl TaxiiPullerCore {
    /// Adds the nodes that the items may be duplicates of, as they are now.
    async fn add_candidates(&self, by: &Principal, items: &mut [FeedItem]) -> Result<(), DomainError> {
        let mut subjects = Vec::new();
        let mut places = Vec::new();
        for (place, item) in items.iter().enumerate() {
            // Relationships and context objects have no duplicates.
            if let Some(row) = StixRow::of(&item.stix_type).filter(|row| !row.is_context()) {
                subjects.push(subject(row, item));
                places.push(place);
            }
        }
        if subjects.is_empty() {
            return Ok(());
        }
        let find = FindDuplicates {
            by: by.clone(),
            entities: subjects,
        };
        let found = self.graph.call(find).await?;
        for (place, candidates) in places.into_iter().zip(found) {
            if let Some(item) = items.get_mut(place) {
                item.duplicate_candidates = candidates;
            }
        }
        Ok(())
    }
}

/// What an object is about, in the form in which duplicates are looked for. Of a large object only the name is known.
fn subject(row: &StixRow, item: &FeedItem) -> ExtractedEntity {
    let unread = Map::new();
    let object = item.object.as_ref().unwrap_or(&unread);
    let description = object.get("description").and_then(Value::as_str);
    ExtractedEntity {
        node_type: row.node_type(object),
        kind: None,
        name: item.name.clone(),
        description: description.unwrap_or_default().to_owned(),
        confidence: 0.0,
        reasoning: String::new(),
        properties: properties::of_node(object),
        identity: String::new(),
        merge_by_name: false,
        span: None,
        warnings: Vec::new(),
    }
}
