//! API keys.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::{ADMIN_ONLY, READ, by_admin, refusal};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::permission::Scope;
use crate::store::connection::retry::with_race_retry;
use crate::store::rows::{key, parse, record};
use crate::store::{Store, failed};

/// An API key as stored: only the digest of its secret is kept.
#[derive(Debug, Clone)]
pub struct ApiKeyRecord {
    pub id: Uuid,
    pub ws: Uuid,
    pub owner: Uuid,
    pub name: String,
    pub key_hash: String,
    pub scopes: Vec<Scope>,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, SurrealValue)]
struct ApiKeyRow {
    id: RecordId,
    ws: Uuid,
    owner: Uuid,
    name: String,
    key_hash: String,
    scopes: Vec<String>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

impl Store {
    /// The API key whose secret has this digest.
    pub async fn api_key_by_hash(&self, hash: &str) -> Result<Option<ApiKeyRecord>, DomainError> {
        let mut response = self
            .db
            .query("SELECT * FROM api_key WHERE key_hash = $hash")
            .bind(("hash", hash.to_owned()))
            .await
            .map_err(failed(READ))?;
        let row: Option<ApiKeyRow> = response.take(0).map_err(failed(READ))?;
        row.map(ApiKeyRecord::try_from).transpose()
    }

    /// The API keys of a workspace, oldest first.
    pub async fn api_keys(&self, ws: Uuid) -> Result<Vec<ApiKeyRecord>, DomainError> {
        let rows: Vec<ApiKeyRow> = self
            .select("SELECT * FROM api_key WHERE ws = $key ORDER BY created_at", ws)
            .await?;
        rows.into_iter().map(ApiKeyRecord::try_from).collect()
    }

    /// The API keys of all workspaces that are valid and end in this time.
    pub async fn ending_api_keys(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<ApiKeyRecord>, DomainError> {
        let query =
            "SELECT * FROM api_key WHERE revoked_at = NONE AND expires_at > $now AND expires_at <= $until";
        let statement = self.db.query(query).bind(("now", now)).bind(("until", until));
        let mut response = statement.await.map_err(failed(READ))?;
        let rows: Vec<ApiKeyRow> = response.take(0).map_err(failed(READ))?;
        rows.into_iter().map(ApiKeyRecord::try_from).collect()
    }

    /// Creates an API key, with the audit entry.
    pub async fn create_api_key(
        &self,
        api_key: &ApiKeyRecord,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        let query =
            format!("{{ {ADMIN_ONLY} INSERT INTO api_key $row RETURN NONE; INSERT $audit RETURN NONE; }}");
        self.write(|| by_admin(self.db.query(query.clone()), audit).bind(("row", ApiKeyRow::from(api_key))))
            .await
    }

    /// Revokes an API key of the workspace, with the audit entry; false when there is no such key.
    pub async fn revoke_api_key(
        &self,
        ws: Uuid,
        id: Uuid,
        now: DateTime<Utc>,
        audit: &AuditEntry,
    ) -> Result<bool, DomainError> {
        let query = format!(
            "{{ {ADMIN_ONLY} \
               LET $done = (UPDATE $id SET revoked_at = revoked_at ?? $now WHERE ws = $ws RETURN id); \
               IF array::len($done) = 1 {{ INSERT $audit RETURN NONE }}; \
               RETURN array::len($done); }}"
        );
        let changed: Option<i64> = with_race_retry(|| async {
            let mut response = by_admin(self.db.query(query.clone()), audit)
                .bind(("id", record("api_key", id)))
                .bind(("ws", ws))
                .bind(("now", now))
                .await?;
            Ok(response.take(0)?)
        })
        .await
        .map_err(refusal)?;
        Ok(changed == Some(1))
    }
}

impl From<&ApiKeyRecord> for ApiKeyRow {
    fn from(api_key: &ApiKeyRecord) -> Self {
        Self {
            id: record("api_key", api_key.id),
            ws: api_key.ws,
            owner: api_key.owner,
            name: api_key.name.clone(),
            key_hash: api_key.key_hash.clone(),
            scopes: api_key
                .scopes
                .iter()
                .map(|scope| scope.as_str().to_owned())
                .collect(),
            expires_at: api_key.expires_at,
            revoked_at: api_key.revoked_at,
            created_at: api_key.created_at,
        }
    }
}

impl TryFrom<ApiKeyRow> for ApiKeyRecord {
    type Error = DomainError;

    fn try_from(row: ApiKeyRow) -> Result<Self, DomainError> {
        let scopes = row
            .scopes
            .iter()
            .map(|scope| parse(scope))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            id: key(&row.id)?,
            ws: row.ws,
            owner: row.owner,
            name: row.name,
            key_hash: row.key_hash,
            scopes,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            created_at: row.created_at,
        })
    }
}
