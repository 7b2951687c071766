//! The objects of a bundle as JSON text, parsed one at a time.
//!
//! A small object takes fifteen times the memory of its text when parsed, so they are never all parsed at once.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::complete;
use super::marking::{self, DefinitionLevel, Markings};
use super::object::{has_capitals, modified_of, text, type_of_id, visit_refs, write_ids_in_lower_case};
use super::schema::StixValidator;
use crate::domain::tlp::Tlp;

/// The fields by which an object is marked.
const MARKING_FIELDS: [&str; 4] = [
    "x_mitre_tlp",
    "labels",
    "object_marking_refs",
    "granular_markings",
];

/// Why an object could not be parsed, and its index in the list.
#[derive(Debug, thiserror::Error)]
#[error("objects[{place}]: {cause}")]
pub struct ObjectParseError {
    pub place: usize,
    pub cause: serde_json::Error,
}

/// A list of objects after one pass: the newest of each id, and what other objects need to know of them.
#[derive(Debug, Default)]
pub struct Objects {
    text: String,
    kept: Vec<ObjectEntry>,
    dropped: Vec<DroppedEntry>,
    defined: Markings,
    /// Referenced markings that are not built in.
    referenced: HashSet<String>,
    /// Whether an id is spelled with capital letters.
    has_capitals: bool,
}

#[derive(Debug, Clone)]
struct ObjectEntry {
    at: Range<usize>,
    role: Role,
}

/// The role of an object for the others of its bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Identity,
    Other,
}

/// An object that is not kept.
#[derive(Debug)]
pub(super) struct DroppedEntry {
    at: Range<usize>,
    /// Its index in the list.
    place: usize,
    cause: DropCause,
}

#[derive(Debug, Clone, Copy)]
enum DropCause {
    Unstorable,
    NotAnObject,
    NoId,
    ForeignId,
    /// The object kept at this index has the same id and is newer.
    Repeated(usize),
}

/// What is known of an object that is not kept.
#[derive(Debug)]
pub(super) struct DroppedObject {
    pub(super) kind: String,
    pub(super) id: String,
    pub(super) reason: String,
    /// Size in bytes.
    pub(super) bytes: usize,
    /// The object itself, if it is another version of one that is kept.
    pub(super) version: Option<Map<String, Value>>,
    /// The objects whose markings it has: its own, and that of the newer object with its id. `None` if a marking can't be
    /// read.
    pub(super) marked_as: Option<Vec<Map<String, Value>>>,
}

/// Position and time of the newest object with an id.
struct NewestVersion {
    place: usize,
    modified: Option<DateTime<Utc>>,
}

impl Objects {
    /// Number of distinct objects.
    pub fn count(&self) -> usize {
        self.kept.len()
    }

    /// Makes the pass over the objects at these positions of `text`.
    ///
    /// # Errors
    /// The first object that is not storable JSON, such as one with a lone surrogate.
    pub fn read(text: String, places: Vec<Range<usize>>) -> Result<Self, ObjectParseError> {
        let mut objects = Self::default();
        let mut newest = HashMap::new();
        for (place, at) in places.into_iter().enumerate() {
            let value = text.get(at.clone()).unwrap_or_default();
            let value = serde_json::from_str(value).map_err(|cause| ObjectParseError { place, cause })?;
            objects.add_value(place, at, value, &mut newest);
        }
        Ok(objects.complete(text))
    }

    /// Like [`Objects::read`], but skips what is not storable JSON, with its reason.
    pub fn read_leniently(text: String, places: Vec<Range<usize>>) -> Self {
        let mut objects = Self::default();
        let mut newest = HashMap::new();
        for (place, at) in places.into_iter().enumerate() {
            match serde_json::from_str(text.get(at.clone()).unwrap_or_default()) {
                Ok(value) => objects.add_value(place, at, value, &mut newest),
                Err(_) => objects.discard(at, place, DropCause::Unstorable),
            }
        }
        objects.complete(text)
    }

    fn complete(mut self, text: String) -> Self {
        self.text = text;
        self
    }

    /// Drops values without a usable id and all but the newest object of each id.
    fn add_value(
        &mut self,
        index: usize,
        at: Range<usize>,
        value: Value,
        newest: &mut HashMap<String, NewestVersion>,
    ) {
        let Value::Object(mut object) = value else {
            self.discard(at, index, DropCause::NotAnObject);
            return;
        };
        let mut capitals = text(&object, "id").is_some_and(has_capitals);
        visit_refs(&object, &mut |id| capitals |= has_capitals(id));
        if capitals {
            self.has_capitals = true;
            write_ids_in_lower_case(&mut object);
        }
        let kind = text(&object, "type").unwrap_or("unknown");
        let Some(id) = text(&object, "id") else {
            self.discard(at, index, DropCause::NoId);
            return;
        };
        if type_of_id(id) != Some(kind) {
            self.discard(at, index, DropCause::ForeignId);
            return;
        }
        visit_refs(&object, &mut |id| {
            let marking = id.starts_with("marking-definition--") && !marking::is_built_in(id);
            if marking && !self.referenced.contains(id) {
                self.referenced.insert(id.to_owned());
            }
        });
        if kind == "marking-definition" {
            // Also of one that is dropped below: no definition weakens another one with its id.
            marking::learn(&mut self.defined, parse_definition(&object));
        }
        let role = if kind == "identity" {
            Role::Identity
        } else {
            Role::Other
        };
        let (kept, modified) = (ObjectEntry { at, role }, modified_of(&object));
        let Some(known) = newest.get_mut(id) else {
            let place = self.kept.len();
            newest.insert(id.to_owned(), NewestVersion { place, modified });
            self.kept.push(kept);
            return;
        };
        let cause = DropCause::Repeated(known.place);
        let dropped = match self.kept.get_mut(known.place) {
            Some(earlier) if modified > known.modified => {
                known.modified = modified;
                std::mem::replace(earlier, kept)
            }
            Some(_) | None => kept,
        };
        self.discard(dropped.at, index, cause);
    }

