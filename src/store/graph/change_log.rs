//! The list of changes: what each write changed, by whom and when, in the order of the commits.
//!
//! Rule: the rows of a write are written in its transaction, one for each marking from which changes are seen. A row's key is
//! workspace, marking, number of the write and part, so a reader's list is read from the ranges of the markings up to the
//! reader's, and no hidden row takes any of its time.

use std::collections::{BTreeMap, HashMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};
use surrealdb::types::{Array, Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use crate::clock;
use crate::domain::audit::AuditEntry;
use crate::domain::change::{ChangeKind, GraphChange};
use crate::domain::error::DomainError;
use crate::domain::packing;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{corrupt, tlp, up_to_limit};
use crate::store::{Store, failed};

/// Maximum number of changes in one row.
const MAX_CHANGES: usize = 1000;
/// Rows of a marking read at a time.
const ROWS: usize = 20;
/// By how much the clocks of processes may differ.
pub const CLOCK_DIFFERENCE: TimeDelta = TimeDelta::seconds(60);

const READ: &str = "reading the list of changes failed";

/// Who made a write, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeAuthor {
    pub at: DateTime<Utc>,
    /// The user.
    pub by: Option<Uuid>,
    /// The action in the audit log.
    pub via: String,
    pub feed: Option<Uuid>,
}

/// The place of a change in the list; the list is sorted by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangePosition {
    /// The number of the write.
    pub rev: u64,
    pub tlp: Tlp,
    pub part: u32,
    /// Its place in the row.
    pub place: u32,
}

impl ChangePosition {
    /// The position behind this place of the same row.
    pub fn behind(self, place: usize) -> Self {
        Self {
            place: u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1),
            ..self
        }
    }

    /// Whether both are in one row.
    pub fn is_in_row_of(self, other: Self) -> bool {
        (self.rev, self.tlp, self.part) == (other.rev, other.tlp, other.part)
    }

    /// As bytes, to be sealed.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.rev.to_be_bytes().to_vec();
        bytes.push(self.tlp.rank());
        bytes.extend(self.part.to_be_bytes());
        bytes.extend(self.place.to_be_bytes());
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (rev, rest) = bytes.split_first_chunk::<8>()?;
        let (tlp, rest) = rest.split_first()?;
        let (part, rest) = rest.split_first_chunk::<4>()?;
        let (place, rest) = rest.split_first_chunk::<4>()?;
        rest.is_empty().then_some(())?;
        Some(Self {
            rev: u64::from_be_bytes(*rev),
            tlp: Tlp::from_rank(*tlp)?,
            part: u32::from_be_bytes(*part),
            place: u32::from_be_bytes(*place),
        })
    }

    /// Before the first change.
    pub const START: Self = Self {
        rev: 0,
        tlp: Tlp::White,
        part: 0,
        place: 0,
    };
}

/// A row of the list.
#[derive(Debug, Clone)]
pub struct ChangeRow {
    pub author: ChangeAuthor,
    /// The position of the first change.
    pub first: ChangePosition,
    pub changes: Vec<GraphChange>,
}

#[derive(Debug, Clone, SurrealValue)]
struct NewRow {
    id: RecordId,
    at: DateTime<Utc>,
    by: Option<Uuid>,
    via: String,
    feed: Option<Uuid>,
    entries: Bytes,
}

#[derive(Debug, SurrealValue)]
struct Row {
    rev: i64,
    part: i64,
    at: DateTime<Utc>,
    by: Option<Uuid>,
    via: String,
    feed: Option<Uuid>,
    entries: Bytes,
}

#[derive(Debug, SurrealValue)]
struct TimeRow {
    rev: i64,
    at: DateTime<Utc>,
}

impl ChangeAuthor {
    /// Who an audit entry says it was. The time is that of the write, which has its turn: a request may have begun long
    /// before others that were written first, and the list is searched by times that grow with its numbers.
    fn of(entry: &AuditEntry) -> Self {
        let feed = entry.metadata.get("feed_source_id");
        Self {
            at: clock::now(),
            by: entry.user_id,
            via: entry.action.clone(),
            feed: feed.and_then(|feed| feed.as_str()?.parse().ok()),
        }
    }
}

/// The changes of a write while it runs.
#[derive(Debug, Default)]
pub(super) struct NewChanges {
    /// Each with the level that it is told at.
    entries: Vec<(Tlp, GraphChange)>,
    places: HashMap<(u8, Uuid), usize>,
    /// Where the things stand that the write has made.
    made: HashMap<Uuid, usize>,
}

