//! First start on an empty store: the operator's workspace with its administrator, and the demo workspace.

use secrecy::SecretString;
use serde_json::Value;

use super::admin::{new_user, new_workspace};
use crate::auth::password;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::permission::{Role, Tier};
use crate::domain::principal::{Credential, Principal, Workspace};
use crate::domain::tlp::Tlp;
use crate::store::Store;

const DEMO: &str = include_str!("../../../assets/demo/bundle.json");
const DEFAULT_EMAIL: &str = "admin@localhost";

/// The administrator created at first start.
#[derive(Debug)]
pub struct FirstAdmin {
    pub email: String,
    /// Set when the password was generated here: the only time it can be shown.
    pub generated_password: Option<SecretString>,
}

/// Creates what an empty store needs; `None` when the store is not empty.
pub async fn bootstrap(
    store: &Store,
    email: Option<&str>,
    given: Option<&SecretString>,
) -> Result<Option<FirstAdmin>, DomainError> {
    if !store.workspace_ids().await?.is_empty() {
        return Ok(None);
    }
    let email = email.unwrap_or(DEFAULT_EMAIL);
    let (secret, generated_password) = match given {
        Some(given) => {
            password::check_new("THREAT_MEMORY_ADMIN_PASSWORD", given)?;
            (given.clone(), None)
        }
        None => {
            let made = password::generate()?;
            (made.clone(), Some(made))
        }
    };
    let now = clock::now();
    let workspace = new_workspace("Operator".into(), Tier::Enterprise, true);
    let admin = new_user(
        workspace.id,
        "THREAT_MEMORY_ADMIN_EMAIL",
        email,
        secret,
        Role::Admin,
    )
    .await?;
    let ip = std::net::IpAddr::from([127, 0, 0, 1]);
    let entry = AuditEntry::anonymous(
        workspace.id,
        ip,
        "admin.bootstrap",
        "workspace",
        Outcome::Success,
        now,
    )
    .on(workspace.id);
    store
        .create_workspace(&workspace, false, Some(&admin), Some(&entry), now)
        .await?;
    Ok(Some(FirstAdmin {
        email: admin.email,
        generated_password,
    }))
}

/// The objects of the demo bundle that are not loaded yet, with the principal that ingests them.
///
/// # Errors
/// When the store fails; the bundle itself is compiled in and checked by a test.
pub async fn demo_bundle(store: &Store) -> Result<Option<(Principal, Vec<Value>)>, DomainError> {
    let workspace = match store.demo_workspace().await? {
        Some(workspace) if store.has_nodes(workspace.id).await? => return Ok(None),
        Some(workspace) => workspace,
        None => {
            // The demo workspace holds WHITE and GREEN only, whatever the bundle contains.
            let workspace = Workspace {
                tlp_ceiling: Tlp::Green,
                ..new_workspace("Public demo".into(), Tier::Pilot, false)
            };
            store
                .create_workspace(&workspace, true, None, None, clock::now())
                .await?;
            workspace
        }
    };
    let mut bundle: Value = serde_json::from_str(DEMO)
        .map_err(|error| DomainError::internal("the demo bundle is damaged", error))?;
    let Some(Value::Array(objects)) = bundle.get_mut("objects").map(Value::take) else {
        return Err(DomainError::internal("the demo bundle is damaged", "no objects"));
    };
    let credential = Credential::User {
        id: uuid::Uuid::nil(),
        email: "threat-memory".into(),
        role: Role::Admin,
    };
    Ok(Some((
        Principal {
            workspace,
            credential,
            ip: std::net::IpAddr::from([127, 0, 0, 1]),
        },
        objects,
    )))
}
