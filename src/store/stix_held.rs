//! Objects withheld because a marking is not defined, and re-marking them once it is.
//!
//! The definition is stored first, with its bundle. The objects that waited for it follow page by page, each page a
//! transaction, so their number is not limited. An interrupted run is resumed by the next definition and at the next
//! start.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::connect::StoreError;
use super::retry::with_retry;
use super::rows::{HeldRow, NodeRow, key, record, tlp, unpack};
use super::stix_definitions::{DEFINITIONS, Definitions, definition_rows};
use super::stix_support::support_rows;
use super::tx::WriteTx;
use super::{Store, failed};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::node::node_id;
use crate::domain::stix::marking::{self, ObjectMarking};
use crate::domain::stix::{object, properties};
use crate::domain::tlp::Tlp;

/// Maximum number of objects a report names, and of markings it names for each.
const MAX_NAMED: usize = 100;
const MAX_MARKINGS: usize = 3;
/// Withheld rows re-marked in one transaction.
const PAGE: u32 = 256;
/// Size of a row besides its original.
const ROW: u64 = 4096;

/// Objects that were ingested although one of their markings is not defined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldReport {
    named: Vec<String>,
    pub(super) total: u64,
}

impl HeldReport {
    pub(super) fn note(&mut self, stix_id: &str, tlp: Tlp, held_by: &[String]) {
        self.total += 1;
        if self.named.len() >= MAX_NAMED {
            return;
        }
        let shown: Vec<&str> = held_by.iter().take(MAX_MARKINGS).map(String::as_str).collect();
        let more = match held_by.len().saturating_sub(MAX_MARKINGS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.named.push(format!(
            "{stix_id}: nobody has defined {}{more}, or its level can't be read; taken in at {tlp}, and held back from \
             exports until that is defined",
            shown.join(", ")
        ));
    }

    /// One line per object, a hundred at most, and one that counts the rest.
    pub fn into_warnings(self) -> Vec<String> {
        let rest = self.total.saturating_sub(MAX_NAMED as u64);
        let mut lines = self.named;
        if rest > 0 {
            lines.push(format!(
                "{rest} more objects are held back for markings that nobody has defined"
            ));
        }
        lines
    }
}

/// One page of re-marked objects.
#[derive(Debug)]
pub struct RemarkedObjects {
    /// Objects of the page, including those that still wait for another marking.
    pub objects: u64,
    /// The nodes among them, to be reindexed.
    pub touched: Vec<Uuid>,
    /// The edges among them.
    pub edges: Vec<Uuid>,
    pub rev: u64,
}

#[derive(Debug, SurrealValue)]
struct EvidenceRaw {
    id: RecordId,
    ext_id: Option<String>,
    tlp_rank: i64,
    raw: Option<Bytes>,
    node: Option<Uuid>,
}

#[derive(Debug, SurrealValue)]
struct HeldRaw {
    id: RecordId,
    tlp_rank: i64,
    held_by: Option<Vec<String>>,
    raw: Option<Bytes>,
}

#[derive(Debug, Clone, SurrealValue)]
struct Marking {
    id: RecordId,
    tlp_rank: i64,
    held_by: Option<Vec<String>>,
}

#[derive(Debug, SurrealValue)]
struct AuthorRow {
    stix_id: String,
    tlp_rank: i64,
    modified: DateTime<Utc>,
    raw: Bytes,
}

/// The object of a withheld row with its current marking.
struct HeldObject {
    row: RecordId,
    raw: Map<String, Value>,
    marked: ObjectMarking,
}

impl Store {
    /// Whether any object of the workspace waits for a marking.
    pub async fn has_held_objects(&self, ws: Uuid) -> Result<bool, DomainError> {
        let what = "reading what is held back failed";
        let mut response = self
            .db
            .query("SELECT VALUE marking FROM stix_held WHERE ws = $ws LIMIT 1")
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let some: Option<String> = response.take(0).map_err(failed(what))?;
        Ok(some.is_some())
    }

