//! Real input that lies beside the repository.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Environment variable naming the file that records skipped tests, so that a run without real input is not taken for a
/// full one.
const SKIP_LOG: &str = "THREAT_MEMORY_SKIP_LOG";

/// The real input at `path`; `None` if it is missing, and the test is skipped.
pub fn shared(path: &str) -> Option<PathBuf> {
    let found = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")).join(path);
    if found.exists() {
        return Some(found);
    }
    skipped(&format!("{path} is not beside the repository"));
    None
}

/// Prints why a test is skipped, and records it in the log if one is set.
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
