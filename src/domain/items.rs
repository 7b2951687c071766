//! OSINT items, analyst entries and reports: from what a request says to drafts.
//!
//! Identity (ARCHITECTURE.md, "Identity of things"): an OSINT item of type `osint` is its URL, or without one its
//! title; everything else is what [`super::naming::identity_of`] says of its type and name, an OSINT item of another
//! type too, and its URL is its evidence. The same item taken in twice is one node; a changed one adds evidence.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::draft::{Compact, Drafts, EdgeDraft, EvidenceDraft, NodeDraft, identity};
use super::extraction::{Extractor, canonical_name, indicator_properties, stated_relations};
use super::naming::{identity_of, indicator_of};
use super::node::NodeType;
use super::tlp::Tlp;

/// What an entry without its own marking or confidence gets.
#[derive(Debug, Clone, Copy)]
pub struct ItemDefaults {
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
}

/// One item of an OSINT collector.
#[derive(Debug, Clone)]
pub struct OsintItem {
    pub title: String,
    pub description: String,
    pub url: Option<String>,
    pub node_type: Option<NodeType>,
    pub tlp: Option<Tlp>,
    pub confidence: Option<f64>,
    pub tags: Vec<String>,
    pub published: Option<DateTime<Utc>>,
}

/// One node as an analyst enters it.
#[derive(Debug, Clone)]
pub struct AnalystNode {
    pub name: String,
    pub node_type: NodeType,
    pub description: String,
    pub tlp: Option<Tlp>,
    pub confidence: Option<f64>,
    pub properties: Map<String, Value>,
}

/// One block of a structured report.
#[derive(Debug, Clone)]
pub struct ReportBlock {
    pub entity_name: String,
    pub node_type: NodeType,
    pub description: String,
    pub tlp: Option<Tlp>,
    pub source_url: Option<String>,
    pub excerpt: Option<String>,
    pub confidence: Option<f64>,
}

/// A structured report.
#[derive(Debug, Clone)]
pub struct Report {
    pub title: String,
    pub source_name: Option<String>,
    pub blocks: Vec<ReportBlock>,
}

/// The drafts of a collector's items: a node and an evidence record each.
pub fn of_osint(collector: &str, items: &[OsintItem], defaults: ItemDefaults) -> Drafts {
    let mut drafts = Drafts::default();
    for item in items {
        let tlp = item.tlp.unwrap_or(defaults.tlp);
        let node_type = item.node_type.unwrap_or_else(|| inferred_type(item));
        let raw = compact(json!({
            "collector": collector, "title": item.title, "description": item.description, "url": item.url,
            "type": node_type, "tlp": tlp, "confidence": item.confidence, "tags": item.tags,
            "published": item.published,
        }));
        let properties = present([
            ("collector", json!(collector)),
            ("url", json!(item.url)),
            ("tags", json!(item.tags)),
            ("published", json!(item.published)),
        ]);
        let (key, merge_by_name) = osint_identity(node_type, item);
        let evidence = drafts.evidence.len();
        drafts.evidence.push(EvidenceDraft {
            identity: identity(["osint", &key, &digest(&raw)]),
            kind: "osint",
            ext_id: item.url.clone(),
            title: item.title.clone(),
            source: collector.into(),
            tlp,
            raw,
        });
        drafts.nodes.push(NodeDraft {
            identity: key,
            node_type,
            name: item.title.clone(),
            description: item.description.clone(),
            source: collector.into(),
            source_type: "osint",
            tlp,
            confidence: item.confidence.unwrap_or(defaults.confidence),
            properties: with_value(node_type, &item.title, properties).into(),
            evidence: vec![evidence],
            merge_by_name,
        });
    }
    drafts
}

