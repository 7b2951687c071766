//! The versions of MISP attributes that a node is made of: `properties.misp_attributes`, one entry per attribute.
//!
//! Rule: of two versions of an attribute the newer one counts, by the time of the attribute and then of its event. One that
//! is deleted stays deleted for any other text of the same version. An entry that no longer counts stays, and says why.

use serde_json::{Map, Value};

/// Maximum number of entries of a node.
const MAX_ENTRIES: usize = 1000;
/// The list of entries.
pub const ENTRIES: &str = "misp_attributes";
/// Says why an entry no longer counts.
const ENDED: &str = "ended";
/// What a node shows of its first entry.
const SHOWN: [(&str, &str); 3] = [
    ("comment", "comment"),
    ("category", "category"),
    ("misp_type", "type"),
];

/// When a version of an attribute was made: the times of the attribute and of its event, in seconds since 1970; 0 where
/// none is stated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeVersion {
    pub attribute: i64,
    pub event: i64,
}

impl AttributeVersion {
    /// The version with these times, of which an attribute may lack its own.
    pub fn of(attribute: Option<i64>, event: Option<i64>) -> Self {
        let event = event.unwrap_or_default();
        Self {
            attribute: attribute.unwrap_or(event),
            event,
        }
    }

    /// Whether nothing says when it was made: then it is as new as what comes.
    pub fn is_unknown(self) -> bool {
        self == Self::default()
    }
}

/// An attribute as a node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAttribute {
    /// In lower case.
    pub uuid: String,
    pub version: AttributeVersion,
    /// Whether it is deleted, or has another value now.
    pub is_ended: bool,
    pub is_deleted: bool,
}

impl KnownAttribute {
    /// Whether a version of the attribute tells nothing that is newer.
    pub fn outdates(&self, version: AttributeVersion) -> bool {
        !version.is_unknown() && (version < self.version || (version == self.version && self.is_deleted))
    }
}

/// An attribute that has another value or is deleted, and where it was stated before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeEnd {
    /// In lower case.
    pub uuid: String,
    pub version: AttributeVersion,
    pub is_deleted: bool,
}

/// The attributes of a node with these properties that have a UUID.
pub fn known_attributes(properties: &Map<String, Value>) -> Vec<KnownAttribute> {
    entries(properties).iter().filter_map(known).collect()
}

/// The events that a node's attributes are of.
pub fn events_of(properties: &Map<String, Value>) -> Vec<String> {
    let own = properties.get("event_uuid").and_then(Value::as_str);
    let of_entry = |entry: &Value| Some(entry.get("event_uuid")?.as_str()?.to_owned());
    let mut events: Vec<String> = entries(properties).iter().filter_map(of_entry).collect();
    events.extend(own.map(str::to_owned));
    events.sort_unstable();
    events.dedup();
    events
}

/// Whether every attribute that a node is made of has ended.
pub fn are_all_ended(properties: &Map<String, Value>) -> bool {
    let entries = entries(properties);
    let counted = properties.get("attribute_count").and_then(Value::as_u64);
    let is_ended = |entry: &Value| entry.get(ENDED).is_some();
    !entries.is_empty()
        && counted.is_none_or(|counted| entries.len() as u64 >= counted)
        && entries.iter().all(is_ended)
}

/// Adds the entries of another statement of a node; a newer version takes the place of an older one. Returns whether
/// anything has changed.
pub fn unite_entries(properties: &mut Map<String, Value>, more: Vec<Value>) -> bool {
    let (mut changed, mut replaced) = (false, false);
    let Some(list) = entries_mut(properties) else {
        return false;
    };
    for entry in more {
        let new = known(&entry);
        let same = |there: &&mut Value| {
            known(there).is_some_and(|old| new.as_ref().is_some_and(|new| new.uuid == old.uuid))
        };
        let there = list.iter_mut().find(same);
        match (there, new) {
            (Some(there), Some(new)) => {
                let is_outdated = known(there).is_some_and(|old| old.outdates(new.version));
                if !is_outdated && *there != entry {
                    *there = entry;
                    (changed, replaced) = (true, true);
                }
            }
            (Some(_), None) | (None, _) => {
                if list.len() < MAX_ENTRIES && !list.contains(&entry) {
                    list.push(entry);
                    changed = true;
                }
            }
        }
    }
    if changed {
        show_to_ids(properties);
    }
    if replaced {
        show_first(properties);
    }
    changed
}

