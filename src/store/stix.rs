//! Writes a STIX bundle: one transaction for its nodes, evidence, edges, supporting objects and audit entry.

mod carriers;
mod definitions;
mod edges;
mod feeds;
pub(super) mod held;
mod known;
pub(super) mod known_definitions;
mod nodes;
pub(super) mod remarking;
pub(super) mod rises;
pub(super) mod rows;
mod support;
pub(super) mod support_rows;
mod targets;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use self::carriers::Carriers;
pub use self::carriers::LeftOutReport;
pub(super) use self::carriers::rise_row;
use self::held::HeldReport;
use self::rows::StixRows;
use super::Store;
use super::connection::error::StoreError;
use super::connection::retry::with_retry;
use super::connection::tx::{CHUNK, WriteTx};
use super::feeds::commit::{ReviewOutcome, StixOrigin};
use super::graph::write::{GraphWrite, GraphWritten, RowIds};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::ids::WorkspaceIds;
use crate::domain::ingest_result::IngestResult;
use crate::domain::stix::ingest::{SkipReport, StixPlan};
use crate::domain::stix::marking::SilentReport;
use crate::domain::tlp::Tlp;

const OLD: &str = "not newer than the stored version";
const NO_END: &str = "an end of the relationship is not in the workspace";

/// What a statement of an ingest wrote, and the position in the plan of its first object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StixPart {
    Nodes(usize),
    Edges(usize),
}

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
    /// Those of the rows written that are not as they were planned: they stand beside others, or have another marking.
    pub unplanned: RowIds,
    /// What became of the items, if the objects were reviewed.
    pub reviewed: ReviewOutcome,
}

impl Store {
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
                    own: plan.nodes.iter().map(|node| ids.node(&node.stix_id)).collect(),
                    known,
                    placed: HashMap::new(),
                    carriers: Carriers::new(),
                    done: Outcome::new(plan),
                };
                let outcome = ingest.run(plan, origin, audit, written).await;
                tx.finish(outcome).await
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
    silent: SilentReport,
    left_out: LeftOutReport,
    unplanned: RowIds,
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
            silent: plan.silent.clone(),
            left_out: LeftOutReport::default(),
            unplanned: RowIds::default(),
            unjoined: HashSet::new(),
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
    /// The nodes and edges of the bundle that may exist already; `None` if any may.
    known: Option<&'a HashSet<Uuid>>,
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
        written: &impl Fn(StixPart, &[Uuid]),
    ) -> Result<StixIngestOutcome, StoreError> {
        // In chunks: the rows of a large bundle would take as much memory again.
        for (chunk, nodes) in plan.nodes.chunks(CHUNK).enumerate() {
            let before = self.graph.rows().nodes.len();
            self.nodes(nodes, plan.default_tlp).await?;
            let (_, new) = self.graph.rows().nodes.split_at(before);
            written(StixPart::Nodes(chunk * CHUNK), new);
        }
        for (chunk, edges) in plan.relationships.chunks(CHUNK).enumerate() {
            let before = self.graph.rows().edges.len();
            self.edges(edges, plan.default_tlp).await?;
            let (_, new) = self.graph.rows().edges.split_at(before);
            written(StixPart::Edges(chunk * CHUNK), new);
        }
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
        let written = self.graph.end().await?;
        let entry = audit(&self.done.result, &self.done.skipped);
        self.tx.audit([&entry]).await?;
        let done = self.done;
        Ok(StixIngestOutcome {
            result: done.result,
            skipped: done.skipped,
            held: done.held,
            silent: done.silent,
            left_out: done.left_out,
            written,
            unplanned: done.unplanned,
            reviewed: done.reviewed,
        })
    }
}

fn stix_type(stix_id: &str) -> &str {
    stix_id.split_once("--").map_or("unknown", |(kind, _)| kind)
}
