//! A graph as an intelligence team would hold it, from a fixed seed: groups, campaigns, malware, tools, techniques,
//! mitigations, vulnerabilities and indicators. A few of each kind have most of the relationships, and half of all nodes
//! are indicators of one group, the hub.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::bulk::NODES;
use crate::corpus::{AUTHOR, Bundle, MARKINGS, STREAMS, author, id};
use crate::prose::Prose;
use crate::words::{Words, capitalized};

const SEED: u64 = 20_240_614;
/// Words of the text of a node, and of a relationship.
const OF_NODES: RangeInclusive<usize> = 60..=110;
const OF_RELATIONSHIPS: RangeInclusive<usize> = 15..=40;
/// One relationship in so many has a text.
const TEXTLESS: u32 = 3;
const RELATIONSHIPS_PER_NODE: usize = 2;
const YEARS: std::ops::Range<i32> = 2014..2025;

pub const GROUP: usize = 0;
pub const CAMPAIGN: usize = 1;
pub const MALWARE: usize = 2;
pub const TOOL: usize = 3;
pub const TECHNIQUE: usize = 4;
pub const MITIGATION: usize = 5;
const VULNERABILITY: usize = 6;
const INDICATOR: usize = 7;

/// The STIX type of each kind, and how many of a thousand nodes are of it; all others are indicators.
const KINDS: [(&str, usize); 8] = [
    ("intrusion-set", 10),
    ("campaign", 10),
    ("malware", 20),
    ("tool", 5),
    ("attack-pattern", 8),
    ("course-of-action", 1),
    ("vulnerability", 100),
    ("indicator", 0),
];

/// What is related, and the share of each in the relationships that are not the hub's.
const RELATED: [(usize, &str, usize, usize); 12] = [
    (GROUP, "uses", TECHNIQUE, 25),
    (GROUP, "uses", MALWARE, 12),
    (GROUP, "uses", TOOL, 5),
    (GROUP, "targets", VULNERABILITY, 8),
    (CAMPAIGN, "attributed-to", GROUP, 2),
    (CAMPAIGN, "uses", TECHNIQUE, 8),
    (CAMPAIGN, "uses", MALWARE, 4),
    (MALWARE, "uses", TECHNIQUE, 30),
    (TOOL, "uses", TECHNIQUE, 4),
    (MALWARE, "exploits", VULNERABILITY, 10),
    (MITIGATION, "mitigates", TECHNIQUE, 4),
    (INDICATOR, "indicates", MALWARE, 38),
];

struct Thing {
    id: String,
    name: String,
}

/// The graph as far as it was made, and what can be asked about it.
pub struct World {
    words: Words,
    prose: Prose,
    rng: StdRng,
    asking: StdRng,
    size: usize,
    things: [Vec<Thing>; KINDS.len()],
    asked: HashSet<String>,
}

impl World {
    /// A graph of this many nodes.
    pub fn new(size: usize) -> Self {
        Self {
            words: Words::new(),
            prose: Prose::new(),
            rng: StdRng::seed_from_u64(SEED),
            asking: StdRng::seed_from_u64(SEED + 1),
            size,
            things: Default::default(),
            asked: HashSet::new(),
        }
    }

    /// All nodes, in bundles.
    pub fn nodes(&mut self) -> Vec<Bundle> {
        let of_kinds = KINDS.map(|(_, share)| (self.size * share / 1000).max(usize::from(share > 0)));
        let mut kinds: Vec<usize> = (0..KINDS.len())
            .flat_map(|kind| std::iter::repeat_n(kind, of_kinds[kind]))
            .collect();
        kinds.resize(self.size, INDICATOR);
        bundles(kinds, |kind| self.node(kind), |objects| objects)
    }

    /// All relationships, in bundles.
    pub fn relationships(&mut self) -> Vec<Bundle> {
        let all = self.size * RELATIONSHIPS_PER_NODE;
        let of_hub = self.size / 2;
        bundles((0..all).collect(), |at| self.relationship(at, of_hub), |_| 0)
    }

    fn node(&mut self, kind: usize) -> Value {
        let (stix_type, _) = KINDS[kind];
        let text = self.prose.text(&mut self.rng, OF_NODES);
        let mut object = self.object(stix_type, Some(text));
        let number = self.things[kind].len();
        let name = match kind {
            GROUP => {
                let [one, two] = [(); 2].map(|()| self.words.name(&mut self.rng));
                object["aliases"] = json!([format!("UNC{}", 10_000 + number)]);
                format!("{one} {two}")
            }
            CAMPAIGN => {
                let year = self.rng.random_range(YEARS);
                object["first_seen"] = json!(format!("{year}-03-01T00:00:00Z"));
                object["last_seen"] = json!(format!("{year}-08-01T00:00:00Z"));
                format!("Operation {}", self.words.name(&mut self.rng))
            }
            MALWARE => {
                object["is_family"] = json!(true);
                self.words.name(&mut self.rng)
            }
            TOOL => format!("{}kit", self.words.name(&mut self.rng)),
            TECHNIQUE => {
                let identifier = format!("T{:04}.{:03}", 2000 + number / 20, number % 20 + 1);
                object["external_references"] =
                    json!([{"source_name": "mitre-attack", "external_id": identifier}]);
                self.phrase()
            }
            MITIGATION => format!("{} Policy", self.phrase()),
            VULNERABILITY => format!("CVE-{}-{}", 2015 + number % 10, 100_000 + number),
            _ => {
                let (value, path, label) = self.words.observable(&mut self.rng);
                object["pattern"] = json!(format!("[{path} = '{value}']"));
                object["pattern_type"] = json!("stix");
                object["valid_from"] = object["created"].clone();
                format!("{label} of {}", self.words.name(&mut self.rng))
            }
        };
        object["name"] = json!(name);
        let id = object["id"].as_str().unwrap_or_default().to_owned();
        self.things[kind].push(Thing { id, name });
        object
    }

