//! Recall sessions, and the reads behind an export.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::neighbours::Page;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::session::RecallSession;
use crate::domain::stix::export::ExportObject;
use crate::domain::stix::object::text;
use crate::domain::tlp::Tlp;
use crate::store::audit::rows::audit_rows;
use crate::store::rows::{EdgeRow, corrupt, key, parse, record, tlp, unpack};
use crate::store::stix::context::REFERENCE;
use crate::store::stix::support_rows::support_rows;
use crate::store::{Store, failed};

/// Most sessions that are kept in memory while they can't be stored.
const MAX_UNSAVED: usize = 1000;

/// A recall session with its internal fields.
#[derive(Debug, Clone)]
pub struct SessionRecord {
    pub session: RecallSession,
    pub user: Uuid,
    pub include_rejected: bool,
}

#[derive(Debug, Clone, SurrealValue)]
struct SessionRow {
    id: RecordId,
    ws: Uuid,
    user: Uuid,
    query: String,
    mode: String,
    include_rejected: bool,
    result_count: i64,
    max_tlp: i64,
    has_red_node: bool,
    node_ids: Vec<Uuid>,
    created_at: DateTime<Utc>,
}

#[derive(Debug, SurrealValue)]
struct RawRow {
    id: RecordId,
    raw: Option<Bytes>,
}

#[derive(Debug, SurrealValue)]
struct EdgeEnds {
    id: RecordId,
    source: RecordId,
    target: RecordId,
    held: bool,
}

/// Rows that none of the blocked feeds brought; `feeds` is NONE for those of other sources.
const FREE: &str = "(feeds ?? []) CONTAINSNONE $blocked";

/// What may be exported, and the corresponding information on what is withheld: a marking is not defined, or a feed
/// does not allow redistribution.
#[derive(Debug)]
pub struct Withholding<T, H> {
    pub leaving: T,
    pub held: H,
}

/// A relationship between two exported nodes.
#[derive(Debug, Clone)]
pub struct EdgeRecord {
    pub id: Uuid,
    pub source: Uuid,
    pub target: Uuid,
    pub relationship: String,
    pub tlp: Tlp,
    pub confidence: f64,
    /// When it was last changed here, as far as an export shows it.
    pub changed_at: Option<DateTime<Utc>>,
    /// The sentence that states it, for an edge not ingested as STIX.
    pub proof: Option<String>,
    pub created_at: DateTime<Utc>,
    /// The original, for an edge ingested as STIX.
    pub raw: Option<Map<String, Value>>,
}

impl EdgeRecord {
    /// Its STIX id, if it came in as STIX.
    pub fn stix_id(&self) -> Option<&str> {
        self.raw.as_ref().and_then(|raw| text(raw, "id"))
    }
}

#[derive(Debug, SurrealValue)]
struct SupportRaw {
    stix_id: String,
    modified: DateTime<Utc>,
    tlp_rank: i64,
    raw: Bytes,
}

