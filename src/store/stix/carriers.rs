//! Which rows carry a marking that others define.
//!
//! A later definition may state a stricter level, and then the rows that carry the marking are marked anew. They are
//! recorded by write and not one by one: a bundle may have tens of thousands that all carry the same marking.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use surrealdb::types::{Array, Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::super::rows::{HeldRow, key, unpack};
use super::Ingest;
use super::known::OriginalRow;
use crate::domain::stix::marking::marking_refs;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::yield_regularly;

/// Rows recorded together.
const PART: usize = 250;
/// Maximum number of objects a report names.
const MAX_NAMED: usize = 100;

/// The rows that carry a marking, by marking.
pub(super) type Carriers = BTreeMap<String, Vec<RecordId>>;

#[derive(Debug, Clone, SurrealValue)]
struct CarrierRow {
    id: RecordId,
    rows: Vec<RecordId>,
}

#[derive(Debug, Clone, SurrealValue)]
struct RiseRow {
    id: RecordId,
    at: DateTime<Utc>,
}

/// A stricter marking for a row that waits for a definition.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct HeldRise {
    id: RecordId,
    tlp_rank: i64,
    floor_tlp: i64,
}

/// What an object tells about its markings.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkedObject<'p> {
    pub(super) stix_id: &'p str,
    pub(super) level: Tlp,
    /// The marking that was stated beside the original, or that the original states by itself.
    pub(super) floor: Option<Tlp>,
    pub(super) held_by: &'p [String],
    pub(super) carried: &'p [String],
}

/// A text of a version that is stored already.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepeatedVersion<'p> {
    pub(super) stix_id: &'p str,
    pub(super) raw: &'p [u8],
    pub(super) carried: &'p [String],
}

/// Objects that were sent again in the same version, with markings that the stored text lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOutReport {
    named: Vec<String>,
    total: usize,
}

impl LeftOutReport {
    fn note(&mut self, stix_id: &str, markings: &[&str]) {
        self.total += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!(
                "{stix_id}: this version is stored without {}, and stays so; a newer version takes the marking over",
                markings.join(", ")
            ));
        }
    }

    /// One line per object, a hundred at most, and one that counts the rest.
    pub fn into_warnings(self) -> Vec<String> {
        let rest = self.total - self.named.len();
        let mut lines = self.named;
        if rest > 0 {
            lines.push(format!(
                "{rest} more objects came again in a stored version with markings that it lacks"
            ));
        }
        lines
    }
}

