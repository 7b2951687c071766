//! Writing a STIX bundle: one transaction for its nodes, evidence, edges, supporting objects and audit entry.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::connect::StoreError;
use super::retry::with_retry;
use super::rows::{AuditRow, EdgeRow, EvidenceRow, NodeRow, SupportRow, corrupt, key, pack, record, tlp};
use super::tx::{WriteTx, breathe};
use super::{Store, failed};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::stix::ingest::{Markings, SkipReport, StixNode, StixPlan, StixRelationship, StixSupport};
use crate::domain::stix::marking;
use crate::domain::stix::properties::carry_over;

const OLD: &str = "not newer than the stored version";
/// Which of some rows of the workspace there are, and how old.
const VERSIONS: &str = "SELECT id, modified FROM $ids WHERE ws = $ws";
const NO_END: &str = "an end of the relationship is not in the workspace";

/// What an ingest changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct IngestResult {
    pub nodes_created: u64,
    pub nodes_updated: u64,
    pub evidence_created: u64,
    pub edges_created: u64,
    pub edges_updated: u64,
}

/// The outcome of a STIX ingest, with the ids of the nodes the index must read again.
#[derive(Debug)]
pub struct StixIngested {
    pub result: IngestResult,
    pub skipped: SkipReport,
    pub touched: Vec<Uuid>,
    pub rev: u64,
}

#[derive(Debug, SurrealValue)]
struct Existing {
    id: RecordId,
    modified: Option<DateTime<Utc>>,
}

#[derive(Debug, SurrealValue)]
struct ExistingNode {
    id: RecordId,
    modified: Option<DateTime<Utc>>,
    evidence: Vec<Uuid>,
    evidence_tlp: Vec<i64>,
    properties: String,
    tlp_rank: i64,
    redistribution: String,
}

#[derive(Debug, SurrealValue)]
struct StatedMarking {
    stix_id: String,
    states: Option<i64>,
}

/// The id of the node that an external id names in a workspace: the same on every ingest.
pub fn node_id(ws: Uuid, external: &str) -> Uuid {
    Uuid::new_v5(&ws, format!("node\0{external}").as_bytes())
}

/// The id of a supporting object in a workspace.
pub(super) fn support_id(ws: Uuid, stix_id: &str) -> Uuid {
    Uuid::new_v5(&ws, format!("support\0{stix_id}").as_bytes())
}

fn evidence_id(ws: Uuid, node: &StixNode) -> Uuid {
    Uuid::new_v5(
        &ws,
        format!("evidence\0{}\0{}", node.stix_id, node.modified).as_bytes(),
    )
}

impl Store {
    /// The markings of the workspace among these ids, with the level each states.
    pub async fn markings(&self, ws: Uuid, stix_ids: &[String]) -> Result<Markings, DomainError> {
        if stix_ids.is_empty() {
            return Ok(Markings::new());
        }
        let what = "reading markings failed";
        let ids: Vec<_> = stix_ids
            .iter()
            .map(|id| record("stix_support", support_id(ws, id)))
            .collect();
        let mut response = self
            .db
            .query("SELECT stix_id, states FROM $ids WHERE ws = $ws")
            .bind(("ids", ids))
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let rows: Vec<StatedMarking> = response.take(0).map_err(failed(what))?;
        rows.into_iter()
            .map(|row| Ok((row.stix_id, row.states.map(tlp).transpose()?)))
            .collect()
    }

    /// Writes what a bundle contains: everything, or, on an error, nothing.
    pub async fn ingest_stix(
        &self,
        ws: Uuid,
        plan: &StixPlan,
        now: DateTime<Utc>,
        audit: impl Fn(&IngestResult, &SkipReport) -> AuditEntry,
    ) -> Result<StixIngested, DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let mut ingest = Ingest {
                tx: &tx,
                ws,
                now,
                rev: self.next_rev(),
                done: Outcome::new(plan),
            };
            let outcome = ingest.run(plan, &audit).await;
            let rev = ingest.rev;
            let Outcome {
                result,
                skipped,
                touched,
            } = ingest.done;
            tx.finish(outcome).await?;
            Ok(StixIngested {
                result,
                skipped,
                touched,
                rev,
            })
        })
        .await
        .map_err(|error: StoreError| error.into_domain("STIX ingest failed"))
    }
}

struct Outcome {
    result: IngestResult,
    skipped: SkipReport,
    touched: Vec<Uuid>,
}

impl Outcome {
    fn new(plan: &StixPlan) -> Self {
        Self {
            result: IngestResult::default(),
            skipped: plan.skipped.clone(),
            touched: Vec::new(),
        }
    }
}

