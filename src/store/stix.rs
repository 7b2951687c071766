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

/// Nodes and edges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowIds {
    pub nodes: Vec<Uuid>,
    pub edges: Vec<Uuid>,
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
    /// The nodes that are new or changed, with the ids that follow from their objects, as they were planned.
    pub touched: Vec<Uuid>,
    /// The edges of this kind.
    pub edges: Vec<Uuid>,
    /// The other rows that are new or changed: they stand beside others, or have another marking than planned.
    pub unplanned: RowIds,
    /// What became of the items, if the objects were reviewed.
    pub reviewed: ReviewOutcome,
    pub rev: u64,
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
                let mut ingest = Ingest {
                    tx: &tx,
                    ws,
                    ids,
                    rows: StixRows {
                        ws,
                        ids,
                        now,
                        rev: 0,
                        feed: origin.feed,
                    },
                    highest: origin.highest.unwrap_or(Tlp::Red),
                    own: plan.nodes.iter().map(|node| ids.node(&node.stix_id)).collect(),
                    known,
                    placed: HashMap::new(),
                    carriers: Carriers::new(),
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
                    silent: done.silent,
                    left_out: done.left_out,
                    unplanned: done.unplanned,
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
    silent: SilentReport,
    left_out: LeftOutReport,
    unplanned: RowIds,
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
            silent: plan.silent.clone(),
            left_out: LeftOutReport::default(),
            unplanned: RowIds::default(),
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
    ids: WorkspaceIds,
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
        &mut self,
        plan: &StixPlan,
        origin: &StixOrigin,
        audit: &impl Fn(&IngestResult, &SkipReport) -> AuditEntry,
        written: &impl Fn(StixPart, &[Uuid]),
    ) -> Result<(), StoreError> {
        self.rows.rev = self.tx.take_number(self.ws, origin.after).await?;
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
            self.definitions(objects).await?;
            self.support(objects, plan.default_tlp).await?;
        }
        self.write_carriers().await?;
        let RowIds { nodes, edges } = &self.done.unplanned;
        let touched = [self.done.touched.as_slice(), nodes].concat();
        let related = [self.done.related.as_slice(), edges].concat();
        self.tx
            .note_writes(self.ws, self.rows.rev, &touched, &related)
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
}

fn stix_type(stix_id: &str) -> &str {
    stix_id.split_once("--").map_or("unknown", |(kind, _)| kind)
}
