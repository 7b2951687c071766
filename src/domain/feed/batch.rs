//! A batch of staged items: one pull, or one uploaded bundle.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::node::wire_enum;
use crate::domain::stix::ingest::{SkippedObject, SkippedType};
use crate::domain::tlp::Tlp;

wire_enum! {
    /// Where the items of a batch come from.
    InputKind, "taxii_2_1_pull, stix_bundle" {
        TaxiiPull = "taxii_2_1_pull",
        StixBundle = "stix_bundle",
    }
}

wire_enum! {
    /// State of a batch.
    ///
    /// `pulling` becomes `review` when everything is staged, or `failed`; a failed pull can be resumed. Once every item
    /// of a batch in review that the caller may see is decided and committed, it is `committed`. Items can be decided
    /// and committed in any state.
    BatchState, "pulling, review, failed, committed" {
        Pulling = "pulling",
        Review = "review",
        Failed = "failed",
        Committed = "committed",
    }
}

/// What a batch has received so far, whatever became of it, as far as the caller may see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct PullProgress {
    /// Pages that brought these objects.
    pub pages: u64,
    /// Objects received, with repetitions.
    pub objects: u64,
    /// Size of these objects as JSON text.
    pub bytes: u64,
    /// Objects that are staged or committed already, in this version or a newer one.
    pub unchanged: u64,
    /// Entries that are not JSON objects.
    pub unreadable: u64,
}

impl BatchState {
    /// The state as a caller sees it to whom `open` items are still to be decided or committed.
    #[must_use]
    pub fn seen(self, open: u64) -> Self {
        match self {
            Self::Pulling | Self::Failed => self,
            Self::Review | Self::Committed if open == 0 => Self::Committed,
            Self::Review | Self::Committed => Self::Review,
        }
    }
}

/// A batch as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FeedBatch {
    pub id: Uuid,
    pub input_kind: InputKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub feed_source_id: Option<Uuid>,
    pub status: BatchState,
    /// Marking of objects that state none.
    pub default_tlp: Tlp,
    /// Items that the caller may see, by status.
    pub item_count: u64,
    pub pending: u64,
    pub accepted: u64,
    pub rejected: u64,
    pub committed: u64,
    #[serde(flatten)]
    pub progress: PullProgress,
    /// Objects that the caller may see and that can't be staged, by type, with the reasons.
    #[schema(example = json!({"report": {"count": 1, "reasons": {"type does not become a node": 1}}}))]
    pub skipped_by_type: BTreeMap<String, SkippedType>,
    /// The first hundred invalid objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped_objects: Vec<SkippedObject>,
    /// Why the pull failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "the collection answered 503")]
    pub error: Option<String>,
    pub created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ended_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub committed_at: Option<DateTime<Utc>>,
}
