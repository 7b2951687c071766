//! Writes the list of what was added to the collections of a workspace (`domain/taxii/addition.rs`).
//!
//! Rules:
//! - The entries of a write are written in its transaction. Their dates are consecutive microseconds, later than all before,
//!   whatever the clock says: a client that goes on from a date misses nothing.
//! - The dates of a write go from the least restricted marking to the strictest, so that no gap tells of hidden entries.
//! - A relationship stands at the marking of its strictest end (`added_edges.rs`).
//! - What changes for readers without being written itself has an entry, too: a relationship whose end comes or goes, a node
//!   that is merged, an object of which a reference finds its target.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use surrealdb::types::{Array, Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::added_dates::note_last_dates;
use super::added_edges::raise_to_ends;
use super::faces::StoredNodeFace;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::node::NodeStatus;
use crate::domain::packing;
use crate::domain::stix::object::type_of_id;
use crate::domain::taxii::addition::{AddedKind, Addition};
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{EdgeRow, NodeRow, SupportRow, corrupt, key, record};
use crate::store::stix::context::REFERENCE;

/// Most entries of a row.
const ENTRIES: usize = 250;
/// The type of the objects that relationships are.
const RELATIONSHIP: &str = "relationship";

#[derive(Debug, Clone, SurrealValue)]
struct NewRow {
    id: RecordId,
    entries: Bytes,
}

/// The dates of a write.
#[derive(Debug, Clone, SurrealValue)]
struct DatesRow {
    id: RecordId,
    first: i64,
    last: i64,
}

/// How far the list of a workspace is.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct StateRow {
    pub(super) id: RecordId,
    pub(super) ws: Uuid,
    /// The last date, in microseconds.
    pub(super) last: i64,
    /// The writes up to this number are in the list.
    pub(super) filled: i64,
    /// The last write before the list began.
    pub(super) until: i64,
    /// What could leave when a client asked last: the strictest marking, and the feeds that forbade it.
    pub(super) leaving: Option<i64>,
    pub(super) blocked: Option<Vec<Uuid>>,
    /// Up to which write what can leave by now is added again, and of which markings and feeds.
    pub(super) again: Option<i64>,
    pub(super) again_ranks: Option<Vec<i64>>,
    pub(super) again_feeds: Option<Vec<Uuid>>,
}

/// A node as it is stored.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct ListedNode {
    pub(super) id: RecordId,
    pub(super) rev: i64,
    pub(super) tlp_rank: i64,
    pub(super) source_type: String,
    pub(super) properties: String,
    pub(super) stix_evidence: Option<Uuid>,
    pub(super) status: String,
}

/// An edge as it is stored.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct ListedEdge {
    pub(super) id: RecordId,
    pub(super) rev: Option<i64>,
    pub(super) tlp_rank: i64,
    source: RecordId,
    target: RecordId,
}

/// The fields of [`ListedNode`].
pub(super) const NODE_FIELDS: &str = "id, rev, tlp_rank, source_type, properties, stix_evidence, status";

/// A supporting object as it is stored.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct ListedSupport {
    id: RecordId,
    stix_id: String,
    tlp_rank: i64,
    modified: DateTime<Utc>,
}

/// The fields of [`ListedSupport`].
pub(super) const SUPPORT_FIELDS: &str = "id, stix_id, tlp_rank, modified";

impl ListedSupport {
    /// The entry with the rank of its marking.
    pub(super) fn addition(&self) -> Result<(i64, Addition), DomainError> {
        let addition = support(&self.id, &self.stix_id, self.modified.timestamp_micros())?;
        Ok((self.tlp_rank, addition))
    }
}

/// The query for the nodes that refer to others in a property.
pub(super) fn referrers_of(nodes: &str) -> String {
    format!("SELECT VALUE in FROM {nodes}<-edge WHERE ws = $ws AND active = true AND {REFERENCE}")
}

/// The fields of [`ListedEdge`].
pub(super) const EDGE_FIELDS: &str = "id, rev, tlp_rank, in AS source, out AS target";