/// The drafts of an analyst's entries; `by` is the analyst.
pub fn of_analyst(by: &str, nodes: &[AnalystNode], defaults: ItemDefaults) -> Drafts {
    let mut drafts = Drafts::default();
    for entry in nodes {
        let tlp = entry.tlp.unwrap_or(defaults.tlp);
        let (key, merge_by_name) = identity_of(entry.node_type, &entry.name);
        let raw = compact(json!({
            "name": entry.name, "node_type": entry.node_type, "description": entry.description, "tlp": tlp,
            "confidence": entry.confidence, "properties": entry.properties, "analyst": by,
        }));
        let evidence = drafts.evidence.len();
        drafts.evidence.push(EvidenceDraft {
            identity: identity(["analyst", &key, &digest(&raw)]),
            kind: "analyst",
            ext_id: None,
            title: entry.name.clone(),
            source: by.into(),
            tlp,
            raw,
        });
        drafts.nodes.push(NodeDraft {
            identity: key,
            node_type: entry.node_type,
            name: entry.name.clone(),
            description: entry.description.clone(),
            source: by.into(),
            source_type: "analyst",
            tlp,
            confidence: entry.confidence.unwrap_or(defaults.confidence),
            properties: with_value(entry.node_type, &entry.name, entry.properties.clone()).into(),
            evidence: vec![evidence],
            merge_by_name,
        });
    }
    drafts
}

/// The drafts of a report: its blocks as nodes, all linked to the one evidence record of the report, and the
/// relationships that its texts state among them.
pub fn of_report(report: &Report, defaults: ItemDefaults) -> Drafts {
    let mut drafts = Drafts::default();
    let source = report.source_name.clone().unwrap_or_else(|| report.title.clone());
    let raw = compact(report_original(report));
    let marking = |block: &ReportBlock| block.tlp.unwrap_or(defaults.tlp);
    // The report as a whole is as restricted as its most restricted block.
    let whole = report
        .blocks
        .iter()
        .map(marking)
        .max()
        .unwrap_or(defaults.tlp)
        .max(defaults.tlp);
    drafts.evidence.push(EvidenceDraft {
        identity: identity([
            "report",
            &canonical_name(&report.title),
            &canonical_name(&source),
            // Not in the original where it is the default: the same report under another marking is another record.
            whole.as_str(),
            &digest(&raw),
        ]),
        kind: "report",
        ext_id: None,
        title: report.title.clone(),
        source: source.clone(),
        tlp: whole,
        raw,
    });
    for block in &report.blocks {
        let (key, merge_by_name) = identity_of(block.node_type, &block.entity_name);
        // The report's own words are marked as the report is: a block marked lower does not show them, unless
        // they are for everybody in the community anyway.
        let shown = marking(block) >= defaults.tlp || defaults.tlp <= Tlp::Green;
        let properties = present([
            ("report", json!(shown.then_some(&report.title))),
            ("source_url", json!(block.source_url)),
            ("excerpt", json!(block.excerpt)),
        ]);
        drafts.nodes.push(NodeDraft {
            identity: key,
            node_type: block.node_type,
            name: block.entity_name.clone(),
            description: block.description.clone(),
            source: if shown { source.clone() } else { "report".into() },
            source_type: "report",
            tlp: marking(block),
            confidence: block.confidence.unwrap_or(defaults.confidence),
            properties: with_value(block.node_type, &block.entity_name, properties).into(),
            evidence: vec![0],
            merge_by_name,
        });
    }
    for block in &report.blocks {
        let confidence = block.confidence.unwrap_or(defaults.confidence);
        for text in [Some(&block.description), block.excerpt.as_ref()]
            .into_iter()
            .flatten()
        {
            stated_edges(text, marking(block), confidence, &mut drafts);
        }
    }
    drafts
}

