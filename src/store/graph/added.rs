//! Reads the list of what was added to the collections of a workspace, and fills it for a workspace that is older.

use std::collections::{HashMap, VecDeque};

use surrealdb::types::{Array, Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::added_edges::raise_to_ends;
use super::additions::{
    EDGE_FIELDS, ListedEdge, ListedNode, ListedSupport, NODE_FIELDS, SUPPORT_FIELDS, StateRow, state,
    write_entries,
};
use crate::domain::error::DomainError;
use crate::domain::packing;
use crate::domain::taxii::addition::Addition;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{corrupt, key, record, tlp, up_to_limit};
use crate::store::stix::context::REFERENCE;
use crate::store::stix::known_definitions::definition_rows;
use crate::store::stix::support_rows::support_rows;
use crate::store::{Changes, Store, failed};

/// Rows of a marking read at a time.
const ROWS: usize = 2;
/// Things of older writes entered at a time.
pub(super) const FILLED: usize = 2000;
pub(super) const READ: &str = "reading the list of additions failed";

/// An entry with its date in microseconds, and the marking that it was added with.
#[derive(Debug, Clone)]
pub struct DatedAddition {
    pub date: i64,
    pub tlp: Tlp,
    pub addition: Addition,
}

/// Rows that objects may stand in.
#[derive(Debug, Default)]
pub struct NamedRows {
    pub nodes: Vec<Uuid>,
    pub edges: Vec<Uuid>,
    /// Objects whose rows follow from their ids.
    pub stix_ids: Vec<String>,
}

/// How far the list of a workspace is.
#[derive(Debug, Clone)]
pub struct AdditionsState {
    /// Everything up to this date is in it, in microseconds; `None` while writes that are older than the list are not.
    pub end: Option<i64>,
    /// What could leave when a client asked last.
    pub noted: Option<LeavingRows>,
    /// Whether what can leave by now is still being added again.
    pub adds_again: bool,
}

/// What may leave a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingRows {
    pub highest: Tlp,
    /// The feeds that forbid it, sorted.
    pub blocked: Vec<Uuid>,
}

#[derive(Debug, SurrealValue)]
struct FoundRow {
    last: i64,
    entries: Bytes,
}

#[derive(Debug, SurrealValue)]
struct WrittenRow {
    id: RecordId,
    rev: i64,
    tlp_rank: i64,
    /// The markings of a relationship's ends.
    ends: Option<Vec<i64>>,
}

#[derive(Debug, SurrealValue)]
struct FoundDates {
    first: i64,
    last: i64,
}

/// Reads the list in order, entry by entry, up to a date.
pub struct AdditionReader<'a> {
    store: &'a Store,
    ws: Uuid,
    up_to: i64,
    levels: Vec<LevelReader>,
}

/// The entries of one marking.
struct LevelReader {
    level: Tlp,
    /// Entries up to this date have been read.
    after: i64,
    entries: VecDeque<DatedAddition>,
    is_at_end: bool,
}

impl FoundRow {
    /// Its entries behind a date.
    fn entries(self, level: Tlp, after: i64) -> Result<Vec<DatedAddition>, DomainError> {
        let text = packing::unpack_text(&self.entries).map_err(corrupt)?;
        let entries: Vec<Option<Addition>> = serde_json::from_slice(&text).map_err(corrupt)?;
        let count = i64::try_from(entries.len()).unwrap_or(0);
        let first = self.last.saturating_sub(count).saturating_add(1);
        let dated = (first..).zip(entries).filter(|(date, _)| *date > after);
        Ok(dated
            .filter_map(|(date, addition)| {
                Some(DatedAddition {
                    date,
                    tlp: level,
                    addition: addition?,
                })
            })
            .collect())
    }
}

impl Store {
    /// How far the list of a workspace is. What is committed later has a later date.
    pub async fn additions_state(&self, ws: Uuid) -> Result<AdditionsState, DomainError> {
        let statement = self.db.query("SELECT * FROM $id WHERE ws = $ws");
        let statement = statement.bind(("id", record("taxii_state", ws))).bind(("ws", ws));
        let mut response = statement.await.map_err(failed(READ))?;
        let found: Option<StateRow> = response.take(0).map_err(failed(READ))?;
        let Some(state) = found else {
            return Ok(AdditionsState {
                end: self.next_write(ws, 0).await?.is_none().then_some(0),
                noted: None,
                adds_again: false,
            });
        };
        let noted = state.leaving.map(|rank| {
            Ok::<_, DomainError>(LeavingRows {
                highest: tlp(rank)?,
                blocked: state.blocked.unwrap_or_default(),
            })
        });
        Ok(AdditionsState {
            end: (state.filled >= state.until).then_some(state.last),
            noted: noted.transpose()?,
            adds_again: state.again.is_some(),
        })
    }

