//! The rows in which the versions of a STIX object stand.
//!
//! Rule: a version that the writer can't see does not exist for a write, and a write never changes it. The first row of
//! an object has the id that follows from the object's. Where that row is above the writer's clearance, the version
//! goes into a row beside it, and what writers of this clearance send later goes there too. Who sees both writes into
//! the one that stands for the object, so nobody is put back to an older version.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::super::rows::{key, record};
use super::Ingest;
use crate::domain::ids::WorkspaceIds;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;

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

    /// Where rows beside the first one may stand, whoever sees them; those of [`Self::following`] come after them. All
    /// levels count: a marking may fall after its version was stored, and so may the clearance of its writer.
    pub(in crate::store) fn beside() -> impl Iterator<Item = Self> {
        let levels = Tlp::ALL.into_iter();
        levels.flat_map(|level| [Self::UpTo(level, 1), Self::Above(level)])
    }

    /// Where a further row may stand, given that one stands here.
    pub(in crate::store) fn following(self) -> Option<Self> {
        match self {
            Self::UpTo(level, number) => Some(Self::UpTo(level, number + 1)),
            Self::Above(_) => None,
        }
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
    fn row_id(ids: WorkspaceIds, name: &str) -> Uuid;
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

/// The rows beside the first ones of objects, by the name of the object.
pub(super) type Beside<R> = HashMap<String, Vec<(Place, R)>>;

impl Ingest<'_> {
    /// Whether the writer may see a row with this marking.
    pub(super) fn sees(&self, rank: i64) -> bool {
        rank <= i64::from(self.highest.rank())
    }

    /// Whether the rows beside this first one decide where a version of `modified` goes: those beside a visible row
    /// matter only for a version that is newer.
    pub(super) fn is_beside_asked<R: StoredVersion>(&self, first: &R, modified: DateTime<Utc>) -> bool {
        !self.sees(first.rank()) || first.modified() < Some(modified)
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

    /// The rows beside the first ones of these objects, whether the writer sees them or not.
    pub(super) async fn beside<R: StoredVersion>(
        &self,
        names: impl Iterator<Item = &str>,
    ) -> Result<Beside<R>, StoreError> {
        let mut beside = Beside::new();
        let mut places: Vec<(&str, Place)> = names
            .flat_map(|name| Place::beside().map(move |place| (name, place)))
            .collect();
        while !places.is_empty() {
            let id = |(name, place): &(&str, Place)| R::row_id(self.ids, &place.name(name));
            let mut rows: Rows<R> = self.rows_of(places.iter().map(id).collect()).await?;
            let mut following = Vec::new();
            for (name, place) in places {
                if let Some(row) = rows.remove(&id(&(name, place))) {
                    following.extend(place.following().map(|place| (name, place)));
                    beside.entry(name.to_owned()).or_default().push((place, row));
                }
            }
            places = following;
        }
        Ok(beside)
    }

    /// The newest of the rows beside the first one of an object that the writer sees.
    pub(super) fn newest_seen<R: StoredVersion>(&self, rows: &mut Vec<(Place, R)>) -> Option<R> {
        let seen = rows.iter().enumerate();
        let seen = seen.filter(|(_, (_, row))| self.sees(row.rank()));
        let (newest, _) = seen.max_by_key(|(_, (_, row))| (row.modified(), row.rank()))?;
        Some(rows.swap_remove(newest).1)
    }

    /// Where a version goes, given the first row of its object and the rows beside it.
    pub(super) fn target<R: StoredVersion>(
        &self,
        version: NewVersion<'_>,
        first: Option<R>,
        beside: &mut Beside<R>,
    ) -> Target<R> {
        let id = |place: Place| R::row_id(self.ids, &place.name(version.name));
        let Some(first) = first else {
            return Target::New(R::row_id(self.ids, version.name));
        };
        let mut rows = beside.remove(version.name).unwrap_or_default();
        if self.sees(first.rank()) {
            // As in `domain/stix/versions.rs`: a later version stands for the object if it is marked no lower.
            rows.retain(|(_, row)| row.rank() >= first.rank() && row.modified() > first.modified());
            return Target::Seen(self.newest_seen(&mut rows).unwrap_or(first));
        }
        if let Some(row) = self.newest_seen(&mut rows) {
            return Target::Seen(row);
        }
        if version.is_seen {
            let is_taken = |place: Place| rows.iter().any(|(taken, _)| *taken == place);
            let mut number = 1;
            while is_taken(Place::UpTo(self.highest, number)) {
                number += 1;
            }
            return Target::New(id(Place::UpTo(self.highest, number)));
        }
        let is_old = |row: &R| row.modified() >= Some(version.modified);
        let above = Place::Above(self.highest);
        let known = rows.into_iter().find(|(place, _)| *place == above);
        match known {
            _ if is_old(&first) => Target::Nowhere,
            Some((_, row)) if is_old(&row) => Target::Nowhere,
            Some((_, row)) => Target::Unseen(row),
            None => Target::New(id(above)),
        }
    }
}
