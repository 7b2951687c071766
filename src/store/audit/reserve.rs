//! Room on the disk for the audit entries of reads while the store takes no writes: set aside at the first start, so that it
//! is there when the disk is full. The next start moves what is in it to the log.
//!
//! The file holds a line for each entry, a check sum and the entry with its texts as JSON, up to the first NUL.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::domain::audit::{AuditEntry, AuditText};

/// Its place in the data directory.
const FILE: &str = "audit.reserve";
/// Its size in bytes: some ten thousand entries.
const SIZE: usize = 4 << 20;

/// An entry as it waits.
#[derive(Serialize, Deserialize)]
struct Waiting<Entry> {
    #[serde(flatten)]
    entry: Entry,
    #[serde(default)]
    texts: BTreeMap<String, AuditText>,
}

/// The reserve of one data directory.
#[derive(Debug)]
pub(crate) struct AuditReserve {
    path: PathBuf,
    file: File,
    size: u64,
    /// Bytes taken, without the NUL after them.
    used: Mutex<u64>,
}

impl AuditReserve {
    /// Opens the reserve of a data directory, and returns the entries that wait in it. A directory without one gets one,
    /// of zeros: a file with holes would have no room on a full disk.
    ///
    /// # Errors
    /// When it can't be read, or there is no room for it.
    pub(crate) fn open(data_dir: &Path) -> io::Result<(Self, Vec<AuditEntry>)> {
        let path = data_dir.join(FILE);
        let mut file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => create(&path)?,
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::with_capacity(SIZE);
        file.read_to_end(&mut bytes)?;
        let (entries, used) = read(&bytes);
        let rest = bytes.get(used..).unwrap_or_default();
        if rest.first().is_some_and(|byte| *byte != 0) {
            tracing::error!(file = %path.display(), from = used, "audit entries in the reserve can't be read");
        }
        let reserve = Self {
            path,
            file,
            size: bytes.len() as u64,
            used: Mutex::new(used as u64),
        };
        Ok((reserve, entries))
    }

    /// Keeps entries durably; returns whether there was room for all of them. Blocks.
    pub(crate) fn keep(&self, entries: &[AuditEntry]) -> bool {
        let mut lines = Vec::new();
        for entry in entries {
            let texts = entry.texts.clone();
            let Ok(text) = serde_json::to_string(&Waiting { entry, texts }) else {
                return false;
            };
            lines.extend_from_slice(line(&text).as_bytes());
        }
        let mut used = self.used.lock();
        let end = *used + lines.len() as u64;
        lines.push(0);
        if end >= self.size {
            return false;
        }
        let kept = self.file.write_all_at(&lines, *used);
        match kept.and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                *used = end;
                true
            }
            Err(error) => {
                tracing::error!(%error, file = %self.path.display(), "the reserve for audit entries can't be written");
                false
            }
        }
    }

    /// Gives the room free again, once the entries are in the log. Blocks.
    ///
    /// # Errors
    /// When it can't be written; the entries then stay, and are moved once more.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let mut used = self.used.lock();
        // All of it, since what the log has may be erased from there.
        let taken = usize::try_from(*used).unwrap_or(SIZE);
        self.file.write_all_at(&vec![0; taken.max(1)], 0)?;
        self.file.sync_data()?;
        *used = 0;
        Ok(())
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let made = file.write_all(&vec![0; SIZE]).and_then(|()| file.sync_all());
    if let Err(error) = made {
        // Part of it would only make the disk fuller.
        std::fs::remove_file(path).ok();
        return Err(error);
    }
    OpenOptions::new().read(true).write(true).open(path)
}

fn line(text: &str) -> String {
    format!("{} {text}\n", check_sum(text))
}

fn check_sum(text: &str) -> String {
    let sum = Sha256::digest(text.as_bytes());
    sum.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The entries in the file, and where the first byte after them is.
fn read(bytes: &[u8]) -> (Vec<AuditEntry>, usize) {
    let (mut entries, mut used) = (Vec::new(), 0);
    for whole in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(entry) = entry_of(whole) else { break };
        entries.push(entry);
        used += whole.len();
    }
    (entries, used)
}

fn entry_of(line: &[u8]) -> Option<AuditEntry> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (sum, text) = line.split_once(' ')?;
    if sum != check_sum(text) {
        return None;
    }
    let waiting: Waiting<AuditEntry> = serde_json::from_str(text).ok()?;
    Some(AuditEntry {
        texts: waiting.texts,
        ..waiting.entry
    })
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use uuid::Uuid;

    use super::*;
    use crate::clock;
    use crate::domain::audit::Outcome;

    fn entry(query: &str) -> AuditEntry {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let (tenant, now) = (Uuid::new_v4(), clock::now());
        AuditEntry::anonymous(
            tenant,
            here,
            "recall.search",
            "recall_session",
            Outcome::Success,
            now,
        )
        .with_text("query", query)
    }

    fn open(dir: &Path) -> (AuditReserve, Vec<AuditEntry>) {
        AuditReserve::open(dir).unwrap()
    }

    #[test]
    fn what_is_kept_is_there_at_the_next_start_until_it_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let (reserve, found) = open(dir.path());
        assert_eq!(found, []);
        let kept: Vec<AuditEntry> = ["a", "line\nbreak and \0", "ü 日本"].map(entry).into();
        assert!(reserve.keep(&kept[..1]));
        assert!(reserve.keep(&kept[1..]));
        let (reserve, found) = open(dir.path());
        assert_eq!(found, kept);
        let more = entry("more");
        assert!(reserve.keep(std::slice::from_ref(&more)));
        assert_eq!(open(dir.path()).1, [&kept[..], &[more]].concat());
        reserve.clear().unwrap();
        let (reserve, found) = open(dir.path());
        assert_eq!(found, []);
        // A shorter entry does not bring back what stood behind it.
        let short = entry("");
        assert!(reserve.keep(std::slice::from_ref(&short)));
        assert_eq!(open(dir.path()).1, [short]);
        assert_eq!(
            std::fs::metadata(dir.path().join(FILE)).unwrap().len(),
            SIZE as u64
        );
    }

    #[test]
    fn a_full_reserve_says_so_and_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (reserve, _) = open(dir.path());
        let long = "x".repeat(1 << 16);
        let mut kept = Vec::new();
        loop {
            let entry = entry(&long);
            if !reserve.keep(std::slice::from_ref(&entry)) {
                break;
            }
            kept.push(entry);
        }
        assert!((60..64).contains(&kept.len()), "{}", kept.len());
        assert_eq!(open(dir.path()).1, kept);
    }

    #[test]
    fn an_entry_that_was_cut_off_ends_the_reserve_and_the_ones_before_it_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (reserve, _) = open(dir.path());
        let kept: Vec<AuditEntry> = ["a", "b", "c"].map(entry).into();
        assert!(reserve.keep(&kept));
        let path = dir.path().join(FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        let (_, used) = read(&bytes);
        bytes[used - 3] = b'#';
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(open(dir.path()).1, kept[..2]);
    }
}
