//! Writes a STIX bundle: one transaction for its nodes, evidence, edges, supporting objects and audit entry.

mod carriers;
pub(super) mod context;
mod definitions;
mod edges;
pub(super) mod erase;
mod feeds;
pub(super) mod held;
mod joins;
mod known;
pub(super) mod known_definitions;
mod lookup;
mod nodes;
pub(super) mod remarking;
pub(super) mod rises;
pub(super) mod rows;
mod support;
pub(super) mod support_rows;
mod targets;
pub(super) mod waiting;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::RecordId;
use uuid::Uuid;

use self::carriers::Carriers;
pub use self::carriers::LeftOutReport;
pub(super) use self::carriers::rise_row;
use self::held::HeldReport;
use self::rows::StixRows;
use self::waiting::WaitingCounts;
use super::Store;
use super::connection::error::StoreError;
use super::connection::retry::with_retry;
use super::connection::tx::{CHUNK, WriteTx};
use super::feeds::commit::{ReviewOutcome, StixOrigin};
use super::graph::write::{GraphWrite, GraphWritten};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::ids::WorkspaceIds;
use crate::domain::ingest_result::IngestResult;
use crate::domain::stix::ingest::{SkipReport, StixPlan};
use crate::domain::stix::marking::SilentReport;
use crate::domain::tlp::Tlp;

/// Why a version is skipped that the workspace has, or has a newer one of.
pub const NOT_NEWER: &str = "not newer than the stored version";

/// Outcome of a STIX ingest, with the ids of what is to be reindexed.
#[derive(Debug)]
pub struct StixIngestOutcome {
    pub result: IngestResult,
    pub skipped: SkipReport,
    pub held: HeldReport,
    /// Newer versions that state no marking.
    pub silent: SilentReport,
    pub left_out: LeftOutReport,
    pub written: GraphWritten,
    /// Number of relationships that wait for an end.
    pub waiting: u64,
    /// What became of the items, if the objects were reviewed.
    pub reviewed: ReviewOutcome,
}

impl Store {
    /// Writes the contents of a bundle, which may come from a feed: everything, or, on an error, nothing.
    pub async fn ingest_stix(
        &self,
        ws: Uuid,
        plan: &StixPlan,
        origin: &StixOrigin,
        now: DateTime<Utc>,
        audit: impl Fn(&IngestResult, &SkipReport) -> AuditEntry,
    ) -> Result<StixIngestOutcome, DomainError> {
        self.db.budget().allow_plan(plan)?;
        let audit = &audit;
        let ids = self.ids_of(ws);
        let mut known = origin.known.as_ref();
        with_retry(|| {
            // A row that was not known and exists fails an attempt. The next one looks for every row.
            let known = known.take();
            async move {
                let tx = self.begin().await?;
                let graph = GraphWrite::begin(&tx, ws, origin.after);
                let ingest = Ingest {
                    tx: &tx,
                    ws,
                    ids,
                    rows: StixRows {
                        ws,
                        ids,
                        now,
                        rev: graph.rev(),
                        feed: origin.feed,
                    },
                    graph,
                    highest: origin.highest.unwrap_or(Tlp::Red),
                    own: HashSet::new(),
                    joins: &origin.joins,
                    keeps_waiting: origin.review.is_none(),
                    waiting: None,
                    known,
                    superseded: Vec::new(),
                    placed: HashMap::new(),
                    carriers: Carriers::new(),
                    done: Outcome::new(plan),
                };
                let outcome = ingest.run(plan, origin, audit).await;
                tx.finish(outcome).await
            }
        })
        .await
        .map_err(|error: StoreError| error.into_domain("STIX ingest failed"))
    }
}

#[derive(Default)]
struct Outcome {
    result: IngestResult,
    skipped: SkipReport,
    held: HeldReport,
    silent: SilentReport,
    left_out: LeftOutReport,
    /// Relationships without an end.
    unjoined: HashSet<String>,
    /// How many of them wait for it.
    waiting: u64,
    reviewed: ReviewOutcome,
}

impl Outcome {
    fn new(plan: &StixPlan) -> Self {
        Self {
            result: IngestResult::default(),
            skipped: plan.skipped.clone(),
            held: HeldReport::default(),
            silent: plan.silent.clone(),
            left_out: LeftOutReport::default(),
            unjoined: HashSet::new(),
            waiting: 0,
            reviewed: ReviewOutcome::default(),
        }
    }
}

struct Ingest<'a> {
    tx: &'a WriteTx,
    ws: Uuid,
    ids: WorkspaceIds,
    graph: GraphWrite<'a>,
    rows: StixRows,
    /// The highest marking that the sender may see.
    highest: Tlp,
    /// The nodes of the bundle, which the sender knows.
    own: HashSet<Uuid>,
    /// The rows of objects that turned out to be nodes of other sources, by the id that the object's would have.
    joins: &'a HashMap<Uuid, Uuid>,
    /// Whether relationships wait here for their ends; those that are reviewed wait in their batch.
    keeps_waiting: bool,
    waiting: Option<WaitingCounts>,
    /// The nodes and edges of the bundle that may exist already; `None` if any may.
    known: Option<&'a HashSet<Uuid>>,
    /// The rows of context objects of which this is a newer version.
    superseded: Vec<RecordId>,
    /// The rows of the nodes of the bundle, by the id of the first row of the object.
    placed: HashMap<Uuid, Uuid>,
    carriers: Carriers,
    done: Outcome,
}

impl Ingest<'_> {
    async fn run(
        mut self,
        plan: &StixPlan,
        origin: &StixOrigin,
        audit: &impl Fn(&IngestResult, &SkipReport) -> AuditEntry,
    ) -> Result<StixIngestOutcome, StoreError> {
        self.own = plan
            .nodes
            .iter()
            .map(|node| self.first_id(&node.stix_id))
            .collect();
        // In chunks: the rows of a large bundle would take as much memory again.
        for nodes in plan.nodes.chunks(CHUNK) {
            self.nodes(nodes, plan.default_tlp).await?;
        }
        self.join_waiting(&plan.nodes).await?;
        for edges in plan.relationships.chunks(CHUNK) {
            self.edges(edges, plan.default_tlp).await?;
        }
        self.end_references().await?;
        for objects in plan.supporting.chunks(CHUNK) {
            self.definitions(objects).await?;
            self.support(objects, plan.default_tlp).await?;
        }
        self.write_carriers().await?;
        if let Some(review) = &origin.review {
            let done = &mut self.done;
            done.reviewed = review
                .settle(self.tx, self.ws, &done.unjoined, self.rows.now)
                .await?;
        }
        self.done.result.held_back = self.done.held.total;
        let entry = audit(&self.done.result, &self.done.skipped);
        let written = self.graph.end(&entry).await?;
        self.tx.audit([&entry]).await?;
        let done = self.done;
        Ok(StixIngestOutcome {
            result: done.result,
            skipped: done.skipped,
            held: done.held,
            silent: done.silent,
            left_out: done.left_out,
            written,
            waiting: done.waiting,
            reviewed: done.reviewed,
        })
    }
}

fn stix_type(stix_id: &str) -> &str {
    stix_id.split_once("--").map_or("unknown", |(kind, _)| kind)
}