    /// Whether objects of the workspace wait for one of these markings.
    pub async fn has_held_objects_for(&self, ws: Uuid, markings: &[String]) -> Result<bool, DomainError> {
        let what = "reading what is held back failed";
        let mut response = self
            .db
            .query("SELECT VALUE marking FROM stix_held WHERE ws = $ws AND marking IN $markings LIMIT 1")
            .bind(("ws", ws))
            .bind(("markings", markings.to_vec()))
            .await
            .map_err(failed(what))?;
        let some: Option<String> = response.take(0).map_err(failed(what))?;
        Ok(some.is_some())
    }

    /// Markings that objects still wait for although they are defined: the rest of an interrupted run.
    pub async fn markings_to_release(&self, ws: Uuid) -> Result<Vec<String>, DomainError> {
        let what = "reading what is held back failed";
        let mut response = self
            .db
            .query("SELECT VALUE marking FROM stix_held WHERE ws = $ws GROUP BY marking")
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let waited_for: Vec<String> = response.take(0).map_err(failed(what))?;
        let known = self.markings(ws, &waited_for, Tlp::Red).await?;
        Ok(known.into_keys().collect())
    }

    /// Re-marks one page of the objects that wait for a marking; `None` if it is not defined or none are left. Objects
    /// below the level from which the marking is known go on waiting: some who see them can't know it.
    pub async fn release_held(
        &self,
        ws: Uuid,
        marking: &str,
        audit: impl Fn(u64) -> AuditEntry,
    ) -> Result<Option<RemarkedObjects>, DomainError> {
        let defined = self.definitions(ws, &[marking.to_owned()]).await?;
        let Some(known_from) = defined.known_from(marking) else {
            return Ok(None);
        };
        let mut page = PAGE;
        loop {
            let released = with_retry(|| async {
                let tx = self.begin().await?;
                let release = Release {
                    tx: &tx,
                    ws,
                    rev: self.next_rev(),
                    marking,
                    known_from,
                };
                let outcome = release.page(page, &audit).await;
                tx.finish(outcome).await
            });
            match released
                .await
                .map_err(|error| error.into_domain("re-marking failed"))
            {
                // The originals are long: a smaller page fits, as each of them did when it was ingested.
                Err(DomainError::TransactionTooLarge { .. }) if page > 1 => page = (page / 8).max(1),
                released => return released,
            }
        }
    }
}

struct Release<'a> {
    tx: &'a WriteTx,
    ws: Uuid,
    rev: u64,
    /// The marking that is defined now, and the level from which it is known.
    marking: &'a str,
    known_from: Tlp,
}

/// The stored object of a withheld row.
struct Original {
    row: RecordId,
    tlp_rank: i64,
    raw: Bytes,
}

