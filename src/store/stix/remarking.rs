//! Marking rows anew once more is known of a marking that they carry.
//!
//! Two causes: a marking that rows waited for is defined, which may lower them; and a marking that was defined states a
//! stricter level, which only raises them. Rule: a row follows what everybody who sees it may know. So a definition that
//! is known from a stricter level alone changes nothing that others see.

mod nodes;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use self::nodes::{Authors, remark};
use super::known_definitions::{DEFINITIONS, Definitions, definition_rows};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::ids::WorkspaceIds;
use crate::domain::stix::marking;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::graph::write::{GraphWrite, GraphWritten, MarkedRow};
use crate::store::rows::{HeldRow, NodeRow, key, record, tlp, unpack};

/// Size of a row besides its original.
const ROW: u64 = 4096;

/// One page of re-marked objects.
#[derive(Debug, Default)]
pub struct RemarkedObjects {
    /// Objects of the page, including those that still wait for another marking.
    pub objects: u64,
    pub written: GraphWritten,
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
struct MarkedRaw {
    id: RecordId,
    tlp_rank: i64,
    held_by: Option<Vec<String>>,
    raw: Option<Bytes>,
}

/// The stored object of a row.
struct Original {
    row: RecordId,
    tlp_rank: i64,
    raw: Bytes,
}

/// An object with its new marking.
struct RemarkedObject {
    row: RecordId,
    raw: Map<String, Value>,
    tlp: Tlp,
    /// Its markings that are not defined for those who see it.
    undefined: Vec<String>,
}

/// How a row that waits for a definition is marked.
#[derive(Debug, Clone, Copy)]
struct Terms {
    /// The marking of an object that turns out to state none.
    default: Tlp,
    /// What was stated beside the original.
    floor: Tlp,
}

/// Why rows are marked anew.
enum Cause {
    /// A definition that they waited for.
    Definition(HashMap<Uuid, Terms>),
    /// A stricter level of a marking that was defined.
    Rise,
}

/// A transaction that marks rows anew.
pub(in crate::store) struct Release<'a> {
    tx: &'a WriteTx,
    ids: WorkspaceIds,
    ws: Uuid,
    /// The number of the last write that this one was planned after.
    after: u64,
    marking: &'a str,
}

impl<'a> Release<'a> {
    pub(in crate::store) fn new(
        tx: &'a WriteTx,
        ids: WorkspaceIds,
        (ws, after): (Uuid, u64),
        marking: &'a str,
    ) -> Self {
        Self {
            tx,
            ids,
            ws,
            after,
            marking,
        }
    }

    /// Re-marks a page of the rows that wait for the marking and are marked no lower than `known_from`.
    pub(in crate::store) async fn page(
        &self,
        known_from: Tlp,
        page: u32,
        audit: &impl Fn(u64) -> AuditEntry,
    ) -> Result<Option<RemarkedObjects>, StoreError> {
        let lowest = i64::from(known_from.rank());
        let held = self.tx.held_rows(self.ws, self.marking, (lowest, page)).await?;
        if held.is_empty() {
            return Ok(None);
        }
        let mut terms = HashMap::new();
        for row in &held {
            let floor = row.floor_tlp.map(tlp).transpose()?;
            let of_row = Terms {
                default: tlp(row.default_tlp)?,
                floor: floor.unwrap_or(Tlp::White),
            };
            terms.insert(key(&row.held)?, of_row);
        }
        let rows: Vec<RecordId> = held.iter().map(|row| row.held.clone()).collect();
        let cause = Cause::Definition(terms);
        let (remarked, written) = self.remark_rows(&rows, &cause, &audit(0)).await?;
        let mut waiting = HashSet::new();
        for object in &remarked {
            if object.undefined.iter().any(|id| id == self.marking) {
                waiting.insert(key(&object.row)?);
            }
        }
        let mut ended = Vec::new();
        for row in &held {
            if !waiting.contains(&key(&row.held)?) {
                ended.push(row.id.clone());
            }
        }
        self.tx.write("DELETE $rows RETURN NONE", ended).await?;
        let objects = held.len() as u64;
        self.tx.audit([&audit(objects)]).await?;
        Ok(Some(RemarkedObjects { objects, written }))
    }

    /// Raises those of these rows that carry the marking to the level that it states for those who see them.
    pub(in crate::store) async fn raise(
        &self,
        rows: &[RecordId],
        audit: &impl Fn(u64) -> AuditEntry,
    ) -> Result<RemarkedObjects, StoreError> {
        let (remarked, written) = self.remark_rows(rows, &Cause::Rise, &audit(0)).await?;
        let objects = remarked.len() as u64;
        if objects > 0 {
            self.tx.audit([&audit(objects)]).await?;
        }
        Ok(RemarkedObjects { objects, written })
    }

