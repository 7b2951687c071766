//! The caller of a request and its current rights.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use super::error::DomainError;
use super::nearest::nearest;
use super::permission::{Permission, Role, Scope, Tier};
use super::schema;
use super::tlp::{Clearance, Tlp};

/// The feature a workspace needs for the ingest routes.
pub const KNOWLEDGE_GRAPH: &str = "knowledge_graph";

/// Why a suspended workspace is refused.
pub const SUSPENDED: &str = "the workspace is suspended by the operator of this service";

/// All features.
const FEATURES: [&str; 1] = [KNOWLEDGE_GRAPH];
const MAX_FEATURES: usize = 100;
/// Longest name of a feature, in characters.
const MAX_FEATURE: usize = 200;

/// Names of the features that a workspace may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features(Vec<String>);

impl TryFrom<Vec<String>> for Features {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Self, Self::Error> {
        let fits = |name: &String| (1..=MAX_FEATURE).contains(&name.chars().count()) && !name.contains('\0');
        if names.len() > MAX_FEATURES || !names.iter().all(fits) {
            return Err(format!(
                "must hold at most {MAX_FEATURES} names of 1 to {MAX_FEATURE} characters, none of them NUL"
            ));
        }
        // An unknown name would silently turn off the feature that was meant.
        if let Some(unknown) = names.iter().find(|name| !FEATURES.contains(&name.as_str())) {
            let meant = nearest(unknown, FEATURES).map(|meant| format!("; did you mean {meant}?"));
            let (known, meant) = (FEATURES.join(", "), meant.unwrap_or_default());
            return Err(format!("must be among {known}, and {unknown:?} is not{meant}"));
        }
        Ok(Self(names))
    }
}

impl PartialSchema for Features {
    fn schema() -> RefOr<Schema> {
        let about = ["A feature; the ingest routes require `knowledge_graph`."];
        let name = schema::names(&about, FEATURES.into_iter());
        let names = ArrayBuilder::new().items(name);
        names.max_items(Some(MAX_FEATURES)).into()
    }
}

impl ToSchema for Features {}

impl From<Features> for Vec<String> {
    fn from(features: Features) -> Self {
        features.0
    }
}

/// Settings of a workspace, read for every request so that a change takes effect at once.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Workspace {
    pub id: Uuid,
    #[schema(example = "Operator")]
    pub name: String,
    pub tier: Tier,
    /// Rows above it are never shown.
    pub tlp_ceiling: Tlp,
    /// Whether rows above AMBER are shown, up to the ceiling.
    #[schema(example = false)]
    pub elevated_clearance: bool,
    /// Whether a session that holds RED may be exported.
    #[schema(example = false)]
    pub red_export_grant: bool,
    #[schema(value_type = Features)]
    pub features: Vec<String>,
    pub created_at: DateTime<Utc>,
    #[serde(skip)]
    pub is_operator: bool,
    /// Whether the operator refuses all callers of this workspace.
    #[serde(skip)]
    pub suspended: bool,
}

impl Workspace {
    /// Fails with 403 while the operator suspends the workspace.
    pub fn require_active(&self) -> Result<(), DomainError> {
        if self.suspended {
            return Err(DomainError::Forbidden(SUSPENDED.into()));
        }
        Ok(())
    }

    /// What the callers of this workspace may see.
    pub fn clearance(&self) -> Clearance {
        Clearance {
            ceiling: self.tlp_ceiling,
            elevated: self.elevated_clearance,
        }
    }
}

/// How the caller authenticated.
#[derive(Debug, Clone, PartialEq)]
pub enum Credential {
    /// A signed-in user, by token.
    User { id: Uuid, email: String, role: Role },
    /// An API key; `owner` is the user who made it.
    ApiKey {
        id: Uuid,
        owner: Uuid,
        owner_email: String,
        scopes: Vec<Scope>,
    },
}

/// The authenticated caller of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Principal {
    pub workspace: Workspace,
    pub credential: Credential,
    pub ip: IpAddr,
}

impl Principal {
    /// Id of the acting user; for an API key, its owner.
    pub fn user_id(&self) -> Uuid {
        match &self.credential {
            Credential::User { id, .. } => *id,
            Credential::ApiKey { owner, .. } => *owner,
        }
    }

    /// E-mail address of the acting user.
    pub fn email(&self) -> &str {
        match &self.credential {
            Credential::User { email, .. } => email,
            Credential::ApiKey { owner_email, .. } => owner_email,
        }
    }

    /// Id of the API key, if one was used.
    pub fn api_key_id(&self) -> Option<Uuid> {
        match &self.credential {
            Credential::User { .. } => None,
            Credential::ApiKey { id, .. } => Some(*id),
        }
    }

    /// Whether the caller holds `permission`.
    pub fn holds(&self, permission: Permission) -> bool {
        match &self.credential {
            Credential::User { role, .. } => role.grants(permission),
            Credential::ApiKey { scopes, .. } => scopes.iter().any(|scope| scope.grants(permission)),
        }
    }

    /// Fails with 403, naming the missing permission.
    pub fn require(&self, permission: Permission) -> Result<(), DomainError> {
        if self.holds(permission) {
            return Ok(());
        }
        Err(DomainError::Forbidden(format!(
            "permission {permission} required"
        )))
    }

    /// Fails with 403 if the workspace lacks the feature.
    pub fn require_feature(&self, feature: &str) -> Result<(), DomainError> {
        if self.workspace.features.iter().any(|have| have == feature) {
            return Ok(());
        }
        Err(DomainError::Forbidden(format!(
            "feature {feature} is not available in this workspace"
        )))
    }

    /// Whether `include_rejected` takes effect: only for admins and analysts.
    pub fn may_see_rejected(&self) -> bool {
        matches!(
            &self.credential,
            Credential::User {
                role: Role::Admin | Role::Analyst,
                ..
            }
        )
    }
}
