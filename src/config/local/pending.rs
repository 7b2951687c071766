//! Pending changes: a file in the data directory, written by one process and read by the next.
//!
//! A value that is no longer valid is reported and ignored. It neither prevents the service from starting nor opens it
//! to other machines without a key.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::{Value, json};

use super::super::ConfigError;
use super::edit;
use crate::files;

/// Name of the file.
pub(super) const FILE: &str = "pending.json";

/// Values by dotted path.
pub(super) type PendingValues = BTreeMap<String, Value>;

/// The values left by an earlier process. An unreadable file is reported and ignored.
pub(super) fn read(dir: Option<&Path>) -> PendingValues {
    let Some(file) = dir.map(|dir| dir.join(FILE)) else {
        return PendingValues::new();
    };
    let ignored = |error: &dyn std::fmt::Display| {
        eprintln!(
            "configuration: {} can't be read and is ignored: {error}",
            file.display()
        );
        PendingValues::new()
    };
    match std::fs::read(&file) {
        Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| ignored(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => PendingValues::new(),
        Err(error) => ignored(&error),
    }
}

/// The usable values. One may depend on another, so a value refused on its own is retried after others were accepted.
pub(super) fn usable_values(
    found: PendingValues,
    defaults: &Value,
    fits: impl Fn(&PendingValues) -> Result<(), ConfigError>,
) -> PendingValues {
    let mut kept = PendingValues::new();
    let (mut open, unknown): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|(path, value)| edit::may_wait(defaults, path, value));
    for (path, _) in unknown {
        eprintln!("configuration: {path} in {FILE} can't be used and is ignored");
    }
    loop {
        let before = open.len();
        let mut refusals = Vec::new();
        open.retain(|(path, value)| {
            kept.insert(path.clone(), value.clone());
            let Err(error) = fits(&kept) else { return false };
            kept.remove(path);
            refusals.push(format!(
                "{path} in {FILE} can't be used and is ignored: {}",
                error.text
            ));
            true
        });
        if open.is_empty() || open.len() == before {
            refusals
                .iter()
                .for_each(|refusal| eprintln!("configuration: {refusal}"));
            return kept;
        }
    }
}

/// Writes the file atomically and durably, readable only by its owner.
pub(super) fn write(dir: &Path, waiting: &PendingValues) -> std::io::Result<()> {
    files::private_dir(dir)?;
    files::write_private(&dir.join(FILE), &json!(waiting).to_string())
}
