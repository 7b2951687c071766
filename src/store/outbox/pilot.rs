//! Pilot requests.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::pilot::{Notification, PilotRequest};
use crate::store::audit::rows::audit_rows;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_race_retry;
use crate::store::rows::{key, newest_first, parse, record};
use crate::store::{Store, failed};

const READ: &str = "reading the pilot requests failed";

#[derive(Debug, Clone, SurrealValue)]
struct PilotRow {
    id: RecordId,
    ws: Uuid,
    name: String,
    email: String,
    org: String,
    role: String,
    cti_stack: Option<String>,
    notification: String,
    created_at: DateTime<Utc>,
    ord: i64,
}

impl Store {
    /// Stores a request with its audit entry and, if its notification is pending, the e-mail to be sent about it.
    ///
    /// # Errors
    /// The database failed; nothing is stored then.
    pub async fn submit_pilot(
        &self,
        ws: Uuid,
        request: &PilotRequest,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        let block = "{ \
            INSERT INTO pilot_request $request RETURN NONE; \
            IF $notify { \
                INSERT INTO outbox { id: $outbox, ws: $ws, state: 'pending', attempts: 0, queued_at: time::now(), \
                    next_attempt: time::now() } RETURN NONE \
            }; \
            INSERT $audit RETURN NONE; \
            }";
        with_race_retry(|| async {
            self.db
                .query(block)
                .bind(("request", PilotRow::new(ws, request)))
                .bind(("notify", request.notification == Notification::Pending))
                .bind(("outbox", record("outbox", request.id)))
                .bind(("ws", ws))
                .bind(("audit", audit_rows([audit])))
                .await?
                .check()?;
            Ok(())
        })
        .await
        .map_err(|error: StoreError| error.into_domain("storing the pilot request failed"))
    }

    /// The pilot requests of a workspace, newest first.
    ///
    /// # Errors
    /// The database failed.
    pub async fn pilot_requests(
        &self,
        ws: Uuid,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<PilotRequest>, DomainError> {
        // Literals: the engine sorts all rows when the limit is a parameter.
        let query =
            format!("SELECT * FROM pilot_request WHERE ws = $ws ORDER BY ord LIMIT {limit} START {offset}");
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .await
            .map_err(failed(READ))?;
        let rows: Vec<PilotRow> = response.take(0).map_err(failed(READ))?;
        rows.into_iter().map(PilotRow::into_request).collect()
    }

    /// The pilot request with this id, if it belongs to the workspace.
    ///
    /// # Errors
    /// The database failed.
    pub async fn pilot_request(&self, ws: Uuid, id: Uuid) -> Result<Option<PilotRequest>, DomainError> {
        let mut response = self
            .db
            .query("SELECT * FROM $request WHERE ws = $ws")
            .bind(("request", record("pilot_request", id)))
            .bind(("ws", ws))
            .await
            .map_err(failed(READ))?;
        let row: Option<PilotRow> = response.take(0).map_err(failed(READ))?;
        row.map(PilotRow::into_request).transpose()
    }
}

impl PilotRow {
    fn new(ws: Uuid, request: &PilotRequest) -> Self {
        Self {
            id: record("pilot_request", request.id),
            ws,
            name: request.name.clone(),
            email: request.email.clone(),
            org: request.org.clone(),
            role: request.role.as_str().to_owned(),
            cti_stack: request.cti_stack.clone(),
            notification: request.notification.as_str().to_owned(),
            created_at: request.created_at,
            ord: newest_first(request.created_at),
        }
    }

    fn into_request(self) -> Result<PilotRequest, DomainError> {
        Ok(PilotRequest {
            id: key(&self.id)?,
            name: self.name,
            email: self.email,
            org: self.org,
            role: parse(&self.role)?,
            cti_stack: self.cti_stack,
            created_at: self.created_at,
            notification: parse(&self.notification)?,
        })
    }
}
