//! What only the administrators of the operator's workspace may do: create workspaces, list them, set their tiers, and
//! suspend them. They see nothing of what a workspace holds.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde::Serialize;
use uuid::Uuid;

use super::IdentityCore;
use super::admin::{UserView, new_user, new_workspace};
use crate::actors::worker::{Access, Tenant, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::label::Label;
use crate::domain::password::check_new;
use crate::domain::permission::{Role, Tier};
use crate::domain::principal::{Principal, Workspace};
use crate::store::Oversight;

/// A newly created workspace with its first administrator.
#[derive(Debug)]
pub struct NewWorkspace {
    pub workspace: Workspace,
    pub admin: UserView,
}

/// A workspace as the operator sees it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = OverseenWorkspace)]
pub struct WorkspaceView {
    pub id: Uuid,
    #[schema(example = "Example Corp")]
    pub name: String,
    pub tier: Tier,
    /// Whether all of its users and API keys are refused.
    #[schema(example = false)]
    pub suspended: bool,
    pub created_at: DateTime<Utc>,
}

impl From<Workspace> for WorkspaceView {
    fn from(workspace: Workspace) -> Self {
        let Workspace {
            id,
            name,
            tier,
            suspended,
            created_at,
            ..
        } = workspace;
        Self {
            id,
            name,
            tier,
            suspended,
            created_at,
        }
    }
}

fn require_operator(by: &Principal, what: &str) -> Result<(), DomainError> {
    if by.workspace.is_operator {
        return Ok(());
    }
    Err(DomainError::Forbidden(format!(
        "only the operator's administrators {what}"
    )))
}

#[derive(Debug)]
pub struct CreateWorkspace {
    pub by: Principal,
    pub name: Label,
    pub admin_email: String,
    pub admin_password: SecretString,
    /// The operator's own if it is `None`.
    pub tier: Option<Tier>,
}
impl Work for CreateWorkspace {
    type Core = IdentityCore;
    type Reply = NewWorkspace;
    const NAME: &'static str = "create_workspace";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let CreateWorkspace {
            by,
            name,
            admin_email,
            admin_password,
            tier,
        } = self;
        require_operator(&by, "create workspaces")?;
        check_new("admin_password", &admin_password, &admin_email)?;
        let workspace = new_workspace(name.into(), tier.unwrap_or(by.workspace.tier), false);
        let admin = new_user(
            workspace.id,
            "admin_email",
            &admin_email,
            admin_password,
            Role::Admin,
        )
        .await?;
        let now = clock::now();
        let entry = AuditEntry::by(&by, "admin.workspace_create", "workspace", Outcome::Success, now)
            .on(workspace.id)
            .with_text("name", &workspace.name)
            .with("tier", workspace.tier.as_str());
        core.store
            .create_workspace(&workspace, false, Some(&admin), Some(&entry), now)
            .await?;
        core.chain(entry).await;
        Ok(NewWorkspace {
            workspace,
            admin: admin.into(),
        })
    }
}

/// Lists all workspaces but the public demo, oldest first.
#[derive(Debug)]
pub struct ListWorkspaces {
    pub by: Principal,
}
impl Work for ListWorkspaces {
    type Core = IdentityCore;
    type Reply = Vec<WorkspaceView>;
    const NAME: &'static str = "list_workspaces";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        require_operator(&self.by, "list workspaces")?;
        let all = core.store.workspaces().await?;
        Ok(all.into_iter().map(WorkspaceView::from).collect())
    }
}

/// Reads one workspace.
#[derive(Debug)]
pub struct ReadWorkspace {
    pub by: Principal,
    pub workspace: Uuid,
}
impl Work for ReadWorkspace {
    type Core = IdentityCore;
    type Reply = WorkspaceView;
    const NAME: &'static str = "read_workspace";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        require_operator(&self.by, "list workspaces")?;
        let found = core.store.overseen_workspace(self.workspace).await?;
        found
            .map(WorkspaceView::from)
            .ok_or(DomainError::NotFound("workspace"))
    }
}

/// Sets the tier of a workspace, suspends it or lifts its suspension; each field that is `Some`.
#[derive(Debug)]
pub struct OverseeWorkspace {
    pub by: Principal,
    pub workspace: Uuid,
    pub decision: Oversight,
}
impl Work for OverseeWorkspace {
    type Core = IdentityCore;
    type Reply = WorkspaceView;
    const NAME: &'static str = "oversee_workspace";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let OverseeWorkspace {
            by,
            workspace,
            decision,
        } = self;
        require_operator(&by, "set tiers and suspend workspaces")?;
        let own = workspace == by.workspace.id;
        if own && decision.suspended == Some(true) {
            return Err(DomainError::Conflict(
                "suspended: the operator's own workspace can't be suspended".into(),
            ));
        }
        let action = "admin.workspace_change";
        let entry = AuditEntry::by(&by, action, "workspace", Outcome::Success, clock::now()).on(workspace);
        let entry = with_decision(entry, decision);
        // The log of the workspace says what happened, and of the operator's people no more than that it was one of them.
        let copy = (!own).then(|| AuditEntry {
            id: Uuid::now_v7(),
            tenant_id: workspace,
            user_id: None,
            ip_address: None,
            ..entry.clone().with("by", "operator")
        });
        let changed = core
            .store
            .oversee_workspace(workspace, decision, &entry, copy.as_ref())
            .await?;
        let changed = changed.ok_or(DomainError::NotFound("workspace"))?;
        core.chain(entry).await;
        if let Some(copy) = copy {
            core.chain(copy).await;
        }
        Ok(changed.into())
    }
}

fn with_decision(mut entry: AuditEntry, decision: Oversight) -> AuditEntry {
    if let Some(tier) = decision.tier {
        entry = entry.with("tier", tier.as_str());
    }
    if let Some(suspended) = decision.suspended {
        entry = entry.with("suspended", suspended);
    }
    entry
}
