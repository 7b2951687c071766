//! MISP ingest: one event becomes drafts of nodes, edges and one evidence record. Pure.
//!
//! - Every attribute becomes a node, including those inside objects and their metadata: vulnerabilities become cve or
//!   vulnerability nodes, threat actors actor nodes, everything else ioc nodes. Composite types are split
//!   ([`composite`]); galaxies become actor, tool, attck and vulnerability nodes ([`galaxy`]).
//! - The identity of an indicator is `("ioc", kind, normalised value)` ([`super::naming`]), without the event: the
//!   same value from another event or ingest source is the same node. Within one event it is one node with the most
//!   restrictive marking of all its attributes.
//! - All nodes are linked to one evidence record, the event without its attributes. Each attribute is kept in
//!   `properties` of its node, except for the bytes of attachments: this is not a sample store.
//! - Edges are stated relationships only: an object reference, a galaxy on an attribute, the two values of a
//!   composite attribute. Sharing an object does not relate attributes.
//! - The strictest marking of event, object and attribute wins, so a node may show the facts of its event.
//! - A broken attribute is skipped alone, and counted with its reason.

mod body;
mod bounds;
mod comments;
mod composite;
mod edges;
mod galaxy;
mod lenient;
mod marking;
mod node;
mod planner;
mod reports;
#[cfg(test)]
mod tests;
mod value;
mod wire;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub use self::body::MispExport;
use super::draft::{Drafts, ItemDefaults};
use super::stix::ingest::SkippedType;

/// The kind and value that an attribute gives, for tests of normal forms.
#[cfg(test)]
pub(super) fn value_of_attribute(misp_type: &str, value: &str) -> (String, String) {
    let part = value::attribute_value(misp_type, value);
    (part.kind.into_owned(), part.value)
}

/// The sample events beside the repository, for tests of later stages.
#[cfg(test)]
pub(super) use tests::real::files as real_events;

/// Counts of and reasons for skipped items, by kind.
pub type SkipCounts = BTreeMap<String, SkippedType>;

/// The contents of an event, ready for the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MispPlan {
    pub drafts: Drafts,
    /// Skipped items, by kind: `attribute`, `object`, `object_reference`.
    pub skipped: SkipCounts,
}

/// The pattern that matches a value, and its language; `None` if no pattern can match it. `kind` is a MISP attribute
/// type or an indicator kind as in node properties. A wrong kind yields no pattern, never a wrong one.
pub fn detection(kind: &str, value: &str) -> Option<(String, &'static str)> {
    let misp_type = match kind {
        "ipv4" | "ipv6" | "cidr" | "ipv4-addr" | "ipv6-addr" => "ip-dst",
        "domain-name" => "domain",
        "email-addr" => "email",
        "file-name" | "file-path" | "file" => "filename",
        "registry-key" | "windows-registry-key" => "regkey",
        "asn" | "autonomous-system" => "AS",
        "mac-addr" | "mac" => "mac-address",
        "sha-1" => "sha1",
        "sha-256" => "sha256",
        "sha-512" => "sha512",
        other => other,
    };
    let part = value::attribute_value(misp_type, value);
    let language = part.pattern_type?;
    Some((part.pattern.unwrap_or(part.value), language))
}

/// The invalid field of a request, and the rule it breaks.
pub type FieldError = (String, String);

/// Counts skipped items.
pub fn skip(skipped: &mut SkipCounts, kind: &str, reason: &str, count: u64) {
    if count > 0 {
        let of_kind = skipped.entry(kind.to_owned()).or_default();
        of_kind.count += count;
        *of_kind.reasons.entry(reason.to_owned()).or_default() += count;
    }
}

fn error<T>(field: &str, rule: impl Into<String>) -> Result<T, FieldError> {
    Err((field.to_owned(), rule.into()))
}

/// Unwraps the event from the forms that MISP and its clients use: bare, `{Event}`, `{response: […]}`, a list of one.
///
/// # Errors
/// If there is no event, or more than one.
pub fn unwrap_event(event: Value) -> Result<Map<String, Value>, FieldError> {
    let mut inner = event;
    loop {
        inner = match inner {
            Value::Object(mut members) => {
                let wrapped = !members.contains_key("uuid");
                let inside = ["Event", "response"]
                    .into_iter()
                    .filter(|_| wrapped)
                    .find_map(|key| members.remove(key));
                match inside {
                    Some(inside) => inside,
                    None => return Ok(members),
                }
            }
            Value::Array(items) if items.len() > 1 => return error("event", several(&items)),
            Value::Array(mut items) => match items.pop() {
                Some(only) => only,
                None => return error("event", "holds no event"),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return error("event", "must be an object");
            }
        };
    }
}

/// The rule that a list of several events breaks; it names them.
fn several(items: &[Value]) -> String {
    let named: Vec<&str> = items
        .iter()
        .filter_map(|item| item.pointer("/Event/uuid").or_else(|| item.get("uuid"))?.as_str())
        .filter(|uuid| uuid.len() <= 36)
        .take(3)
        .collect();
    let count = items.len();
    match named.is_empty() {
        true => format!("must hold one event, holds {count}"),
        false => format!("must hold one event, holds {count}: {}", named.join(", ")),
    }
}

/// Bytes of an event's texts that would be stored repeatedly, once per node that shows them.
///
/// # Errors
/// Names the first repeated field that is too long or has too many entries.
pub fn repeated_bytes(event: &Map<String, Value>) -> Result<usize, FieldError> {
    bounds::check(event)?;
    Ok(bounds::repeated_bytes(event))
}

/// Turns an event into drafts.
///
/// # Errors
/// Names the missing or invalid field of the event; nothing of the event is ingested.
pub fn plan(event: &Map<String, Value>, defaults: ItemDefaults) -> Result<MispPlan, FieldError> {
    bounds::check(event)?;
    let mut planner = planner::Planner::new(event, defaults)?;
    planner.run()?;
    Ok(planner.finish())
}
