//! Marks items again when a marking that they wait for is defined.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::batches::UPDATE;
use super::items::{STAGED_MARKINGS, StagedMarking, batch_row};
use super::memory;
use super::memory::MovedItem;
use super::rows::{FeedItemRow, item_id, support_id};
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::feed::stage::{self, ProposedMarking};
use crate::domain::feed::{BatchState, Tally};
use crate::domain::stix::marking::{Markings, learn, level_by_definition};
use crate::domain::stix::object::{type_of_id, visit_refs};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{tlp, up_to_limit};
use crate::store::stix::known_definitions::{DEFINITIONS, Definitions, definition_rows};
use crate::store::{Store, failed};

/// Markings looked up at a time.
const MARKINGS: usize = 10_000;
/// Items marked again in one transaction; each is read with its object.
const PAGE: usize = 32;

/// A page of items that were marked again.
#[derive(Debug, Clone)]
pub struct ItemRenewal {
    /// Whether there may be more.
    pub more: bool,
    /// Entries written with the change.
    pub entries: Vec<AuditEntry>,
}

impl Store {
    /// The markings for which items of the feed (or batch) `source` wait, ten thousand at most.
    pub async fn waiting_markings(&self, ws: Uuid, source: Uuid) -> Result<Vec<String>, DomainError> {
        let what = "reading waiting items failed";
        let waiting = up_to_limit("feed_waiting:[$ws, $source]..=[$ws, $source, $end]");
        let query = format!(
            "SELECT VALUE marking FROM (SELECT record::id(id)[2] AS marking FROM {waiting} LIMIT {MARKINGS}) \
             GROUP BY marking"
        );
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .bind(("source", source))
            // Greater than any id of a marking-definition.
            .bind(("end", "n"))
            .await
            .map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }

    /// Proposes markings anew for a page of the items that wait for `marking`, which is defined now, with an audit entry
    /// for each batch.
    pub async fn renew_waiting(
        &self,
        ws: Uuid,
        source: Uuid,
        marking: &str,
        now: DateTime<Utc>,
    ) -> Result<ItemRenewal, DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = renew(&tx, (ws, source), marking, now).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("marking items again failed"))
    }
}

#[derive(Debug, SurrealValue)]
struct WaitingItemRow {
    id: RecordId,
    batch: Uuid,
    position: i64,
}

async fn renew(
    tx: &WriteTx,
    (ws, source): (Uuid, Uuid),
    marking: &str,
    now: DateTime<Utc>,
) -> Result<ItemRenewal, StoreError> {
    let waiting = up_to_limit("feed_waiting:[$ws, $source, $marking]..=[$ws, $source, $marking, $last]");
    let query = format!(
        "SELECT id, record::id(id)[3] AS batch, record::id(id)[4] AS position FROM {waiting} LIMIT {PAGE}"
    );
    let waiting: Vec<WaitingItemRow> = tx
        .select(
            &query,
            &[
                ("ws", ws.into_value()),
                ("source", source.into_value()),
                ("marking", marking.to_owned().into_value()),
                ("last", Uuid::max().into_value()),
            ],
        )
        .await?;
    let mut batches: HashMap<Uuid, Vec<i64>> = HashMap::new();
    for row in &waiting {
        batches.entry(row.batch).or_default().push(row.position);
    }
    let mut renewed = ItemRenewal {
        more: waiting.len() == PAGE,
        entries: Vec::new(),
    };
    for (batch, positions) in batches {
        let items = renew_items(tx, (ws, source), (batch, &positions), marking, now).await?;
        if items > 0 {
            renewed.entries.push(entry_of(ws, batch, marking, items, now));
        }
    }
    let done = waiting.into_iter().map(|row| row.id).collect();
    tx.write("DELETE $rows RETURN NONE", done).await?;
    tx.audit(&renewed.entries).await?;
    Ok(renewed)
}

fn entry_of(ws: Uuid, batch: Uuid, marking: &str, items: usize, now: DateTime<Utc>) -> AuditEntry {
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    AuditEntry::anonymous(
        ws,
        here,
        "feed.items_remarked",
        "feed_batch",
        Outcome::Success,
        now,
    )
    .on(batch)
    .with("marking", marking)
    .with("items", items)
}

