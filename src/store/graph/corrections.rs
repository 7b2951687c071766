//! Sets by hand what analysts say of a node, a relationship or an evidence record.
//!
//! Each correction is one transaction with its evidence, its audit entry and its number, planned in the turn of the workspace.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::faces::StoredNodeFace;
use super::nodes::{StoredNode, statuses};
use super::write::{GraphWrite, GraphWritten, MarkedRow};
use crate::domain::audit::{AuditEntry, salted_digest};
use crate::domain::error::DomainError;
use crate::domain::graph::correction::{
    CorrectableFields, CorrectedField, NodeChanges, NodeCorrection, StatusCorrection,
};
use crate::domain::graph::later_than;
use crate::domain::tlp::Tlp;
use crate::store::Store;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{EvidenceRow, NodeRow, corrupt, key, pack, record, tlp};

/// Who corrects something, and what the corrector may see.
#[derive(Debug, Clone)]
pub struct Corrector<'a> {
    pub ws: Uuid,
    /// The highest marking that the corrector may see.
    pub highest: Tlp,
    pub include_rejected: bool,
    /// Whether the corrector may lower a marking.
    pub may_lower: bool,
    /// The name under which the evidence of the correction stands.
    pub name: &'a str,
    pub reason: Option<&'a str>,
    /// The number of the last write.
    pub after: u64,
    pub now: DateTime<Utc>,
    /// The audit entry, without what was changed.
    pub entry: &'a AuditEntry,
}

/// A node after a correction.
#[derive(Debug)]
pub struct CorrectedNode {
    pub stored: StoredNode,
    pub written: GraphWritten,
    pub entry: AuditEntry,
}

/// A relationship after a correction.
#[derive(Debug, Clone, SurrealValue)]
pub struct CorrectedEdge {
    source: RecordId,
    target: RecordId,
    pub relationship: String,
    pub confidence: f64,
    tlp_rank: i64,
    pub active: bool,
    corrected: Option<String>,
    modified: Option<DateTime<Utc>>,
    changed_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

/// What is written of an edge.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct EdgeStatus {
    pub id: RecordId,
    pub active: bool,
    pub corrected: Option<String>,
    pub changed_at: DateTime<Utc>,
}

impl Store {
    /// Sets fields of a node by hand. `is_current` tells whether the node is the one that the corrector has read.
    ///
    /// # Errors
    /// [`DomainError::NotFound`] for a node that the corrector does not see; [`DomainError::Outdated`] if it is not the one
    /// that was read; [`DomainError::Forbidden`] if only an administrator may make the change.
    pub async fn correct_node(
        &self,
        by: &Corrector<'_>,
        node: Uuid,
        changes: &NodeChanges,
        is_current: impl Fn(&StoredNode) -> bool,
    ) -> Result<CorrectedNode, DomainError> {
        let (evidence, is_current) = (Uuid::now_v7(), &is_current);
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = correct_node(&tx, by, (node, evidence), changes, is_current).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("correcting a node failed"))
    }

    /// Rejects or restores a relationship by hand.
    ///
    /// # Errors
    /// [`DomainError::NotFound`] for one that the corrector does not see, or of which the corrector does not see an end.
    pub async fn correct_edge(
        &self,
        by: &Corrector<'_>,
        edge: Uuid,
        active: bool,
    ) -> Result<(CorrectedEdge, GraphWritten, AuditEntry), DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = correct_edge(&tx, by, edge, active).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("correcting a relationship failed"))
    }
}

