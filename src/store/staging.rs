//! Staging batches: reading them, and deciding on their entities.

mod commit;
mod decide;
pub(super) mod erase;
mod list;
pub(super) mod parts;
pub(super) mod rows;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use self::commit::Commit;
use self::decide::Deciding;
pub use self::decide::{Chosen, Decided, EntityFilter, MAX_DECIDED};
use self::rows::{BatchRow, StagedEntityRow};
use super::connection::error::StoreError;
use super::connection::retry::with_retry;
use super::graph::write::GraphWritten;
use super::rows::{key, record};
use super::{Store, failed};
use crate::domain::audit::AuditEntry;
use crate::domain::draft::NodeDraft;
use crate::domain::error::DomainError;
use crate::domain::node::NodeType;
use crate::domain::staging::{CommitResult, StagedEntity, StagedStatus, StagingBatch};
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

    /// Records a decision on entities, with the audit entry that `audit` makes of their ids: on all of them or, if one
    /// breaks a rule, on none. A merge target must be of the entity's type.
    ///
    /// # Errors
    /// `NotFound` for an entity or a batch that is marked above `highest` or not there, `Conflict` for a committed entity,
    /// `Invalid` with the field and the rule.
    pub async fn decide_all(
        &self,
        ws: Uuid,
        chosen: &Chosen,
        decision: Decision,
        (highest, target_type): (Tlp, Option<NodeType>),
        audit: impl Fn(&[Uuid]) -> AuditEntry + Send + Sync,
    ) -> Result<Decided, DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let deciding = Deciding {
                tx: &tx,
                ws,
                decision,
                highest,
                target_type,
            };
            let outcome = deciding.run(chosen, &audit).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("changing the staged entities failed"))
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
