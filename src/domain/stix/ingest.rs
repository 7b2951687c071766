//! STIX in: turns the objects of a bundle into nodes, relationships and supporting objects.
//!
//! Pure. One bad object costs itself only: it is skipped with its reason. Supporting objects are what
//! nodes refer to (markings, identities and so on): kept so that an export has no dangling reference.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

mod planning;

pub use self::planning::Planning;
use self::planning::Referenced;
use super::complete;
use super::marking;
use super::object::{flag, text, texts, timestamp, type_of_id, unfit_text, visit_refs};
use super::properties;
use super::schema::StixValidator;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::tlp::Tlp;

/// Longest single string of an object, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Longest name of an identity, in characters: it stands on each node that the identity made.
const MAX_SOURCE: usize = 500;
/// Most skipped objects that are listed one by one.
const MAX_LISTED: usize = 100;

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
    pub properties: Map<String, Value>,
    pub raw: Map<String, Value>,
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
    pub raw: Map<String, Value>,
}

/// An object kept because others refer to it.
#[derive(Debug, Clone)]
pub struct StixSupport {
    pub stix_id: String,
    pub modified: DateTime<Utc>,
    pub tlp: Tlp,
    pub raw: Map<String, Value>,
}

/// Objects of one type that were not taken, with the reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SkippedType {
    pub count: u64,
    pub reasons: BTreeMap<String, u64>,
}

/// One object that was not taken although its type is supported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedObject {
    pub id: String,
    pub reason: String,
}

/// Everything that was not taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SkipReport {
    pub by_type: BTreeMap<String, SkippedType>,
    /// The first hundred bad objects.
    pub objects: Vec<SkippedObject>,
}

impl SkipReport {
    /// Number of objects not taken.
    pub fn total(&self) -> u64 {
        self.by_type.values().map(|skipped| skipped.count).sum()
    }

    /// Counts one object whose type is simply not a node.
    pub fn count(&mut self, kind: &str, reason: &str) {
        let entry = self.by_type.entry(kind.to_owned()).or_default();
        entry.count += 1;
        *entry.reasons.entry(reason.to_owned()).or_default() += 1;
    }

    /// Counts and lists one object that breaks a rule.
    pub fn bad(&mut self, kind: &str, id: &str, reason: String) {
        // Reasons name values of the object, so the count per reason keeps only the rule.
        let rule = reason.split(" (").next().unwrap_or(&reason).to_owned();
        self.count(kind, &rule);
        if self.objects.len() < MAX_LISTED {
            self.objects.push(SkippedObject {
                id: id.to_owned(),
                reason,
            });
        }
    }
}

/// What a bundle contains, ready for the store.
#[derive(Debug, Clone, Default)]
pub struct StixPlan {
    pub nodes: Vec<StixNode>,
    pub relationships: Vec<StixRelationship>,
    pub supporting: Vec<StixSupport>,
    pub skipped: SkipReport,
}

/// Marking-definitions known to the workspace: the level they state, `None` for statements.
pub type Markings = HashMap<String, Option<Tlp>>;

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

/// Ids of the markings that the objects refer to and that are neither built in nor among them.
pub fn foreign_markings(objects: &[Value]) -> Vec<String> {
    let own: HashSet<&str> = objects.iter().filter_map(|o| o.get("id")?.as_str()).collect();
    let mut foreign = HashSet::new();
    for object in objects.iter().filter_map(Value::as_object) {
        visit_refs(object, &mut |id| {
            if id.starts_with("marking-definition--") && !own.contains(id) && !marking::is_built_in(id) {
                foreign.insert(id.to_owned());
            }
        });
    }
    foreign.into_iter().collect()
}

/// Sorts the objects of a bundle into what the store takes; `known` are markings received earlier.
pub fn plan(objects: Vec<Value>, defaults: Defaults, known: Markings) -> StixPlan {
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
    unsupported: Vec<Map<String, Value>>,
}

impl Planner {
    /// Drops what is not an object or has no usable id, and all but the newest of each id.
    fn newest_of_each(&mut self, objects: Vec<Value>) -> Vec<Map<String, Value>> {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut kept: Vec<Map<String, Value>> = Vec::with_capacity(objects.len());
        for (index, value) in objects.into_iter().enumerate() {
            let place = format!("objects[{index}]");
            let Value::Object(object) = value else {
                self.plan
                    .skipped
                    .bad("unknown", &place, format!("must be an object ({place})"));
                continue;
            };
            let kind = text(&object, "type").unwrap_or("unknown").to_owned();
            let Some(id) = text(&object, "id").map(str::to_owned) else {
                self.plan
                    .skipped
                    .bad(&kind, &place, format!("id: is required ({place})"));
                continue;
            };
            if type_of_id(&id) != Some(kind.as_str()) {
                self.plan
                    .skipped
                    .bad(&kind, &id, format!("id: must be {kind}--UUID ({place})"));
                continue;
            }
            match places.get(&id).and_then(|&i| kept.get_mut(i)) {
                None => {
                    places.insert(id, kept.len());
                    kept.push(object);
                }
                Some(other) => {
                    if modified_of(&object) > modified_of(other) {
                        *other = object;
                    }
                    self.plan.skipped.bad(
                        &kind,
                        &id,
                        "an object with this id and a later or equal modified is in the bundle".into(),
                    );
                }
            }
        }
        kept
    }

