//! Edges with their texts, read for the search index.

use std::collections::HashMap;

use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::nodes::statuses;
use super::rows::{key, record, tlp, unpack};
use super::{Store, failed};
use crate::domain::error::DomainError;
use crate::domain::passage::passage_of;
use crate::domain::stix::object;
use crate::domain::tlp::Tlp;

/// An edge that is in force.
#[derive(Debug)]
pub struct StoredEdge {
    pub id: Uuid,
    pub source: Uuid,
    pub target: Uuid,
    pub tlp: Tlp,
    pub relationship: String,
    /// 0 to 1.
    pub confidence: f64,
    pub text: Option<String>,
}

#[derive(Debug, SurrealValue)]
struct Row {
    id: RecordId,
    #[surreal(rename = "in")]
    source: RecordId,
    #[surreal(rename = "out")]
    target: RecordId,
    tlp_rank: i64,
    relationship: String,
    confidence: f64,
    raw: Option<Bytes>,
    proof: Option<String>,
}

const FIELDS: &str = "id, in, out, tlp_rank, relationship, confidence, raw, proof";

impl Store {
    /// Those of these edges that are in force.
    pub async fn edges_to_index(&self, ws: Uuid, edges: &[Uuid]) -> Result<Vec<StoredEdge>, DomainError> {
        if edges.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<Row> = self
            .rows_by_id(
                &format!("SELECT {FIELDS} FROM $ids WHERE ws = $ws AND active = true"),
                edges.iter().map(|id| record("edge", *id)).collect(),
                &[("ws", ws.into_value())],
            )
            .await
            .map_err(failed("reading relationships for the index failed"))?;
        rows.into_iter().map(Row::into_edge).collect()
    }

    /// The texts of those of these edges that are in force and that a caller may see together with both ends.
    pub async fn texts_of_passages(
        &self,
        ws: Uuid,
        edges: &[Uuid],
        (highest, include_rejected): (Tlp, bool),
    ) -> Result<HashMap<Uuid, String>, DomainError> {
        let sees = |end: &str| {
            format!("{end}.ws = $ws AND {end}.tlp_rank <= $highest AND {end}.status IN $statuses")
        };
        let query = format!(
            "SELECT {FIELDS} FROM $ids WHERE ws = $ws AND active = true \
                 AND tlp_rank <= $highest AND {} AND {}",
            sees("in"),
            sees("out")
        );
        let ids = edges.iter().map(|id| record("edge", *id)).collect();
        let parameters = [
            ("ws", ws.into_value()),
            ("highest", i64::from(highest.rank()).into_value()),
            ("statuses", statuses(include_rejected).into_value()),
        ];
        let rows: Vec<Row> = self
            .rows_by_id(&query, ids, &parameters)
            .await
            .map_err(failed("reading texts of relationships failed"))?;
        let edges = rows.into_iter().map(Row::into_edge);
        edges
            .filter_map(|edge| edge.map(|edge| Some((edge.id, edge.text?))).transpose())
            .collect()
    }
}

impl Row {
    fn into_edge(self) -> Result<StoredEdge, DomainError> {
        let text = match &self.raw {
            Some(raw) => object::text(&unpack(raw)?, "description").and_then(passage_of),
            None => self.proof.as_deref().and_then(passage_of),
        };
        Ok(StoredEdge {
            id: key(&self.id)?,
            source: key(&self.source)?,
            target: key(&self.target)?,
            tlp: tlp(self.tlp_rank)?,
            relationship: self.relationship,
            confidence: self.confidence,
            text,
        })
    }
}