/// Adds the relationships that a text states between nodes of the drafts.
fn stated_edges(text: &str, tlp: Tlp, confidence: f64, drafts: &mut Drafts) {
    let hits = Extractor::shared().extract(text);
    for relation in stated_relations(text, &hits) {
        let end = |hit: usize| {
            let hit = hits.get(hit)?;
            let (key, _) = identity_of(hit.kind.node_type(), &hit.value);
            drafts.nodes.iter().position(|node| node.identity == key)
        };
        let (Some(source), Some(target)) = (end(relation.subject), end(relation.object)) else {
            continue;
        };
        if source != target {
            drafts.edges.push(EdgeDraft {
                source,
                target,
                relationship: relation.verb.as_str().into(),
                // The sentence may say more than either node: the edge is as restricted as its text.
                tlp,
                confidence,
                proof: text.get(relation.sentence.clone()).unwrap_or(text).trim().into(),
                evidence: 0,
            });
        }
    }
}

/// The type of an item that states none (hosted specification, `POST /api/ingest/osint`).
fn inferred_type(item: &OsintItem) -> NodeType {
    let text = format!("{} {}", item.title, item.description).to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '&')).collect();
    // Beginnings of words: "exploited" counts, "laptop" is no APT.
    let begins = |start: &str| words.iter().any(|word| word.starts_with(start));
    let apt = |word: &&str| {
        word.strip_prefix("apt")
            .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
    };
    let actors = words
        .windows(2)
        .any(|pair| matches!(pair, ["threat", actor] if actor.starts_with("actor")));
    if begins("cve") || begins("ransomware") || begins("exploit") {
        NodeType::Vulnerability
    } else if words.iter().any(apt) || actors {
        NodeType::Actor
    } else if words.contains(&"mitre") || begins("att&ck") {
        NodeType::Attck
    } else {
        NodeType::Osint
    }
}

/// The identity of an item, and whether a node that carries its title is the same one.
fn osint_identity(node_type: NodeType, item: &OsintItem) -> (String, bool) {
    match (&item.url, node_type) {
        // An article is its address; that it is about a group does not make it the group.
        (Some(url), NodeType::Osint) => (identity(["osint", "url", url.trim_end_matches('/')]), false),
        (Some(_) | None, node_type) => identity_of(node_type, &item.title),
    }
}

/// An indicator shows its kind, value and pattern, so that it is found and exported by them.
fn with_value(node_type: NodeType, name: &str, mut properties: Map<String, Value>) -> Map<String, Value> {
    if node_type == NodeType::Ioc {
        for (key, value) in indicator_properties(&indicator_of(name)) {
            properties.entry(key).or_insert(value);
        }
    }
    properties
}

fn report_original(report: &Report) -> Value {
    let block = |block: &ReportBlock| {
        json!({
            "entity_name": block.entity_name, "node_type": block.node_type, "description": block.description,
            "tlp": block.tlp, "source_url": block.source_url, "excerpt": block.excerpt,
            "confidence": block.confidence,
        })
    };
    let blocks: Vec<Value> = report.blocks.iter().map(block).collect();
    json!({"title": report.title, "source_name": report.source_name, "content_blocks": blocks})
}

fn digest(original: &Compact) -> String {
    hex::encode(Sha256::digest(original.text()))
}

