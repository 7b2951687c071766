//! Opens the database, brings its schema up to date and signs in as the user without DDL rights.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use surrealdb::engine::any::{Any, connect};
use surrealdb::opt::auth::{Database, Root};
use surrealdb::{Surreal, opt::Config};

use super::{Store, migrate};
use crate::domain::error::DomainError;

/// Namespace and user of the service.
const NAMESPACE: &str = "threat_memory";
const APP_USER: &str = "service";

/// Why the store could not be opened or a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the data directory {0} is in use by another process; stop it first or choose another directory")]
    InUse(String),
    #[error("storage {url}: {cause}")]
    Open { url: String, cause: String },
    #[error("the schema is version {found}, this program knows {known}; use a newer program")]
    TooNew { found: i64, known: i64 },
    #[error("database: {0}")]
    Database(#[from] surrealdb::Error),
    #[error(transparent)]
    Domain(#[from] DomainError),
}

impl StoreError {
    /// The error of the core; `what` is all that a client reads of a database failure.
    pub(super) fn into_domain(self, what: &'static str) -> DomainError {
        if let StoreError::Domain(error) = self {
            return error;
        }
        DomainError::internal(what, self)
    }
}

/// Owner credentials of an external SurrealDB; embedded stores need none.
#[derive(Debug, Clone)]
pub struct StorageCredentials {
    pub username: String,
    pub password: SecretString,
}

impl Store {
    /// Opens `url` (`surrealkv://PATH`, `mem://`, `ws://HOST`, `wss://HOST`), migrates `database` and signs in
    /// as the service user, whose password is derived from `secret`.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process holds the directory.
    pub async fn open(
        url: &str,
        database: &str,
        owner: Option<&StorageCredentials>,
        secret: &SecretString,
    ) -> Result<Self, StoreError> {
        let admin = connect_retrying(url).await?;
        if let Some(owner) = owner {
            let (username, password) = (owner.username.clone(), owner.password.expose_secret().to_owned());
            admin.signin(Root { username, password }).await?;
        }
        let password = app_password(secret, database);
        migrate::run(&admin, NAMESPACE, database, APP_USER, &password).await?;
        let service = admin.clone();
        service
            .signin(Database {
                namespace: NAMESPACE.into(),
                database: database.into(),
                username: APP_USER.into(),
                password,
            })
            .await?;
        service.use_ns(NAMESPACE).use_db(database).await?;
        Ok(Self {
            db: service,
            clock: AtomicU64::new(0),
            chain_heads: Mutex::default(),
        })
    }
}

/// A directory that was closed a moment ago may still be locked: the engine lets go in the background.
async fn connect_retrying(url: &str) -> Result<Surreal<Any>, StoreError> {
    let mut tries = 0;
    loop {
        match connect((url, Config::new())).await {
            Ok(db) => return Ok(db),
            Err(error) => {
                let locked = is_lock_error(&error.to_string());
                if locked && tries < 10 {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
                let path = url.strip_prefix("surrealkv://").unwrap_or(url).to_owned();
                return Err(if locked {
                    StoreError::InUse(path)
                } else {
                    StoreError::Open {
                        url: url.to_owned(),
                        cause: error.to_string(),
                    }
                });
            }
        }
    }
}

/// The engine has no error of its own for this; a mere "lock" would also fit "corrupted block".
fn is_lock_error(text: &str) -> bool {
    text.contains("already locked by another process")
}

/// Password of the service user: a digest of the service's secret, so every process that shares the
/// secret can sign in and nobody else.
fn app_password(secret: &SecretString, database: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"threat-memory storage user\0");
    hasher.update(database.as_bytes());
    hasher.update([0]);
    hasher.update(secret.expose_secret().as_bytes());
    hex::encode(hasher.finalize())
}