struct Ingest<'a> {
    tx: &'a WriteTx,
    ws: Uuid,
    now: DateTime<Utc>,
    rev: u64,
    done: Outcome,
}

impl Ingest<'_> {
    async fn run(
        &mut self,
        plan: &StixPlan,
        audit: &impl Fn(&IngestResult, &SkipReport) -> AuditEntry,
    ) -> Result<(), StoreError> {
        self.nodes(&plan.nodes).await?;
        self.edges(&plan.relationships).await?;
        self.support(&plan.supporting).await?;
        let entry = audit(&self.done.result, &self.done.skipped);
        self.tx
            .write(
                "INSERT INTO audit $rows RETURN NONE",
                vec![AuditRow::from(&entry)],
            )
            .await
    }

    async fn nodes(&mut self, nodes: &[StixNode]) -> Result<(), StoreError> {
        let ids: Vec<_> = nodes
            .iter()
            .map(|n| record("node", node_id(self.ws, &n.stix_id)))
            .collect();
        let found: Vec<ExistingNode> = self
            .tx
            .find(
                self.ws,
                "SELECT id, modified, evidence, evidence_tlp, properties, tlp_rank, redistribution FROM $ids \
                 WHERE ws = $ws",
                ids,
            )
            .await?;
        let mut stored: HashMap<Uuid, ExistingNode> = HashMap::new();
        for row in found {
            stored.insert(key(&row.id)?, row);
        }
        let (mut created, mut updated, mut evidence) = (Vec::new(), Vec::new(), Vec::new());
        for (place, node) in nodes.iter().enumerate() {
            breathe(place).await;
            let id = node_id(self.ws, &node.stix_id);
            let known = stored.get(&id);
            if known.is_some_and(|row| row.modified.is_some_and(|stored| stored >= node.modified)) {
                self.done.skipped.count(stix_type(&node.stix_id), OLD);
                continue;
            }
            let source = self.evidence_row(node);
            let source_id = key(&source.id)?;
            let mut row = self.node_row(id, node, source_id);
            if let Some(known) = known {
                row.evidence.clone_from(&known.evidence);
                row.evidence_tlp.clone_from(&known.evidence_tlp);
                row.redistribution.clone_from(&known.redistribution);
                // What others added was shown at the old marking, so it must not fall with the new one.
                if row.evidence.len() > 1 && row.tlp_rank >= known.tlp_rank {
                    let old: Map<String, Value> = serde_json::from_str(&known.properties).map_err(corrupt)?;
                    let mut properties = node.properties.clone();
                    carry_over(&old, &mut properties);
                    row.properties = Value::Object(properties).to_string();
                }
            }
            row.link(source_id, node.tlp);
            self.done.touched.push(id);
            evidence.push(source);
            if known.is_some() {
                updated.push(row)
            } else {
                created.push(row)
            }
        }
        self.done.result.nodes_created = created.len() as u64;
        self.done.result.nodes_updated = updated.len() as u64;
        self.done.result.evidence_created = evidence.len() as u64;
        self.tx
            .write("INSERT INTO evidence $rows RETURN NONE", evidence)
            .await?;
        self.tx
            .write("INSERT INTO node $rows RETURN NONE", created)
            .await?;
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
                updated,
            )
            .await
    }

    fn evidence_row(&self, node: &StixNode) -> EvidenceRow {
        EvidenceRow {
            id: record("evidence", evidence_id(self.ws, node)),
            ws: self.ws,
            kind: "stix".into(),
            ext_id: Some(node.stix_id.clone()),
            title: node.name.clone(),
            source: node.source.clone(),
            tlp_rank: i64::from(node.tlp.rank()),
            raw: Some(pack(&node.raw)),
            created_at: self.now,
        }
    }

    fn node_row(&self, id: Uuid, node: &StixNode, source: Uuid) -> NodeRow {
        NodeRow {
            id: record("node", id),
            ws: self.ws,
            node_type: node.node_type.as_str().into(),
            name: node.name.clone(),
            description: node.description.clone(),
            source: node.source.clone(),
            source_type: "stix".into(),
            tlp_rank: i64::from(node.tlp.rank()),
            confidence: node.confidence,
            properties: Value::Object(node.properties.clone()).to_string(),
            status: node.status.as_str().into(),
            evidence: Vec::new(),
            evidence_tlp: Vec::new(),
            stix_evidence: Some(source),
            modified: Some(node.modified),
            redistribution: "allowed".into(),
            rev: i64::try_from(self.rev).unwrap_or(i64::MAX),
            ingested_at: self.now,
        }
    }

    async fn edges(&mut self, edges: &[StixRelationship]) -> Result<(), StoreError> {
        let ends = self.known_ends(edges).await?;
        let ids: Vec<_> = edges.iter().map(|e| record("edge", self.edge_id(e))).collect();
        let stored: HashMap<Uuid, Option<DateTime<Utc>>> =
            by_key(self.tx.find(self.ws, VERSIONS, ids).await?)?;
        let (mut rows, mut replaced) = (Vec::new(), Vec::new());
        for (place, edge) in edges.iter().enumerate() {
            breathe(place).await;
            let id = self.edge_id(edge);
            let known = stored.get(&id);
            if known.is_some_and(|stored| stored.is_some_and(|stored| stored >= edge.modified)) {
                self.done.skipped.count("relationship", OLD);
                continue;
            }
            let (source, target) = (
                node_id(self.ws, &edge.source_ref),
                node_id(self.ws, &edge.target_ref),
            );
            if !(ends.contains(&source) && ends.contains(&target)) {
                self.done
                    .skipped
                    .bad("relationship", &edge.stix_id, NO_END.into());
                continue;
            }
            if known.is_some() {
                replaced.push(record("edge", id));
            }
            rows.push(EdgeRow {
                id: record("edge", id),
                source: record("node", source),
                target: record("node", target),
                ws: self.ws,
                relationship: edge.relationship.clone(),
                tlp_rank: i64::from(edge.tlp.rank()),
                confidence: edge.confidence,
                active: edge.active,
                modified: Some(edge.modified),
                raw: Some(pack(&edge.raw)),
                proof: None,
                evidence: None,
                properties: None,
                created_at: self.now,
            });
        }
        self.done.result.edges_updated = replaced.len() as u64;
        self.done.result.edges_created = (rows.len() - replaced.len()) as u64;
        // A relation's ends can't be changed in place, so a newer version replaces the edge.
        self.tx.write("DELETE $rows RETURN NONE", replaced).await?;
        self.tx
            .write("INSERT RELATION INTO edge $rows RETURN NONE", rows)
            .await
    }

    fn edge_id(&self, edge: &StixRelationship) -> Uuid {
        Uuid::new_v5(&self.ws, format!("edge\0{}", edge.stix_id).as_bytes())
    }

    /// The ends of these relationships that are nodes of the workspace.
    async fn known_ends(&self, edges: &[StixRelationship]) -> Result<HashSet<Uuid>, StoreError> {
        let mut ends = HashSet::new();
        for edge in edges {
            ends.insert(node_id(self.ws, &edge.source_ref));
            ends.insert(node_id(self.ws, &edge.target_ref));
        }
        let ids: Vec<_> = ends.into_iter().map(|id| record("node", id)).collect();
        let found: HashMap<Uuid, _> = by_key(self.tx.find(self.ws, VERSIONS, ids).await?)?;
        Ok(found.into_keys().collect())
    }

    async fn support(&mut self, objects: &[StixSupport]) -> Result<(), StoreError> {
        let id_of = |object: &StixSupport| support_id(self.ws, &object.stix_id);
        let ids: Vec<_> = objects.iter().map(|o| record("stix_support", id_of(o))).collect();
        let stored: HashMap<Uuid, Option<DateTime<Utc>>> =
            by_key(self.tx.find(self.ws, VERSIONS, ids).await?)?;
        let mut rows = Vec::new();
        for (place, object) in objects.iter().enumerate() {
            breathe(place).await;
            let id = id_of(object);
            if stored
                .get(&id)
                .is_some_and(|stored| stored.is_some_and(|stored| stored >= object.modified))
            {
                continue;
            }
            let states = marking::level_of(&Value::Object(object.raw.clone()))
                .ok()
                .flatten();
            rows.push(SupportRow {
                id: record("stix_support", id),
                ws: self.ws,
                stix_id: object.stix_id.clone(),
                tlp_rank: i64::from(object.tlp.rank()),
                states: states.map(|level| i64::from(level.rank())),
                modified: object.modified,
                raw: pack(&object.raw),
            });
        }
        self.tx
            .write(
                "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }",
                rows,
            )
            .await
    }
}

fn by_key(rows: Vec<Existing>) -> Result<HashMap<Uuid, Option<DateTime<Utc>>>, StoreError> {
    rows.into_iter()
        .map(|row| Ok((key(&row.id)?, row.modified)))
        .collect()
}

fn stix_type(stix_id: &str) -> &str {
    stix_id.split_once("--").map_or("unknown", |(kind, _)| kind)
}
