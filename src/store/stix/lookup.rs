//! Finds the node of a STIX object by the object's id.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::domain::graph::place::Place;
use crate::domain::node::NodeStatus;
use crate::domain::tlp::Tlp;
use crate::store::rows::{key, record};
use crate::store::{Store, failed};

/// Rows of each chain beside an object's first one that are always looked at, so that the time of an answer does not
/// tell of hidden ones. More than that stand there only after as many risings of the object.
const ALWAYS: usize = 3;

#[derive(Debug, SurrealValue)]
struct PlacedRow {
    id: RecordId,
    modified: Option<DateTime<Utc>>,
    tlp_rank: i64,
    status: String,
}

impl Store {
    /// The node in which a caller cleared up to `highest` sees a STIX object, given the spellings of the object's id: of
    /// several rows the newest version, and the strictest of those.
    pub async fn node_of_object(
        &self,
        ws: Uuid,
        spellings: &[&str],
        highest: Tlp,
        include_rejected: bool,
    ) -> Result<Option<Uuid>, DomainError> {
        let mut places: Vec<(&str, Place)> = Vec::new();
        for spelling in spellings {
            places.push((*spelling, Place::First));
            for first in Place::beside() {
                let chain = std::iter::successors(Some(first), |place| place.following());
                places.extend(chain.take(ALWAYS).map(|place| (*spelling, place)));
            }
        }
        let mut shown: Vec<PlacedRow> = Vec::new();
        while !places.is_empty() {
            let ids = places.iter().map(|at| record("node", self.place_id(ws, *at)));
            let rows: Vec<PlacedRow> = self
                .rows_by_id(
                    "SELECT id, modified, tlp_rank, status FROM $ids WHERE ws = $ws",
                    ids.collect(),
                    &[("ws", ws.into_value())],
                )
                .await
                .map_err(failed("reading nodes failed"))?;
            let taken: Vec<Uuid> = rows.iter().map(|row| key(&row.id)).collect::<Result<_, _>>()?;
            let further = places.iter().filter_map(|at| {
                let next = (at.0, at.1.following()?);
                let is_last = !places.contains(&next) && taken.contains(&self.place_id(ws, *at));
                is_last.then_some(next)
            });
            let further = further.collect();
            places = further;
            shown.extend(
                rows.into_iter()
                    .filter(|row| row.is_shown(highest, include_rejected)),
            );
        }
        let newest = shown.iter().max_by_key(|row| (row.modified, row.tlp_rank));
        newest.map(|row| key(&row.id)).transpose()
    }

    fn place_id(&self, ws: Uuid, (name, place): (&str, Place)) -> Uuid {
        self.ids_of(ws).node(&place.name(name))
    }
}

impl PlacedRow {
    fn is_shown(&self, highest: Tlp, include_rejected: bool) -> bool {
        let status = self.status.as_str();
        let shown = status == NodeStatus::Active.as_str()
            || (include_rejected && status == NodeStatus::Rejected.as_str());
        shown && self.tlp_rank <= i64::from(highest.rank())
    }
}
