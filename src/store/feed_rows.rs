//! Row types of feeds, their batches and items.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::{Array, Bytes, RecordId, RecordIdKey, SurrealValue, Value as StoredValue};
use uuid::Uuid;

use super::rows::{corrupt, key, parse, record, tlp, unpack};
use crate::domain::error::DomainError;
use crate::domain::feed::stage::{StagedObject, stix_type};
use crate::domain::feed::{
    BatchState, Change, Feed, FeedBatch, FeedItem, InputKind, ItemId, ItemStatus, PullProgress,
    Redistribution, Tally,
};
use crate::domain::packing::unpacked_size;
use crate::domain::stix::ingest::SkipReport;
use crate::domain::tlp::Tlp;

/// Longest name of an item that is stored, in characters; the object has the whole.
const MAX_NAME: usize = 500;
/// The cursor of a feed that has never been pulled: the first page of everything.
const FROM_THE_START: &str = "{}";

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct FeedRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub name: String,
    pub description: String,
    pub url: String,
    pub default_tlp: i64,
    pub redistribution: String,
    pub enabled: bool,
    pub cursor: String,
    pub pulling: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub last_pull_at: Option<DateTime<Utc>>,
}

impl FeedRow {
    pub(super) fn new(ws: Uuid, feed: &Feed) -> Self {
        Self {
            id: record("feed", feed.id),
            ws,
            name: feed.name.clone(),
            description: feed.description.clone(),
            url: feed.connector_config_ref.clone(),
            default_tlp: i64::from(feed.default_tlp.rank()),
            redistribution: feed.redistribution_state.as_str().into(),
            enabled: feed.enabled,
            cursor: FROM_THE_START.into(),
            pulling: feed.running_batch_id,
            created_at: feed.created_at,
            updated_at: feed.updated_at,
            last_pull_at: feed.last_pull_at,
        }
    }

    pub(super) fn into_feed(self) -> Result<Feed, DomainError> {
        Ok(Feed {
            id: key(&self.id)?,
            name: self.name,
            description: self.description,
            connector_config_ref: self.url,
            default_tlp: tlp(self.default_tlp)?,
            redistribution_state: parse::<Redistribution>(&self.redistribution)?,
            enabled: self.enabled,
            running_batch_id: self.pulling,
            created_at: self.created_at,
            updated_at: self.updated_at,
            last_pull_at: self.last_pull_at,
        })
    }
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct FeedBatchRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub feed: Option<Uuid>,
    pub user: Uuid,
    pub input_kind: String,
    pub default_tlp: i64,
    pub status: String,
    pub pages: i64,
    pub objects: i64,
    pub bytes: i64,
    pub unchanged: i64,
    pub unreadable: i64,
    pub skipped: String,
    pub tally: Vec<i64>,
    pub next_ord: i64,
    pub error: Option<String>,
    pub run: i64,
    pub created_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub committed_at: Option<DateTime<Utc>>,
}

impl FeedBatchRow {
    /// The feed, or the batch itself for a bundle without one: whose objects are known to each other.
    pub(super) fn source(&self) -> Result<Uuid, DomainError> {
        self.feed.map_or_else(|| key(&self.id), Ok)
    }

    pub(super) fn state(&self) -> Result<BatchState, DomainError> {
        parse(&self.status)
    }

    pub(super) fn report(&self) -> Result<SkipReport, DomainError> {
        serde_json::from_str(&self.skipped).map_err(corrupt)
    }

    /// Ends a run that failed.
    pub(super) fn fail(&mut self, error: &str, now: DateTime<Utc>) {
        self.status = BatchState::Failed.as_str().into();
        self.error = Some(error.to_owned());
        self.ended_at = Some(now);
        let done = Tally::from_row(&self.tally).open() == 0;
        self.committed_at = done.then_some(now);
    }