async fn renew_items(
    tx: &WriteTx,
    (ws, source): (Uuid, Uuid),
    (batch, positions): (Uuid, &[i64]),
    defined: &str,
    now: DateTime<Utc>,
) -> Result<usize, StoreError> {
    let ids = positions.iter().map(|at| item_id(ws, batch, *at)).collect();
    let mut rows: Vec<FeedItemRow> = tx
        .find(ws, "SELECT * FROM $ids WHERE status != 'committed'", ids)
        .await?;
    // A batch that has been swept leaves rows that wait for nothing.
    if rows.is_empty() {
        return Ok(0);
    }
    let named = markings_of(&rows)?;
    let (stored, staged) = definitions(tx, (ws, source), named).await?;
    let mut batch = batch_row(tx, ws, batch).await?;
    let (mut tally, mut received) = (Tally::from_row(&batch.tally), batch.received()?);
    let mut moved = Vec::new();
    let (default, pulling) = (tlp(batch.default_tlp)?, batch.state()? == BatchState::Pulling);
    for row in &mut rows {
        let before = row.cell()?;
        // What the workspace has, as far as everybody who sees the item may know it, and what the feed has.
        let mut known = stored.known_to(before.0);
        learn(&mut known, staged.clone());
        let states = known.get(defined).copied().flatten();
        let marking = stage::propose_marking(&row.object()?, &known, default);
        renew_item(row, marking, states, pulling)?;
        let after = row.cell()?;
        tally.transfer(before, after);
        if before.0 != after.0 {
            received.move_item(before.0, after.0, row.size());
            moved.push(MovedItem::of(row, before.0, after.0));
        }
    }
    memory::follow(tx, (ws, source), &moved).await?;
    batch.settle(tally, received, now)?;
    let count = rows.len();
    tx.write(UPDATE, rows).await?;
    tx.write(UPDATE, vec![batch]).await?;
    Ok(count)
}

/// The markings that these items carry.
fn markings_of(rows: &[FeedItemRow]) -> Result<BTreeSet<String>, DomainError> {
    let mut named = BTreeSet::new();
    for row in rows {
        visit_refs(&row.object()?, &mut |id| {
            if type_of_id(id) == Some("marking-definition") {
                named.insert(id.to_owned());
            }
        });
    }
    Ok(named)
}

/// Gives an item the marking that its object has now that one of its markings is defined; `states` is the level of that
/// definition. `pulling` tells whether the batch is still being filled.
fn renew_item(
    row: &mut FeedItemRow,
    mut marking: ProposedMarking,
    states: Option<Tlp>,
    pulling: bool,
) -> Result<(), DomainError> {
    marking.renew(&mut row.warnings);
    // What versions that came with it state stays.
    marking.stated = marking.stated.max(row.stated_tlp.map(tlp).transpose()?);
    marking.tlp = marking.tlp.max(marking.stated.unwrap_or(Tlp::White));
    let mut proposed = marking.tlp;
    // What comes while the pull goes on is not later than what came on another page of it.
    if !pulling {
        proposed = level_by_definition(tlp(row.proposed_tlp)?, proposed, states, Tlp::White);
        marking.note_kept(proposed, &mut row.warnings);
    }
    row.proposed_tlp = i64::from(proposed.rank());
    row.stated_tlp = marking.stated.map(|level| i64::from(level.rank()));
    // The reviewer's marking stays, unless it would be weaker than what the object turns out to state.
    row.resolved_tlp = row
        .resolved_tlp
        .map(|level| level.max(row.stated_tlp.unwrap_or(0)));
    row.tlp_rank = row.resolved_tlp.unwrap_or(row.proposed_tlp);
    row.held_by = (!marking.undefined.is_empty()).then_some(marking.undefined);
    Ok(())
}

/// The definitions of these markings that the workspace has, and those that the feed has.
async fn definitions(
    tx: &WriteTx,
    (ws, source): (Uuid, Uuid),
    named: BTreeSet<String>,
) -> Result<(Definitions, Markings), StoreError> {
    let ids = named.iter().flat_map(|id| definition_rows(ws, id)).collect();
    let stored = Definitions::of(tx.find(ws, DEFINITIONS, ids).await?)?;
    let ids = named.iter().map(|id| support_id(ws, source, id)).collect();
    let rows: Vec<StagedMarking> = tx.find(ws, STAGED_MARKINGS, ids).await?;
    let mut staged = Markings::new();
    for row in rows {
        learn(&mut staged, row.into_known()?);
    }
    Ok((stored, staged))
}
