//! STIX ingest: turns the objects of a bundle into nodes, relationships and supporting objects.
//!
//! Pure. An invalid object is skipped alone, with its reason. Supporting objects are those that describe others: markings,
//! extension definitions and language content.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

mod definitions;
mod earlier;
mod plan;
mod planning;
mod references;

pub use self::earlier::{EarlierVersions, VersionMarking};
pub use self::plan::{StixNode, StixPlan, StixRelationship, StixSupport};
pub use self::planning::StixPlanning;
use super::complete;
pub use super::marking::Markings;
use super::marking::{
    self, Conflict, ConflictReport, DefinitionLevel, ObjectMarking, SilentReport, SilentVersion,
};
use super::object::{flag, modified_of, text, type_of_id, unfit_text};
use super::objects::{DroppedObject, Objects};
use super::properties;
use super::schema::StixValidator;
pub use super::skip_report::{
    MarkedSkips, SkipReport, SkippedObject, SkippedSize, SkippedType, SkipsByMarking,
};
use crate::domain::kinds::StixRow;
use crate::domain::node::NodeStatus;
use crate::domain::packing::pack;
use crate::domain::tlp::Tlp;

/// Maximum length of a single string in an object, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Maximum length of an identity's name, in characters: it is copied to each node of that identity.
const MAX_SOURCE: usize = 500;

/// Defaults for an object without its own marking or confidence.
#[derive(Debug, Clone, Copy)]
pub struct StixDefaults {
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
    /// Arrival time of the bundle: `created` of objects that have none.
    pub now: DateTime<Utc>,
}

/// Sorts the objects of a bundle for the store; `known` are markings received earlier.
pub fn plan(objects: Objects, defaults: StixDefaults, known: Markings) -> StixPlan {
    let mut planning = StixPlanning::begin(objects, defaults, known);
    while planning.step(usize::MAX) {}
    planning.finish()
}

struct Planner {
    defaults: StixDefaults,
    markings: Markings,
    /// Versions that are not planned, because the bundle has newer ones.
    earlier: EarlierVersions,
    /// Names of the bundle's identities, with the marking that each states for itself.
    sources: HashMap<String, (String, Tlp)>,
    plan: StixPlan,
}

/// A complete, valid object with its resolved marking and confidence.
struct CheckedObject {
    raw: Map<String, Value>,
    tlp: Tlp,
    /// Its level without other versions.
    own_tlp: Tlp,
    stated: Option<Tlp>,
    earlier: Option<Tlp>,
    held_by: Vec<String>,
    conflict: Option<Conflict>,
    confidence: f64,
}

impl Planner {
    /// First pass: collects what objects need to know of later ones in the bundle.
    fn learn(&mut self, objects: &Objects) {
        marking::learn(&mut self.markings, objects.defined_markings().clone());
        for identity in objects.identities() {
            // An unreadable marking hides the name from everything below RED.
            let marked = marking::object_marking(&identity, &self.markings, Tlp::White);
            let level = marked.map_or(Tlp::Red, |marked| marked.tlp);
            let part = |key: &str| text(&identity, key).unwrap_or_default().to_owned();
            let name = Some(part("name")).filter(|name| is_source(name));
            self.sources.insert(part("id"), (name.unwrap_or_default(), level));
        }
    }

    /// Plans an object that takes so many bytes in the bundle.
    fn take(&mut self, object: Map<String, Value>, bytes: usize) {
        let kind = text(&object, "type").unwrap_or("unknown").to_owned();
        let id = text(&object, "id").unwrap_or_default().to_owned();
        let size = SkippedSize {
            tlp: self.level_of(&object),
            bytes,
        };
        let row = StixRow::of(&kind);
        if row.is_none() && kind != "relationship" {
            self.keep((id, size), object);
            return;
        }
        if row.is_none()
            && let Some(reason) = outside_the_graph(&object)
        {
            self.plan.skip(size, &kind, &reason);
            return;
        }
        let taken = self.check_object(object).and_then(|checked| {
            match row {
                Some(row) => {
                    let node = self.node(row, &checked)?;
                    if row.is_context() {
                        self.plan
                            .relationships
                            .extend(references::of(&node, &checked.raw));
                    }
                    self.plan.nodes.push(node);
                }
                None => self.plan.relationships.push(self.relationship(&checked)),
            }
            self.note_markings(&id, &checked);
            Ok(())
        });
        if let Err(reason) = taken {
            self.plan.skip_invalid(size, &kind, &id, reason);
        }
    }

