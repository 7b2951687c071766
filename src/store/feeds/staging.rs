//! Stages a page of a batch.
//!
//! A page is staged in one transaction with the feed's cursor, so the cursor is never ahead of what is durable, and
//! nothing is staged twice.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::batches::{OWN, UPDATE, UPSERT, one};
use super::memory::{FeedObject, FeedObjectRow, read_objects};
use super::rows::{FeedBatchRow, FeedItemRow, FeedRow, FeedSupportRow, FeedWaitingRow, item_id, support_id};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::feed::stage::{StagedObject, StagedPage};
use crate::domain::feed::{BatchState, Received, Tally};
use crate::domain::graph::place::Place;
use crate::domain::ids::WorkspaceIds;
use crate::domain::packing::unpack as unpack_text;
use crate::domain::stix::ingest::StixSupport;
use crate::domain::tlp::Tlp;
use crate::store::Store;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::{WriteTx, yield_regularly};
use crate::store::rows::{corrupt, key, record, tlp, unpack};

/// A page to be staged into a batch.
#[derive(Debug, Clone)]
pub struct PageWrite {
    pub batch: Uuid,
    /// Number of the run that brings it.
    pub run: i64,
    pub page: StagedPage,
    /// The page of the feed that this is the beginning of, if it is one.
    pub received: Option<ReceivedPage>,
    /// Where the feed's next pull goes on once this page is durable.
    pub cursor: Option<String>,
    /// The audit entry of the end, if the batch is complete with this page.
    pub last: Option<AuditEntry>,
    /// Rows marked above this are not compared with: whether they exist must not show.
    pub highest: Tlp,
    pub now: DateTime<Utc>,
}

/// A page of a feed as it was received.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedPage {
    /// Entries that are not JSON objects.
    pub unreadable: u64,
}

impl PageWrite {
    /// The same place in the feed, with nothing more to stage.
    #[must_use]
    pub fn without_page(self) -> Self {
        Self {
            page: StagedPage::default(),
            received: None,
            ..self
        }
    }
}

#[derive(Debug, SurrealValue)]
struct SupportVersion {
    stix_id: String,
    modified: DateTime<Utc>,
    states: Option<i64>,
}

/// A version among the workspace's nodes and edges.
#[derive(Debug, SurrealValue)]
struct StoredVersion {
    id: RecordId,
    modified: Option<DateTime<Utc>>,
    tlp_rank: i64,
    stix_evidence: Option<Uuid>,
}

/// A row of an object that the caller may see.
#[derive(Debug, Clone, Copy)]
struct SeenRow {
    version: KnownVersion,
    original: Option<Uuid>,
}

#[derive(Debug, SurrealValue)]
struct Original {
    id: RecordId,
    raw: Option<Bytes>,
}

impl Store {
    /// Stages a page, and with it moves the feed's cursor.
    ///
    /// # Errors
    /// `Conflict` when the batch is no longer being pulled.
    pub async fn stage_page(&self, ws: Uuid, write: &PageWrite) -> Result<(), DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = Staging::open(&tx, ws, write).await;
            let outcome = match outcome {
                Ok(mut staging) => staging.run().await,
                Err(error) => Err(error),
            };
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("staging the page failed"))?;
        if write.last.is_some() {
            // In a transaction of its own: staging a long page would conflict with every new sign of life.
            self.end_pulse(write.batch).await;
        }
        Ok(())
    }
}

/// A marking from which a version of an object is known, and the version.
type KnownVersion = (Tlp, DateTime<Utc>);

fn lowest<'a>(known: impl Iterator<Item = &'a KnownVersion>) -> Option<Tlp> {
    known.map(|(level, _)| *level).min()
}

/// The level from which an object is known already. A stricter marking that it states is new, also on a version that is
/// not.
fn known_from(object: &StagedObject, before: &[KnownVersion]) -> Option<Tlp> {
    let says_all = |(level, modified): &&KnownVersion| {
        *modified >= object.modified && Some(*level) >= object.marking.stated
    };
    lowest(before.iter().filter(says_all))
}

fn memory_of(object: &StagedObject) -> FeedObject<'_> {
    (&object.stix_id, object.says)
}

/// The transaction that stages a page.
struct Staging<'a> {
    tx: &'a WriteTx,
    ws: Uuid,
    ids: WorkspaceIds,
    write: &'a PageWrite,
    batch: FeedBatchRow,
    source: Uuid,
}

impl<'a> Staging<'a> {
    async fn open(tx: &'a WriteTx, ws: Uuid, write: &'a PageWrite) -> Result<Self, StoreError> {
        let batch: FeedBatchRow = one(tx, ws, OWN, record("feed_batch", write.batch), "batch").await?;
        if batch.state()? != BatchState::Pulling || batch.run != write.run {
            return Err(DomainError::Conflict("the pull was taken over or ended".into()).into());
        }
        let source = batch.source()?;
        Ok(Self {
            tx,
            ws,
            ids: tx.id_secret.ids_of(ws),
            write,
            batch,
            source,
        })
    }

