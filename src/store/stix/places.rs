//! The rows in which the versions of a STIX object stand.
//!
//! Rule: a version that the writer can't see does not exist for a write, and a write never changes it. The first row of
//! an object has the id that follows from the object's. Where that row is above the writer's clearance, the version
//! goes into a row beside it, and what writers of this clearance send later goes there too.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::super::connect::StoreError;
use super::super::rows::{key, record};
use super::Ingest;
use crate::domain::tlp::Tlp;

/// A row beside the first one of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Place {
    /// For those up to this clearance. The number counts the rows that have risen above it.
    UpTo(Tlp, u32),
    /// What writers of this clearance sent without being allowed to see it.
    Above(Tlp),
}

impl Place {
    /// The name from which the id of the row is made.
    pub(in crate::store) fn name(self, object: &str) -> String {
        match self {
            Self::UpTo(level, 1) => format!("{object}\0up to {level}"),
            Self::UpTo(level, number) => format!("{object}\0up to {level}\0{number}"),
            Self::Above(level) => format!("{object}\0above {level}"),
        }
    }

    /// The rows beside the first one that a caller with this clearance may see, the nearest clearance first.
    pub(in crate::store) fn seen_by(highest: Tlp) -> impl Iterator<Item = Self> {
        let levels = Tlp::ALL.into_iter().rev();
        levels
            .filter(move |level| *level <= highest)
            .map(|level| Self::UpTo(level, 1))
    }
}

/// A stored version of an object.
pub(super) trait StoredVersion: SurrealValue {
    const TABLE: &'static str;
    /// Reads the rows of the workspace `$ws` among `$ids`.
    const QUERY: &'static str;

    fn id(&self) -> &RecordId;
    /// The rank of the marking from which it is seen.
    fn rank(&self) -> i64;
    fn modified(&self) -> Option<DateTime<Utc>>;
    /// The id of the row with this name.
    fn row_id(ws: Uuid, name: &str) -> Uuid;
}

/// A version that is to be stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewVersion<'a> {
    /// The name from which the id of the first row is made.
    pub(super) name: &'a str,
    pub(super) modified: DateTime<Utc>,
    /// Whether the writer may see it.
    pub(super) is_seen: bool,
}

/// Where a version goes.
#[derive(Debug)]
pub(super) enum Target<R> {
    /// Into a row that does not exist.
    New(Uuid),
    /// Into a row that the writer sees, if it is newer.
    Seen(R),
    /// Into a row that writers of this clearance have written, and can't see. The version is newer.
    Unseen(R),
    /// Nowhere: it can't be seen by the writer, and is not newer than a row that the writer can't see either.
    Nowhere,
}

/// Rows by id.
pub(super) type Rows<R> = HashMap<Uuid, R>;

impl Ingest<'_> {
    /// Whether the writer may see a row with this marking.
    pub(super) fn sees(&self, rank: i64) -> bool {
        rank <= i64::from(self.highest.rank())
    }

    /// The rows with these ids that exist.
    pub(super) async fn rows_of<R: StoredVersion>(&self, ids: Vec<Uuid>) -> Result<Rows<R>, StoreError> {
        let ids: Vec<RecordId> = ids.into_iter().map(|id| record(R::TABLE, id)).collect();
        if ids.is_empty() {
            return Ok(Rows::new());
        }
        let found: Vec<R> = self.tx.find(self.ws, R::QUERY, ids).await?;
        let found = found.into_iter().map(|row| Ok((key(row.id())?, row)));
        found.collect()
    }

    /// The rows beside the first ones of these objects.
    pub(super) async fn beside<R: StoredVersion>(
        &self,
        names: impl Iterator<Item = &str>,
    ) -> Result<Rows<R>, StoreError> {
        let mut ids = Vec::new();
        for name in names {
            let places = Place::seen_by(self.highest).chain([Place::Above(self.highest)]);
            ids.extend(places.map(|place| R::row_id(self.ws, &place.name(name))));
        }
        self.rows_of(ids).await
    }

    /// Where a version goes, given the first row of its object and the rows beside it.
    pub(super) async fn target<R: StoredVersion>(
        &self,
        version: NewVersion<'_>,
        first: Option<R>,
        beside: &mut Rows<R>,
    ) -> Result<Target<R>, StoreError> {
        let id = |place: Place| R::row_id(self.ws, &place.name(version.name));
        let Some(first) = first else {
            return Ok(Target::New(R::row_id(self.ws, version.name)));
        };
        if self.sees(first.rank()) {
            return Ok(Target::Seen(first));
        }
        for place in Place::seen_by(self.highest) {
            if let Some(row) = take_if(beside, id(place), |row| self.sees(row.rank())) {
                return Ok(Target::Seen(row));
            }
        }
        if version.is_seen {
            return self.free_place(version.name, beside).await;
        }
        let is_old = |row: &R| row.modified() >= Some(version.modified);
        let above = id(Place::Above(self.highest));
        Ok(match beside.remove(&above) {
            _ if is_old(&first) => Target::Nowhere,
            Some(row) if is_old(&row) => Target::Nowhere,
            Some(row) => Target::Unseen(row),
            None => Target::New(above),
        })
    }

    /// The first row beside the others that is free, or that the writer sees.
    async fn free_place<R: StoredVersion>(
        &self,
        name: &str,
        beside: &Rows<R>,
    ) -> Result<Target<R>, StoreError> {
        let mut number = 1;
        loop {
            let id = R::row_id(self.ws, &Place::UpTo(self.highest, number).name(name));
            let mut found = match number {
                // Read already, and above the writer's clearance.
                1 if beside.contains_key(&id) => None,
                1 => return Ok(Target::New(id)),
                _ => Some(self.rows_of::<R>(vec![id]).await?),
            };
            match found.as_mut().map(|found| found.remove(&id)) {
                Some(None) => return Ok(Target::New(id)),
                Some(Some(row)) if self.sees(row.rank()) => return Ok(Target::Seen(row)),
                Some(Some(_)) | None => number += 1,
            }
        }
    }
}

fn take_if<R>(rows: &mut Rows<R>, id: Uuid, is_meant: impl Fn(&R) -> bool) -> Option<R> {
    if rows.get(&id).is_some_and(is_meant) {
        rows.remove(&id)
    } else {
        None
    }
}