    /// The marking of an object that may be invalid: RED if it can't be read.
    fn level_of(&self, object: &Map<String, Value>) -> Tlp {
        let marked = marking::object_marking(object, &self.markings, self.defaults.tlp);
        marked.map_or(Tlp::Red, |marked| {
            let earlier = self.earlier_marking(object, &marked);
            marked.tlp.max(earlier.tlp.unwrap_or(Tlp::White))
        })
    }

    /// Reports an object that the pass over the bundle dropped. Its marking counts for the newer version of it.
    fn report_dropped(&mut self, dropped: DroppedObject) {
        if let Some(version) = &dropped.version
            && let Ok(marked) = marking::object_marking(version, &self.markings, self.defaults.tlp)
        {
            self.earlier.note(&dropped.id, self.version(version, &marked));
        }
        let objects = dropped.marked_as.as_ref();
        let levels = objects.map(|objects| objects.iter().map(|object| self.level_of(object)).max());
        let size = SkippedSize {
            tlp: levels.map_or(Tlp::Red, |level| level.unwrap_or(self.defaults.tlp)),
            bytes: dropped.bytes,
        };
        self.plan
            .skip_invalid(size, &dropped.kind, &dropped.id, dropped.reason);
    }

    fn node(&self, row: &StixRow, checked: &CheckedObject) -> Result<StixNode, String> {
        let raw = &checked.raw;
        let name = row.name_of(raw).ok_or("name: must not be empty")?;
        let inactive = flag(raw, "revoked") || flag(raw, "x_mitre_deprecated");
        let mut properties = Value::Object(properties::of_node(raw)).to_string();
        // The buffer of a growing string has up to twice the capacity needed.
        properties.shrink_to_fit();
        Ok(StixNode {
            stix_id: text(raw, "id").unwrap_or_default().to_owned(),
            modified: modified_of(raw).unwrap_or(self.defaults.now),
            node_type: row.node_type(raw),
            name,
            description: row.text_of(raw).into_owned(),
            undated: modified_of(raw).is_none(),
            source: self.source_of(raw, checked.tlp),
            status: if inactive {
                NodeStatus::Rejected
            } else {
                NodeStatus::Active
            },
            properties,
            tlp: checked.tlp,
            stated: checked.stated,
            earlier: checked.earlier,
            confidence: checked.confidence,
            raw: pack(raw),
            held_by: checked.held_by.clone(),
            carried: marking::custom_refs(raw),
        })
    }

    fn relationship(&self, checked: &CheckedObject) -> StixRelationship {
        let raw = &checked.raw;
        let part = |key: &str| text(raw, key).unwrap_or_default().to_owned();
        let active = !(flag(raw, "revoked") || flag(raw, "x_mitre_deprecated"));
        StixRelationship {
            stix_id: part("id"),
            modified: modified_of(raw).unwrap_or(self.defaults.now),
            relationship: part("relationship_type"),
            source_ref: part("source_ref"),
            target_ref: part("target_ref"),
            active,
            tlp: checked.tlp,
            stated: checked.stated,
            earlier: checked.earlier,
            confidence: checked.confidence,
            raw: pack(raw),
            held_by: checked.held_by.clone(),
            carried: marking::custom_refs(raw),
        }
    }

