//! Walks the event: evidence, event-level clusters, attributes, objects, then object references.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::comments::Comments;
use super::edges::{Edges, NodePositions};
use super::galaxy::{self, ClusterNode};
use super::lenient::{self, scrub_map, without_nul};
use super::marking::{Tags, of_distribution, read_tags};
use super::node::{Carrier, EventFacts};
use super::wire::{Attribute, Event, Object};
use super::{FieldError, ItemDefaults, MispPlan, SkipCounts, bounds, composite, error, node, reports};
use crate::domain::draft::{Drafts, EvidenceDraft, NodeDraft, identity};
use crate::domain::graph::attributes::{AttributeEnd, AttributeVersion, seconds};
use crate::domain::tlp::Tlp;

/// Maximum length of an attribute value, in bytes.
const MAX_VALUE: usize = 1 << 20;
/// Attributes of an object that are found by its comment, the first ones.
const MAX_COMMENTED: usize = 16;

pub(super) struct Planner<'e> {
    raw: &'e Map<String, Value>,
    event: Event,
    facts: EventFacts,
    defaults: ItemDefaults,
    tags: Tags,
    drafts: Drafts,
    by_identity: HashMap<String, usize>,
    /// Parsed properties of the nodes that several attributes share.
    open: HashMap<usize, Map<String, Value>>,
    edges: Edges,
    comments: Comments,
    skipped: SkipCounts,
}

impl<'e> Planner<'e> {
    pub(super) fn new(raw: &'e Map<String, Value>, defaults: ItemDefaults) -> Result<Self, FieldError> {
        let uuid = uuid_of(raw)?;
        let event = Event::deserialize(raw).unwrap_or_default();
        let tags = match read_tags(event.tags.iter().chain(&event.old_tags)) {
            Ok(tags) => tags,
            Err(unknown) => {
                let rule = crate::domain::tlp::UnknownTlp;
                return error("event.Tag", format!("{}: a TLP tag {rule}", unknown.0));
            }
        };
        let stated = match of_distribution([event.distribution], defaults.tlp) {
            Ok(tlp) => tlp,
            Err(rule) => return error("event.distribution", rule),
        };
        let owner = event.creator.name.as_ref().or(event.owner.name.as_ref());
        let facts = EventFacts {
            uuid,
            info: event
                .info
                .clone()
                .filter(|info| bounds::is_short(info))
                .unwrap_or_default(),
            source: owner.map_or("misp", String::as_str).to_owned(),
            tlp: stated.max(tags.tlp.unwrap_or(Tlp::White)),
            labels: tags.labels.clone(),
            timestamp: seconds(raw.get("timestamp")),
        };
        Ok(Planner {
            raw,
            event,
            facts,
            defaults,
            tags,
            drafts: Drafts::default(),
            by_identity: HashMap::new(),
            open: HashMap::new(),
            edges: Edges::default(),
            comments: Comments::default(),
            skipped: SkipCounts::new(),
        })
    }

    pub(super) fn run(&mut self) -> Result<(), FieldError> {
        let raw = self.raw;
        let objects = list(raw, "Object")?;
        let attributes = list(raw, "Attribute")?;
        if attributes.is_none() && objects.is_none_or(<[Value]>::is_empty) {
            return error("event.Attribute", "is required");
        }
        let (attributes, objects) = (attributes.unwrap_or_default(), objects.unwrap_or_default());
        self.evidence(attributes.len(), objects);
        self.event_clusters()?;
        for attribute in attributes {
            self.attribute(attribute, None);
        }
        for object in objects {
            self.object(object);
        }
        reports::add(
            &self.event.reports,
            &mut self.comments,
            &mut self.drafts,
            self.facts.tlp,
        );
        Ok(())
    }

    pub(super) fn finish(mut self) -> MispPlan {
        for (at, properties) in self.open {
            if let Some(node) = self.drafts.nodes.get_mut(at) {
                node.properties = properties.into();
            }
        }
        self.edges.resolve_references(&mut self.drafts, &mut self.skipped);
        MispPlan {
            drafts: self.drafts,
            skipped: self.skipped,
        }
    }

    fn skip(&mut self, kind: &str, reason: &str, count: usize) {
        super::skip(&mut self.skipped, kind, reason, count as u64);
    }

