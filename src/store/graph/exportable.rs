//! Rows that leave one by one, with what decides whether they do.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::sessions::EdgeRecord;
use crate::domain::error::DomainError;
use crate::domain::stix::object::modified_of;
use crate::domain::tlp::Tlp;
use crate::store::rows::{EdgeRow, key, record, tlp, unpack};
use crate::store::stix::context::REFERENCE;
use crate::store::{Store, failed};

/// A relationship, whatever its status.
#[derive(Debug)]
pub struct ExportableEdge {
    pub edge: EdgeRecord,
    /// The number of its last write; 0 if that is older than the list of additions.
    pub rev: i64,
    pub is_active: bool,
    /// Whether one of its markings is not defined.
    pub is_held: bool,
    pub feeds: Vec<Uuid>,
}

/// A supporting object.
#[derive(Debug)]
pub struct ExportableSupport {
    pub id: Uuid,
    pub stix_id: String,
    pub tlp: Tlp,
    pub modified: DateTime<Utc>,
    pub is_held: bool,
    pub feeds: Vec<Uuid>,
    pub raw: Map<String, Value>,
}

/// A version of a STIX object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectVersion {
    /// The evidence record with its original.
    pub original: Uuid,
    /// `None` for an object that has no versions.
    pub modified: Option<DateTime<Utc>>,
}

#[derive(Debug, SurrealValue)]
struct SupportRow {
    id: RecordId,
    stix_id: String,
    tlp_rank: i64,
    modified: DateTime<Utc>,
    held_by: Option<Vec<String>>,
    feeds: Option<Vec<Uuid>>,
    raw: Bytes,
}

#[derive(Debug, SurrealValue)]
struct VersionRow {
    id: RecordId,
    raw: Bytes,
}

impl Store {
    /// Those of these relationships that are marked no higher than `highest`.
    pub async fn edges_to_export(
        &self,
        ws: Uuid,
        ids: &[Uuid],
        highest: Tlp,
    ) -> Result<Vec<ExportableEdge>, DomainError> {
        let query = format!("SELECT * FROM $ids WHERE ws = $ws AND tlp_rank <= $highest AND !{REFERENCE}");
        let ids = ids.iter().map(|id| record("edge", *id)).collect();
        let rows: Vec<EdgeRow> = self.leaving_rows(ws, &query, ids, highest).await?;
        let edges = rows.into_iter().map(|row| {
            Ok(ExportableEdge {
                rev: row.rev.unwrap_or(0),
                is_active: row.active,
                is_held: row.held_by.is_some(),
                feeds: row.feeds.clone().unwrap_or_default(),
                edge: EdgeRecord::of(row)?,
            })
        });
        edges.collect()
    }

    /// Those of these supporting objects that are marked no higher than `highest`, by the ids of their rows.
    pub async fn supports_to_export(
        &self,
        ws: Uuid,
        ids: &[Uuid],
        highest: Tlp,
    ) -> Result<Vec<ExportableSupport>, DomainError> {
        let query = "SELECT id, stix_id, tlp_rank, modified, held_by, feeds, raw FROM $ids \
                     WHERE ws = $ws AND tlp_rank <= $highest";
        let ids = ids.iter().map(|id| record("stix_support", *id)).collect();
        let rows: Vec<SupportRow> = self.leaving_rows(ws, query, ids, highest).await?;
        let supports = rows.into_iter().map(|row| {
            Ok(ExportableSupport {
                id: key(&row.id)?,
                stix_id: row.stix_id,
                tlp: tlp(row.tlp_rank)?,
                modified: row.modified,
                is_held: row.held_by.is_some(),
                feeds: row.feeds.unwrap_or_default(),
                raw: unpack(&row.raw)?,
            })
        });
        supports.collect()
    }

    /// Those of these evidence records that hold versions of a STIX object and are marked no higher than `highest`, oldest
    /// first.
    pub async fn object_versions(
        &self,
        ws: Uuid,
        evidence: &[Uuid],
        highest: Tlp,
    ) -> Result<Vec<ObjectVersion>, DomainError> {
        let query = "SELECT id, raw FROM $ids WHERE ws = $ws AND tlp_rank <= $highest AND kind = 'stix' \
                     AND raw != NONE";
        let ids = evidence.iter().map(|id| record("evidence", *id)).collect();
        let rows: Vec<VersionRow> = self.leaving_rows(ws, query, ids, highest).await?;
        let versions = rows.into_iter().map(|row| {
            Ok(ObjectVersion {
                original: key(&row.id)?,
                modified: modified_of(&unpack(&row.raw)?),
            })
        });
        let mut versions = versions.collect::<Result<Vec<_>, DomainError>>()?;
        versions.sort_by_key(|version| version.modified);
        Ok(versions)
    }

    async fn leaving_rows<T: SurrealValue + Send + 'static>(
        &self,
        ws: Uuid,
        query: &str,
        ids: Vec<RecordId>,
        highest: Tlp,
    ) -> Result<Vec<T>, DomainError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let highest = i64::from(highest.rank()).into_value();
        let of = [("ws", ws.into_value()), ("highest", highest)];
        let rows = self.rows_by_id(query, ids, &of).await;
        rows.map_err(failed("reading what is given out failed"))
    }
}
