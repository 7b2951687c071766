//! Removing one part of an erasure, in one transaction.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::plan::{Plan, RankedRows};
use super::{ErasureJob, ErasurePart, ErasureRow};
use crate::domain::audit::AuditEntry;
use crate::domain::erasure::RemovedCounts;
use crate::domain::error::DomainError;
use crate::domain::graph::later_than;
use crate::domain::tlp::Tlp;
use crate::store::Store;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::WriteTx;
use crate::store::feeds::erase::erase_items;
use crate::store::feeds::hand_ins::write_objects;
use crate::store::graph::write::{GraphWrite, GraphWritten};
use crate::store::identity::collections::write_nodes;
use crate::store::rows::{NodeRow, corrupt, key, record};

/// What one part has removed.
#[derive(Debug)]
pub struct ErasedPart {
    pub written: GraphWritten,
    pub entry: AuditEntry,
    nodes: HashSet<Uuid>,
}

#[derive(Debug, Clone, SurrealValue)]
struct CountsRow {
    id: RecordId,
    removed: String,
}

impl Store {
    /// Removes a part of an erasure, planned when `after` was the number of the last write; `None` if it is removed already.
    /// `entry` is the audit entry without counts.
    ///
    /// # Errors
    /// [`DomainError::Overtaken`] when another process has written meanwhile.
    pub async fn erase_part(
        &self,
        job: &ErasureJob,
        part: &ErasurePart,
        (after, now): (u64, DateTime<Utc>),
        entry: &AuditEntry,
    ) -> Result<Option<ErasedPart>, DomainError> {
        let erased = with_retry(|| async {
            let plan = self.plan_erasure(job.ws, part, job.highest).await?;
            let tx = self.begin().await?;
            let outcome = erase(&tx, (job, part), plan, (after, now), entry).await;
            tx.finish(outcome).await
        });
        let erased = erased.await;
        let erased = erased.map_err(|error: StoreError| error.into_domain("erasing failed"))?;
        if let Some(erased) = &erased {
            self.forget_in_unsaved(job.ws, &erased.nodes);
        }
        Ok(erased)
    }

    /// Sessions that wait in memory lose the ids of these nodes.
    fn forget_in_unsaved(&self, ws: Uuid, nodes: &HashSet<Uuid>) {
        let mut unsaved = self.unsaved.lock();
        for (_, record) in unsaved.iter_mut().filter(|(of, _)| *of == ws) {
            record.session.node_ids.retain(|id| !nodes.contains(id));
        }
    }
}

async fn erase(
    tx: &WriteTx,
    (job, part): (&ErasureJob, &ErasurePart),
    plan: Plan,
    (after, now): (u64, DateTime<Utc>),
    entry: &AuditEntry,
) -> Result<Option<ErasedPart>, StoreError> {
    let ws = job.ws;
    let left: Vec<RecordId> = tx
        .find(ws, "SELECT VALUE id FROM $ids", vec![part.id.clone()])
        .await?;
    if left.is_empty() {
        return Ok(None);
    }
    let mut removed = counts(&plan, job.highest);
    let mut graph = GraphWrite::begin(tx, ws, after);
    let touched = without_evidence(tx, ws, &plan, (graph.rev(), now)).await?;
    let ids = |rows: RankedRows| -> Vec<RecordId> { rows.into_iter().map(|(id, _)| id).collect() };
    graph.erase_links(ids(plan.edges)).await?;
    graph.erase_links(ids(plan.passages)).await?;
    let nodes = plan.nodes.iter().map(|(id, _)| key(id));
    let nodes = nodes.collect::<Result<_, _>>()?;
    graph.erase_nodes(plan.nodes).await?;
    graph.rewrite_nodes(touched, &HashMap::new()).await?;
    for gone in [
        ids(plan.evidence),
        plan.merges,
        plan.changes.removed,
        vec![part.id.clone()],
    ] {
        tx.write("DELETE $rows RETURN NONE", gone).await?;
    }
    tx.write("DELETE $rows RETURN NONE", plan.last_dates).await?;
    for rewritten in [plan.changes.rewritten, plan.additions] {
        tx.write(
            "FOR $row IN $rows { UPDATE $row.id SET entries = $row.entries RETURN NONE }",
            rewritten,
        )
        .await?;
    }
    tx.write(
        "FOR $row IN $rows { UPDATE $row.id SET node_ids = $row.node_ids RETURN NONE }",
        plan.sessions,
    )
    .await?;
    write_nodes(tx, plan.collections).await?;
    write_objects(tx, plan.hand_ins).await?;
    plan.staging.write(tx).await?;
    plan.stix.write(tx).await?;
    removed.feed_items = erase_items(tx, ws, (plan.items, job.highest), now).await?;
    add_counts(tx, job, &removed).await?;
    let entry = entry
        .clone()
        .with("nodes", removed.nodes)
        .with("relationships", removed.relationships)
        .with("evidence", removed.evidence);
    let written = graph.end(&entry).await?;
    tx.audit([&entry]).await?;
    Ok(Some(ErasedPart {
        written,
        entry,
        nodes,
    }))
}

