//! Writing the supporting objects of a bundle, other than marking-definitions.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::super::rows::{HeldRow, SupportRow, corrupt, tlp};
use super::Ingest;
use super::carriers::{MarkedObject, RepeatedVersion};
use super::definitions::is_definition;
use super::feeds::{UnrestrictedRows, unite_feeds};
use super::support_rows::{support_row, support_row_above, support_row_beside, support_rows};
use crate::domain::graph::merge::silent_version;
use crate::domain::packing::unpack;
use crate::domain::stix::ingest::StixSupport;
use crate::domain::stix::marking::states_level;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::size;
use crate::store::connection::tx::yield_regularly;

/// A stored version.
#[derive(Debug, Clone, SurrealValue)]
struct ExistingSupport {
    id: RecordId,
    stix_id: String,
    modified: DateTime<Utc>,
    tlp_rank: i64,
    feeds: Option<Vec<Uuid>>,
}

/// What the supporting objects of a chunk write.
#[derive(Default)]
struct SupportWrites<'p> {
    rows: Vec<SupportRow>,
    replaced: Vec<RecordId>,
    held: Vec<HeldRow>,
    unrestricted: UnrestrictedRows,
    repeated: Vec<(RecordId, RepeatedVersion<'p>)>,
}

impl Ingest<'_> {
    /// Writes those that are newer than what the writer sees.
    pub(super) async fn support(
        &mut self,
        objects: &[StixSupport],
        default_tlp: Tlp,
    ) -> Result<(), StoreError> {
        let others: Vec<&StixSupport> = objects.iter().filter(|object| !is_definition(object)).collect();
        let mut stored = self.stored_support(&others).await?;
        let mut writes = SupportWrites::default();
        for (place, object) in others.into_iter().enumerate() {
            yield_regularly(place).await;
            let rows = stored.remove(&object.stix_id).unwrap_or_default();
            self.supporting_object(object, rows, default_tlp, &mut writes)?;
        }
        writes.unrestricted.write(self.tx).await?;
        self.graph.note_supports(&writes.rows)?;
        self.tx.write("DELETE $rows RETURN NONE", writes.replaced).await?;
        self.tx
            .write(
                "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }",
                writes.rows,
            )
            .await?;
        self.write_held(writes.held).await?;
        self.note_left_out(writes.repeated).await
    }

    fn supporting_object<'p>(
        &mut self,
        object: &'p StixSupport,
        stored: Vec<ExistingSupport>,
        default_tlp: Tlp,
        writes: &mut SupportWrites<'p>,
    ) -> Result<(), StoreError> {
        let seen = stored.iter().filter(|row| self.sees(row.tlp_rank));
        let newest = seen.max_by_key(|row| (row.modified, row.tlp_rank));
        let is_stricter = newest.is_some_and(|newest| i64::from(object.tlp.rank()) > newest.tlp_rank);
        let (mut level, mut restates) = (object.tlp, false);
        if let Some(newest) = newest {
            let states = || Ok::<_, StoreError>(states_level(&unpack(&object.raw).map_err(corrupt)?));
            let before = tlp(newest.tlp_rank)?;
            if level < before && !states()? {
                level = before;
            }
            restates = newest.modified == object.modified && is_stricter && states()?;
            if newest.modified >= object.modified && !restates {
                if newest.modified == object.modified && !object.carried.is_empty() {
                    let version = RepeatedVersion {
                        stix_id: &object.stix_id,
                        raw: &object.raw,
                        carried: &object.carried,
                    };
                    writes.repeated.push((newest.id.clone(), version));
                }
                let row = (&newest.id, object.modified, size::of_support(object));
                let before = (Some(newest.modified), newest.feeds.as_ref());
                writes.unrestricted.note(self.rows.feed, before, row);
                return Ok(());
            }
            if restates {
                writes.replaced.push(newest.id.clone());
            }
            // A stricter version has a row of its own and takes nothing away.
            let version = silent_version(before, object.tlp, level, false);
            self.done.silent.note(&object.stix_id, version);
        }
        let Some((id, known)) = self.support_target(object, level, &stored) else {
            return Ok(());
        };
        let level = match known {
            Some(known) if !self.sees(known.tlp_rank) => level.max(tlp(known.tlp_rank)?),
            Some(_) | None => level,
        };
        let held = MarkedObject {
            stix_id: &object.stix_id,
            level,
            floor: None,
            held_by: &object.held_by,
            carried: &object.carried,
        };
        self.hold(held, &id, default_tlp, &mut writes.held)?;
        let mut row = self.rows.support(object, id, level);
        // The new version is all that the row carries, so one without a feed is free.
        if self.rows.feed.is_some() {
            let before = if restates { newest } else { known };
            row.feeds = unite_feeds(before.and_then(|row| row.feeds.clone()), row.feeds);
        }
        writes.rows.push(row);
        Ok(())
    }

    /// The row that a version goes into, with what stands there; `None` for one that the writer can't see and that is
    /// not newer than what writers of this clearance sent before.
    fn support_target<'r>(
        &self,
        object: &StixSupport,
        level: Tlp,
        stored: &'r [ExistingSupport],
    ) -> Option<(RecordId, Option<&'r ExistingSupport>)> {
        let (ws, stix_id) = (self.ws, object.stix_id.as_str());
        let at = |id: &RecordId| stored.iter().find(|row| row.id == *id);
        if level > self.highest {
            let id = support_row_above(ws, stix_id, self.highest);
            let known = at(&id);
            let is_old = known.is_some_and(|known| known.modified >= object.modified);
            return (!is_old).then_some((id, known));
        }
        let id = support_row(ws, stix_id, level);
        match at(&id) {
            Some(known) if !self.sees(known.tlp_rank) => {
                let id = support_row_beside(ws, stix_id, level);
                let known = at(&id);
                Some((id, known))
            }
            known => Some((id, known)),
        }
    }

    async fn stored_support(
        &self,
        objects: &[&StixSupport],
    ) -> Result<HashMap<String, Vec<ExistingSupport>>, StoreError> {
        let mut ids = Vec::new();
        for object in objects {
            ids.extend(support_rows(self.ws, &object.stix_id));
        }
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let query = "SELECT id, stix_id, modified, tlp_rank, feeds FROM $ids WHERE ws = $ws";
        let found: Vec<ExistingSupport> = self.tx.find(self.ws, query, ids).await?;
        let mut stored: HashMap<String, Vec<ExistingSupport>> = HashMap::new();
        for row in found {
            stored.entry(row.stix_id.clone()).or_default().push(row);
        }
        Ok(stored)
    }
}
