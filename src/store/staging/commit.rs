//! Commits a staging batch: decided entities become nodes, and the texts that name them become evidence.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use surrealdb::types::RecordId;
use uuid::Uuid;

use super::BatchCommit;
use super::rows::{BatchRow, PartRow, StagedEntityRow};
use crate::domain::audit::AuditEntry;
use crate::domain::draft::{Drafts, EdgeDraft};
use crate::domain::error::DomainError;
use crate::domain::ingest_result::IngestResult;
use crate::domain::staging::{CommitResult, StagedStatus};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::drafts::{Corrections, DraftsIngestOutcome, DraftsWrite, write_drafts};
use crate::store::rows::{key, parse, record};

/// Maximum number of discarded identities a batch remembers.
const MAX_DISCARDED: usize = 5000;

/// One commit, inside its transaction.
pub(super) struct Commit<'a> {
    pub tx: &'a WriteTx,
    pub ws: Uuid,
    pub batch: Uuid,
    /// Existing nodes that entities were found to be, by entity.
    pub known: &'a HashMap<Uuid, Uuid>,
    pub highest: Tlp,
    pub now: DateTime<Utc>,
    /// The number of the last write that the commit was planned after.
    pub after: u64,
}

/// A text of the batch with what its commit needs.
struct BatchText {
    row: PartRow,
    /// The text and each of its sentences take the strictest marking of all entities it names.
    marking: i64,
    /// Whether it may become evidence. A text with a sensitivity warning may only once an entity it added has been
    /// accepted.
    released: bool,
}

#[derive(Default)]
struct DecidedEntities {
    /// Accepted or merged, but not committed yet.
    taken: Vec<StagedEntityRow>,
    /// Committed earlier.
    done: Vec<StagedEntityRow>,
    rejected: Vec<StagedEntityRow>,
    /// Not decided yet.
    remaining: Vec<StagedEntityRow>,
}

/// What a commit writes.
#[derive(Default)]
struct Plan {
    drafts: Drafts,
    /// Existing nodes of drafts, by position.
    merges: HashMap<usize, Uuid>,
    evidence_only: HashSet<usize>,
}

