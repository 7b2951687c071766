//! Administration of a workspace: users, API keys, settings.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde::Serialize;
use uuid::Uuid;

use super::{IdentityCore, run_hashing};
use crate::actors::worker::{Access, Tenant, Work};
use crate::auth::{api_key, password};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::email::is_email;
use crate::domain::error::DomainError;
use crate::domain::label::Label;
use crate::domain::password::check_new;
use crate::domain::permission::{Role, Scope, Scopes, Tier};
use crate::domain::principal::{KNOWLEDGE_GRAPH, Principal, Workspace};
use crate::domain::tlp::Tlp;
use crate::store::{ApiKeyRecord, UserChange, UserRecord, WorkspaceChange};

/// A user as administrators see it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = User)]
pub struct UserView {
    pub id: Uuid,
    #[schema(example = "analyst@example.com")]
    pub email: String,
    pub role: Role,
    #[schema(example = false)]
    pub disabled: bool,
    pub created_at: DateTime<Utc>,
}

impl From<UserRecord> for UserView {
    fn from(user: UserRecord) -> Self {
        let UserRecord {
            id,
            email,
            role,
            disabled,
            created_at,
            ..
        } = user;
        Self {
            id,
            email,
            role,
            disabled,
            created_at,
        }
    }
}

/// An API key as administrators see it: never its secret.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = ApiKey)]
pub struct ApiKeyView {
    pub id: Uuid,
    #[schema(example = "collector")]
    pub name: String,
    pub scopes: Vec<Scope>,
    /// The user who made it.
    pub owner: Uuid,
    #[schema(required)]
    pub expires_at: Option<DateTime<Utc>>,
    #[schema(required)]
    pub revoked_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

impl From<ApiKeyRecord> for ApiKeyView {
    fn from(key: ApiKeyRecord) -> Self {
        let ApiKeyRecord {
            id,
            name,
            scopes,
            owner,
            expires_at,
            revoked_at,
            created_at,
            ..
        } = key;
        Self {
            id,
            name,
            scopes,
            owner,
            expires_at,
            revoked_at,
            created_at,
        }
    }
}

/// A newly created key; the only time its secret is shown.
#[derive(Debug)]
pub struct NewApiKey {
    pub view: ApiKeyView,
    pub key: SecretString,
}

#[derive(Debug)]
pub struct ListUsers {
    pub by: Principal,
}
impl Work for ListUsers {
    type Core = IdentityCore;
    type Reply = Vec<UserView>;
    const NAME: &'static str = "list_users";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let users = core.store.users(self.by.workspace.id).await?;
        Ok(users.into_iter().map(UserView::from).collect())
    }
}

#[derive(Debug)]
pub struct CreateUser {
    pub by: Principal,
    pub email: String,
    pub password: SecretString,
    pub role: Role,
}
impl Work for CreateUser {
    type Core = IdentityCore;
    type Reply = UserView;
    const NAME: &'static str = "create_user";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let CreateUser {
            by,
            email,
            password,
            role,
        } = self;
        check_new("password", &password, &email)?;
        let user = new_user(by.workspace.id, "email", &email, password, role).await?;
        let entry = AuditEntry::by(&by, "admin.user_create", "user", Outcome::Success, clock::now())
            .on(user.id)
            .with_text("email", &user.email)
            .with("role", role.as_str());
        core.store.create_user(&user, &entry).await?;
        core.chain(entry).await;
        Ok(user.into())
    }
}

/// Changes every field that is `Some`.
#[derive(Debug)]
pub struct ChangeUser {
    pub by: Principal,
    pub user: Uuid,
    pub password: Option<SecretString>,
    pub role: Option<Role>,
    pub disabled: Option<bool>,
}
impl Work for ChangeUser {
    type Core = IdentityCore;
    type Reply = UserView;
    const NAME: &'static str = "change_user";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let ChangeUser {
            by,
            user,
            password,
            role,
            disabled,
        } = self;
        let found = core
            .store
            .user(user)
            .await?
            .filter(|found| found.ws == by.workspace.id);
        let found = found.ok_or(DomainError::NotFound("user"))?;
        let own = found.id == by.user_id();
        if own && (disabled == Some(true) || role.is_some_and(|role| role != found.role)) {
            return Err(DomainError::Conflict(
                "administrators can't disable or demote themselves".into(),
            ));
        }
        let now = clock::now();
        let mut entry = AuditEntry::by(&by, "admin.user_change", "user", Outcome::Success, now).on(found.id);
        let mut change = UserChange {
            role,
            disabled,
            ..UserChange::default()
        };
        if let Some(role) = role {
            entry = entry.with("role", role.as_str());
        }
        if let Some(disabled) = disabled {
            entry = entry.with("disabled", disabled);
            // Tokens issued earlier must not become valid again when the user is re-enabled.
            change.tokens_after = disabled.then_some(now);
        }
        if let Some(password) = password {
            check_new("password", &password, &found.email)?;
            change.password_hash = Some(run_hashing(move || password::hash(&password)).await?);
            // Anyone who knew the old password must not stay signed in.
            change.tokens_after = Some(now);
            entry = entry.with("password", "changed");
        }
        let changed = core.store.change_user(found.id, &change, &entry).await?;
        core.chain(entry).await;
        Ok(changed.into())
    }
}

