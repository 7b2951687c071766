//! Notes, the entities they mention and the relationships stated in them or by a user, in one transaction.

mod rows;
pub(super) mod since;

use chrono::serde::ts_nanoseconds;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use surrealdb::IndexedResults;
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use self::rows::{NoteRow, NoteRowBuilder, edge_update, mention_update, repeat_row, supersession_update};
use super::audit::rows::audit_rows;
use super::graph::journal;
use super::graph::journal::WriteSet;
use super::rows::{key, record, up_to_limit};
use super::{Store, failed};
use crate::domain::audit::AuditEntry;
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

/// Everything one transaction writes.
#[derive(Debug, Default)]
pub struct NotesWrite {
    /// Notes with their digests.
    pub notes: Vec<(Note, Digest)>,
    pub entities: Vec<StoredEntity>,
    /// Existing entities with aliases that are new.
    pub renamed_entities: Vec<StoredEntity>,
    pub relations: Vec<StoredRelation>,
    /// Existing relationships whose properties change.
    pub changed_relations: Vec<StoredRelation>,
    /// Notes with their new list of mentions.
    pub mentions: Vec<(Uuid, Vec<Uuid>)>,
    /// Superseded notes with their successors.
    pub superseded: Vec<(Uuid, Uuid)>,
    /// Repeated notes, with their new trust and sources.
    pub repeated: Vec<Note>,
    /// Notes to queue for the language model.
    pub enrich: Vec<Uuid>,
    /// Notes to take off that queue.
    pub enriched: Vec<Uuid>,
    pub audit: Vec<AuditEntry>,
}

impl NotesWrite {
    /// Adds those of the aliases to a stored entity that it does not have.
    pub fn rename(&mut self, mut entity: StoredEntity, aliases: &[String]) {
        if let Some(known) = self
            .renamed_entities
            .iter_mut()
            .find(|known| known.id == entity.id)
        {
            known.draft.add_aliases(aliases);
        } else if entity.draft.add_aliases(aliases) {
            self.renamed_entities.push(entity);
        }
    }

    /// The entities that are new or renamed, and those with an edge that is new or changed: edges have no revision of their own.
    fn touched_entities(&self) -> Vec<Uuid> {
        let edges = self.relations.iter().chain(&self.changed_relations);
        let new = self
            .entities
            .iter()
            .chain(&self.renamed_entities)
            .map(|entity| entity.id);
        let mut touched: Vec<Uuid> = new.chain(edges.map(|relation| relation.source)).collect();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// The notes that are new or changed.
    fn touched_notes(&self) -> Vec<Uuid> {
        let new = self.notes.iter().map(|(note, _)| note.id);
        let mentions = self.mentions.iter().map(|(note, _)| *note);
        let superseded = self.superseded.iter().map(|(note, _)| *note);
        let repeated = self.repeated.iter().map(|note| note.id);
        let mut touched: Vec<Uuid> = new.chain(mentions).chain(superseded).chain(repeated).collect();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Stamps everything new in the graph with the time of the write, in the order in which a restart reads it.
    pub fn stamp(&mut self, now: DateTime<Utc>) {
        self.entities
            .iter_mut()
            .for_each(|entity| entity.created_at = now);
        self.relations
            .iter_mut()
            .for_each(|relation| relation.created_at = now);
        self.entities.sort_unstable_by_key(|entity| entity.id);
        self.relations.sort_unstable_by_key(|relation| relation.id);
    }
}

fn values<T: SurrealValue>(rows: impl IntoIterator<Item = T>) -> Vec<surrealdb::types::Value> {
    rows.into_iter().map(SurrealValue::into_value).collect()
}

impl Store {
    /// Writes everything as the write with this number or, on an error, nothing.
    ///
    /// # Errors
    /// [`DomainError::Overtaken`] when another process has taken the number.
    pub async fn write_notes(
        &self,
        ws: Uuid,
        write: &NotesWrite,
        rev: u64,
        now: DateTime<Utc>,
    ) -> Result<(), DomainError> {
        let stamp = i64::try_from(rev).unwrap_or(i64::MAX);
        let written = WriteSet {
            nodes: &write.touched_entities(),
            notes: &write.touched_notes(),
            ..WriteSet::default()
        };
        let rows = NoteRowBuilder { ws, now, stamp };
        // The ids of new rows name their tables, so one statement inserts them all. Each costs some 0.1 ms of CPU time.
        let mut new = values(write.notes.iter().map(|(note, digest)| rows.note(note, digest)));
        new.extend(values(write.enrich.iter().map(|id| rows.waiting_row(*id))));
        new.extend(values(journal::rows_of(ws, rev, written)));
        new.extend(audit_rows(&write.audit));
        // One block is one transaction.
        let mut block = String::from("{ ");
        let mut parameters = Vec::new();
        for (name, rows, statement) in [
            ("new", new, "INSERT $new RETURN NONE; "),
            // Another process may have just written the same entity or statement.
            (
                "entities",
                values(write.entities.iter().map(|entity| rows.entity(entity))),
                "INSERT IGNORE INTO node $entities RETURN NONE; ",
            ),
            (
                "renamed",
                values(write.renamed_entities.iter().map(rows::alias_update)),
                "FOR $row IN $renamed { UPDATE $row.id SET properties = $row.properties, rev = $rev \
                 WHERE ws = $ws RETURN NONE }; ",
            ),
            (
                "relations",
                values(write.relations.iter().map(|relation| rows.edge(relation))),
                "INSERT RELATION IGNORE INTO edge $relations RETURN NONE; ",
            ),
            (
                "changed",
                values(write.changed_relations.iter().map(edge_update)),
                "FOR $row IN $changed { UPDATE $row.id SET properties = $row.properties, \
                 confidence = $row.confidence WHERE ws = $ws RETURN NONE }; ",
            ),
            (
                "mentions",
                values(write.mentions.iter().map(mention_update)),
                "FOR $row IN $mentions { UPDATE $row.id SET mentions = $row.mentions, rev = $rev \
                 WHERE ws = $ws RETURN NONE }; ",
            ),
            (
                "superseded",
                values(write.superseded.iter().map(supersession_update)),
                "FOR $row IN $superseded { UPDATE $row.id SET superseded_by = $row.by, superseded_at = $now, \
                 rev = $rev WHERE ws = $ws RETURN NONE }; ",
            ),
            (
                "repeated",
                values(write.repeated.iter().map(repeat_row)),
                "FOR $row IN $repeated { UPDATE $row.id SET tier = $row.tier, confidence = $row.confidence, \
                 source_refs = $row.source_refs, rev = $rev WHERE ws = $ws RETURN NONE }; ",
            ),
            (
                "enriched",
                values(write.enriched.iter().map(|id| record("enrichment", *id))),
                "DELETE $enriched WHERE ws = $ws RETURN NONE; ",
            ),
        ] {
            if !rows.is_empty() {
                block.push_str(statement);
                parameters.push((name, rows));
            }
        }
        block.push('}');
        let mut query = self.db.query(block).bind(("ws", ws)).bind(("now", now));
        query = query.bind(("rev", stamp));
        for parameter in parameters {
            query = query.bind(parameter);
        }
        match query.await.and_then(IndexedResults::check) {
            Ok(_) => Ok(()),
            Err(error) if journal::is_taken(&error) => Err(DomainError::Overtaken),
            Err(error) => Err(failed("writing to the memory failed")(error)),
        }
    }

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
