//! Roles, permissions and scopes: who may do what.

use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::node::wire_enum;

wire_enum! {
    /// Role of a user in its workspace.
    Role, "admin, analyst, audit, viewer" {
        Admin = "admin",
        Analyst = "analyst",
        Audit = "audit",
        Viewer = "viewer",
    }
}

wire_enum! {
    /// What an API key may be used for.
    Scope, "ingest, read" {
        Ingest = "ingest",
        Read = "read",
    }
}

wire_enum! {
    /// A named right; every guarded route requires exactly one.
    Permission, "recall:read, recall:write, audit:read, audit:export, admin" {
        RecallRead = "recall:read",
        RecallWrite = "recall:write",
        AuditRead = "audit:read",
        AuditExport = "audit:export",
        Admin = "admin",
    }
}

wire_enum! {
    /// Rate-limit tier of a workspace.
    Tier, "pilot, team, enterprise" {
        Pilot = "pilot",
        Team = "team",
        Enterprise = "enterprise",
    }
}

/// The scopes of an API key: at least one, in order, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(Vec<Scope>);

impl TryFrom<Vec<Scope>> for Scopes {
    type Error = &'static str;

    fn try_from(mut scopes: Vec<Scope>) -> Result<Self, Self::Error> {
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.is_empty() {
            return Err("must hold at least one of ingest, read");
        }
        Ok(Self(scopes))
    }
}

impl PartialSchema for Scopes {
    fn schema() -> RefOr<Schema> {
        let scopes = ArrayBuilder::new().items(Scope::schema());
        scopes.min_items(Some(1)).into()
    }
}

impl ToSchema for Scopes {}

impl From<Scopes> for Vec<Scope> {
    fn from(scopes: Scopes) -> Self {
        scopes.0
    }
}

impl Role {
    /// Whether a user with this role holds `permission`.
    pub fn grants(self, permission: Permission) -> bool {
        match self {
            Role::Admin => true,
            Role::Analyst => matches!(permission, Permission::RecallRead | Permission::RecallWrite),
            Role::Audit => matches!(
                permission,
                Permission::RecallRead | Permission::AuditRead | Permission::AuditExport
            ),
            Role::Viewer => permission == Permission::RecallRead,
        }
    }
}

impl Scope {
    /// Whether an API key with this scope holds `permission`; keys never administer or read the audit log.
    pub fn grants(self, permission: Permission) -> bool {
        match self {
            Scope::Ingest => permission == Permission::RecallWrite,
            Scope::Read => permission == Permission::RecallRead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_ordered_unique_and_never_empty() {
        let scopes = Scopes::try_from(vec![Scope::Read, Scope::Ingest, Scope::Read]);
        assert_eq!(scopes.map(Vec::from), Ok(vec![Scope::Ingest, Scope::Read]));
        assert!(Scopes::try_from(vec![]).is_err());
    }
}