    /// Re-marks evidence with its nodes, edges and supporting objects.
    async fn remark_rows(
        &self,
        rows: &[RecordId],
        cause: &Cause,
        entry: &AuditEntry,
    ) -> Result<(Vec<RemarkedObject>, GraphWritten), StoreError> {
        let mut graph = GraphWrite::begin(self.tx, self.ws, self.after);
        let mut objects = self.nodes(&mut graph, of_table(rows, "evidence"), cause).await?;
        for table in ["edge", "stix_support"] {
            objects.extend(self.others(&mut graph, of_table(rows, table), cause).await?);
        }
        self.note_levels(&objects).await?;
        Ok((objects, graph.end(entry).await?))
    }

    /// Updates the markings of those that wait for further definitions, where they are recorded as waiting.
    async fn note_levels(&self, objects: &[RemarkedObject]) -> Result<(), StoreError> {
        let mut levels = Vec::new();
        for object in objects {
            for marking in &object.undefined {
                levels.push(MarkedRow {
                    id: HeldRow::row_id(self.ws, marking, &object.row)?,
                    tlp_rank: i64::from(object.tlp.rank()),
                    held_by: None,
                });
            }
        }
        let query = "FOR $row IN $rows { UPDATE $row.id SET tlp_rank = $row.tlp_rank RETURN NONE }";
        self.tx.write(query, levels).await
    }

    /// Re-marks evidence, and the nodes whose newest version it is.
    async fn nodes(
        &self,
        graph: &mut GraphWrite<'_>,
        ids: Vec<RecordId>,
        cause: &Cause,
    ) -> Result<Vec<RemarkedObject>, StoreError> {
        let (levels, originals) = self.evidence(ids).await?;
        let mut objects = self.read_anew(originals, cause).await?;
        let mut changed = HashSet::new();
        for object in &objects {
            changed.extend(levels.get(&key(&object.row)?).map(|(node, _)| *node));
        }
        let mut nodes = self.nodes_of(changed).await?;
        for object in &mut objects {
            let evidence = key(&object.row)?;
            let node = levels.get(&evidence).and_then(|(node, _)| nodes.get_mut(node));
            let Some(node) = node.filter(|node| node.stix_evidence == Some(evidence)) else {
                continue;
            };
            if let Some(correction) = node.correction()? {
                object.tlp = correction.level(object.tlp);
                node.lift_correction()?;
            }
        }
        let authors = match cause {
            Cause::Definition(_) => self.authors(&objects).await?,
            Cause::Rise => Authors::new(),
        };
        for object in &objects {
            let evidence = key(&object.row)?;
            let Some((node, old)) = levels.get(&evidence) else {
                continue;
            };
            if let Some(node) = nodes.get_mut(node) {
                remark(node, (evidence, *old), object, cause, &authors);
                node.rev = graph.rev();
            }
        }
        let markings = objects.iter().map(RemarkedObject::marking).collect();
        graph.mark(markings, false).await?;
        graph.replace_nodes(nodes.into_values().collect()).await?;
        Ok(objects)
    }

    /// The originals in these evidence records, with the node and the rank of each record.
    async fn evidence(
        &self,
        ids: Vec<RecordId>,
    ) -> Result<(HashMap<Uuid, (Uuid, i64)>, Vec<Original>), StoreError> {
        let query = "SELECT id, ext_id, tlp_rank, raw, node FROM $ids WHERE ws = $ws";
        let found: Vec<EvidenceRaw> = self.tx.find(self.ws, query, ids).await?;
        let ids = self.tx.id_secret.ids_of(self.ws);
        let (mut levels, mut originals) = (HashMap::new(), Vec::new());
        for row in found {
            let Some(raw) = row.raw else { continue };
            let tlp_rank = row.tlp_rank;
            let node = ids.node(&row.ext_id.unwrap_or_default());
            levels.insert(key(&row.id)?, (row.node.unwrap_or(node), tlp_rank));
            originals.push(Original {
                row: row.id,
                tlp_rank,
                raw,
            });
        }
        Ok((levels, originals))
    }

