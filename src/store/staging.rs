//! Staging batches: what waits for a decision, and the commit of what was decided.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use surrealdb::types::RecordId;
use uuid::Uuid;

use super::connect::StoreError;
use super::drafts::{DraftsIngested, DraftsWrite, write_drafts};
use super::nodes::StoredNode;
use super::retry::with_retry;
use super::rows::{AuditRow, key, parse, record};
use super::staging_rows::{BatchRow, EntityRow};
use super::stix::IngestResult;
use super::tx::WriteTx;
use super::{Store, failed};
use crate::domain::audit::AuditEntry;
use crate::domain::draft::{Drafts, EdgeDraft, NodeDraft};
use crate::domain::error::DomainError;
use crate::domain::node::NodeType;
use crate::domain::staging::{
    CommitResult, ExtractedEntity, ExtractedRelation, StagedEntity, StagedStatus, StagingBatch,
};
use crate::domain::tlp::Tlp;

/// A new batch with everything it keeps.
#[derive(Debug)]
pub struct NewBatch<'a> {
    pub batch: &'a StagingBatch,
    pub user: Uuid,
    pub text: &'a str,
    pub tlp: Tlp,
    pub relations: &'a [ExtractedRelation],
    pub entities: &'a [(StagedEntity, ExtractedEntity)],
}

/// A decision about a staged entity.
#[derive(Debug, Clone, Copy)]
pub struct Decision {
    pub status: StagedStatus,
    pub resolved_tlp: Option<Tlp>,
    pub merge_target: Option<Uuid>,
}

/// What a commit did, with the nodes the index must read again.
#[derive(Debug)]
pub struct Committed {
    pub result: CommitResult,
    pub touched: Vec<StoredNode>,
    pub rev: u64,
}

const READ: &str = "reading the staging batch failed";
const COMMITTED: &str = "the entity is already committed and can't be changed";

