//! What is known of marking-definitions, and from which level on.
//!
//! Rule: a definition has no clearance of its own. It has a row for each level from which a bundle made it known, and a
//! caller knows what the rows up to the caller's clearance say: of several the strictest level, and the newest text. So
//! a bundle that the caller can't see neither defines a marking for that caller nor changes one.

use std::cmp::Reverse;
use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::rows::support_id;
use crate::domain::error::DomainError;
use crate::domain::stix::marking::{self, DefinitionLevel, Markings};
use crate::domain::tlp::Tlp;
use crate::store::rows::{record, tlp, unpack};
use crate::store::{Store, failed};

/// Definitions read at a time.
const CHUNK: usize = 1000;

/// Reads [`DefinitionRow`]s by row id.
pub(in crate::store) const DEFINITIONS: &str =
    "SELECT stix_id, tlp_rank, states, held_by, modified, raw FROM $ids WHERE ws = $ws";

/// A stored version of a definition.
#[derive(Debug, SurrealValue)]
pub(in crate::store) struct DefinitionRow {
    stix_id: String,
    /// The level from which it is known.
    tlp_rank: i64,
    /// The level that it states, or that one of its earlier versions stated.
    states: Option<i64>,
    held_by: Option<Vec<String>>,
    modified: DateTime<Utc>,
    raw: Bytes,
}

/// A definition as it was received.
#[derive(Debug, Clone)]
struct Definition {
    known_from: Tlp,
    level: DefinitionLevel,
    /// Whether it is valid STIX.
    valid: bool,
    modified: DateTime<Utc>,
    raw: Map<String, Value>,
}

impl Definition {
    fn stated(&self) -> Option<Tlp> {
        match self.level {
            DefinitionLevel::Level(level) => Some(level),
            DefinitionLevel::Statement | DefinitionLevel::Unreadable => None,
        }
    }
}

/// Stored definitions by STIX id, those included that a caller may not know.
#[derive(Debug, Clone, Default)]
pub struct Definitions(HashMap<String, Vec<Definition>>);

impl Definitions {
    pub(in crate::store) fn of(rows: Vec<DefinitionRow>) -> Result<Self, DomainError> {
        let mut all: HashMap<String, Vec<Definition>> = HashMap::new();
        for row in rows {
            let raw = unpack(&row.raw)?;
            let read = marking::level_of(&Value::Object(raw.clone()));
            let stated = row.states.map(tlp).transpose()?;
            let level = match (read, stated) {
                (DefinitionLevel::Level(read), Some(stated)) => DefinitionLevel::Level(read.max(stated)),
                (_, Some(stated)) => DefinitionLevel::Level(stated),
                (read, None) => read,
            };
            all.entry(row.stix_id).or_default().push(Definition {
                known_from: tlp(row.tlp_rank)?,
                level,
                valid: row.held_by.is_none(),
                modified: row.modified,
                raw,
            });
        }
        Ok(Self(all))
    }

    /// What a caller with this clearance knows.
    pub fn known_to(&self, highest: Tlp) -> Markings {
        let mut known = Markings::new();
        for (id, versions) in &self.0 {
            let seen = versions.iter().filter(|version| version.known_from <= highest);
            let levels = seen.filter_map(|version| match version.level {
                DefinitionLevel::Level(level) => Some((id.clone(), Some(level))),
                DefinitionLevel::Statement => Some((id.clone(), None)),
                DefinitionLevel::Unreadable => None,
            });
            marking::learn(&mut known, levels);
        }
        known
    }

    /// The level from which a marking is known at all.
    pub(in crate::store) fn known_from(&self, id: &str) -> Option<Tlp> {
        let versions = self.0.get(id)?.iter();
        let known = versions.filter(|version| version.level != DefinitionLevel::Unreadable);
        known.map(|version| version.known_from).min()
    }

    /// The level from which the strictest of what a caller with this clearance knows of a marking is known.
    pub(super) fn stated_from(&self, id: &str, highest: Tlp) -> Option<Tlp> {
        let versions = self.0.get(id)?.iter();
        let seen = versions.filter(|version| version.known_from <= highest);
        let readable = seen.filter(|version| version.level != DefinitionLevel::Unreadable);
        let strictest_first = |version: &&Definition| (Reverse(version.stated()), version.known_from);
        readable
            .min_by_key(strictest_first)
            .map(|version| version.known_from)
    }

