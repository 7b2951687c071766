//! Bundles as an intelligence team would receive them, from a fixed seed: actors with aliases, malware, techniques,
//! indicators, vulnerabilities and the relationships between them.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::prose::Prose;
use crate::words::{Words, capitalized};

/// Number of connections that ingest bundles. A bundle refers only to earlier ones of its own stream.
pub const STREAMS: usize = 2;
/// Words of every text in a growth run.
const WORDS: std::ops::RangeInclusive<usize> = 60..=110;
/// Objects per bundle: the author, the nodes and the relationships.
const OBJECTS: usize = 1000;
const RELATIONSHIPS: usize = 400;
const NODES: usize = OBJECTS - RELATIONSHIPS - 1;
pub const AUTHOR: &str = "identity--6a2b6c52-8fcb-4b5c-9a3e-1f6f0f3f2d11";
const SEED: u64 = 20_240_329;
/// TLP:WHITE, TLP:GREEN and TLP:AMBER (STIX 2.1 section 7.2.1.4).
pub const MARKINGS: [&str; 3] = [
    "marking-definition--613f2e26-407d-48c7-9eca-b8e91df99dc9",
    "marking-definition--34098fce-860f-48ae-8e50-ebd3cc5e41da",
    "marking-definition--f88d31f6-486f-44da-b317-01333bde0b82",
];

/// The body of an ingest request.
pub struct Bundle {
    pub body: Vec<u8>,
    pub objects: usize,
    pub nodes: usize,
    pub stream: usize,
}

/// The ids of one stream so far, by type.
#[derive(Default)]
struct Known {
    actors: Vec<String>,
    malware: Vec<String>,
    techniques: Vec<String>,
    indicators: Vec<String>,
    vulnerabilities: Vec<String>,
}

/// Generates bundles and matching queries.
pub struct Corpus {
    words: Words,
    /// Texts of a growth run; without them, texts differ in length and there are relationships too.
    prose: Option<Arc<Prose>>,
    rng: StdRng,
    /// Separate from `rng`, so that the number of queries does not change the bundles.
    asking: StdRng,
    known: [Known; STREAMS],
    names: Vec<String>,
    identifiers: Vec<String>,
    nodes: usize,
    bundles: usize,
    techniques: usize,
}

impl Corpus {
    pub fn new() -> Self {
        Self {
            words: Words::new(),
            prose: None,
            rng: StdRng::seed_from_u64(SEED),
            asking: StdRng::seed_from_u64(SEED + 1),
            known: Default::default(),
            names: Vec::new(),
            identifiers: Vec::new(),
            nodes: 0,
            bundles: 0,
            techniques: 0,
        }
    }

    /// Nodes only, each with a text of this prose.
    pub fn of(prose: Arc<Prose>) -> Self {
        Self {
            prose: Some(prose),
            ..Self::new()
        }
    }

    /// Number of nodes made so far.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The bundles needed to reach this total number of nodes.
    pub fn grow_to(&mut self, nodes: usize) -> Vec<Bundle> {
        let mut bundles = Vec::new();
        while self.nodes < nodes {
            bundles.push(self.bundle_of(NODES.min(nodes - self.nodes)));
        }
        bundles
    }

    /// One more bundle.
    pub fn bundle(&mut self) -> Bundle {
        self.bundle_of(NODES)
    }

    /// What an analyst types: mostly questions, often a name, occasionally an identifier.
    pub fn query(&mut self) -> String {
        let known = match self.asking.random_range(0..100) {
            0..60 => None,
            60..85 => self.names.choose(&mut self.asking).cloned(),
            _ => self.identifiers.choose(&mut self.asking).cloned(),
        };
        known.unwrap_or_else(|| self.question())
    }

    pub fn question(&mut self) -> String {
        match &self.prose {
            Some(prose) => prose.question(&mut self.asking),
            None => self.words.question(&mut self.asking),
        }
    }

