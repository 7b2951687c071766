//! Writes drafts, which every source other than STIX produces, in one transaction with their audit entry.
//!
//! Invariant: what a writer is told does not depend on rows above its own clearance. A draft may be merged into a
//! hidden node, but it is counted as if that node, its evidence and its edges did not exist.

mod corrections;
mod nodes;
mod passages;
mod texts;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::Store;
use super::connection::error::StoreError;
use super::connection::retry::with_retry;
use super::connection::tx::WriteTx;
use super::graph::write::{GraphWrite, GraphWritten};
use super::rows::{EdgeRow, EvidenceRow, key, pack_text, record};
use crate::domain::audit::AuditEntry;
use crate::domain::draft::{Drafts, EdgeDraft, EvidenceDraft};
use crate::domain::error::DomainError;
use crate::domain::ids::WorkspaceIds;
use crate::domain::ingest_result::{IngestResult, KeptCounts};
use crate::domain::tlp::Tlp;
pub use corrections::{Corrections, EndedAttribute};
use passages::PassageContent;

/// Drafts processed at a time, which bounds the memory a large request needs besides the transaction.
const AT_A_TIME: usize = 1000;
/// Existing rows of the workspace with their markings.
const MARKINGS: &str = "SELECT id, tlp_rank FROM $ids WHERE ws = $ws";

/// Outcome of an ingest of drafts, with the nodes to reindex.
#[derive(Debug)]
pub struct DraftsIngestOutcome {
    pub result: IngestResult,
    pub written: GraphWritten,
    /// The node each draft became or was merged into, in the order of the drafts.
    pub ids: Vec<Uuid>,
}

/// Parameters of a write of drafts.
#[derive(Debug, Clone)]
pub struct DraftsWrite<'a> {
    pub ws: Uuid,
    pub drafts: &'a Drafts,
    /// Existing nodes that drafts are merged into, by position of the draft.
    pub merges: &'a HashMap<usize, Uuid>,
    /// The highest marking the writer may see.
    pub highest: Tlp,
    /// Positions of drafts that only add their evidence to the node they are merged into.
    pub evidence_only: &'a HashSet<usize>,
    /// Attributes that are stated anew.
    pub corrections: &'a Corrections,
    /// The number of the last write when the existing nodes were looked up.
    pub after: u64,
    pub now: DateTime<Utc>,
}

#[derive(Debug, SurrealValue)]
struct MarkedRow {
    id: RecordId,
    tlp_rank: i64,
}

impl Store {
    /// Writes drafts: all of them, or, on an error, none.
    pub async fn ingest_drafts(
        &self,
        write: &DraftsWrite<'_>,
        audit: impl Fn(&IngestResult) -> AuditEntry,
    ) -> Result<DraftsIngestOutcome, DomainError> {
        self.db.budget().allow_drafts(write.drafts)?;
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = write_drafts(&tx, write, &audit).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("ingest failed"))
    }
}

/// Writes drafts inside a transaction that may contain more.
pub(super) async fn write_drafts(
    tx: &WriteTx,
    write: &DraftsWrite<'_>,
    audit: &impl Fn(&IngestResult) -> AuditEntry,
) -> Result<DraftsIngestOutcome, StoreError> {
    let graph = GraphWrite::begin(tx, write.ws, write.after);
    let mut work = DraftsTransaction {
        tx,
        write,
        ids: tx.id_secret.ids_of(write.ws),
        secret_ids: tx.id_secret.secret_ids_of(write.ws),
        graph,
        report: WriteReport::default(),
        created: HashSet::new(),
        kept: Vec::new(),
        said: Vec::new(),
    };
    work.evidence(&write.drafts.evidence, true).await?;
    let ids = work.nodes().await?;
    work.correct(&ids).await?;
    work.edges(&ids).await?;
    work.passages(&ids).await?;
    let result = work.report.result();
    let entry = audit(&result);
    let written = work.graph.end(&entry).await?;
    tx.audit([&entry]).await?;
    Ok(DraftsIngestOutcome { result, written, ids })
}

/// Report to the writer: ids of what is new or changed, as far as the writer may see it.
#[derive(Default)]
struct WriteReport {
    nodes: HashSet<Uuid>,
    updated: HashSet<Uuid>,
    evidence: HashSet<Uuid>,
    edges: HashSet<Uuid>,
}

impl WriteReport {
    fn result(&self) -> IngestResult {
        let count = |ids: &HashSet<Uuid>| ids.len() as u64;
        IngestResult {
            nodes_created: count(&self.nodes),
            nodes_updated: count(&self.updated),
            evidence_created: count(&self.evidence),
            edges_created: count(&self.edges),
            edges_updated: 0,
            kept: KeptCounts::default(),
            held_back: 0,
        }
    }
}

