//! The address of the service that has a data directory open, for other programs of the same user.
//!
//! The file is locked as long as the service runs: an address that no lock stands for is that of a service which ended.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::Path;

use crate::files;

const FILE: &str = "address";
/// The file before it is complete and locked.
const PART: &str = "address.part";
/// Longest text that is read of it.
const MOST: u64 = 100;

/// The address of this process in the data directory.
pub struct PublishedAddress {
    /// Holds the lock.
    _file: File,
}

impl PublishedAddress {
    /// Writes the address. The process must have the memory of the directory open, which nobody else can then.
    ///
    /// Readers find the file of the last service or this one, locked and complete: they test the lock by taking it, so a file
    /// that they can already see could neither be locked for sure nor changed in one go.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn publish(dir: &Path, address: SocketAddr) -> io::Result<Self> {
        files::private_dir(dir)?;
        let part = dir.join(PART);
        let mut file = files::open_private(&part)?;
        file.set_len(0)?;
        file.try_lock().map_err(io::Error::from)?;
        write!(file, "{address}")?;
        std::fs::rename(part, dir.join(FILE))?;
        Ok(Self { _file: file })
    }
}

/// The address of the service that has the directory open, if there is one.
pub fn address_of(dir: &Path) -> Option<SocketAddr> {
    let file = File::open(dir.join(FILE)).ok()?;
    if file.try_lock_shared().is_ok() {
        return None;
    }
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU16, Ordering::SeqCst};

    use super::*;

    #[test]
    fn an_address_counts_as_long_as_its_service_runs() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(address_of(dir.path()), None);
        let address: SocketAddr = "127.0.0.1:18088".parse().unwrap();
        let published = PublishedAddress::publish(dir.path(), address).unwrap();
        assert_eq!(address_of(dir.path()), Some(address));
        drop(published);
        assert_eq!(address_of(dir.path()), None);
        let shorter: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let _published = PublishedAddress::publish(dir.path(), shorter).unwrap();
        assert_eq!(address_of(dir.path()), Some(shorter));
    }

    #[test]
    fn who_looks_while_services_come_and_go_sees_the_one_that_runs_or_none() {
        const SERVICES: u16 = 300;
        let dir = tempfile::tempdir().unwrap();
        // The port of the service that runs last by now; no earlier one runs.
        let latest = AtomicU16::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let before = latest.load(SeqCst);
                        let seen = address_of(dir.path()).map_or(SERVICES, |address| address.port());
                        assert!(seen >= before, "service {seen} ended before {before}");
                        if before == SERVICES {
                            return;
                        }
                    }
                });
            }
            for port in 1..=SERVICES {
                latest.store(port, SeqCst);
                let address = SocketAddr::from(([127, 0, 0, 1], port));
                let published = PublishedAddress::publish(dir.path(), address).unwrap();
                assert_eq!(address_of(dir.path()), Some(address));
                drop(published);
            }
        });
    }
}
