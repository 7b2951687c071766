//! Staging batches: reading them, and deciding on their entities.

mod commit;
pub(super) mod parts;
pub(super) mod rows;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use self::commit::Commit;
use self::rows::{BatchRow, StagedEntityRow};
use super::connection::error::StoreError;
use super::connection::retry::with_retry;
use super::connection::tx::WriteTx;
use super::graph::write::GraphWritten;
use super::rows::{key, parse, record, tlp};
use super::{Store, failed};
use crate::domain::audit::AuditEntry;
use crate::domain::draft::NodeDraft;
use crate::domain::error::DomainError;
use crate::domain::node::NodeType;
use crate::domain::staging::{CommitResult, StagedEntity, StagedStatus, StagingBatch, is_sensitivity};
use crate::domain::tlp::Tlp;

/// A decision about a staged entity.
#[derive(Debug, Clone, Copy)]
pub struct Decision {
    pub status: StagedStatus,
    pub resolved_tlp: Option<Tlp>,
    /// Whether the reviewer takes the proposed marking in spite of a sensitivity warning.
    pub accept_marking: bool,
    pub merge_target: Option<Uuid>,
}

/// Outcome of a commit, with the nodes to reindex.
#[derive(Debug)]
pub struct BatchCommit {
    pub result: CommitResult,
    pub written: GraphWritten,
}

const READ: &str = "reading the staging batch failed";
const COMMITTED: &str = "the entity is already committed and can't be changed";

impl Store {
    /// A batch of the workspace with its entities up to `highest`, in text order. It is as if there were no others.
    pub async fn batch(
        &self,
        ws: Uuid,
        id: Uuid,
        highest: Tlp,
    ) -> Result<Option<(StagingBatch, Vec<StagedEntity>)>, DomainError> {
        let Some(batch) = self.batch_row(ws, id, highest).await? else {
            return Ok(None);
        };
        let rows = self.entity_rows(ws, id, highest).await?;
        // Entities stored before each had its own flag share the batch's.
        let unmarked = batch.counters()?.missing_tlp > 0;
        let entity = |row: StagedEntityRow| {
            let unmarked = row.unmarked.unwrap_or(unmarked);
            row.into_entity()
                .map(|entity| StagedEntity { unmarked, ..entity })
        };
        let entities: Vec<StagedEntity> = rows.into_iter().map(entity).collect::<Result<_, _>>()?;
        Ok(Some((batch.into_batch(highest, &entities)?, entities)))
    }

    async fn batch_row(&self, ws: Uuid, id: Uuid, highest: Tlp) -> Result<Option<BatchRow>, DomainError> {
        let mut response = self
            .db
            .query("SELECT * FROM $batch WHERE ws = $ws AND tlp_rank <= $highest")
            .bind(("batch", record("staging_batch", id)))
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .await
            .map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }

    /// Call only for a batch of the workspace: for another tenant's, the response time would reveal its size.
    async fn entity_rows(
        &self,
        ws: Uuid,
        batch: Uuid,
        highest: Tlp,
    ) -> Result<Vec<StagedEntityRow>, DomainError> {
        let mut response = self
            .db
            .query(
                "SELECT * FROM staged_entity WHERE batch = $id AND ws = $ws \
                 AND (resolved_tlp ?? proposed_tlp) <= $highest ORDER BY ord",
            )
            .bind(("id", batch))
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .await
            .map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }

    /// The entities of a batch as extracted, with their ids; used to look for matching nodes.
    ///
    /// # Errors
    /// [`DomainError::NotFound`] if the workspace has no such batch, or it is marked above `highest`.
    pub async fn staged_drafts(
        &self,
        ws: Uuid,
        batch: Uuid,
        highest: Tlp,
    ) -> Result<Vec<(Uuid, NodeDraft)>, DomainError> {
        if self.batch_row(ws, batch, highest).await?.is_none() {
            return Err(DomainError::NotFound("batch"));
        }
        let rows = self.entity_rows(ws, batch, highest).await?;
        rows.iter()
            .map(|row| Ok((key(&row.id)?, row.draft(Vec::new())?)))
            .collect()
    }

