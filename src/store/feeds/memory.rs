//! What a feed has brought already.
//!
//! Rule: a version that was staged at a marking is known to those who may see that marking. To all others it does not
//! exist, so they get it again when it comes at a marking that they may see.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::batches::{OWN, UPSERT};
use super::rows::FeedItemRow;
use crate::domain::error::DomainError;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{key, record, tlp};

/// The versions of an object that a feed has brought.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct FeedObjectRow {
    pub id: RecordId,
    pub ws: Uuid,
    /// The newest one at any marking.
    pub modified: DateTime<Utc>,
    /// Ranks of markings, with the newest version known at each. `None` if `modified` is known at every marking.
    pub ranks: Option<Vec<i64>>,
    pub versions: Option<Vec<DateTime<Utc>>>,
}

/// An item that is marked differently now.
#[derive(Debug, Clone)]
pub(super) struct MovedItem {
    pub stix_id: String,
    pub says: Option<Uuid>,
    pub modified: DateTime<Utc>,
    pub from: Tlp,
    pub to: Tlp,
}

/// Id of the row that remembers an object of a feed, or of a batch without one: of an object without versions, what it says.
pub(super) fn object_id(source: Uuid, (stix_id, says): FeedObject<'_>) -> RecordId {
    let name = match says {
        Some(says) => format!("{stix_id}\0{says}"),
        None => stix_id.to_owned(),
    };
    record("feed_object", Uuid::new_v5(&source, name.as_bytes()))
}

impl MovedItem {
    fn object(&self) -> FeedObject<'_> {
        (&self.stix_id, self.says)
    }

    pub(in crate::store) fn of(row: &FeedItemRow, from: Tlp, to: Tlp) -> Self {
        Self {
            stix_id: row.stix_id.clone(),
            says: row.says,
            modified: row.modified,
            from,
            to,
        }
    }
}

impl FeedObjectRow {
    /// A row that knows no version yet.
    pub(in crate::store) fn new(ws: Uuid, source: Uuid, object: FeedObject<'_>) -> Self {
        Self {
            id: object_id(source, object),
            ws,
            modified: DateTime::UNIX_EPOCH,
            ranks: Some(Vec::new()),
            versions: Some(Vec::new()),
        }
    }

    /// The markings at which a version is known, each with the newest one.
    pub(in crate::store) fn known(&self) -> Result<Vec<(Tlp, DateTime<Utc>)>, DomainError> {
        let (Some(ranks), Some(versions)) = (&self.ranks, &self.versions) else {
            return Ok(vec![(Tlp::White, self.modified)]);
        };
        let known = ranks.iter().zip(versions);
        known.map(|(rank, version)| Ok((tlp(*rank)?, *version))).collect()
    }

    /// The row with a further version that is known at a marking.
    pub(in crate::store) fn with(mut self, level: Tlp, modified: DateTime<Utc>) -> Result<Self, DomainError> {
        self.note(level, modified)?;
        Ok(self)
    }

    fn note(&mut self, level: Tlp, modified: DateTime<Utc>) -> Result<(), DomainError> {
        let mut known = self.known()?;
        match known.iter_mut().find(|(at, _)| *at == level) {
            Some((_, version)) => *version = modified.max(*version),
            None => known.push((level, modified)),
        }
        self.keep(known);
        Ok(())
    }

    /// Follows an item that is marked differently now.
    fn follow(&mut self, moved: &MovedItem) -> Result<(), DomainError> {
        let mut known = self.known()?;
        known.retain(|(at, version)| (*at, *version) != (moved.from, moved.modified));
        self.keep(known);
        self.note(moved.to, moved.modified)
    }

    fn keep(&mut self, known: Vec<(Tlp, DateTime<Utc>)>) {
        self.modified = known
            .iter()
            .map(|(_, version)| *version)
            .max()
            .unwrap_or(self.modified);
        let (levels, versions): (Vec<Tlp>, Vec<_>) = known.into_iter().unzip();
        self.ranks = Some(levels.into_iter().map(|level| i64::from(level.rank())).collect());
        self.versions = Some(versions);
    }
}

/// An object of a feed: its STIX id, and what it says if it has no versions.
pub(super) type FeedObject<'o> = (&'o str, Option<Uuid>);

/// Reads what a feed has brought of these objects.
pub(super) async fn read_objects<'o>(
    tx: &WriteTx,
    (ws, source): (Uuid, Uuid),
    objects: impl Iterator<Item = FeedObject<'o>>,
) -> Result<HashMap<FeedObject<'o>, FeedObjectRow>, StoreError> {
    let (mut names, mut ids) = (HashMap::new(), Vec::new());
    for object in objects {
        let id = object_id(source, object);
        names.insert(key(&id)?, object);
        ids.push(id);
    }
    let mut found = HashMap::new();
    let rows: Vec<FeedObjectRow> = tx.find(ws, OWN, ids).await?;
    for row in rows {
        if let Some(name) = names.get(&key(&row.id)?) {
            found.insert(*name, row);
        }
    }
    Ok(found)
}

/// Keeps what a feed remembers in step with items that are marked differently now.
pub(in crate::store) async fn follow(
    tx: &WriteTx,
    (ws, source): (Uuid, Uuid),
    items: &[MovedItem],
) -> Result<(), StoreError> {
    if items.is_empty() {
        return Ok(());
    }
    let objects = items.iter().map(MovedItem::object);
    let mut rows = read_objects(tx, (ws, source), objects).await?;
    for item in items {
        // A bundle without a feed is not remembered.
        if let Some(row) = rows.get_mut(&item.object()) {
            row.follow(item)?;
        }
    }
    tx.write(UPSERT, rows.into_values().collect()).await
}
