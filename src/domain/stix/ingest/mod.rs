//! STIX in: turns the objects of a bundle into nodes, relationships and supporting objects.
//!
//! Pure. One bad object costs itself only: it is skipped with its reason. Supporting objects are what
//! nodes refer to (markings, identities and so on): kept so that an export has no dangling reference.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

mod planning;

pub use self::planning::Planning;
use self::planning::Referenced;
use super::complete;
pub use super::marking::Markings;
use super::marking::{self, Marked};
use super::object::{flag, modified_of, text, type_of_id, unfit_text, visit_refs};
use super::objects::Objects;
use super::properties;
use super::schema::StixValidator;
pub use super::skipped::{SkipReport, SkippedObject, SkippedType};
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::packed::pack;
use crate::domain::tlp::Tlp;

/// Longest single string of an object, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Longest name of an identity, in characters: it stands on each node that the identity made.
const MAX_SOURCE: usize = 500;

/// What an object without its own marking or confidence gets.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
    /// When the bundle arrived: the `created` of objects that have none.
    pub now: DateTime<Utc>,
}

/// A STIX object that becomes a node.
#[derive(Debug, Clone)]
pub struct StixNode {
    pub stix_id: String,
    pub modified: DateTime<Utc>,
    pub node_type: NodeType,
    pub name: String,
    pub description: String,
    pub source: String,
    pub tlp: Tlp,
    pub confidence: f64,
    pub status: NodeStatus,
    /// JSON text: one node's properties are parsed when they are needed, not those of a whole bundle.
    pub properties: String,
    /// The object, packed.
    pub raw: Vec<u8>,
    /// Its markings that nobody has defined.
    pub held_by: Vec<String>,
}

/// A STIX relationship between two objects that are nodes.
#[derive(Debug, Clone)]
pub struct StixRelationship {
    pub stix_id: String,
    pub modified: DateTime<Utc>,
    pub relationship: String,
    pub source_ref: String,
    pub target_ref: String,
    pub tlp: Tlp,
    pub confidence: f64,
    pub active: bool,
    /// The object, packed.
    pub raw: Vec<u8>,
    /// Its markings that nobody has defined.
    pub held_by: Vec<String>,
}

/// An object kept because others refer to it.
#[derive(Debug, Clone)]
pub struct StixSupport {
    pub stix_id: String,
    pub modified: DateTime<Utc>,
    pub tlp: Tlp,
    /// The level that it states, if it is a marking-definition that states one.
    pub states: Option<Tlp>,
    /// The object, packed.
    pub raw: Vec<u8>,
    /// Its markings that nobody has defined.
    pub held_by: Vec<String>,
}

/// What a bundle contains, ready for the store.
#[derive(Debug, Clone)]
pub struct StixPlan {
    pub nodes: Vec<StixNode>,
    pub relationships: Vec<StixRelationship>,
    pub supporting: Vec<StixSupport>,
    pub skipped: SkipReport,
    /// The marking of objects that state none: what is held back may still become such an object.
    pub default_tlp: Tlp,
}

impl StixPlan {
    /// What is to be indexed; the rest gives its memory back.
    pub fn into_nodes(self) -> Vec<StixNode> {
        self.nodes
    }
}

/// The node type of a STIX type, `None` when objects of that type are not nodes.
pub fn is_node_type(stix_type: &str) -> bool {
    matches!(
        stix_type,
        "threat-actor"
            | "intrusion-set"
            | "campaign"
            | "malware"
            | "tool"
            | "vulnerability"
            | "attack-pattern"
            | "course-of-action"
            | "indicator"
    )
}

/// Sorts the objects of a bundle into what the store takes; `known` are markings received earlier.
pub fn plan(objects: Objects, defaults: Defaults, known: Markings) -> StixPlan {
    let mut planning = Planning::begin(objects, defaults, known);
    while planning.step(usize::MAX) {}
    planning.finish()
}

struct Planner {
    defaults: Defaults,
    markings: Markings,
    /// Names of the identities in the bundle, with the marking each states for itself.
    sources: HashMap<String, (String, Tlp)>,
    plan: StixPlan,
    /// Ids that what was taken refers to.
    referenced: HashSet<String>,
    /// Ids and places of the objects that are neither nodes nor relationships.
    unsupported: Vec<(String, Range<usize>)>,
}

