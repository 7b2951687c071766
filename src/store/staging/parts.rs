//! Stages the findings of a text: in the open batch of its session, or in a new one, unless the same waits already.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::rows::{BatchRow, PartRow, StagedEntityRow, bytes_of};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::ids::WorkspaceIds;
use crate::domain::staging::{
    ExtractedEntity, ExtractedRelation, MAX_ENTITIES, StagedEntity, StagingBatch, Summary, is_sensitivity,
};
use crate::domain::tlp::Tlp;
use crate::store::Store;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{corrupt, key, record};

/// Maximum number of texts per batch; a session that sends more continues in a new batch.
const MAX_PARTS: i64 = 500;
/// Maximum bytes of text per batch, since its commit writes them in one transaction.
const MAX_BYTES: i64 = 16 << 20;
/// Maximum number of extraction warnings a batch keeps.
const MAX_WARNINGS: usize = 100;
/// Batches of the same text that are looked for, the first ones; with more, each has its own.
const SAME_TEXT: u32 = 8;

/// A text with its findings, in the form of a new batch.
#[derive(Debug)]
pub struct NewBatch<'a> {
    pub batch: &'a StagingBatch,
    pub user: Uuid,
    pub text: &'a str,
    pub tlp: Tlp,
    /// Whether the text as a whole has a sensitivity warning.
    pub sensitive: bool,
    pub relations: &'a [ExtractedRelation],
    pub entities: &'a [(StagedEntity, ExtractedEntity)],
}

/// Where a text was staged.
#[derive(Debug, Clone, Copy)]
pub struct StagedText {
    pub batch: Uuid,
    /// Position of the text in the batch, from 0.
    pub part: u64,
    /// Number of entities new to the batch.
    pub added: u64,
}

impl Store {
    /// Stages a text and the audit entry in one transaction: in the open batch of its session that has the same marking
    /// and room, else in the new batch. A text without a session that is sent again waits for one review, unless something else
    /// is known by then of what it names. Texts of different markings never share a batch, so that none hides another one,
    /// and nothing of a hidden text shows in a batch. A batch that is committed for somebody takes no more texts, even if
    /// others see what is left of it. Entities above `highest` do not exist for the caller.
    pub async fn stage(
        &self,
        ws: Uuid,
        new: &NewBatch<'_>,
        highest: Tlp,
        audit: impl Fn(&StagedText) -> AuditEntry,
    ) -> Result<StagedText, DomainError> {
        let ids = self.id_secret().secret_ids_of(ws);
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = async {
                let staged = stage(&tx, (ws, ids), new, highest).await?;
                tx.audit([&audit(&staged)]).await?;
                Ok(staged)
            };
            let outcome = outcome.await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("saving the staging batch failed"))
    }
}

async fn stage(
    tx: &WriteTx,
    (ws, ids): (Uuid, WorkspaceIds),
    new: &NewBatch<'_>,
    highest: Tlp,
) -> Result<StagedText, StoreError> {
    let Some(session) = &new.batch.session_id else {
        return stage_alone(tx, (ws, ids), new, highest).await;
    };
    match tx.open_batch(ws, session, i64::from(new.tlp.rank())).await? {
        Some(batch) if has_room(&batch, new)? => append(tx, batch, new, highest).await,
        Some(_) | None => create(tx, ws, new, new.batch.id).await,
    }
}

/// Stages a text without a session: what is found in the same text of the same source, mode and marking, and waits in an open
/// batch, is not staged again.
async fn stage_alone(
    tx: &WriteTx,
    (ws, ids): (Uuid, WorkspaceIds),
    new: &NewBatch<'_>,
    highest: Tlp,
) -> Result<StagedText, StoreError> {
    let digest = hex::encode(Sha256::digest(new.text.trim()));
    let (source, mode) = (new.batch.source_type.as_str(), new.batch.ingest_mode.as_str());
    for number in 0..SAME_TEXT {
        let id = ids.staging_batch(&format!("{source}\0{mode}\0{}\0{digest}\0{number}", new.tlp));
        let Some(batch) = tx.batch_with_id(ws, id).await? else {
            return create(tx, ws, new, id).await;
        };
        if batch.is_open_for_all() && batch.warnings == new.batch.warnings {
            let staged = tx.entities_of(ws, id).await?;
            if are_same(&batch, &staged, new, highest)? {
                return Ok(StagedText {
                    batch: id,
                    part: 0,
                    added: 0,
                });
            }
        }
    }
    create(tx, ws, new, new.batch.id).await
}

