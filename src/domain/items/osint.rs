//! Items of an OSINT collector.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::bounds::{LongText, NodeName, SharedText, TagText};
use super::{IngestBody, ItemPlan, bounds, digest, json_text, marking_of, present, with_value};
use crate::domain::confidence::Confidence;
use crate::domain::draft::{Drafts, EvidenceDraft, ItemDefaults, NodeDraft, identity};
use crate::domain::error::DomainError;
use crate::domain::naming::identity_of;
use crate::domain::node::NodeType;
use crate::domain::or_default;
use crate::domain::tlp::{Tlp, TlpInput};

/// The request body of a collector.
#[derive(Debug, Deserialize, ToSchema)]
pub struct OsintItems {
    #[schema(value_type = SharedText)]
    collector: String,
    #[schema(min_items = 1, max_items = 10000)]
    items: Vec<OsintItem>,
    /// TLP:AMBER if absent. An item whose text states a stricter marking takes that one.
    #[schema(value_type = Option<TlpInput>)]
    default_tlp: Option<Tlp>,
    /// 0.5 if absent.
    default_confidence: Option<Confidence>,
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OsintItem {
    #[schema(value_type = NodeName)]
    title: String,
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<LongText>)]
    description: String,
    #[schema(value_type = Option<LongText>, example = "https://news.example.com/2026/01/industroyer")]
    url: Option<String>,
    /// Inferred from the words of title and description if absent.
    #[serde(rename = "type")]
    node_type: Option<NodeType>,
    #[schema(value_type = Option<TlpInput>)]
    tlp: Option<Tlp>,
    confidence: Option<Confidence>,
    /// Blank ones and repetitions are left out.
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<Vec<TagText>>, max_items = 100)]
    tags: Vec<String>,
    published: Option<DateTime<Utc>>,
}

impl IngestBody for OsintItems {
    const ACTION: &'static str = "ingest.osint";
    const ENTRIES: &'static str = "items";

    fn plan(mut self, _: &str, size: usize) -> Result<ItemPlan, DomainError> {
        bounds::check_shared("collector", &self.collector)?;
        bounds::entries(Self::ENTRIES, self.items.len())?;
        // Counted for the source of the node, that of the evidence, the properties and the original.
        let repeated = 4 * self.items.len() * self.collector.len();
        bounds::check_repetition(Self::ENTRIES, repeated, size)?;
        for (i, item) in self.items.iter_mut().enumerate() {
            item.check(&format!("items[{i}]"))?;
        }
        let defaults = ItemDefaults::or(self.default_tlp, Tlp::Amber, self.default_confidence, 0.5);
        Ok(drafts_of(&self.collector, &self.items, defaults).into())
    }
}

impl OsintItem {
    /// Checks the texts, and trims title and URL.
    fn check(&mut self, place: &str) -> Result<(), DomainError> {
        bounds::name(&format!("{place}.title"), &self.title)?;
        bounds::text(&format!("{place}.description"), &*self.description)?;
        bounds::text(&format!("{place}.url"), self.url.as_deref())?;
        self.tags = distinct(&self.tags);
        bounds::tags(&format!("{place}.tags"), &self.tags)?;
        self.title = self.title.trim().into();
        let url = self.url.as_deref().map(str::trim);
        self.url = url.filter(|url| !url.is_empty()).map(str::to_owned);
        Ok(())
    }
}

/// The tags without those that are blank or repeat another one in other letters; collectors send both.
fn distinct(tags: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let tags = tags.iter().map(|tag| tag.trim()).filter(|tag| !tag.is_empty());
    let first = tags.filter(|tag| seen.insert(tag.to_lowercase()));
    first.map(str::to_owned).collect()
}

/// Drafts one node and one evidence record per item.
fn drafts_of(collector: &str, items: &[OsintItem], defaults: ItemDefaults) -> Drafts {
    let mut drafts = Drafts::default();
    for item in items {
        let tlp = marking_of(item.tlp, defaults.tlp, [&*item.title, &*item.description]);
        let node_type = item.node_type.unwrap_or_else(|| infer_type(item));
        let raw = json_text(json!({
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
            confidence: item.confidence.map_or(defaults.confidence, Confidence::value),
            properties: with_value(node_type, &item.title, properties).into(),
            evidence: vec![evidence],
            merge_by_name,
        });
    }
    drafts
}

/// Infers the type of an item without one (hosted specification, `POST /api/ingest/osint`).
fn infer_type(item: &OsintItem) -> NodeType {
    let text = format!("{} {}", item.title, item.description).to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '&')).collect();
    // Prefixes of words: "exploited" counts, but "laptop" is no APT.
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

/// The identity of an item, and whether to merge it with a node that has its title as name.
fn osint_identity(node_type: NodeType, item: &OsintItem) -> (String, bool) {
    match (&item.url, node_type) {
        // An article is identified by its URL; being about a group does not make it the group.
        (Some(url), NodeType::Osint) => (identity(["osint", "url", url.trim_end_matches('/')]), false),
        (Some(_) | None, node_type) => identity_of(node_type, &item.title),
    }
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
            assert_eq!(infer_type(&item(title)), want, "{title}");
        }
    }

    #[test]
    fn an_unmarked_item_takes_the_stricter_marking_that_its_text_states() {
        let of = |tlp, description: &str| {
            let item = OsintItem {
                tlp,
                description: description.into(),
                ..item("A")
            };
            let drafts = drafts_of("rss", &[item], DEFAULTS);
            assert_eq!(drafts.nodes[0].tlp, drafts.evidence[0].tlp);
            drafts.nodes[0].tlp
        };
        assert_eq!(of(None, "**TLP:** RED"), Tlp::Red);
        assert_eq!(of(None, "The TLP is not red."), Tlp::Green);
        assert_eq!(of(None, "TLP:CLEAR"), Tlp::Green);
        assert_eq!(of(Some(Tlp::Amber), "TLP:RED"), Tlp::Amber);
    }

    #[test]
    fn an_osint_item_is_its_url_and_a_changed_one_is_new_evidence() {
        let mut first = item("A");
        first.url = Some("https://example.com/a/".into());
        let mut second = item("A, corrected");
        second.url = Some("https://example.com/a".into());
        let drafts = drafts_of("rss", &[first.clone(), second, first], DEFAULTS);
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
        let drafts = drafts_of("rss", &items, DEFAULTS);
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
}
