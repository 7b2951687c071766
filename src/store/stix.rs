//! Writes a STIX bundle: one transaction for its nodes, evidence, edges, supporting objects and audit entry.

mod known;

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::RecordId;
use uuid::Uuid;

use self::known::ExistingNode;
use super::connect::StoreError;
use super::feed_commit::{ReviewOutcome, StixOrigin};
use super::retry::with_retry;
use super::rows::{EvidenceRow, HeldRow, NodeRow, corrupt, key, record};
use super::stix_feeds::{UnrestrictedRows, unite_feeds};
use super::stix_held::{HeldReport, STATED, StatedMarking};
use super::stix_rows::{StixRows, support_id};
use super::tx::{CHUNK, WriteTx, yield_regularly};
use super::{Store, failed, size};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::node::node_id;
use crate::domain::stix::ingest::{Markings, SkipReport, StixNode, StixPlan, StixRelationship, StixSupport};
use crate::domain::stix::properties::carry_over;
use crate::domain::tlp::Tlp;

const OLD: &str = "not newer than the stored version";
const NO_END: &str = "an end of the relationship is not in the workspace";

/// What a statement of an ingest wrote, and the position in the plan of its first object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StixPart {
    Nodes(usize),
    Edges(usize),
}

/// Counts of what an ingest changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct IngestResult {
    pub nodes_created: u64,
    pub nodes_updated: u64,
    pub evidence_created: u64,
    pub edges_created: u64,
    pub edges_updated: u64,
    /// Objects withheld from export until one of their markings is defined; for the audit log.
    #[serde(skip)]
    pub held_back: u64,
}

/// Outcome of a STIX ingest, with the ids of what is to be reindexed.
#[derive(Debug)]
pub struct StixIngestOutcome {
    pub result: IngestResult,
    pub skipped: SkipReport,
    pub held: HeldReport,
    pub touched: Vec<Uuid>,
    /// The edges that are new or changed.
    pub edges: Vec<Uuid>,
    /// What became of the items, if the objects were reviewed.
    pub reviewed: ReviewOutcome,
    pub rev: u64,
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
            .query(STATED)
            .bind(("ids", ids))
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let rows: Vec<StatedMarking> = response.take(0).map_err(failed(what))?;
        rows.into_iter().map(StatedMarking::into_known).collect()
    }

    /// Writes the contents of a bundle, which may come from a feed: everything, or, on an error, nothing. `written` is
    /// told what each statement wrote as the transaction proceeds: the ids of the nodes, or of the edges, that are new or
    /// changed. A transaction that lost a race tells them again.
    pub async fn ingest_stix(
        &self,
        ws: Uuid,
        plan: &StixPlan,
        origin: &StixOrigin,
        now: DateTime<Utc>,
        audit: impl Fn(&IngestResult, &SkipReport) -> AuditEntry,
        written: impl Fn(StixPart, &[Uuid]),
    ) -> Result<StixIngestOutcome, DomainError> {
        self.db.budget().allow_plan(plan)?;
        let (audit, written) = (&audit, &written);
        let mut known = origin.known.as_ref();
        with_retry(|| {
            // A row that was not known and exists fails an attempt. The next one looks for every row.
            let known = known.take();
            async move {
                let tx = self.begin().await?;
                let mut ingest = Ingest {
                    tx: &tx,
                    ws,
                    rows: StixRows {
                        ws,
                        now,
                        rev: self.next_rev(),
                        feed: origin.feed,
                    },
                    highest: i64::from(origin.highest.unwrap_or(Tlp::Red).rank()),
                    own: plan.nodes.iter().map(|node| node_id(ws, &node.stix_id)).collect(),
                    known,
                    done: Outcome::new(plan),
                };
                let outcome = ingest.run(plan, origin, audit, written).await;
                let rev = ingest.rows.rev;
                let done = ingest.done;
                tx.finish(outcome).await?;
                Ok(StixIngestOutcome {
                    result: done.result,
                    skipped: done.skipped,
                    held: done.held,
                    touched: done.touched,
                    edges: done.related,
                    reviewed: done.reviewed,
                    rev,
                })
            }
        })
        .await
        .map_err(|error: StoreError| error.into_domain("STIX ingest failed"))
    }
}

struct Outcome {
    result: IngestResult,
    skipped: SkipReport,
    held: HeldReport,
    touched: Vec<Uuid>,
    /// Edges that are new or changed.
    related: Vec<Uuid>,
    /// Relationships without an end.
    unjoined: HashSet<String>,
    reviewed: ReviewOutcome,
}

impl Outcome {
    fn new(plan: &StixPlan) -> Self {
        Self {
            result: IngestResult::default(),
            skipped: plan.skipped.clone(),
            held: HeldReport::default(),
            touched: Vec::new(),
            related: Vec::new(),
            unjoined: HashSet::new(),
            reviewed: ReviewOutcome::default(),
        }
    }
}

