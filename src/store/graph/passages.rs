//! Edges with their texts, and other passages, read for the search index.

use std::collections::HashMap;

use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::visibility::{parameters, sees_both};
use crate::domain::error::DomainError;
use crate::domain::passage::{passage_of, readable_part, written_in};
use crate::domain::stix::object;
use crate::domain::tlp::Tlp;
use crate::store::rows::{PassageRow, key, record, tlp, unpack};
use crate::store::{Store, failed};

/// A text about nodes that is no relationship.
#[derive(Debug)]
pub struct StoredPassage {
    pub id: Uuid,
    pub source: Uuid,
    pub target: Uuid,
    pub tlp: Tlp,
    pub text: String,
}

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
    /// Its text; of a reference from a report, note, opinion or grouping to what these name, or from language content to
    /// what that translates, the text of that object.
    pub text: Option<String>,
    /// Whether the text is one about a node that an ingest counts.
    pub is_about_node: bool,
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
    context: Option<bool>,
    about: Option<String>,
}

/// A report, note, opinion or grouping is a passage about each node that it names (`object_refs`), and language content about
/// that which it translates.
const FIELDS: &str = "id, in, out, tlp_rank, relationship, confidence, raw, proof, context, \
                      IF raw = NONE AND context = true AND relationship IN ['refers-to', 'translates'] AND out.context = NONE \
                      THEN in.description ELSE NONE END AS about";

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

    /// The passages with these ids, apart from edges.
    pub async fn passages_to_index(
        &self,
        ws: Uuid,
        passages: &[Uuid],
    ) -> Result<Vec<StoredPassage>, DomainError> {
        if passages.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<PassageRow> = self
            .rows_by_id(
                "SELECT * FROM $ids WHERE ws = $ws",
                passages.iter().map(|id| record("passage", *id)).collect(),
                &[("ws", ws.into_value())],
            )
            .await
            .map_err(failed("reading passages for the index failed"))?;
        rows.into_iter().map(PassageRow::into_passage).collect()
    }

    /// The texts of those of these edges and other passages that are in force and that a caller may see together with
    /// both ends.
    pub async fn texts_of_passages(
        &self,
        ws: Uuid,
        passages: &[Uuid],
        shown: (Tlp, bool),
    ) -> Result<HashMap<Uuid, String>, DomainError> {
        let mut texts = HashMap::new();
        if passages.is_empty() {
            return Ok(texts);
        }
        let what = failed("reading passages failed");
        let query = format!(
            "SELECT {FIELDS} FROM $ids WHERE active = true AND {}",
            sees_both("in", "out")
        );
        let ids = passages.iter().map(|id| record("edge", *id)).collect();
        let parameters = parameters(ws, shown);
        let edges: Vec<Row> = self.rows_by_id(&query, ids, &parameters).await.map_err(&what)?;
        for edge in edges {
            let edge = edge.into_edge()?;
            texts.extend(edge.text.map(|text| (edge.id, text)));
        }
        let query = format!("SELECT * FROM $ids WHERE {}", sees_both("source", "target"));
        let others = passages.iter().filter(|id| !texts.contains_key(*id));
        let ids: Vec<RecordId> = others.map(|id| record("passage", *id)).collect();
        if ids.is_empty() {
            return Ok(texts);
        }
        let others: Vec<PassageRow> = self.rows_by_id(&query, ids, &parameters).await.map_err(&what)?;
        for other in others {
            texts.insert(key(&other.id)?, other.text);
        }
        Ok(texts)
    }
}

impl PassageRow {
    fn into_passage(self) -> Result<StoredPassage, DomainError> {
        Ok(StoredPassage {
            id: key(&self.id)?,
            source: key(&self.source)?,
            target: key(&self.target)?,
            tlp: tlp(self.tlp_rank)?,
            text: self.text,
        })
    }
}

impl Row {
    fn into_edge(self) -> Result<StoredEdge, DomainError> {
        let text = match &self.raw {
            Some(raw) => object::text(&unpack(raw)?, "description").and_then(passage_of),
            None => match &self.about {
                // A translated name is the whole text.
                Some(text) if self.relationship == "translates" => Some(readable_part(text).to_owned()),
                Some(text) => passage_of(text),
                None => self.proof.as_deref().map(written_in).and_then(passage_of),
            },
        };
        Ok(StoredEdge {
            id: key(&self.id)?,
            source: key(&self.source)?,
            target: key(&self.target)?,
            tlp: tlp(self.tlp_rank)?,
            relationship: self.relationship,
            confidence: self.confidence,
            is_about_node: self.context != Some(true) || self.about.is_some(),
            text,
        })
    }
}