#[derive(Debug)]
pub struct ListApiKeys {
    pub by: Principal,
}
impl Work for ListApiKeys {
    type Core = IdentityCore;
    type Reply = Vec<ApiKeyView>;
    const NAME: &'static str = "list_api_keys";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let keys = core.store.api_keys(self.by.workspace.id).await?;
        Ok(keys.into_iter().map(ApiKeyView::from).collect())
    }
}

#[derive(Debug)]
pub struct CreateApiKey {
    pub by: Principal,
    pub name: Label,
    pub scopes: Scopes,
    pub expires_at: Option<DateTime<Utc>>,
}
impl Work for CreateApiKey {
    type Core = IdentityCore;
    type Reply = NewApiKey;
    const NAME: &'static str = "create_api_key";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let CreateApiKey {
            by,
            name,
            scopes,
            expires_at,
        } = self;
        let now = clock::now();
        if expires_at.is_some_and(|at| at <= now) {
            return Err(DomainError::invalid("expires_at", "must be in the future"));
        }
        let key = api_key::generate()?;
        let record = ApiKeyRecord {
            id: Uuid::new_v4(),
            ws: by.workspace.id,
            owner: by.user_id(),
            name: name.into(),
            key_hash: api_key::digest(&key),
            scopes: scopes.into(),
            expires_at,
            revoked_at: None,
            created_at: now,
        };
        let entry = AuditEntry::by(&by, "admin.api_key_create", "api_key", Outcome::Success, now)
            .on(record.id)
            .with_text("name", &record.name)
            .with(
                "scopes",
                record
                    .scopes
                    .iter()
                    .map(|scope| scope.as_str())
                    .collect::<Vec<_>>(),
            );
        core.store.create_api_key(&record, &entry).await?;
        core.chain(entry).await;
        Ok(NewApiKey {
            view: record.into(),
            key,
        })
    }
}

#[derive(Debug)]
pub struct RevokeApiKey {
    pub by: Principal,
    pub key: Uuid,
}
impl Work for RevokeApiKey {
    type Core = IdentityCore;
    type Reply = ();
    const NAME: &'static str = "revoke_api_key";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let RevokeApiKey { by, key } = self;
        let now = clock::now();
        let entry = AuditEntry::by(&by, "admin.api_key_revoke", "api_key", Outcome::Success, now).on(key);
        if !core
            .store
            .revoke_api_key(by.workspace.id, key, now, &entry)
            .await?
        {
            return Err(DomainError::NotFound("API key"));
        }
        core.chain(entry).await;
        Ok(())
    }
}

#[derive(Debug)]
pub struct ChangeWorkspace {
    pub by: Principal,
    pub change: WorkspaceChange,
}
/// Why a tenant does not set its tier.
pub const TIER_OF_OPERATOR: &str = "tier: is set by the operator of this service, for each workspace";

impl Work for ChangeWorkspace {
    type Core = IdentityCore;
    type Reply = Workspace;
    const NAME: &'static str = "change_workspace";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let ChangeWorkspace { by, change } = self;
        let ws = by.workspace.id;
        if change.tier.is_some() && !by.workspace.is_operator {
            return Err(DomainError::Forbidden(TIER_OF_OPERATOR.into()));
        }
        let mut entry = AuditEntry::by(
            &by,
            "admin.workspace_change",
            "workspace",
            Outcome::Success,
            clock::now(),
        )
        .on(ws);
        if let Some(ceiling) = change.tlp_ceiling {
            entry = entry.with("tlp_ceiling", ceiling.as_str());
        }
        if let Some(elevated) = change.elevated_clearance {
            entry = entry.with("elevated_clearance", elevated);
        }
        if let Some(grant) = change.red_export_grant {
            entry = entry.with("red_export_grant", grant);
        }
        if let Some(tier) = change.tier {
            entry = entry.with("tier", tier.as_str());
        }
        if let Some(features) = &change.features {
            entry = entry.with("features", Vec::from(features.clone()));
        }
        core.store.change_workspace(ws, &change, &entry).await?;
        core.chain(entry).await;
        core.store
            .workspace(ws)
            .await?
            .ok_or(DomainError::NotFound("workspace"))
    }
}

/// A new workspace with its defaults: ceiling AMBER, no clearance, no grant.
pub(super) fn new_workspace(name: String, tier: Tier, is_operator: bool) -> Workspace {
    Workspace {
        id: Uuid::new_v4(),
        name,
        tier,
        tlp_ceiling: Tlp::Amber,
        elevated_clearance: false,
        red_export_grant: false,
        features: vec![KNOWLEDGE_GRAPH.to_owned()],
        created_at: clock::now(),
        is_operator,
        suspended: false,
    }
}

/// A user with a hashed password; `field` names the e-mail field in a validation error.
pub(super) async fn new_user(
    ws: Uuid,
    field: &str,
    email: &str,
    password: SecretString,
    role: Role,
) -> Result<UserRecord, DomainError> {
    let email = email.trim().to_lowercase();
    if !is_email(&email) {
        return Err(DomainError::invalid(field, "must be an e-mail address"));
    }
    let hash = run_hashing(move || password::hash(&password)).await?;
    let now = clock::now();
    Ok(UserRecord {
        id: Uuid::new_v4(),
        ws,
        email,
        password_hash: Some(hash),
        role,
        disabled: false,
        tokens_after: now,
        created_at: now,
    })
}
