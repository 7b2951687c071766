//! The list of staging batches.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::rows::commit_seen_from;
use crate::domain::error::DomainError;
use crate::domain::staging::{StagedCounts, StagingBatchHead, StagingState};
use crate::domain::tlp::Tlp;
use crate::store::rows::{key, parse};
use crate::store::{Page, Store, failed};

const READ: &str = "reading the staging batches failed";
/// Batches looked at in one query.
const CHUNK: u32 = 200;

/// A batch without its texts.
#[derive(Debug, SurrealValue)]
struct HeadRow {
    id: RecordId,
    source_type: String,
    session_id: Option<String>,
    ingest_mode: String,
    tlp_rank: i64,
    created_at: DateTime<Utc>,
    committed_at: Option<DateTime<Utc>>,
    commits_by_level: Option<Vec<DateTime<Utc>>>,
}

/// The number of entities of a batch that have this status, and a node or none.
#[derive(Debug, SurrealValue)]
struct CountRow {
    batch: Uuid,
    status: String,
    is_committed: bool,
    number: i64,
}

impl Store {
    /// The batches of a workspace that exist for a caller cleared up to `highest`, newest first, in one state if that is
    /// given. What their rows tell follows from the entities that the caller sees.
    pub async fn staging_batches(
        &self,
        ws: Uuid,
        state: Option<StagingState>,
        page: Page,
        highest: Tlp,
    ) -> Result<Vec<StagingBatchHead>, DomainError> {
        // The state depends on the entities, so a page in one state is counted here.
        let (mut at, mut skip) = match state {
            None => (page.offset, 0),
            Some(_) => (0, page.offset as usize),
        };
        let limit = page.limit as usize;
        let mut heads = Vec::new();
        loop {
            let most = if state.is_none() { page.limit } else { CHUNK };
            let found = self.heads(ws, (most, at), highest).await?;
            let (more, of) = (found.len() == most as usize, found.len());
            for head in found {
                if state.is_some_and(|state| state != head.status) {
                    continue;
                }
                match skip {
                    0 => heads.push(head),
                    _ => skip -= 1,
                }
            }
            if !more || heads.len() >= limit {
                heads.truncate(limit);
                return Ok(heads);
            }
            at = at.saturating_add(u32::try_from(of).unwrap_or(u32::MAX));
        }
    }

    async fn heads(
        &self,
        ws: Uuid,
        (limit, offset): (u32, u32),
        highest: Tlp,
    ) -> Result<Vec<StagingBatchHead>, DomainError> {
        // The engine reads an index up to a limit only where the limit is written in the query.
        let query = format!(
            "SELECT id, source_type, session_id, ingest_mode, tlp_rank, created_at, committed_at, commits_by_level \
             FROM staging_batch WHERE ws = $ws AND tlp_rank <= $highest \
             ORDER BY created_at DESC, id DESC LIMIT {limit} START {offset}"
        );
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .await
            .map_err(failed(READ))?;
        let rows: Vec<HeadRow> = response.take(0).map_err(failed(READ))?;
        let ids: Vec<Uuid> = rows.iter().map(|row| key(&row.id)).collect::<Result<_, _>>()?;
        let mut counts = self.staged_counts(ws, &ids, highest).await?;
        let heads = rows.into_iter().zip(ids);
        heads
            .map(|(row, id)| row.into_head(highest, counts.remove(&id).unwrap_or_default()))
            .collect()
    }

    /// The entities of these batches that are marked no higher than `highest`, by batch.
    async fn staged_counts(
        &self,
        ws: Uuid,
        batches: &[Uuid],
        highest: Tlp,
    ) -> Result<HashMap<Uuid, StagedCounts>, DomainError> {
        let mut counts: HashMap<Uuid, StagedCounts> = HashMap::new();
        // The engine looks up to 32 values of a list up in an index.
        for some in batches.chunks(32) {
            let mut response = self
                .db
                .query(
                    "SELECT batch, status, node != NONE AS is_committed, count() AS number FROM staged_entity \
                     WHERE batch IN $batches AND ws = $ws AND (resolved_tlp ?? proposed_tlp) <= $highest \
                     GROUP BY batch, status, is_committed",
                )
                .bind(("batches", some.to_vec()))
                .bind(("ws", ws))
                .bind(("highest", i64::from(highest.rank())))
                .await
                .map_err(failed(READ))?;
            let rows: Vec<CountRow> = response.take(0).map_err(failed(READ))?;
            for row in rows {
                let number = u64::try_from(row.number).unwrap_or(0);
                let count = counts.entry(row.batch).or_default();
                match row.is_committed {
                    true => count.committed += number,
                    false => count.add(parse(&row.status)?, number),
                }
            }
        }
        Ok(counts)
    }
}

impl HeadRow {
    fn into_head(self, highest: Tlp, entities: StagedCounts) -> Result<StagingBatchHead, DomainError> {
        let seen = commit_seen_from(
            (self.tlp_rank, highest),
            self.commits_by_level.as_deref(),
            self.committed_at,
        );
        let committed_at = seen.filter(|_| entities.open() == 0);
        Ok(StagingBatchHead {
            id: key(&self.id)?,
            status: committed_at.map_or(StagingState::Open, |_| StagingState::Committed),
            source_type: parse(&self.source_type)?,
            session_id: self.session_id,
            ingest_mode: parse(&self.ingest_mode)?,
            entities,
            created_at: self.created_at,
            committed_at,
        })
    }
}