/// What a write adds, while it runs.
#[derive(Debug, Default)]
pub(super) struct NewAdditions {
    /// With the rank of the marking.
    entries: Vec<(i64, Addition)>,
    places: HashMap<(AddedKind, Uuid), usize>,
    /// Nodes that change for readers without being written.
    touched: HashSet<Uuid>,
    touched_edges: HashSet<Uuid>,
    /// Nodes that come or go for some readers, and with them their relationships and what refers to them.
    reached: HashSet<Uuid>,
    /// Supporting objects that change for readers.
    touched_supports: Vec<RecordId>,
    /// The markings of nodes that the write has read.
    ranks: HashMap<Uuid, i64>,
}

/// What a node is made from says which STIX object it is.
#[derive(Deserialize)]
struct StixId {
    stix_id: Option<String>,
}

/// The type of the object that a node came as.
fn stix_type(source_type: &str, properties: &str) -> Option<String> {
    if source_type != "stix" {
        return None;
    }
    let id = serde_json::from_str::<StixId>(properties).ok()?.stix_id?;
    type_of_id(&id).map(str::to_owned)
}

impl ListedNode {
    pub(super) fn addition(&self) -> Result<(i64, Addition), DomainError> {
        let addition = Addition {
            kind: AddedKind::Node,
            id: key(&self.id)?,
            rev: self.rev,
            original: self.stix_evidence,
            stix_type: stix_type(&self.source_type, &self.properties),
            own: None,
            ends: None,
            is_withdrawn: false,
        };
        Ok((self.tlp_rank, addition))
    }
}

impl ListedEdge {
    pub(super) fn addition(&self) -> Result<(i64, Addition), DomainError> {
        let addition = Addition {
            ends: Some([key(&self.source)?, key(&self.target)?]),
            ..edge(key(&self.id)?, self.rev.unwrap_or(0))
        };
        Ok((self.tlp_rank, addition))
    }
}

pub(super) fn edge(id: Uuid, rev: i64) -> Addition {
    Addition {
        kind: AddedKind::Edge,
        id,
        rev,
        original: None,
        stix_type: Some(RELATIONSHIP.to_owned()),
        own: None,
        ends: None,
        is_withdrawn: false,
    }
}

/// The entry of a supporting object.
pub(super) fn support(id: &RecordId, stix_id: &str, modified: i64) -> Result<Addition, DomainError> {
    Ok(Addition {
        kind: AddedKind::Support,
        id: key(id)?,
        rev: modified,
        original: None,
        stix_type: type_of_id(stix_id).map(str::to_owned),
        own: None,
        ends: None,
        is_withdrawn: false,
    })
}

impl NewAdditions {
    fn add(&mut self, rank: i64, addition: Addition) {
        let key = (addition.kind, addition.id);
        match self
            .places
            .get(&key)
            .and_then(|place| self.entries.get_mut(*place))
        {
            Some(earlier) => *earlier = (rank, addition),
            None => {
                self.places.insert(key, self.entries.len());
                self.entries.push((rank, addition));
            }
        }
    }

    /// Adds a node as it is written; `before` is what it was.
    pub(super) fn add_node(
        &mut self,
        row: &NodeRow,
        before: Option<&StoredNodeFace>,
    ) -> Result<(), DomainError> {
        let id = key(&row.id)?;
        let active = NodeStatus::Active.as_str();
        let was_seen =
            before.is_some_and(|before| before.status == active && before.tlp_rank <= row.tlp_rank);
        if before.is_some_and(|before| {
            (before.tlp_rank, &before.status, &before.held_by) != (row.tlp_rank, &row.status, &row.held_by)
        }) {
            self.reached.insert(id);
        }
        let addition = Addition {
            kind: AddedKind::Node,
            id,
            rev: row.rev,
            original: row.stix_evidence,
            stix_type: stix_type(&row.source_type, &row.properties),
            own: None,
            ends: None,
            is_withdrawn: row.status != active && was_seen,
        };
        self.add(row.tlp_rank, addition);
        Ok(())
    }

    /// Adds a node again that changes for readers without being written.
    pub(super) fn touch(&mut self, node: Uuid) {
        self.touched.insert(node);
    }