    /// The object that a caller with this clearance knows a marking by: its newest valid version, unless the caller knows
    /// of a stricter level than that states, or one that states the level in its place.
    pub fn object(&self, id: &str, highest: Tlp) -> Option<Map<String, Value>> {
        let seen = self.0.get(id)?.iter();
        let seen: Vec<&Definition> = seen.filter(|version| version.known_from <= highest).collect();
        let is_readable = |version: &&&Definition| version.level != DefinitionLevel::Unreadable;
        // One that states a level can be restated; any other leaves as it came.
        let is_valid = |version: &&&Definition| {
            let is_standard = || marking::has_standard_type(&version.raw);
            version.valid && (version.level == DefinitionLevel::Statement || is_standard())
        };
        let level = seen.iter().filter_map(|version| version.stated()).max();
        let valid = seen.iter().filter(is_valid).filter(is_readable);
        let states_level = |version: &&&Definition| level_of_text(&version.raw) >= level;
        let newest = valid.filter(states_level).max_by_key(|version| version.modified);
        if let Some(newest) = newest {
            return Some(newest.raw.clone());
        }
        let newest = seen.iter().max_by_key(|version| version.modified)?;
        Some(with_level(id, &newest.raw, level?))
    }

    /// Adds what was read of further ids.
    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }
}

/// The level that the text of a definition states.
fn level_of_text(raw: &Map<String, Value>) -> Option<Tlp> {
    match marking::level_of(&Value::Object(raw.clone())) {
        DefinitionLevel::Level(level) => Some(level),
        DefinitionLevel::Statement | DefinitionLevel::Unreadable => None,
    }
}

/// A valid definition that states this level, with the statement and the markings of a text that does not.
fn with_level(id: &str, raw: &Map<String, Value>, level: Tlp) -> Map<String, Value> {
    let mut definition = marking::restate(id, raw, level);
    let statement = raw.get("definition").and_then(|of| of.get("statement"));
    if let Some(statement) = statement.and_then(Value::as_str)
        && level_of_text(raw).is_none()
    {
        let statement = json!({"statement": format!("{statement} ({level})")});
        definition.insert("definition".to_owned(), statement);
    }
    let mut markings: Vec<&str> = marking::marking_refs(raw).collect();
    markings.sort_unstable();
    markings.dedup();
    if !markings.is_empty() {
        definition.insert("object_marking_refs".to_owned(), json!(markings));
    }
    definition
}

impl Store {
    /// The definitions of the workspace for these ids, whatever their level.
    pub async fn definitions(&self, ws: Uuid, stix_ids: &[String]) -> Result<Definitions, DomainError> {
        let what = "reading markings failed";
        let mut found = Definitions::default();
        for chunk in stix_ids.chunks(CHUNK) {
            let ids = chunk.iter().flat_map(|id| definition_rows(ws, id)).collect();
            let parameters = [("ws", ws.into_value())];
            let rows = self.rows_by_id(DEFINITIONS, ids, &parameters).await;
            found.extend(Definitions::of(rows.map_err(failed(what))?)?);
        }
        Ok(found)
    }

    /// The markings of the workspace among these ids that a caller with this clearance knows, with the level that each
    /// states.
    pub async fn markings(
        &self,
        ws: Uuid,
        stix_ids: &[String],
        highest: Tlp,
    ) -> Result<Markings, DomainError> {
        Ok(self.definitions(ws, stix_ids).await?.known_to(highest))
    }
}

/// The row of a definition that is known from this level on.
pub(super) fn definition_row(ws: Uuid, stix_id: &str, known_from: Tlp) -> RecordId {
    let name = format!("definition\0{stix_id}\0{}", known_from.rank());
    record("stix_support", Uuid::new_v5(&ws, name.as_bytes()))
}

/// The rows that a definition may have; the last one is that of earlier versions of this program.
pub(in crate::store) fn definition_rows(ws: Uuid, stix_id: &str) -> impl Iterator<Item = RecordId> {
    let rows = Tlp::ALL.map(|level| definition_row(ws, stix_id, level));
    let earlier = record("stix_support", support_id(ws, stix_id));
    rows.into_iter().chain([earlier])
}
