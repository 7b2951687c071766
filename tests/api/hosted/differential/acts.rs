//! Programs of writes, some of them by callers with a higher clearance.

use std::collections::{HashMap, HashSet};
use std::fmt;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use crate::stix::{object, relationship, statement, version, with};

const NAMES: [&str; 6] = ["Umber", "Violet", "Ochre", "Cobalt", "Sepia", "Indigo"];
const NOUNS: [&str; 5] = ["Loader", "Falcon", "Stealer", "Relay", "Tunnel"];
const WORDS: [&str; 10] = [
    "harbour",
    "turbine",
    "ledger",
    "orchard",
    "satellite",
    "pipeline",
    "kiosk",
    "archive",
    "glacier",
    "foundry",
];
const KINDS: [&str; 5] = ["tool", "malware", "intrusion-set", "attack-pattern", "campaign"];
/// What gives context to them.
const CONTEXT: [&str; 8] = [
    "report",
    "note",
    "sighting",
    "identity",
    "infrastructure",
    "location",
    "ipv4-addr",
    "x-acme-ticket",
];
const RED: &str = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";
const SESSIONS: [&str; 2] = ["morning", "evening"];
const VISIBLE: [&str; 3] = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER"];
const HIDDEN: [&str; 2] = ["TLP:AMBER+PK", "TLP:RED"];

/// What the worlds of a property differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    Objects,
    Versions,
    Texts,
    Feeds,
}

/// One write. A hidden one is made while the workspace may see everything, and marks all that it brings.
#[derive(Debug, Clone)]
pub struct Act {
    pub is_hidden: bool,
    pub request: Request,
}

#[derive(Debug, Clone)]
pub enum Request {
    /// A body for a route.
    Post(&'static str, Value),
    /// Corrects a node that has a name like this. A hidden one corrects what is hidden.
    Correct(String, Value),
    /// Merges a node with the first name into one with the other, or takes that back.
    Merge(String, String),
    Unmerge(String),
    /// Accepts all that waits in the batch of a session, and commits it.
    CommitSession(&'static str),
    /// Commits all of the feed batch that was staged as the last one but so many.
    CommitFeedBatch(usize),
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let hidden = if self.is_hidden { "hidden " } else { "" };
        match &self.request {
            Request::Post(path, body) => write!(f, "{hidden}POST {path} {body}"),
            other => write!(f, "{hidden}{other:?}"),
        }
    }
}

/// A program of visible and hidden writes.
pub fn acts(topic: Topic, rng: &mut StdRng) -> Vec<Act> {
    let mut writer = Writer {
        rng,
        objects: Vec::new(),
        visible_years: HashMap::new(),
        markings: Vec::new(),
        waiting: HashSet::new(),
    };
    let length = writer.rng.random_range(6..14);
    let mut program: Vec<Act> = (0..length).map(|_| writer.act(topic)).collect();
    if program.iter().all(|act| !act.is_hidden) {
        let is_hidden = true;
        let request = writer.request(topic, is_hidden);
        program.insert(0, Act { is_hidden, request });
    }
    program.push(Act {
        is_hidden: false,
        request: writer.request(topic, false),
    });
    program
}

/// Makes writes that refer to what was made before.
struct Writer<'r> {
    rng: &'r mut StdRng,
    /// With whether the object was first sent by a hidden write.
    objects: Vec<(bool, Value)>,
    /// The newest year of a version that a visible write sent, by id.
    visible_years: HashMap<String, u32>,
    markings: Vec<Value>,
    /// The ids that hidden batches brought first: they may be committed after any visible write.
    waiting: HashSet<String>,
}