/// Whether these entities are what was found again, with nothing else known of them.
fn are_same(
    batch: &BatchRow,
    staged: &[StagedEntityRow],
    new: &NewBatch<'_>,
    highest: Tlp,
) -> Result<bool, DomainError> {
    if staged.len() != new.entities.len() {
        return Ok(false);
    }
    for (row, (entity, found)) in staged.iter().zip(new.entities) {
        let again = StagedEntityRow::new(batch, (row.ord, 0), entity, found)?;
        if row.marking() > i64::from(highest.rank()) || !row.says_what(&again) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_room(batch: &BatchRow, new: &NewBatch<'_>) -> Result<bool, DomainError> {
    let entities = batch.counters()?.total_parsed + new.entities.len() as u64;
    let bytes = batch.text_bytes.unwrap_or(0) + bytes_of(new);
    Ok(entities <= MAX_ENTITIES as u64 && bytes <= MAX_BYTES && batch.parts.unwrap_or(1) < MAX_PARTS)
}

async fn create(tx: &WriteTx, ws: Uuid, new: &NewBatch<'_>, id: Uuid) -> Result<StagedText, StoreError> {
    let batch = BatchRow {
        id: record("staging_batch", id),
        ..BatchRow::new(ws, new)?
    };
    let rows: Vec<StagedEntityRow> = (0i64..)
        .zip(new.entities)
        .map(|(ord, (entity, found))| StagedEntityRow::new(&batch, (ord, 0), entity, found))
        .collect::<Result<_, _>>()?;
    let added = rows.len() as u64;
    tx.write("INSERT INTO staging_batch $rows RETURN NONE", vec![batch])
        .await?;
    tx.write("INSERT INTO staged_entity $rows RETURN NONE", rows)
        .await?;
    Ok(StagedText {
        batch: id,
        part: 0,
        added,
    })
}

/// Adds a text to a batch; entities named by earlier texts are reused.
async fn append(
    tx: &WriteTx,
    mut batch: BatchRow,
    new: &NewBatch<'_>,
    highest: Tlp,
) -> Result<StagedText, StoreError> {
    let id = key(&batch.id)?;
    let part = batch.parts.unwrap_or(1);
    let mut summary = batch.counters()?;
    let mut staged = tx.entities_of(batch.ws, id).await?;
    staged.retain(|row| row.marking() <= i64::from(highest.rank()));
    // Positions are never reused: an earlier text may refer to a discarded entity.
    let next = i64::try_from(summary.total_parsed).unwrap_or(i64::MAX);
    let mut merge = Merge::new(staged, batch.discarded.iter().flatten(), (part, next));
    let places: Vec<Option<i64>> = new
        .entities
        .iter()
        .map(|(entity, found)| merge.place(&batch, entity, found))
        .collect::<Result<_, _>>()?;
    let row = PartRow::new(&batch, part, new, &places)?;
    summary.add(Summary::of(merge.counted.iter().copied()));
    summary.sensitive_warns += merge.newly_sensitive;
    let staged = StagedText {
        batch: id,
        part: u64::try_from(part).unwrap_or(0),
        added: merge.added.len() as u64,
    };
    batch.summary = serde_json::to_string(&summary).map_err(corrupt)?;
    batch.parts = Some(part + 1);
    batch.text_bytes = Some(batch.text_bytes.unwrap_or(0) + bytes_of(new));
    for warning in &new.batch.warnings {
        if !batch.warnings.contains(warning) && batch.warnings.len() < MAX_WARNINGS {
            batch.warnings.push(warning.clone());
        }
    }
    let update = "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }";
    tx.write(update, vec![batch]).await?;
    tx.write(update, merge.changed_rows()).await?;
    tx.write("INSERT INTO staged_entity $rows RETURN NONE", merge.added)
        .await?;
    tx.write("INSERT INTO staging_part $rows RETURN NONE", vec![row])
        .await?;
    Ok(staged)
}

/// Merges a further text into the entities of its batch.
struct Merge<'a> {
    rows: Vec<StagedEntityRow>,
    changed: HashSet<usize>,
    by_identity: HashMap<String, usize>,
    discarded: HashSet<String>,
    part: i64,
    next: i64,
    added: Vec<StagedEntityRow>,
    counted: Vec<&'a StagedEntity>,
    newly_sensitive: u64,
}

impl<'a> Merge<'a> {
    fn new<'d>(
        rows: Vec<StagedEntityRow>,
        discarded: impl Iterator<Item = &'d String>,
        (part, next): (i64, i64),
    ) -> Self {
        let by_identity = (0..)
            .zip(&rows)
            .map(|(at, row)| (row.identity.clone(), at))
            .collect();
        Self {
            rows,
            changed: HashSet::new(),
            by_identity,
            discarded: discarded.cloned().collect(),
            part,
            next,
            added: Vec::new(),
            counted: Vec::new(),
            newly_sensitive: 0,
        }
    }

    /// The entity's position in the batch; `None` if it was discarded earlier.
    fn place(
        &mut self,
        batch: &BatchRow,
        entity: &'a StagedEntity,
        found: &ExtractedEntity,
    ) -> Result<Option<i64>, DomainError> {
        if let Some(at) = self.by_identity.get(&found.identity).copied() {
            return Ok(self.name_again(at, entity));
        }
        if self.discarded.contains(&found.identity) {
            return Ok(None);
        }
        let row = StagedEntityRow::new(batch, (self.next, self.part), entity, found)?;
        self.next += 1;
        self.added.push(row);
        self.counted.push(entity);
        Ok(self.added.last().map(|row| row.ord))
    }

    fn name_again(&mut self, at: usize, entity: &StagedEntity) -> Option<i64> {
        let row = self.rows.get_mut(at)?;
        let mut parts = row.naming_texts().to_vec();
        if !parts.contains(&self.part) {
            parts.push(self.part);
            row.parts = Some(parts);
            self.changed.insert(at);
        }
        let sensitive = |warnings: &[String]| warnings.iter().any(|warning| is_sensitivity(warning));
        // A reviewer must see the later text's warnings; a committed entity is already decided.
        if row.node.is_none() && entity.is_sensitive() {
            self.newly_sensitive += u64::from(!sensitive(&row.warnings));
            let own = entity.warnings.iter();
            for warning in own.filter(|warning| is_sensitivity(warning)) {
                if !row.warnings.contains(warning) {
                    row.warnings.push(warning.clone());
                }
            }
        }
        Some(row.ord)
    }

    fn changed_rows(&self) -> Vec<StagedEntityRow> {
        let changed = (0..).zip(&self.rows).filter(|(at, _)| self.changed.contains(at));
        changed.map(|(_, row)| row.clone()).collect()
    }
}
