//! Writing marking-definitions.
//!
//! Rule: a definition never weakens an earlier one with its id: the row keeps the strictest level that any version of
//! it has stated.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::super::rows::{SupportRow, key};
use super::Ingest;
use super::feeds::{UnrestrictedRows, unite_feeds};
use super::known_definitions::{definition_row, definition_rows};
use crate::domain::stix::ingest::StixSupport;
use crate::domain::stix::object::type_of_id;
use crate::store::connection::error::StoreError;
use crate::store::connection::size;

#[derive(Debug, SurrealValue)]
struct ExistingDefinition {
    id: RecordId,
    stix_id: String,
    modified: DateTime<Utc>,
    states: Option<i64>,
    held_by: Option<Vec<String>>,
    feeds: Option<Vec<Uuid>>,
}

/// A stricter level for a row that stays otherwise.
#[derive(Debug, Clone, SurrealValue)]
struct NewLevel {
    id: RecordId,
    states: Option<i64>,
}

/// The stored definitions by row, and the ids of all.
#[derive(Default)]
struct StoredDefinitions {
    rows: HashMap<Uuid, ExistingDefinition>,
    ids: HashSet<String>,
}

/// What the definitions of a chunk write.
#[derive(Default)]
struct DefinitionWrites {
    rows: Vec<SupportRow>,
    new_levels: Vec<NewLevel>,
    unrestricted: UnrestrictedRows,
    /// The markings that were defined before and now state a stricter level.
    rises: Vec<String>,
}

/// Whether an object is a marking-definition.
pub(super) fn is_definition(object: &StixSupport) -> bool {
    type_of_id(&object.stix_id) == Some("marking-definition")
}

impl Ingest<'_> {
    /// Writes the definitions among these objects.
    pub(super) async fn definitions(&mut self, objects: &[StixSupport]) -> Result<(), StoreError> {
        let definitions: Vec<&StixSupport> = objects.iter().filter(|object| is_definition(object)).collect();
        if definitions.is_empty() {
            return Ok(());
        }
        let mut stored = self.stored_definitions(&definitions).await?;
        let mut writes = DefinitionWrites::default();
        for object in definitions {
            self.definition(object, &mut stored, &mut writes)?;
        }
        let mut rises = Vec::new();
        for marking in writes.rises {
            if self.has_carriers(&marking).await? {
                rises.push(marking);
            }
        }
        self.write_rises(&rises).await?;
        writes.unrestricted.write(self.tx).await?;
        self.graph.note_supports(&writes.rows)?;
        self.tx
            .write(
                "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }",
                writes.rows,
            )
            .await?;
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id SET states = $row.states RETURN NONE }",
                writes.new_levels,
            )
            .await
    }

    /// The stored definitions with the ids of these.
    async fn stored_definitions(
        &self,
        definitions: &[&StixSupport],
    ) -> Result<StoredDefinitions, StoreError> {
        let mut ids = Vec::new();
        for object in definitions {
            ids.extend(definition_rows(self.ws, &object.stix_id));
        }
        let query = "SELECT id, stix_id, modified, states, held_by, feeds FROM $ids WHERE ws = $ws";
        let found: Vec<ExistingDefinition> = self.tx.find(self.ws, query, ids).await?;
        let mut stored = StoredDefinitions::default();
        for row in found {
            stored.ids.insert(row.stix_id.clone());
            stored.rows.insert(key(&row.id)?, row);
        }
        Ok(stored)
    }

    fn definition(
        &self,
        object: &StixSupport,
        stored: &mut StoredDefinitions,
        writes: &mut DefinitionWrites,
    ) -> Result<(), StoreError> {
        let id = definition_row(self.ws, &object.stix_id, object.tlp);
        let row = self.rows.support(object, id, object.tlp);
        let known = stored.rows.remove(&key(&row.id)?);
        let before = known.as_ref().and_then(|known| known.states);
        let states = before.max(row.states);
        // Who knows the definition sees no rows that it could raise, unless it states more than it is known from.
        let raises = states > before && states > Some(row.tlp_rank);
        if raises && stored.ids.contains(&object.stix_id) {
            writes.rises.push(object.stix_id.clone());
        }
        let Some(known) = known else {
            writes.rows.push(row);
            return Ok(());
        };
        // A definition that can't leave as it is gives way to one that can.
        let is_repair = known.held_by.is_some() && row.held_by.is_none();
        if known.modified < object.modified || is_repair {
            writes.rows.push(self.successor(row, known.feeds, states));
            return Ok(());
        }
        writes.unrestricted.note(
            self.rows.feed,
            (Some(known.modified), known.feeds.as_ref()),
            (&known.id, object.modified, size::of_support(object)),
        );
        if states > known.states {
            let id = known.id;
            writes.new_levels.push(NewLevel { id, states });
        }
        Ok(())
    }

    fn successor(&self, row: SupportRow, feeds: Option<Vec<Uuid>>, states: Option<i64>) -> SupportRow {
        SupportRow {
            states,
            // The new version is all that the row carries, so one without a feed is free.
            feeds: match self.rows.feed {
                Some(_) => unite_feeds(feeds, row.feeds),
                None => row.feeds,
            },
            ..row
        }
    }
}
