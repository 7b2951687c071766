//! Workspaces, users, API keys and revoked tokens.
//!
//! The rule for administrators: a change is written only if its caller is an enabled administrator in the transaction
//! that writes it, and leaves the workspace with one. Changes that can take an administrator away touch the row of the
//! workspace, because the engine finds conflicts only between transactions that write the same row: of two
//! administrators who remove each other at the same moment, one is tried again and refused.

mod api_keys;
pub(super) mod collections;
mod demo;
pub(super) mod id_secret;
mod tokens;
mod workspaces;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

pub use self::api_keys::ApiKeyRecord;
use self::workspaces::WorkspaceRow;
pub use self::workspaces::{Oversight, WorkspaceChange};
use super::audit::rows::audit_rows;
use super::connection::database::Statement;
use super::connection::error::StoreError;
use super::connection::retry::with_race_retry;
use super::rows::{corrupt, key, parse, record};
use super::{Store, failed};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::permission::{Permission, Role};
use crate::domain::principal::Workspace;

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

/// Changes to a user; `None` leaves a field as it is.
#[derive(Debug, Clone, Default)]
pub struct UserChange {
    pub role: Option<Role>,
    pub disabled: Option<bool>,
    pub password_hash: Option<String>,
    pub tokens_after: Option<DateTime<Utc>>,
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

const READ: &str = "reading identities failed";
const WRITE: &str = "writing identities failed";
const NOT_ADMIN: &str = "the caller is no administrator any more";
const NO_ADMIN_LEFT: &str = "no administrator would be left";

/// Fails a write whose caller is no enabled administrator of the workspace; `$by` and `$by_ws` are set by
/// [`by_admin`].
const ADMIN_ONLY: &str = "IF array::len((SELECT VALUE id FROM $by WHERE ws = $by_ws AND role = 'admin' \
     AND disabled = false)) != 1 { THROW 'the caller is no administrator any more' };";

/// Binds the caller of an audited change, its entry, and what [`ADMIN_ONLY`] needs.
fn by_admin<'a>(statement: Statement<'a>, audit: &AuditEntry) -> Statement<'a> {
    statement
        .bind(("by", audit.user_id.map(|user| record("user", user))))
        .bind(("by_ws", audit.tenant_id))
        .bind(("audit", audit_rows([audit])))
}

impl Store {
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

