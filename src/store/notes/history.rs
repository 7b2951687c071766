//! What notes said before they were corrected, what each write changed, and which notes are being erased.

use chrono::{DateTime, Utc};
use surrealdb::types::{Array, RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::domain::memory::change::{ChangePlace, ErasedThings, MemoryChange};
use crate::domain::memory::note::Note;
use crate::store::rows::{corrupt, key, record, up_to_limit};
use crate::store::{Store, failed};

/// Most changes in one row.
const PART: usize = 200;
/// Rows read at a time.
const ROWS: usize = 200;
const WHAT: &str = "reading the history failed";

/// What a note said before a correction.
#[derive(Debug, Clone)]
pub struct NoteVersion {
    pub note: Uuid,
    /// From 1.
    pub number: u64,
    pub content: String,
    pub domain: String,
    pub source_type: String,
    pub source_ref: String,
}

impl NoteVersion {
    /// What a note says now, as its version with this number.
    pub fn of(note: &Note, number: u64) -> Self {
        Self {
            note: note.id,
            number,
            content: note.content.clone(),
            domain: note.domain.clone(),
            source_type: note.source_type.clone(),
            source_ref: note.source_ref.clone(),
        }
    }
}

/// A version with the time until which the note said this.
#[derive(Debug, Clone)]
pub struct StoredVersion {
    pub version: NoteVersion,
    pub until: DateTime<Utc>,
}

/// A page of the history, and the place behind it.
#[derive(Debug, Default)]
pub struct ChangePage {
    pub changes: Vec<(DateTime<Utc>, MemoryChange)>,
    pub next: ChangePlace,
}

/// Which part of the history is wanted.
#[derive(Debug, Clone, Copy)]
pub struct WantedChanges<K> {
    pub from: ChangePlace,
    /// The last time.
    pub until: Option<DateTime<Utc>>,
    pub limit: usize,
    /// Whether a change is wanted.
    pub is_wanted: K,
}

/// A row of the history as it is written again.
#[derive(Debug, Clone, SurrealValue)]
pub struct RewrittenChanges {
    id: RecordId,
    entries: String,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct ChangeRow {
    id: RecordId,
    at: DateTime<Utc>,
    entries: String,
}

#[derive(Debug, SurrealValue)]
struct FoundRow {
    id: RecordId,
    rev: i64,
    part: i64,
    at: DateTime<Utc>,
    entries: String,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct VersionRow {
    id: RecordId,
    ws: Uuid,
    content: String,
    domain: String,
    source_type: String,
    source_ref: String,
    until: DateTime<Utc>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct ErasureRow {
    id: RecordId,
    ws: Uuid,
    at: DateTime<Utc>,
}

/// The rows that tell what a write changed.
pub(super) fn change_rows(
    (ws, rev): (Uuid, u64),
    at: DateTime<Utc>,
    changes: &[MemoryChange],
) -> Vec<ChangeRow> {
    let rev = i64::try_from(rev).unwrap_or(i64::MAX);
    let parts = (0i64..).zip(changes.chunks(PART));
    let row = |(part, changes): (i64, &[MemoryChange])| ChangeRow {
        id: change_id(ws, rev, part),
        at,
        entries: text_of(changes),
    };
    parts.map(row).collect()
}

fn change_id(ws: Uuid, rev: i64, part: i64) -> RecordId {
    let key = vec![ws.into_value(), rev.into_value(), part.into_value()];
    RecordId::new("note_change", Array::from(key))
}

fn text_of(changes: &[MemoryChange]) -> String {
    // Names, numbers and ids can always be written as JSON.
    serde_json::to_string(changes).unwrap_or_else(|_| "[]".into())
}

pub(super) fn version_row(ws: Uuid, version: &NoteVersion, until: DateTime<Utc>) -> VersionRow {
    let number = i64::try_from(version.number).unwrap_or(i64::MAX);
    let key = vec![version.note.into_value(), number.into_value()];
    VersionRow {
        id: RecordId::new("note_version", Array::from(key)),
        ws,
        content: version.content.clone(),
        domain: version.domain.clone(),
        source_type: version.source_type.clone(),
        source_ref: version.source_ref.clone(),
        until,
    }
}

pub(super) fn erasure_row(ws: Uuid, note: Uuid, at: DateTime<Utc>) -> ErasureRow {
    ErasureRow {
        id: record("note_erasure", note),
        ws,
        at,
    }
}

#[derive(Debug, SurrealValue)]
struct FoundVersion {
    number: i64,
    content: String,
    domain: String,
    source_type: String,
    source_ref: String,
    until: DateTime<Utc>,
}

impl Store {
    /// What a note said before its corrections, the first version first.
    pub async fn note_versions(&self, ws: Uuid, note: Uuid) -> Result<Vec<StoredVersion>, DomainError> {
        let what = "reading the versions of a note failed";
        let query = "SELECT record::id(id)[1] AS number, content, domain, source_type, source_ref, until \
            FROM note_version:[$note, 0]..[$note, $end] WHERE ws = $ws";
        let statement = self.db.query(query).bind(("note", note)).bind(("ws", ws));
        let mut response = statement.bind(("end", i64::MAX)).await.map_err(failed(what))?;
        let rows: Vec<FoundVersion> = response.take(0).map_err(failed(what))?;
        let stored = |row: FoundVersion| StoredVersion {
            version: NoteVersion {
                note,
                number: u64::try_from(row.number).unwrap_or(0),
                content: row.content,
                domain: row.domain,
                source_type: row.source_type,
                source_ref: row.source_ref,
            },
            until: row.until,
        };
        Ok(rows.into_iter().map(stored).collect())
    }

    /// A page of the history, in the order of the writes.
    pub async fn note_changes(
        &self,
        ws: Uuid,
        wanted: WantedChanges<impl Fn(&MemoryChange) -> bool>,
    ) -> Result<ChangePage, DomainError> {
        let mut page = ChangePage {
            changes: Vec::new(),
            next: wanted.from,
        };
        loop {
            let rows = self.change_rows_from(ws, page.next, ROWS).await?;
            let more = rows.len() == ROWS;
            for row in rows {
                if wanted.until.is_some_and(|until| row.at > until) {
                    return Ok(page);
                }
                let first = usize::try_from(row.part).unwrap_or(0) * PART;
                let changes: Vec<MemoryChange> = serde_json::from_str(&row.entries).map_err(corrupt)?;
                let number = u64::try_from(row.rev).unwrap_or(0);
                for (at, change) in (first..).zip(changes) {
                    let place = ChangePlace {
                        number,
                        entry: u32::try_from(at + 1).unwrap_or(u32::MAX),
                    };
                    if place <= page.next {
                        continue;
                    }
                    if (wanted.is_wanted)(&change) {
                        if page.changes.len() == wanted.limit {
                            return Ok(page);
                        }
                        page.changes.push((row.at, change));
                    }
                    page.next = place;
                }
            }
            if !more {
                return Ok(page);
            }
        }
    }

    /// The place before the first write at or after a time.
    pub async fn place_of_time(&self, ws: Uuid, since: DateTime<Utc>) -> Result<ChangePlace, DomainError> {
        let start = ChangePlace::default();
        let Some(first) = self.change_rows_from(ws, start, 1).await?.pop() else {
            return Ok(start);
        };
        let Some(last) = self.last_change(ws).await? else {
            return Ok(start);
        };
        // The times rise with the numbers. All before `low` are too early, and none from `high` on.
        let (mut low, mut high) = (first.rev, last.saturating_add(1));
        while low < high {
            let middle = low + (high - low) / 2;
            let place = ChangePlace {
                number: u64::try_from(middle).unwrap_or(0),
                entry: 0,
            };
            match self.change_rows_from(ws, place, 1).await?.pop() {
                Some(row) if row.at < since => low = row.rev.saturating_add(1),
                Some(_) | None => high = middle,
            }
        }
        Ok(ChangePlace {
            number: u64::try_from(low).unwrap_or(0),
            entry: 0,
        })
    }

    /// The rows of the history that an erasure must change.
    pub async fn changes_without(
        &self,
        ws: Uuid,
        erased: &ErasedThings,
    ) -> Result<Vec<RewrittenChanges>, DomainError> {
        let mut rewritten = Vec::new();
        let mut after = ChangePlace::default();
        loop {
            let rows = self.change_rows_from(ws, after, ROWS).await?;
            let Some(last) = rows.last() else {
                return Ok(rewritten);
            };
            after = ChangePlace {
                number: u64::try_from(last.rev).unwrap_or(0),
                entry: u32::try_from((usize::try_from(last.part).unwrap_or(0) + 1) * PART)
                    .unwrap_or(u32::MAX),
            };
            for row in rows {
                let mut changes: Vec<MemoryChange> = serde_json::from_str(&row.entries).map_err(corrupt)?;
                let changed = changes
                    .iter_mut()
                    .filter_map(|change| change.erase(erased).then_some(()));
                if changed.count() > 0 {
                    let entries = text_of(&changes);
                    rewritten.push(RewrittenChanges { id: row.id, entries });
                }
            }
        }
    }

    /// Notes that are erased from the database, while traces of them may be left elsewhere.
    pub async fn unfinished_erasures(&self, ws: Uuid) -> Result<Vec<Uuid>, DomainError> {
        let what = "reading the erasures failed";
        let query = "SELECT VALUE id FROM note_erasure WHERE ws = $ws";
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let ids: Vec<RecordId> = response.take(0).map_err(failed(what))?;
        ids.iter().map(key).collect()
    }

    /// Records that nothing is left of erased notes.
    pub async fn finish_erasures(&self, ws: Uuid, notes: &[Uuid]) -> Result<(), DomainError> {
        let what = "recording an erasure failed";
        let ids: Vec<RecordId> = notes.iter().map(|note| record("note_erasure", *note)).collect();
        let query = "DELETE $ids WHERE ws = $ws RETURN NONE";
        let statement = self.db.query(query).bind(("ids", ids)).bind(("ws", ws));
        statement
            .await
            .and_then(surrealdb::IndexedResults::check)
            .map_err(failed(what))?;
        Ok(())
    }

    async fn last_change(&self, ws: Uuid) -> Result<Option<i64>, DomainError> {
        let query = "SELECT VALUE record::id(id)[1] FROM note_change:[$ws, 0, 0]..[$ws, $end, 0] \
            ORDER BY id DESC LIMIT 1";
        let statement = self.db.query(query).bind(("ws", ws)).bind(("end", i64::MAX));
        let mut response = statement.await.map_err(failed(WHAT))?;
        response.take(0).map_err(failed(WHAT))
    }

    /// The rows that may hold changes behind a place, in order.
    async fn change_rows_from(
        &self,
        ws: Uuid,
        from: ChangePlace,
        limit: usize,
    ) -> Result<Vec<FoundRow>, DomainError> {
        let range = up_to_limit("note_change:[$ws, $rev, $part]..[$ws, $end, 0]");
        let query = format!(
            "SELECT id, record::id(id)[1] AS rev, record::id(id)[2] AS part, at, entries FROM {range} LIMIT {limit}"
        );
        let entry = usize::try_from(from.entry).unwrap_or(usize::MAX);
        let statement = self.db.query(query).bind(("ws", ws)).bind(("end", i64::MAX));
        let statement = statement.bind(("rev", i64::try_from(from.number).unwrap_or(i64::MAX)));
        let part = i64::try_from(entry / PART).unwrap_or(i64::MAX);
        let mut response = statement.bind(("part", part)).await.map_err(failed(WHAT))?;
        response.take(0).map_err(failed(WHAT))
    }
}
