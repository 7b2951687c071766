//! Writing marking-definitions.
//!
//! Rule: a definition never weakens an earlier one with its id: the row keeps the strictest level that any version of
//! it has stated.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::super::connect::StoreError;
use super::super::rows::{SupportRow, key};
use super::super::size;
use super::super::stix_definitions::definition_row;
use super::super::stix_feeds::{UnrestrictedRows, unite_feeds};
use super::Ingest;
use crate::domain::stix::ingest::StixSupport;
use crate::domain::stix::object::type_of_id;

#[derive(Debug, SurrealValue)]
struct ExistingDefinition {
    id: RecordId,
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

/// Whether an object is a marking-definition.
pub(super) fn is_definition(object: &StixSupport) -> bool {
    type_of_id(&object.stix_id) == Some("marking-definition")
}

impl Ingest<'_> {
    /// Writes the definitions among these objects.
    pub(super) async fn definitions(&mut self, objects: &[StixSupport]) -> Result<(), StoreError> {
        let of = |object: &StixSupport| definition_row(self.ws, &object.stix_id, object.tlp);
        let definitions: Vec<&StixSupport> = objects.iter().filter(|object| is_definition(object)).collect();
        if definitions.is_empty() {
            return Ok(());
        }
        let ids = definitions.iter().map(|object| of(object)).collect();
        let query = "SELECT id, modified, states, held_by, feeds FROM $ids WHERE ws = $ws";
        let found: Vec<ExistingDefinition> = self.tx.find(self.ws, query, ids).await?;
        let mut stored = HashMap::new();
        for row in found {
            stored.insert(key(&row.id)?, row);
        }
        let (mut rows, mut raised, mut lifted) = (Vec::new(), Vec::new(), UnrestrictedRows::default());
        for object in definitions {
            let row = self.rows.support(object, of(object), object.tlp);
            let Some(known) = stored.remove(&key(&row.id)?) else {
                rows.push(row);
                continue;
            };
            let states = known.states.max(row.states);
            // A definition that can't leave as it is gives way to one that can.
            let mended = known.held_by.is_some() && row.held_by.is_none();
            if known.modified < object.modified || mended {
                rows.push(self.successor(row, known.feeds, states));
                continue;
            }
            let unrestricted = (&known.id, object.modified, size::of_support(object));
            lifted.note(
                self.rows.feed,
                (Some(known.modified), known.feeds.as_ref()),
                unrestricted,
            );
            if states > known.states {
                let id = known.id;
                raised.push(NewLevel { id, states });
            }
        }
        lifted.write(self.tx).await?;
        self.tx
            .write(
                "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }",
                rows,
            )
            .await?;
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id SET states = $row.states RETURN NONE }",
                raised,
            )
            .await
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
