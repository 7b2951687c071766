//! Texts of edges, read for the search index.

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

/// The text of an edge.
#[derive(Debug)]
pub struct StoredPassage {
    /// The id of the edge.
    pub id: Uuid,
    pub source: Uuid,
    pub target: Uuid,
    pub tlp: Tlp,
    pub text: String,
}

#[derive(Debug, SurrealValue)]
struct Row {
    id: RecordId,
    #[surreal(rename = "in")]
    source: RecordId,
    #[surreal(rename = "out")]
    target: RecordId,
    tlp_rank: i64,
    raw: Option<Bytes>,
    proof: Option<String>,
}

impl Store {
    /// The texts of those of these edges that are in force and have one.
    pub async fn passages_to_index(
        &self,
        ws: Uuid,
        edges: &[Uuid],
    ) -> Result<Vec<StoredPassage>, DomainError> {
        if edges.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<Row> = self
            .rows_by_id(
                "SELECT id, in, out, tlp_rank, raw, proof FROM $ids WHERE ws = $ws AND active = true",
                edges.iter().map(|id| record("edge", *id)).collect(),
                &[("ws", ws.into_value())],
            )
            .await
            .map_err(failed("reading texts for the index failed"))?;
        let passages = rows.into_iter().filter_map(|row| row.into_passage().transpose());
        passages.collect()
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
            "SELECT id, in, out, tlp_rank, raw, proof FROM $ids WHERE ws = $ws AND active = true \
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
        let passages = rows.into_iter().filter_map(|row| row.into_passage().transpose());
        passages
            .map(|passage| passage.map(|passage| (passage.id, passage.text)))
            .collect()
    }
}

impl Row {
    fn into_passage(self) -> Result<Option<StoredPassage>, DomainError> {
        let text = match &self.raw {
            Some(raw) => object::text(&unpack(raw)?, "description").and_then(passage_of),
            None => self.proof.as_deref().and_then(passage_of),
        };
        let Some(text) = text else { return Ok(None) };
        Ok(Some(StoredPassage {
            id: key(&self.id)?,
            source: key(&self.source)?,
            target: key(&self.target)?,
            tlp: tlp(self.tlp_rank)?,
            text,
        }))
    }
}
