//! Structured reports.

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::bounds::{LongText, NodeName, SharedText};
use super::{IngestBody, ItemPlan, bounds, digest, json_text, marking_of, present, with_value};
use crate::domain::confidence::Confidence;
use crate::domain::draft::{
    Drafts, EdgeDraft, EvidenceDraft, ItemDefaults, NodeDraft, PassageDraft, identity,
};
use crate::domain::error::DomainError;
use crate::domain::extraction::{Extractor, canonical_name, stated_relations};
use crate::domain::naming::identity_of;
use crate::domain::node::NodeType;
use crate::domain::or_default;
use crate::domain::passage::passages_of;
use crate::domain::tlp::{Tlp, TlpInput};

/// A report as sent; its JSON is the stored original.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Report {
    #[schema(value_type = SharedText)]
    title: String,
    /// The title if absent or blank.
    #[schema(max_length = 500, pattern = r"^[^\x00]*$", example = "Incident response team")]
    source_name: Option<String>,
    #[schema(min_items = 1, max_items = 10000)]
    content_blocks: Vec<ReportBlock>,
    /// TLP:GREEN if absent. A block whose text states a stricter marking takes that one.
    #[serde(skip_serializing)]
    #[schema(value_type = Option<TlpInput>)]
    default_tlp: Option<Tlp>,
    /// 0.6 if absent.
    #[serde(skip_serializing)]
    default_confidence: Option<Confidence>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReportBlock {
    #[schema(value_type = NodeName)]
    entity_name: String,
    node_type: NodeType,
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<LongText>)]
    description: String,
    #[schema(value_type = Option<TlpInput>)]
    tlp: Option<Tlp>,
    #[schema(value_type = Option<LongText>, example = "https://reports.example.com/industroyer")]
    source_url: Option<String>,
    #[schema(value_type = Option<LongText>)]
    excerpt: Option<String>,
    confidence: Option<Confidence>,
}

impl IngestBody for Report {
    const ACTION: &'static str = "ingest.report";
    const ENTRIES: &'static str = "content_blocks";

    fn plan(mut self, _: &str, size: usize) -> Result<ItemPlan, DomainError> {
        bounds::check_shared("title", &self.title)?;
        // A blank source counts as missing.
        self.source_name = self.source_name.filter(|source| !source.trim().is_empty());
        if let Some(source) = &self.source_name {
            bounds::check_shared("source_name", source)?;
        }
        bounds::entries(Self::ENTRIES, self.content_blocks.len())?;
        let shown = self.title.len() + self.source_name.as_ref().unwrap_or(&self.title).len();
        bounds::check_repetition(Self::ENTRIES, shown * self.content_blocks.len(), size)?;
        for (i, block) in self.content_blocks.iter_mut().enumerate() {
            block.check(&format!("content_blocks[{i}]"))?;
        }
        self.title = self.title.trim().into();
        let defaults = ItemDefaults::or(self.default_tlp, Tlp::Green, self.default_confidence, 0.6);
        Ok(drafts_of(&self, defaults).into())
    }
}

impl ReportBlock {
    /// Checks the texts, and trims the name.
    fn check(&mut self, place: &str) -> Result<(), DomainError> {
        bounds::name(&format!("{place}.entity_name"), &self.entity_name)?;
        bounds::text(&format!("{place}.description"), &*self.description)?;
        bounds::text(&format!("{place}.source_url"), self.source_url.as_deref())?;
        bounds::text(&format!("{place}.excerpt"), self.excerpt.as_deref())?;
        self.entity_name = self.entity_name.trim().into();
        Ok(())
    }
}