    /// Tells the markings of nodes that the write has read, so that they are not read again.
    pub(super) fn tell_ranks(&mut self, ranks: impl IntoIterator<Item = (Uuid, i64)>) {
        self.ranks.extend(ranks);
    }

    /// Adds supporting objects again.
    pub(super) fn touch_supports(&mut self, supports: impl IntoIterator<Item = RecordId>) {
        self.touched_supports.extend(supports);
    }

    /// Adds an edge again.
    pub(super) fn touch_edge(&mut self, edge: Uuid) {
        self.touched_edges.insert(edge);
    }

    /// Adds the relationships of a node again.
    pub(super) fn touch_edges_of(&mut self, node: Uuid) {
        self.reached.insert(node);
    }

    /// Adds an edge as it is written. One that stands in a property of its source changes that.
    pub(super) fn add_edge(&mut self, row: &EdgeRow) -> Result<(), DomainError> {
        if row.raw.is_none() && row.modified.is_some() {
            self.touch(key(&row.source)?);
            return Ok(());
        }
        let addition = Addition {
            ends: Some([key(&row.source)?, key(&row.target)?]),
            ..edge(key(&row.id)?, row.rev.unwrap_or(0))
        };
        self.add(row.tlp_rank, addition);
        Ok(())
    }

    /// Adds an edge whose marking or status has changed.
    pub(super) fn change_edge(
        &mut self,
        id: &RecordId,
        (rank, rev): (i64, i64),
        is_withdrawn: bool,
    ) -> Result<(), DomainError> {
        let addition = Addition {
            is_withdrawn,
            ..edge(key(id)?, rev)
        };
        self.add(rank, addition);
        Ok(())
    }

    /// Adds supporting objects as they are written.
    pub(super) fn add_supports(&mut self, rows: &[SupportRow]) -> Result<(), DomainError> {
        for row in rows {
            let addition = support(&row.id, &row.stix_id, row.modified.timestamp_micros())?;
            self.add(row.tlp_rank, addition);
        }
        Ok(())
    }

    /// Takes out what is erased by the same write.
    pub(super) fn forget(&mut self, ids: &[RecordId]) -> Result<(), DomainError> {
        let gone = ids.iter().map(key).collect::<Result<HashSet<Uuid>, _>>()?;
        self.touched.retain(|id| !gone.contains(id));
        self.reached.retain(|id| !gone.contains(id));
        Ok(())
    }

    /// Writes them as those of the write with this number.
    pub(super) async fn write(mut self, tx: &WriteTx, ws: Uuid, rev: i64) -> Result<(), StoreError> {
        self.find_touched(tx, ws).await?;
        if self.entries.is_empty() {
            return Ok(());
        }
        let stored = state(tx, ws).await?;
        let state = stored.unwrap_or_else(|| StateRow::before(ws, rev));
        raise_to_ends(tx, ws, &mut self.entries, self.ranks).await?;
        write_entries(tx, state, self.entries, vec![rev]).await
    }

    /// Reads what is added without being written.
    async fn find_touched(&mut self, tx: &WriteTx, ws: Uuid) -> Result<(), StoreError> {
        let reached: Vec<RecordId> = self.reached.iter().map(|id| record("node", *id)).collect();
        // What refers to a node that comes or goes names it, or does not.
        for source in tx
            .find::<RecordId>(ws, &referrers_of("$ids"), reached.clone())
            .await?
        {
            self.touch(key(&source)?);
        }
        let supports: Vec<RecordId> = std::mem::take(&mut self.touched_supports);
        let query = format!("SELECT {SUPPORT_FIELDS} FROM $ids WHERE ws = $ws");
        for row in tx.find::<ListedSupport>(ws, &query, supports).await? {
            let (rank, addition) = row.addition()?;
            self.add(rank, addition);
        }
        let known = |kind, id: &Uuid| self.places.contains_key(&(kind, *id));
        let touched = self.touched.iter().filter(|id| !known(AddedKind::Node, id));
        let touched: Vec<RecordId> = touched.map(|id| record("node", *id)).collect();
        let query = format!("SELECT {NODE_FIELDS} FROM $ids WHERE ws = $ws");
        for node in tx.find::<ListedNode>(ws, &query, touched).await? {
            let (rank, addition) = node.addition()?;
            self.add(rank, addition);
        }
        let edges: Vec<RecordId> = self.touched_edges.iter().map(|id| record("edge", *id)).collect();
        self.add_stored_edges(tx, ws, ("$ids", edges)).await?;
        self.add_stored_edges(tx, ws, ("$ids->edge", reached.clone()))
            .await?;
        self.add_stored_edges(tx, ws, ("$ids<-edge", reached)).await
    }