impl Commit<'_> {
    pub(in crate::store) async fn run(
        &self,
        audit: &(impl Fn(&CommitResult) -> AuditEntry + Send + Sync),
    ) -> Result<BatchCommit, StoreError> {
        let batch = self.batch_row().await?;
        // Reread the entities inside the transaction, to see all decisions made so far.
        let rows: Vec<StagedEntityRow> = self.tx.entities_of(self.ws, self.batch).await?;
        let parts = self.parts(&batch, &rows).await?;
        // What is hidden from the caller is neither committed nor counted.
        let highest = i64::from(self.highest.rank());
        let (rows, hidden): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.marking() <= highest);
        let mut decided = sort(rows)?;
        let hidden = hidden.iter().filter(|row| row.node.is_none());
        let waiting = decided.remaining.iter().chain(hidden);
        let waiting = waiting.map(StagedEntityRow::marking).min();
        let merged = |row: &&StagedEntityRow| row.merge_target.is_some();
        let mut result = CommitResult {
            merged: decided.taken.iter().filter(merged).count() as u64,
            discarded: decided.rejected.len() as u64,
            remaining: decided.remaining.len() as u64,
            ..CommitResult::default()
        };
        self.check_targets(&decided.taken).await?;
        let plan = self.plan(&batch, &parts, &decided)?;
        let written = self.write(&plan, &mut result, audit).await?;
        let committed = decided.taken.iter_mut().chain(&mut decided.done);
        let mut changed = Vec::new();
        for (row, id) in committed.zip(&written.ids) {
            if row.node.is_none() || !unlinked_texts(row, &parts).is_empty() {
                row.node = Some(*id);
                row.linked = Some(releasable_texts(row, &parts));
                changed.push(row.clone());
            }
        }
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
                changed,
            )
            .await?;
        self.close(batch, decided.rejected, waiting).await?;
        Ok(BatchCommit {
            result,
            written: written.written,
        })
    }

    async fn batch_row(&self) -> Result<BatchRow, StoreError> {
        let query = format!(
            "SELECT * FROM $ids WHERE ws = $ws AND tlp_rank <= {}",
            self.highest.rank()
        );
        let ids = vec![record("staging_batch", self.batch)];
        let found: Vec<BatchRow> = self.tx.find(self.ws, &query, ids).await?;
        let batch = found.into_iter().next();
        Ok(batch.ok_or(DomainError::NotFound("batch"))?)
    }

    /// The texts of the batch, by position.
    async fn parts(
        &self,
        batch: &BatchRow,
        rows: &[StagedEntityRow],
    ) -> Result<HashMap<i64, BatchText>, StoreError> {
        let mut parts = vec![batch.first_part()?];
        if batch.parts.is_some_and(|parts| parts > 1) {
            parts.extend(self.tx.later_parts(self.ws, self.batch).await?);
        }
        let part = |row: PartRow| {
            let names = |entity: &&StagedEntityRow| entity.naming_texts().contains(&row.ord);
            let markings = rows.iter().filter(names).map(StagedEntityRow::marking);
            let added = |entity: &StagedEntityRow| entity.naming_texts().first() == Some(&row.ord);
            let accepted = rows.iter().any(|entity| added(entity) && is_accepted(entity));
            let part = BatchText {
                marking: markings.max().unwrap_or(0).max(row.tlp_rank),
                released: accepted || !row.sensitive,
                row,
            };
            (part.row.ord, part)
        };
        Ok(parts.into_iter().map(part).collect())
    }

    /// Plans the nodes, evidence and stated relationships among the entities committed now or earlier.
    fn plan(
        &self,
        batch: &BatchRow,
        parts: &HashMap<i64, BatchText>,
        decided: &DecidedEntities,
    ) -> Result<Plan, DomainError> {
        let mut plan = Plan::default();
        let ends: Vec<&StagedEntityRow> = decided.taken.iter().chain(&decided.done).collect();
        let new: BTreeSet<i64> = ends.iter().flat_map(|row| unlinked_texts(row, parts)).collect();
        if new.is_empty() {
            return Ok(plan);
        }
        let mut evidence: HashMap<i64, usize> = HashMap::new();
        for part in new.iter().filter_map(|ord| parts.get(ord)) {
            let position = plan.drafts.evidence.len();
            evidence.insert(part.row.ord, position);
            let session = batch.session_id.as_deref();
            let is_linked = |row: &StagedEntityRow| row.linked_texts().contains(&part.row.ord);
            let was_written = decided.done.iter().any(is_linked);
            plan.drafts
                .evidence
                .push(part.row.evidence(session, part.marking, was_written)?);
            plan.drafts.edges.extend(stated_edges(part, position, &ends)?);
        }
        for (place, row) in ends.iter().enumerate() {
            let node = row.node.or(row.merge_target);
            if let Some(node) = node.or(self.known.get(&key(&row.id)?).copied()) {
                plan.merges.insert(place, node);
            }
            // Entities committed earlier only gain new evidence and serve as ends of relationships.
            if node.is_some() {
                plan.evidence_only.insert(place);
            }
            let naming_texts = row.naming_texts().iter();
            let behind = naming_texts
                .filter_map(|ord| evidence.get(ord).copied())
                .collect();
            plan.drafts.nodes.push(row.draft(behind)?);
        }
        Ok(plan)
    }

    async fn write(
        &self,
        plan: &Plan,
        result: &mut CommitResult,
        audit: &(impl Fn(&CommitResult) -> AuditEntry + Send + Sync),
    ) -> Result<DraftsIngestOutcome, StoreError> {
        let write = DraftsWrite {
            ws: self.ws,
            drafts: &plan.drafts,
            merges: &plan.merges,
            highest: self.highest,
            evidence_only: &plan.evidence_only,
            corrections: &Corrections::default(),
            after: self.after,
            now: self.now,
        };
        let summed = Mutex::new(*result);
        let entry = |counts: &IngestResult| {
            let mut summed = summed.lock();
            summed.nodes_created = counts.nodes_created;
            summed.nodes_updated = counts.nodes_updated;
            summed.evidence_created = counts.evidence_created;
            audit(&summed)
        };
        let written = write_drafts(self.tx, &write, &entry).await?;
        *result = summed.into_inner();
        Ok(written)
    }

    /// A merge target must still be an active node of the workspace that the caller may see.
    async fn check_targets(&self, taken: &[StagedEntityRow]) -> Result<(), StoreError> {
        let targets: Vec<Uuid> = taken.iter().filter_map(|row| row.merge_target).collect();
        let active = self.tx.active_nodes(self.ws, &targets, self.highest).await?;
        match targets.iter().find(|target| !active.contains(target)) {
            None => Ok(()),
            Some(gone) => Err(DomainError::Conflict(format!(
                "merge_target_id {gone} is no active node any more"
            ))
            .into()),
        }
    }

    /// Discards what was rejected, and closes the batch for everybody who sees nothing of it that is left to decide;
    /// `waiting` is the lowest marking among what is left.
    async fn close(
        &self,
        mut batch: BatchRow,
        rejected: Vec<StagedEntityRow>,
        waiting: Option<i64>,
    ) -> Result<(), StoreError> {
        let closes = batch.record_commit(waiting, self.now);
        let grows = batch.session_id.is_some() && !rejected.is_empty();
        let (gone, identities): (Vec<RecordId>, Vec<String>) =
            rejected.into_iter().map(|row| (row.id, row.identity)).unzip();
        self.tx.write("DELETE $rows RETURN NONE", gone).await?;
        if !closes && !grows {
            return Ok(());
        }
        if grows {
            let discarded = batch.discarded.get_or_insert_default();
            discarded.extend(identities);
            discarded.truncate(MAX_DISCARDED);
        }
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
                vec![batch],
            )
            .await
    }
}