async fn correct_node(
    tx: &WriteTx,
    by: &Corrector<'_>,
    (node, evidence): (Uuid, Uuid),
    changes: &NodeChanges,
    is_current: &impl Fn(&StoredNode) -> bool,
) -> Result<CorrectedNode, StoreError> {
    let query = "SELECT * FROM $id WHERE ws = $ws AND tlp_rank <= $highest AND status IN $statuses";
    let of = [
        ("id", record("node", node).into_value()),
        ("ws", by.ws.into_value()),
        ("highest", i64::from(by.highest.rank()).into_value()),
        ("statuses", statuses(by.include_rejected).into_value()),
    ];
    let found: Vec<NodeRow> = tx.select(query, &of).await?;
    let mut row = found.into_iter().next().ok_or(DomainError::NotFound("node"))?;
    if !is_current(&StoredNode::from_row(row.clone(), by.highest)?) {
        return Err(DomainError::Outdated.into());
    }
    let mut graph = GraphWrite::begin(tx, by.ws, by.after);
    let before = StoredNodeFace::of(&row);
    let old = row.correctable()?;
    let mut correction = row.correction()?.unwrap_or_default();
    let mut new = old.clone();
    correction.correct(&mut new, changes, evidence);
    check_marking(by, &row, (old.tlp, new.tlp))?;

    let differences = differences(&old, &new);
    let level = old.tlp.max(new.tlp);
    let salt = Uuid::new_v4();
    let proof = record_of(by, evidence, (&row, level), (changes, &differences), salt);
    correction.evidence.push((evidence, level));
    row.set_correctable(new.clone())?;
    row.set_correction(&correction);
    let left = row.changed_at.or(row.modified).max(Some(row.ingested_at));
    row.changed_at = Some(later_than(left, by.now));
    row.rev = graph.rev();
    if old.tlp != new.tlp
        && let Some(original) = row.stix_evidence
    {
        mark_original(&mut graph, &mut row, original).await?;
    }
    graph.insert_evidence(vec![proof]).await?;
    let entry = entry_of(by, node, (&differences, &correction), (evidence, salt));
    graph
        .rewrite_nodes(vec![row.clone()], &HashMap::from([(node, before)]))
        .await?;
    let written = graph.end(&entry).await?;
    tx.audit([&entry]).await?;
    Ok(CorrectedNode {
        stored: StoredNode::from_row(row, by.highest)?,
        written,
        entry,
    })
}

/// Only an administrator may lower a marking, and says why; never that of an object whose markings are not all defined.
fn check_marking(by: &Corrector<'_>, row: &NodeRow, (old, new): (Tlp, Tlp)) -> Result<(), DomainError> {
    if new >= old {
        return Ok(());
    }
    if !by.may_lower {
        let rule = "only an administrator may lower a marking";
        return Err(DomainError::Forbidden(rule.into()));
    }
    if by.reason.is_none() {
        return Err(DomainError::invalid("reason", "is required to lower a marking"));
    }
    if row.held_by.is_some() {
        let rule = "can't be lowered while one of the object's markings is not defined";
        return Err(DomainError::invalid("tlp", rule));
    }
    Ok(())
}

/// Gives the original of a node the node's marking: an export needs both.
async fn mark_original(
    graph: &mut GraphWrite<'_>,
    row: &mut NodeRow,
    original: Uuid,
) -> Result<(), StoreError> {
    let linked = row.evidence.iter().zip(&mut row.evidence_tlp);
    for (_, rank) in linked.filter(|(id, _)| **id == original) {
        *rank = row.tlp_rank;
    }
    let marked = MarkedRow {
        id: record("evidence", original),
        tlp_rank: row.tlp_rank,
        held_by: None,
    };
    graph.mark(vec![marked], false).await
}

/// The fields that a correction changes, with what they were and what they are.
fn differences(old: &CorrectableFields, new: &CorrectableFields) -> Vec<(CorrectedField, Value, Value)> {
    let all = [
        (CorrectedField::Name, json!(old.name), json!(new.name)),
        (
            CorrectedField::Description,
            json!(old.description),
            json!(new.description),
        ),
        (CorrectedField::Aliases, json!(old.aliases), json!(new.aliases)),
        (
            CorrectedField::Confidence,
            json!(old.confidence),
            json!(new.confidence),
        ),
        (CorrectedField::Tlp, json!(old.tlp), json!(new.tlp)),
        (CorrectedField::Status, json!(old.status), json!(new.status)),
    ];
    let all = all.into_iter();
    all.filter(|(_, before, after)| before != after).collect()
}

/// The evidence of a correction: who, when, why, and what.
fn record_of(
    by: &Corrector<'_>,
    id: Uuid,
    (row, level): (&NodeRow, Tlp),
    (changes, differences): (&NodeChanges, &[(CorrectedField, Value, Value)]),
    salt: Uuid,
) -> EvidenceRow {
    let pairs = differences.iter().map(|(field, before, after)| {
        let pair = json!({"before": before, "after": after});
        (field.as_str().to_owned(), pair)
    });
    let original = json!({
        "text": by.reason.unwrap_or_default(),
        "corrected": pairs.collect::<Map<String, Value>>(),
        "cleared": changes.clear,
        "by": by.name,
        "at": by.now,
        "salt": salt,
    });
    EvidenceRow {
        id: record("evidence", id),
        ws: by.ws,
        kind: "analyst".into(),
        ext_id: None,
        title: row.name.clone(),
        source: by.name.to_owned(),
        tlp_rank: i64::from(level.rank()),
        raw: original.as_object().map(pack),
        node: None,
        rejected: None,
        created_at: by.now,
    }
}

