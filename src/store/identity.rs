//! Workspaces, users and API keys.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::audit_rows::audit_rows;
use super::connect::StoreError;
use super::database::Statement;
use super::retry::with_race_retry;
use super::rows::{corrupt, key, parse, record, tlp};
use super::{Store, failed};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::permission::{Role, Scope, Tier};
use crate::domain::principal::{Features, Workspace};
use crate::domain::tlp::Tlp;

/// A user as stored.
#[derive(Debug, Clone)]
pub struct UserRecord {
    pub id: Uuid,
    pub ws: Uuid,
    pub email: String,
    pub password_hash: Option<String>,
    pub role: Role,
    pub disabled: bool,
    /// Tokens issued before this moment are refused.
    pub tokens_after: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
}

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

/// Changes to the settings of a workspace; `None` leaves a setting as it is.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceChange {
    pub tlp_ceiling: Option<Tlp>,
    pub elevated_clearance: Option<bool>,
    pub red_export_grant: Option<bool>,
    pub tier: Option<Tier>,
    pub features: Option<Features>,
}

/// Changes to a user; `None` leaves a field as it is.
#[derive(Debug, Clone, Default)]
pub struct UserChange {
    pub role: Option<Role>,
    pub disabled: Option<bool>,
    pub password_hash: Option<String>,
    pub tokens_after: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, SurrealValue)]
struct WorkspaceRow {
    id: RecordId,
    name: String,
    tier: String,
    tlp_ceiling: i64,
    elevated_clearance: bool,
    red_export_grant: bool,
    features: Vec<String>,
    is_operator: bool,
    is_demo: bool,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, SurrealValue)]
struct UserRow {
    id: RecordId,
    ws: Uuid,
    email: String,
    password_hash: Option<String>,
    role: String,
    disabled: bool,
    tokens_after: DateTime<Utc>,
    created_at: DateTime<Utc>,
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

const READ: &str = "reading identities failed";
const WRITE: &str = "writing identities failed";

impl Store {
    /// The workspace with this id.
    pub async fn workspace(&self, id: Uuid) -> Result<Option<Workspace>, DomainError> {
        let rows: Vec<WorkspaceRow> = self.select("SELECT * FROM $key", record("workspace", id)).await?;
        rows.into_iter().next().map(Workspace::try_from).transpose()
    }

    /// Ids of all workspaces, oldest first.
    pub async fn workspace_ids(&self) -> Result<Vec<Uuid>, DomainError> {
        let rows: Vec<WorkspaceRow> = self
            .select(
                "SELECT * FROM workspace ORDER BY created_at",
                record("workspace", Uuid::nil()),
            )
            .await?;
        rows.iter().map(|row| key(&row.id)).collect()
    }

    /// Id of the operator's workspace.
    pub async fn operator_workspace(&self) -> Result<Option<Uuid>, DomainError> {
        let query = "SELECT * FROM workspace WHERE is_operator = true";
        let rows: Vec<WorkspaceRow> = self.select(query, record("workspace", Uuid::nil())).await?;
        rows.first().map(|row| key(&row.id)).transpose()
    }

    /// The workspace that holds the public demo data, if it has been loaded.
    pub async fn demo_workspace(&self) -> Result<Option<Workspace>, DomainError> {
        let query = "SELECT * FROM workspace WHERE is_demo = true";
        let rows: Vec<WorkspaceRow> = self.select(query, record("workspace", Uuid::nil())).await?;
        rows.into_iter().next().map(Workspace::try_from).transpose()
    }

    /// Creates a workspace, with its first user and the audit entry if given.
    pub async fn create_workspace(
        &self,
        workspace: &Workspace,
        is_demo: bool,
        admin: Option<&UserRecord>,
        audit: Option<&AuditEntry>,
        now: DateTime<Utc>,
    ) -> Result<(), DomainError> {
        let row = WorkspaceRow {
            id: record("workspace", workspace.id),
            name: workspace.name.clone(),
            tier: workspace.tier.as_str().into(),
            tlp_ceiling: i64::from(workspace.tlp_ceiling.rank()),
            elevated_clearance: workspace.elevated_clearance,
            red_export_grant: workspace.red_export_grant,
            features: workspace.features.clone(),
            is_operator: workspace.is_operator,
            is_demo,
            created_at: now,
        };
        let users: Vec<UserRow> = admin.map(UserRow::from).into_iter().collect();
        self.write(|| {
            self.db
                .query(
                    "{ INSERT INTO workspace $row RETURN NONE; \
                       IF array::len($users) > 0 { INSERT INTO user $users RETURN NONE }; \
                       IF array::len($audit) > 0 { INSERT $audit RETURN NONE }; }",
                )
                .bind(("row", row.clone()))
                .bind(("users", users.clone()))
                .bind(("audit", audit_rows(audit)))
        })
        .await
    }

