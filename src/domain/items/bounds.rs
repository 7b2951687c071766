//! Upper bounds on the length of ingested fields and on how much of them may be repeated. Each error names the field.
//!
//! Invariant: no request of n bytes needs more than 12 n + 50 MiB of memory. Values repeated on every row (a source,
//! a collector, a tag) are short, and a request that expands a few bytes into many rows is refused.

use serde_json::{Map, Value};

use crate::domain::draft::{COPIES, Drafts};
use crate::domain::error::DomainError;
use crate::domain::schema::{self, text_schema};

/// Maximum number of entries in one request.
const MAX_ENTRIES: usize = 10_000;
/// Maximum length of a text field, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Maximum length of a node name, in characters.
const MAX_NAME: usize = 2000;
/// Maximum length of a text repeated on every row (a source, a collector, a title), in characters.
const MAX_SHARED: usize = 500;
/// Maximum length of a tag, in characters.
const MAX_TAG: usize = 200;
/// Maximum number of tags per item.
const MAX_TAGS: usize = 100;
/// Maximum size of a node's properties, in bytes of JSON.
const MAX_PROPERTIES: usize = 64 * 1024;

/// Memory allowed for an empty request, and for each of its bytes. The rest of the 50 MiB covers what the
/// estimate does not see.
const ROOM: usize = 36 << 20;
const ROOM_PER_BYTE: usize = 12;

text_schema! {
    /// Name of a node; white space around it is removed.
    NodeName, (1, MAX_NAME), schema::NOT_BLANK, "Sandworm Team"
}

text_schema! {
    /// Name of a collector, title or source; shown on each entry.
    SharedText, (1, MAX_SHARED), schema::NOT_BLANK, "Weekly threat report"
}

text_schema! {
    /// At most 1 MiB of UTF-8.
    LongText, (0, MAX_TEXT), schema::PLAIN, "Uses Industroyer against substations."
}

text_schema! {
    /// A tag.
    TagText, (1, MAX_TAG), schema::NOT_BLANK, "ics"
}

/// Checks the number of entries of a list.
pub fn entries(field: &str, count: usize) -> Result<(), DomainError> {
    if (1..=MAX_ENTRIES).contains(&count) {
        return Ok(());
    }
    Err(DomainError::invalid(
        field,
        format!("must hold from 1 to {MAX_ENTRIES} entries"),
    ))
}

/// Checks the name of a node.
pub fn name(field: &str, value: &str) -> Result<(), DomainError> {
    characters(field, value, MAX_NAME)
}

/// Checks a text that is repeated on every row.
pub fn check_shared(field: &str, value: &str) -> Result<(), DomainError> {
    characters(field, value, MAX_SHARED)
}

/// Checks the tags of an item.
pub fn tags(field: &str, tags: &[String]) -> Result<(), DomainError> {
    if tags.len() > MAX_TAGS {
        let rule = format!("must hold at most {MAX_TAGS} entries");
        return Err(DomainError::invalid(field, rule));
    }
    let mut tags = tags.iter().enumerate();
    tags.try_for_each(|(i, tag)| characters(&format!("{field}[{i}]"), tag, MAX_TAG))
}

/// Checks an optional text.
pub fn text<'a>(field: &str, value: impl Into<Option<&'a str>>) -> Result<(), DomainError> {
    match value.into() {
        Some(value) if value.contains('\0') => {
            Err(DomainError::invalid(field, "must not hold a NUL character"))
        }
        Some(value) if value.len() > MAX_TEXT => Err(DomainError::invalid(
            field,
            format!("must have at most {MAX_TEXT} bytes"),
        )),
        _ => Ok(()),
    }
}

/// Checks free-form properties: they are stored and read with the node, so their size is bounded.
pub fn properties(field: &str, properties: &Map<String, Value>) -> Result<(), DomainError> {
    let bytes = serde_json::to_vec(properties).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_PROPERTIES {
        return Err(DomainError::invalid(
            field,
            format!("must have at most {MAX_PROPERTIES} bytes as JSON"),
        ));
    }
    Ok(())
}

/// Checks how many bytes a request of `size` bytes would repeat, before any draft is built.
pub fn check_repetition(field: &str, bytes: usize, size: usize) -> Result<(), DomainError> {
    fits(field, (bytes as f64 * COPIES) as usize, size)
}

/// Checks the memory needed to write the drafts of a request of `size` bytes.
pub fn weight(field: &str, drafts: &Drafts, size: usize) -> Result<(), DomainError> {
    fits(field, drafts.weight(), size)
}

/// Bytes of memory that a request of `size` bytes may need.
pub fn room(size: usize) -> usize {
    ROOM.saturating_add(size.saturating_mul(ROOM_PER_BYTE))
}

fn fits(field: &str, needed: usize, size: usize) -> Result<(), DomainError> {
    if needed <= room(size) {
        return Ok(());
    }
    let (needed, size) = (needed >> 20, size >> 10);
    Err(DomainError::invalid(
        field,
        format!("would need {needed} MiB of memory, too much for a request of {size} KiB; send it in parts"),
    ))
}

fn characters(field: &str, value: &str, max: usize) -> Result<(), DomainError> {
    if value.trim().is_empty() || (value.len() > max && value.chars().nth(max).is_some()) {
        return Err(DomainError::invalid(
            field,
            format!("must have from 1 to {max} characters"),
        ));
    }
    text(field, value)
}
