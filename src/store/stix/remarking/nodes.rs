//! What a node shows once its marking has changed.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::Value;
use surrealdb::types::{Bytes, SurrealValue};
use uuid::Uuid;

use super::{Cause, MarkedRow, Release, RemarkedObject};
use crate::domain::graph::place::Place;
use crate::domain::kinds::StixRow;
use crate::domain::stix::{marking, object, properties};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::rows::{NodeRow, record, tlp, unpack};
use crate::store::stix::support_rows::support_rows;

/// The name of an author and its marking, by STIX id.
pub(super) type Authors = HashMap<String, (String, Tlp)>;

#[derive(Debug, SurrealValue)]
struct AuthorRow {
    stix_id: String,
    tlp_rank: i64,
    modified: DateTime<Utc>,
    raw: Bytes,
}

impl Release<'_> {
    /// The names of the authors of these objects, with the marking of each: of several versions the least restricted
    /// one, the newest of those.
    pub(super) async fn authors(&self, objects: &[RemarkedObject]) -> Result<Authors, StoreError> {
        let ids: HashSet<&str> = objects
            .iter()
            .filter_map(|object| object::text(&object.raw, "created_by_ref"))
            .collect();
        let mut rows = self.author_nodes(&ids).await?;
        let supporting = ids.into_iter().flat_map(|id| support_rows(self.ws, id)).collect();
        let query = "SELECT stix_id, tlp_rank, modified, raw FROM $ids WHERE ws = $ws";
        rows.extend(self.tx.find::<AuthorRow>(self.ws, query, supporting).await?);
        // The last one counts.
        rows.sort_by_key(|row| (Reverse(row.tlp_rank), row.modified));
        let mut read = Vec::new();
        for row in rows {
            read.push((row.stix_id, tlp(row.tlp_rank)?, unpack(&row.raw)?));
        }
        let definitions = self.definitions_for(read.iter().map(|(.., raw)| raw)).await?;
        let mut authors = Authors::new();
        for (stix_id, seen_from, raw) in read {
            let known = definitions.known_to(seen_from);
            let marked = marking::object_marking(&raw, &known, Tlp::White);
            let level = marked.map_or(Tlp::Red, |marked| marked.tlp);
            let name = object::text(&raw, "name").unwrap_or_default().to_owned();
            authors.insert(stix_id, (name, level));
        }
        Ok(authors)
    }

    /// The versions of these identities that are nodes; earlier versions of this program had them as supporting objects.
    async fn author_nodes(&self, stix_ids: &HashSet<&str>) -> Result<Vec<AuthorRow>, StoreError> {
        let places = || std::iter::once(Place::First).chain(Place::beside());
        let names = stix_ids
            .iter()
            .flat_map(|id| places().map(move |place| place.name(id)));
        let rows = names.map(|name| record("node", self.ids.node(&name))).collect();
        let query = "SELECT VALUE stix_evidence FROM $ids WHERE ws = $ws AND stix_evidence != NONE";
        let originals: Vec<Uuid> = self.tx.find(self.ws, query, rows).await?;
        let originals = originals.into_iter().map(|id| record("evidence", id)).collect();
        let query = "SELECT ext_id AS stix_id, tlp_rank, created_at AS modified, raw FROM $ids \
                     WHERE ws = $ws AND raw != NONE";
        self.tx.find(self.ws, query, originals).await
    }
}

/// Updates the marking of this evidence on a node, and the node's own if the node was made from it.
pub(super) fn remark(
    node: &mut NodeRow,
    (evidence, old): (Uuid, i64),
    object: &RemarkedObject,
    cause: &Cause,
    authors: &Authors,
) {
    let MarkedRow {
        tlp_rank, held_by, ..
    } = object.marking();
    let linked = node.evidence.iter().zip(&mut node.evidence_tlp);
    for (_, rank) in linked.filter(|(id, _)| **id == evidence) {
        *rank = tlp_rank;
    }
    if node.stix_evidence != Some(evidence) {
        return;
    }
    if let Cause::Definition(_) = cause {
        node.held_by = held_by;
    }
    if node.tlp_rank > old {
        // The node has been restricted further in the meantime.
        node.tlp_rank = node.tlp_rank.max(tlp_rank);
        return;
    }
    if tlp_rank < node.tlp_rank {
        own_words_only(node, object, authors);
    }
    node.tlp_rank = tlp_rank;
}

/// Removes what other sources added to a node, and an author's name that is marked higher: both were visible at the
/// old marking and must not be exposed at a lower one.
fn own_words_only(node: &mut NodeRow, object: &RemarkedObject, authors: &Authors) {
    let raw = &object.raw;
    let author = object::text(raw, "created_by_ref")
        .and_then(|id| authors.get(id))
        .filter(|(name, level)| !name.is_empty() && *level <= object.tlp);
    node.source = author.map_or_else(|| properties::cited_source(raw), |(name, _)| name.clone());
    if node.evidence.len() > 1 {
        let kind = object::text(raw, "type").unwrap_or_default();
        if let Some(name) = StixRow::of(kind).and_then(|row| row.name_of(raw)) {
            node.name = name;
        }
        node.description = StixRow::of(kind).map_or_else(String::new, |row| row.text_of(raw).into_owned());
        node.properties = Value::Object(properties::of_node(raw)).to_string();
        if let Some(percent) = raw.get("confidence").and_then(Value::as_f64) {
            node.confidence = percent / 100.0;
        }
    }
}
