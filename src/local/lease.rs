//! The lease on a memory in an external database, which admits one process of the local service at a time.
//!
//! A local directory has an operating-system lock that ends with the process. An external database has none, so the
//! memory in it is leased: the holder renews the lease, and a crashed holder loses it when it expires.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::files;
use crate::lifecycle::{StartError, give_up};
use crate::store::{Holder, Store, StoreError};

/// How long a lease is valid after its last renewal.
const LEASE_DURATION: Duration = Duration::from_secs(30);
/// Renewal interval, short enough that a few failures do not lose the lease.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);
/// The file that identifies the installation of a data directory.
const FILE: &str = "instance";
/// How long shutdown waits for a renewal in progress.
const LAST_RENEWAL: Duration = Duration::from_secs(5);
/// Length of a UUID in characters.
const ID_CHARS: u64 = 36;

/// An installation: a data directory with an id, locked against other processes.
struct Installation {
    id: Uuid,
    /// Holds the lock.
    _file: File,
}

/// The lease, renewed in the background.
pub(super) struct Lease {
    holder: Holder,
    /// Stops the renewal task between two renewals.
    stop: watch::Sender<()>,
    renewing: JoinHandle<()>,
    _installation: Installation,
}

impl Lease {
    /// Takes the lease for the installation in `data_dir`.
    ///
    /// # Errors
    /// When another process has the directory open or holds the lease, or the directory can't be written.
    pub(super) async fn take(store: &Arc<Store>, data_dir: &Path) -> Result<Self, StartError> {
        let installation = Installation::open(data_dir)?;
        let holder = Holder {
            instance: installation.id,
            process: Uuid::new_v4(),
            place: process_location(),
        };
        store.take_lease(&holder, LEASE_DURATION).await?;
        let lost = || give_up("another process has taken this memory over; the process gives up");
        let (stop, stopped) = watch::channel(());
        let renewing = renew(Arc::clone(store), holder.clone(), RENEW_INTERVAL, stopped, lost);
        let renewing = tokio::spawn(renewing);
        Ok(Self {
            holder,
            stop,
            renewing,
            _installation: installation,
        })
    }

    /// Releases the lease.
    pub(super) async fn release(mut self, store: &Store) {
        // An aborted renewal could take effect after the release.
        self.stop.send_replace(());
        if tokio::time::timeout(LAST_RENEWAL, &mut self.renewing)
            .await
            .is_err()
        {
            self.renewing.abort();
        }
        if let Err(error) = store.release_lease(&self.holder).await {
            tracing::warn!(?error, "the lease was not given back; it ends by itself");
        }
    }
}

impl Drop for Lease {
    /// Stops the renewals if the start fails later on.
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

/// Renews the lease until it is lost.
async fn renew(
    store: Arc<Store>,
    holder: Holder,
    every: Duration,
    mut stopped: watch::Receiver<()>,
    lost: impl Fn(),
) {
    let mut ticks = tokio::time::interval(every);
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            _ = ticks.tick() => {}
        }
        match store.renew_lease(&holder).await {
            Ok(true) => {}
            Ok(false) => return lost(),
            Err(error) => tracing::warn!(?error, "the lease on the memory could not be renewed"),
        }
    }
}

/// Where this process runs, for the error shown to a refused process.
fn process_location() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let process = std::process::id();
    match host.trim() {
        "" => format!("process {process}"),
        host => format!("process {process} on {host}"),
    }
}

impl Installation {
    /// Opens the installation of a data directory, creating it at the first start.
    fn open(dir: &Path) -> Result<Self, StartError> {
        let path = dir.join(FILE);
        let failed = |error| StartError::Io(path.display().to_string(), error);
        files::private_dir(dir).map_err(failed)?;
        let mut file = files::open_private(&path).map_err(failed)?;
        if file.try_lock().is_err() {
            return Err(StoreError::InUse(dir.display().to_string()).into());
        }
        let mut text = String::new();
        (&file).take(ID_CHARS).read_to_string(&mut text).map_err(failed)?;
        let known = Uuid::parse_str(text.trim()).ok();
        let id = match known {
            Some(id) => id,
            // Empty, or truncated during its first write: no process has used the id yet.
            None => {
                let id = Uuid::new_v4();
                file.set_len(0).map_err(failed)?;
                std::io::Seek::rewind(&mut file).map_err(failed)?;
                file.write_all(id.to_string().as_bytes()).map_err(failed)?;
                file.sync_all().map_err(failed)?;
                id
            }
        };
        Ok(Self { id, _file: file })
    }
}

#[cfg(test)]
mod tests;