/// An object that is complete and valid, with what was resolved of it.
struct Checked {
    raw: Map<String, Value>,
    tlp: Tlp,
    held_by: Vec<String>,
    confidence: f64,
}

impl Planner {
    /// First pass: what objects later in the bundle say about the ones before them.
    fn learn(&mut self, objects: &Objects) {
        let defined = objects.defined().iter();
        self.markings
            .extend(defined.map(|(id, level)| (id.clone(), *level)));
        for identity in objects.identities() {
            let level = match marking::stated(&identity, &self.markings) {
                Ok(stated) if stated.undefined.is_empty() => stated.level.unwrap_or(Tlp::White),
                Ok(stated) => stated.level.unwrap_or(Tlp::White).max(Tlp::Amber),
                // A marking that can't be read hides the name from everything below the top.
                Err(_) => Tlp::Red,
            };
            let part = |key: &str| text(&identity, key).unwrap_or_default().to_owned();
            let name = Some(part("name")).filter(|name| is_source(name));
            self.sources.insert(part("id"), (name.unwrap_or_default(), level));
        }
    }

    fn take(&mut self, object: Map<String, Value>, at: Range<usize>) {
        let kind = text(&object, "type").unwrap_or("unknown").to_owned();
        let id = text(&object, "id").unwrap_or_default().to_owned();
        if kind != "relationship" && !is_node_type(&kind) {
            self.unsupported.push((id, at));
            return;
        }
        if kind == "relationship"
            && let Some(reason) = outside_the_graph(&object)
        {
            self.plan.skipped.count(&kind, &reason);
            return;
        }
        let taken = self.checked(object).and_then(|checked| {
            if kind == "relationship" {
                self.plan.relationships.push(self.relationship(&checked));
            } else {
                self.plan.nodes.push(self.node(&kind, &checked)?);
            }
            self.refer(&checked.raw);
            Ok(())
        });
        if let Err(reason) = taken {
            self.plan.skipped.bad(&kind, &id, reason);
        }
    }

    fn node(&self, kind: &str, checked: &Checked) -> Result<StixNode, String> {
        let raw = &checked.raw;
        let name = properties::name_of(kind, raw).ok_or("name: must not be empty")?;
        let inactive = flag(raw, "revoked") || flag(raw, "x_mitre_deprecated");
        let mut properties = Value::Object(properties::of_node(raw)).to_string();
        // A text that grew has room for twice as much.
        properties.shrink_to_fit();
        Ok(StixNode {
            stix_id: text(raw, "id").unwrap_or_default().to_owned(),
            modified: modified_of(raw).unwrap_or(self.defaults.now),
            node_type: properties::node_type(kind, raw),
            name,
            description: text(raw, "description").unwrap_or_default().to_owned(),
            source: self.source_of(raw, checked.tlp),
            status: if inactive {
                NodeStatus::Rejected
            } else {
                NodeStatus::Active
            },
            properties,
            tlp: checked.tlp,
            confidence: checked.confidence,
            raw: pack(raw),
            held_by: checked.held_by.clone(),
        })
    }

    fn relationship(&self, checked: &Checked) -> StixRelationship {
        let raw = &checked.raw;
        let part = |key: &str| text(raw, key).unwrap_or_default().to_owned();
        StixRelationship {
            stix_id: part("id"),
            modified: modified_of(raw).unwrap_or(self.defaults.now),
            relationship: part("relationship_type"),
            source_ref: part("source_ref"),
            target_ref: part("target_ref"),
            active: !(flag(raw, "revoked") || flag(raw, "x_mitre_deprecated")),
            tlp: checked.tlp,
            confidence: checked.confidence,
            raw: pack(raw),
            held_by: checked.held_by.clone(),
        }
    }

    /// Completes and validates an object, and resolves its marking and confidence.
    fn checked(&self, mut raw: Map<String, Value>) -> Result<Checked, String> {
        complete::fill_required(&mut raw, self.defaults.now);
        let value = Value::Object(raw);
        if let Some(problem) = unfit_text(&value, "", MAX_TEXT) {
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
            return Err(format!("{}: {}", dotted(&violation.path), violation.rule));
        }
        let Value::Object(raw) = value else {
            return Err("must be an object".into());
        };
        let Marked { tlp, undefined } = marking::marked(&raw, &self.markings, self.defaults.tlp)?;
        let confidence = match raw.get("confidence").and_then(Value::as_f64) {
            Some(percent) => percent / 100.0,
            None => self.defaults.confidence,
        };
        Ok(Checked {
            raw,
            tlp,
            held_by: undefined,
            confidence,
        })
    }