    /// One more bundle, with this many nodes.
    pub fn bundle_of(&mut self, nodes: usize) -> Bundle {
        let stream = self.bundles % STREAMS;
        let relationships = match self.prose {
            Some(_) => 0,
            None => nodes * RELATIONSHIPS / NODES,
        };
        let mut objects = vec![author()];
        for _ in 0..nodes {
            objects.push(self.node(stream));
        }
        for _ in 0..relationships {
            objects.push(self.relationship(stream));
        }
        let bundle =
            json!({"bundle": {"type": "bundle", "id": id("bundle", &mut self.rng), "objects": objects}});
        self.nodes += nodes;
        self.bundles += 1;
        Bundle {
            body: bundle.to_string().into_bytes(),
            objects: nodes + relationships + 1,
            nodes,
            stream,
        }
    }

    fn node(&mut self, stream: usize) -> Value {
        let kind = self.rng.random_range(0..100);
        let known = &self.known[stream];
        let first = [
            &known.actors,
            &known.malware,
            &known.techniques,
            &known.indicators,
            &known.vulnerabilities,
        ];
        // At least one of each type, so that relationships have ends.
        match (first.iter().position(|ids| ids.is_empty()), kind) {
            (Some(0), _) | (None, 0..5) => self.actor(stream),
            (Some(1), _) | (None, 5..20) => self.malware(stream),
            (Some(2), _) | (None, 20..45) => self.technique(stream),
            (Some(3), _) | (None, 45..75) => self.indicator(stream),
            _ => self.vulnerability(stream),
        }
    }

    /// The common properties of an object, with a new id.
    fn object(&mut self, kind: &str, characters: usize) -> Value {
        let rng = &mut self.rng;
        let (year, month) = (rng.random_range(2019..2024), rng.random_range(1..13));
        let (day, hour, milli) = (
            rng.random_range(1..29),
            rng.random_range(0..24),
            rng.random_range(0..1000),
        );
        let characters = rng.random_range(characters / 2..characters * 3 / 2);
        let description = match &self.prose {
            Some(prose) => prose.text(rng, WORDS),
            None => self.words.text(rng, characters),
        };
        let mut object = json!({
            "type": kind, "spec_version": "2.1", "id": id(kind, rng), "created_by_ref": AUTHOR,
            "created": format!("{year}-{month:02}-{day:02}T{hour:02}:15:26.{milli:03}Z"),
            "modified": format!("{}-{month:02}-{day:02}T{hour:02}:26:10.{milli:03}Z", year + 1),
            "description": description,
        });
        if let Some(marking) = MARKINGS.get(rng.random_range(0..4)) {
            object["object_marking_refs"] = json!([marking]);
        }
        if rng.random_bool(0.7) {
            object["confidence"] = json!(rng.random_range(30..=100));
        }
        object
    }

    fn actor(&mut self, stream: usize) -> Value {
        let mut object = self.object("intrusion-set", 700);
        let word = self.words.name(&mut self.rng);
        let animal = capitalized(self.words.noun(&mut self.rng));
        let name = format!("{word} {animal}");
        let alias = self.words.name(&mut self.rng);
        let number = format!("UNC{}", 10_000 + self.names.len());
        object["aliases"] = json!([name, alias, number]);
        object["name"] = json!(name);
        object["goals"] = json!([self.words.noun(&mut self.rng)]);
        object["resource_level"] = json!("organization");
        object["primary_motivation"] = json!("organizational-gain");
        self.names.extend([name, alias, number]);
        self.known[stream].actors.push(id_of(&object));
        object
    }

    fn malware(&mut self, stream: usize) -> Value {
        let mut object = self.object("malware", 700);
        let name = self.words.name(&mut self.rng);
        let alias = format!(
            "Win.{}.{}",
            self.words.name(&mut self.rng),
            self.rng.random_range(1..99)
        );
        object["name"] = json!(name);
        object["aliases"] = json!([alias]);
        object["is_family"] = json!(true);
        let kinds = ["backdoor", "ransomware", "wiper"];
        object["malware_types"] = json!([kinds.choose(&mut self.rng)]);
        object["x_mitre_platforms"] = json!(["Windows", "Linux"]);
        self.names.push(name);
        self.known[stream].malware.push(id_of(&object));
        object
    }

