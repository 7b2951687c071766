//! Reads the rows in which the versions of an object stand, and says what becomes of a version there. The rules are those of
//! `domain/graph/merge.rs`.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::super::rows::{key, record, tlp};
use super::Ingest;
use crate::domain::error::DomainError;
use crate::domain::graph::merge::{self, NewVersion, Resolved, StoredVersion};
use crate::domain::graph::place::Place;
use crate::domain::ids::WorkspaceIds;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;

/// A row of an object.
pub(super) trait VersionRow: SurrealValue {
    const TABLE: &'static str;
    /// Reads the rows of the workspace `$ws` among `$ids`.
    const QUERY: &'static str;

    fn id(&self) -> &RecordId;
    /// The ranks of its marking, and of the one from which it is seen.
    fn ranks(&self) -> (i64, i64);
    fn modified(&self) -> Option<DateTime<Utc>>;
    /// The id of the row with this name.
    fn row_id(ids: WorkspaceIds, name: &str) -> Uuid;

    /// The version in this row.
    fn version(&self, place: Place) -> Result<StoredVersion, DomainError> {
        let (level, seen_from) = self.ranks();
        Ok(StoredVersion {
            place,
            modified: self.modified(),
            level: tlp(level)?,
            seen_from: tlp(seen_from)?,
        })
    }
}

/// What becomes of a version; see [`Resolved`].
#[derive(Debug)]
pub(super) enum Target<R> {
    Create(Uuid),
    Update { row: R, level: Tlp, is_unseen: bool },
    Rise { row: R, level: Tlp, if_silent: bool },
    Known(R),
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

    /// Whether the rows beside this first one decide where a version of `modified` goes.
    pub(super) fn is_beside_asked<R: VersionRow>(
        &self,
        first: &R,
        modified: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let first = first.version(Place::First)?;
        Ok(merge::needs_others(&first, modified, self.highest))
    }

    /// The rows with these ids that exist.
    pub(super) async fn rows_of<R: VersionRow>(&self, ids: Vec<Uuid>) -> Result<Rows<R>, StoreError> {
        let ids: Vec<RecordId> = ids.into_iter().map(|id| record(R::TABLE, id)).collect();
        if ids.is_empty() {
            return Ok(Rows::new());
        }
        let found: Vec<R> = self.tx.find(self.ws, R::QUERY, ids).await?;
        let found = found.into_iter().map(|row| Ok((key(row.id())?, row)));
        found.collect()
    }

    /// The rows beside the first ones of these objects, whether the writer sees them or not.
    pub(super) async fn beside<R: VersionRow>(
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
    pub(super) fn newest_seen<R: VersionRow>(
        &self,
        mut rows: Vec<(Place, R)>,
    ) -> Result<Option<R>, StoreError> {
        let stored = versions_of(&rows)?;
        let newest = merge::newest_seen(&stored, self.highest, |_| true);
        Ok(newest.map(|at| rows.swap_remove(at).1))
    }

    /// What becomes of a version of an object with this name, given the first row of the object and the rows beside it.
    pub(super) fn target<R: VersionRow>(
        &self,
        name: &str,
        new: &NewVersion,
        first: Option<R>,
        beside: &mut Beside<R>,
    ) -> Result<Target<R>, StoreError> {
        let mut rows: Vec<(Place, R)> = beside.remove(name).unwrap_or_default();
        rows.extend(first.map(|first| (Place::First, first)));
        let stored = versions_of(&rows)?;
        let mut taken = |at: usize| rows.swap_remove(at).1;
        Ok(match merge::resolve(&stored, new, self.highest) {
            Resolved::Create(place) => Target::Create(R::row_id(self.ids, &place.name(name))),
            Resolved::Update { row, level } => Target::Update {
                row: taken(row),
                level,
                is_unseen: false,
            },
            Resolved::UpdateUnseen { row, level } => Target::Update {
                row: taken(row),
                level,
                is_unseen: true,
            },
            Resolved::Rise {
                row,
                level,
                if_silent,
            } => Target::Rise {
                row: taken(row),
                level,
                if_silent,
            },
            Resolved::Known { row } => Target::Known(taken(row)),
            Resolved::Nowhere => Target::Nowhere,
        })
    }
}

fn versions_of<R: VersionRow>(rows: &[(Place, R)]) -> Result<Vec<StoredVersion>, DomainError> {
    rows.iter().map(|(place, row)| row.version(*place)).collect()
}
