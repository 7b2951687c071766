//! Start and stop code shared by both services: the database, the supervisor, graceful shutdown.

pub(crate) mod hangup;
pub(crate) mod requirements;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use secrecy::SecretString;
use tokio::task::JoinHandle;

use crate::actors::audit_writer::{AuditHandle, Drain};
use crate::actors::roster::Roster;
use crate::auth::token;
use crate::config::StorageSettings;
use crate::domain::error::DomainError;
use crate::files;
use crate::store::{StorageMemory, StorageServer, Store, StoreError, StoreMarker, embedded_dir};

pub use self::requirements::check_open_files;

/// Exit code when the process gives up (sysexits.h, EX_SOFTWARE).
pub(crate) const EXIT_GAVE_UP: i32 = 70;
const CLOSING_PAUSE: Duration = Duration::from_millis(10);
const CLOSING_TRIES: u32 = 500;

/// Why the service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A setting that shows to be unusable only when it is used.
    #[error("configuration: {0}")]
    Configuration(String),
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    #[error("{0}")]
    Setup(String),
}

impl From<DomainError> for StartError {
    fn from(error: DomainError) -> Self {
        if let DomainError::Internal { what, cause } = &error {
            return Self::Setup(format!("{what}: {cause}"));
        }
        Self::Setup(error.to_string())
    }
}

/// Waits up to five seconds until the store has closed its files. It does so in the background once the last handle is
/// dropped, and needs the runtime for it.
pub(crate) async fn wait_until_closed(store: &Weak<Store>, dir: Option<&Path>, temporary: Option<&Path>) {
    for _ in 0..CLOSING_TRIES {
        let open = dir.is_some_and(files::has_open_files) || temporary.is_some_and(Path::exists);
        if store.strong_count() == 0 && !open {
            return;
        }
        tokio::time::sleep(CLOSING_PAUSE).await;
    }
    tracing::warn!("the store was still closing at exit; it recovers at the next start");
}

/// Waits until every audit entry is on disk.
pub(crate) async fn drain(audit: &AuditHandle, deadline: Duration) {
    match tokio::time::timeout(deadline, audit.call(Drain)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(?error, "draining the audit writer failed"),
        Err(_) => tracing::error!("the audit writer was not empty at the deadline"),
    }
}

/// The secret kept in the data directory, created at the first start.
pub(crate) fn load_or_create_secret(dir: Option<&Path>) -> Result<SecretString, StartError> {
    token::secret_of(dir).map_err(|error| {
        let place = dir.map_or_else(|| "token secret".into(), |dir| dir.display().to_string());
        StartError::Io(place, error)
    })
}

/// The memory limits of a store that keeps values of `value_log` bytes in its value log.
pub(crate) fn storage_memory(storage: &StorageSettings, value_log: usize) -> StorageMemory {
    StorageMemory {
        transaction: storage.transaction_mib << 20,
        memtable: storage.memtable_mib << 20,
        block_cache: storage.block_cache_mib << 20,
        value_log,
    }
}

/// Opens the database of one service; `owner` holds the name and password of the owner of an external one, which is the
/// only one that needs the secret. An embedded one keeps values of `value_log` bytes in its value log.
pub(crate) async fn open_store(
    (database, value_log): (&str, usize),
    engine_url: &str,
    storage: &StorageSettings,
    owner: Option<(String, SecretString)>,
    secret: impl FnOnce() -> Result<SecretString, StartError>,
) -> Result<Arc<Store>, StartError> {
    let memory = storage_memory(storage, value_log);
    if let Some(dir) = embedded_dir(engine_url) {
        let marker = StoreMarker::begin(dir, storage.accept_loss)?;
        let store = Store::open_marked(engine_url, database, memory, &marker).await?;
        forget_derived(&marker, dir);
        return Ok(Arc::new(store));
    }
    let server = owner.and_then(|owner| storage_server(storage, owner));
    let secret = match &server {
        Some(_) => secret()?,
        None => SecretString::from(String::new()),
    };
    Ok(Arc::new(
        Store::open(engine_url, database, memory, server.as_ref(), &secret).await?,
    ))
}

/// An external database with its owner; `None` where the store is embedded.
pub(crate) fn storage_server(
    storage: &StorageSettings,
    (username, password): (String, SecretString),
) -> Option<StorageServer> {
    storage.url.starts_with("ws").then(|| StorageServer {
        username,
        password,
        connections: storage.connections,
        timeout: Duration::from_millis(storage.timeout_ms),
    })
}

/// Checks that this process may make files in a data directory, before it makes the first one.
///
/// # Errors
/// When root runs it over the store of another user, who could not open the store any more.
pub fn check_owner(data_dir: Option<&Path>) -> Result<(), StartError> {
    match data_dir {
        Some(dir) => Ok(StoreMarker::check_owner(dir)?),
        None => Ok(()),
    }
}

/// Removes what was derived from commits that the operator has given up; it is made anew from the store.
fn forget_derived(marker: &StoreMarker, store: &Path) {
    let Some(loss) = marker.accepted_loss() else {
        return;
    };
    let lacks = match loss.known {
        Some(_) => "has lost commits that were acknowledged",
        None => "may have lost commits that were acknowledged",
    };
    tracing::warn!(
        found = loss.found,
        known = loss.known,
        "the store {lacks}; --accept-loss goes on with what it holds"
    );
    if let Some(data_dir) = store.parent() {
        forget_indexes(data_dir);
    }
}

/// Removes the search index and the copy of the graph, which are made anew from the store; false if they can't be removed.
pub(crate) fn forget_indexes(data_dir: &Path) -> bool {
    let mut is_done = true;
    for derived in ["index", "graph"] {
        let derived = data_dir.join(derived);
        match std::fs::remove_dir_all(&derived) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%error, dir = %derived.display(), "could not be removed: remove it yourself");
                is_done = false;
            }
            Ok(()) | Err(_) => {}
        }
    }
    is_done
}

/// Restarts actors that die, and ends the process when one dies too often.
pub(crate) fn keep(roster: Roster, max_restarts_per_minute: u32) -> JoinHandle<()> {
    roster.keep(max_restarts_per_minute, |actor| {
        give_up(&format!("{actor} died too often; the process gives up"))
    })
}

/// Ends the process. The reason is written past the queue of the log, which an exit does not flush, by a thread that a
/// stalled reader may hold up.
pub(crate) fn give_up(reason: &str) -> ! {
    tracing::error!("{reason}");
    let said = reason.to_owned();
    let (told, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        eprintln!("{said}");
        told.send(()).ok();
    });
    done.recv_timeout(Duration::from_secs(1)).ok();
    std::process::exit(EXIT_GAVE_UP)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const REASON: &str = "tester died too often";

    /// Set only in the process that the test below starts, so that `--include-ignored` doesn't end all tests.
    const MAY_END: &str = "THREAT_MEMORY_TEST_MAY_END";

    /// Run by the test below, in a process of its own.
    #[test]
    #[ignore = "ends the process"]
    fn gives_up() {
        if std::env::var_os(MAY_END).is_some() {
            give_up(REASON);
        }
    }

    #[test]
    fn who_gives_up_says_why() {
        let ended = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "lifecycle::tests::gives_up",
                "--ignored",
                "--nocapture",
            ])
            .env(MAY_END, "1")
            .output()
            .unwrap();
        assert_eq!(ended.status.code(), Some(EXIT_GAVE_UP));
        assert!(String::from_utf8_lossy(&ended.stderr).contains(REASON));
    }
}
