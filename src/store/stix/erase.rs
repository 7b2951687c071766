//! What is kept of STIX objects beside nodes and relationships, as far as it is erased with them.

use std::collections::{BTreeMap, HashSet};

use surrealdb::types::{Array, RecordId, SurrealValue};
use uuid::Uuid;

use super::support_rows::support_rows;
use crate::domain::error::DomainError;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::key;
use crate::store::{Store, failed};

const READ: &str = "reading what is kept of STIX objects failed";
/// Sorts after every STIX id.
const AFTER_ALL: &str = "\u{10ffff}";

#[derive(Debug, SurrealValue)]
struct FoundRow {
    id: RecordId,
    tlp_rank: i64,
}

#[derive(Debug, SurrealValue)]
struct FoundHeld {
    id: RecordId,
    held: RecordId,
}

#[derive(Debug, Clone, SurrealValue)]
struct FewerWaiting {
    id: RecordId,
    fewer: i64,
}

/// What an erasure does to rows of STIX objects.
#[derive(Debug, Default)]
pub(in crate::store) struct StixWithout {
    gone: Vec<RecordId>,
    fewer: Vec<FewerWaiting>,
    /// Number of supporting objects, and of waiting relationships, as far as they are seen.
    pub(in crate::store) supports: u64,
    pub(in crate::store) waiting: u64,
}

impl StixWithout {
    /// The ids of the rows that go, as far as they are ids.
    pub(in crate::store) fn rows(&self) -> Result<HashSet<Uuid>, DomainError> {
        let supports = self
            .gone
            .iter()
            .filter(|row| row.table.as_str() == "stix_support");
        supports.map(key).collect()
    }
}

impl Store {
    /// The supporting objects with these ids, the relationships of them that wait, and what waits for a marking: those, and
    /// these rows.
    pub(in crate::store) async fn stix_without(
        &self,
        ws: Uuid,
        (stix_ids, rows): (&HashSet<String>, &HashSet<Uuid>),
        highest: Tlp,
    ) -> Result<StixWithout, DomainError> {
        let mut done = StixWithout::default();
        let is_seen = |row: &&FoundRow| row.tlp_rank <= i64::from(highest.rank());
        let mut held = rows.clone();
        if !stix_ids.is_empty() {
            let supports = stix_ids.iter().flat_map(|stix_id| support_rows(ws, stix_id));
            let supports = supports.collect();
            let supports = self.supports_with_ids(ws, supports).await?;
            done.supports = supports.iter().filter(is_seen).count() as u64;
            for row in &supports {
                held.insert(key(&row.id)?);
            }
            done.gone.extend(supports.into_iter().map(|row| row.id));
            let waiting = self.waiting_of(ws, stix_ids).await?;
            done.take_waiting(ws, waiting, highest);
        }
        let query = "SELECT id, held FROM stix_held WHERE ws = $ws";
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .await
            .map_err(failed(READ))?;
        let waiting: Vec<FoundHeld> = response.take(0).map_err(failed(READ))?;
        for row in waiting {
            if held.contains(&key(&row.held)?) {
                done.gone.push(row.id);
            }
        }
        Ok(done)
    }

    async fn supports_with_ids(&self, ws: Uuid, ids: Vec<RecordId>) -> Result<Vec<FoundRow>, DomainError> {
        let query = "SELECT id, tlp_rank FROM $ids WHERE ws = $ws";
        let statement = self.db.query(query).bind(("ws", ws)).bind(("ids", ids));
        let mut response = statement.await.map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }

    /// The relationships that wait for an end and lead to or from one of these objects.
    async fn waiting_of(&self, ws: Uuid, stix_ids: &HashSet<String>) -> Result<Vec<FoundRow>, DomainError> {
        let query = "SELECT id, tlp_rank FROM stix_waiting:[$ws]..[$ws, $end] \
                     WHERE source_ref IN $objects OR target_ref IN $objects";
        let objects: Vec<String> = stix_ids.iter().cloned().collect();
        let statement = self.db.query(query).bind(("ws", ws)).bind(("end", AFTER_ALL));
        let mut response = statement.bind(("objects", objects)).await.map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }
}

impl Store {
    /// What waits of a feed, as rows to remove.
    pub(in crate::store) async fn waiting_of_feed(
        &self,
        ws: Uuid,
        feed: Uuid,
        highest: Tlp,
    ) -> Result<StixWithout, DomainError> {
        let query = "SELECT id, tlp_rank FROM stix_waiting:[$ws]..[$ws, $end] WHERE feed = $feed";
        let statement = self.db.query(query).bind(("ws", ws)).bind(("end", AFTER_ALL));
        let mut response = statement.bind(("feed", feed)).await.map_err(failed(READ))?;
        let mut done = StixWithout::default();
        done.take_waiting(ws, response.take(0).map_err(failed(READ))?, highest);
        Ok(done)
    }
}

impl StixWithout {
    /// Takes relationships that wait, and how many fewer then do.
    fn take_waiting(&mut self, ws: Uuid, waiting: Vec<FoundRow>, highest: Tlp) {
        let mut fewer: BTreeMap<i64, i64> = BTreeMap::new();
        for row in waiting {
            self.waiting += u64::from(row.tlp_rank <= i64::from(highest.rank()));
            *fewer.entry(row.tlp_rank).or_default() += 1;
            self.gone.push(row.id);
        }
        let fewer = fewer.into_iter().map(|(rank, fewer)| {
            let key = vec![ws.into_value(), rank.into_value()];
            FewerWaiting {
                id: RecordId::new("stix_waiting_count", Array::from(key)),
                fewer,
            }
        });
        self.fewer.extend(fewer);
    }

    pub(in crate::store) async fn write(&self, tx: &WriteTx) -> Result<(), StoreError> {
        tx.write("DELETE $rows RETURN NONE", self.gone.clone()).await?;
        tx.write(
            "FOR $row IN $rows { UPDATE $row.id SET number = math::max([number - $row.fewer, 0]) RETURN NONE }",
            self.fewer.clone(),
        )
        .await
    }
}