    /// Three words such as a technique has for a name.
    fn phrase(&mut self) -> String {
        let words = [
            self.words.verb(&mut self.rng),
            self.words.adjective(&mut self.rng),
            self.words.noun(&mut self.rng),
        ];
        words.map(capitalized).join(" ")
    }

    fn relationship(&mut self, at: usize, of_hub: usize) -> Value {
        let text =
            (self.rng.random_ratio(1, TEXTLESS)).then(|| self.prose.text(&mut self.rng, OF_RELATIONSHIPS));
        let (source, kind, target) = if at < of_hub {
            (
                self.things[INDICATOR][at].id.clone(),
                "indicates",
                self.things[GROUP][0].id.clone(),
            )
        } else {
            let (source, kind, target, _) = self.related();
            (self.often_first(source), kind, self.often_first(target))
        };
        let mut object = self.object("relationship", text);
        object["relationship_type"] = json!(kind);
        object["source_ref"] = json!(source);
        object["target_ref"] = json!(target);
        object
    }

    fn related(&mut self) -> (usize, &'static str, usize, usize) {
        let all: usize = RELATED.iter().map(|(.., share)| share).sum();
        let mut at = self.rng.random_range(0..all);
        let chosen = RELATED.iter().find(|(.., share)| match at.checked_sub(*share) {
            Some(left) => {
                at = left;
                false
            }
            None => true,
        });
        *chosen.unwrap_or(&RELATED[0])
    }

    /// The id of one of this kind; the first few are chosen most often.
    fn often_first(&mut self, kind: usize) -> String {
        let at = skewed(&mut self.rng, self.things[kind].len());
        self.things[kind][at].id.clone()
    }

    /// The common properties of an object, with a new id.
    fn object(&mut self, kind: &str, text: Option<String>) -> Value {
        let rng = &mut self.rng;
        let (year, month) = (rng.random_range(YEARS), rng.random_range(1..13));
        let time = format!("{year}-{month:02}-{:02}T10:15:26.000Z", rng.random_range(1..29));
        let mut object = json!({
            "type": kind, "spec_version": "2.1", "id": id(kind, rng), "created_by_ref": AUTHOR,
            "created": time, "modified": time, "confidence": rng.random_range(30..=100),
        });
        if let Some(marking) = MARKINGS.get(rng.random_range(0..4)) {
            object["object_marking_refs"] = json!([marking]);
        }
        if let Some(text) = text {
            object["description"] = json!(text);
        }
        object
    }

    /// A question that names the hub, after a template with a place for it and one for any words.
    pub fn about_hub(&mut self, template: &str) -> String {
        let words = [(); 2].map(|()| self.words.noun(&mut self.asking).to_owned());
        let hub = &self.things[GROUP][0].name;
        template.replace("{}", hub).replace("{words}", &words.join(" "))
    }

    /// A question about one of these kinds, after a template with a place for its name; none is asked twice as long as
    /// there are others.
    pub fn about(&mut self, kind: usize, template: &str) -> String {
        let mut question = String::new();
        for _ in 0..100 {
            // The hub is asked about on its own.
            let others = self.things[kind].get(1..).unwrap_or_default();
            let at = skewed(&mut self.asking, others.len());
            let name = others.get(at).map_or("", |thing| thing.name.as_str());
            question = template.replace("{}", name);
            if self.asked.insert(question.clone()) {
                break;
            }
        }
        question
    }

    /// A question about a year.
    pub fn about_year(&mut self, template: &str) -> String {
        template.replace("{}", &self.asking.random_range(YEARS).to_string())
    }

    /// A question that asks for no relationship, a name or an identifier.
    pub fn ordinary(&mut self) -> String {
        let kind = match self.asking.random_range(0..100) {
            0..60 => return self.prose.question(&mut self.asking),
            60..85 => [GROUP, MALWARE, TECHNIQUE].choose(&mut self.asking).copied(),
            _ => Some(VULNERABILITY),
        };
        self.about(kind.unwrap_or(GROUP), "{}")
    }
}

/// Objects in bundles; `nodes` says how many of a bundle's objects are nodes.
fn bundles<T>(of: Vec<T>, mut object: impl FnMut(T) -> Value, nodes: impl Fn(usize) -> usize) -> Vec<Bundle> {
    let mut made = Vec::new();
    let mut left = of.into_iter().peekable();
    while left.peek().is_some() {
        let mut objects = vec![author()];
        objects.extend(left.by_ref().take(NODES).map(&mut object));
        let count = objects.len();
        let mut rng = StdRng::seed_from_u64(made.len() as u64);
        let bundle = json!({"bundle": {"type": "bundle", "id": id("bundle", &mut rng), "objects": objects}});
        made.push(Bundle {
            body: bundle.to_string().into_bytes(),
            objects: count,
            nodes: nodes(count - 1),
            stream: made.len() % STREAMS,
        });
    }
    made
}

/// A random index; the first of a thousand is chosen thirty times as often as the last.
fn skewed(rng: &mut StdRng, count: usize) -> usize {
    let at = rng.random::<f64>().powi(2) * count as f64;
    (at as usize).min(count.saturating_sub(1))
}
