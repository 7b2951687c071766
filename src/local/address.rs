//! The address of the service that has a data directory open, for other programs of the same user.
//!
//! The file is locked as long as the service runs: an address that no lock stands for is that of a service which ended.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::files;

const FILE: &str = "address";
/// Longest text that is read of it.
const MOST: u64 = 100;

/// The address of this process in the data directory.
pub struct PublishedAddress {
    /// Holds the lock.
    _file: File,
}

impl PublishedAddress {
    /// Writes the address.
    ///
    /// # Errors
    /// When the file can't be written, or another process holds it.
    pub fn publish(dir: &Path, address: SocketAddr) -> io::Result<Self> {
        files::private_dir(dir)?;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut file = options.open(dir.join(FILE))?;
        file.try_lock().map_err(io::Error::from)?;
        file.set_len(0)?;
        file.rewind()?;
        write!(file, "{address}")?;
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
    use super::*;

    #[test]
    fn an_address_counts_as_long_as_its_service_runs() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(address_of(dir.path()), None);
        let address: SocketAddr = "127.0.0.1:18088".parse().unwrap();
        let published = PublishedAddress::publish(dir.path(), address).unwrap();
        assert_eq!(address_of(dir.path()), Some(address));
        assert!(PublishedAddress::publish(dir.path(), address).is_err());
        drop(published);
        assert_eq!(address_of(dir.path()), None);
        let shorter: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let _published = PublishedAddress::publish(dir.path(), shorter).unwrap();
        assert_eq!(address_of(dir.path()), Some(shorter));
    }
}