/// The nodes that stay, without what they list of the erased records and what those set by hand.
async fn without_evidence(
    tx: &WriteTx,
    ws: Uuid,
    plan: &Plan,
    (rev, now): (i64, DateTime<Utc>),
) -> Result<Vec<NodeRow>, StoreError> {
    let gone = &plan.evidence_ids;
    let query = "SELECT * FROM $ids WHERE ws = $ws";
    let mut rows: Vec<NodeRow> = tx.find(ws, query, plan.touched.clone()).await?;
    for row in &mut rows {
        let listed = row.evidence.iter().copied().zip(row.evidence_tlp.iter().copied());
        let (evidence, ranks) = listed.filter(|(id, _)| !gone.contains(id)).unzip();
        (row.evidence, row.evidence_tlp) = (evidence, ranks);
        let rejected = row.rejected.take().unwrap_or_default();
        let rejected: Vec<Uuid> = rejected.into_iter().filter(|id| !gone.contains(id)).collect();
        row.rejected = (!rejected.is_empty()).then_some(rejected);
        if let Some(mut correction) = row.correction()? {
            let mut fields = row.correctable()?;
            correction.forget(&mut fields, gone);
            row.set_correctable(fields)?;
            row.set_correction(&correction);
        }
        let left = row.changed_at.or(row.modified).max(Some(row.ingested_at));
        row.changed_at = Some(later_than(left, now));
        row.rev = rev;
    }
    Ok(rows)
}

/// What a plan removes, as far as the administrator may see it.
fn counts(plan: &Plan, highest: Tlp) -> RemovedCounts {
    let highest = i64::from(highest.rank());
    let seen = |rows: &RankedRows| rows.iter().filter(|(_, rank)| *rank <= highest).count() as u64;
    RemovedCounts {
        nodes: seen(&plan.nodes),
        relationships: seen(&plan.edges),
        passages: seen(&plan.passages),
        evidence: seen(&plan.evidence),
        supporting_objects: plan.stix.supports,
        waiting_relationships: plan.stix.waiting,
        staging_batches: plan.staging.batches,
        feed_items: 0,
        merges: plan.merges_seen,
        sessions: plan
            .sessions
            .iter()
            .filter(|session| session.max_tlp <= highest)
            .count() as u64,
        changes: plan.changes.count,
        ..RemovedCounts::default()
    }
}

/// Adds to the counts of the receipt.
pub(super) async fn add_counts(
    tx: &WriteTx,
    job: &ErasureJob,
    more: &RemovedCounts,
) -> Result<(), StoreError> {
    let id = record("erasure", job.erasure.id);
    let query = "SELECT * FROM $ids WHERE ws = $ws";
    let found: Vec<ErasureRow> = tx.find(job.ws, query, vec![id.clone()]).await?;
    let row = found.into_iter().next().ok_or(DomainError::NotFound("erasure"))?;
    let mut removed: RemovedCounts = serde_json::from_str(&row.removed).map_err(corrupt)?;
    removed.add(more);
    let removed = serde_json::to_string(&removed).map_err(corrupt)?;
    let query = "FOR $row IN $rows { UPDATE $row.id SET removed = $row.removed RETURN NONE }";
    tx.write(query, vec![CountsRow { id, removed }]).await
}