/// Drafts a node per block, all linked to the report's single evidence record, and the relationships that the block
/// texts state among them.
fn drafts_of(report: &Report, defaults: ItemDefaults) -> Drafts {
    let mut drafts = Drafts::default();
    let source = report.source_name.clone().unwrap_or_else(|| report.title.clone());
    let raw = json_text(json!(report));
    // A marking in the title is that of the whole report.
    let default = marking_of(None, defaults.tlp, [&*report.title]);
    let defaults = ItemDefaults {
        tlp: default,
        ..defaults
    };
    let marking = |block: &ReportBlock| {
        let texts = [Some(&*block.description), block.excerpt.as_deref()];
        marking_of(block.tlp, defaults.tlp, texts.into_iter().flatten())
    };
    let markings: Vec<Tlp> = report.content_blocks.iter().map(marking).collect();
    // The report as a whole has the marking of its most restricted block.
    let whole = markings.iter().copied().fold(defaults.tlp, Tlp::max);
    drafts.evidence.push(EvidenceDraft {
        identity: identity([
            "report",
            &canonical_name(&report.title),
            &canonical_name(&source),
            // The original omits a default marking, but the same report under another marking is another record.
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
    for (block, &marking) in report.content_blocks.iter().zip(&markings) {
        let (key, merge_by_name) = identity_of(block.node_type, &block.entity_name);
        // The report's own texts have its marking. A block with a lower one shows them only if
        // they are at most GREEN.
        let shown = marking >= defaults.tlp || defaults.tlp <= Tlp::Green;
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
            tlp: marking,
            confidence: block.confidence.map_or(defaults.confidence, Confidence::value),
            properties: with_value(block.node_type, &block.entity_name, properties).into(),
            evidence: vec![0],
            merge_by_name,
        });
    }
    let mut further = Vec::new();
    for ((place, block), &marking) in report.content_blocks.iter().enumerate().zip(&markings) {
        let confidence = block.confidence.map_or(defaults.confidence, Confidence::value);
        for text in [Some(&block.description), block.excerpt.as_ref()]
            .into_iter()
            .flatten()
        {
            add_stated_edges(text, marking, confidence, &mut drafts);
        }
        let excerpt = block.excerpt.as_deref().map(passages_of).unwrap_or_default();
        let mut excerpt = excerpt.into_iter().map(|text| PassageDraft {
            about: [place; 2],
            tlp: marking,
            text,
        });
        drafts.passages.extend(excerpt.next());
        further.extend(excerpt);
    }
    // If room is short, each block has its beginning.
    drafts.passages.extend(further);
    drafts
}

/// Adds the relationships that a text states between drafted nodes.
fn add_stated_edges(text: &str, tlp: Tlp, confidence: f64, drafts: &mut Drafts) {
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
                // The sentence may reveal more than either node, so the edge has the marking of its text.
                tlp,
                confidence,
                proof: text.get(relation.sentence.clone()).unwrap_or(text).trim().into(),
                evidence: 0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: ItemDefaults = ItemDefaults {
        tlp: Tlp::Green,
        confidence: 0.5,
    };

    fn report(content_blocks: Vec<ReportBlock>) -> Report {
        Report {
            title: "T".into(),
            source_name: None,
            content_blocks,
            default_tlp: None,
            default_confidence: None,
        }
    }

    #[test]
    fn one_report_under_two_markings_is_two_evidence_records() {
        let report = report(vec![]);
        let of = |tlp| {
            drafts_of(&report, ItemDefaults { tlp, ..DEFAULTS }).evidence[0]
                .identity
                .clone()
        };
        assert_ne!(of(Tlp::Green), of(Tlp::Red));
        assert_eq!(of(Tlp::Green), of(Tlp::Green));
    }

    #[test]
    fn an_excerpt_is_a_passage_with_the_marking_of_its_block() {
        let block = |name: &str, tlp, excerpt: &str| ReportBlock {
            entity_name: name.into(),
            node_type: NodeType::Actor,
            description: String::new(),
            tlp,
            source_url: None,
            excerpt: Some(excerpt.into()),
            confidence: None,
        };
        let said = "It rewrote the ladder logic.";
        let report = report(vec![
            block("A", None, "Too short."),
            block("B", Some(Tlp::Red), said),
        ]);
        let passages = drafts_of(&report, DEFAULTS).passages;
        let expected = PassageDraft {
            about: [1, 1],
            tlp: Tlp::Red,
            text: said.into(),
        };
        assert_eq!(passages, [expected]);
    }

    #[test]
    fn a_long_excerpt_is_several_passages_behind_the_beginnings_of_all() {
        let block = |name: &str, excerpt: String| ReportBlock {
            entity_name: name.into(),
            node_type: NodeType::Tool,
            description: String::new(),
            tlp: None,
            source_url: None,
            excerpt: Some(excerpt),
            confidence: None,
        };
        let long = format!(
            "{} The quorbic relay answered.",
            "No result was told. ".repeat(400)
        );
        let report = report(vec![
            block("A", long),
            block("B", "It rewrote the ladder logic.".into()),
        ]);
        let passages = drafts_of(&report, DEFAULTS).passages;
        let about: Vec<[usize; 2]> = passages.iter().map(|passage| passage.about).collect();
        assert_eq!(about, [[0, 0], [1, 1], [0, 0], [0, 0], [0, 0], [0, 0]]);
        let holders: Vec<usize> = (0..passages.len())
            .filter(|at| passages[*at].text.contains("quorbic"))
            .collect();
        assert_eq!(holders, [5]);
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
        let report = report(vec![
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
        ]);
        let drafts = drafts_of(&report, DEFAULTS);
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