    /// The name of who made the object, unless it is marked higher than the object itself.
    fn source_of(&self, raw: &Map<String, Value>, tlp: Tlp) -> String {
        let creator = text(raw, "created_by_ref")
            .and_then(|id| self.sources.get(id))
            .filter(|(name, level)| !name.is_empty() && *level <= tlp);
        creator
            .map(|(name, _)| name.clone())
            .unwrap_or_else(|| properties::cited_source(raw))
    }

    /// Notes what an object refers to.
    fn refer(&mut self, raw: &Map<String, Value>) {
        visit_refs(raw, &mut |id| {
            if !self.referenced.contains(id) {
                self.referenced.insert(id.to_owned());
            }
        });
    }

    /// The markings and identities, and the unsupported objects that what was taken refers to.
    fn referenced(&mut self) -> Referenced {
        let waiting: HashMap<String, Range<usize>> =
            std::mem::take(&mut self.unsupported).into_iter().collect();
        // Later bundles, such as the next page of a feed, may refer to these without sending them again.
        let ahead = |id: &&String| matches!(type_of_id(id), Some("marking-definition" | "identity"));
        let mut queue: Vec<String> = waiting.keys().filter(ahead).cloned().collect();
        queue.extend(std::mem::take(&mut self.referenced));
        Referenced { waiting, queue }
    }

    /// Keeps an object that others refer to, and those it refers to itself.
    fn keep(&mut self, id: String, object: Map<String, Value>, queue: &mut Vec<String>) {
        let kind = type_of_id(&id).unwrap_or("unknown").to_owned();
        let level_only = self.level_only(&id, &object);
        match self.checked(object) {
            Ok(checked) => {
                visit_refs(&checked.raw, &mut |id| queue.push(id.to_owned()));
                self.plan.skipped.count(&kind, "kept for references, not a node");
                self.plan.supporting.push(self.support(id, checked));
            }
            Err(reason) => {
                self.plan.skipped.bad(&kind, &id, reason);
                self.plan.supporting.extend(level_only);
            }
        }
    }

    /// A marking-definition for its level alone: where it is not valid STIX, what it marks is still marked so, in later
    /// bundles too, and only itself it does not leave.
    fn level_only(&self, id: &str, object: &Map<String, Value>) -> Option<StixSupport> {
        let level = (*self.markings.get(id)?)?;
        Some(StixSupport {
            stix_id: id.to_owned(),
            modified: modified_of(object).unwrap_or(self.defaults.now),
            tlp: self.defaults.tlp,
            states: Some(level),
            raw: pack(object),
            held_by: vec![id.to_owned()],
        })
    }

    fn support(&self, stix_id: String, checked: Checked) -> StixSupport {
        let modified = modified_of(&checked.raw).unwrap_or(self.defaults.now);
        let raw = pack(&checked.raw);
        let states = marking::level_of(&Value::Object(checked.raw)).ok().flatten();
        StixSupport {
            stix_id,
            modified,
            tlp: checked.tlp,
            states,
            raw,
            held_by: checked.held_by,
        }
    }
}

/// Why a relationship can't be an edge although nothing is wrong with it: an end is of a type that is no node.
fn outside_the_graph(relationship: &Map<String, Value>) -> Option<String> {
    ["source_ref", "target_ref"].into_iter().find_map(|end| {
        let kind = text(relationship, end).and_then(type_of_id)?;
        (!is_node_type(kind)).then(|| format!("{end}: {kind} objects are not nodes"))
    })
}

/// Whether a name may stand on every node of its identity.
fn is_source(name: &str) -> bool {
    name.chars().nth(MAX_SOURCE).is_none()
}

fn dotted(pointer: &str) -> String {
    let path = pointer.trim_start_matches('/').replace('/', ".");
    if path.is_empty() { "object".into() } else { path }
}