    /// Changes settings of a workspace, with the audit entry of the change.
    pub async fn change_workspace(
        &self,
        id: Uuid,
        change: &WorkspaceChange,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        self.write(|| {
            self.db
                .query(
                    "{ LET $done = (UPDATE $id SET tlp_ceiling = $ceiling ?? tlp_ceiling, \
                         elevated_clearance = $elevated ?? elevated_clearance, \
                         red_export_grant = $grant ?? red_export_grant, \
                         tier = $tier ?? tier, features = $features ?? features RETURN id); \
                       IF array::len($done) != 1 { THROW 'workspace was not changed' }; \
                       INSERT $audit RETURN NONE; }",
                )
                .bind(("id", record("workspace", id)))
                .bind(("ceiling", change.tlp_ceiling.map(|tlp| i64::from(tlp.rank()))))
                .bind(("elevated", change.elevated_clearance))
                .bind(("grant", change.red_export_grant))
                .bind(("tier", change.tier.map(|tier| tier.as_str().to_owned())))
                .bind(("features", change.features.clone().map(Vec::from)))
                .bind(("audit", audit_rows([audit])))
        })
        .await
    }

    /// The accounts of an e-mail address (compared in lower case), at most `most`: enabled ones first, then oldest
    /// first. With a workspace, by name or id, only those in it.
    pub async fn accounts_of(
        &self,
        email: &str,
        workspace: Option<&str>,
        most: usize,
    ) -> Result<Vec<UserRecord>, DomainError> {
        let inside = if workspace.is_some() {
            "AND (ws = $id OR type::record('workspace', ws).name = $name)"
        } else {
            ""
        };
        let query = format!(
            "SELECT * FROM user WHERE email = $email {inside} ORDER BY disabled, created_at LIMIT {most}"
        );
        let mut response = self
            .db
            .query(query)
            .bind(("email", email.to_lowercase()))
            .bind(("name", workspace.map(str::to_owned)))
            .bind(("id", workspace.and_then(|text| text.parse::<Uuid>().ok())))
            .await
            .map_err(failed(READ))?;
        let rows: Vec<UserRow> = response.take(0).map_err(failed(READ))?;
        rows.into_iter().map(UserRecord::try_from).collect()
    }

    /// The user with this id.
    pub async fn user(&self, id: Uuid) -> Result<Option<UserRecord>, DomainError> {
        let rows: Vec<UserRow> = self.select("SELECT * FROM $key", record("user", id)).await?;
        rows.into_iter().next().map(UserRecord::try_from).transpose()
    }

    /// A user and its workspace, in one round trip.
    pub async fn user_in_workspace(
        &self,
        user: Uuid,
        ws: Uuid,
    ) -> Result<Option<(UserRecord, Workspace)>, DomainError> {
        let mut response = self
            .db
            .query("SELECT * FROM $user WHERE ws = $ws; SELECT * FROM $workspace")
            .bind(("user", record("user", user)))
            .bind(("ws", ws))
            .bind(("workspace", record("workspace", ws)))
            .await
            .map_err(failed(READ))?;
        let user: Option<UserRow> = response.take(0).map_err(failed(READ))?;
        let workspace: Option<WorkspaceRow> = response.take(1).map_err(failed(READ))?;
        match (user, workspace) {
            (Some(user), Some(workspace)) => Ok(Some((user.try_into()?, workspace.try_into()?))),
            _ => Ok(None),
        }
    }

    /// The users of a workspace, oldest first.
    pub async fn users(&self, ws: Uuid) -> Result<Vec<UserRecord>, DomainError> {
        let rows: Vec<UserRow> = self
            .select("SELECT * FROM user WHERE ws = $key ORDER BY created_at", ws)
            .await?;
        rows.into_iter().map(UserRecord::try_from).collect()
    }

    /// Creates a user, with the audit entry.
    ///
    /// # Errors
    /// `Conflict` when the e-mail address is taken in this workspace; other workspaces are not disclosed.
    pub async fn create_user(&self, user: &UserRecord, audit: &AuditEntry) -> Result<(), DomainError> {
        self.write(|| {
            self.db
                .query("{ INSERT INTO user $row RETURN NONE; INSERT $audit RETURN NONE; }")
                .bind(("row", UserRow::from(user)))
                .bind(("audit", audit_rows([audit])))
        })
        .await
    }