/// The audit entry of a correction. Of texts it has digests with the salt of the evidence: they prove what it says, and once
/// it is erased nobody can find the text by trying.
fn entry_of(
    by: &Corrector<'_>,
    node: Uuid,
    (differences, correction): (&[(CorrectedField, Value, Value)], &NodeCorrection),
    (evidence, salt): (Uuid, Uuid),
) -> AuditEntry {
    let shown = |field: CorrectedField, value: &Value| match field {
        CorrectedField::Confidence | CorrectedField::Tlp | CorrectedField::Status => value.clone(),
        CorrectedField::Name | CorrectedField::Description | CorrectedField::Aliases => {
            salted_digest(salt, &value.to_string()).into()
        }
    };
    let side = |pick: fn(&(CorrectedField, Value, Value)) -> &Value| -> Map<String, Value> {
        let all = differences.iter();
        all.map(|one| (one.0.as_str().to_owned(), shown(one.0, pick(one))))
            .collect()
    };
    let set: Vec<&str> = correction.shown().iter().map(|one| one.field.as_str()).collect();
    by.entry
        .clone()
        .on(node)
        .with("old", side(|one| &one.1))
        .with("new", side(|one| &one.2))
        .with("set", set)
        .with("evidence", evidence.to_string())
}

async fn correct_edge(
    tx: &WriteTx,
    by: &Corrector<'_>,
    edge: Uuid,
    active: bool,
) -> Result<(CorrectedEdge, GraphWritten, AuditEntry), StoreError> {
    let query = "SELECT in AS source, out AS target, relationship, confidence, tlp_rank, active, corrected, modified, \
                 changed_at, created_at FROM $id WHERE ws = $ws AND tlp_rank <= $highest \
                 AND in.tlp_rank <= $highest AND out.tlp_rank <= $highest \
                 AND in.status IN $statuses AND out.status IN $statuses";
    let id = record("edge", edge);
    let of = [
        ("id", id.clone().into_value()),
        ("ws", by.ws.into_value()),
        ("highest", i64::from(by.highest.rank()).into_value()),
        ("statuses", statuses(by.include_rejected).into_value()),
    ];
    let found: Vec<CorrectedEdge> = tx.select(query, &of).await?;
    let mut row = found
        .into_iter()
        .next()
        .ok_or(DomainError::NotFound("relationship"))?;
    let stated = match &row.corrected {
        Some(text) => {
            serde_json::from_str::<StatusCorrection>(text)
                .map_err(corrupt)?
                .stated
        }
        None => row.active,
    };
    let correction = StatusCorrection {
        active,
        stated,
        by: by.entry.user_id,
        at: by.now,
        reason: by.reason.map(str::to_owned),
        evidence: None,
    };
    let left = row.changed_at.or(row.modified).max(Some(row.created_at));
    let status = EdgeStatus {
        id,
        active,
        corrected: serde_json::to_string(&correction).ok(),
        changed_at: later_than(left, by.now),
    };
    let mut graph = GraphWrite::begin(tx, by.ws, by.after);
    graph.set_edge_status(vec![status]).await?;
    let status = |active: bool| if active { "active" } else { "rejected" };
    let entry = by
        .entry
        .clone()
        .on(edge)
        .with("old", json!({"status": status(row.active)}))
        .with("new", json!({"status": status(active)}));
    row.active = active;
    let written = graph.end(&entry).await?;
    tx.audit([&entry]).await?;
    Ok((row, written, entry))
}

impl CorrectedEdge {
    /// The nodes that it leads from and to.
    pub fn ends(&self) -> Result<(Uuid, Uuid), DomainError> {
        Ok((key(&self.source)?, key(&self.target)?))
    }

    /// Its marking.
    pub fn level(&self) -> Result<Tlp, DomainError> {
        tlp(self.tlp_rank)
    }
}