struct Ingest<'a> {
    tx: &'a WriteTx,
    ws: Uuid,
    rows: StixRows,
    /// Rank of the highest marking that the sender may see.
    highest: i64,
    /// The nodes of the bundle, which the sender knows.
    own: HashSet<Uuid>,
    /// The nodes and edges of the bundle that may exist already; `None` if any may.
    known: Option<&'a HashSet<Uuid>>,
    done: Outcome,
}

impl Ingest<'_> {
    async fn run(
        &mut self,
        plan: &StixPlan,
        origin: &StixOrigin,
        audit: &impl Fn(&IngestResult, &SkipReport) -> AuditEntry,
        written: &impl Fn(StixPart, &[Uuid]),
    ) -> Result<(), StoreError> {
        // In chunks: the rows of a large bundle would take as much memory again.
        for (chunk, nodes) in plan.nodes.chunks(CHUNK).enumerate() {
            let before = self.done.touched.len();
            self.nodes(nodes, plan.default_tlp).await?;
            written(
                StixPart::Nodes(chunk * CHUNK),
                self.done.touched.split_at(before).1,
            );
        }
        for (chunk, edges) in plan.relationships.chunks(CHUNK).enumerate() {
            let before = self.done.related.len();
            self.edges(edges, plan.default_tlp).await?;
            written(
                StixPart::Edges(chunk * CHUNK),
                self.done.related.split_at(before).1,
            );
        }
        for objects in plan.supporting.chunks(CHUNK) {
            self.support(objects, plan.default_tlp).await?;
        }
        self.tx
            .note_writes(self.ws, self.rows.rev, &self.done.touched, &self.done.related)
            .await?;
        if let Some(review) = &origin.review {
            let done = &mut self.done;
            done.reviewed = review
                .settle(self.tx, self.ws, &done.unjoined, self.rows.now)
                .await?;
        }
        self.done.result.held_back = self.done.held.total;
        let entry = audit(&self.done.result, &self.done.skipped);
        self.tx.audit([&entry]).await
    }

    async fn nodes(&mut self, nodes: &[StixNode], default_tlp: Tlp) -> Result<(), StoreError> {
        let mut stored = self.stored_nodes(nodes).await?;
        let (mut created, mut updated, mut evidence) = (Vec::new(), Vec::new(), Vec::new());
        let (mut held, mut lifted) = (Vec::new(), UnrestrictedRows::default());
        for (place, node) in nodes.iter().enumerate() {
            yield_regularly(place).await;
            let id = node_id(self.ws, &node.stix_id);
            let known = stored.remove(&id);
            if let Some(known) = &known
                && known.modified >= Some(node.modified)
            {
                if known.tlp_rank > self.highest {
                    self.done.result.nodes_created += 1;
                    self.done.result.evidence_created += 1;
                } else {
                    self.done.skipped.count(stix_type(&node.stix_id), OLD);
                }
                // Further evidence may be an older version, or what another source added, so the feed still counts.
                if known.evidence.len() <= 1 {
                    let row = (&known.id, node.modified, size::of_node(node));
                    lifted.note(self.rows.feed, (known.modified, known.feeds.as_ref()), row);
                }
                continue;
            }
            let source = self.rows.evidence(node);
            let source_id = key(&source.id)?;
            let mut row = self.rows.node(id, node, source_id);
            let is_new = known.is_none();
            if known.as_ref().is_none_or(|known| known.tlp_rank > self.highest) {
                self.done.result.nodes_created += 1;
            } else {
                self.done.result.nodes_updated += 1;
            }
            if let Some(known) = known {
                keep_additions(&mut row, known, &node.properties)?;
            }
            row.link(source_id, node.tlp);
            self.hold(
                (&node.stix_id, node.tlp, &node.held_by),
                &source.id,
                default_tlp,
                &mut held,
            )?;
            self.done.touched.push(id);
            evidence.push(source);
            if is_new {
                created.push(row)
            } else {
                updated.push(row)
            }
        }
        lifted.write(self.tx).await?;
        self.write_nodes(evidence, created, updated).await?;
        self.write_held(held).await
    }

    async fn write_nodes(
        &mut self,
        evidence: Vec<EvidenceRow>,
        created: Vec<NodeRow>,
        updated: Vec<NodeRow>,
    ) -> Result<(), StoreError> {
        self.done.result.evidence_created += evidence.len() as u64;
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

    /// Records a withheld object, for the report and for the time when its markings are defined.
    fn hold(
        &mut self,
        (stix_id, tlp, held_by): (&str, Tlp, &[String]),
        row: &RecordId,
        default_tlp: Tlp,
        held: &mut Vec<HeldRow>,
    ) -> Result<(), StoreError> {
        if !held_by.is_empty() {
            self.done.held.note(stix_id, tlp, held_by);
        }
        for marking in held_by {
            held.push(HeldRow::new(self.ws, marking, row, default_tlp)?);
        }
        Ok(())
    }

    async fn write_held(&self, rows: Vec<HeldRow>) -> Result<(), StoreError> {
        self.tx
            .write(
                "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }",
                rows,
            )
            .await
    }

    async fn edges(&mut self, edges: &[StixRelationship], default_tlp: Tlp) -> Result<(), StoreError> {
        let (ends, seen) = self.known_ends(edges).await?;
        let mut stored = self.stored_edges(edges).await?;
        let (mut rows, mut replaced, mut held) = (Vec::new(), Vec::new(), Vec::new());
        let mut lifted = UnrestrictedRows::default();
        for (place, edge) in edges.iter().enumerate() {
            yield_regularly(place).await;
            let id = self.rows.edge_id(edge);
            let known = stored.remove(&id);
            let (source, target) = (
                node_id(self.ws, &edge.source_ref),
                node_id(self.ws, &edge.target_ref),
            );
            let is_joined = ends.contains(&source) && ends.contains(&target);
            let is_old = known
                .as_ref()
                .is_some_and(|known| known.modified >= Some(edge.modified));
            let hidden = known.as_ref().is_some_and(|known| known.tlp_rank > self.highest);
            if !(seen.contains(&source) && seen.contains(&target)) {
                let report = &mut self.done.skipped;
                report.add_invalid("relationship", &edge.stix_id, NO_END.into());
                self.done.unjoined.insert(edge.stix_id.clone());
            } else if is_old && !hidden {
                self.done.skipped.count("relationship", OLD);
            } else if known.is_some() && !hidden {
                self.done.result.edges_updated += 1;
            } else {
                self.done.result.edges_created += 1;
            }
            if let Some(known) = known.as_ref().filter(|_| is_old) {
                let row = (&known.id, edge.modified, size::of_edge(edge));
                lifted.note(self.rows.feed, (known.modified, known.feeds.as_ref()), row);
                continue;
            }
            if !is_joined {
                continue;
            }
            self.done.related.push(id);
            let id = record("edge", id);
            self.hold(
                (&edge.stix_id, edge.tlp, &edge.held_by),
                &id,
                default_tlp,
                &mut held,
            )?;
            let mut row = self.rows.edge(edge, id, source, target);
            if let Some(known) = known {
                row.feeds = unite_feeds(known.feeds, row.feeds);
                replaced.push(known.id);
            }
            rows.push(row);
        }
        lifted.write(self.tx).await?;
        // A relation's ends can't be updated in place, so a newer version replaces the edge.
        self.tx.write("DELETE $rows RETURN NONE", replaced).await?;
        self.tx
            .write("INSERT RELATION INTO edge $rows RETURN NONE", rows)
            .await?;
        self.write_held(held).await
    }

    async fn support(&mut self, objects: &[StixSupport], default_tlp: Tlp) -> Result<(), StoreError> {
        let mut stored = self.stored_support(objects).await?;
        let (mut rows, mut held, mut lifted) = (Vec::new(), Vec::new(), UnrestrictedRows::default());
        for (place, object) in objects.iter().enumerate() {
            yield_regularly(place).await;
            let id = support_id(self.ws, &object.stix_id);
            let known = stored.remove(&id);
            if let Some(known) = &known
                && known.modified >= Some(object.modified)
            {
                let row = (&known.id, object.modified, size::of_support(object));
                lifted.note(self.rows.feed, (known.modified, known.feeds.as_ref()), row);
                continue;
            }
            let id = record("stix_support", id);
            // A definition stored only for its TLP level waits for nothing.
            if object.states.is_none() {
                self.hold(
                    (&object.stix_id, object.tlp, &object.held_by),
                    &id,
                    default_tlp,
                    &mut held,
                )?;
            }
            let mut row = self.rows.support(object, id);
            // The new version is all that the row carries, so one without a feed is free.
            if self.rows.feed.is_some() {
                row.feeds = unite_feeds(known.and_then(|known| known.feeds), row.feeds);
            }
            rows.push(row);
        }
        lifted.write(self.tx).await?;
        self.tx
            .write(
                "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }",
                rows,
            )
            .await?;
        self.write_held(held).await
    }
}

/// Keeps what other sources added to a node when a newer version of its object replaces it.
fn keep_additions(row: &mut NodeRow, known: ExistingNode, own: &str) -> Result<(), StoreError> {
    row.evidence = known.evidence;
    row.evidence_tlp = known.evidence_tlp;
    row.feeds = unite_feeds(known.feeds, row.feeds.take());
    // Additions were visible at the old marking, so they must not be exposed at a lower one.
    if row.evidence.len() > 1 && row.tlp_rank >= known.tlp_rank {
        let old: Map<String, Value> = serde_json::from_str(&known.properties).map_err(corrupt)?;
        let mut properties: Map<String, Value> = serde_json::from_str(own).map_err(corrupt)?;
        carry_over(&old, &mut properties);
        row.properties = Value::Object(properties).to_string();
    }
    Ok(())
}

fn stix_type(stix_id: &str) -> &str {
    stix_id.split_once("--").map_or("unknown", |(kind, _)| kind)
}