    fn technique(&mut self, stream: usize) -> Value {
        let mut object = self.object("attack-pattern", 700);
        let (verb, adjective) = (
            self.words.verb(&mut self.rng),
            self.words.adjective(&mut self.rng),
        );
        let name = format!("{} {}", capitalized(verb), capitalized(adjective));
        let name = format!("{name} {}", capitalized(self.words.noun(&mut self.rng)));
        let number = format!(
            "T{:04}.{:03}",
            2000 + self.techniques / 20,
            self.techniques % 20 + 1
        );
        self.techniques += 1;
        object["external_references"] = json!([
            {"source_name": "mitre-attack", "external_id": number,
                "url": format!("https://attack.example.org/techniques/{}", number.replace('.', "/"))},
            {"source_name": format!("{adjective} report"), "description": self.words.sentence(&mut self.rng)},
        ]);
        object["kill_chain_phases"] =
            json!([{"kill_chain_name": "mitre-attack", "phase_name": "lateral-movement"}]);
        object["x_mitre_platforms"] = json!(["Windows"]);
        object["name"] = json!(name);
        self.names.push(name);
        self.identifiers.push(number);
        self.known[stream].techniques.push(id_of(&object));
        object
    }

    fn indicator(&mut self, stream: usize) -> Value {
        let mut object = self.object("indicator", 600);
        let (value, path, kind) = self.words.observable(&mut self.rng);
        object["name"] = json!(format!("{kind} of {}", self.words.name(&mut self.rng)));
        object["pattern"] = json!(format!("[{path} = '{value}']"));
        object["pattern_type"] = json!("stix");
        object["valid_from"] = object["created"].clone();
        object["indicator_types"] = json!(["malicious-activity"]);
        object["labels"] = json!([
            self.words.noun(&mut self.rng),
            self.words.adjective(&mut self.rng)
        ]);
        self.identifiers.push(value);
        self.known[stream].indicators.push(id_of(&object));
        object
    }

    fn vulnerability(&mut self, stream: usize) -> Value {
        let mut object = self.object("vulnerability", 700);
        let name = format!(
            "CVE-{}-{}",
            self.rng.random_range(2015..2026),
            100_000 + self.identifiers.len()
        );
        object["external_references"] = json!([
            {"source_name": "cve", "external_id": name, "url": format!("https://cve.example.org/{name}")},
        ]);
        object["name"] = json!(name);
        self.identifiers.push(name);
        self.known[stream].vulnerabilities.push(id_of(&object));
        object
    }

    fn relationship(&mut self, stream: usize) -> Value {
        let known = &self.known[stream];
        let (from, kind, to) = match self.rng.random_range(0..5) {
            0 => (&known.actors, "uses", &known.malware),
            1 => (&known.actors, "uses", &known.techniques),
            2 => (&known.malware, "uses", &known.techniques),
            3 => (&known.malware, "exploits", &known.vulnerabilities),
            _ => (&known.indicators, "indicates", &known.malware),
        };
        let (from, to) = (
            from.choose(&mut self.rng).cloned(),
            to.choose(&mut self.rng).cloned(),
        );
        let mut object = self.object("relationship", 350);
        object["relationship_type"] = json!(kind);
        object["source_ref"] = json!(from);
        object["target_ref"] = json!(to);
        object
    }
}

/// The identity that created all objects.
pub fn author() -> Value {
    json!({"type": "identity", "spec_version": "2.1", "id": AUTHOR,
        "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z",
        "name": "Example Intelligence Team", "identity_class": "organization"})
}

pub fn id(kind: &str, rng: &mut StdRng) -> String {
    let id = uuid::Builder::from_random_bytes(rng.random()).into_uuid();
    format!("{kind}--{}", Uuid::hyphenated(id))
}

fn id_of(object: &Value) -> String {
    object["id"].as_str().unwrap_or_default().to_owned()
}
