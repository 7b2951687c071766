//! Directories that take a debug build seconds to make: made once for each build, and copied for each test.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;

/// Copies to `dir` what `make` puts into a directory. It is kept under `name` beside `program`, until that is built anew.
pub fn copy_of(name: &str, program: &Path, dir: &Path, make: impl FnOnce(&Path)) {
    copy(&template(name, program, make), dir);
}

fn template(name: &str, program: &Path, make: impl FnOnce(&Path)) -> PathBuf {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock();
    let built = fs::metadata(program).unwrap().modified().unwrap();
    let built = built.duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let place = program.parent().unwrap();
    let template = place.join(format!("{name}-{built}"));
    if template.exists() {
        return template;
    }
    remove_earlier(place, &format!("{name}-"), &built.to_string());
    let new = place.join(format!("{name}-{built}-{}", std::process::id()));
    // A test of this process may have failed half-way.
    fs::remove_dir_all(&new).ok();
    fs::create_dir(&new).unwrap();
    make(&new);
    // Another process may have been faster.
    if fs::rename(&new, &template).is_err() {
        fs::remove_dir_all(new).unwrap();
    }
    template
}

/// Removes what tests of earlier builds left. Other processes may be making the template of this one.
fn remove_earlier(place: &Path, prefix: &str, built: &str) {
    for entry in fs::read_dir(place).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        let of = name.to_str().and_then(|name| name.strip_prefix(prefix));
        if of.is_some_and(|of| of.starts_with(|first: char| first.is_ascii_digit()) && !of.starts_with(built))
        {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let copied = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &copied);
        } else {
            fs::copy(entry.path(), copied).unwrap();
        }
    }
}
