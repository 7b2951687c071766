//! Erasures: what was asked for, and its parts.
//!
//! A request writes its row and names what it removes in parts. Each part is removed in one transaction, which removes the
//! part's row and adds to the counts, so that a start goes on where a process died. The last step is `done`, once index and
//! files are rewritten.

mod part;
mod plan;
mod rows;
mod sweep;
mod targets;
mod texts;

use chrono::{DateTime, Utc};
use surrealdb::types::{Array, RecordId, SurrealValue};
use uuid::Uuid;

pub use self::part::ErasedPart;
pub use self::texts::ErasedSubjects;
use crate::domain::audit::AuditEntry;
use crate::domain::erasure::{Erasure, ErasureKind, ErasureStatus, digest_of};
use crate::domain::error::DomainError;
use crate::domain::permission::Permission;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{corrupt, key, parse, record, tlp, up_to_limit};
use crate::store::{Store, failed};

/// Most nodes, and most evidence records, of one part.
const PART: usize = 100;
const READ: &str = "reading an erasure failed";

/// What is to be erased.
#[derive(Debug, Clone)]
pub struct NewErasure {
    pub what: ErasureKind,
    pub nodes: Vec<Uuid>,
    pub evidence: Vec<Uuid>,
    pub edges: Vec<Uuid>,
    /// The feed, the user or the workspace that goes, too.
    pub owner: Option<Uuid>,
    /// The highest marking that the administrator may see.
    pub highest: Tlp,
}

/// An erasure with what its work needs.
#[derive(Debug, Clone)]
pub struct ErasureJob {
    /// The workspace that asked for it.
    pub ws: Uuid,
    pub erasure: Erasure,
    pub highest: Tlp,
    /// The feed, the user or the workspace that goes, too.
    pub owner: Option<Uuid>,
}

/// What one part of an erasure names.
#[derive(Debug, Clone)]
pub struct ErasurePart {
    id: RecordId,
    nodes: Vec<Uuid>,
    evidence: Vec<Uuid>,
    edges: Vec<Uuid>,
}

#[derive(Debug, Clone, SurrealValue)]
struct ErasureRow {
    id: RecordId,
    ws: Uuid,
    of: Option<Uuid>,
    owner: Option<Uuid>,
    what: String,
    asked: i64,
    digest: String,
    highest: i64,
    by: Uuid,
    at: DateTime<Utc>,
    status: String,
    removed: String,
    ended: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, SurrealValue)]
struct PartRow {
    id: RecordId,
    nodes: Vec<Uuid>,
    evidence: Vec<Uuid>,
    edges: Option<Vec<Uuid>>,
}

impl NewErasure {
    /// Its receipt before anything is removed.
    pub fn receipt(&self, by: Uuid, now: DateTime<Utc>) -> Erasure {
        Erasure {
            id: Uuid::now_v7(),
            what: self.what,
            status: ErasureStatus::Running,
            asked: self.ids().count() as u64,
            digest: digest_of(self.ids()),
            requested_by: by,
            requested_at: now,
            finished_at: None,
            removed: Default::default(),
        }
    }

    fn ids(&self) -> impl Iterator<Item = Uuid> {
        let rows = self.nodes.iter().chain(&self.evidence).chain(&self.edges);
        rows.chain(&self.owner).copied()
    }

    fn parts(&self, erasure: Uuid) -> Vec<PartRow> {
        let empty = PartRow {
            id: record("erasure_part", erasure),
            nodes: Vec::new(),
            evidence: Vec::new(),
            edges: None,
        };
        let nodes = self.nodes.chunks(PART).map(|ids| PartRow {
            nodes: ids.to_vec(),
            ..empty.clone()
        });
        let evidence = self.evidence.chunks(PART).map(|ids| PartRow {
            evidence: ids.to_vec(),
            ..empty.clone()
        });
        let edges = self.edges.chunks(PART).map(|ids| PartRow {
            edges: Some(ids.to_vec()),
            ..empty.clone()
        });
        let rows = (0i64..).zip(nodes.chain(evidence).chain(edges));
        let row = |(place, row): (i64, PartRow)| {
            let key = vec![erasure.into_value(), place.into_value()];
            let id = RecordId::new("erasure_part", Array::from(key));
            PartRow { id, ..row }
        };
        rows.map(row).collect()
    }
}

impl ErasureRow {
    fn into_job(self) -> Result<ErasureJob, DomainError> {
        Ok(ErasureJob {
            ws: self.ws,
            highest: tlp(self.highest)?,
            owner: self.owner,
            erasure: Erasure {
                id: key(&self.id)?,
                what: parse(&self.what)?,
                status: parse(&self.status)?,
                asked: u64::try_from(self.asked).unwrap_or(0),
                digest: self.digest,
                requested_by: self.by,
                requested_at: self.at,
                finished_at: self.ended,
                removed: serde_json::from_str(&self.removed).map_err(corrupt)?,
            },
        })
    }
}

/// The enabled administrators of a workspace.
async fn administrators(tx: &WriteTx, ws: Uuid) -> Result<Vec<RecordId>, StoreError> {
    let query = "SELECT VALUE id FROM user WHERE ws = $ws AND role = 'admin' AND disabled = false";
    tx.select(query, &[("ws", ws.into_value())]).await
}