    async fn run(&mut self) -> Result<(), StoreError> {
        let objects = &self.write.page.objects;
        let pulled = objects.iter().map(memory_of);
        let mut pulled = read_objects(self.tx, (self.ws, self.source), pulled).await?;
        let stored = self.stored_versions(objects).await?;
        let (mut tally, mut received) = (Tally::from_row(&self.batch.tally), self.batch.received()?);
        if self.write.received.is_some() {
            received.begin_page();
        }
        let (mut items, mut newest, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        for (place, object) in objects.iter().enumerate() {
            yield_regularly(place).await;
            let of_row = stored.get(&object.stix_id).copied();
            let of_feed = pulled.remove(&memory_of(object));
            let before = self.known(object.marking.tlp, of_row, of_feed.as_ref())?;
            let bytes = u64::try_from(object.bytes()).unwrap_or(u64::MAX);
            if let Some(level) = known_from(object, &before) {
                received.add_unchanged(level.max(object.marking.tlp), bytes);
                continue;
            }
            let mut object = object.clone();
            if let Some(level) = before.iter().map(|(level, _)| *level).max() {
                object.keep_marking(level);
            }
            let level = object.marking.tlp;
            let position = self.batch.next_position(level);
            let waits = object.marking.undefined.iter();
            waiting.extend(waits.map(|marking| self.waiting_row(marking, position)));
            // A bundle without a feed comes once, and holds each object once.
            if self.batch.feed.is_some() {
                let row =
                    of_feed.unwrap_or_else(|| FeedObjectRow::new(self.ws, self.source, memory_of(&object)));
                newest.push(row.with(level, object.modified)?);
            }
            let id = item_id(self.ws, self.write.batch, position);
            let row = FeedItemRow::new(id, object, lowest(before.iter()));
            let (tlp, status) = row.cell()?;
            tally.add(tlp, status);
            received.add_item(tlp, bytes);
            items.push(row);
        }
        self.tx
            .write("INSERT INTO feed_item $rows RETURN NONE", items)
            .await?;
        self.tx.write(UPSERT, newest).await?;
        self.tx.write(UPSERT, waiting).await?;
        self.support(&self.write.page.support).await?;
        self.finish(tally, received).await
    }

    /// The versions that an object of this marking is compared with: those that the caller may see, or everybody who may
    /// see the object.
    fn known(
        &self,
        level: Tlp,
        of_row: Option<KnownVersion>,
        of_feed: Option<&FeedObjectRow>,
    ) -> Result<Vec<KnownVersion>, StoreError> {
        let highest = level.max(self.write.highest);
        let mut known = of_feed.map_or(Ok(Vec::new()), FeedObjectRow::known)?;
        known.retain(|(level, _)| *level <= highest);
        known.extend(of_row);
        Ok(known)
    }

    fn waiting_row(&self, marking: &str, position: i64) -> FeedWaitingRow {
        FeedWaitingRow::new(self.ws, self.source, marking, self.write.batch, position)
    }

    /// The versions among the workspace's nodes and edges that the caller may see: of each object the first one, or else
    /// the one beside it. Looks for all of them, so that the time does not tell how many first ones are hidden.
    async fn stored_versions(
        &self,
        objects: &[StagedObject],
    ) -> Result<HashMap<String, KnownVersion>, StoreError> {
        let mut seen = self.seen_rows(objects).await?;
        self.compare_undated(objects, &mut seen).await?;
        Ok(seen.into_iter().map(|(id, row)| (id, row.version)).collect())
    }

    /// Dates the rows of objects without versions by what they say.
    async fn compare_undated(
        &self,
        objects: &[StagedObject],
        seen: &mut HashMap<String, SeenRow>,
    ) -> Result<(), StoreError> {
        let undated = objects.iter().filter(|object| object.says.is_some());
        let original = |object: &StagedObject| seen.get(&object.stix_id)?.original;
        let originals = undated
            .clone()
            .filter_map(original)
            .map(|id| record("evidence", id));
        let originals: Vec<RecordId> = originals.collect();
        if originals.is_empty() {
            return Ok(());
        }
        let query = "SELECT id, raw FROM $ids WHERE ws = $ws";
        let found: Vec<Original> = self.tx.find(self.ws, query, originals).await?;
        let mut said = HashMap::new();
        for original in found {
            let Some(raw) = original.raw else { continue };
            said.insert(key(&original.id)?, unpack(&raw)?);
        }
        for object in undated {
            let Some(row) = seen.get_mut(&object.stix_id) else {
                continue;
            };
            let stored = row.original.and_then(|id| said.get(&id));
            let is_same = stored == Some(&unpack_text(&object.raw).map_err(corrupt)?);
            // What says something else is older than what came now, whenever that was.
            row.version.1 = match is_same {
                true => object.modified,
                false => DateTime::<Utc>::MIN_UTC,
            };
        }
        Ok(())
    }

    async fn seen_rows(&self, objects: &[StagedObject]) -> Result<HashMap<String, SeenRow>, StoreError> {
        let mut looked: Vec<(&StagedObject, RecordId, Option<Place>)> = objects
            .iter()
            .map(|object| (object, self.row_of(object, &object.stix_id), None))
            .collect();
        // Nothing is hidden from the highest clearance.
        if self.write.highest < Tlp::Red {
            for object in objects {
                looked.extend(Place::beside().map(|place| self.beside(object, place)));
            }
        }
        let query = "SELECT id, modified, tlp_rank, stix_evidence FROM $ids WHERE ws = $ws";
        let mut seen: HashMap<String, SeenRow> = HashMap::new();
        let (mut existing, mut stands_first) = (HashSet::new(), HashSet::new());
        while !looked.is_empty() {
            let ids = looked.iter().map(|(_, row, _)| row.clone()).collect();
            let found: Vec<StoredVersion> = self.tx.find(self.ws, query, ids).await?;
            let mut stored = HashMap::new();
            for version in found {
                stored.insert(key(&version.id)?, (tlp(version.tlp_rank)?, version));
            }
            let mut following = Vec::new();
            for (object, row, place) in looked {
                let Some((level, version)) = stored.get(&key(&row)?) else {
                    continue;
                };
                let id = object.stix_id.as_str();
                if place.is_none() {
                    existing.insert(id);
                }
                let further = place.and_then(Place::following);
                following.extend(further.map(|place| self.beside(object, place)));
                let Some(modified) = version.modified.filter(|_| *level <= self.write.highest) else {
                    continue;
                };
                let row = SeenRow {
                    version: (*level, modified),
                    original: version.stix_evidence,
                };
                if place.is_none() {
                    stands_first.insert(id);
                    seen.insert(object.stix_id.clone(), row);
                } else if !stands_first.contains(id) {
                    let newest = seen.entry(object.stix_id.clone()).or_insert(row);
                    if (modified, *level) > (newest.version.1, newest.version.0) {
                        *newest = row;
                    }
                }
            }
            looked = following;
        }
        // Without a first one there is none beside it.
        seen.retain(|id, _| existing.contains(id.as_str()));
        Ok(seen)
    }

    /// A place beside an object's first row, with the row that may stand there.
    fn beside<'o>(
        &self,
        object: &'o StagedObject,
        place: Place,
    ) -> (&'o StagedObject, RecordId, Option<Place>) {
        let row = self.row_of(object, &place.name(&object.stix_id));
        (object, row, Some(place))
    }