impl Ingest<'_> {
    /// Records an object that is withheld or that carries markings which others define, for the report and for the time
    /// when these are defined.
    pub(super) fn hold(
        &mut self,
        object: MarkedObject<'_>,
        row: &RecordId,
        default_tlp: Tlp,
        held: &mut Vec<HeldRow>,
    ) -> Result<(), StoreError> {
        let MarkedObject { level, floor, .. } = object;
        if !object.held_by.is_empty() {
            self.done.held.note(object.stix_id, level, object.held_by);
        }
        for marking in object.held_by {
            held.push(HeldRow::new(self.ws, marking, row, default_tlp, (level, floor))?);
        }
        for marking in object.carried {
            match self.carriers.get_mut(marking) {
                Some(rows) => rows.push(row.clone()),
                None => {
                    self.carriers.insert(marking.clone(), vec![row.clone()]);
                }
            }
        }
        Ok(())
    }

    pub(super) async fn write_held(&self, rows: Vec<HeldRow>) -> Result<(), StoreError> {
        self.tx
            .write(
                "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }",
                rows,
            )
            .await
    }

    /// The marking that was stated for a row with these undefined markings, after its original came.
    pub(super) fn held_rises(
        &self,
        row: &RecordId,
        held_by: Option<&[String]>,
        level: Tlp,
    ) -> Result<Vec<HeldRise>, StoreError> {
        let tlp_rank = i64::from(level.rank());
        let waiting = held_by.unwrap_or_default().iter();
        let raised = waiting.map(|marking| {
            Ok(HeldRise {
                id: HeldRow::row_id(self.ws, marking, row)?,
                tlp_rank,
                floor_tlp: tlp_rank,
            })
        });
        raised.collect()
    }

    pub(super) async fn raise_held(&self, rows: Vec<HeldRise>) -> Result<(), StoreError> {
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id SET tlp_rank = $row.tlp_rank, floor_tlp = $row.floor_tlp \
                 RETURN NONE }",
                rows,
            )
            .await
    }

    /// Notes which of these texts carry markings that the stored text of the version lacks.
    pub(super) async fn note_left_out(
        &mut self,
        repeated: Vec<(RecordId, RepeatedVersion<'_>)>,
    ) -> Result<(), StoreError> {
        if repeated.is_empty() {
            return Ok(());
        }
        let ids = repeated.iter().map(|(row, _)| row.clone()).collect();
        let query = "SELECT id, raw FROM $ids WHERE ws = $ws";
        let found: Vec<OriginalRow> = self.tx.find(self.ws, query, ids).await?;
        let mut stored: HashMap<Uuid, Bytes> = HashMap::new();
        for row in found {
            if let Some(raw) = row.raw {
                stored.insert(key(&row.id)?, raw);
            }
        }
        for (place, (row, version)) in repeated.into_iter().enumerate() {
            yield_regularly(place).await;
            let Some(raw) = stored.get(&key(&row)?) else {
                continue;
            };
            if raw.as_ref() == version.raw {
                continue;
            }
            let original = unpack(raw)?;
            let lacks =
                |marking: &&String| !marking_refs(&original).any(|carried| carried == marking.as_str());
            let lacking: Vec<&str> = version.carried.iter().filter(lacks).map(String::as_str).collect();
            if !lacking.is_empty() {
                self.done.left_out.note(version.stix_id, &lacking);
            }
        }
        Ok(())
    }

    /// Whether rows that earlier writes left carry a marking.
    pub(super) async fn has_carriers(&self, marking: &str) -> Result<bool, StoreError> {
        let query =
            "SELECT VALUE id FROM type::record(stix_carrier:[$ws, $marking]..[$ws, $marking, $end]) LIMIT 1";
        let values = [
            ("ws", self.ws.into_value()),
            ("marking", marking.to_owned().into_value()),
            ("end", i64::MAX.into_value()),
        ];
        let some: Vec<RecordId> = self.tx.select(query, &values).await?;
        Ok(!some.is_empty())
    }

    /// Records that the level of these markings has risen.
    pub(super) async fn write_rises(&self, markings: &[String]) -> Result<(), StoreError> {
        let rows = markings.iter().map(|marking| RiseRow {
            id: rise_row(self.ws, marking),
            at: self.rows.now,
        });
        self.tx
            .write(
                "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }",
                rows.collect(),
            )
            .await
    }

    /// Records the rows of this write that carry markings.
    pub(super) async fn write_carriers(&mut self) -> Result<(), StoreError> {
        let (ws, rev) = (self.ws.into_value(), self.rows.rev.into_value());
        let mut rows = Vec::new();
        for (marking, carriers) in std::mem::take(&mut self.carriers) {
            for (part, carriers) in (0i64..).zip(carriers.chunks(PART)) {
                let key = vec![
                    ws.clone(),
                    marking.clone().into_value(),
                    rev.clone(),
                    part.into_value(),
                ];
                rows.push(CarrierRow {
                    id: RecordId::new("stix_carrier", Array::from(key)),
                    rows: carriers.to_vec(),
                });
            }
        }
        // A row holds many ids, so a statement takes few rows.
        for rows in rows.chunks(20) {
            self.tx
                .write("INSERT INTO stix_carrier $rows RETURN NONE", rows.to_vec())
                .await?;
        }
        Ok(())
    }
}

/// The row that records that the level of a marking has risen.
pub(in crate::store) fn rise_row(ws: Uuid, marking: &str) -> RecordId {
    let key = vec![ws.into_value(), marking.to_owned().into_value()];
    RecordId::new("stix_rise", Array::from(key))
}