impl NewChanges {
    /// Adds a change; one of a thing that the write has changed already becomes part of the earlier one. What the write has made
    /// was made with the marking that it has at the end: how it came to that depends on what was hidden, or waited, before.
    pub(super) fn add(&mut self, level: Tlp, change: GraphChange) {
        let Some(of) = change.node.or(change.edge) else {
            return;
        };
        let marking = change
            .after
            .get("tlp")
            .and_then(|tlp| tlp.as_str()?.parse::<Tlp>().ok());
        let made = marking.zip(self.made.get(&of).copied());
        if let Some((marking, place)) = made
            && let Some(entry) = self.entries.get_mut(place)
        {
            entry.0 = marking;
            entry.1.absorb(change);
            self.places.insert((marking.rank(), of), place);
            return;
        }
        let key = (level.rank(), of);
        let earlier = self.places.get(&key).copied();
        if let Some((_, earlier)) = earlier.and_then(|place| self.entries.get_mut(place)) {
            earlier.absorb(change);
            return;
        }
        if change.kind == ChangeKind::Created {
            self.made.insert(of, self.entries.len());
        }
        self.places.insert(key, self.entries.len());
        self.entries.push((level, change));
    }

    /// Adds a change of a row with this marking.
    pub(super) fn add_at(&mut self, rank: i64, change: GraphChange) -> Result<(), DomainError> {
        self.add(tlp(rank)?, change);
        Ok(())
    }

    /// Writes them as those of the write with this number.
    pub(super) async fn write(
        self,
        tx: &WriteTx,
        ws: Uuid,
        rev: i64,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let author = ChangeAuthor::of(entry);
        let mut rows = Vec::new();
        let mut by_level: BTreeMap<u8, Vec<GraphChange>> = BTreeMap::new();
        for (level, change) in self.entries {
            by_level.entry(level.rank()).or_default().push(change);
        }
        for (rank, changes) in by_level {
            for (part, changes) in (0i64..).zip(changes.chunks(MAX_CHANGES)) {
                let text = serde_json::to_vec(changes).map_err(corrupt)?;
                let key = vec![
                    ws.into_value(),
                    i64::from(rank).into_value(),
                    rev.into_value(),
                    part.into_value(),
                ];
                rows.push(NewRow {
                    id: RecordId::new("graph_change", Array::from(key)),
                    at: author.at,
                    by: author.by,
                    via: author.via.clone(),
                    feed: author.feed,
                    entries: Bytes::from(packing::pack_text(&text)),
                });
            }
        }
        tx.write("INSERT INTO graph_change $rows RETURN NONE", rows).await
    }
}

impl Row {
    fn into_row(self, level: Tlp) -> Result<ChangeRow, DomainError> {
        let text = packing::unpack_text(&self.entries).map_err(corrupt)?;
        Ok(ChangeRow {
            author: ChangeAuthor {
                at: self.at,
                by: self.by,
                via: self.via,
                feed: self.feed,
            },
            first: ChangePosition {
                rev: u64::try_from(self.rev).unwrap_or(0),
                tlp: level,
                part: u32::try_from(self.part).unwrap_or(u32::MAX),
                place: 0,
            },
            changes: serde_json::from_slice(&text).map_err(corrupt)?,
        })
    }
}

/// Reads the list in order, row by row, up to a marking.
pub struct ChangeReader<'a> {
    store: &'a Store,
    ws: Uuid,
    levels: Vec<LevelReader>,
}

/// The rows of one marking.
struct LevelReader {
    level: Tlp,
    /// The next row to read: number of the write and part.
    next: (u64, u32),
    rows: VecDeque<ChangeRow>,
    is_at_end: bool,
}

