// Real input that lies beside the repository, for unit tests and API tests alike.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Names the file to which each skip is written, so that a run without the real input does not look like a full one.
const SKIP_LOG: &str = "THREAT_MEMORY_SKIP_LOG";

/// The real input at `path`; `None` where it is absent, and the test skips.
pub fn shared(path: &str) -> Option<PathBuf> {
    let found = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared")).join(path);
    if found.exists() {
        return Some(found);
    }
    skipped(&format!("{path} is not beside the repository"));
    None
}

/// Says, and where it is asked for writes down, why a test does not run.
pub fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("skipped: {test}: {why}");
    if let Some(log) = std::env::var_os(SKIP_LOG) {
        let mut log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        writeln!(log, "{test}: {why}").unwrap();
    }
}