    /// Records a decision, with its audit entry, unless the entity is already committed or marked above `highest`. A
    /// merge target must be of the entity's type.
    pub async fn decide(
        &self,
        ws: Uuid,
        id: Uuid,
        decision: Decision,
        (highest, target_type): (Tlp, Option<NodeType>),
        audit: &AuditEntry,
    ) -> Result<StagedEntity, DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = decide(&tx, ws, id, decision, (highest, target_type), audit).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("changing the staged entity failed"))
    }

    /// Commits what was accepted or merged, discards what was rejected and keeps the rest, in one transaction with
    /// the audit entry. What is marked above `highest` waits for a caller who may see it. `known` maps entities to the
    /// nodes they were found to be when `after` was the last write.
    pub async fn commit_batch(
        &self,
        ws: Uuid,
        id: Uuid,
        known: &HashMap<Uuid, Uuid>,
        (highest, after): (Tlp, u64),
        now: DateTime<Utc>,
        audit: impl Fn(&CommitResult) -> AuditEntry + Send + Sync,
    ) -> Result<BatchCommit, DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let commit = Commit {
                tx: &tx,
                ws,
                batch: id,
                known,
                highest,
                now,
                after,
            };
            let outcome = commit.run(&audit).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("batch commit failed"))
    }
}

async fn decide(
    tx: &WriteTx,
    ws: Uuid,
    id: Uuid,
    decision: Decision,
    (highest, target_type): (Tlp, Option<NodeType>),
    audit: &AuditEntry,
) -> Result<StagedEntity, StoreError> {
    let found: Vec<StagedEntityRow> = tx
        .find(
            ws,
            &format!(
                "SELECT * FROM $ids WHERE ws = $ws AND (resolved_tlp ?? proposed_tlp) <= {}",
                highest.rank()
            ),
            vec![record("staged_entity", id)],
        )
        .await?;
    let mut row = found
        .into_iter()
        .next()
        .ok_or(DomainError::NotFound("staging record"))?;
    if target_type.is_some_and(|kind| !is_same_type(kind, &row.node_type)) {
        let rule = format!("must be a node of type {}", row.node_type);
        return Err(DomainError::invalid("merge_target_id", rule).into());
    }
    if row.node.is_some() {
        return Err(DomainError::Conflict(COMMITTED.into()).into());
    }
    check_marking(&row, &decision)?;
    row.status = decision.status.as_str().into();
    if let Some(level) = decision.resolved_tlp {
        row.resolved_tlp = Some(i64::from(level.rank()));
    }
    if decision.status == StagedStatus::Merged {
        row.merge_target = decision.merge_target.or(row.merge_target);
        if row.merge_target.is_none() {
            return Err(DomainError::invalid("merge_target_id", "is required with status merged").into());
        }
    } else {
        row.merge_target = None;
    }
    tx.write(
        "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
        vec![row.clone()],
    )
    .await?;
    tx.audit([audit]).await?;
    Ok(row.into_entity()?)
}

/// Rule: what has a sensitivity warning becomes a node, or evidence of one, only once somebody has decided on its
/// marking.
fn check_marking(row: &StagedEntityRow, decision: &Decision) -> Result<(), DomainError> {
    let is_taken = |status: StagedStatus| matches!(status, StagedStatus::Accepted | StagedStatus::Merged);
    let was_taken = parse(&row.status).is_ok_and(is_taken);
    let is_marked = decision.resolved_tlp.is_some() || row.resolved_tlp.is_some();
    if !is_taken(decision.status) || was_taken || is_marked || decision.accept_marking {
        return Ok(());
    }
    let Some(warning) = row.warnings.iter().find(|warning| is_sensitivity(warning)) else {
        return Ok(());
    };
    let rule = format!(
        "must be true, or resolved_tlp must be given, to take {:?} as {}, because it carries the warning \"{warning}\"",
        row.name,
        tlp(row.proposed_tlp)?
    );
    Err(DomainError::invalid("accept_marking", rule))
}

/// Whether a node of this type can be an entity of that type: a CVE is a vulnerability under another name.
fn is_same_type(kind: NodeType, entity: &str) -> bool {
    let both = [kind.as_str(), entity];
    kind.as_str() == entity || both.iter().all(|name| ["cve", "vulnerability"].contains(name))
}