fn sort(rows: Vec<StagedEntityRow>) -> Result<DecidedEntities, DomainError> {
    let mut decided = DecidedEntities::default();
    for row in rows {
        if row.node.is_some() {
            decided.done.push(row);
            continue;
        }
        match parse::<StagedStatus>(&row.status)? {
            StagedStatus::Accepted | StagedStatus::Merged => decided.taken.push(row),
            StagedStatus::Rejected => decided.rejected.push(row),
            StagedStatus::Pending | StagedStatus::Uncertain => decided.remaining.push(row),
        }
    }
    Ok(decided)
}

/// Whether a user or the automatic mode accepted the entity.
fn is_accepted(row: &StagedEntityRow) -> bool {
    let accepted = [StagedStatus::Accepted, StagedStatus::Merged];
    row.node.is_some() || accepted.iter().any(|status| row.status == status.as_str())
}

/// The texts that name the entity and may become evidence.
fn releasable_texts(row: &StagedEntityRow, parts: &HashMap<i64, BatchText>) -> Vec<i64> {
    let naming_texts = row.naming_texts().iter().copied();
    naming_texts
        .filter(|ord| parts.get(ord).is_some_and(|part| part.released))
        .collect()
}

/// Those of them that are not yet evidence of its node.
fn unlinked_texts(row: &StagedEntityRow, parts: &HashMap<i64, BatchText>) -> Vec<i64> {
    let mut ords = releasable_texts(row, parts);
    ords.retain(|ord| !row.linked_texts().contains(ord));
    ords
}

/// Relationships that a text states among these entities, except those written earlier.
fn stated_edges(
    part: &BatchText,
    evidence: usize,
    ends: &[&StagedEntityRow],
) -> Result<Vec<EdgeDraft>, DomainError> {
    let places: HashMap<i64, usize> = (0..).zip(ends).map(|(place, row)| (row.ord, place)).collect();
    let end = |ord: &i64| {
        let place = *places.get(ord)?;
        let row = ends.get(place)?;
        Some((place, row.linked_texts().contains(&part.row.ord)))
    };
    let mut edges = Vec::new();
    for (source, target, edge) in part.row.relations(part.marking, evidence)? {
        if let (Some((source, written)), Some((target, written_too))) = (end(&source), end(&target))
            && !(written && written_too)
        {
            edges.push(EdgeDraft {
                source,
                target,
                ..edge
            });
        }
    }
    Ok(edges)
}
