//! Reading evidence records.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::nodes::statuses;
use crate::domain::detail::{EvidenceHead, EvidenceRecord};
use crate::domain::error::DomainError;
use crate::domain::node::NodeStatus;
use crate::domain::tlp::Tlp;
use crate::store::rows::{EvidenceRow, corrupt, key, record, tlp, unpack};
use crate::store::{Store, failed};

#[derive(Debug, SurrealValue)]
struct EvidenceHeadRow {
    id: RecordId,
    kind: String,
    title: String,
    source: String,
    tlp_rank: i64,
    rejected: Option<bool>,
    created_at: DateTime<Utc>,
}

const READ: &str = "reading evidence failed";

impl Store {
    /// Those of these evidence records of the workspace that are marked no higher than `highest`, newest first; rejected
    /// ones only if asked for.
    pub async fn evidence_heads(
        &self,
        ws: Uuid,
        ids: &[Uuid],
        highest: Tlp,
        include_rejected: bool,
    ) -> Result<Vec<EvidenceHead>, DomainError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = ids.iter().map(|id| record("evidence", *id)).collect();
        let mut response = self
            .db
            .query(
                "SELECT id, kind, title, source, tlp_rank, rejected, created_at FROM $ids \
                 WHERE ws = $ws AND tlp_rank <= $highest AND (rejected != true OR $include_rejected) \
                 ORDER BY created_at DESC, id",
            )
            .bind(("ids", ids))
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .bind(("include_rejected", include_rejected))
            .await
            .map_err(failed(READ))?;
        let rows: Vec<EvidenceHeadRow> = response.take(0).map_err(failed(READ))?;
        rows.into_iter().map(EvidenceHeadRow::into_head).collect()
    }

    /// The records of these nodes that were rejected by hand, whatever their marking.
    pub async fn rejected_evidence(&self, ws: Uuid, nodes: &[Uuid]) -> Result<Vec<Uuid>, DomainError> {
        let query = "SELECT VALUE rejected FROM $ids WHERE ws = $ws AND rejected != NONE";
        let ids: Vec<_> = nodes.iter().map(|id| record("node", *id)).collect();
        let statement = self.db.query(query).bind(("ids", ids)).bind(("ws", ws));
        let mut response = statement.await.map_err(failed(READ))?;
        let rejected: Vec<Vec<Uuid>> = response.take(0).map_err(failed(READ))?;
        Ok(rejected.into_iter().flatten().collect())
    }

    /// The evidence record with this id, if it belongs to the workspace and is marked no higher than `highest`. The
    /// record of a STIX object takes the status of its node.
    pub async fn evidence(
        &self,
        ws: Uuid,
        id: Uuid,
        highest: Tlp,
        include_rejected: bool,
    ) -> Result<Option<EvidenceRecord>, DomainError> {
        let mut response = self
            .db
            .query(
                "SELECT * FROM $id WHERE ws = $ws AND tlp_rank <= $highest \
                 AND (rejected != true OR $include_rejected)",
            )
            .bind(("id", record("evidence", id)))
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .bind(("include_rejected", include_rejected))
            .await
            .map_err(failed(READ))?;
        let found: Option<EvidenceRow> = response.take(0).map_err(failed(READ))?;
        let Some(row) = found else {
            return Ok(None);
        };
        if let ("stix", Some(stix_id)) = (row.kind.as_str(), &row.ext_id)
            && !self
                .has_status(
                    ws,
                    row.node.unwrap_or(self.ids_of(ws).node(stix_id)),
                    include_rejected,
                )
                .await?
        {
            return Ok(None);
        }
        let raw = row
            .raw
            .as_ref()
            .ok_or_else(|| corrupt("evidence without its original"))?;
        let original = unpack(raw)?;
        Ok(Some(EvidenceRecord::new(row.into_head()?, original)))
    }

    /// Whether a node of the workspace, whatever its marking, has one of the visible statuses.
    async fn has_status(&self, ws: Uuid, node: Uuid, include_rejected: bool) -> Result<bool, DomainError> {
        let mut response = self
            .db
            .query("SELECT VALUE id FROM $node WHERE ws = $ws AND status IN $statuses")
            .bind(("node", record("node", node)))
            .bind(("ws", ws))
            .bind(("statuses", statuses(include_rejected)))
            .await
            .map_err(failed(READ))?;
        let found: Vec<RecordId> = response.take(0).map_err(failed(READ))?;
        Ok(!found.is_empty())
    }
}

fn status_of(rejected: Option<bool>) -> Option<NodeStatus> {
    (rejected == Some(true)).then_some(NodeStatus::Rejected)
}

impl EvidenceHeadRow {
    fn into_head(self) -> Result<EvidenceHead, DomainError> {
        Ok(EvidenceHead {
            id: key(&self.id)?,
            kind: self.kind,
            title: self.title,
            source: self.source,
            tlp: tlp(self.tlp_rank)?,
            status: status_of(self.rejected),
            created_at: self.created_at,
        })
    }
}

impl EvidenceRow {
    fn into_head(self) -> Result<EvidenceHead, DomainError> {
        Ok(EvidenceHead {
            id: key(&self.id)?,
            kind: self.kind,
            title: self.title,
            source: self.source,
            tlp: tlp(self.tlp_rank)?,
            status: status_of(self.rejected),
            created_at: self.created_at,
        })
    }
}