    fn evidence(&mut self, attributes: usize, objects: &[Value]) {
        let inside: usize = objects.iter().map(|object| attributes_of(object).len()).sum();
        let mut raw = scrub_map(self.raw, &["Attribute", "Object", "ShadowAttribute"]);
        raw.insert("attributes_received".to_owned(), (attributes + inside).into());
        raw.insert("objects_received".to_owned(), objects.len().into());
        self.drafts.evidence.push(EvidenceDraft {
            // The marking is part of the identity, so a hidden record of this event never stands
            // in for a visible one.
            identity: identity(["misp", &self.facts.uuid, self.facts.tlp.as_str()]),
            kind: "misp",
            ext_id: Some(self.facts.uuid.clone()),
            title: match &self.event.info {
                None => format!("MISP event {}", self.facts.uuid),
                Some(info) => info.clone(),
            },
            source: self.facts.source.clone(),
            tlp: self.facts.tlp,
            raw: raw.into(),
        });
    }

    fn event_clusters(&mut self) -> Result<(), FieldError> {
        let read = galaxy::read(&self.event.galaxies, &self.tags.clusters);
        bounds::tags("event.Galaxy", &read.labels)?;
        self.facts.labels.extend(read.labels);
        let confidence = self.tags.confidence.unwrap_or(self.defaults.confidence);
        for cluster in read.nodes {
            self.cluster(cluster, self.facts.tlp, confidence);
        }
        Ok(())
    }

    fn cluster(&mut self, cluster: ClusterNode, carrier: Tlp, confidence: f64) -> usize {
        let tlp = cluster.tlp.map_or(carrier, |own| own.max(carrier));
        self.put(node::of_cluster(cluster, &self.facts, tlp, confidence))
    }

    fn object(&mut self, raw: &Value) {
        let attributes = attributes_of(raw);
        let Some(mut object) = raw.is_object().then(|| Object::deserialize(raw).ok()).flatten() else {
            return self.skip("object", "object is not an object", 1);
        };
        if object.deleted {
            for attribute in attributes {
                self.withdraw(attribute, object.timestamp.as_deref());
            }
            return self.skip("attribute", "object is deleted", attributes.len());
        }
        let Ok(tags) = read_tags(&object.tags) else {
            return self.skip("attribute", "object has an unknown TLP tag", attributes.len());
        };
        for (at, attribute) in attributes.iter().enumerate() {
            // What is said of many says little of each.
            object.comment = object.comment.filter(|_| at < MAX_COMMENTED);
            self.attribute(attribute, Some((&object, &tags)));
        }
        let stated = of_distribution([object.distribution, self.event.distribution], self.defaults.tlp);
        let tagged = tags.tlp.max(self.tags.tlp).unwrap_or(Tlp::White);
        // With an unreadable distribution all attributes were skipped; the references must be as strict.
        self.edges.refer(&object, stated.unwrap_or(Tlp::Red).max(tagged));
    }

    fn attribute(&mut self, raw: &Value, object: Option<(&Object, &Tags)>) {
        if let Err(reason) = self.take_attribute(raw, object) {
            self.skip("attribute", reason, 1);
        }
    }

