//! Workspaces, their settings, and what the operator decides about them.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::{ADMIN_ONLY, UserRecord, UserRow, by_admin, refusal};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::permission::Tier;
use crate::domain::principal::{Features, Workspace};
use crate::domain::tlp::Tlp;
use crate::store::Store;
use crate::store::audit::rows::audit_rows;
use crate::store::connection::retry::with_race_retry;
use crate::store::rows::{key, parse, record, tlp};

/// Changes to the settings of a workspace; `None` leaves a setting as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceChange {
    pub tlp_ceiling: Option<Tlp>,
    pub elevated_clearance: Option<bool>,
    pub red_export_grant: Option<bool>,
    pub tier: Option<Tier>,
    pub features: Option<Features>,
}

/// What the operator decides about a workspace; `None` leaves it as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Oversight {
    pub tier: Option<Tier>,
    pub suspended: Option<bool>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct WorkspaceRow {
    id: RecordId,
    name: String,
    tier: String,
    tlp_ceiling: i64,
    elevated_clearance: bool,
    red_export_grant: bool,
    features: Vec<String>,
    is_operator: bool,
    is_demo: bool,
    suspended: Option<bool>,
    created_at: DateTime<Utc>,
}

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
            suspended: workspace.suspended.then_some(true),
            created_at: now,
        };
        let users: Vec<UserRow> = admin.map(UserRow::from).into_iter().collect();
        // A first start has no caller.
        let by = audit.and_then(|entry| Some((entry.user_id?, entry.tenant_id)));
        let query = format!(
            "{{ {} INSERT INTO workspace $row RETURN NONE; \
               IF array::len($users) > 0 {{ INSERT INTO user $users RETURN NONE }}; \
               IF array::len($audit) > 0 {{ INSERT $audit RETURN NONE }}; }}",
            by.map_or("", |_| ADMIN_ONLY)
        );
        self.write(|| {
            self.db
                .query(query.clone())
                .bind(("by", by.map(|(user, _)| record("user", user))))
                .bind(("by_ws", by.map(|(_, ws)| ws)))
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
        let query = format!(
            "{{ {ADMIN_ONLY} \
               LET $done = (UPDATE $id SET tlp_ceiling = $ceiling ?? tlp_ceiling, \
                 elevated_clearance = $elevated ?? elevated_clearance, \
                 red_export_grant = $grant ?? red_export_grant, \
                 tier = $tier ?? tier, features = $features ?? features RETURN id); \
               IF array::len($done) != 1 {{ THROW 'workspace was not changed' }}; \
               INSERT $audit RETURN NONE; }}"
        );
        self.write(|| {
            by_admin(self.db.query(query.clone()), audit)
                .bind(("id", record("workspace", id)))
                .bind(("ceiling", change.tlp_ceiling.map(|tlp| i64::from(tlp.rank()))))
                .bind(("elevated", change.elevated_clearance))
                .bind(("grant", change.red_export_grant))
                .bind(("tier", change.tier.map(|tier| tier.as_str().to_owned())))
                .bind(("features", change.features.clone().map(Vec::from)))
        })
        .await
    }

    /// The workspace with this id, unless it is the demo.
    pub async fn overseen_workspace(&self, id: Uuid) -> Result<Option<Workspace>, DomainError> {
        let query = "SELECT * FROM $key WHERE is_demo = false";
        let rows: Vec<WorkspaceRow> = self.select(query, record("workspace", id)).await?;
        rows.into_iter().next().map(Workspace::try_from).transpose()
    }

    /// All workspaces but the demo, oldest first.
    pub async fn workspaces(&self) -> Result<Vec<Workspace>, DomainError> {
        let query = "SELECT * FROM workspace WHERE is_demo = false ORDER BY created_at, id";
        let rows: Vec<WorkspaceRow> = self.select(query, record("workspace", Uuid::nil())).await?;
        rows.into_iter().map(Workspace::try_from).collect()
    }

    /// Writes what the operator decides about a workspace, with the entry of the operator's log and the one of the
    /// workspace's own; `None` when there is no such workspace. The demo is none.
    ///
    /// # Errors
    /// `Forbidden` when the caller is no administrator of the operator any more.
    pub async fn oversee_workspace(
        &self,
        id: Uuid,
        decision: Oversight,
        audit: &AuditEntry,
        of_workspace: Option<&AuditEntry>,
    ) -> Result<Option<Workspace>, DomainError> {
        let query = format!(
            "{{ {ADMIN_ONLY} \
               LET $done = (UPDATE $id SET tier = $tier ?? tier, suspended = $suspended ?? suspended \
                 WHERE is_demo = false AND erased != true); \
               IF array::len($done) = 1 {{ INSERT $audit RETURN NONE; \
                 IF array::len($copy) > 0 {{ INSERT $copy RETURN NONE }} }}; \
               RETURN $done; }}"
        );
        let row: Option<WorkspaceRow> = with_race_retry(|| async {
            let mut response = by_admin(self.db.query(query.clone()), audit)
                .bind(("id", record("workspace", id)))
                .bind(("tier", decision.tier.map(|tier| tier.as_str().to_owned())))
                .bind(("suspended", decision.suspended))
                .bind(("copy", audit_rows(of_workspace)))
                .await?;
            Ok(response.take(0)?)
        })
        .await
        .map_err(refusal)?;
        row.map(Workspace::try_from).transpose()
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
            suspended: row.suspended == Some(true),
        })
    }
}