    /// The row of an object's version, given the name from which its id is made.
    fn row_of(&self, object: &StagedObject, name: &str) -> RecordId {
        if object.ends.is_some() {
            record("edge", self.ids.edge(name))
        } else {
            record("node", self.ids.node(name))
        }
    }

    /// Keeps what items refer to: the newest version of each.
    async fn support(&self, objects: &[StixSupport]) -> Result<(), StoreError> {
        let id = |object: &StixSupport| support_id(self.ws, self.source, &object.stix_id);
        let query = "SELECT record::id(id)[2] AS stix_id, modified, states FROM $ids";
        let known: Vec<SupportVersion> = self
            .tx
            .find(self.ws, query, objects.iter().map(id).collect())
            .await?;
        let known: HashMap<_, _> = known
            .into_iter()
            .map(|row| (row.stix_id, (row.modified, row.states)))
            .collect();
        let newer = objects.iter().filter(|object| {
            known
                .get(&object.stix_id)
                .is_none_or(|(modified, _)| *modified < object.modified)
        });
        let rows = newer.map(|object| FeedSupportRow {
            id: id(object),
            modified: object.modified,
            // A newer definition never weakens an earlier one.
            states: object
                .states
                .map(|level| i64::from(level.rank()))
                .max(known.get(&object.stix_id).and_then(|(_, states)| *states)),
            raw: Bytes::from(object.raw.clone()),
        });
        self.tx.write(UPSERT, rows.collect()).await
    }

    async fn finish(&mut self, tally: Tally, mut received: Received) -> Result<(), StoreError> {
        let now = self.write.now;
        received.add_skipped(self.write.page.skips.clone());
        if let Some(page) = self.write.received {
            self.batch.pages += 1;
            received.add_unreadable(tlp(self.batch.default_tlp)?, page.unreadable);
        }
        if let Some(entry) = &self.write.last {
            self.batch.status = BatchState::Review.as_str().into();
            self.batch.ended_at = Some(now);
            self.tx.audit([entry]).await?;
        }
        self.batch.settle(tally, received, now)?;
        self.tx.write(UPDATE, vec![self.batch.clone()]).await?;
        let (Some(feed), Some(cursor)) = (self.batch.feed, &self.write.cursor) else {
            return Ok(());
        };
        let mut feed: FeedRow = one(self.tx, self.ws, OWN, record("feed", feed), "feed").await?;
        feed.cursor.clone_from(cursor);
        if self.write.last.is_some() && feed.pulling == Some(self.write.batch) {
            feed.pulling = None;
            feed.last_pull_at = Some(now);
        }
        self.tx.write(UPDATE, vec![feed]).await
    }
}