impl Store {
    /// Writes a request with its audit entry.
    ///
    /// # Errors
    /// `Forbidden` when the caller is no administrator any more, `Conflict` when no enabled administrator would be left.
    pub async fn begin_erasure(
        &self,
        ws: Uuid,
        (new, receipt): (&NewErasure, &Erasure),
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        let row = ErasureRow {
            id: record("erasure", receipt.id),
            ws,
            of: new.owner.filter(|_| new.what == ErasureKind::Workspace),
            owner: new.owner,
            what: receipt.what.as_str().into(),
            asked: i64::try_from(receipt.asked).unwrap_or(i64::MAX),
            digest: receipt.digest.clone(),
            highest: i64::from(new.highest.rank()),
            by: receipt.requested_by,
            at: receipt.requested_at,
            status: receipt.status.as_str().into(),
            removed: serde_json::to_string(&receipt.removed).map_err(corrupt)?,
            ended: None,
        };
        let parts = new.parts(receipt.id);
        let closed = new.closing(receipt.requested_at);
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome: Result<(), StoreError> = async {
                // Whoever asked may have lost the role while the request was on its way.
                let by = audit.user_id.map(|user| record("user", user));
                let is_administrator = administrators(&tx, ws)
                    .await?
                    .into_iter()
                    .any(|user| Some(user) == by);
                if !is_administrator {
                    let refused = format!("permission {} required", Permission::Admin);
                    return Err(DomainError::Forbidden(refused).into());
                }
                tx.write("INSERT INTO erasure $rows RETURN NONE", vec![row.clone()])
                    .await?;
                tx.write("INSERT INTO erasure_part $rows RETURN NONE", parts.clone())
                    .await?;
                if let Some((query, rows)) = closed.clone() {
                    tx.write(query, rows).await?;
                }
                if new.what == ErasureKind::User {
                    // Of two administrators who erase each other, one write fails: both change this row.
                    let touch = "UPDATE $rows SET admin_changes = (admin_changes ?? 0) + 1 RETURN NONE";
                    tx.write(touch, vec![record("workspace", ws)]).await?;
                    if administrators(&tx, ws).await?.is_empty() {
                        let rule = "a workspace must keep an administrator who is not disabled";
                        return Err(DomainError::Conflict(rule.into()).into());
                    }
                }
                tx.audit([audit]).await
            }
            .await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("writing an erasure failed"))
    }

    /// An erasure of the workspace; its counts are of what one sees who is cleared up to its own marking.
    pub async fn erasure(&self, ws: Uuid, id: Uuid, highest: Tlp) -> Result<Option<Erasure>, DomainError> {
        let query = "SELECT * FROM $id WHERE ws = $ws AND highest <= $highest";
        let statement = self.db.query(query).bind(("ws", ws));
        let statement = statement.bind(("highest", i64::from(highest.rank())));
        let mut response = statement
            .bind(("id", record("erasure", id)))
            .await
            .map_err(failed(READ))?;
        let found: Option<ErasureRow> = response.take(0).map_err(failed(READ))?;
        found.map(|row| row.into_job().map(|job| job.erasure)).transpose()
    }

    /// The erasures of all workspaces that are not done, oldest first.
    pub async fn running_erasures(&self) -> Result<Vec<ErasureJob>, DomainError> {
        let query = "SELECT * FROM erasure WHERE status = 'running'";
        let mut response = self.db.query(query).await.map_err(failed(READ))?;
        let rows: Vec<ErasureRow> = response.take(0).map_err(failed(READ))?;
        let jobs = rows.into_iter().map(ErasureRow::into_job);
        let mut jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        jobs.sort_by_key(|job| job.erasure.id);
        Ok(jobs)
    }

    /// The workspaces of which an erasure ended after a time, whether all of it is gone, and when the erasure ended.
    pub async fn erasures_since(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Vec<(Uuid, bool, DateTime<Utc>)>, DomainError> {
        let query = "SELECT * FROM erasure WHERE status = 'done' AND ended > $since";
        let statement = self.db.query(query).bind(("since", since));
        let mut response = statement.await.map_err(failed(READ))?;
        let rows: Vec<ErasureRow> = response.take(0).map_err(failed(READ))?;
        Ok(rows
            .into_iter()
            .filter_map(|row| Some((row.of.unwrap_or(row.ws), row.of.is_some(), row.ended?)))
            .collect())
    }

    /// The next part of an erasure; `None` if all are removed.
    pub async fn next_erasure_part(&self, erasure: Uuid) -> Result<Option<ErasurePart>, DomainError> {
        let range = up_to_limit("erasure_part:[$erasure, 0]..[$erasure, $end]");
        let query = format!("SELECT * FROM {range} LIMIT 1");
        let statement = self.db.query(query).bind(("erasure", erasure));
        let mut response = statement.bind(("end", i64::MAX)).await.map_err(failed(READ))?;
        let found: Option<PartRow> = response.take(0).map_err(failed(READ))?;
        Ok(found.map(|row| ErasurePart {
            id: row.id,
            nodes: row.nodes,
            evidence: row.evidence,
            edges: row.edges.unwrap_or_default(),
        }))
    }

    /// Records that nothing of an erasure is left anywhere.
    pub async fn end_erasure(&self, ws: Uuid, id: Uuid, now: DateTime<Utc>) -> Result<(), DomainError> {
        let what = "recording an erasure failed";
        let query =
            "UPDATE $id SET status = 'done', ended = $now WHERE ws = $ws AND status = 'running' RETURN NONE";
        let statement = self.db.query(query).bind(("ws", ws)).bind(("now", now));
        let statement = statement.bind(("id", record("erasure", id)));
        let done = statement.await.and_then(surrealdb::IndexedResults::check);
        done.map(drop).map_err(failed(what))
    }
}