/// Ends an attribute at a node that stated it; returns whether anything has changed.
pub fn end_entry(properties: &mut Map<String, Value>, end: &AttributeEnd) -> bool {
    let Some(list) = entries_mut(properties) else {
        return false;
    };
    let mut changed = false;
    for entry in list {
        let Some(old) = known(entry).filter(|old| old.uuid == end.uuid) else {
            continue;
        };
        let Some(entry) = entry.as_object_mut() else {
            continue;
        };
        if old.is_deleted || (old.is_ended && !end.is_deleted) {
            continue;
        }
        let how = if end.is_deleted { "deleted" } else { "corrected" };
        entry.insert(ENDED.to_owned(), how.into());
        if end.is_deleted && !end.version.is_unknown() {
            entry.insert("timestamp".to_owned(), end.version.attribute.into());
            entry.insert("event_timestamp".to_owned(), end.version.event.into());
        }
        changed = true;
    }
    if changed {
        show_to_ids(properties);
        show_first(properties);
    }
    changed
}

/// Removes the entries of these attributes from a statement; returns how many are left of how many.
pub fn remove_entries(
    properties: &mut Map<String, Value>,
    gone: impl Fn(&KnownAttribute) -> bool,
) -> (usize, usize) {
    let Some(list) = entries_mut(properties) else {
        return (0, 0);
    };
    let before = list.len();
    list.retain(|entry| known(entry).is_none_or(|entry| !gone(&entry)));
    let left = list.len();
    if left < before {
        show_to_ids(properties);
        show_first(properties);
    }
    (left, before)
}

fn entries(properties: &Map<String, Value>) -> &[Value] {
    let list = properties.get(ENTRIES).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn entries_mut(properties: &mut Map<String, Value>) -> Option<&mut Vec<Value>> {
    let list = properties
        .entry(ENTRIES)
        .or_insert_with(|| Value::Array(Vec::new()));
    list.as_array_mut()
}

fn known(entry: &Value) -> Option<KnownAttribute> {
    let uuid = entry.get("uuid")?.as_str()?.trim().to_ascii_lowercase();
    let ended = entry.get(ENDED).and_then(Value::as_str);
    Some(KnownAttribute {
        uuid,
        version: AttributeVersion::of(
            seconds(entry.get("timestamp")),
            seconds(entry.get("event_timestamp")),
        ),
        is_ended: ended.is_some(),
        is_deleted: ended == Some("deleted"),
    })
}

/// A time in seconds since 1970, which MISP writes as a number or as a string.
pub fn seconds(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Those that still count, if all that the node is made of is known.
fn counting(properties: &Map<String, Value>) -> Option<Vec<&Map<String, Value>>> {
    let entries = entries(properties);
    let counted = properties.get("attribute_count").and_then(Value::as_u64);
    let is_whole = counted.is_none_or(|counted| entries.len() as u64 >= counted);
    let counts = entries.iter().filter(|entry| entry.get(ENDED).is_none());
    is_whole.then(|| counts.filter_map(Value::as_object).collect())
}

/// A node is for detection if one of its attributes is.
fn show_to_ids(properties: &mut Map<String, Value>) {
    let Some(counting) = counting(properties) else {
        return;
    };
    let flags: Vec<bool> = counting
        .iter()
        .filter_map(|entry| flag(entry.get("to_ids")))
        .collect();
    if flags.len() == counting.len() && !flags.is_empty() {
        let to_ids = flags.contains(&true);
        properties.insert("to_ids".to_owned(), to_ids.into());
    }
}

fn flag(value: Option<&Value>) -> Option<bool> {
    match value? {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => number.as_i64().map(|number| number != 0),
        Value::String(text) => Some(matches!(text.trim().to_ascii_lowercase().as_str(), "1" | "true")),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A node shows what the first of its attributes says.
fn show_first(properties: &mut Map<String, Value>) {
    let Some(first) =
        counting(properties).and_then(|counting| counting.first().map(|first| (*first).clone()))
    else {
        return;
    };
    for (shown, member) in SHOWN {
        match first.get(member) {
            Some(value) => properties.insert(shown.to_owned(), value.clone()),
            None => properties.remove(shown),
        };
    }
}

#[cfg(test)]
mod tests;