impl Store {
    /// Writes a session and the audit entry of its search as one transaction. When the store takes no writes, the session
    /// lasts as long as the process, and the entry waits for the next start.
    pub async fn save_session(
        &self,
        ws: Uuid,
        record_of: &SessionRecord,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        let session = &record_of.session;
        let row = SessionRow {
            id: record("recall_session", session.id),
            ws,
            user: record_of.user,
            query: session.query.clone(),
            mode: session.mode.as_str().to_owned(),
            include_rejected: record_of.include_rejected,
            result_count: i64::try_from(session.result_count).unwrap_or(i64::MAX),
            max_tlp: i64::from(session.max_tlp.rank()),
            has_red_node: session.has_red_node,
            node_ids: session.node_ids.clone(),
            created_at: session.created_at,
        };
        let what = "saving the recall session failed";
        let saved = self
            .db
            .query("{ INSERT INTO recall_session $recall RETURN NONE; INSERT $audit RETURN NONE; }")
            .bind(("recall", row))
            .bind(("audit", audit_rows([audit])))
            .await
            .and_then(surrealdb::IndexedResults::check)
            .map_err(failed(what));
        match saved {
            Ok(_) => Ok(()),
            Err(DomainError::StorageFailed) => {
                self.keep_in_reserve(vec![audit.clone()]).await?;
                let mut unsaved = self.unsaved.lock();
                if unsaved.len() == MAX_UNSAVED {
                    unsaved.pop_front();
                }
                unsaved.push_back((ws, record_of.clone()));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// A session that could not be stored.
    fn unsaved_session(&self, ws: Uuid, id: Uuid) -> Option<SessionRecord> {
        let unsaved = self.unsaved.lock();
        let found = unsaved
            .iter()
            .find(|(of, record)| (*of, record.session.id) == (ws, id));
        found.map(|(_, record)| record.clone())
    }

    /// The session with this id, if it belongs to the workspace.
    pub async fn session(&self, ws: Uuid, id: Uuid) -> Result<Option<SessionRecord>, DomainError> {
        let what = "reading the recall session failed";
        let mut response = self
            .db
            .query("SELECT * FROM $id WHERE ws = $ws")
            .bind(("id", record("recall_session", id)))
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let row: Option<SessionRow> = response.take(0).map_err(failed(what))?;
        let stored = row.map(SessionRow::into_record).transpose()?;
        Ok(stored.or_else(|| self.unsaved_session(ws, id)))
    }

    /// The sessions of a user in a workspace, newest first.
    pub async fn sessions(
        &self,
        ws: Uuid,
        user: Uuid,
        page: Page,
    ) -> Result<Vec<SessionRecord>, DomainError> {
        let what = "reading the recall sessions failed";
        let Page { limit, offset } = page;
        // The engine reads an index up to a limit only where the limit is written in the query.
        let query = format!(
            "SELECT * FROM recall_session WHERE ws = $ws AND user = $user \
             ORDER BY created_at DESC, id DESC LIMIT {limit} START {offset}"
        );
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .bind(("user", user))
            .await
            .map_err(failed(what))?;
        let rows: Vec<SessionRow> = response.take(0).map_err(failed(what))?;
        rows.into_iter().map(SessionRow::into_record).collect()
    }

    /// The STIX objects in these evidence records of the workspace that are marked no higher than `highest`.
    pub async fn originals(
        &self,
        ws: Uuid,
        evidence: &[Uuid],
        highest: Tlp,
    ) -> Result<Vec<(Uuid, Map<String, Value>)>, DomainError> {
        if evidence.is_empty() {
            return Ok(Vec::new());
        }
        let what = "reading the originals failed";
        let ids: Vec<_> = evidence.iter().map(|id| record("evidence", *id)).collect();
        let rows: Vec<RawRow> = self
            .rows_by_id(
                "SELECT id, raw FROM $ids WHERE ws = $ws AND tlp_rank <= $highest",
                ids,
                &[
                    ("ws", ws.into_value()),
                    ("highest", i64::from(highest.rank()).into_value()),
                ],
            )
            .await
            .map_err(failed(what))?;
        rows.into_iter()
            .map(|row| {
                let raw = row.raw.ok_or_else(|| corrupt("evidence without its original"))?;
                Ok((key(&row.id)?, unpack(&raw)?))
            })
            .collect()
    }

    /// The active relationships among these nodes of the workspace that are marked no higher than `highest`, and the
    /// ends of those withheld; those of `blocked` feeds are.
    pub async fn relationships_among(
        &self,
        ws: Uuid,
        nodes: &[Uuid],
        highest: Tlp,
        blocked: &[Uuid],
    ) -> Result<Withholding<Vec<EdgeRecord>, Vec<(Uuid, Uuid)>>, DomainError> {
        let what = "reading relationships failed";
        let highest = i64::from(highest.rank());
        let ids: Vec<_> = nodes.iter().map(|id| record("node", *id)).collect();
        let mut response = self
            .db
            .query(format!(
                "SELECT id, in AS source, out AS target, !(held_by = NONE AND {FREE}) AS held FROM $ids->edge \
                 WHERE ws = $ws AND active = true AND tlp_rank <= $highest AND !{REFERENCE}"
            ))
            .bind(("ids", ids.clone()))
            .bind(("ws", ws))
            .bind(("highest", highest))
            .bind(("blocked", blocked.to_vec()))
            .await
            .map_err(failed(what))?;
        let ends: Vec<EdgeEnds> = response.take(0).map_err(failed(what))?;
        let among: HashSet<Uuid> = nodes.iter().copied().collect();
        let (mut inner, mut held): (Vec<RecordId>, _) = (Vec::new(), Vec::new());
        for edge in ends {
            let target = key(&edge.target)?;
            match among.contains(&target) {
                true if edge.held => held.push((key(&edge.source)?, target)),
                true => inner.push(edge.id),
                false => {}
            }
        }
        if inner.is_empty() {
            let leaving = Vec::new();
            return Ok(Withholding { leaving, held });
        }
        let rows: Vec<EdgeRow> = self
            .rows_by_id(
                &format!(
                    "SELECT * FROM $ids WHERE ws = $ws AND tlp_rank <= $highest AND held_by = NONE AND {FREE}"
                ),
                inner,
                &[
                    ("ws", ws.into_value()),
                    ("highest", highest.into_value()),
                    ("blocked", blocked.to_vec().into_value()),
                ],
            )
            .await
            .map_err(failed(what))?;
        let leaving = rows.into_iter().map(EdgeRecord::of).collect::<Result<_, _>>()?;
        Ok(Withholding { leaving, held })
    }

    /// The relationships in these rows that are active, not withheld, and with both ends marked no higher than `highest`: one
    /// of something hidden is not there, and counts as nothing that is withheld.
    pub async fn relationships_by_id(
        &self,
        ws: Uuid,
        ids: Vec<Uuid>,
        highest: Tlp,
        blocked: &[Uuid],
    ) -> Result<Vec<EdgeRecord>, DomainError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let query = format!(
            "SELECT * FROM $ids WHERE ws = $ws AND active = true AND tlp_rank <= $highest AND raw != NONE \
             AND in.tlp_rank <= $highest AND out.tlp_rank <= $highest AND held_by = NONE AND {FREE}"
        );
        let rows: Vec<EdgeRow> = self
            .rows_by_id(
                &query,
                ids.into_iter().map(|id| record("edge", id)).collect(),
                &[
                    ("ws", ws.into_value()),
                    ("highest", i64::from(highest.rank()).into_value()),
                    ("blocked", blocked.to_vec().into_value()),
                ],
            )
            .await
            .map_err(failed("reading relationships failed"))?;
        rows.into_iter().map(EdgeRecord::of).collect()
    }

    /// The supporting objects with these STIX ids, which are no marking-definitions: of each the newest version that is
    /// marked no higher than `highest` and not withheld. And the number of those of which every such version is
    /// withheld; those of `blocked` feeds are.
    pub async fn supporting_objects(
        &self,
        ws: Uuid,
        stix_ids: impl IntoIterator<Item = &str>,
        highest: Tlp,
        blocked: &[Uuid],
    ) -> Result<Withholding<Vec<ExportObject>, u64>, DomainError> {
        let ids: Vec<_> = stix_ids.into_iter().flat_map(|id| support_rows(ws, id)).collect();
        if ids.is_empty() {
            let (leaving, held) = (Vec::new(), 0);
            return Ok(Withholding { leaving, held });
        }
        let what = "reading supporting objects failed";
        let parameters = [
            ("ws", ws.into_value()),
            ("highest", i64::from(highest.rank()).into_value()),
            ("blocked", blocked.to_vec().into_value()),
        ];
        let mut held: HashSet<String> = self
            .rows_by_id(
                &format!(
                    "SELECT VALUE stix_id FROM $ids WHERE ws = $ws AND tlp_rank <= $highest \
                     AND !(held_by = NONE AND {FREE})"
                ),
                ids.clone(),
                &parameters,
            )
            .await
            .map_err(failed(what))?
            .into_iter()
            .collect();
        let mut rows: Vec<SupportRaw> = self
            .rows_by_id(
                &format!(
                    "SELECT stix_id, modified, tlp_rank, raw FROM $ids WHERE ws = $ws AND tlp_rank <= $highest \
                     AND held_by = NONE AND {FREE}"
                ),
                ids,
                &parameters,
            )
            .await
            .map_err(failed(what))?;
        // The newest version of each object is the last one.
        rows.sort_unstable_by(|a, b| {
            let order = |row: &SupportRaw| (row.modified, row.tlp_rank);
            (a.stix_id.as_str(), order(a)).cmp(&(b.stix_id.as_str(), order(b)))
        });
        rows.reverse();
        rows.dedup_by(|older, newer| older.stix_id == newer.stix_id);
        let leaving = rows
            .into_iter()
            .map(|row| {
                held.remove(&row.stix_id);
                Ok(ExportObject {
                    raw: unpack(&row.raw)?,
                    tlp: tlp(row.tlp_rank)?,
                    confidence: None,
                    changed_at: None,
                })
            })
            .collect::<Result<_, DomainError>>()?;
        let held = held.len() as u64;
        Ok(Withholding { leaving, held })
    }
}

impl EdgeRecord {
    pub(super) fn of(row: EdgeRow) -> Result<Self, DomainError> {
        Ok(Self {
            id: key(&row.id)?,
            source: key(&row.source)?,
            target: key(&row.target)?,
            relationship: row.relationship,
            tlp: tlp(row.tlp_rank)?,
            confidence: row.confidence,
            changed_at: row.changed_at,
            proof: row.proof,
            created_at: row.created_at,
            raw: row.raw.as_ref().map(unpack).transpose()?,
        })
    }
}

impl SessionRow {
    fn into_record(self) -> Result<SessionRecord, DomainError> {
        Ok(SessionRecord {
            user: self.user,
            include_rejected: self.include_rejected,
            session: RecallSession {
                id: key(&self.id)?,
                query: self.query,
                mode: parse(&self.mode)?,
                result_count: u64::try_from(self.result_count).unwrap_or(0),
                max_tlp: tlp(self.max_tlp)?,
                has_red_node: self.has_red_node,
                node_ids: self.node_ids,
                created_at: self.created_at,
            },
        })
    }
}