impl Store {
    /// Writes a batch with its entities and the audit entry, as one step.
    pub async fn create_batch(
        &self,
        ws: Uuid,
        new: &NewBatch<'_>,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        let batch = BatchRow::new(ws, new)?;
        let rows: Vec<EntityRow> = (0i64..)
            .zip(new.entities)
            .map(|(ord, (entity, found))| EntityRow::new(ws, ord, entity, found))
            .collect::<Result<_, _>>()?;
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = async {
                tx.write("INSERT INTO staging_batch $rows RETURN NONE", vec![batch.clone()])
                    .await?;
                tx.write("INSERT INTO staged_entity $rows RETURN NONE", rows.clone())
                    .await?;
                tx.write("INSERT INTO audit $rows RETURN NONE", vec![AuditRow::from(audit)])
                    .await
            };
            let outcome = outcome.await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("saving the staging batch failed"))
    }

    /// A batch of the workspace with its entities, in the order of the text, and whether there are others; nothing above
    /// `highest`.
    pub async fn batch(
        &self,
        ws: Uuid,
        id: Uuid,
        highest: Tlp,
    ) -> Result<Option<(StagingBatch, Vec<StagedEntity>, bool)>, DomainError> {
        let Some(batch) = self.batch_row(ws, id, highest).await? else {
            return Ok(None);
        };
        let rows = self.entity_rows(ws, id, highest).await?;
        let entities = rows
            .into_iter()
            .map(EntityRow::into_entity)
            .collect::<Result<_, _>>()?;
        let hidden = self.hides_entities(ws, id, highest).await?;
        Ok(Some((batch.into_batch()?, entities, hidden)))
    }

    async fn hides_entities(&self, ws: Uuid, batch: Uuid, highest: Tlp) -> Result<bool, DomainError> {
        let mut response = self
            .db
            .query(
                "SELECT VALUE ord FROM staged_entity WHERE batch = $id AND ws = $ws \
                 AND (resolved_tlp ?? proposed_tlp) > $highest LIMIT 1",
            )
            .bind(("id", batch))
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .await
            .map_err(failed(READ))?;
        let found: Vec<i64> = response.take(0).map_err(failed(READ))?;
        Ok(!found.is_empty())
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

    /// To be asked only for a batch of the workspace: one of another would take its time, and so tell its size.
    async fn entity_rows(&self, ws: Uuid, batch: Uuid, highest: Tlp) -> Result<Vec<EntityRow>, DomainError> {
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

    /// The entities of a batch as the extractor found them, with their ids; for looking up what they are.
    ///
    /// # Errors
    /// [`DomainError::NotFound`] for a batch that the workspace does not have, or not up to `highest`.
    pub async fn staged_drafts(
        &self,
        ws: Uuid,
        batch: Uuid,
        highest: Tlp,
    ) -> Result<Vec<(Uuid, NodeDraft)>, DomainError> {
        if self.batch_row(ws, batch, highest).await?.is_none() {
            return Err(DomainError::NotFound("batch"));
        }
        // Also what was decided to be more restricted than the text is committed with it.
        let rows = self.entity_rows(ws, batch, Tlp::Red).await?;
        rows.iter().map(|row| Ok((key(&row.id)?, row.draft()?))).collect()
    }

    /// Records a decision, with its audit entry, unless the entity is committed already or marked above
    /// `highest`; a merge target must be of the entity's type.
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

    /// Commits what is accepted or merged, discards what is rejected, keeps the rest, all in one transaction
    /// with the audit entry. `known` are nodes that entities turned out to be, by entity.
    pub async fn commit_batch(
        &self,
        ws: Uuid,
        id: Uuid,
        known: &HashMap<Uuid, Uuid>,
        highest: Tlp,
        now: DateTime<Utc>,
        audit: impl Fn(&CommitResult) -> AuditEntry + Send + Sync,
    ) -> Result<Committed, DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let rev = self.next_rev();
            let commit = Commit {
                tx: &tx,
                ws,
                batch: id,
                known,
                highest,
                now,
                rev,
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
    let found: Vec<EntityRow> = tx
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
    if target_type.is_some_and(|kind| !alike(kind, &row.node_type)) {
        let rule = format!("must be a node of type {}", row.node_type);
        return Err(DomainError::invalid("merge_target_id", rule).into());
    }
    if row.node.is_some() {
        return Err(DomainError::Conflict(COMMITTED.into()).into());
    }
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
    tx.write("INSERT INTO audit $rows RETURN NONE", vec![AuditRow::from(audit)])
        .await?;
    Ok(row.into_entity()?)
}

/// Whether a node of this type can be an entity of that type: a CVE is a vulnerability under another name.
fn alike(kind: NodeType, entity: &str) -> bool {
    let both = [kind.as_str(), entity];
    kind.as_str() == entity || both.iter().all(|name| ["cve", "vulnerability"].contains(name))
}

struct Commit<'a> {
    tx: &'a WriteTx,
    ws: Uuid,
    batch: Uuid,
    known: &'a HashMap<Uuid, Uuid>,
    highest: Tlp,
    now: DateTime<Utc>,
    rev: u64,
}

impl Commit<'_> {
    async fn run(
        &self,
        audit: &(impl Fn(&CommitResult) -> AuditEntry + Send + Sync),
    ) -> Result<Committed, StoreError> {
        let batches: Vec<BatchRow> = self
            .tx
            .find(
                self.ws,
                &format!(
                    "SELECT * FROM $ids WHERE ws = $ws AND tlp_rank <= {}",
                    self.highest.rank()
                ),
                vec![record("staging_batch", self.batch)],
            )
            .await?;
        let batch = batches.into_iter().next();
        let mut batch = batch.ok_or(DomainError::NotFound("batch"))?;
        // One more read of the batch's entities, inside the transaction: what was decided up to now.
        let rows: Vec<EntityRow> = self.tx.entities_of(self.ws, self.batch).await?;
        // The text, and each of its sentences, is as restricted as the most restricted thing it names.
        let whole = rows
            .iter()
            .map(|row| row.resolved_tlp.unwrap_or(row.proposed_tlp))
            .max();
        let marked = BatchRow {
            tlp_rank: whole.unwrap_or(0).max(batch.tlp_rank),
            ..batch.clone()
        };
        let (done, open): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.node.is_some());
        let mut decided = Decided::default();
        for row in open {
            match parse::<StagedStatus>(&row.status)? {
                StagedStatus::Accepted | StagedStatus::Merged => decided.taken.push(row),
                StagedStatus::Rejected => decided.rejected.push(row.id),
                StagedStatus::Pending | StagedStatus::Uncertain => decided.remaining += 1,
            }
        }
        let merged = decided
            .taken
            .iter()
            .filter(|row| row.merge_target.is_some())
            .count() as u64;
        let mut result = CommitResult {
            merged,
            discarded: decided.rejected.len() as u64,
            remaining: decided.remaining,
            ..CommitResult::default()
        };
        let written = self
            .write(&marked, &decided.taken, &done, &mut result, audit)
            .await?;
        let mut taken = decided.taken;
        for (row, id) in taken.iter_mut().zip(&written.ids) {
            row.node = Some(*id);
        }
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
                taken,
            )
            .await?;
        self.tx
            .write("DELETE $rows RETURN NONE", decided.rejected)
            .await?;
        if result.remaining == 0 && batch.status != "committed" {
            batch.status = "committed".into();
            batch.committed_at = Some(self.now);
            self.tx
                .write(
                    "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
                    vec![batch],
                )
                .await?;
        }
        Ok(Committed {
            result,
            touched: written.touched,
            rev: self.rev,
        })
    }

    /// Writes the nodes, the evidence and the stated relationships among what is committed now or was before.
    async fn write(
        &self,
        batch: &BatchRow,
        taken: &[EntityRow],
        done: &[EntityRow],
        result: &mut CommitResult,
        audit: &(impl Fn(&CommitResult) -> AuditEntry + Send + Sync),
    ) -> Result<DraftsIngested, StoreError> {
        let mut drafts = Drafts::default();
        let mut merges = HashMap::new();
        let mut places: HashMap<i64, usize> = HashMap::new();
        if !taken.is_empty() {
            drafts.evidence.push(batch.evidence()?);
        }
        for row in taken.iter().chain(done).filter(|_| !taken.is_empty()) {
            let place = drafts.nodes.len();
            let known = row
                .node
                .or(row.merge_target)
                .or_else(|| self.known.get(&key(&row.id).ok()?).copied());
            if let Some(node) = known {
                merges.insert(place, node);
            }
            places.insert(row.ord, place);
            drafts.nodes.push(row.draft()?);
        }
        self.check_targets(taken).await?;
        for relation in batch.relations()? {
            if let (Some(&source), Some(&target)) = (places.get(&relation.0), places.get(&relation.1)) {
                drafts.edges.push(EdgeDraft {
                    source,
                    target,
                    ..relation.2
                });
            }
        }
        // What was committed before is only there as the other end of a relationship.
        let evidence_only = (0..)
            .zip(taken.iter().chain(done))
            .filter(|(_, row)| row.node.is_some() || row.merge_target.is_some())
            .map(|(place, _)| place)
            .collect();
        let write = DraftsWrite {
            ws: self.ws,
            drafts: &drafts,
            merges: &merges,
            redistribution: "allowed",
            highest: self.highest,
            evidence_only: &evidence_only,
            now: self.now,
        };
        let summed = Mutex::new(*result);
        let entry = |counts: &IngestResult| {
            let mut summed = summed.lock().unwrap_or_else(PoisonError::into_inner);
            summed.nodes_created = counts.nodes_created;
            summed.nodes_updated = counts.nodes_updated;
            summed.evidence_created = counts.evidence_created;
            audit(&summed)
        };
        let written = write_drafts(self.tx, &write, self.rev, &entry).await?;
        *result = summed.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(written)
    }

    /// A merge target must still be an active node of the workspace.
    async fn check_targets(&self, taken: &[EntityRow]) -> Result<(), StoreError> {
        let targets: Vec<Uuid> = taken.iter().filter_map(|row| row.merge_target).collect();
        let active = self.tx.active_nodes(self.ws, &targets).await?;
        match targets.iter().find(|target| !active.contains(target)) {
            None => Ok(()),
            Some(gone) => Err(DomainError::Conflict(format!(
                "merge_target_id {gone} is no active node any more"
            ))
            .into()),
        }
    }
}

#[derive(Default)]
struct Decided {
    taken: Vec<EntityRow>,
    rejected: Vec<RecordId>,
    remaining: u64,
}