    /// Completes and validates an object, and resolves its marking and confidence.
    fn check_object(&self, mut raw: Map<String, Value>) -> Result<CheckedObject, String> {
        complete::fill_required(&mut raw, self.defaults.now);
        let value = Value::Object(raw);
        if let Some(problem) = unfit_text(&value, MAX_TEXT) {
            return Err(problem);
        }
        if value.get("type").and_then(Value::as_str) == Some("identity")
            && value
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| !is_source(name))
        {
            return Err(format!("name: longer than {MAX_SOURCE} characters"));
        }
        if let Some(violation) = StixValidator::shared().object(&value).first() {
            return Err(format!("{}: {}", dotted_path(&violation.path), violation.rule));
        }
        let Value::Object(raw) = value else {
            return Err("must be an object".into());
        };
        let marked = marking::object_marking(&raw, &self.markings, self.defaults.tlp)?;
        let earlier = self.earlier_marking(&raw, &marked);
        let floor = earlier.tlp.unwrap_or(Tlp::White);
        let confidence = match raw.get("confidence").and_then(Value::as_f64) {
            Some(percent) => percent / 100.0,
            None => self.defaults.confidence,
        };
        Ok(CheckedObject {
            raw,
            tlp: marked.tlp.max(floor),
            own_tlp: marked.tlp,
            stated: marked.stated,
            earlier: earlier.stated,
            held_by: marked.undefined,
            conflict: marked.conflict,
            confidence,
        })
    }

    /// The name of the object's creator, unless its marking is stricter than the object's.
    fn source_of(&self, raw: &Map<String, Value>, tlp: Tlp) -> String {
        let creator = text(raw, "created_by_ref")
            .and_then(|id| self.sources.get(id))
            .filter(|(name, level)| !name.is_empty() && *level <= tlp);
        creator
            .map(|(name, _)| name.clone())
            .unwrap_or_else(|| properties::cited_source(raw))
    }

    /// Keeps an object that describes others.
    fn keep(&mut self, (id, size): (String, SkippedSize), object: Map<String, Value>) {
        let kind = type_of_id(&id).unwrap_or("unknown").to_owned();
        let level_only = self.level_only(&id, &object);
        match self.check_object(object) {
            Ok(checked) => {
                self.note_markings(&id, &checked);
                self.plan.keep(size, &kind);
                self.plan.supporting.push(self.support(id, checked));
            }
            Err(reason) => {
                self.plan.skip_invalid(size, &kind, &id, reason);
                self.plan.supporting.extend(level_only);
            }
        }
    }

    /// Notes whether another level than the object's own counts.
    fn note_markings(&mut self, id: &str, checked: &CheckedObject) {
        if checked.stated.is_none() {
            let version = SilentVersion {
                before: checked.tlp,
                planned: checked.own_tlp,
                level: checked.tlp,
            };
            self.plan.silent.note(id, version);
        }
        if let Some(conflict) = checked.conflict {
            self.plan.conflicts.note(id, conflict);
        }
    }

    /// A marking-definition kept only for its level. If it is not valid STIX, it still applies to the objects it
    /// marks, in later bundles too, and an export restates it.
    fn level_only(&self, id: &str, object: &Map<String, Value>) -> Option<StixSupport> {
        let level = (*self.markings.get(id)?)?;
        let own = marking::object_marking(object, &self.markings, self.defaults.tlp);
        Some(StixSupport {
            stix_id: id.to_owned(),
            modified: modified_of(object).unwrap_or(self.defaults.now),
            tlp: own.map_or(Tlp::Red, |own| own.tlp),
            states: Some(level),
            raw: pack(object),
            held_by: vec![id.to_owned()],
            carried: Vec::new(),
        })
    }

    fn support(&self, stix_id: String, checked: CheckedObject) -> StixSupport {
        let modified = modified_of(&checked.raw).unwrap_or(self.defaults.now);
        let (raw, carried) = (pack(&checked.raw), marking::custom_refs(&checked.raw));
        let (states, held_by) = match marking::level_of(&Value::Object(checked.raw)) {
            _ if type_of_id(&stix_id) != Some("marking-definition") => (None, checked.held_by),
            DefinitionLevel::Statement => (None, Vec::new()),
            DefinitionLevel::Level(level) => (Some(level), Vec::new()),
            DefinitionLevel::Unreadable => (None, vec![stix_id.clone()]),
        };
        StixSupport {
            stix_id,
            modified,
            tlp: checked.tlp,
            states,
            raw,
            held_by,
            carried,
        }
    }
}

/// Why a valid relationship cannot be an edge: an end has a type that does not become a node.
fn outside_the_graph(relationship: &Map<String, Value>) -> Option<String> {
    ["source_ref", "target_ref"].into_iter().find_map(|end| {
        let kind = text(relationship, end).and_then(type_of_id)?;
        StixRow::of(kind)
            .is_none()
            .then(|| format!("{end}: {kind} objects are not nodes"))
    })
}

/// Whether a name is short enough to be copied to every node of its identity.
fn is_source(name: &str) -> bool {
    name.chars().nth(MAX_SOURCE).is_none()
}

fn dotted_path(pointer: &str) -> String {
    let path = pointer.trim_start_matches('/').replace('/', ".");
    if path.is_empty() { "object".into() } else { path }
}