    async fn nodes_of(&self, ids: HashSet<Uuid>) -> Result<HashMap<Uuid, NodeRow>, StoreError> {
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

    /// Re-marks edges or supporting objects.
    async fn others(
        &self,
        graph: &mut GraphWrite<'_>,
        ids: Vec<RecordId>,
        cause: &Cause,
    ) -> Result<Vec<RemarkedObject>, StoreError> {
        let query = "SELECT id, tlp_rank, held_by, raw FROM $ids WHERE ws = $ws";
        let found: Vec<MarkedRaw> = self.tx.find(self.ws, query, ids).await?;
        let is_meant = |row: &MarkedRaw| match cause {
            // A newer version that is not withheld may have replaced it.
            Cause::Definition(_) => row.held_by.is_some(),
            Cause::Rise => true,
        };
        let originals = found.into_iter().filter(is_meant).filter_map(|row| {
            Some(Original {
                row: row.id,
                tlp_rank: row.tlp_rank,
                raw: row.raw?,
            })
        });
        let objects = self.read_anew(originals.collect(), cause).await?;
        let changes = objects.iter().map(RemarkedObject::marking).collect();
        graph.mark(changes, matches!(cause, Cause::Definition(_))).await?;
        Ok(objects)
    }

    /// Determines the markings of objects again. Of a rise only those that it changes are returned.
    async fn read_anew(
        &self,
        originals: Vec<Original>,
        cause: &Cause,
    ) -> Result<Vec<RemarkedObject>, StoreError> {
        let mut objects = Vec::new();
        for original in originals {
            objects.push((
                original.row,
                tlp(original.tlp_rank)?,
                original.raw.len(),
                unpack(&original.raw)?,
            ));
        }
        let definitions = self.definitions_for(objects.iter().map(|(.., raw)| raw)).await?;
        let mut remarked = Vec::new();
        for (row, before, bytes, raw) in objects {
            let object = match cause {
                Cause::Definition(terms) => {
                    let terms = terms.get(&key(&row)?).copied();
                    define(row, raw, before, &definitions, terms)?
                }
                Cause::Rise => match self.raise_object(row, raw, before, &definitions)? {
                    Some(object) => object,
                    None => continue,
                },
            };
            // The whole row is rewritten.
            self.tx.charge(ROW + bytes as u64)?;
            remarked.push(object);
        }
        Ok(remarked)
    }

    /// An object that carries the marking, if the marking states a stricter level than that of the row.
    fn raise_object(
        &self,
        row: RecordId,
        raw: Map<String, Value>,
        before: Tlp,
        definitions: &Definitions,
    ) -> Result<Option<RemarkedObject>, StoreError> {
        let known = definitions.known_to(before);
        let states = known.get(self.marking).copied().flatten();
        let level = states.filter(|level| *level > before);
        let Some(tlp) = level.filter(|_| marking::marking_refs(&raw).any(|id| id == self.marking)) else {
            return Ok(None);
        };
        let mut undefined = marking::custom_refs(&raw);
        undefined.retain(|id| !known.contains_key(id));
        Ok(Some(RemarkedObject {
            row,
            raw,
            tlp,
            undefined,
        }))
    }

    /// The definitions of the markings these objects refer to, as far as the workspace has them.
    async fn definitions_for<'o>(
        &self,
        objects: impl Iterator<Item = &'o Map<String, Value>>,
    ) -> Result<Definitions, StoreError> {
        let asked: HashSet<&str> = objects.flat_map(marking::marking_refs).collect();
        let asked = asked.into_iter().filter(|id| !marking::is_built_in(id));
        let ids = asked.flat_map(|id| definition_rows(self.ws, id));
        Ok(Definitions::of(
            self.tx.find(self.ws, DEFINITIONS, ids.collect()).await?,
        )?)
    }
}

/// An object with the marking that it has by the definitions which everybody who sees its row may know by now. So it does
/// not matter in which order they came: the strictest of its markings counts.
fn define(
    row: RecordId,
    raw: Map<String, Value>,
    before: Tlp,
    definitions: &Definitions,
    terms: Option<Terms>,
) -> Result<RemarkedObject, StoreError> {
    let known = definitions.known_to(before);
    let terms = terms.unwrap_or(Terms {
        default: Tlp::Red,
        floor: Tlp::White,
    });
    let marked = marking::object_marking(&raw, &known, terms.default)
        .map_err(|cause| DomainError::internal("a held object has no readable marking", cause))?;
    let custom = marking::custom_refs(&raw);
    let states = custom.iter().filter_map(|id| known.get(id).copied().flatten());
    let known_from = custom.iter().filter_map(|id| definitions.stated_from(id, before));
    let known_from = known_from.max().unwrap_or(Tlp::White);
    let level = marking::level_by_definition(before, marked.tlp, states.max(), known_from);
    Ok(RemarkedObject {
        row,
        raw,
        tlp: level.max(terms.floor),
        undefined: marked.undefined,
    })
}

impl RemarkedObject {
    fn marking(&self) -> MarkedRow {
        MarkedRow {
            id: self.row.clone(),
            tlp_rank: i64::from(self.tlp.rank()),
            held_by: (!self.undefined.is_empty()).then(|| self.undefined.clone()),
        }
    }
}

fn of_table(rows: &[RecordId], table: &str) -> Vec<RecordId> {
    let rows = rows.iter().filter(|row| row.table.as_str() == table);
    rows.cloned().collect()
}

impl WriteTx {
    /// At most `page` rows that wait for a marking and are marked no lower than `lowest`, supporting objects first:
    /// whether a node may name its author depends on the author's own marking.
    async fn held_rows(
        &self,
        ws: Uuid,
        marking: &str,
        (lowest, page): (i64, u32),
    ) -> Result<Vec<HeldRow>, StoreError> {
        for is_support in [true, false] {
            let query = format!(
                "SELECT * FROM stix_held WHERE ws = $ws AND marking = $marking AND is_support = {is_support} \
                 AND tlp_rank >= $lowest LIMIT {page}"
            );
            let of = [
                ("ws", ws.into_value()),
                ("marking", marking.to_owned().into_value()),
                ("lowest", lowest.into_value()),
            ];
            let rows: Vec<HeldRow> = self.select(&query, &of).await?;
            if !rows.is_empty() {
                return Ok(rows);
            }
        }
        Ok(Vec::new())
    }
}
