//! First start on an empty store: the operator's workspace with its administrator, and the demo workspace.

use secrecy::SecretString;
use uuid::Uuid;

use super::admin::{new_user, new_workspace};
use crate::auth::password;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::password::check_new;
use crate::domain::permission::{Role, Tier};
use crate::domain::principal::Workspace;
use crate::domain::tlp::Tlp;
use crate::store::Store;

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
            check_new("THREAT_MEMORY_ADMIN_PASSWORD", given, email)?;
            (given.clone(), None)
        }
        None => {
            let made = password::generate()?;
            (made.clone(), Some(made))
        }
    };
    let now = clock::now();
    let mut workspace = new_workspace("Operator".into(), Tier::Enterprise, true);
    // Of the installation, so that processes which start at the same moment make one workspace.
    workspace.id = store.ids_of(Uuid::nil()).node("the operator's workspace");
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
    let created = store
        .create_workspace(&workspace, false, Some(&admin), Some(&entry), now)
        .await;
    if let Err(error) = created {
        return match store.workspace_ids().await?.is_empty() {
            true => Err(error),
            // Another process was faster.
            false => Ok(None),
        };
    }
    Ok(Some(FirstAdmin {
        email: admin.email,
        generated_password,
    }))
}

/// The demo workspace; created if there is none.
pub async fn demo_workspace(store: &Store) -> Result<Workspace, DomainError> {
    if let Some(workspace) = store.demo_workspace().await? {
        return Ok(workspace);
    }
    // The demo workspace holds WHITE and GREEN only, whatever the bundle contains.
    let workspace = Workspace {
        // Always the same id, so that processes which start at the same moment make one workspace.
        id: Uuid::new_v5(&Uuid::NAMESPACE_OID, b"public demo"),
        tlp_ceiling: Tlp::Green,
        ..new_workspace("Public demo".into(), Tier::Pilot, false)
    };
    let made = store.create_workspace(&workspace, true, None, None, clock::now());
    match made.await {
        Ok(()) => Ok(workspace),
        Err(error) => store.demo_workspace().await?.ok_or(error),
    }
}