impl Writer<'_> {
    fn act(&mut self, topic: Topic) -> Act {
        let is_hidden = self.rng.random_bool(0.4);
        let request = self.request(topic, is_hidden);
        Act { is_hidden, request }
    }

    fn request(&mut self, topic: Topic, is_hidden: bool) -> Request {
        match self.rng.random_range(0..20) {
            0 | 1 => return self.correction(is_hidden),
            // What is merged shows to those who see it, so only visible writes merge.
            2 if !is_hidden => return Request::Merge(self.name(), self.name()),
            3 if !is_hidden => return Request::Unmerge(self.name()),
            _ => {}
        }
        match topic {
            Topic::Objects => match self.rng.random_range(0..4) {
                0 => self.analyst(is_hidden),
                1 => self.osint(is_hidden),
                _ => self.stix(is_hidden, false),
            },
            Topic::Versions => self.stix(is_hidden, true),
            Topic::Texts => match self.rng.random_range(0..5) {
                0 => Request::CommitSession(self.pick(&SESSIONS)),
                1 => self.analyst(is_hidden),
                _ => self.preview(is_hidden),
            },
            Topic::Feeds => match self.rng.random_range(0..4) {
                0 => Request::CommitFeedBatch(self.rng.random_range(0..2)),
                1 => self.stix(is_hidden, true),
                _ => self.upload(is_hidden),
            },
        }
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.rng.random_range(0..list.len())]
    }

    fn level(&mut self, is_hidden: bool) -> &'static str {
        if is_hidden {
            self.pick(&HIDDEN)
        } else {
            self.pick(&VISIBLE)
        }
    }

    fn name(&mut self) -> String {
        format!("{} {}", self.pick(&NAMES), self.pick(&NOUNS))
    }

    /// Sentences of few words, of random length: equal scores would leave the order to random ids.
    fn text(&mut self) -> String {
        let count = self.rng.random_range(3..24);
        let words: Vec<&str> = (0..count).map(|_| self.pick(&WORDS)).collect();
        format!("Seen at the {}.", words.join(" "))
    }

    fn analyst(&mut self, is_hidden: bool) -> Request {
        let node = json!({"name": self.name(), "node_type": self.pick(&["tool", "actor", "attck"]),
            "description": self.text(), "tlp": self.level(is_hidden)});
        Request::Post("/api/ingest/analyst", json!({"nodes": [node]}))
    }

    fn osint(&mut self, is_hidden: bool) -> Request {
        let item = json!({"title": self.name(), "type": "tool", "description": self.text(),
            "url": format!("https://news.example/{}", self.pick(&WORDS)), "tlp": self.level(is_hidden)});
        Request::Post("/api/ingest/osint", json!({"collector": "rss", "items": [item]}))
    }

    fn correction(&mut self, is_hidden: bool) -> Request {
        let change = match self.rng.random_range(0..6) {
            0 => json!({"description": self.text()}),
            1 => json!({"aliases": {"add": [self.name()]}, "reason": self.text()}),
            2 => json!({"confidence": 0.3}),
            3 => json!({"status": self.pick(&["rejected", "active"])}),
            4 if is_hidden => json!({"tlp": "RED"}),
            4 => json!({"tlp": "AMBER"}),
            _ => json!({"clear": ["description", "aliases", "status"]}),
        };
        Request::Correct(self.name(), change)
    }

    fn preview(&mut self, is_hidden: bool) -> Request {
        let (one, other) = (self.pick(&WORDS), self.pick(&NAMES));
        let content = format!(
            "The {other} backdoor dubbed {}Shade uses T10{} and 198.51.100.{}. {}",
            self.pick(&NAMES),
            self.rng.random_range(10..40),
            self.rng.random_range(1..6),
            self.text()
        );
        let mode = if self.rng.random_bool(0.3) {
            "auto"
        } else {
            "review"
        };
        let body = json!({"text": content, "source_type": "osint", "source_title": one, "ingest_mode": mode,
            "session_id": self.pick(&SESSIONS), "default_tlp": self.level(is_hidden)});
        Request::Post("/api/ingest/preview", body)
    }

    fn upload(&mut self, is_hidden: bool) -> Request {
        let before = self.objects.len();
        let body = self.bundle(is_hidden, true);
        let begun = self.objects.iter().skip(before).filter(|_| is_hidden);
        let ids = begun.filter_map(|(_, object)| object["id"].as_str());
        self.waiting.extend(ids.map(str::to_owned));
        let body = with(body, json!({"input_kind": "stix_bundle"}));
        Request::Post("/api/threat-intel/batches", body)
    }

    fn stix(&mut self, is_hidden: bool, has_versions: bool) -> Request {
        Request::Post("/api/ingest/stix", self.bundle(is_hidden, has_versions))
    }

    /// A bundle of one to three objects, some of them other versions of those before, and relationships among all.
    fn bundle(&mut self, is_hidden: bool, has_versions: bool) -> Value {
        let mut sent = Vec::new();
        for _ in 0..self.rng.random_range(1..4) {
            let object = self.object(is_hidden, has_versions);
            let is_known = self.objects.iter().any(|(_, known)| known["id"] == object["id"]);
            if !is_known {
                self.objects.push((is_hidden, object.clone()));
            }
            if let (false, Some(id), Some(time)) =
                (is_hidden, object["id"].as_str(), object["modified"].as_str())
            {
                let year = time[..4].parse().unwrap();
                let newest = self.visible_years.entry(id.to_owned()).or_insert(year);
                *newest = year.max(*newest);
            }
            sent.push(object);
        }
        if has_versions && self.rng.random_bool(0.3) {
            let marking = statement("Do not share.");
            let last = sent.len() - 1;
            sent[last] = add_marking(sent[last].clone(), &marking);
            self.markings.push(marking.clone());
            sent.push(marking);
        }
        if self.objects.len() > 1 && self.rng.random_bool(0.6) {
            let (from, to) = (self.any_object(), self.any_object());
            if from["id"] != to["id"] {
                let relationship = relationship(&from, self.pick(&["uses", "related-to"]), &to);
                sent.push(self.mark(relationship, is_hidden));
            }
        }
        let bundle = json!({"type": "bundle", "id": crate::stix::id("bundle"), "objects": sent});
        json!({"bundle": bundle, "default_tlp": self.level(is_hidden)})
    }

    fn any_object(&mut self) -> Value {
        self.objects[self.rng.random_range(0..self.objects.len())]
            .1
            .clone()
    }

    /// An object that was sent before, for another version. A stricter version of a visible object hides it, as its sender
    /// means it to. So hidden writes repeat only what hidden writes began, and visible ones nothing that may yet follow
    /// from a hidden batch.
    fn repeatable(&mut self, is_hidden: bool) -> Option<Value> {
        let may_follow = |(was_hidden, object): &(bool, Value)| match is_hidden {
            true => *was_hidden,
            false => !object["id"].as_str().is_some_and(|id| self.waiting.contains(id)),
        };
        let among: Vec<&(bool, Value)> = self.objects.iter().filter(|known| may_follow(known)).collect();
        let chosen = among.choose(self.rng)?;
        Some(chosen.1.clone())
    }

    fn object(&mut self, is_hidden: bool, has_versions: bool) -> Value {
        let before = match has_versions && self.rng.random_bool(0.5) {
            true => self.repeatable(is_hidden),
            false => None,
        };
        let mut object = if let Some(before) = before {
            if before.get("modified").is_none() {
                // An observable has no versions.
                return self.mark(unmark(before), is_hidden);
            }
            let known = self.visible_years.get(before["id"].as_str().unwrap());
            // An older version that states a stricter marking raises a newer one, as its sender means it to.
            let first = known.filter(|_| is_hidden).map_or(2020, |year| year + 1);
            let year = self.rng.random_range(first..first.max(2025) + 1);
            let changes = json!({"description": self.text(), "name": self.name()});
            unmark(version(&before, year, changes))
        } else if self.rng.random_bool(0.4) {
            self.context(is_hidden)
        } else {
            let (kind, name, description) = (self.pick(&KINDS), self.name(), self.text());
            with(object(kind, &name), json!({"description": description}))
        };
        if !self.markings.is_empty() && self.rng.random_bool(0.3) {
            let marking = self.markings[self.rng.random_range(0..self.markings.len())].clone();
            object = add_marking(object, &marking);
        }
        self.mark(object, is_hidden)
    }

    /// An object beside those that an ingest counts as nodes; it may refer to what only others see.
    fn context(&mut self, is_hidden: bool) -> Value {
        let (kind, name, text) = (self.pick(&CONTEXT), self.name(), self.text());
        if kind == "ipv4-addr" {
            return self.observable(is_hidden);
        }
        let named = match self.objects.is_empty() {
            true => Vec::new(),
            false => {
                let count = self.rng.random_range(1..4);
                (0..count).map(|_| self.any_object()["id"].clone()).collect()
            }
        };
        let more = match kind {
            _ if named.is_empty() => json!({"identity_class": "group"}),
            "report" => json!({"published": "2026-01-01T00:00:00Z", "object_refs": named}),
            "note" => json!({"content": text, "object_refs": named}),
            "sighting" => json!({"sighting_of_ref": named[0], "count": 2}),
            "location" => json!({"region": "africa"}),
            _ => json!({"identity_class": "group"}),
        };
        let needs_refs = ["report", "note", "sighting", "location"].contains(&kind);
        let kind = if named.is_empty() && needs_refs {
            "identity"
        } else {
            kind
        };
        with(object(kind, &name), with(json!({"description": text}), more))
    }

    /// An address or a network. A stricter copy of a visible one hides it, so hidden writes have their own.
    fn observable(&mut self, is_hidden: bool) -> Value {
        let (first, length) = if is_hidden { (6, 24) } else { (1, 28) };
        let value = if self.rng.random_bool(0.3) {
            format!("198.51.100.0/{}", self.rng.random_range(length..length + 3))
        } else {
            format!("198.51.100.{}", self.rng.random_range(first..first + 5))
        };
        let id = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, value.as_bytes());
        json!({"type": "ipv4-addr", "spec_version": "2.1", "id": format!("ipv4-addr--{id}"), "value": value})
    }

    /// Marks an object of a hidden write; a visible one may say nothing of itself.
    fn mark(&mut self, object: Value, is_hidden: bool) -> Value {
        match (is_hidden, self.rng.random_range(0..3)) {
            (true, 0) => add_marking(object, &json!({"id": RED})),
            (true, _) => with(object, json!({"x_mitre_tlp": self.level(true)})),
            (false, 0) => with(object, json!({"labels": [self.level(false).to_lowercase()]})),
            (false, _) => object,
        }
    }
}

fn add_marking(mut object: Value, marking: &Value) -> Value {
    let mut markings = object["object_marking_refs"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    markings.push(marking["id"].clone());
    object["object_marking_refs"] = Value::Array(markings);
    object
}

/// The object without what it says of its marking.
fn unmark(mut object: Value) -> Value {
    for key in ["x_mitre_tlp", "labels", "object_marking_refs"] {
        object.as_object_mut().unwrap().remove(key);
    }
    object
}
