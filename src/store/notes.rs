//! Notes, the entities they mention and the relationships stated in them or by a user, in one transaction.

pub(super) mod history;
mod rows;
pub(super) mod since;
pub(super) mod write;

use chrono::serde::ts_nanoseconds;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use self::rows::NoteRow;
use super::rows::{key, record, up_to_limit};
use super::{Store, failed};
use crate::domain::error::DomainError;
use crate::domain::memory::digest::Digest;
use crate::domain::memory::entity::EntityDraft;
use crate::domain::memory::note::Note;
use crate::domain::memory::tier::Tier;

/// The `source_type` of entity nodes.
pub(super) const ENTITY_SOURCE: &str = "note";

/// A note with its internal fields.
#[derive(Debug, Clone)]
pub struct StoredNote {
    pub note: Note,
    /// The number of its last write.
    pub rev: u64,
}

/// The part of a note that the graph in memory keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteHead {
    pub id: Uuid,
    pub label: String,
    pub domain: String,
    pub tier: Tier,
    pub confidence: f64,
    pub digest: Digest,
    pub mentions: Vec<Uuid>,
    pub superseded_by: Option<Uuid>,
    #[serde(with = "ts_nanoseconds")]
    pub created_at: DateTime<Utc>,
}

/// An entity as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredEntity {
    pub id: Uuid,
    pub draft: EntityDraft,
    #[serde(with = "ts_nanoseconds")]
    pub created_at: DateTime<Utc>,
    /// The entity that stands for it since a merge.
    pub merged_into: Option<Uuid>,
}

/// A relationship between two entities as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredRelation {
    pub id: Uuid,
    pub source: Uuid,
    pub target: Uuid,
    pub relationship: String,
    /// 0 to 1.
    pub confidence: f64,
    /// The sentence that states it.
    pub proof: Option<String>,
    /// The note that states it.
    pub note: Option<Uuid>,
    #[serde(with = "json_text")]
    pub properties: Option<Map<String, Value>>,
    #[serde(with = "ts_nanoseconds")]
    pub created_at: DateTime<Utc>,
}

/// JSON as text: it can't be read from a format that does not name its types.
mod json_text {
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Map, Value};

    type Properties = Option<Map<String, Value>>;

    pub(super) fn serialize<S: Serializer>(properties: &Properties, to: S) -> Result<S::Ok, S::Error> {
        let text = properties.as_ref().map(serde_json::to_string).transpose();
        text.map_err(S::Error::custom)?.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Properties, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let properties = text.map(|text| serde_json::from_str(&text)).transpose();
        properties.map_err(D::Error::custom)
    }
}

impl Store {
    /// The notes of a workspace with these ids, superseded ones included; in no particular order.
    pub async fn notes_by_id(&self, ws: Uuid, ids: &[Uuid]) -> Result<Vec<Note>, DomainError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let what = "reading notes failed";
        let ids: Vec<_> = ids.iter().map(|id| record("note", *id)).collect();
        let rows: Vec<NoteRow> = self
            .rows_by_id(
                "SELECT * FROM $ids WHERE ws = $ws",
                ids,
                &[("ws", ws.into_value())],
            )
            .await
            .map_err(failed(what))?;
        rows.into_iter().map(|row| Ok(row.into_stored()?.note)).collect()
    }

    /// The notes of a workspace with these ids, with their revisions: for indexing.
    pub async fn notes_to_index(&self, ws: Uuid, ids: &[Uuid]) -> Result<Vec<StoredNote>, DomainError> {
        let ids = ids.iter().map(|id| record("note", *id)).collect();
        let rows: Vec<NoteRow> = self
            .rows_by_id(
                "SELECT * FROM $ids WHERE ws = $ws",
                ids,
                &[("ws", ws.into_value())],
            )
            .await
            .map_err(failed("reading notes for the index failed"))?;
        rows.into_iter().map(NoteRow::into_stored).collect()
    }

    /// At most `limit` notes queued for a language model after this one, oldest first: their ids begin with a
    /// timestamp.
    pub async fn waiting_for_enrichment(
        &self,
        ws: Uuid,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Uuid>, DomainError> {
        let what = "reading the enrichment queue failed";
        let start = after.map(|after| format!("u'{after}'>")).unwrap_or_default();
        let queue = up_to_limit(&format!("enrichment:{start}.."));
        let query = format!("SELECT VALUE id FROM {queue} WHERE ws = $ws LIMIT {limit}");
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let ids: Vec<RecordId> = response.take(0).map_err(failed(what))?;
        ids.iter().map(key).collect()
    }

    /// Whether a note is queued for a language model.
    pub async fn is_waiting(&self, ws: Uuid, note: Uuid) -> Result<bool, DomainError> {
        let what = "reading the enrichment queue failed";
        let mut response = self
            .db
            .query("SELECT VALUE id FROM $id WHERE ws = $ws")
            .bind(("id", record("enrichment", note)))
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let found: Vec<RecordId> = response.take(0).map_err(failed(what))?;
        Ok(!found.is_empty())
    }

    /// Number of notes queued for a language model.
    pub async fn count_waiting(&self, ws: Uuid) -> Result<u64, DomainError> {
        let what = "counting the enrichment queue failed";
        let mut response = self
            .db
            .query("SELECT VALUE count FROM (SELECT count() FROM enrichment WHERE ws = $ws GROUP ALL)")
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let count: Option<i64> = response.take(0).map_err(failed(what))?;
        Ok(u64::try_from(count.unwrap_or(0)).unwrap_or(0))
    }

    /// Counts a failed attempt at a note; returns the number of attempts so far.
    pub async fn count_enrichment_failure(&self, ws: Uuid, note: Uuid) -> Result<u32, DomainError> {
        let what = "writing the enrichment queue failed";
        let mut response = self
            .db
            .query("UPDATE $id SET attempts += 1 WHERE ws = $ws RETURN VALUE attempts")
            .bind(("id", record("enrichment", note)))
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let attempts: Option<i64> = response.take(0).map_err(failed(what))?;
        Ok(attempts
            .and_then(|attempts| u32::try_from(attempts).ok())
            .unwrap_or(0))
    }
}