impl Release<'_> {
    async fn page(
        &self,
        page: u32,
        audit: &impl Fn(u64) -> AuditEntry,
    ) -> Result<Option<RemarkedObjects>, StoreError> {
        let lowest = i64::from(self.known_from.rank());
        let held = self.tx.held_rows(self.ws, self.marking, (lowest, page)).await?;
        if held.is_empty() {
            return Ok(None);
        }
        let objects = held.len() as u64;
        let touched = self.nodes(&held).await?;
        let edges = self.others(&held, "edge").await?;
        self.tx.note_writes(self.ws, self.rev, &touched, &edges).await?;
        self.others(&held, "stix_support").await?;
        let done = held.into_iter().map(|row| row.id).collect();
        self.tx.write("DELETE $rows RETURN NONE", done).await?;
        self.tx.audit([&audit(objects)]).await?;
        Ok(Some(RemarkedObjects {
            objects,
            touched,
            edges,
            rev: self.rev,
        }))
    }

    /// Re-marks evidence, and the nodes whose newest version it is.
    async fn nodes(&self, held: &[HeldRow]) -> Result<Vec<Uuid>, StoreError> {
        let found: Vec<EvidenceRaw> = self
            .tx
            .find(
                self.ws,
                "SELECT id, ext_id, tlp_rank, raw, node FROM $ids WHERE ws = $ws",
                of_table(held, "evidence"),
            )
            .await?;
        let mut ranks = HashMap::new();
        let mut originals = Vec::new();
        for row in found {
            let Some(raw) = row.raw else { continue };
            let tlp_rank = row.tlp_rank;
            let node = node_id(self.ws, &row.ext_id.unwrap_or_default());
            ranks.insert(key(&row.id)?, (row.node.unwrap_or(node), tlp_rank));
            originals.push(Original {
                row: row.id,
                tlp_rank,
                raw,
            });
        }
        let reread = self.reread(held, originals).await?;
        let mut nodes = self.nodes_of(ranks.values().map(|(node, _)| *node)).await?;
        let authors = self.authors(&reread).await?;
        let mut changes = Vec::new();
        for object in &reread {
            changes.push(object.marking());
            let evidence = key(&object.row)?;
            let Some((node, old)) = ranks.get(&evidence) else {
                continue;
            };
            if let Some(node) = nodes.get_mut(node) {
                remark(node, (evidence, *old), object, &authors);
                node.rev = i64::try_from(self.rev).unwrap_or(i64::MAX);
            }
        }
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id SET tlp_rank = $row.tlp_rank RETURN NONE }",
                changes,
            )
            .await?;
        let (touched, rows): (Vec<Uuid>, Vec<NodeRow>) = nodes.into_iter().unzip();
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
                rows,
            )
            .await?;
        Ok(touched)
    }

    async fn nodes_of(&self, ids: impl Iterator<Item = Uuid>) -> Result<HashMap<Uuid, NodeRow>, StoreError> {
        let ids: HashSet<Uuid> = ids.collect();
        let ids = ids.into_iter().map(|id| record("node", id)).collect();
        let rows: Vec<NodeRow> = self
            .tx
            .find(self.ws, "SELECT * FROM $ids WHERE ws = $ws", ids)
            .await?;
        Ok(rows
            .into_iter()
            .map(|row| Ok((key(&row.id)?, row)))
            .collect::<Result<_, DomainError>>()?)
    }

    /// Re-marks edges or supporting objects; returns their ids.
    async fn others(&self, held: &[HeldRow], table: &str) -> Result<Vec<Uuid>, StoreError> {
        let found: Vec<HeldRaw> = self
            .tx
            .find(
                self.ws,
                "SELECT id, tlp_rank, held_by, raw FROM $ids WHERE ws = $ws",
                of_table(held, table),
            )
            .await?;
        // A newer version that is not withheld may have replaced it.
        let waiting = found.into_iter().filter(|row| row.held_by.is_some());
        let originals = waiting.filter_map(|row| {
            Some(Original {
                row: row.id,
                tlp_rank: row.tlp_rank,
                raw: row.raw?,
            })
        });
        let reread = self.reread(held, originals.collect()).await?;
        let changes = reread.iter().map(HeldObject::marking).collect();
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id SET tlp_rank = $row.tlp_rank, held_by = $row.held_by RETURN NONE }",
                changes,
            )
            .await?;
        let ids = reread.iter().map(|object| key(&object.row));
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Determines the markings of objects again from the definitions that everybody who sees them may know by now.
    async fn reread(
        &self,
        held: &[HeldRow],
        originals: Vec<Original>,
    ) -> Result<Vec<HeldObject>, StoreError> {
        let mut defaults = HashMap::new();
        for row in held {
            defaults.insert(key(&row.held)?, tlp(row.default_tlp)?);
        }
        let mut objects = Vec::new();
        for original in originals {
            // The whole row is rewritten.
            self.tx.charge(ROW + original.raw.len() as u64)?;
            objects.push((original.row, tlp(original.tlp_rank)?, unpack(&original.raw)?));
        }
        let definitions = self.definitions_for(objects.iter().map(|(.., raw)| raw)).await?;
        let mut reread = Vec::new();
        for (row, before, raw) in objects {
            let known = definitions.known_to(before);
            let default = defaults.get(&key(&row)?).copied().unwrap_or(Tlp::Red);
            let mut marked = marking::object_marking(&raw, &known, default)
                .map_err(|cause| DomainError::internal("a held object has no readable marking", cause))?;
            let states = known.get(self.marking).copied().flatten();
            marked.tlp = marking::remarked(before, marked.tlp, states, self.known_from);
            reread.push(HeldObject { row, raw, marked });
        }
        Ok(reread)
    }

    /// The definitions of the markings these objects refer to, as far as the workspace has them.
    async fn definitions_for<'a>(
        &self,
        objects: impl Iterator<Item = &'a Map<String, Value>>,
    ) -> Result<Definitions, StoreError> {
        let asked: HashSet<&str> = objects.flat_map(marking::marking_refs).collect();
        let asked = asked.into_iter().filter(|id| !marking::is_built_in(id));
        let ids = asked.flat_map(|id| definition_rows(self.ws, id));
        Ok(Definitions::of(
            self.tx.find(self.ws, DEFINITIONS, ids.collect()).await?,
        )?)
    }

    /// The names of the authors of these objects, with the marking of each: of several versions the least restricted
    /// one, the newest of those.
    async fn authors(&self, objects: &[HeldObject]) -> Result<HashMap<String, (String, Tlp)>, StoreError> {
        let ids: HashSet<&str> = objects
            .iter()
            .filter_map(|object| object::text(&object.raw, "created_by_ref"))
            .collect();
        let ids = ids
            .into_iter()
            .flat_map(|id| support_rows(self.ws, id, Tlp::Red))
            .collect();
        let query = "SELECT stix_id, tlp_rank, modified, raw FROM $ids WHERE ws = $ws";
        let mut rows: Vec<AuthorRow> = self.tx.find(self.ws, query, ids).await?;
        // The last one counts.
        rows.sort_by_key(|row| (Reverse(row.tlp_rank), row.modified));
        let mut authors = HashMap::new();
        for row in rows {
            let raw = unpack(&row.raw)?;
            let definitions = self.definitions_for(std::iter::once(&raw)).await?;
            let known = definitions.known_to(tlp(row.tlp_rank)?);
            let marked = marking::object_marking(&raw, &known, Tlp::White);
            let level = marked.map_or(Tlp::Red, |marked| marked.tlp);
            let name = object::text(&raw, "name").unwrap_or_default().to_owned();
            authors.insert(row.stix_id, (name, level));
        }
        Ok(authors)
    }
}