    /// Changes fields of a user, with the audit entry; returns the updated user. Unchanged fields are not written, so
    /// that concurrent changes do not undo each other.
    pub async fn change_user(
        &self,
        id: Uuid,
        change: &UserChange,
        audit: &AuditEntry,
    ) -> Result<UserRecord, DomainError> {
        let row: Option<UserRow> = with_race_retry(|| async {
            let mut response = self
                .db
                .query(
                    "{ LET $done = (UPDATE $id SET role = $role ?? role, disabled = $disabled ?? disabled, \
                         password_hash = $hash ?? password_hash, tokens_after = $after ?? tokens_after); \
                       IF array::len($done) != 1 { THROW 'user was not changed' }; \
                       INSERT $audit RETURN NONE; \
                       RETURN $done; }",
                )
                .bind(("id", record("user", id)))
                .bind(("role", change.role.map(|role| role.as_str().to_owned())))
                .bind(("disabled", change.disabled))
                .bind(("hash", change.password_hash.clone()))
                .bind(("after", change.tokens_after))
                .bind(("audit", audit_rows([audit])))
                .await?;
            Ok(response.take(0)?)
        })
        .await
        .map_err(|error: StoreError| error.into_domain(WRITE))?;
        row.ok_or_else(|| corrupt("the changed user is gone"))?.try_into()
    }

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

    /// Creates an API key, with the audit entry.
    pub async fn create_api_key(
        &self,
        api_key: &ApiKeyRecord,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        self.write(|| {
            self.db
                .query("{ INSERT INTO api_key $row RETURN NONE; INSERT $audit RETURN NONE; }")
                .bind(("row", ApiKeyRow::from(api_key)))
                .bind(("audit", audit_rows([audit])))
        })
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
        let changed: Option<i64> = with_race_retry(|| async {
            let mut response = self
                .db
                .query(
                    "{ LET $done = (UPDATE $id SET revoked_at = revoked_at ?? $now WHERE ws = $ws RETURN id); \
                       IF array::len($done) = 1 { INSERT $audit RETURN NONE }; \
                       RETURN array::len($done); }",
                )
                .bind(("id", record("api_key", id)))
                .bind(("ws", ws))
                .bind(("now", now))
                .bind(("audit", audit_rows([audit])))
                .await?;
            Ok(response.take(0)?)
        })
        .await
        .map_err(|error: StoreError| error.into_domain(WRITE))?;
        Ok(changed == Some(1))
    }

    /// Runs one write statement, retrying when it lost a race.
    pub(super) async fn write<'a>(&self, query: impl Fn() -> Statement<'a>) -> Result<(), DomainError> {
        with_race_retry(|| async {
            query().await?.check()?;
            Ok(())
        })
        .await
        .map_err(|error: StoreError| {
            if let StoreError::Database(cause) = &error
                && cause.message().contains("user_ws_email")
            {
                return DomainError::Conflict("email: is already in use".into());
            }
            error.into_domain(WRITE)
        })
    }

    pub(super) async fn select<T: SurrealValue>(
        &self,
        query: &str,
        key: impl SurrealValue + 'static,
    ) -> Result<Vec<T>, DomainError> {
        let mut response = self
            .db
            .query(query.to_owned())
            .bind(("key", key))
            .await
            .map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }
}

impl TryFrom<WorkspaceRow> for Workspace {
    type Error = DomainError;

    fn try_from(row: WorkspaceRow) -> Result<Self, DomainError> {
        Ok(Self {
            id: key(&row.id)?,
            name: row.name,
            tier: parse(&row.tier)?,
            tlp_ceiling: tlp(row.tlp_ceiling)?,
            elevated_clearance: row.elevated_clearance,
            red_export_grant: row.red_export_grant,
            features: row.features,
            created_at: row.created_at,
            is_operator: row.is_operator,
        })
    }
}

impl From<&UserRecord> for UserRow {
    fn from(user: &UserRecord) -> Self {
        Self {
            id: record("user", user.id),
            ws: user.ws,
            email: user.email.to_lowercase(),
            password_hash: user.password_hash.clone(),
            role: user.role.as_str().into(),
            disabled: user.disabled,
            tokens_after: user.tokens_after,
            created_at: user.created_at,
        }
    }
}

impl TryFrom<UserRow> for UserRecord {
    type Error = DomainError;

    fn try_from(row: UserRow) -> Result<Self, DomainError> {
        Ok(Self {
            id: key(&row.id)?,
            ws: row.ws,
            email: row.email,
            password_hash: row.password_hash,
            role: parse(&row.role)?,
            disabled: row.disabled,
            tokens_after: row.tokens_after,
            created_at: row.created_at,
        })
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