    fn take_attribute(&mut self, raw: &Value, object: Option<(&Object, &Tags)>) -> Result<(), &'static str> {
        let original = raw.as_object().ok_or("attribute is not an object")?;
        let attribute = Attribute::deserialize(original).map_err(|_| "attribute is not an object")?;
        if attribute.deleted {
            self.withdraw(raw, None);
            return Err("attribute is deleted");
        }
        let value = value_of(original)?;
        let tags = read_tags(attribute.tags.iter().chain(&attribute.old_tags))
            .map_err(|_| "attribute has an unknown TLP tag")?;
        let clusters = galaxy::read(&attribute.galaxies, &tags.clusters);
        let tlp = self.tlp(&attribute, object, &tags)?;
        let confidence = [Some(&tags), object.map(|(_, tags)| tags), Some(&self.tags)]
            .into_iter()
            .flatten()
            .find_map(|tags| tags.confidence)
            .unwrap_or(self.defaults.confidence);
        let carrier = Carrier {
            original,
            attribute: &attribute,
            object: object.map(|(object, _)| object),
            labels: labels(&tags, object, &clusters.labels),
            tlp,
            confidence,
        };
        let split = composite::split(attribute.kind.as_deref().unwrap_or("other"), &value);
        let ends: NodePositions = carrier
            .drafts(split.parts, split.detail, &self.facts)
            .into_iter()
            .map(|draft| self.put(draft))
            .collect();
        for comment in [
            attribute.comment.as_deref(),
            carrier.object.and_then(|object| object.comment.as_deref()),
        ] {
            self.comments.add(&mut self.drafts, &ends, comment, tlp);
        }
        self.edges
            .composite(&mut self.drafts, &ends, split.relation, &carrier);
        for cluster in clusters.nodes {
            let relationship = cluster.relationship.clone();
            let target = self.cluster(cluster, tlp, confidence);
            self.edges
                .galaxy(&mut self.drafts, &ends, target, relationship, &carrier);
        }
        self.edges.learn(&self.drafts, &attribute, carrier.object, &ends);
        Ok(())
    }

    /// Notes that an attribute is deleted, with its own time or a later one of its object.
    fn withdraw(&mut self, attribute: &Value, object: Option<&str>) {
        let uuid = attribute.get("uuid").and_then(lenient::as_text);
        let Some(uuid) = uuid.filter(|uuid| Uuid::parse_str(uuid).is_ok()) else {
            return;
        };
        let own = seconds(attribute.get("timestamp"));
        let of_object = object.and_then(|time| time.parse().ok());
        self.drafts.withdrawn.push(AttributeEnd {
            uuid: uuid.to_ascii_lowercase(),
            version: AttributeVersion::of(own.max(of_object), self.facts.timestamp),
            is_deleted: true,
        });
    }

    /// The most restrictive of the distribution and all applicable TLP tags.
    fn tlp(
        &self,
        attribute: &Attribute,
        object: Option<(&Object, &Tags)>,
        tags: &Tags,
    ) -> Result<Tlp, &'static str> {
        let inherited = object.map(|(object, _)| object.distribution);
        let chain = [
            Some(attribute.distribution),
            inherited,
            Some(self.event.distribution),
        ];
        let stated = of_distribution(chain.into_iter().flatten(), self.defaults.tlp)
            .map_err(|_| "distribution is not a number")?;
        let tagged = [tags.tlp, object.and_then(|(_, tags)| tags.tlp), self.tags.tlp];
        Ok(tagged.into_iter().flatten().fold(stated, Tlp::max))
    }

    /// Adds a node, or merges the draft into the existing one.
    fn put(&mut self, draft: NodeDraft) -> usize {
        if let Some(&at) = self.by_identity.get(&draft.identity)
            && let Some(known) = self.drafts.nodes.get_mut(at)
        {
            let properties = self.open.entry(at).or_insert_with(|| known.properties.map());
            node::absorb(known, properties, draft);
            return at;
        }
        let at = self.drafts.nodes.len();
        self.by_identity.insert(draft.identity.clone(), at);
        self.drafts.nodes.push(draft);
        at
    }
}

fn uuid_of(event: &Map<String, Value>) -> Result<String, FieldError> {
    match event.get("uuid") {
        Some(Value::String(uuid)) => match without_nul(uuid).trim() {
            "" => error("event.uuid", "must not be empty"),
            uuid => Ok(uuid.to_owned()),
        },
        Some(Value::Null) | None => error("event.uuid", "is required"),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            error("event.uuid", "must be a string")
        }
    }
}

fn list<'e>(event: &'e Map<String, Value>, key: &str) -> Result<Option<&'e [Value]>, FieldError> {
    match event.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            error(&format!("event.{key}"), "must be an array")
        }
    }
}

fn attributes_of(object: &Value) -> &[Value] {
    let list = object.get("Attribute").and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn value_of(attribute: &Map<String, Value>) -> Result<String, &'static str> {
    let text = match attribute.get("value") {
        Some(Value::String(text)) => without_nul(text),
        Some(Value::Null) | None => return Err("value is empty"),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            return Err("value is not a string");
        }
    };
    match text.trim() {
        "" => Err("value is empty"),
        value if value.len() > MAX_VALUE => Err("value is longer than 1 MiB"),
        value => Ok(value.to_owned()),
    }
}

fn labels(own: &Tags, object: Option<(&Object, &Tags)>, galaxies: &[String]) -> Vec<String> {
    let inherited = object.map(|(_, tags)| tags.labels.as_slice()).unwrap_or_default();
    let all = own.labels.iter().chain(inherited).chain(galaxies);
    let mut labels: Vec<String> = Vec::new();
    for label in all {
        if !labels.contains(label) {
            labels.push(label.clone());
        }
    }
    labels
}
