//! Which of several versions of an object stands where, and how it is marked.
//!
//! Rules:
//! - A version that the writer can't see does not exist for a write, and a write never changes it. Where the first row of
//!   an object is above the writer's clearance, the version goes into a row beside it, and what writers of this clearance
//!   send later goes there too. Who sees both writes into the one that stands for the object, so nobody is put back to an
//!   older version.
//! - Only a version that states a marking lowers the one of its row. One that states none keeps what is stricter, and so
//!   does one that arrives after a newer version without a marking, or beside another text of the same version.

use chrono::{DateTime, Utc};

use super::place::Place;
use crate::domain::stix::marking::SilentVersion;
use crate::domain::tlp::Tlp;

/// A version in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredVersion {
    pub place: Place,
    pub modified: Option<DateTime<Utc>>,
    pub level: Tlp,
    /// The clearance from which it is seen: that of a relationship depends on its ends, too.
    pub seen_from: Tlp,
}

/// A version that is to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewVersion {
    pub modified: DateTime<Utc>,
    /// The marking that it would have by itself.
    pub level: Tlp,
    /// The marking that it states itself.
    pub stated: Option<Tlp>,
    /// What versions that came with it state. It raises a row and never lowers one.
    pub earlier: Option<Tlp>,
    /// The clearance from which it is seen.
    pub seen_from: Tlp,
}

/// What becomes of a version. A row is named by its position among the stored ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    /// It goes into a row that does not exist, with the marking that it has by itself.
    Create(Place),
    /// It is newer than the one in this row, which the writer sees, and replaces it.
    Update { row: usize, level: Tlp },
    /// It is newer than the one in this row, which writers of this clearance have written without seeing it.
    UpdateUnseen { row: usize, level: Tlp },
    /// It is not newer than the one in this row, which takes its marking; only if the row's text states none, where
    /// `if_silent`.
    Rise { row: usize, level: Tlp, if_silent: bool },
    /// It is not newer than the one in this row.
    Known { row: usize },
    /// The writer can't see it, and it is not newer than a version that the writer can't see either.
    Nowhere,
}

/// What becomes of a version beside the stored ones of its object, for a writer up to a clearance. The rows beside the
/// first one may be left out where [`needs_others`] says so.
pub fn resolve(stored: &[StoredVersion], new: &NewVersion, writer: Tlp) -> Resolved {
    let first = stored.iter().position(|row| row.place == Place::First);
    let Some((first, first_row)) = first.and_then(|at| Some((at, stored.get(at)?))) else {
        return Resolved::Create(Place::First);
    };
    if first_row.seen_from <= writer {
        let lowers = new.stated.is_some() && new.seen_from < first_row.seen_from;
        // As in `domain/stix/versions.rs`: a later version stands for the object if it is marked no lower. One that lowers
        // the object must be newer than all that the writer sees, and goes into the first row: any other would stand no
        // longer.
        let stands = |row: &StoredVersion| {
            let is_marked = row.seen_from >= first_row.seen_from && row.modified > first_row.modified;
            is_marked && !lowers || row.modified >= Some(new.modified) && lowers
        };
        let row = newest_seen(stored, writer, stands).unwrap_or(first);
        return onto(stored, row, new);
    }
    if let Some(row) = newest_seen(stored, writer, |row| row.place != Place::First) {
        return onto(stored, row, new);
    }
    if new.seen_from <= writer {
        return Resolved::Create(free_place(stored, writer));
    }
    let is_old = |row: &StoredVersion| row.modified >= Some(new.modified);
    let above = stored.iter().position(|row| row.place == Place::Above(writer));
    match above.and_then(|at| Some((at, stored.get(at)?))) {
        _ if is_old(first_row) => Resolved::Nowhere,
        Some((_, row)) if is_old(row) => Resolved::Nowhere,
        Some((at, row)) => Resolved::UpdateUnseen {
            row: at,
            level: row.level.max(new.level),
        },
        None => Resolved::Create(Place::Above(writer)),
    }
}

/// Whether the rows beside this first one decide where a version of `modified` goes: those beside a visible row matter
/// only for a version that is newer.
pub fn needs_others(first: &StoredVersion, modified: DateTime<Utc>, writer: Tlp) -> bool {
    first.seen_from > writer || first.modified < Some(modified)
}

/// The newest of some rows that the writer sees.
pub fn newest_seen(
    stored: &[StoredVersion],
    writer: Tlp,
    among: impl Fn(&StoredVersion) -> bool,
) -> Option<usize> {
    let seen = stored.iter().enumerate();
    let seen = seen.filter(|(_, row)| row.seen_from <= writer && among(row));
    let newest = seen.max_by_key(|(_, row)| (row.modified, row.seen_from));
    newest.map(|(at, _)| at)
}

/// What becomes of a version in a row that the writer sees.
fn onto(stored: &[StoredVersion], at: usize, new: &NewVersion) -> Resolved {
    let Some(row) = stored.get(at) else {
        return Resolved::Nowhere;
    };
    if row.modified < Some(new.modified) {
        return Resolved::Update {
            row: at,
            level: level_after(row.level, new.level, new.stated),
        };
    }
    match new.stated.max(new.earlier).filter(|stated| *stated > row.level) {
        Some(level) => Resolved::Rise {
            row: at,
            level,
            if_silent: row.modified != Some(new.modified),
        },
        None => Resolved::Known { row: at },
    }
}

fn free_place(stored: &[StoredVersion], writer: Tlp) -> Place {
    let is_taken = |place: Place| stored.iter().any(|row| row.place == place);
    let mut number = 1;
    while is_taken(Place::UpTo(writer, number)) {
        number += 1;
    }
    Place::UpTo(writer, number)
}

/// The marking of a version after one with the marking `stored`, where `planned` is what it would have by itself.
pub fn level_after(stored: Tlp, planned: Tlp, stated: Option<Tlp>) -> Tlp {
    match stated {
        Some(_) => planned,
        None => planned.max(stored),
    }
}

/// What is said of a version with the marking `level`. Only one that is silent (it states no marking, and carries none that
/// is undefined) has taken the default of its bundle.
pub fn silent_version(stored: Tlp, planned: Tlp, level: Tlp, is_silent: bool) -> SilentVersion {
    SilentVersion {
        before: if is_silent { stored } else { level },
        planned,
        level,
    }
}

#[cfg(test)]
mod tests;
