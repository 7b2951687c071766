//! The warninglists of a service: the built-in ones and those of a directory, read at the start and again on SIGHUP.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use include_dir::{Dir, include_dir};
use parking_lot::RwLock;

use crate::app::StartError;
use crate::domain::warninglists::{Builder, ListError, Warninglists};
use crate::lifecycle::hangup::Reload;

/// The lists that come with the program.
static BUILT_IN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/assets/warninglists");
/// How deep below the directory files are looked for: each list of MISP has a directory of its own.
const DEPTH: usize = 2;

/// What is left of the confidence of an indicator on a list.
const LOWERED: f64 = 0.5;

/// The warninglists in force.
#[derive(Debug, Clone, Default)]
pub struct WarninglistsHandle {
    dir: Option<PathBuf>,
    lowers_confidence: bool,
    current: Arc<RwLock<Arc<Warninglists>>>,
}

impl WarninglistsHandle {
    /// Reads the built-in lists and those of the directory. A list of the directory takes the place of the built-in one of
    /// its name.
    ///
    /// # Errors
    /// When a file can't be read or is no warninglist; the message names the file and the rule.
    pub fn open(dir: Option<&Path>, lowers_confidence: bool) -> Result<Self, String> {
        let dir = dir.filter(|dir| !dir.as_os_str().is_empty()).map(Path::to_owned);
        let lists = read(dir.as_deref())?;
        Ok(Self {
            dir,
            lowers_confidence,
            current: Arc::new(RwLock::new(Arc::new(lists))),
        })
    }

    /// [`WarninglistsHandle::open`] off the async threads, with errors that name the setting.
    ///
    /// # Errors
    /// As of [`WarninglistsHandle::open`].
    pub async fn open_at_start(dir: &Path, lowers_confidence: bool) -> Result<Self, StartError> {
        let dir = dir.to_owned();
        let opening = crate::blocking::spawn(move || Self::open(Some(&dir), lowers_confidence));
        let opened = opening.await.map_err(|error| error.to_string()).flatten();
        opened.map_err(|error| StartError::Configuration(format!("warninglists.dir: {error}")))
    }

    /// The lists of this moment.
    pub fn current(&self) -> Arc<Warninglists> {
        Arc::clone(&self.current.read())
    }

    /// Whether the confidence of what is on a list is lowered.
    pub fn lowers_confidence(&self) -> bool {
        self.lowers_confidence
    }

    /// The confidence of an indicator that states this one, as it is stored: half of it if it is on a list and the service
    /// lowers the confidence of such.
    pub fn confidence(&self, stated: f64, names: impl FnOnce(&Warninglists) -> Vec<String>) -> f64 {
        let is_lowered = self.lowers_confidence && !names(&self.current()).is_empty();
        if is_lowered { stated * LOWERED } else { stated }
    }

    /// Reads the lists again. Those in force stay when a file is unusable.
    ///
    /// # Errors
    /// As of [`WarninglistsHandle::open`].
    pub fn reload(&self) -> Result<(), String> {
        let lists = read(self.dir.as_deref())?;
        tracing::info!(lists = lists.len(), entries = lists.entries(), "warninglists");
        *self.current.write() = Arc::new(lists);
        Ok(())
    }

    /// What reads the lists again on SIGHUP; nothing does without a directory.
    pub(crate) fn on_hangup(&self) -> Option<Reload> {
        self.dir.as_ref()?;
        let handle = self.clone();
        Some(Reload::new("warninglists", move || handle.reload()))
    }
}

fn read(dir: Option<&Path>) -> Result<Warninglists, String> {
    let mut builder = Builder::default();
    let mut files: Vec<_> = BUILT_IN.files().collect();
    files.sort_by_key(|file| file.path());
    for file in files {
        add(&mut builder, file.contents(), file.path())?;
    }
    if let Some(dir) = dir {
        let mut files = Vec::new();
        find_files(dir, DEPTH, &mut files)?;
        files.sort();
        if files.is_empty() {
            return Err(format!(
                "{}: has no file whose name ends with .json",
                dir.display()
            ));
        }
        for file in files {
            let json = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            add(&mut builder, &json, &file)?;
        }
    }
    builder.build().map_err(|error: ListError| error.to_string())
}

