//! Questions and other texts that name what is erased: those of sessions, and those beside the audit log.

use std::collections::HashSet;

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::{ErasureJob, PartRow, READ};
use crate::domain::audit::AuditText;
use crate::domain::erasure::{ErasedNames, ErasureKind};
use crate::domain::error::DomainError;
use crate::store::audit::rows::TextsRow;
use crate::store::rows::{NodeRow, key, record, up_to_limit};
use crate::store::{Store, failed};

/// Rows read at a time.
const PAGE: usize = 1000;

#[derive(Debug, SurrealValue)]
struct Asked {
    id: RecordId,
    query: String,
    max_tlp: i64,
}

/// What texts are about that go.
#[derive(Debug)]
pub struct ErasedSubjects {
    /// The names of nodes, and the address of a user.
    names: Option<ErasedNames>,
    /// What entries of the audit log are about: the feed with its batches, the user or the workspace.
    ids: HashSet<String>,
}

impl Store {
    /// What the texts are about that an erasure is still to remove.
    pub async fn subjects_to_erase(&self, job: &ErasureJob) -> Result<ErasedSubjects, DomainError> {
        let range = "erasure_part:[$erasure, 0]..[$erasure, $end]";
        let statement = self.db.query(format!("SELECT * FROM {range}"));
        let statement = statement
            .bind(("erasure", job.erasure.id))
            .bind(("end", i64::MAX));
        let mut response = statement.await.map_err(failed(READ))?;
        let parts: Vec<PartRow> = response.take(0).map_err(failed(READ))?;
        let mut names = Vec::new();
        for part in parts.into_iter().filter(|part| !part.nodes.is_empty()) {
            let ids: Vec<RecordId> = part.nodes.iter().map(|id| record("node", *id)).collect();
            let statement = self
                .db
                .query("SELECT * FROM $ids WHERE ws = $ws")
                .bind(("ws", job.ws));
            let mut response = statement.bind(("ids", ids)).await.map_err(failed(READ))?;
            let rows: Vec<NodeRow> = response.take(0).map_err(failed(READ))?;
            for row in rows {
                let fields = row.correctable()?;
                names.push(fields.name);
                names.extend(fields.aliases);
            }
        }
        if let (ErasureKind::User, Some(user)) = (job.erasure.what, job.owner) {
            let found = self.user(user).await?;
            names.extend(found.filter(|user| user.ws == job.ws).map(|user| user.email));
        }
        let mut ids: HashSet<String> = job.owner.iter().map(Uuid::to_string).collect();
        if let (ErasureKind::Feed, Some(feed)) = (job.erasure.what, job.owner) {
            let query = "SELECT VALUE id FROM feed_batch WHERE ws = $ws AND feed = $feed";
            let statement = self.db.query(query).bind(("ws", job.ws)).bind(("feed", feed));
            let mut response = statement.await.map_err(failed(READ))?;
            let batches: Vec<RecordId> = response.take(0).map_err(failed(READ))?;
            for batch in &batches {
                ids.insert(key(batch)?.to_string());
            }
        }
        let names = ErasedNames::of(names);
        Ok(ErasedSubjects { names, ids })
    }

    /// Removes the sessions whose question has one of the names, and the texts beside the audit log that have one or are about
    /// something that goes.
    pub async fn forget_texts(&self, job: &ErasureJob, subjects: &ErasedSubjects) -> Result<(), DomainError> {
        if let Some(names) = &subjects.names {
            self.forget_sessions(job, names).await?;
        }
        let are_named = |text: &AuditText| {
            subjects
                .names
                .as_ref()
                .is_some_and(|names| names.are_in(text.text()))
        };
        let mut texts = Vec::new();
        let mut last: Option<RecordId> = None;
        loop {
            let page = self.texts_after(job.ws, last.as_ref()).await?;
            last = page.last().map(|row| row.id.clone());
            let is_last = page.len() < PAGE;
            for row in page {
                if row.is_on(&subjects.ids) || row.texts()?.values().any(are_named) {
                    texts.push(row.id);
                }
            }
            if is_last {
                break;
            }
        }
        self.remove_in_parts(job, &texts, Some(|counts| &mut counts.audit_texts))
            .await
    }

    async fn forget_sessions(&self, job: &ErasureJob, names: &ErasedNames) -> Result<(), DomainError> {
        let query = "SELECT id, query, max_tlp FROM recall_session WHERE ws = $ws";
        let mut response = self
            .db
            .query(query)
            .bind(("ws", job.ws))
            .await
            .map_err(failed(READ))?;
        let asked: Vec<Asked> = response.take(0).map_err(failed(READ))?;
        let asked = asked.into_iter().filter(|session| names.are_in(&session.query));
        let highest = i64::from(job.highest.rank());
        let (seen, hidden): (Vec<_>, Vec<_>) = asked.partition(|session| session.max_tlp <= highest);
        let ids =
            |sessions: Vec<Asked>| -> Vec<RecordId> { sessions.into_iter().map(|one| one.id).collect() };
        self.remove_in_parts(job, &ids(seen), Some(|counts| &mut counts.sessions))
            .await?;
        self.remove_in_parts(job, &ids(hidden), None).await?;
        self.unsaved
            .lock()
            .retain(|(of, record)| *of != job.ws || !names.are_in(&record.session.query));
        Ok(())
    }

    async fn texts_after(&self, ws: Uuid, last: Option<&RecordId>) -> Result<Vec<TextsRow>, DomainError> {
        let next = Uuid::from_u128(ws.as_u128().wrapping_add(1));
        let range = match last {
            Some(_) => up_to_limit("audit_text:[$ws, $ord, $entry]>..[$next]"),
            None => up_to_limit("audit_text:[$ws]..[$next]"),
        };
        let place = last.map(TextsRow::place_of).transpose()?;
        let statement = self.db.query(format!("SELECT * FROM {range} LIMIT {PAGE}"));
        let statement = statement.bind(("ws", ws)).bind(("next", next));
        let statement = statement.bind(("ord", place.map(|(ord, _)| ord)));
        let statement = statement.bind(("entry", place.map(|(_, entry)| entry)));
        let mut response = statement.await.map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }
}
