//! Adds again what could not leave when clients asked before, and can now: of a marking that the workspace may see or export
//! by now, or of a feed that allows it.
//!
//! Nobody is told of such a change: what may leave is compared with what could when a client asked last, so it does not matter
//! where it was changed, and what no client could notice is not added again.

use std::collections::HashMap;

use surrealdb::types::{RecordId, SurrealValue, Value};
use uuid::Uuid;

use super::added::{FILLED, LeavingRows};
use super::added_edges::raise_to_ends;
use super::additions::{
    EDGE_FIELDS, ListedEdge, ListedNode, ListedSupport, NODE_FIELDS, SUPPORT_FIELDS, StateRow, referrers_of,
    state, write_entries, write_state,
};
use crate::domain::error::DomainError;
use crate::domain::taxii::addition::Addition;
use crate::store::Store;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::{CHUNK, WriteTx};
use crate::store::rows::record;
use crate::store::stix::context::REFERENCE;

impl Store {
    /// Notes what may leave a workspace, and begins to add again what could not before.
    pub async fn note_leaving(&self, ws: Uuid, leaving: &LeavingRows) -> Result<(), DomainError> {
        let noted = with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = note(&tx, ws, leaving).await;
            tx.finish(outcome).await
        });
        let noted = noted.await;
        noted.map_err(|error: StoreError| error.into_domain("noting what may leave failed"))
    }

    /// Adds again what a page of writes has left, as far as it can leave by now; true once all is.
    pub async fn add_again(&self, ws: Uuid) -> Result<bool, DomainError> {
        let added = with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = self.add_page_again(&tx, ws).await;
            tx.finish(outcome).await
        });
        let added = added.await;
        added.map_err(|error: StoreError| error.into_domain("adding again what may leave failed"))
    }

    async fn add_page_again(&self, tx: &WriteTx, ws: Uuid) -> Result<bool, StoreError> {
        let Some(mut state) = state(tx, ws).await?.filter(|state| state.again.is_some()) else {
            return Ok(true);
        };
        let from = state.again.and_then(|from| u64::try_from(from).ok()).unwrap_or(0);
        let page = self.changes(ws, from, FILLED).await?;
        let nodes: Vec<RecordId> = page.nodes.iter().map(|node| record("node", node.id)).collect();
        let edges: Vec<RecordId> = page.edges.iter().map(|edge| record("edge", edge.id)).collect();
        let mut entries = entries_again(tx, &state, nodes, edges).await?;
        if from == 0 {
            entries.extend(supports_again(tx, &state).await?);
        }
        raise_to_ends(tx, ws, &mut entries, HashMap::new()).await?;
        state.again = page.last.and_then(|last| i64::try_from(last).ok());
        let is_done = state.again.is_none();
        if is_done {
            (state.again_ranks, state.again_feeds) = (None, None);
        }
        match entries.is_empty() {
            true => write_state(tx, state).await?,
            false => write_entries(tx, state, entries, Vec::new()).await?,
        }
        Ok(is_done)
    }
}

async fn note(tx: &WriteTx, ws: Uuid, leaving: &LeavingRows) -> Result<(), StoreError> {
    // Before the first entry there is nothing to add again.
    let Some(mut state) = state(tx, ws).await? else {
        return Ok(());
    };
    let rank = i64::from(leaving.highest.rank());
    let ranks: Vec<i64> = state
        .leaving
        .map_or(Vec::new(), |before| (before + 1..=rank).collect());
    let mut feeds = state.blocked.take().unwrap_or_default();
    feeds.retain(|feed| !leaving.blocked.contains(feed));
    if state.leaving.is_some() && !(ranks.is_empty() && feeds.is_empty()) {
        state.again = Some(0);
        state.again_ranks.get_or_insert_default().extend(ranks);
        state.again_feeds.get_or_insert_default().extend(feeds);
    }
    state.leaving = Some(rank);
    state.blocked = Some(leaving.blocked.clone());
    write_state(tx, state).await
}

/// The condition for rows that can leave by now, and what it asks for.
fn condition_of(state: &StateRow) -> (String, [(&'static str, Value); 3]) {
    // A list that is empty contains any of none.
    let is_of_feeds = match state.again_feeds.as_deref() {
        None | Some([]) => "false",
        Some(_) => "(feeds ?? []) CONTAINSANY $feeds",
    };
    let is_asked = format!("ws = $ws AND (tlp_rank IN $ranks OR {is_of_feeds})");
    let ranks = state.again_ranks.clone().unwrap_or_default();
    let feeds = state.again_feeds.clone().unwrap_or_default();
    let of = [
        ("ws", state.ws.into_value()),
        ("ranks", ranks.into_value()),
        ("feeds", feeds.into_value()),
    ];
    (is_asked, of)
}

/// The supporting objects that can leave by now.
async fn supports_again(tx: &WriteTx, state: &StateRow) -> Result<Vec<(i64, Addition)>, StoreError> {
    let (is_asked, of) = condition_of(state);
    let query = format!("SELECT {SUPPORT_FIELDS} FROM stix_support WHERE {is_asked}");
    let found = tx.select::<ListedSupport>(&query, &of).await?;
    Ok(found
        .iter()
        .map(ListedSupport::addition)
        .collect::<Result<_, _>>()?)
}

/// What of these can leave by now: nodes with their relationships and what refers to them, and relationships.
async fn entries_again(
    tx: &WriteTx,
    state: &StateRow,
    nodes: Vec<RecordId>,
    edges: Vec<RecordId>,
) -> Result<Vec<(i64, Addition)>, StoreError> {
    let (is_asked, asked) = condition_of(state);
    let of = |ids: &[RecordId]| {
        let ids = ("ids", ids.to_vec().into_value());
        asked.iter().cloned().chain([ids]).collect::<Vec<_>>()
    };
    let mut entries = Vec::new();
    let mut come: Vec<RecordId> = Vec::new();
    for ids in nodes.chunks(CHUNK) {
        let query = format!("SELECT {NODE_FIELDS} FROM $ids WHERE {is_asked}");
        for node in tx.select::<ListedNode>(&query, &of(ids)).await? {
            entries.push(node.addition()?);
            come.push(node.id);
        }
    }
    let mut referrers: Vec<RecordId> = Vec::new();
    for ids in come.chunks(CHUNK) {
        referrers.extend(tx.select::<RecordId>(&referrers_of("$ids"), &of(ids)).await?);
    }
    let query = format!("SELECT {NODE_FIELDS} FROM $ids WHERE ws = $ws");
    for ids in referrers.chunks(CHUNK) {
        for node in tx.select::<ListedNode>(&query, &of(ids)).await? {
            entries.push(node.addition()?);
        }
    }
    let stated = format!("active = true AND !{REFERENCE}");
    let of_nodes = ["$ids->edge", "$ids<-edge"]
        .map(|from| format!("SELECT {EDGE_FIELDS} FROM {from} WHERE ws = $ws AND {stated}"));
    let own = format!("SELECT {EDGE_FIELDS} FROM $ids WHERE {is_asked} AND {stated}");
    let queries = of_nodes
        .iter()
        .map(|query| (query, &come))
        .chain([(&own, &edges)]);
    for (query, ids) in queries {
        for ids in ids.chunks(CHUNK) {
            for edge in tx.select::<ListedEdge>(query, &of(ids)).await? {
                entries.push(edge.addition()?);
            }
        }
    }
    entries.sort_by_key(|(_, entry)| (entry.kind, entry.id));
    entries.dedup_by_key(|(_, entry)| (entry.kind, entry.id));
    Ok(entries)
}