    /// The first date that the writes after this number gave.
    pub async fn first_date_after(&self, ws: Uuid, rev: u64) -> Result<Option<i64>, DomainError> {
        let range = up_to_limit("taxii_dates:[$ws, $from]..[$ws, $end]");
        let statement = self.db.query(format!("SELECT VALUE first FROM {range} LIMIT 1"));
        let from = i64::try_from(rev).unwrap_or(i64::MAX).saturating_add(1);
        let statement = statement
            .bind(("ws", ws))
            .bind(("from", from))
            .bind(("end", i64::MAX));
        let mut response = statement.await.map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }

    /// Reads what was added with these markings after a date, up to another.
    pub fn addition_reader(
        &self,
        ws: Uuid,
        levels: impl IntoIterator<Item = Tlp>,
        (after, up_to): (i64, i64),
    ) -> AdditionReader<'_> {
        let levels = levels.into_iter().map(|level| LevelReader {
            level,
            after,
            entries: VecDeque::new(),
            is_at_end: false,
        });
        AdditionReader {
            store: self,
            ws,
            up_to,
            levels: levels.collect(),
        }
    }

    async fn added_rows(&self, ws: Uuid, level: Tlp, after: i64) -> Result<Vec<FoundRow>, DomainError> {
        let range = up_to_limit("taxii_added:[$ws, $level, $after]>..[$ws, $next]");
        let query = format!("SELECT record::id(id)[2] AS last, entries FROM {range} LIMIT {ROWS}");
        let rank = i64::from(level.rank());
        let statement = self.db.query(query).bind(("ws", ws)).bind(("after", after));
        let statement = statement.bind(("level", rank)).bind(("next", rank + 1));
        let mut response = statement.await.map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }

    /// The entries of these rows as they were written last, up to a marking.
    pub async fn additions_of(
        &self,
        ws: Uuid,
        rows: &NamedRows,
        highest: Tlp,
    ) -> Result<Vec<DatedAddition>, DomainError> {
        let of = [
            ("ws", ws.into_value()),
            ("highest", i64::from(highest.rank()).into_value()),
        ];
        let mut written: Vec<WrittenRow> = Vec::new();
        for (table, ids) in [("node", &rows.nodes), ("edge", &rows.edges)] {
            let ends = match table {
                "edge" => "[in.tlp_rank ?? 0, out.tlp_rank ?? 0]",
                _ => "NONE",
            };
            let query = format!(
                "SELECT id, rev ?? 0 AS rev, tlp_rank, {ends} AS ends FROM $ids WHERE ws = $ws AND tlp_rank <= $highest"
            );
            let ids: Vec<RecordId> = ids.iter().map(|id| record(table, *id)).collect();
            if !ids.is_empty() {
                written.extend(self.rows_by_id(&query, ids, &of).await.map_err(failed(READ))?);
            }
        }
        let mut entries = Vec::new();
        let ids = written
            .iter()
            .map(|row| key(&row.id))
            .collect::<Result<Vec<Uuid>, _>>()?;
        let again = self.last_dates(ws, ids.iter().copied()).await?;
        for (id, row) in ids.into_iter().zip(written) {
            let again = again
                .get(&id)
                .filter(|last| last.rev == row.rev)
                .map(|last| last.date);
            entries.extend(self.addition_of(ws, &row, (again, highest)).await?);
        }
        let supports = rows.stix_ids.iter();
        let supports =
            supports.flat_map(|id| support_rows(ws, id).into_iter().chain(definition_rows(ws, id)));
        let query = format!("SELECT {SUPPORT_FIELDS} FROM $ids WHERE ws = $ws AND tlp_rank <= $highest");
        let supports: Vec<ListedSupport> = self
            .rows_by_id(&query, supports.collect(), &of)
            .await
            .map_err(failed(READ))?;
        for row in supports {
            let (rank, addition) = row.addition()?;
            let (date, tlp) = (addition.rev, tlp(rank)?);
            entries.push(DatedAddition { date, tlp, addition });
        }
        Ok(entries)
    }

    /// The entry of a row that was entered again at a date, or among those of its last write.
    async fn addition_of(
        &self,
        ws: Uuid,
        row: &WrittenRow,
        (again, highest): (Option<i64>, Tlp),
    ) -> Result<Option<DatedAddition>, DomainError> {
        let (id, own) = (key(&row.id)?, tlp(row.tlp_rank)?);
        let ends = row.ends.iter().flatten().copied().max().unwrap_or(0);
        // Those of earlier versions stand at the marking of the relationship itself.
        let mut levels = vec![own, tlp(ends.max(row.tlp_rank))?];
        levels.retain(|level| *level <= highest);
        levels.dedup();
        let dates = RecordId::new(
            "taxii_dates",
            Array::from(vec![ws.into_value(), row.rev.into_value()]),
        );
        let statement = self.db.query("SELECT first, last FROM $id").bind(("id", dates));
        let mut response = statement.await.map_err(failed(READ))?;
        let dates: Option<FoundDates> = response.take(0).map_err(failed(READ))?;
        let written = dates.map(|FoundDates { first, last }| (first, last));
        let Some((first, last)) = again.map(|date| (date, date)).or(written) else {
            return Ok(None);
        };
        let mut reader = self.addition_reader(ws, levels, (first.saturating_sub(1), last));
        while let Some(entry) = reader.next().await? {
            if entry.addition.id == id {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Enters what a page of older writes has left; true once all are entered.
    pub async fn fill_additions(&self, ws: Uuid) -> Result<bool, DomainError> {
        let filled = with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = self.fill(&tx, ws).await;
            tx.finish(outcome).await
        });
        let filled = filled.await;
        filled.map_err(|error: StoreError| error.into_domain("filling the list of additions failed"))
    }

    /// The number of the last write of a workspace; numbers have no gaps.
    async fn last_number(&self, ws: Uuid) -> Result<u64, DomainError> {
        let (mut last, mut step) = (0_u64, 1_u64);
        while step > 0 {
            let number = last.saturating_add(step);
            if self.has_revision(ws, number).await? {
                (last, step) = (number, step.saturating_mul(2));
            } else {
                step /= 2;
            }
        }
        Ok(last)
    }

    async fn fill(&self, tx: &WriteTx, ws: Uuid) -> Result<bool, StoreError> {
        let mut state = match state(tx, ws).await? {
            Some(state) => state,
            None => {
                let next = self.last_number(ws).await?.saturating_add(1);
                StateRow::before(ws, i64::try_from(next).unwrap_or(i64::MAX))
            }
        };
        if state.filled >= state.until {
            return Ok(true);
        }
        let from = u64::try_from(state.filled).unwrap_or(0);
        let mut page = self.changes(ws, from, FILLED).await?;
        let last = u64::try_from(state.until).unwrap_or(0);
        page.nodes.retain(|change| change.rev <= last);
        let mut entries = older_entries(tx, ws, &page, state.filled == 0).await?;
        raise_to_ends(tx, ws, &mut entries, HashMap::new()).await?;
        state.filled = page
            .last
            .map_or(state.until, |last| i64::try_from(last).unwrap_or(i64::MAX));
        let (is_last, until) = (state.filled >= state.until, state.until);
        let mut revs: Vec<i64> = entries.iter().map(|(_, entry)| entry.rev).collect();
        revs.sort_unstable();
        revs.dedup();
        revs.retain(|rev| (1..=until).contains(rev));
        write_entries(tx, state, entries, revs).await?;
        Ok(is_last)
    }
}

