//! Relationships that wait for an end that has not come yet.
//!
//! Rules:
//! - A relationship waits as its sender sent it, and becomes an edge at its own marking with the write that brings its last
//!   end, whoever sends that. Until then nothing shows it.
//! - To its sender it waits, too, if the end is hidden: the answer does not tell the two apart.
//! - At each marking a workspace keeps a limited number of them.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{Array, Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::super::rows::tlp;
use super::known::Ends;
use super::{Ingest, Outcome};
use crate::domain::error::DomainError;
use crate::domain::stix::ingest::{StixNode, StixRelationship};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::CHUNK;

/// Maximum number of relationships that wait in a workspace at each marking.
const MOST: i64 = 100_000;
/// Why a relationship becomes no edge yet.
/// What is said of a relationship that is kept until its end comes.
pub const WAITS: &str = "an end of the relationship is not in the workspace; it waits for it";
const FULL: &str = "an end of the relationship is not in the workspace, and 100000 wait already";
const NO_END: &str = "an end of the relationship is not in the workspace";

/// A relationship as it was sent. Its id is that of its workspace, the end that it waits for, its marking and its own id.
#[derive(Debug, Clone, SurrealValue)]
struct WaitingRow {
    id: RecordId,
    ws: Uuid,
    stix_id: String,
    modified: DateTime<Utc>,
    relationship: String,
    source_ref: String,
    target_ref: String,
    tlp_rank: i64,
    stated: Option<i64>,
    earlier: Option<i64>,
    confidence: f64,
    active: bool,
    raw: Bytes,
    held_by: Vec<String>,
    carried: Vec<String>,
    /// The highest marking that its sender may see.
    highest: i64,
    /// The default marking of its bundle.
    default_tlp: i64,
    feed: Option<Uuid>,
}

/// An object that relationships wait for.
#[derive(Debug, Clone, SurrealValue)]
struct AwaitedRow {
    id: RecordId,
    ws: Uuid,
    stix_id: String,
}

#[derive(Debug, Clone, SurrealValue)]
struct CountRow {
    id: RecordId,
    ws: Uuid,
    tlp_rank: i64,
    number: i64,
}

#[derive(Debug, SurrealValue)]
struct KnownRow {
    id: RecordId,
    modified: DateTime<Utc>,
}

/// How many relationships wait, by the rank of their marking.
pub(super) type WaitingCounts = BTreeMap<i64, i64>;

/// Those that are decided on together: the clearance of their sender, the default of their bundle, and their feed.
type Sender = (i64, i64, Option<Uuid>);

