//! Revoked tokens: each is kept until it would have expired.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::store::Store;
use crate::store::audit::rows::audit_rows;
use crate::store::rows::record;

/// Rows removed in one transaction.
const CHUNK: usize = 500;

#[derive(Debug, Clone, SurrealValue)]
struct RevokedRow {
    id: RecordId,
    expires_at: DateTime<Utc>,
}

impl Store {
    /// Revokes a token, with the audit entry. A token may be revoked twice.
    pub async fn revoke_token(
        &self,
        token: Uuid,
        expires_at: DateTime<Utc>,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        let row = RevokedRow {
            id: record("revoked_token", token),
            expires_at,
        };
        self.write(|| {
            self.db
                .query("{ INSERT IGNORE INTO revoked_token $row RETURN NONE; INSERT $audit RETURN NONE; }")
                .bind(("row", row.clone()))
                .bind(("audit", audit_rows([audit])))
        })
        .await
    }

    /// Forgets the revoked tokens that have expired by `now`; returns their number.
    pub async fn sweep_tokens(&self, now: DateTime<Utc>) -> Result<usize, DomainError> {
        let query = format!("SELECT VALUE id FROM revoked_token WHERE expires_at < $before LIMIT {CHUNK}");
        self.sweep(&query, now, "DELETE $ids RETURN NONE").await
    }
}