    async fn add_stored_edges(
        &mut self,
        tx: &WriteTx,
        ws: Uuid,
        (from, ids): (&str, Vec<RecordId>),
    ) -> Result<(), StoreError> {
        let query =
            format!("SELECT {EDGE_FIELDS} FROM {from} WHERE ws = $ws AND active = true AND !{REFERENCE}");
        for edge in tx.find::<ListedEdge>(ws, &query, ids).await? {
            let (rank, addition) = edge.addition()?;
            if !self.places.contains_key(&(AddedKind::Edge, addition.id)) {
                self.add(rank, addition);
            }
        }
        Ok(())
    }
}

impl StateRow {
    /// The list of a workspace whose first entries are those of this write.
    pub(super) fn before(ws: Uuid, rev: i64) -> Self {
        let until = rev.saturating_sub(1).max(0);
        Self {
            id: record("taxii_state", ws),
            ws,
            last: 0,
            filled: 0,
            until,
            leaving: None,
            blocked: None,
            again: None,
            again_ranks: None,
            again_feeds: None,
        }
    }
}

/// How far the list of a workspace is; `None` before its first entry.
pub(super) async fn state(tx: &WriteTx, ws: Uuid) -> Result<Option<StateRow>, StoreError> {
    let query = "SELECT * FROM $ids WHERE ws = $ws";
    let found: Vec<StateRow> = tx.find(ws, query, vec![record("taxii_state", ws)]).await?;
    Ok(found.into_iter().next())
}

/// Writes entries behind all that are there, as those of the writes with these numbers.
pub(super) async fn write_entries(
    tx: &WriteTx,
    mut state: StateRow,
    mut entries: Vec<(i64, Addition)>,
    revs: Vec<i64>,
) -> Result<(), StoreError> {
    entries.sort_by_key(|(rank, addition)| (*rank, addition.class()));
    let now = clock::now().timestamp_micros();
    let mut date = state.last.max(now.saturating_sub(1));
    let first = date.saturating_add(1);
    let mut rows = Vec::new();
    for of_rank in entries.chunk_by(|(one, _), (other, _)| one == other) {
        for chunk in of_rank.chunks(ENTRIES) {
            let rank = chunk.first().map_or(0, |(rank, _)| *rank);
            let additions: Vec<&Addition> = chunk.iter().map(|(_, addition)| addition).collect();
            date = date.saturating_add(i64::try_from(additions.len()).unwrap_or(i64::MAX));
            let text = serde_json::to_vec(&additions).map_err(corrupt)?;
            let key = vec![state.ws.into_value(), rank.into_value(), date.into_value()];
            rows.push(NewRow {
                id: RecordId::new("taxii_added", Array::from(key)),
                entries: Bytes::from(packing::pack_text(&text)),
            });
        }
    }
    state.last = date;
    let dated = (first..).zip(entries.iter().map(|(_, addition)| addition));
    note_last_dates(tx, state.ws, dated, &revs).await?;
    let dates = revs.into_iter().map(|rev| DatesRow {
        id: RecordId::new(
            "taxii_dates",
            Array::from(vec![state.ws.into_value(), rev.into_value()]),
        ),
        first,
        last: date,
    });
    tx.write(
        "INSERT IGNORE INTO taxii_dates $rows RETURN NONE",
        dates.collect(),
    )
    .await?;
    tx.write("INSERT INTO taxii_added $rows RETURN NONE", rows)
        .await?;
    write_state(tx, state).await
}

/// Writes how far the list of a workspace is.
pub(super) async fn write_state(tx: &WriteTx, state: StateRow) -> Result<(), StoreError> {
    let query = "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }";
    tx.write(query, vec![state]).await
}