/// The properties that have something to say.
fn present<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    pairs
        .into_iter()
        .filter(|(_, value)| !empty(value))
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn compact(object: Value) -> Compact {
    Compact::from_text(object.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: ItemDefaults = ItemDefaults {
        tlp: Tlp::Green,
        confidence: 0.5,
    };

    fn item(title: &str) -> OsintItem {
        OsintItem {
            title: title.into(),
            description: String::new(),
            url: None,
            node_type: None,
            tlp: None,
            confidence: None,
            tags: vec![],
            published: None,
        }
    }

    #[test]
    fn the_type_of_an_item_is_inferred_from_its_words() {
        for (title, want) in [
            ("CVE-2024-3094 in xz", NodeType::Vulnerability),
            ("New ransomware wave", NodeType::Vulnerability),
            ("Exploit published", NodeType::Vulnerability),
            ("APT29 is back", NodeType::Actor),
            ("A look at threat-actors of 2024", NodeType::Actor),
            ("MITRE updates ATT&CK", NodeType::Attck),
            ("APT 28", NodeType::Actor),
            ("Stolen laptop, chapter 3, captured", NodeType::Osint),
            ("Weekly summary", NodeType::Osint),
        ] {
            assert_eq!(inferred_type(&item(title)), want, "{title}");
        }
    }

    #[test]
    fn an_osint_item_is_its_url_and_a_changed_one_is_new_evidence() {
        let mut first = item("A");
        first.url = Some("https://example.com/a/".into());
        let mut second = item("A, corrected");
        second.url = Some("https://example.com/a".into());
        let drafts = of_osint("rss", &[first.clone(), second, first], DEFAULTS);
        assert_eq!(drafts.nodes[0].identity, drafts.nodes[1].identity);
        assert_ne!(drafts.evidence[0].identity, drafts.evidence[1].identity);
        assert_eq!(drafts.evidence[0].identity, drafts.evidence[2].identity);
    }

    #[test]
    fn an_item_of_another_type_is_what_its_title_names_wherever_it_stands() {
        let of = |node_type, title: &str| OsintItem {
            url: Some("https://example.com/list".into()),
            node_type: Some(node_type),
            ..item(title)
        };
        let items = [
            of(NodeType::Ioc, "198[.]51.100.7"),
            of(NodeType::Ioc, "evil.example.com"),
            of(NodeType::Actor, "Fancy Bear"),
            of(NodeType::Cve, "CVE-2024-3094"),
        ];
        let drafts = of_osint("rss", &items, DEFAULTS);
        for (node, item) in drafts.nodes.iter().zip(&items) {
            let (identity, merge_by_name) = identity_of(node.node_type, &item.title);
            assert_eq!((&node.identity, node.merge_by_name), (&identity, merge_by_name));
        }
        assert!(
            drafts
                .evidence
                .iter()
                .all(|evidence| evidence.ext_id == items[0].url)
        );
        assert_eq!(drafts.nodes[0].properties.map()["value"], "198.51.100.7");
    }

    #[test]
    fn one_report_under_two_markings_is_two_evidence_records() {
        let report = Report {
            title: "T".into(),
            source_name: None,
            blocks: vec![],
        };
        let of = |tlp| {
            of_report(&report, ItemDefaults { tlp, ..DEFAULTS }).evidence[0]
                .identity
                .clone()
        };
        assert_ne!(of(Tlp::Green), of(Tlp::Red));
        assert_eq!(of(Tlp::Green), of(Tlp::Green));
    }

    #[test]
    fn a_report_links_what_it_states_and_not_what_merely_stands_together() {
        let block = |name: &str, node_type, excerpt: &str| ReportBlock {
            entity_name: name.into(),
            node_type,
            description: String::new(),
            tlp: None,
            source_url: None,
            excerpt: Some(excerpt.into()),
            confidence: None,
        };
        let report = Report {
            title: "T".into(),
            source_name: None,
            blocks: vec![
                block(
                    "Fancy Bear",
                    NodeType::Actor,
                    "APT28 uses X-Agent against ministries.",
                ),
                block("X-Agent", NodeType::Tool, "Seen again."),
                block(
                    "Mimikatz",
                    NodeType::Tool,
                    "Mimikatz was on the same host as X-Agent.",
                ),
            ],
        };
        let drafts = of_report(&report, DEFAULTS);
        let edges: Vec<_> = drafts
            .edges
            .iter()
            .map(|e| (e.source, e.relationship.as_str(), e.target))
            .collect();
        assert_eq!(edges, [(0, "uses", 1)]);
        assert_eq!(drafts.edges[0].proof, "APT28 uses X-Agent against ministries.");
        assert!(drafts.nodes.iter().all(|node| node.evidence == [0]));
    }
}