    fn discard(&mut self, at: Range<usize>, place: usize, cause: DropCause) {
        self.dropped.push(DroppedEntry { at, place, cause });
    }

    /// Ids of referenced markings that are not built in. Those defined among the objects are included, because an
    /// earlier definition may be stricter.
    pub fn referenced_markings(&self) -> Vec<String> {
        self.referenced.iter().cloned().collect()
    }

    /// The markings defined among the objects.
    pub fn defined_markings(&self) -> &Markings {
        &self.defined
    }

    /// Takes the list of dropped objects.
    pub(super) fn take_dropped(&mut self) -> Vec<DroppedEntry> {
        std::mem::take(&mut self.dropped)
    }

    /// Why an object was dropped, and what it was.
    pub(super) fn dropped(&self, entry: &DroppedEntry) -> DroppedObject {
        let object = self.object(&entry.at).unwrap_or_default();
        let place = format!("objects[{}]", entry.place);
        let kind = text(&object, "type").unwrap_or("unknown").to_owned();
        let id = text(&object, "id").unwrap_or(&place).to_owned();
        let reason = match entry.cause {
            DropCause::Unstorable => format!("can't be stored as JSON ({place})"),
            DropCause::NotAnObject => format!("must be an object ({place})"),
            DropCause::NoId => format!("id: is required ({place})"),
            DropCause::ForeignId => format!("id: must be {kind}--UUID ({place})"),
            DropCause::Repeated(_) => {
                "an object with this id and a later or equal modified is in the bundle".to_owned()
            }
        };
        let version = matches!(entry.cause, DropCause::Repeated(_)).then(|| object.clone());
        let marked_as = match entry.cause {
            DropCause::Unstorable => {
                marking_fields(self.text.get(entry.at.clone()).unwrap_or_default()).map(|fields| vec![fields])
            }
            DropCause::Repeated(newer) => {
                let newer = self.kept.get(newer).and_then(|kept| self.object(&kept.at));
                Some([Some(object), newer].into_iter().flatten().collect())
            }
            DropCause::NotAnObject | DropCause::NoId | DropCause::ForeignId => Some(vec![object]),
        };
        DroppedObject {
            kind,
            id,
            reason,
            bytes: entry.at.len(),
            version,
            marked_as,
        }
    }

    /// The identities, parsed one at a time.
    pub(super) fn identities(&self) -> impl Iterator<Item = Map<String, Value>> {
        let places = self.positions_of(Role::Identity);
        places.into_iter().filter_map(|at| self.object(&at))
    }

    /// Position of the newest object of each id, in list order.
    pub(super) fn all(&self) -> Vec<Range<usize>> {
        self.kept.iter().map(|kept| kept.at.clone()).collect()
    }

    /// The object at a position.
    pub(super) fn object(&self, at: &Range<usize>) -> Option<Map<String, Value>> {
        let mut object = serde_json::from_str(self.text.get(at.clone())?).ok()?;
        if self.has_capitals {
            write_ids_in_lower_case(&mut object);
        }
        Some(object)
    }

    fn positions_of(&self, role: Role) -> Vec<Range<usize>> {
        let places = self.kept.iter().filter(|kept| kept.role == role);
        places.map(|kept| kept.at.clone()).collect()
    }
}

/// The fields of an object that say how it is marked, if they can be read though other fields can't.
fn marking_fields(object: &str) -> Option<Map<String, Value>> {
    let fields: HashMap<String, &RawValue> = serde_json::from_str(object).ok()?;
    let mut readable = Map::new();
    for name in MARKING_FIELDS {
        if let Some(field) = fields.get(name) {
            readable.insert(name.to_owned(), serde_json::from_str(field.get()).ok()?);
        }
    }
    Some(readable)
}

/// The byte ranges of `text` from which the parts were read.
pub fn byte_ranges(text: &str, parts: &[&RawValue]) -> Vec<Range<usize>> {
    let place = |part: &&RawValue| {
        let start = (part.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        start..start + part.get().len()
    };
    parts.iter().map(place).collect()
}

impl From<Vec<Value>> for Objects {
    fn from(values: Vec<Value>) -> Self {
        let (mut text, mut places) = (String::new(), Vec::with_capacity(values.len()));
        for value in values {
            let start = text.len();
            text.push_str(&value.to_string());
            places.push(start..text.len());
        }
        // The text was just serialized, so it can be read.
        Self::read(text, places).unwrap_or_default()
    }
}

/// The id of a marking-definition and the level it states. One that is not valid STIX and states no level defines
/// nothing, and neither does one whose level can't be read.
fn parse_definition(definition: &Map<String, Value>) -> Option<(String, Option<Tlp>)> {
    let id = text(definition, "id")?.to_owned();
    let mut whole = definition.clone();
    complete::fill_required(&mut whole, DateTime::UNIX_EPOCH);
    let whole = Value::Object(whole);
    match marking::level_of(&whole) {
        DefinitionLevel::Level(level) => Some((id, Some(level))),
        DefinitionLevel::Statement if StixValidator::shared().object(&whole).is_empty() => Some((id, None)),
        DefinitionLevel::Statement | DefinitionLevel::Unreadable => None,
    }
}