impl Ingest<'_> {
    /// Why a relationship becomes no edge, and whether it waits.
    pub(super) async fn reason_to_wait(
        &mut self,
        edge: &StixRelationship,
    ) -> Result<(&'static str, bool), StoreError> {
        if !self.keeps_waiting && !edge.is_reference() {
            return Ok((NO_END, false));
        }
        let rank = i64::from(edge.tlp.rank());
        let is_full = self
            .waiting_counts()
            .await?
            .get(&rank)
            .is_some_and(|number| *number >= MOST);
        Ok(if is_full { (FULL, false) } else { (WAITS, true) })
    }

    /// How many waited when the write began.
    async fn waiting_counts(&mut self) -> Result<WaitingCounts, StoreError> {
        if let Some(counts) = &self.waiting {
            return Ok(counts.clone());
        }
        let ids = Tlp::ALL
            .into_iter()
            .map(|level| self.count_row(i64::from(level.rank())));
        let query = "SELECT * FROM $ids WHERE ws = $ws";
        let rows: Vec<CountRow> = self.tx.find(self.ws, query, ids.collect()).await?;
        let counts: WaitingCounts = rows.into_iter().map(|row| (row.tlp_rank, row.number)).collect();
        self.waiting = Some(counts.clone());
        Ok(counts)
    }

    fn count_row(&self, rank: i64) -> RecordId {
        let key = vec![self.ws.into_value(), rank.into_value()];
        RecordId::new("stix_waiting_count", Array::from(key))
    }

    fn awaited_row(&self, end: &str) -> RecordId {
        let key = vec![self.ws.into_value(), end.to_owned().into_value()];
        RecordId::new("stix_awaited", Array::from(key))
    }

    /// Keeps relationships until the end comes that they lack.
    pub(super) async fn wait(
        &mut self,
        edges: Vec<&StixRelationship>,
        ends: &Ends<'_>,
        default_tlp: Tlp,
    ) -> Result<(), StoreError> {
        if edges.is_empty() {
            return Ok(());
        }
        let rows: Vec<WaitingRow> = edges
            .into_iter()
            .map(|edge| self.waiting_row(edge, ends, default_tlp))
            .collect();
        let ids = rows.iter().map(|row| row.id.clone()).collect();
        let query = "SELECT id, modified FROM $ids WHERE ws = $ws";
        let known: Vec<KnownRow> = self.tx.find(self.ws, query, ids).await?;
        let is_newer = |row: &WaitingRow| {
            let stored = known.iter().find(|known| known.id == row.id);
            stored.is_none_or(|stored| stored.modified < row.modified)
        };
        let rows: Vec<WaitingRow> = rows.into_iter().filter(is_newer).collect();
        let is_replaced = |row: &&WaitingRow| known.iter().any(|known| known.id == row.id);
        let replaced: Vec<RecordId> = rows
            .iter()
            .filter(is_replaced)
            .map(|row| row.id.clone())
            .collect();
        let mut more = WaitingCounts::new();
        for row in rows.iter().filter(|row| !is_replaced(row)) {
            *more.entry(row.tlp_rank).or_default() += 1;
        }
        self.tx.write("DELETE $rows RETURN NONE", replaced).await?;
        let awaited = rows
            .iter()
            .map(|row| missing_end(ends, &row.source_ref, &row.target_ref).clone());
        self.note_awaited(awaited.collect()).await?;
        self.tx
            .write("INSERT INTO stix_waiting $rows RETURN NONE", rows)
            .await?;
        self.count_waiting(more).await
    }

    fn waiting_row(&self, edge: &StixRelationship, ends: &Ends<'_>, default_tlp: Tlp) -> WaitingRow {
        let end = missing_end(ends, &edge.source_ref, &edge.target_ref);
        let tlp_rank = i64::from(edge.tlp.rank());
        let key = vec![
            self.ws.into_value(),
            end.clone().into_value(),
            tlp_rank.into_value(),
            edge.stix_id.clone().into_value(),
        ];
        let rank = |level: Option<Tlp>| level.map(|level| i64::from(level.rank()));
        WaitingRow {
            id: RecordId::new("stix_waiting", Array::from(key)),
            ws: self.ws,
            stix_id: edge.stix_id.clone(),
            modified: edge.modified,
            relationship: edge.relationship.clone(),
            source_ref: edge.source_ref.clone(),
            target_ref: edge.target_ref.clone(),
            tlp_rank,
            stated: rank(edge.stated),
            earlier: rank(edge.earlier),
            confidence: edge.confidence,
            active: edge.active,
            raw: Bytes::from(edge.raw.clone()),
            held_by: edge.held_by.clone(),
            carried: edge.carried.clone(),
            highest: i64::from(self.highest.rank()),
            default_tlp: i64::from(default_tlp.rank()),
            feed: self.rows.feed,
        }
    }

    async fn note_awaited(&self, mut ends: Vec<String>) -> Result<(), StoreError> {
        ends.sort_unstable();
        ends.dedup();
        let ids = ends.iter().map(|end| self.awaited_row(end)).collect();
        let known: Vec<AwaitedRow> = self.tx.find(self.ws, AWAITED, ids).await?;
        ends.retain(|end| !known.iter().any(|row| row.stix_id == *end));
        let rows = ends.into_iter().map(|end| AwaitedRow {
            id: self.awaited_row(&end),
            ws: self.ws,
            stix_id: end,
        });
        let rows: Vec<AwaitedRow> = rows.collect();
        self.tx
            .write("INSERT INTO stix_awaited $rows RETURN NONE", rows)
            .await
    }

    async fn count_waiting(&mut self, more: WaitingCounts) -> Result<(), StoreError> {
        let ids = more.keys().map(|rank| self.count_row(*rank)).collect();
        let query = "SELECT * FROM $ids WHERE ws = $ws";
        let stored: Vec<CountRow> = self.tx.find(self.ws, query, ids).await?;
        let rows = more.into_iter().map(|(tlp_rank, more)| {
            let known = stored.iter().find(|row| row.tlp_rank == tlp_rank);
            let before = known.map_or(0, |row| row.number);
            CountRow {
                id: self.count_row(tlp_rank),
                ws: self.ws,
                tlp_rank,
                number: (before + more).max(0),
            }
        });
        let rows: Vec<CountRow> = rows.collect();
        self.tx
            .write(
                "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }",
                rows,
            )
            .await
    }

    /// Joins the relationships that waited for these nodes, as far as both ends are there now.
    pub(super) async fn join_waiting(&mut self, nodes: &[StixNode]) -> Result<(), StoreError> {
        if self.waiting_counts().await?.values().all(|number| *number == 0) {
            return Ok(());
        }
        for nodes in nodes.chunks(CHUNK) {
            let ids = nodes.iter().map(|node| self.awaited_row(&node.stix_id)).collect();
            let awaited: Vec<AwaitedRow> = self.tx.find(self.ws, AWAITED, ids).await?;
            let mut ready = Vec::new();
            for row in &awaited {
                ready.extend(self.waiting_for(&row.stix_id).await?);
            }
            let mut fewer = WaitingCounts::new();
            for row in &ready {
                *fewer.entry(row.tlp_rank).or_default() -= 1;
            }
            let gone = ready.iter().map(|row| row.id.clone());
            let gone = gone.chain(awaited.into_iter().map(|row| row.id)).collect();
            self.tx.write("DELETE $rows RETURN NONE", gone).await?;
            self.count_waiting(fewer).await?;
            self.join(ready).await?;
        }
        Ok(())
    }

    async fn waiting_for(&self, end: &str) -> Result<Vec<WaitingRow>, StoreError> {
        let query = "SELECT * FROM stix_waiting:[$ws, $end]..=[$ws, $end, $last] WHERE ws = $ws";
        // Greater than any rank.
        let last = i64::try_from(Tlp::ALL.len()).unwrap_or(i64::MAX);
        let of = [
            ("ws", self.ws.into_value()),
            ("end", end.to_owned().into_value()),
            ("last", last.into_value()),
        ];
        self.tx.select(query, &of).await
    }

    /// Writes relationships as their senders would now.
    async fn join(&mut self, rows: Vec<WaitingRow>) -> Result<(), StoreError> {
        let mut by_sender: BTreeMap<Sender, Vec<StixRelationship>> = BTreeMap::new();
        for row in rows {
            let sender = (row.highest, row.default_tlp, row.feed);
            by_sender.entry(sender).or_default().push(row.relationship()?);
        }
        for ((highest, default_tlp, feed), mut edges) in by_sender {
            edges.sort_by(|one, other| (one.modified, &one.stix_id).cmp(&(other.modified, &other.stix_id)));
            let own = (self.highest, self.rows.feed);
            let done = std::mem::take(&mut self.done);
            // What this writer sent is not what the sender of the relationships knows.
            let sent = std::mem::take(&mut self.own);
            (self.highest, self.rows.feed) = (tlp(highest)?, feed);
            // What is there already is looked up once for all that are written together: of two versions, the later one must find
            // the earlier one.
            let mut rest = edges.as_slice();
            while !rest.is_empty() {
                let mut ids = HashSet::new();
                let new = rest
                    .iter()
                    .take(CHUNK)
                    .map(|edge| ids.insert(edge.stix_id.as_str()));
                let count = new.take_while(|is_new| *is_new).count();
                let (together, later) = rest.split_at(count);
                self.edges(together, tlp(default_tlp)?).await?;
                rest = later;
            }
            (self.highest, self.rows.feed) = own;
            self.own = sent;
            let joined: Outcome = std::mem::replace(&mut self.done, done);
            // The writer is told of those that it sees.
            let (mut seen, mut context) = (0, 0);
            for edges in edges.chunks(CHUNK) {
                let ends = self.ends(edges).await?;
                let is_known = |end: &String| ends.get(end.as_str()).is_some_and(|end| end.is_known);
                let sees = |edge: &&StixRelationship| {
                    edge.tlp <= self.highest && is_known(&edge.source_ref) && is_known(&edge.target_ref)
                };
                let (of_context, others): (Vec<_>, Vec<_>) = edges
                    .iter()
                    .filter(|edge| !edge.is_reference())
                    .filter(sees)
                    .partition(|edge| edge.is_context());
                seen += others.len() as u64;
                context += of_context.len() as u64;
            }
            self.done.result.edges_created += joined.result.edges_created.min(seen);
            self.done.result.kept.relationships_created +=
                joined.result.kept.relationships_created.min(context);
        }
        Ok(())
    }
}

/// The end that a relationship waits for.
fn missing_end<'e>(ends: &Ends<'_>, source: &'e String, target: &'e String) -> &'e String {
    let is_known = ends.get(source.as_str()).is_some_and(|end| end.is_known);
    if is_known { target } else { source }
}

const AWAITED: &str = "SELECT * FROM $ids WHERE ws = $ws";

impl WaitingRow {
    fn relationship(self) -> Result<StixRelationship, DomainError> {
        let level = |rank: Option<i64>| rank.map(tlp).transpose();
        Ok(StixRelationship {
            stix_id: self.stix_id,
            modified: self.modified,
            relationship: self.relationship,
            source_ref: self.source_ref,
            target_ref: self.target_ref,
            tlp: tlp(self.tlp_rank)?,
            stated: level(self.stated)?,
            earlier: level(self.earlier)?,
            confidence: self.confidence,
            active: self.active,
            raw: self.raw.to_vec(),
            held_by: self.held_by,
            carried: self.carried,
        })
    }
}
