//! Row types of feeds, their batches and items.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::{Array, Bytes, RecordId, RecordIdKey, SurrealValue, Value as StoredValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::domain::feed::stage::{StagedObject, stix_type};
use crate::domain::feed::{
    BatchState, Change, Feed, FeedBatch, FeedItem, InputKind, ItemId, ItemStatus, PullProgress, Received,
    Redistribution, Tally, UnmarkedCounts,
};
use crate::domain::packing::unpacked_size;
use crate::domain::stix::ingest::SkipReport;
use crate::domain::tlp::Tlp;
use crate::store::rows::{corrupt, key, parse, record, tlp, unpack};

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
    /// When it was deleted. The row stays, since what the feed brought leaves only as its redistribution state allows.
    pub deleted_at: Option<DateTime<Utc>>,
}

impl FeedRow {
    pub(in crate::store) fn new(ws: Uuid, feed: &Feed) -> Self {
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
            deleted_at: None,
        }
    }

    /// The row of the feed once it is deleted: what it may do and what it was read from are gone.
    pub(super) fn delete(&mut self, now: DateTime<Utc>) {
        self.description.clear();
        self.url.clear();
        self.cursor = FROM_THE_START.into();
        self.enabled = false;
        self.pulling = None;
        self.updated_at = now;
        self.deleted_at = Some(now);
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
    // The columns from here to `skipped` hold what a row of an older version counted. The table requires them, so new
    // rows have zeros there and an empty report.
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
    /// What was received, by marking. `None` in a row of an older version, which counted without markings.
    pub received: Option<String>,
    /// Next number of an item for each marking.
    pub numbers: Option<Vec<i64>>,
}

/// Distance of the positions of two items of one marking.
pub(super) const POSITIONS: i64 = Tlp::ALL.len() as i64;

impl FeedBatchRow {
    /// The feed, or the batch itself for a bundle without one: whose objects are known to each other.
    pub(in crate::store) fn source(&self) -> Result<Uuid, DomainError> {
        self.feed.map_or_else(|| key(&self.id), Ok)
    }

    pub(in crate::store) fn state(&self) -> Result<BatchState, DomainError> {
        parse(&self.status)
    }

    /// What the batch has received.
    pub(in crate::store) fn received(&self) -> Result<Received, DomainError> {
        if let Some(received) = &self.received {
            return serde_json::from_str(received).map_err(corrupt);
        }
        let count = |stored: i64| u64::try_from(stored).unwrap_or(0);
        let skipped: SkipReport = serde_json::from_str(&self.skipped).map_err(corrupt)?;
        let counts = UnmarkedCounts {
            pages: count(self.pages),
            bytes: count(self.bytes),
            unchanged: count(self.unchanged),
            unreadable: count(self.unreadable),
            skipped,
            settled_at: self.committed_at,
        };
        let default = tlp(self.default_tlp)?;
        Ok(Received::of_unmarked(
            counts,
            &Tally::from_row(&self.tally),
            default,
        ))
    }

    /// The position of a new item. Items of one marking are numbered without gaps, so that a gap tells nobody of an item of
    /// another marking.
    pub(super) fn next_position(&mut self, level: Tlp) -> i64 {
        let first = self.next_ord.div_euclid(POSITIONS) + i64::from(self.next_ord % POSITIONS != 0);
        let numbers = self.numbers.get_or_insert_with(|| vec![first; Tlp::ALL.len()]);
        let rank = i64::from(level.rank());
        let number = numbers.get_mut(usize::from(level.rank()));
        let position = number.map_or(self.next_ord, |number| {
            let position = *number * POSITIONS + rank;
            *number += 1;
            position
        });
        self.next_ord = self.next_ord.max(position + 1);
        position
    }

    /// Ends a run that failed.
    pub(in crate::store) fn fail(&mut self, error: &str, now: DateTime<Utc>) -> Result<(), DomainError> {
        self.status = BatchState::Failed.as_str().into();
        self.error = Some(error.to_owned());
        self.ended_at = Some(now);
        self.settle(Tally::from_row(&self.tally), self.received()?, now)
    }

    /// Stores the counts, and the state that follows from them.
    pub(in crate::store) fn settle(
        &mut self,
        tally: Tally,
        mut received: Received,
        now: DateTime<Utc>,
    ) -> Result<(), DomainError> {
        self.tally = tally.to_row();
        let done = tally.open(Tlp::Red) == 0;
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
        let complete = self.state()? != BatchState::Pulling;
        received.settle(complete.then_some(&tally), now);
        self.received = Some(serde_json::to_string(&received).map_err(corrupt)?);
        Ok(())
    }

    /// Whether the batch exists for a caller cleared up to `highest`: one who may see what states no marking there, or one
    /// of the items.
    pub(super) fn is_visible(&self, highest: Tlp) -> Result<bool, DomainError> {
        let tally = Tally::from_row(&self.tally);
        Ok(tlp(self.default_tlp)? <= highest || tally.total(highest) > 0)
    }