impl Store {
    /// Reads the changes of a workspace that are seen up to `highest`, from the row of this position on.
    pub fn change_reader(&self, ws: Uuid, highest: Tlp, from: ChangePosition) -> ChangeReader<'_> {
        let levels = Tlp::ALL.into_iter().filter(|level| *level <= highest);
        let levels = levels.map(|level| LevelReader {
            level,
            next: match level.cmp(&from.tlp) {
                std::cmp::Ordering::Less => (from.rev.saturating_add(1), 0),
                std::cmp::Ordering::Equal => (from.rev, from.part),
                std::cmp::Ordering::Greater => (from.rev, 0),
            },
            rows: VecDeque::new(),
            is_at_end: false,
        });
        ChangeReader {
            store: self,
            ws,
            levels: levels.collect(),
        }
    }

    /// The number of a write before which nothing up to `highest` was written at `time` or later.
    pub async fn first_change_since(
        &self,
        ws: Uuid,
        highest: Tlp,
        time: DateTime<Utc>,
    ) -> Result<u64, DomainError> {
        let time = time.checked_sub_signed(CLOCK_DIFFERENCE).unwrap_or(time);
        let mut first = u64::MAX;
        for level in Tlp::ALL.into_iter().filter(|level| *level <= highest) {
            if let Some(found) = self.first_of_level(ws, level, time).await? {
                first = first.min(found);
            }
        }
        Ok(first)
    }

    /// The number of the first write of a marking at `time` or later: numbers and times grow together.
    async fn first_of_level(
        &self,
        ws: Uuid,
        level: Tlp,
        time: DateTime<Utc>,
    ) -> Result<Option<u64>, DomainError> {
        let Some(begin) = self.change_at(ws, level, 0).await? else {
            return Ok(None);
        };
        if begin.at >= time {
            return Ok(Some(number(begin.rev)));
        }
        // `low` is too early; `high` is not, or nothing is there.
        let (mut low, mut step) = (number(begin.rev), 1_u64);
        let mut high = loop {
            let at = low.saturating_add(step);
            match self.change_at(ws, level, at).await? {
                Some(row) if row.at < time => {
                    low = number(row.rev);
                    step = step.saturating_mul(2);
                }
                found => break (at, found.map(|row| number(row.rev))),
            }
        };
        while high.0 > low.saturating_add(1) {
            let middle = low + (high.0 - low) / 2;
            match self.change_at(ws, level, middle).await? {
                Some(row) if row.at < time => low = number(row.rev),
                found => high = (middle, found.map(|row| number(row.rev))),
            }
        }
        Ok(high.1)
    }

    /// The first row of a marking whose write has this number or a later one.
    async fn change_at(&self, ws: Uuid, level: Tlp, rev: u64) -> Result<Option<TimeRow>, DomainError> {
        let range = up_to_limit("graph_change:[$ws, $level, $rev]..[$ws, $next]");
        let query = format!("SELECT record::id(id)[2] AS rev, at FROM {range} LIMIT 1");
        let statement = self.db.query(query).bind(("ws", ws));
        let rank = i64::from(level.rank());
        let statement = statement.bind(("level", rank)).bind(("next", rank + 1));
        let statement = statement.bind(("rev", i64::try_from(rev).unwrap_or(i64::MAX)));
        let mut response = statement.await.map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }

    /// Rows of a marking from this one on.
    async fn change_rows(
        &self,
        ws: Uuid,
        level: Tlp,
        (rev, part): (u64, u32),
    ) -> Result<Vec<ChangeRow>, DomainError> {
        let range = up_to_limit("graph_change:[$ws, $level, $rev, $part]..[$ws, $next]");
        let query = format!(
            "SELECT record::id(id)[2] AS rev, record::id(id)[3] AS part, at, by, via, feed, entries \
             FROM {range} LIMIT {ROWS}"
        );
        let rank = i64::from(level.rank());
        let statement = self.db.query(query).bind(("ws", ws));
        let statement = statement.bind(("level", rank)).bind(("next", rank + 1));
        let statement = statement.bind(("rev", i64::try_from(rev).unwrap_or(i64::MAX)));
        let statement = statement.bind(("part", i64::from(part)));
        let mut response = statement.await.map_err(failed(READ))?;
        let rows: Vec<Row> = response.take(0).map_err(failed(READ))?;
        rows.into_iter().map(|row| row.into_row(level)).collect()
    }
}

fn number(rev: i64) -> u64 {
    u64::try_from(rev).unwrap_or(0)
}

impl ChangeReader<'_> {
    /// The next row; `None` at the end of the list.
    pub async fn next(&mut self) -> Result<Option<ChangeRow>, DomainError> {
        for reader in &mut self.levels {
            if !reader.rows.is_empty() || reader.is_at_end {
                continue;
            }
            let rows = self.store.change_rows(self.ws, reader.level, reader.next).await?;
            reader.is_at_end = rows.len() < ROWS;
            if let Some(last) = rows.last() {
                reader.next = (last.first.rev, last.first.part.saturating_add(1));
            }
            reader.rows = rows.into();
        }
        let next = self.levels.iter_mut();
        let next = next.filter(|reader| !reader.rows.is_empty());
        let next = next.min_by_key(|reader| reader.rows.front().map(|row| row.first));
        Ok(next.and_then(|reader| reader.rows.pop_front()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_write_makes_was_made_with_the_marking_that_it_has_at_the_end() {
        let (made, known) = (Uuid::new_v4(), Uuid::new_v4());
        let change = |edge, kind| GraphChange {
            kind,
            ..GraphChange::created(None, Some(edge))
        };
        let mark = |edge, tlp: Tlp| {
            let mut change = change(edge, ChangeKind::Changed);
            change.after.insert("tlp".into(), tlp.as_str().into());
            change
        };
        let mut changes = NewChanges::default();
        changes.add(Tlp::White, change(made, ChangeKind::Created));
        changes.add(Tlp::White, change(known, ChangeKind::Changed));
        changes.add(Tlp::Green, mark(made, Tlp::Green));
        changes.add(Tlp::Amber, mark(known, Tlp::Amber));
        changes.add(Tlp::Amber, mark(made, Tlp::Amber));
        changes.add(Tlp::Amber, change(made, ChangeKind::Changed));
        // Evidence above the thing itself: that it was made is told to those who see the thing.
        changes.add(Tlp::Red, change(made, ChangeKind::Changed));
        let told: Vec<_> = changes
            .entries
            .iter()
            .map(|(level, change)| (*level, change.edge, change.kind))
            .collect();
        assert_eq!(
            told,
            [
                (Tlp::Amber, Some(made), ChangeKind::Created),
                (Tlp::White, Some(known), ChangeKind::Changed),
                (Tlp::Amber, Some(known), ChangeKind::Changed),
                (Tlp::Red, Some(made), ChangeKind::Changed),
            ]
        );
    }
}
