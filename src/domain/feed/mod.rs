//! Threat feeds: where objects are pulled from, and the batches in which they wait for review.

mod batch;
mod item;
mod received;
mod request;
pub mod stage;
mod tally;

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

pub use self::batch::{BatchState, FeedBatch, InputKind, PullProgress};
pub use self::item::{Change, FeedItem, ItemId, ItemStatus};
pub use self::received::{Received, UnmarkedCounts};
pub use self::request::{FeedChange, FeedChangeBody, NewFeed, check_default};
pub use self::tally::Tally;
use super::node::wire_enum;
use super::tlp::Tlp;

wire_enum! {
    /// Whether what a feed brought may leave the workspace in an export.
    Redistribution, "allowed, internal_only, prohibited" {
        Allowed = "allowed",
        InternalOnly = "internal_only",
        Prohibited = "prohibited",
    }
}

/// A registered TAXII 2.1 collection.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Feed {
    pub id: Uuid,
    #[schema(example = "Sector feed")]
    pub name: String,
    #[schema(example = "Indicators of our sector's ISAC")]
    pub description: String,
    /// The collection's objects URL.
    #[schema(
        example = "https://taxii.example.com/api1/collections/91a7b528-80eb-42ed-a74d-c6fbd5a26116/objects/"
    )]
    pub connector_config_ref: String,
    /// Marking of objects that state none.
    pub default_tlp: Tlp,
    pub redistribution_state: Redistribution,
    pub enabled: bool,
    /// The batch that is being pulled, if it exists for the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub running_batch_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// End of the last complete pull.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_pull_at: Option<DateTime<Utc>>,
}