    /// The batch as a caller cleared up to `highest` sees it.
    pub(in crate::store) fn into_batch(self, highest: Tlp) -> Result<FeedBatch, DomainError> {
        let tally = Tally::from_row(&self.tally);
        let count = |status| tally.visible(status, highest);
        let view = self.received()?.view(&tally, highest);
        let progress = PullProgress {
            pages: if self.pages == 0 { 0 } else { view.pages },
            objects: view.objects,
            bytes: view.bytes,
            unchanged: view.unchanged,
            unreadable: view.unreadable,
        };
        Ok(FeedBatch {
            id: key(&self.id)?,
            input_kind: parse::<InputKind>(&self.input_kind)?,
            feed_source_id: self.feed,
            status: self.state()?.seen(tally.open(highest)),
            default_tlp: tlp(self.default_tlp)?,
            item_count: tally.total(highest),
            pending: count(ItemStatus::Pending),
            accepted: count(ItemStatus::Accepted),
            rejected: count(ItemStatus::Rejected),
            committed: count(ItemStatus::Committed),
            progress,
            skipped_by_type: view.skipped.by_type,
            skipped_objects: view.skipped.objects,
            error: self.error,
            created_at: self.created_at,
            ended_at: self.ended_at,
            committed_at: view.settled_at,
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
    /// A digest of an object without versions.
    pub says: Option<Uuid>,
    pub source_ref: Option<String>,
    pub target_ref: Option<String>,
    pub tlp_rank: i64,
    pub proposed_tlp: i64,
    pub resolved_tlp: Option<i64>,
    pub stated_tlp: Option<i64>,
    pub held_by: Option<Vec<String>>,
    pub status: String,
    pub is_update: bool,
    /// The marking from which an earlier version is known; `None` in rows of an older version.
    pub known_tlp: Option<i64>,
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
    /// An item for review; `known` is the marking from which an earlier version of its object is known.
    pub(in crate::store) fn new(id: RecordId, object: StagedObject, known: Option<Tlp>) -> Self {
        let rank = |tlp: Tlp| i64::from(tlp.rank());
        let marking = object.marking;
        let (source_ref, target_ref) = object.ends.unzip();
        Self {
            id,
            stix_type: stix_type(&object.stix_id).to_owned(),
            stix_id: object.stix_id,
            name: object.name.chars().take(MAX_NAME).collect(),
            modified: object.modified,
            says: object.says,
            source_ref,
            target_ref,
            tlp_rank: rank(marking.tlp),
            proposed_tlp: rank(marking.tlp),
            resolved_tlp: None,
            stated_tlp: marking.stated.map(rank),
            held_by: (!marking.undefined.is_empty()).then_some(marking.undefined),
            status: ItemStatus::Pending.as_str().into(),
            is_update: known.is_some(),
            known_tlp: known.map(rank),
            warnings: object.warnings,
            bytes: i64::try_from(unpacked_size(&object.raw)).unwrap_or(i64::MAX),
            raw: Some(Bytes::from(object.raw)),
        }
    }

    /// The object, which must have been read.
    pub(in crate::store) fn object(&self) -> Result<Map<String, Value>, DomainError> {
        let raw = self.raw.as_ref();
        unpack(raw.ok_or_else(|| corrupt("an item without its object"))?)
    }

    pub(in crate::store) fn position(&self) -> Result<i64, DomainError> {
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

    /// Size of the object as JSON text in bytes.
    pub(in crate::store) fn size(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(0)
    }

    pub(super) fn cell(&self) -> Result<(Tlp, ItemStatus), DomainError> {
        Ok((tlp(self.tlp_rank)?, parse(&self.status)?))
    }

    /// The item as a caller cleared up to `highest` sees it, with its object if that has been read.
    pub(super) fn into_item(self, batch: Uuid, highest: Tlp) -> Result<FeedItem, DomainError> {
        let position = u64::try_from(self.position()?).unwrap_or(0);
        let object = self.raw.as_ref().map(unpack).transpose()?;
        Ok(FeedItem {
            id: ItemId::of(batch, position),
            batch_id: batch,
            change: if self.is_update
                && self
                    .known_tlp
                    .is_none_or(|known| known <= i64::from(highest.rank()))
            {
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

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct FeedSupportRow {
    pub id: RecordId,
    pub modified: DateTime<Utc>,
    pub states: Option<i64>,
    pub raw: Bytes,
}

/// Id of a supporting object that a feed brought.
pub(in crate::store) fn support_id(ws: Uuid, source: Uuid, stix_id: &str) -> RecordId {
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
    pub(in crate::store) fn new(ws: Uuid, source: Uuid, marking: &str, batch: Uuid, position: i64) -> Self {
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
pub(in crate::store) struct FeedPulseRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub seen_at: DateTime<Utc>,
}

impl FeedPulseRow {
    pub(in crate::store) fn new(ws: Uuid, batch: Uuid, now: DateTime<Utc>) -> Self {
        Self {
            id: record("feed_pulse", batch),
            ws,
            seen_at: now,
        }
    }
}