    /// First pass: what objects later in the bundle say about the ones before them.
    fn learn(&mut self, objects: &[Map<String, Value>]) {
        let of_type = |kind: &'static str| {
            objects.iter().filter_map(move |object| {
                let id = text(object, "id")?;
                (text(object, "type") == Some(kind)).then_some((id.to_owned(), object))
            })
        };
        for (id, definition) in of_type("marking-definition") {
            if let Ok(level) = marking::level_of(&Value::Object(definition.clone())) {
                self.markings.insert(id, level);
            }
        }
        for (id, identity) in of_type("identity") {
            // A marking that can't be read hides the name from everything below the top.
            let level = self.own_tlp(identity).unwrap_or(Some(Tlp::Red));
            let name = text(identity, "name").filter(|name| is_source(name));
            let name = name.unwrap_or_default().to_owned();
            self.sources.insert(id, (name, level.unwrap_or(Tlp::White)));
        }
    }

    fn take(&mut self, object: Map<String, Value>) {
        let kind = text(&object, "type").unwrap_or("unknown").to_owned();
        if kind != "relationship" && !is_node_type(&kind) {
            self.unsupported.push(object);
            return;
        }
        let id = text(&object, "id").unwrap_or_default().to_owned();
        if kind == "relationship"
            && let Some(reason) = outside_the_graph(&object)
        {
            self.plan.skipped.count(&kind, &reason);
            return;
        }
        let taken = if kind == "relationship" {
            self.relationship(object)
                .map(|edge| self.plan.relationships.push(edge))
        } else {
            self.node(&kind, object).map(|node| self.plan.nodes.push(node))
        };
        if let Err(reason) = taken {
            self.plan.skipped.bad(&kind, &id, reason);
        }
    }

    fn node(&self, kind: &str, raw: Map<String, Value>) -> Result<StixNode, String> {
        let (raw, tlp, confidence) = self.checked(raw)?;
        let name = match (text(&raw, "name"), kind) {
            (Some(name), _) if !name.trim().is_empty() => name.to_owned(),
            (_, "indicator") => text(&raw, "pattern").unwrap_or_default().to_owned(),
            (Some(_) | None, _) => return Err("name: must not be empty".into()),
        };
        let inactive = flag(&raw, "revoked") || flag(&raw, "x_mitre_deprecated");
        Ok(StixNode {
            stix_id: text(&raw, "id").unwrap_or_default().to_owned(),
            modified: modified_of(&raw).unwrap_or(self.defaults.now),
            node_type: properties::node_type(kind, &raw),
            description: text(&raw, "description").unwrap_or_default().to_owned(),
            source: self.source_of(&raw, tlp),
            status: if inactive {
                NodeStatus::Rejected
            } else {
                NodeStatus::Active
            },
            properties: properties::of_node(&raw),
            name,
            tlp,
            confidence,
            raw,
        })
    }

    fn relationship(&self, raw: Map<String, Value>) -> Result<StixRelationship, String> {
        let (raw, tlp, confidence) = self.checked(raw)?;
        let part = |key: &str| text(&raw, key).unwrap_or_default().to_owned();
        Ok(StixRelationship {
            stix_id: part("id"),
            modified: modified_of(&raw).unwrap_or(self.defaults.now),
            relationship: part("relationship_type"),
            source_ref: part("source_ref"),
            target_ref: part("target_ref"),
            active: !(flag(&raw, "revoked") || flag(&raw, "x_mitre_deprecated")),
            tlp,
            confidence,
            raw,
        })
    }

    /// Completes and validates an object, and resolves its marking and confidence.
    fn checked(&self, mut raw: Map<String, Value>) -> Result<(Map<String, Value>, Tlp, f64), String> {
        complete::fill_required(&mut raw, self.defaults.now);
        let value = Value::Object(raw);
        if let Some(problem) = unfit_text(&value, "", MAX_TEXT) {
            return Err(problem);
        }
        if value.get("type").and_then(Value::as_str) == Some("identity")
            && !value.get("name").and_then(Value::as_str).is_none_or(is_source)
        {
            return Err(format!("name: longer than {MAX_SOURCE} characters"));
        }
        if let Some(violation) = StixValidator::shared().object(&value).first() {
            return Err(format!("{}: {}", dotted(&violation.path), violation.rule));
        }
        let Value::Object(raw) = value else {
            return Err("must be an object".into());
        };
        let tlp = self.tlp_of(&raw)?;
        let confidence = match raw.get("confidence").and_then(Value::as_f64) {
            Some(percent) => percent / 100.0,
            None => self.defaults.confidence,
        };
        Ok((raw, tlp, confidence))
    }

    /// The marking of an object: `x_mitre_tlp`, TLP labels, marking references, then the default.
    fn tlp_of(&self, raw: &Map<String, Value>) -> Result<Tlp, String> {
        Ok(self.own_tlp(raw)?.unwrap_or(self.defaults.tlp))
    }

    /// The marking that an object states for itself, if it states one.
    fn own_tlp(&self, raw: &Map<String, Value>) -> Result<Option<Tlp>, String> {
        if let Some(own) = raw.get("x_mitre_tlp") {
            let own = own.as_str().ok_or("x_mitre_tlp: must be a string")?;
            return own
                .parse()
                .map(Some)
                .map_err(|rule| format!("x_mitre_tlp: {rule}"));
        }
        let mut labelled = None;
        for label in texts(raw, "labels").filter(|label| is_tlp_label(label)) {
            let level = label.parse::<Tlp>().map_err(|rule| format!("labels: {rule}"))?;
            labelled = labelled.max(Some(level));
        }
        let referenced = self.referenced_tlp(raw)?;
        Ok(labelled.or(referenced))
    }

    /// The most restrictive level among the markings referred to; a marking nobody defined is refused,
    /// because what it forbids is unknown.
    fn referenced_tlp(&self, raw: &Map<String, Value>) -> Result<Option<Tlp>, String> {
        let granular = raw
            .get("granular_markings")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let granular = granular.filter_map(|marking| marking.get("marking_ref")?.as_str());
        let mut level = None;
        for id in texts(raw, "object_marking_refs").chain(granular) {
            let stated = match (marking::stated_by(id), self.markings.get(id)) {
                (Some(tlp), _) => Some(tlp),
                (None, Some(stated)) => *stated,
                (None, None) => {
                    return Err(format!(
                        "object_marking_refs: names a marking that is not defined ({id})"
                    ));
                }
            };
            level = level.max(stated);
        }
        Ok(level)
    }

    /// The name of who made the object, unless it is marked higher than the object itself.
    fn source_of(&self, raw: &Map<String, Value>, tlp: Tlp) -> String {
        let creator = text(raw, "created_by_ref")
            .and_then(|id| self.sources.get(id))
            .filter(|(name, level)| !name.is_empty() && *level <= tlp);
        creator.map(|(name, _)| name.clone()).unwrap_or_else(|| {
            let first = raw.get("external_references").and_then(|refs| refs.get(0));
            first
                .and_then(|r| r.get("source_name")?.as_str())
                .unwrap_or("stix")
                .to_owned()
        })
    }

    /// The markings and identities, and the unsupported objects that what was taken refers to.
    fn referenced(&mut self) -> Referenced {
        let mut waiting: HashMap<String, Map<String, Value>> = HashMap::new();
        for object in std::mem::take(&mut self.unsupported) {
            waiting.insert(text(&object, "id").unwrap_or_default().to_owned(), object);
        }
        // Later bundles, such as the next page of a feed, may refer to these without sending them again.
        let ahead = |object: &&Map<String, Value>| {
            matches!(text(object, "type"), Some("marking-definition" | "identity"))
        };
        let mut queue: Vec<String> = waiting
            .values()
            .filter(ahead)
            .filter_map(|object| text(object, "id"))
            .map(str::to_owned)
            .collect();
        let nodes = self.plan.nodes.iter().map(|node| &node.raw);
        for raw in nodes.chain(self.plan.relationships.iter().map(|edge| &edge.raw)) {
            visit_refs(raw, &mut |id| queue.push(id.to_owned()));
        }
        Referenced { waiting, queue }
    }

    /// Keeps an object that others refer to, and those it refers to itself.
    fn keep(&mut self, id: String, object: Map<String, Value>, queue: &mut Vec<String>) {
        let kind = text(&object, "type").unwrap_or("unknown").to_owned();
        match self.checked(object) {
            Ok((raw, tlp, _)) => {
                visit_refs(&raw, &mut |id| queue.push(id.to_owned()));
                self.plan.skipped.count(&kind, "kept for references, not a node");
                let modified = modified_of(&raw).unwrap_or(self.defaults.now);
                self.plan.supporting.push(StixSupport {
                    stix_id: id,
                    modified,
                    tlp,
                    raw,
                });
            }
            Err(reason) => self.plan.skipped.bad(&kind, &id, reason),
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

/// `modified`, or `created` for objects that have no versions.
fn modified_of(object: &Map<String, Value>) -> Option<DateTime<Utc>> {
    text(object, "modified")
        .or_else(|| text(object, "created"))
        .and_then(timestamp)
}

/// Whether a name may stand on every node of its identity.
fn is_source(name: &str) -> bool {
    name.chars().nth(MAX_SOURCE).is_none()
}

fn is_tlp_label(label: &str) -> bool {
    label
        .get(..4)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("tlp:"))
}

fn dotted(pointer: &str) -> String {
    let path = pointer.trim_start_matches('/').replace('/', ".");
    if path.is_empty() { "object".into() } else { path }
}