fn add(builder: &mut Builder, json: &[u8], file: &Path) -> Result<(), String> {
    let skipped = builder
        .add(json)
        .map_err(|error| format!("{}: {error}", file.display()))?;
    if skipped > 0 {
        tracing::warn!(file = %file.display(), skipped, "entries of a warninglist can't be read");
    }
    Ok(())
}

fn find_files(dir: &Path, depth: usize, into: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", dir.display());
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            if depth > 1 {
                find_files(&path, depth - 1, into)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "json") {
            into.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kinds::EntityKind;

    fn on(handle: &WarninglistsHandle, kind: EntityKind, value: &str) -> Vec<String> {
        handle.current().of(Some(kind), value)
    }

    #[test]
    fn the_built_in_lists_name_what_is_harmless() {
        use EntityKind::{Cidr, Domain, Email, Ipv4, Ipv6, Md5, Sha256, Url};
        let handle = WarninglistsHandle::open(None, false).unwrap();
        for (kind, value, want) in [
            (Ipv4, "192.168.1.7", "Private and shared networks"),
            (Ipv4, "203.0.113.77", "Networks for documentation and tests"),
            (Ipv6, "2001:db8::1", "Networks for documentation and tests"),
            (
                Ipv4,
                "127.0.0.1",
                "Loopback, link-local, multicast and reserved addresses",
            ),
            (Ipv4, "8.8.8.8", "Public DNS resolvers"),
            (Ipv6, "2001:4860:4860::8888", "Public DNS resolvers"),
            (Cidr, "10.1.0.0/16", "Private and shared networks"),
            (Domain, "www.google.com", "Well-known domains"),
            (Url, "https://docs.google.com/x", "Well-known domains"),
            (Url, "http://10.0.0.1/x", "Private and shared networks"),
            (Domain, "bucket.s3.amazonaws.com", "Names of cloud services"),
            (Md5, "d41d8cd98f00b204e9800998ecf8427e", "Hashes of empty files"),
            (
                Sha256,
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                "Hashes of empty files",
            ),
        ] {
            assert_eq!(on(&handle, kind, value), [want], "{value}");
        }
        for (kind, value) in [
            (Ipv4, "8.8.8.9"),
            (Ipv4, "172.32.0.1"),
            (Cidr, "10.0.0.0/7"),
            (Cidr, "8.8.8.8/31"),
            (Domain, "notgoogle.com"),
            (Domain, "com"),
            (Email, "kit@google.com"),
            (Md5, "44d88612fea8a8f36de82e1278abb02f"),
        ] {
            assert_eq!(on(&handle, kind, value), [""; 0], "{value}");
        }
    }

    #[test]
    fn a_directory_adds_lists_and_replaces_those_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let list = |name: &str, entries: &str| {
            format!(
                r#"{{"list":[{entries}],"name":"{name}","description":"","type":"hostname","version":1}}"#
            )
        };
        fs::create_dir(dir.path().join("own")).unwrap();
        fs::write(dir.path().join("own/list.json"), list("Own", "\"harmless.net\"")).unwrap();
        fs::write(
            dir.path().join("well.json"),
            list("Well-known domains", "\"harmless.net\""),
        )
        .unwrap();
        let handle = WarninglistsHandle::open(Some(dir.path()), false).unwrap();
        assert_eq!(
            on(&handle, EntityKind::Domain, "a.harmless.net"),
            ["Own", "Well-known domains"]
        );
        assert_eq!(on(&handle, EntityKind::Domain, "google.com"), [""; 0]);

        fs::write(dir.path().join("own/list.json"), list("Own", "\"other.net\"")).unwrap();
        handle.reload().unwrap();
        assert_eq!(
            on(&handle, EntityKind::Domain, "a.harmless.net"),
            ["Well-known domains"]
        );
        fs::write(
            dir.path().join("own/list.json"),
            "{\"name\":\"Own\",\"type\":\"hosts\",\"list\":[]}",
        )
        .unwrap();
        let error = handle.reload().unwrap_err();
        assert!(
            error.contains("own/list.json: unknown variant `hosts`"),
            "{error}"
        );
        assert_eq!(on(&handle, EntityKind::Domain, "other.net"), ["Own"]);
    }

    #[test]
    fn a_directory_without_lists_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = WarninglistsHandle::open(Some(dir.path()), false).unwrap_err();
        assert!(
            error.ends_with("has no file whose name ends with .json"),
            "{error}"
        );
        assert!(WarninglistsHandle::open(Some(&dir.path().join("nowhere")), false).is_err());
    }
}