/// What a page of writes has left as it was written by them.
async fn older_entries(
    tx: &WriteTx,
    ws: Uuid,
    page: &Changes,
    with_supports: bool,
) -> Result<Vec<(i64, Addition)>, StoreError> {
    let mut entries = Vec::new();
    if with_supports {
        let query = format!("SELECT {SUPPORT_FIELDS} FROM stix_support WHERE ws = $ws");
        let supports: Vec<ListedSupport> = tx.select(&query, &[("ws", ws.into_value())]).await?;
        for row in supports {
            entries.push(row.addition()?);
        }
    }
    let written: HashMap<Uuid, u64> = page.nodes.iter().map(|node| (node.id, node.rev)).collect();
    let ids = written.keys().map(|node| record("node", *node)).collect();
    let query = format!("SELECT {NODE_FIELDS} FROM $ids WHERE ws = $ws");
    for node in tx.find::<ListedNode>(ws, &query, ids).await? {
        let (rank, addition) = node.addition()?;
        let at = written.get(&addition.id).and_then(|rev| i64::try_from(*rev).ok());
        // One that was written later is entered with that write.
        if at >= Some(addition.rev) {
            entries.push((rank, addition));
        }
    }
    // Of a relationship that was written since then there is an entry.
    let ids = page.edges.iter().map(|edge| record("edge", edge.id)).collect();
    let query = format!(
        "SELECT {EDGE_FIELDS} FROM $ids WHERE ws = $ws AND active = true AND rev = NONE AND !{REFERENCE}"
    );
    for edge in tx.find::<ListedEdge>(ws, &query, ids).await? {
        entries.push(edge.addition()?);
    }
    Ok(entries)
}

impl AdditionReader<'_> {
    /// The next entry; `None` at the end of the list.
    pub async fn next(&mut self) -> Result<Option<DatedAddition>, DomainError> {
        for reader in &mut self.levels {
            while reader.entries.is_empty() && !reader.is_at_end {
                let rows = self.store.added_rows(self.ws, reader.level, reader.after).await?;
                reader.is_at_end = rows.len() < ROWS;
                for row in rows {
                    let last = row.last;
                    reader.entries.extend(row.entries(reader.level, reader.after)?);
                    reader.after = last;
                }
            }
        }
        let levels = self.levels.iter_mut();
        let next = levels.filter(|reader| !reader.entries.is_empty());
        let next = next.min_by_key(|reader| reader.entries.front().map(|entry| entry.date));
        let next = next.and_then(|reader| reader.entries.pop_front());
        Ok(next.filter(|entry| entry.date <= self.up_to))
    }
}
