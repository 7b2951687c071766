//! STIX export: assembles stored objects into a valid, self-contained bundle.
//!
//! Invariants: an object ingested as STIX is exported with every field it had (plus its row's TLP marking if its own
//! is missing or weaker, and a confidence if it has none), no reference dangles, and a bundle that fails validation is
//! never exported.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::marking;
use super::object::{format_timestamp, modified_of, retain_refs, text, texts, visit_refs};
use super::schema::{StixValidator, Violation};
use crate::domain::tlp::Tlp;

/// A stored object with the current marking and confidence of its row.
#[derive(Debug, Clone)]
pub struct ExportObject {
    pub raw: Map<String, Value>,
    pub tlp: Tlp,
    /// 0 to 1; `None` for objects that have no confidence, such as markings.
    pub confidence: Option<f64>,
    /// When the row was last changed here, as far as an export shows it.
    pub changed_at: Option<DateTime<Utc>>,
}

impl ExportObject {
    /// A marking-definition, which has no marking of its own.
    pub fn of_definition(raw: Map<String, Value>) -> Self {
        Self {
            raw,
            tlp: Tlp::White,
            confidence: None,
            changed_at: None,
        }
    }
}

/// The contents of an export; all of it has passed the caller's clearance.
#[derive(Debug, Default)]
pub struct ExportParts {
    pub nodes: Vec<ExportObject>,
    pub relationships: Vec<ExportObject>,
    pub supporting: Vec<ExportObject>,
}

impl ExportParts {
    /// Referenced ids that are neither among the parts nor built in, in order.
    pub fn missing_refs(&self) -> BTreeSet<String> {
        let mut missing = BTreeSet::new();
        let own: HashSet<&str> = self
            .objects()
            .filter_map(|object| text(&object.raw, "id"))
            .collect();
        for object in self.objects() {
            visit_refs(&object.raw, &mut |id| {
                if !own.contains(id) && !marking::is_built_in(id) {
                    missing.insert(id.to_owned());
                }
            });
        }
        missing
    }

    /// Drops the objects that the standard does not allow without the references that don't leave with them: a sighting of
    /// something hidden, a report of nothing else. Returns how many there are.
    pub fn drop_without_references(&mut self) -> u64 {
        let mut dropped = 0;
        loop {
            let missing = self.missing_refs();
            let lists = [&mut self.nodes, &mut self.relationships, &mut self.supporting];
            let before = lists.iter().map(|list| list.len()).sum::<usize>();
            let mut left = 0;
            for list in lists {
                list.retain(|object| stands_without(&object.raw, &missing));
                left += list.len();
            }
            if left == before {
                return dropped;
            }
            dropped += (before - left) as u64;
        }
    }

    fn objects(&self) -> impl Iterator<Item = &ExportObject> {
        self.nodes
            .iter()
            .chain(&self.relationships)
            .chain(&self.supporting)
    }
}

/// Whether an object is still valid without these references.
fn stands_without(object: &Map<String, Value>, missing: &BTreeSet<String>) -> bool {
    let mut misses = false;
    visit_refs(object, &mut |id| misses |= missing.contains(id));
    if !misses {
        return true;
    }
    let mut without = object.clone();
    retain_refs(&mut without, &|id| !missing.contains(id));
    StixValidator::shared().object(&Value::Object(without)).is_empty()
}

/// The text that an export answers with; only for the API description, as a bundle is never parsed again.
#[derive(ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
pub struct ExportedBundle {
    #[schema(pattern = "^bundle$", example = "bundle")]
    r#type: String,
    #[schema(
        pattern = "^bundle--",
        example = "bundle--6f1c0a52-7d6e-4a8e-9c53-0b1f2d3e4a5b"
    )]
    id: String,
    #[schema(pattern = "^2\\.1$", example = "2.1")]
    spec_version: String,
    /// STIX 2.1 objects, with everything that they refer to.
    #[schema(min_items = 1, example = json!([{
        "type": "tool", "spec_version": "2.1", "id": "tool--c3f1c3f8-5a0d-4f4b-8c1a-2f5b6a7d8e9f",
        "created": "2024-01-01T00:00:00.000Z", "modified": "2024-01-01T00:00:00.000Z", "name": "Mimikatz",
        "confidence": 70, "object_marking_refs": ["marking-definition--613f2e26-407d-48c7-9eca-b8e91df99dc9"]
    }]))]
    objects: Vec<Map<String, Value>>,
}