struct DraftsTransaction<'a> {
    tx: &'a WriteTx,
    write: &'a DraftsWrite<'a>,
    ids: WorkspaceIds,
    /// What the ids of new nodes are made with.
    secret_ids: WorkspaceIds,
    graph: GraphWrite<'a>,
    report: WriteReport,
    /// Nodes created by this write.
    created: HashSet<Uuid>,
    /// Texts that their node could not accept, and whether the writer may see that node.
    kept: Vec<(EvidenceDraft, bool)>,
    /// Descriptions that their node did not take.
    said: Vec<PassageContent>,
}

impl DraftsTransaction<'_> {
    /// Whether a row with this marking is hidden from the writer.
    fn hides_rank(&self, tlp_rank: i64) -> bool {
        tlp_rank > i64::from(self.write.highest.rank())
    }

    /// Writes the evidence records that are new; `told` says whether they are reported to the writer.
    async fn evidence(&mut self, drafts: &[EvidenceDraft], told: bool) -> Result<(), StoreError> {
        for chunk in drafts.chunks(AT_A_TIME) {
            let ids: Vec<Uuid> = chunk
                .iter()
                .map(|draft| self.ids.evidence(&draft.identity))
                .collect();
            let mut stored = self.markings("evidence", &ids).await?;
            let mut rows = Vec::new();
            for (draft, id) in chunk.iter().zip(ids) {
                let known = stored.insert(id, i64::from(draft.tlp.rank()));
                if told && known.is_none_or(|rank| self.hides_rank(rank)) {
                    self.report.evidence.insert(id);
                }
                if known.is_none() {
                    rows.push(self.evidence_row(record("evidence", id), draft));
                }
            }
            self.graph.insert_evidence(rows).await?;
        }
        Ok(())
    }

    /// The markings of those rows of a table that exist.
    async fn markings(&self, table: &'static str, ids: &[Uuid]) -> Result<HashMap<Uuid, i64>, StoreError> {
        let ids = ids.iter().map(|id| record(table, *id)).collect();
        let found: Vec<MarkedRow> = self.tx.find(self.write.ws, MARKINGS, ids).await?;
        let found = found.into_iter().map(|row| Ok((key(&row.id)?, row.tlp_rank)));
        Ok(found.collect::<Result<_, DomainError>>()?)
    }

    fn evidence_row(&self, id: RecordId, draft: &EvidenceDraft) -> EvidenceRow {
        EvidenceRow {
            id,
            ws: self.write.ws,
            kind: draft.kind.into(),
            ext_id: draft.ext_id.clone(),
            title: draft.title.clone(),
            source: draft.source.clone(),
            tlp_rank: i64::from(draft.tlp.rank()),
            raw: Some(pack_text(draft.raw.text().as_bytes())),
            node: None,
            rejected: None,
            created_at: self.write.now,
        }
    }

    async fn edges(&mut self, nodes: &[Uuid]) -> Result<(), StoreError> {
        for chunk in self.write.drafts.edges.chunks(AT_A_TIME) {
            let mut rows: HashMap<Uuid, EdgeRow> = HashMap::new();
            for draft in chunk {
                let (Some(source), Some(target)) = (nodes.get(draft.source), nodes.get(draft.target)) else {
                    continue;
                };
                if [draft.source, draft.target].iter().any(|end| self.is_stale(*end)) {
                    continue;
                }
                // A relation between two drafts of the same node carries no information.
                if source == target {
                    continue;
                }
                let row = self.edge_row(draft, *source, *target);
                let id = key(&row.id)?;
                rows.entry(id).or_insert(row);
                // A node reported as new has no earlier edges.
                if [source, target]
                    .iter()
                    .any(|end| self.report.nodes.contains(*end))
                {
                    self.report.edges.insert(id);
                }
            }
            let ids: Vec<Uuid> = rows.keys().copied().collect();
            let stored = self.markings("edge", &ids).await?;
            for id in ids {
                if stored.get(&id).is_none_or(|rank| self.hides_rank(*rank)) {
                    self.report.edges.insert(id);
                }
            }
            rows.retain(|id, _| !stored.contains_key(id));
            self.graph.insert_edges(rows.into_values().collect()).await?;
        }
        Ok(())
    }

    fn edge_row(&self, draft: &EdgeDraft, source: Uuid, target: Uuid) -> EdgeRow {
        // The marking is part of the id: a hidden statement must not swallow an open one.
        let name = format!("{source}\0{}\0{target}\0{}", draft.relationship, draft.tlp);
        let evidence = self.write.drafts.evidence.get(draft.evidence);
        EdgeRow {
            id: record("edge", self.ids.edge(&name)),
            source: record("node", source),
            target: record("node", target),
            ws: self.write.ws,
            relationship: draft.relationship.clone(),
            tlp_rank: i64::from(draft.tlp.rank()),
            confidence: draft.confidence,
            active: true,
            modified: None,
            raw: None,
            proof: Some(draft.proof.clone()),
            evidence: evidence.map(|evidence| self.ids.evidence(&evidence.identity)),
            properties: None,
            held_by: None,
            feeds: None,
            changed_at: None,
            beside: None,
            context: None,
            corrected: None,
            rev: None,
            created_at: self.write.now,
        }
    }
}
