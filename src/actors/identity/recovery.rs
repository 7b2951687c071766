//! What an operator does with accounts on the machine itself, while the service is stopped, so that a lost password of the only
//! administrator locks nobody out.

use std::net::{IpAddr, Ipv4Addr};

use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use super::admin::new_user;
use super::run_hashing;
use crate::auth::password;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::password::check_new;
use crate::domain::permission::Role;
use crate::store::Store;

/// The address that the audit entries name: no request brought the task.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A task for an operator on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountTask {
    /// An account gets another password, and its tokens end.
    ResetPassword,
    /// A workspace gets a further administrator.
    CreateAdmin,
}

/// The account that a task is about.
#[derive(Debug)]
pub struct Account {
    pub email: String,
    /// Name or id of the workspace; needed where the address has accounts in several. A new administrator is of the operator's
    /// workspace without one.
    pub workspace: Option<String>,
    /// The new password; one is made without.
    pub password: Option<SecretString>,
}

/// The account after the task, and what the operator has to know of it.
#[derive(Debug)]
pub struct AccountDone {
    pub email: String,
    pub workspace: String,
    /// The password that was made: the only time that it can be shown.
    pub generated: Option<SecretString>,
    /// Whether the account is disabled, so that the password opens nothing.
    pub is_disabled: bool,
}

/// Carries out a task in the store, with its audit entry in the same transaction.
///
/// # Errors
/// There is no such account or workspace, the address is taken, or the password breaks a rule.
pub async fn recover_account(
    store: &Store,
    task: AccountTask,
    account: Account,
) -> Result<AccountDone, DomainError> {
    match task {
        AccountTask::ResetPassword => reset_password(store, account).await,
        AccountTask::CreateAdmin => create_admin(store, account).await,
    }
}

async fn reset_password(store: &Store, account: Account) -> Result<AccountDone, DomainError> {
    let email = account.email.trim();
    let mut found = store.accounts_of(email, account.workspace.as_deref(), 2).await?;
    let user = found
        .pop()
        .ok_or(DomainError::NotFound("account of this e-mail address"))?;
    if !found.is_empty() {
        let rule = "is required: the address has accounts in several workspaces";
        return Err(DomainError::invalid("--workspace", rule));
    }
    let (new, generated) = password_of(account.password, email)?;
    let hash = run_hashing(move || password::hash(&new)).await?;
    let now = clock::now();
    let entry = AuditEntry::anonymous(
        user.ws,
        HERE,
        "admin.reset_password",
        "user",
        Outcome::Success,
        now,
    )
    .on(user.id);
    store.reset_password(user.id, hash, now, &entry).await?;
    Ok(AccountDone {
        email: user.email,
        workspace: name_of(store, user.ws).await?,
        generated,
        is_disabled: user.disabled,
    })
}

async fn create_admin(store: &Store, account: Account) -> Result<AccountDone, DomainError> {
    let ws = match &account.workspace {
        None => store.operator_workspace().await?,
        Some(named) => {
            let all = store.workspaces().await?;
            let named = all
                .iter()
                .find(|ws| ws.name == *named || ws.id.to_string() == *named);
            named.map(|ws| ws.id)
        }
    };
    let ws = ws.ok_or(DomainError::NotFound("workspace"))?;
    let (new, generated) = password_of(account.password, &account.email)?;
    let user = new_user(ws, "EMAIL", &account.email, new, Role::Admin).await?;
    let entry = AuditEntry::anonymous(
        ws,
        HERE,
        "admin.create_admin",
        "user",
        Outcome::Success,
        user.created_at,
    );
    store.add_admin(&user, &entry.on(user.id)).await?;
    Ok(AccountDone {
        email: user.email,
        workspace: name_of(store, ws).await?,
        generated,
        is_disabled: false,
    })
}

/// The password that is set, and the same if it was made here.
fn password_of(
    given: Option<SecretString>,
    email: &str,
) -> Result<(SecretString, Option<SecretString>), DomainError> {
    match given {
        Some(given) => {
            check_new("THREAT_MEMORY_NEW_PASSWORD", &given, email)?;
            Ok((given, None))
        }
        None => {
            let made = password::generate()?;
            Ok((made.clone(), Some(made)))
        }
    }
}

async fn name_of(store: &Store, ws: Uuid) -> Result<String, DomainError> {
    let workspace = store.workspace(ws).await?;
    Ok(workspace.map_or_else(|| ws.to_string(), |workspace| workspace.name))
}

impl AccountDone {
    /// The text for the operator. It holds the password if one was made.
    pub fn lines(&self) -> String {
        let mut lines = format!(
            "{} of the workspace {:?} has a new password.\n",
            self.email, self.workspace
        );
        if let Some(made) = &self.generated {
            lines.push_str(&format!("It is shown only now: {}\n", made.expose_secret()));
        }
        if self.is_disabled {
            lines.push_str("The account is disabled: an administrator has to enable it.\n");
        }
        lines
    }
}
