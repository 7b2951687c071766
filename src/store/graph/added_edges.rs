//! The marking at which a relationship stands in the list of additions: the strictest of its own and those of its ends. Who may
//! not see an end is told nothing of the relationship, not even by a gap in the dates.

use std::collections::{HashMap, HashSet};

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::taxii::addition::{AddedKind, Addition};
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{key, record, tlp};

#[derive(Debug, SurrealValue)]
struct EndsRow {
    id: RecordId,
    source: RecordId,
    target: RecordId,
}

#[derive(Debug, SurrealValue)]
struct RankRow {
    id: RecordId,
    tlp_rank: i64,
}

/// Puts relationships at the marking of their strictest end. `ranks` are those of nodes that the write has read.
pub(super) async fn raise_to_ends(
    tx: &WriteTx,
    ws: Uuid,
    entries: &mut [(i64, Addition)],
    mut ranks: HashMap<Uuid, i64>,
) -> Result<(), StoreError> {
    let is_edge = |entry: &&mut (i64, Addition)| entry.1.kind == AddedKind::Edge;
    let nodes = entries.iter().filter(|(_, entry)| entry.kind == AddedKind::Node);
    ranks.extend(nodes.map(|(rank, entry)| (entry.id, *rank)));
    let unknown = entries
        .iter()
        .filter(|(_, entry)| entry.kind == AddedKind::Edge && entry.ends.is_none());
    let unknown = unknown.map(|(_, entry)| record("edge", entry.id)).collect();
    let query = "SELECT id, in AS source, out AS target FROM $ids WHERE ws = $ws";
    let mut ends: HashMap<Uuid, [Uuid; 2]> = HashMap::new();
    for row in tx.find::<EndsRow>(ws, query, unknown).await? {
        ends.insert(key(&row.id)?, [key(&row.source)?, key(&row.target)?]);
    }
    for (_, entry) in entries.iter_mut().filter(is_edge) {
        entry.ends = entry.ends.or_else(|| ends.get(&entry.id).copied());
    }
    let all = entries.iter().filter_map(|(_, entry)| entry.ends).flatten();
    let others: HashSet<Uuid> = all.filter(|end| !ranks.contains_key(end)).collect();
    let others = others.into_iter().map(|end| record("node", end)).collect();
    let query = "SELECT id, tlp_rank FROM $ids WHERE ws = $ws";
    for row in tx.find::<RankRow>(ws, query, others).await? {
        ranks.insert(key(&row.id)?, row.tlp_rank);
    }
    for (rank, entry) in entries.iter_mut().filter(is_edge) {
        let of_ends = entry.ends.iter().flatten().filter_map(|end| ranks.get(end));
        let strictest = of_ends.copied().max().unwrap_or(0);
        if strictest > *rank {
            entry.own = Some(tlp(*rank)?);
            *rank = strictest;
        }
    }
    Ok(())
}