impl HeldObject {
    fn marking(&self) -> Marking {
        let undefined = &self.marked.undefined;
        Marking {
            id: self.row.clone(),
            tlp_rank: i64::from(self.marked.tlp.rank()),
            held_by: (!undefined.is_empty()).then(|| undefined.clone()),
        }
    }
}

/// Updates the marking of this evidence on a node, and the node's own if the node was made from it.
fn remark(
    node: &mut NodeRow,
    (evidence, old): (Uuid, i64),
    object: &HeldObject,
    authors: &HashMap<String, (String, Tlp)>,
) {
    let Marking {
        tlp_rank, held_by, ..
    } = object.marking();
    let linked = node.evidence.iter().zip(&mut node.evidence_tlp);
    for (_, rank) in linked.filter(|(id, _)| **id == evidence) {
        *rank = tlp_rank;
    }
    if node.stix_evidence != Some(evidence) {
        return;
    }
    node.held_by = held_by;
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
fn own_words_only(node: &mut NodeRow, object: &HeldObject, authors: &HashMap<String, (String, Tlp)>) {
    let raw = &object.raw;
    let author = object::text(raw, "created_by_ref")
        .and_then(|id| authors.get(id))
        .filter(|(name, level)| !name.is_empty() && *level <= object.marked.tlp);
    node.source = author.map_or_else(|| properties::cited_source(raw), |(name, _)| name.clone());
    if node.evidence.len() > 1 {
        let kind = object::text(raw, "type").unwrap_or_default();
        if let Some(name) = properties::name_of(kind, raw) {
            node.name = name;
        }
        node.description = object::text(raw, "description").unwrap_or_default().to_owned();
        node.properties = Value::Object(properties::of_node(raw)).to_string();
        if let Some(percent) = raw.get("confidence").and_then(Value::as_f64) {
            node.confidence = percent / 100.0;
        }
    }
}

fn of_table(held: &[HeldRow], table: &str) -> Vec<RecordId> {
    let rows = held.iter().filter(|row| row.held.table.as_str() == table);
    rows.map(|row| row.held.clone()).collect()
}
