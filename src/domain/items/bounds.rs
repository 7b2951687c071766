//! How long what comes in may be, and how much of it may be repeated: each error names the field.
//!
//! Invariant: no request of n bytes needs more than 12 n + 50 MiB of memory. What is repeated on every row is short
//! (a source, a collector, a tag), and a request that makes many rows of few bytes is refused.

use serde_json::{Map, Value};

use crate::domain::draft::{COPIES, Drafts};
use crate::domain::error::DomainError;

/// Most entries in one request.
const MAX_ENTRIES: usize = 10_000;
/// Longest text of one field, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Longest name of a node, in bytes.
const MAX_NAME: usize = 2000;
/// Longest text that stands on every row, in characters: a source, a collector, a title.
const MAX_SHARED: usize = 500;
/// Longest tag, in characters.
const MAX_TAG: usize = 200;
/// Most tags of one item.
const MAX_TAGS: usize = 100;
/// Longest properties of one node, in bytes of JSON.
const MAX_PROPERTIES: usize = 64 * 1024;

/// What a request of no size may need of memory, and what each of its bytes adds; the rest of the 50 MiB is for what
/// an estimate does not see.
const ROOM: usize = 36 << 20;
const ROOM_PER_BYTE: usize = 12;

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
    if value.trim().is_empty() || value.len() > MAX_NAME {
        return Err(DomainError::invalid(
            field,
            format!("must have from 1 to {MAX_NAME} bytes"),
        ));
    }
    text(field, value)
}

/// Checks a text that stands on every row.
pub fn shared(field: &str, value: &str) -> Result<(), DomainError> {
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

/// Checks a text that may be missing.
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

/// Free-form properties are kept with the node and read with it, so they are bounded.
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

/// Checks what a request of `size` bytes is about to repeat, before anything is made of it.
pub fn repeated(field: &str, bytes: usize, size: usize) -> Result<(), DomainError> {
    fits(field, (bytes as f64 * COPIES) as usize, size)
}

/// Checks what a request of `size` bytes needs to be written.
pub fn weight(field: &str, drafts: &Drafts, size: usize) -> Result<(), DomainError> {
    fits(field, drafts.weight(), size)
}

fn fits(field: &str, needed: usize, size: usize) -> Result<(), DomainError> {
    if needed <= ROOM.saturating_add(size.saturating_mul(ROOM_PER_BYTE)) {
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