    pub(super) fn advance(&mut self, by: PullProgress) {
        let mut progress = self.progress();
        progress.add(by);
        let stored = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.pages = stored(progress.pages);
        self.objects = stored(progress.objects);
        self.bytes = stored(progress.bytes);
        self.unchanged = stored(progress.unchanged);
        self.unreadable = stored(progress.unreadable);
    }

    fn progress(&self) -> PullProgress {
        let count = |stored: i64| u64::try_from(stored).unwrap_or(0);
        PullProgress {
            pages: count(self.pages),
            objects: count(self.objects),
            bytes: count(self.bytes),
            unchanged: count(self.unchanged),
            unreadable: count(self.unreadable),
        }
    }

    /// Stores the counts of items, and the state that follows from them.
    pub(super) fn settle(&mut self, tally: Tally, now: DateTime<Utc>) -> Result<(), DomainError> {
        self.tally = tally.to_row();
        let done = tally.open() == 0;
        match (self.state()?, done) {
            (BatchState::Review, true) => {
                self.status = BatchState::Committed.as_str().into();
                self.committed_at = Some(now);
            }
            (BatchState::Committed, false) => {
                self.status = BatchState::Review.as_str().into();
                self.committed_at = None;
            }
            (BatchState::Failed, done) => self.committed_at = done.then_some(now),
            _ => {}
        }
        Ok(())
    }

    /// The batch as a caller cleared up to `highest` sees it.
    pub(super) fn into_batch(self, highest: Tlp) -> Result<FeedBatch, DomainError> {
        let tally = Tally::from_row(&self.tally);
        let count = |status| tally.visible(status, highest);
        let report = self.report()?;
        let item_count: u64 = ItemStatus::ALL.iter().map(|status| count(*status)).sum();
        let mut progress = self.progress();
        // Hidden items must not show as the difference of two counts.
        progress.objects = progress
            .objects
            .saturating_sub(tally.total().saturating_sub(item_count));
        Ok(FeedBatch {
            id: key(&self.id)?,
            input_kind: parse::<InputKind>(&self.input_kind)?,
            feed_source_id: self.feed,
            status: self.state()?,
            default_tlp: tlp(self.default_tlp)?,
            item_count,
            pending: count(ItemStatus::Pending),
            accepted: count(ItemStatus::Accepted),
            rejected: count(ItemStatus::Rejected),
            committed: count(ItemStatus::Committed),
            progress,
            skipped_by_type: report.by_type,
            skipped_objects: report.objects,
            error: self.error,
            created_at: self.created_at,
            ended_at: self.ended_at,
            committed_at: self.committed_at,
        })
    }
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct FeedItemRow {
    pub id: RecordId,
    pub stix_id: String,
    pub stix_type: String,
    pub name: String,
    pub modified: DateTime<Utc>,
    pub source_ref: Option<String>,
    pub target_ref: Option<String>,
    pub tlp_rank: i64,
    pub proposed_tlp: i64,
    pub resolved_tlp: Option<i64>,
    pub stated_tlp: Option<i64>,
    pub held_by: Option<Vec<String>>,
    pub status: String,
    pub is_update: bool,
    pub warnings: Vec<String>,
    pub bytes: i64,
    /// Not read where it is not needed.
    pub raw: Option<Bytes>,
}

/// Id of the item at a position of a batch.
pub(super) fn item_id(ws: Uuid, batch: Uuid, position: i64) -> RecordId {
    let key = vec![ws.into_value(), batch.into_value(), position.into_value()];
    RecordId::new("feed_item", Array::from(key))
}

impl FeedItemRow {
    pub(super) fn new(id: RecordId, object: StagedObject, is_update: bool) -> Self {
        let rank = |tlp: Tlp| i64::from(tlp.rank());
        let marking = object.marking;
        let (source_ref, target_ref) = object.ends.unzip();
        Self {
            id,
            stix_type: stix_type(&object.stix_id).to_owned(),
            stix_id: object.stix_id,
            name: object.name.chars().take(MAX_NAME).collect(),
            modified: object.modified,
            source_ref,
            target_ref,
            tlp_rank: rank(marking.tlp),
            proposed_tlp: rank(marking.tlp),
            resolved_tlp: None,
            stated_tlp: marking.stated.map(rank),
            held_by: (!marking.undefined.is_empty()).then_some(marking.undefined),
            status: ItemStatus::Pending.as_str().into(),
            is_update,
            warnings: object.warnings,
            bytes: i64::try_from(unpacked_size(&object.raw)).unwrap_or(i64::MAX),
            raw: Some(Bytes::from(object.raw)),
        }
    }

