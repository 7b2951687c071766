//! Bodies of answers.

use serde::Serialize;
use utoipa::ToSchema;

use crate::actors::taxii_puller::{FeedBatchView, FeedCommit};
use crate::domain::feed::{Feed, FeedBatch, FeedItem, ItemId};

#[derive(Serialize, ToSchema)]
pub struct FeedAnswer {
    pub feed: Feed,
}

#[derive(Serialize, ToSchema)]
pub struct FeedsAnswer {
    pub feeds: Vec<Feed>,
    pub count: usize,
}

#[derive(Serialize, ToSchema)]
#[schema(as = FeedBatchAnswer)]
pub struct BatchAnswer {
    pub batch: FeedBatch,
    pub items: Vec<FeedItem>,
    /// Value of `after` for the next page of items.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next: Option<ItemId>,
}

#[derive(Serialize, ToSchema)]
pub struct BatchesAnswer {
    pub batches: Vec<FeedBatch>,
    pub count: usize,
}

#[derive(Serialize, ToSchema)]
pub struct ItemAnswer {
    pub item: FeedItem,
}

#[derive(Serialize, ToSchema)]
#[schema(as = FeedCommitAnswer)]
pub struct CommitAnswer {
    pub success: bool,
    pub results: FeedCommit,
}

impl From<FeedBatchView> for BatchAnswer {
    fn from(view: FeedBatchView) -> Self {
        Self {
            batch: view.batch,
            items: view.items,
            next: view.next,
        }
    }
}
