//! Files readable only by the user of the service, as they hold notes and secrets.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The files at the top of a data directory that other users must not read or replace.
const PRIVATE: [&str; 5] = [
    "jwt.secret",
    "pending.json",
    "instance",
    "store.marker",
    "audit.reserve",
];
const ROOT: u32 = 0;
/// Permission bits of the group and of all others; of all others only; of a directory that everybody shares.
const OTHERS: u32 = 0o077;
const EVERYBODY: u32 = 0o007;
const SHARED: u32 = 0o1000;

/// Creates a directory and its parents with access for the owner only. An existing directory is left unchanged.
///
/// # Errors
/// When it can't be created.
pub fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Whether there is nothing in a directory, or no directory.
pub(crate) fn is_empty(dir: &Path) -> bool {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// # Errors
/// When no file can be created in the directory.
pub fn check_writable(dir: &Path) -> io::Result<()> {
    let probe = own_name(&dir.join(".writable"));
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&probe)?;
    std::fs::remove_file(probe)
}

/// Fails where root would make files in `dir`, while what is there belongs to another user, who could not open them.
///
/// # Errors
/// The id of that user.
pub(crate) fn refuse_root(dir: &Path, belongings: &Path) -> Result<(), u32> {
    let Ok(found) = std::fs::metadata(belongings) else {
        return Ok(());
    };
    let probe = own_name(&dir.join(".owner"));
    let made = write_new(&probe, "").and_then(|()| std::fs::metadata(&probe));
    std::fs::remove_file(probe).ok();
    // What root makes may belong to others, such as on a share.
    match made {
        Ok(made) if made.uid() == ROOT && found.uid() != ROOT => Err(found.uid()),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Opens a file to read and to write, made for its owner alone if there is none.
///
/// # Errors
/// When it can't be opened.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Writes a file that only its owner may read, atomically and durably. One process at a time may do it.
///
/// # Errors
/// When the directory can't be written; the file is then unchanged.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    place_private(path, text, path.with_extension("part"), |part| {
        std::fs::rename(part, path)
    })
}

/// Makes such a file if there is none, also none that another process makes meanwhile.
///
/// # Errors
/// When the directory can't be written, or there is a file ([`ErrorKind::AlreadyExists`]); it is then unchanged.
pub(crate) fn create_private(path: &Path, text: &str) -> io::Result<()> {
    place_private(path, text, own_name(path), |part| {
        std::fs::hard_link(part, path)?;
        std::fs::remove_file(part)
    })
}

/// Writes `part` and has it placed at `path`.
fn place_private(
    path: &Path,
    text: &str,
    part: PathBuf,
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    // A leftover of an interrupted write may have other permissions.
    match std::fs::remove_file(&part) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let written = write_new(&part, text).and_then(|()| place(&part));
    if written.is_err() {
        std::fs::remove_file(&part).ok();
    }
    written?;
    match path.parent() {
        // The name is durable only once the directory is synced.
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

/// A name beside a file's that no other process uses, as several may start over one directory.
fn own_name(path: &Path) -> PathBuf {
    path.with_extension(format!("{}.part", std::process::id()))
}

/// Takes the access of other users to a data directory away, and to the secrets in it, with a warning for each. All else in
/// it can only be reached through the directory.
///
/// # Errors
/// The secret that everybody can read or write and whose permissions can't be changed. A directory like that is only warned
/// of: volumes often belong to root, and everybody may write to them.
pub(crate) fn close_to_others(data_dir: &Path) -> Result<(), (PathBuf, io::Error)> {
    let secrets = PRIVATE.iter().map(|name| data_dir.join(name));
    for path in std::iter::once(data_dir.to_owned()).chain(secrets) {
        match restrict(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err((path, error)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn restrict(path: &Path) -> io::Result<()> {
    let found = std::fs::metadata(path)?;
    let mode = found.mode() & 0o7777;
    // On a file the bit keeps nobody away.
    let is_shared = found.is_dir() && mode & SHARED != 0;
    if mode & OTHERS == 0 || is_shared {
        return Ok(());
    }
    let place = path.display();
    match std::fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS)) {
        Ok(()) => {
            tracing::warn!("{place} was open to other users (mode {mode:o}); it is not any more");
            Ok(())
        }
        // Such as a secret that belongs to root and is handed to the group of the service.
        Err(error) if found.is_dir() || mode & EVERYBODY == 0 => {
            tracing::warn!(%error, "{place} is open to other users (mode {mode:o}), and that can't be changed");
            Ok(())
        }
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!("it is open to all users (mode {mode:o}), and that can't be changed: {error}"),
        )),
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Whether this process has a file open under `dir`, as far as `/proc` tells.
pub(crate) fn has_open_files(dir: &Path) -> bool {
    let Ok(dir) = dir.canonicalize() else { return false };
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return false;
    };
    open.flatten()
        .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path.starts_with(&dir)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn what_is_open_to_others_is_closed() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("data");
        assert!(close_to_others(&dir).is_ok(), "before the first start");
        std::fs::create_dir(&dir).unwrap();
        for given in [0o755, 0o777, 0o750, 0o700] {
            std::fs::set_permissions(&dir, Permissions::from_mode(given)).unwrap();
            close_to_others(&dir).unwrap();
            assert_eq!(mode(&dir), 0o700);
        }
        for name in PRIVATE {
            let file = dir.join(name);
            std::fs::write(&file, "secret").unwrap();
            for given in [0o644, 0o640, 0o600, 0o666, 0o604, 0o400, 0o1644, 0o1666, 0o4644] {
                std::fs::set_permissions(&file, Permissions::from_mode(given)).unwrap();
                close_to_others(&dir).unwrap();
                assert_eq!(mode(&file), given & 0o7700, "{name} {given:o}");
            }
        }
    }

    #[test]
    fn root_is_refused_where_another_user_owns_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("store.marker");
        assert_eq!(refuse_root(dir.path(), &file), Ok(()), "nothing is there");
        std::fs::write(&file, "").unwrap();
        assert_eq!(refuse_root(dir.path(), &file), Ok(()));
        // Only root can give a file away.
        if std::os::unix::fs::chown(&file, Some(65534), None).is_ok() {
            assert_eq!(refuse_root(dir.path(), &file), Err(65534));
        }
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            1,
            "no probe is left"
        );
    }

    #[test]
    fn a_directory_that_everybody_shares_stays_shared() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("data");
        std::fs::create_dir(&dir).unwrap();
        std::fs::set_permissions(&dir, Permissions::from_mode(0o1777)).unwrap();
        let secret = dir.join("jwt.secret");
        std::fs::write(&secret, "secret").unwrap();
        std::fs::set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
        close_to_others(&dir).unwrap();
        assert_eq!((mode(&dir), mode(&secret)), (0o1777, 0o600));
    }
}