    /// The object, which must have been read.
    pub(super) fn object(&self) -> Result<Map<String, Value>, DomainError> {
        let raw = self.raw.as_ref();
        unpack(raw.ok_or_else(|| corrupt("an item without its object"))?)
    }

    pub(super) fn position(&self) -> Result<i64, DomainError> {
        let RecordIdKey::Array(parts) = &self.id.key else {
            return Err(corrupt("an item's id is not a list"));
        };
        match parts.iter().last() {
            Some(StoredValue::Number(position)) => {
                position.to_int().ok_or_else(|| corrupt("an item's position"))
            }
            _ => Err(corrupt("an item's position")),
        }
    }

    pub(super) fn cell(&self) -> Result<(Tlp, ItemStatus), DomainError> {
        Ok((tlp(self.tlp_rank)?, parse(&self.status)?))
    }

    /// The item, with its object if that has been read.
    pub(super) fn into_item(self, batch: Uuid) -> Result<FeedItem, DomainError> {
        let position = u64::try_from(self.position()?).unwrap_or(0);
        let object = self.raw.as_ref().map(unpack).transpose()?;
        Ok(FeedItem {
            id: ItemId::of(batch, position),
            batch_id: batch,
            change: if self.is_update {
                Change::Update
            } else {
                Change::New
            },
            status: parse(&self.status)?,
            proposed_tlp: tlp(self.proposed_tlp)?,
            resolved_tlp: self.resolved_tlp.map(tlp).transpose()?,
            stix_id: self.stix_id,
            stix_type: self.stix_type,
            name: self.name,
            modified: self.modified,
            source_ref: self.source_ref,
            target_ref: self.target_ref,
            duplicate_candidates: Vec::new(),
            warnings: self.warnings,
            object,
        })
    }
}

/// The newest version of an object that a feed has brought.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct FeedObjectRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub modified: DateTime<Utc>,
}

/// Id of the row that remembers an object of a feed, or of a batch without one.
pub(super) fn object_id(source: Uuid, stix_id: &str) -> RecordId {
    record("feed_object", Uuid::new_v5(&source, stix_id.as_bytes()))
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct FeedSupportRow {
    pub id: RecordId,
    pub modified: DateTime<Utc>,
    pub states: Option<i64>,
    pub raw: Bytes,
}

/// Id of a supporting object that a feed brought.
pub(super) fn support_id(ws: Uuid, source: Uuid, stix_id: &str) -> RecordId {
    let key = vec![
        ws.into_value(),
        source.into_value(),
        stix_id.to_owned().into_value(),
    ];
    RecordId::new("feed_support", Array::from(key))
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct FeedWaitingRow {
    pub id: RecordId,
}

impl FeedWaitingRow {
    /// A row for an item that waits for a marking.
    pub(super) fn new(ws: Uuid, source: Uuid, marking: &str, batch: Uuid, position: i64) -> Self {
        let key = vec![
            ws.into_value(),
            source.into_value(),
            marking.to_owned().into_value(),
            batch.into_value(),
            position.into_value(),
        ];
        Self {
            id: RecordId::new("feed_waiting", Array::from(key)),
        }
    }
}

/// The last sign of life of a batch that is being filled.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct FeedPulseRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub seen_at: DateTime<Utc>,
}

impl FeedPulseRow {
    pub(super) fn new(ws: Uuid, batch: Uuid, now: DateTime<Utc>) -> Self {
        Self {
            id: record("feed_pulse", batch),
            ws,
            seen_at: now,
        }
    }
}