    /// A user and its workspace, in one round trip. `None` also if the token with this id has been revoked.
    pub async fn user_in_workspace(
        &self,
        user: Uuid,
        ws: Uuid,
        token: Option<Uuid>,
    ) -> Result<Option<(UserRecord, Workspace)>, DomainError> {
        let revoked = "; SELECT VALUE id FROM $revoked";
        let query = format!(
            "SELECT * FROM $user WHERE ws = $ws; SELECT * FROM $workspace{}",
            if token.is_some() { revoked } else { "" }
        );
        let mut response = self
            .db
            .query(query)
            .bind(("user", record("user", user)))
            .bind(("ws", ws))
            .bind(("workspace", record("workspace", ws)))
            .bind(("revoked", token.map(|token| record("revoked_token", token))))
            .await
            .map_err(failed(READ))?;
        let user: Option<UserRow> = response.take(0).map_err(failed(READ))?;
        let workspace: Option<WorkspaceRow> = response.take(1).map_err(failed(READ))?;
        if token.is_some() {
            let revoked: Option<RecordId> = response.take(2).map_err(failed(READ))?;
            if revoked.is_some() {
                return Ok(None);
            }
        }
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

    /// Creates a user, with the audit entry of the administrator who does.
    ///
    /// # Errors
    /// `Conflict` when the e-mail address is taken in this workspace; other workspaces are not disclosed. `Forbidden`
    /// when the caller is no administrator any more.
    pub async fn create_user(&self, user: &UserRecord, audit: &AuditEntry) -> Result<(), DomainError> {
        let query =
            format!("{{ {ADMIN_ONLY} INSERT INTO user $row RETURN NONE; INSERT $audit RETURN NONE; }}");
        self.write(|| by_admin(self.db.query(query.clone()), audit).bind(("row", UserRow::from(user))))
            .await
    }

    /// Changes fields of a user of the caller's workspace, with the audit entry; returns the updated user. Unchanged
    /// fields are not written, so that concurrent changes do not undo each other.
    ///
    /// # Errors
    /// `Forbidden` when the caller is no administrator any more, `Conflict` when no enabled administrator would be
    /// left.
    pub async fn change_user(
        &self,
        id: Uuid,
        change: &UserChange,
        audit: &AuditEntry,
    ) -> Result<UserRecord, DomainError> {
        let touch = match change.role.is_some() || change.disabled.is_some() {
            true => "UPDATE $workspace SET admin_changes = (admin_changes ?? 0) + 1 RETURN NONE;",
            false => "",
        };
        let query = format!(
            "{{ {touch} {ADMIN_ONLY} \
               LET $done = (UPDATE $id SET role = $role ?? role, disabled = $disabled ?? disabled, \
                 password_hash = $hash ?? password_hash, tokens_after = $after ?? tokens_after \
                 WHERE ws = $by_ws); \
               IF array::len($done) != 1 {{ THROW 'user was not changed' }}; \
               IF array::len((SELECT VALUE id FROM user WHERE ws = $by_ws AND role = 'admin' \
                 AND disabled = false)) = 0 {{ THROW '{NO_ADMIN_LEFT}' }}; \
               INSERT $audit RETURN NONE; \
               RETURN $done; }}"
        );
        let row: Option<UserRow> = with_race_retry(|| async {
            let mut response = by_admin(self.db.query(query.clone()), audit)
                .bind(("workspace", record("workspace", audit.tenant_id)))
                .bind(("id", record("user", id)))
                .bind(("role", change.role.map(|role| role.as_str().to_owned())))
                .bind(("disabled", change.disabled))
                .bind(("hash", change.password_hash.clone()))
                .bind(("after", change.tokens_after))
                .await?;
            Ok(response.take(0)?)
        })
        .await
        .map_err(refusal)?;
        row.ok_or_else(|| corrupt("the changed user is gone"))?.try_into()
    }

    /// Replaces the password of an enabled user, if it is still the one of the hash `from`, with the audit entry. Tokens
    /// issued before `now` end.
    ///
    /// # Errors
    /// `Conflict` when the password was changed, or the user disabled, meanwhile.
    pub async fn change_own_password(
        &self,
        id: Uuid,
        (from, to): (String, String),
        now: DateTime<Utc>,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        let query = "{ LET $done = (UPDATE $id SET password_hash = $to, tokens_after = $now \
                       WHERE ws = $ws AND password_hash = $from AND disabled = false RETURN VALUE id); \
                     IF array::len($done) = 1 { INSERT $audit RETURN NONE }; \
                     RETURN array::len($done); }";
        let done: Option<i64> = with_race_retry(|| async {
            let statement = self.db.query(query).bind(("id", record("user", id)));
            let statement = statement.bind(("from", from.clone())).bind(("to", to.clone()));
            let statement = statement.bind(("now", now)).bind(("ws", audit.tenant_id));
            Ok(statement.bind(("audit", audit_rows([audit]))).await?.take(0)?)
        })
        .await
        .map_err(refusal)?;
        match done {
            Some(1) => Ok(()),
            Some(_) | None => Err(DomainError::Conflict("the password was changed meanwhile".into())),
        }
    }

    /// Sets the password of a user, with the audit entry. Tokens issued before `now` end. What an operator does on the
    /// machine, where nobody is signed in.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn reset_password(
        &self,
        id: Uuid,
        hash: String,
        now: DateTime<Utc>,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        let query = "{ UPDATE $id SET password_hash = $hash, tokens_after = $now WHERE ws = $ws RETURN NONE; \
                     INSERT $audit RETURN NONE; }";
        self.write(|| {
            let statement = self.db.query(query).bind(("id", record("user", id)));
            let statement = statement.bind(("hash", hash.clone())).bind(("now", now));
            statement
                .bind(("ws", audit.tenant_id))
                .bind(("audit", audit_rows([audit])))
        })
        .await
    }

    /// Adds a user, with the audit entry. What an operator does on the machine, where nobody is signed in.
    ///
    /// # Errors
    /// `Conflict` when the e-mail address is taken in this workspace.
    pub async fn add_admin(&self, user: &UserRecord, audit: &AuditEntry) -> Result<(), DomainError> {
        let query = "{ INSERT INTO user $row RETURN NONE; INSERT $audit RETURN NONE; }";
        self.write(|| {
            let statement = self.db.query(query).bind(("row", UserRow::from(user)));
            statement.bind(("audit", audit_rows([audit])))
        })
        .await
    }

    /// Runs one write statement, retrying when it lost a race.
    pub(super) async fn write<'a>(&self, query: impl Fn() -> Statement<'a>) -> Result<(), DomainError> {
        with_race_retry(|| async {
            query().await?.check()?;
            Ok(())
        })
        .await
        .map_err(refusal)
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

/// What the caller of a change is told when it fails.
fn refusal(error: StoreError) -> DomainError {
    let StoreError::Database(cause) = &error else {
        return error.into_domain(WRITE);
    };
    let cause = cause.message();
    if cause.contains("user_ws_email") {
        DomainError::Conflict("email: is already in use".into())
    } else if cause.contains(NOT_ADMIN) {
        DomainError::Forbidden(format!("permission {} required", Permission::Admin))
    } else if cause.contains(collections::ALIAS_TAKEN) {
        DomainError::Conflict(format!("alias: {}", collections::ALIAS_TAKEN))
    } else if cause.contains(collections::TOO_MANY) {
        let most = collections::MAX_COLLECTIONS;
        DomainError::Conflict(format!("a workspace has at most {most} collections"))
    } else if cause.contains(NO_ADMIN_LEFT) {
        DomainError::Conflict("a workspace must keep an administrator who is not disabled".into())
    } else {
        error.into_domain(WRITE)
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