/// Builds and validates the bundle. The same parts give the same objects in the same order: the nodes as they come, all
/// others by their ids.
///
/// # Errors
/// Every STIX 2.1 rule that the bundle breaks; nothing may be exported then.
pub fn bundle(mut parts: ExportParts, id: Uuid) -> Result<Value, Vec<Violation>> {
    for unordered in [&mut parts.supporting, &mut parts.relationships] {
        unordered.sort_by(|one, other| text(&one.raw, "id").cmp(&text(&other.raw, "id")));
    }
    let mut objects: Vec<Map<String, Value>> = Vec::new();
    for object in parts
        .supporting
        .into_iter()
        .chain(parts.nodes)
        .chain(parts.relationships)
    {
        objects.push(with_row_marking(object));
    }
    let included: HashSet<String> = objects
        .iter()
        .filter_map(|o| text(o, "id"))
        .map(str::to_owned)
        .collect();
    let keep = |id: &str| included.contains(id) || marking::has_definition(id);
    let mut markings: BTreeMap<String, Value> = BTreeMap::new();
    for object in &mut objects {
        retain_refs(object, &keep);
        marking::write_fixed_ids(object, |id| included.contains(id));
        visit_refs(object, &mut |id| {
            if !included.contains(id)
                && !markings.contains_key(id)
                && let Some(definition) = marking::built_in_definition(id)
            {
                markings.insert(id.to_owned(), definition);
            }
        });
    }
    let objects: Vec<Value> = markings
        .into_values()
        .chain(objects.into_iter().map(Value::Object))
        .collect();
    let mut bundle = json!({"type": "bundle", "id": format!("bundle--{id}"), "spec_version": "2.1"});
    // Assigned outside the macro, which would copy all objects.
    bundle["objects"] = Value::Array(objects);
    StixValidator::shared().bundle(&bundle)?;
    Ok(bundle)
}

/// The object as it leaves by itself, without references to what does not leave, which are not among `kept`.
///
/// # Errors
/// Every STIX 2.1 rule that it breaks; it may not be exported then.
pub fn single(object: ExportObject, kept: impl Fn(&str) -> bool) -> Result<Value, Vec<Violation>> {
    let mut object = with_row_marking(object);
    retain_refs(&mut object, &|id| kept(id) || marking::has_definition(id));
    marking::write_fixed_ids(&mut object, |_| false);
    let object = Value::Object(object);
    let violations = StixValidator::shared().object(&object);
    if violations.is_empty() {
        Ok(object)
    } else {
        Err(violations)
    }
}

/// The object with its row's marking and confidence, unless it states an equal or stricter marking and a confidence.
fn with_row_marking(object: ExportObject) -> Map<String, Value> {
    let ExportObject {
        mut raw,
        tlp,
        confidence,
        changed_at,
    } = object;
    if text(&raw, "type") == Some("marking-definition") {
        return raw;
    }
    let own = texts(&raw, "object_marking_refs")
        .filter_map(marking::well_known_level)
        .max();
    if own.is_none_or(|own| own < tlp) {
        let refs = raw
            .entry("object_marking_refs")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(refs) = refs {
            for id in marking::refs_for(tlp).iter().map(|id| Value::from(*id)) {
                if !refs.contains(&id) {
                    refs.push(id);
                }
            }
        }
    }
    if let Some(confidence) = confidence {
        let percent = (confidence * 100.0).round().clamp(0.0, 100.0) as u8;
        let own = raw.entry("confidence").or_insert_with(|| percent.into());
        if changed_at.is_some() {
            *own = percent.into();
        }
    }
    if let Some(changed) = changed_at {
        set_modified(&mut raw, changed);
    }
    raw
}

/// Sets `modified` to the time of a change made here. Rule: a changed object is newer than the version that was
/// received, and an unchanged one keeps its time.
fn set_modified(raw: &mut Map<String, Value>, changed: DateTime<Utc>) {
    let received = modified_of(raw).map(|received| received + TimeDelta::milliseconds(1));
    let time = received.map_or(changed, |received| changed.max(received));
    if (1..=9999).contains(&time.year()) {
        raw.insert("modified".to_owned(), format_timestamp(time).into());
    }
}

/// The violations as one line of text for an error body.
pub fn summary(violations: &[Violation]) -> String {
    let shown: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
    let more = violations.len().saturating_sub(shown.len());
    let tail = if more > 0 {
        format!(" (and {more} more)")
    } else {
        String::new()
    };
    format!("{}{tail}", shown.join("; "))
}
