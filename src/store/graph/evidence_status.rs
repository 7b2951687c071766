//! Rejects and restores evidence records by hand.
//!
//! Rule: a rejected record is shown by no node, and what it alone states goes with it; restoring it gives both back, apart
//! from what was set by hand in the meantime.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::corrections::{Corrector, EdgeStatus};
use super::faces::StoredNodeFace;
use super::write::{GraphWrite, GraphWritten};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::graph::correction::StatusCorrection;
use crate::domain::graph::later_than;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{NodeRow, corrupt, key, record};
use crate::store::{Store, failed};

/// What was done with an evidence record.
#[derive(Debug)]
pub struct CorrectedEvidence {
    /// Number of nodes that list it no longer, or again.
    pub nodes: u64,
    /// Number of relationships rejected or restored with it.
    pub edges: u64,
    pub written: GraphWritten,
    pub entry: AuditEntry,
}

/// The rows that have to do with a record.
struct Linked {
    nodes: Vec<RecordId>,
    edges: Vec<RecordId>,
}

#[derive(Debug, SurrealValue)]
struct LinkedEdge {
    id: RecordId,
    active: bool,
    corrected: Option<String>,
    modified: Option<DateTime<Utc>>,
    changed_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

impl Store {
    /// Rejects or restores an evidence record.
    ///
    /// # Errors
    /// [`DomainError::NotFound`] for one that the corrector does not see; [`DomainError::Conflict`] for the original of a
    /// node, which stands and falls with the node.
    pub async fn correct_evidence(
        &self,
        by: &Corrector<'_>,
        evidence: Uuid,
        active: bool,
    ) -> Result<CorrectedEvidence, DomainError> {
        let seen = self
            .evidence(by.ws, evidence, by.highest, by.include_rejected)
            .await?;
        if seen.is_none() {
            return Err(DomainError::NotFound("evidence record"));
        }
        let linked = &self.linked_to(by.ws, evidence).await?;
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = correct_evidence(&tx, by, (evidence, active), linked).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("correcting an evidence record failed"))
    }

    /// The nodes that list a record, and the edges that it states. There is no index of these, as records are rarely
    /// rejected.
    async fn linked_to(&self, ws: Uuid, evidence: Uuid) -> Result<Linked, DomainError> {
        let what = "looking for what an evidence record states failed";
        let query = "SELECT VALUE id FROM node WHERE ws = $ws AND evidence CONTAINS $evidence; \
                     SELECT VALUE id FROM edge WHERE ws = $ws AND evidence = $evidence";
        let statement = self.db.query(query).bind(("ws", ws)).bind(("evidence", evidence));
        let mut response = statement.await.map_err(failed(what))?;
        Ok(Linked {
            nodes: response.take(0).map_err(failed(what))?,
            edges: response.take(1).map_err(failed(what))?,
        })
    }
}

async fn correct_evidence(
    tx: &WriteTx,
    by: &Corrector<'_>,
    (evidence, active): (Uuid, bool),
    linked: &Linked,
) -> Result<CorrectedEvidence, StoreError> {
    let mut graph = GraphWrite::begin(tx, by.ws, by.after);
    let mut nodes: Vec<NodeRow> = tx
        .find(by.ws, "SELECT * FROM $ids WHERE ws = $ws", linked.nodes.clone())
        .await?;
    if let Some(node) = nodes.iter().find(|node| node.stix_evidence == Some(evidence)) {
        let node = key(&node.id)?;
        let what = format!("the record is the original of node {node}: reject or restore the node");
        return Err(DomainError::Conflict(what).into());
    }
    let before = StoredNodeFace::find(tx, by.ws, linked.nodes.clone()).await?;
    for node in &mut nodes {
        let mut rejected = node.rejected.take().unwrap_or_default();
        rejected.retain(|known| *known != evidence);
        if !active {
            rejected.push(evidence);
        }
        node.rejected = (!rejected.is_empty()).then_some(rejected);
        node.rev = graph.rev();
    }
    let edges = edges_of(tx, by, (evidence, active), linked.edges.clone()).await?;
    let entry = by
        .entry
        .clone()
        .on(evidence)
        .with(
            "new",
            serde_json::json!({"status": if active { "active" } else { "rejected" }}),
        )
        .with("nodes", nodes.len())
        .with("relationships", edges.len());
    let (count, edge_count) = (nodes.len() as u64, edges.len() as u64);
    let marked = vec![record("evidence", evidence)];
    let query = match active {
        true => "UPDATE $rows SET rejected = NONE RETURN NONE",
        false => "UPDATE $rows SET rejected = true RETURN NONE",
    };
    tx.write(query, marked).await?;
    graph.rewrite_nodes(nodes, &before).await?;
    graph.set_edge_status(edges).await?;
    let written = graph.end(&entry).await?;
    tx.audit([&entry]).await?;
    Ok(CorrectedEvidence {
        nodes: count,
        edges: edge_count,
        written,
        entry,
    })
}

/// The new status of the edges that the record states: those in force are rejected with it, and those that were rejected with
/// it are restored.
async fn edges_of(
    tx: &WriteTx,
    by: &Corrector<'_>,
    (evidence, active): (Uuid, bool),
    ids: Vec<RecordId>,
) -> Result<Vec<EdgeStatus>, StoreError> {
    let query = "SELECT id, active, corrected, modified, changed_at, created_at FROM $ids WHERE ws = $ws";
    let stored: Vec<LinkedEdge> = tx.find(by.ws, query, ids).await?;
    let mut edges = Vec::new();
    for edge in stored {
        let earlier = edge.corrected.as_deref().map(serde_json::from_str);
        let earlier: Option<StatusCorrection> = earlier.transpose().map_err(corrupt)?;
        let is_ours = earlier
            .as_ref()
            .is_some_and(|earlier| earlier.evidence == Some(evidence));
        let corrected = match active {
            false if edge.active => Some(StatusCorrection {
                active: false,
                stated: true,
                by: by.entry.user_id,
                at: by.now,
                reason: by.reason.map(str::to_owned),
                evidence: Some(evidence),
            }),
            true if is_ours => None,
            _ => continue,
        };
        let left = edge.changed_at.or(edge.modified).max(Some(edge.created_at));
        edges.push(EdgeStatus {
            id: edge.id,
            active: corrected.is_none(),
            corrected: corrected.and_then(|corrected| serde_json::to_string(&corrected).ok()),
            changed_at: later_than(left, by.now),
        });
    }
    Ok(edges)
}
