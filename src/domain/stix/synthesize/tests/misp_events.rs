//! Real MISP events (kept beside the repository), from event to bundle.

use super::*;
use crate::domain::draft::ItemDefaults;
use crate::domain::misp;
use crate::domain::stix::export::{self, ExportObject, ExportParts};

/// The rows that result from a plan.
pub(super) fn stored(plan: misp::MispPlan) -> Vec<KgNode> {
    let drafts = plan.drafts.nodes.into_iter();
    drafts
        .map(|draft| KgNode {
            id: row(&draft.identity),
            node_type: draft.node_type,
            name: draft.name,
            description: draft.description,
            source: draft.source,
            source_type: draft.source_type.to_owned(),
            tlp: draft.tlp,
            confidence: draft.confidence,
            properties: draft.properties.map(),
            ingested_at: now(),
            linked_evidence_ids: Vec::new(),
            status: NodeStatus::Active,
        })
        .collect()
}

#[test]
fn every_real_misp_event_goes_out_as_one_valid_bundle() {
    let defaults = ItemDefaults {
        tlp: Tlp::Amber,
        confidence: 0.6,
    };
    for (file, given) in misp::real_events() {
        let event = misp::unwrap_event(given).unwrap();
        let Ok(plan) = misp::plan(&event, defaults) else {
            continue;
        };
        let edges = plan.drafts.edges.clone();
        let nodes = stored(plan);
        let objects: Vec<Value> = nodes.iter().map(made).collect();
        let identity_id = identity()["id"].as_str().unwrap().to_owned();
        let id = |at: usize| objects[at]["id"].as_str().unwrap();
        let part = |raw: Map<String, Value>, tlp| ExportObject {
            raw,
            tlp,
            confidence: Some(0.6),
            changed_at: None,
        };
        let relationships = edges.iter().enumerate().map(|(at, edge)| {
            let (source, target) = (id(edge.source), id(edge.target));
            let row = row(&at.to_string());
            let raw = relationship_of(
                row,
                source,
                target,
                &edge.relationship,
                &edge.proof,
                &identity_id,
                now(),
            );
            part(raw, edge.tlp)
        });
        let parts = ExportParts {
            relationships: relationships.collect(),
            nodes: objects
                .iter()
                .zip(&nodes)
                .map(|(o, n)| part(o.as_object().unwrap().clone(), n.tlp))
                .collect(),
            supporting: vec![ExportObject {
                raw: identity(),
                tlp: Tlp::White,
                confidence: None,
                changed_at: None,
            }],
        };
        let bundle = export::bundle(parts, row("bundle"));
        let count = |kind: &str| objects.iter().filter(|object| object["type"] == kind).count();
        println!(
            "{file}: {} indicators, {} notes, {} others",
            count("indicator"),
            count("note"),
            objects.len() - count("indicator") - count("note")
        );
        assert!(bundle.is_ok(), "{file}: {:?}", bundle.err());
    }
}
