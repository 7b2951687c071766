//! Nodes of other sources that STIX objects turn out to be.
//!
//! Rule: such an object's versions stand in the row of that node, which keeps its id, evidence and edges. What was said
//! before stays: in the node where the object is marked no lower, and else in a record with its own marking.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::super::rows::{EvidenceRow, NodeRow, PassageRow, corrupt, key, pack_text, parse, record, tlp};
use super::Ingest;
use super::known::ExistingNode;
use super::nodes::NodeWrites;
use crate::domain::draft::{JsonText, NodeDraft};
use crate::domain::error::DomainError;
use crate::domain::graph::record::evidence_of_rejected;
use crate::domain::passage::passages_of;
use crate::domain::stix::ingest::StixNode;
use crate::domain::stix::properties::take_over;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;

impl Ingest<'_> {
    /// The row in which the versions of an object usually stand: the one whose id follows from the object's, or that of
    /// the node which the object turned out to be.
    pub(super) fn first_id(&self, stix_id: &str) -> Uuid {
        let usual = self.ids.node(stix_id);
        self.joins.get(&usual).copied().unwrap_or(usual)
    }

    /// Writes an object's version into the row of a node that another source made.
    pub(super) async fn join_node(
        &mut self,
        node: &StixNode,
        known: &ExistingNode,
        default_tlp: Tlp,
        writes: &mut NodeWrites<'_>,
    ) -> Result<(), StoreError> {
        let correction = known.correction()?;
        let level = correction.map_or(node.tlp, |correction| correction.level(node.tlp));
        let query = "SELECT * FROM $ids WHERE ws = $ws";
        let found: Vec<NodeRow> = self.tx.find(self.ws, query, vec![known.id.clone()]).await?;
        let mut old = found.into_iter().next().ok_or(DomainError::NotFound("node"))?;
        old.lift_correction()?;
        let (mut row, source) = self.version(node, known.key()?, level, default_tlp, writes)?;
        row.evidence.clone_from(&old.evidence);
        row.evidence_tlp.clone_from(&old.evidence_tlp);
        row.context = old.context;
        let before = tlp(old.tlp_rank)?;
        if before <= level {
            row.ingested_at = old.ingested_at;
            row.confidence = row.confidence.max(old.confidence);
            if row.description.is_empty() {
                row.description.clone_from(&old.description);
            }
            let said: Map<String, Value> = serde_json::from_str(&old.properties).map_err(corrupt)?;
            let mut properties: Map<String, Value> =
                serde_json::from_str(&row.properties).map_err(corrupt)?;
            let of = |row: &NodeRow| (row.name.clone(), row.source.clone());
            take_over(&said, (&of(&old), &of(&row)), &mut properties);
            row.properties = Value::Object(properties).to_string();
        } else {
            let record = self.record_of(&old, before)?;
            row.link(key(&record.id)?, before);
            self.done.result.evidence_created += 1;
            writes.evidence.push(record);
        }
        self.keep_text(&old, &row).await?;
        row.link(source, level);
        writes.updated.push(row);
        Ok(())
    }

    /// A record of what a node said.
    fn record_of(&self, old: &NodeRow, level: Tlp) -> Result<EvidenceRow, StoreError> {
        let draft = NodeDraft {
            identity: key(&old.id)?.to_string(),
            node_type: parse(&old.node_type)?,
            name: old.name.clone(),
            description: old.description.clone(),
            source: old.source.clone(),
            source_type: "node",
            tlp: level,
            confidence: old.confidence,
            properties: JsonText::from_text(old.properties.clone()),
            evidence: Vec::new(),
            merge_by_name: false,
        };
        let said = evidence_of_rejected(&draft, &[]).ok_or_else(|| corrupt("a node without words"))?;
        Ok(EvidenceRow {
            id: record("evidence", self.ids.evidence(&said.identity)),
            ws: self.ws,
            kind: old.source_type.clone(),
            ext_id: None,
            title: said.title,
            source: said.source,
            tlp_rank: old.tlp_rank,
            raw: Some(pack_text(said.raw.text().as_bytes())),
            node: None,
            rejected: None,
            created_at: self.rows.now,
        })
    }

    /// Keeps the description that the object's replaces as texts about the node.
    async fn keep_text(&mut self, old: &NodeRow, row: &NodeRow) -> Result<(), StoreError> {
        if old.description == row.description {
            return Ok(());
        }
        let node = key(&old.id)?;
        let passage = |(place, text): (usize, String)| {
            let name = match place {
                0 => format!("{node}\0before its object"),
                _ => format!("{node}\0before its object\0{place}"),
            };
            PassageRow {
                id: record("passage", self.ids.passage(&name)),
                source: old.id.clone(),
                target: old.id.clone(),
                ws: self.ws,
                tlp_rank: old.tlp_rank.max(row.tlp_rank),
                text,
                created_at: self.rows.now,
            }
        };
        let texts = passages_of(&old.description).into_iter().enumerate();
        let passages: Vec<PassageRow> = texts.map(passage).collect();
        if passages.is_empty() {
            return Ok(());
        }
        self.graph.insert_passages(passages).await
    }
}
