//! What waits for a restart: a file in the data directory, written by one process and taken over by the next.
//!
//! A value that no longer fits is left out and said so: it never keeps the service from starting, and never opens it
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
pub(super) type Waiting = BTreeMap<String, Value>;

/// What an earlier process left; a file that can't be read is nothing, and said so.
pub(super) fn read(dir: Option<&Path>) -> Waiting {
    let Some(file) = dir.map(|dir| dir.join(FILE)) else {
        return Waiting::new();
    };
    let ignored = |error: &dyn std::fmt::Display| {
        eprintln!(
            "configuration: {} can't be read and is ignored: {error}",
            file.display()
        );
        Waiting::new()
    };
    match std::fs::read(&file) {
        Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| ignored(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Waiting::new(),
        Err(error) => ignored(&error),
    }
}

/// The values that can be used. One may need another, so what does not fit alone is tried again beside the others.
pub(super) fn usable(
    found: Waiting,
    defaults: &Value,
    fits: impl Fn(&Waiting) -> Result<(), ConfigError>,
) -> Waiting {
    let mut kept = Waiting::new();
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

/// Writes the file: whole or not at all, durable, and readable by its owner only.
pub(super) fn write(dir: &Path, waiting: &Waiting) -> std::io::Result<()> {
    files::private_dir(dir)?;
    files::write_private(&dir.join(FILE), &json!(waiting).to_string())
}
