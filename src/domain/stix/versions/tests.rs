use chrono::{DateTime, TimeDelta};
use serde_json::json;

use super::*;
use crate::domain::ids::IdSecret;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::tlp::Tlp;

const OBJECT: &str = "malware--11111111-2222-4333-8444-555555555555";

fn version(id: Uuid, tlp: Tlp, stored: i64) -> KgNode {
    let properties = json!({"stix_id": OBJECT})
        .as_object()
        .cloned()
        .unwrap_or_default();
    KgNode {
        id,
        node_type: NodeType::Tool,
        name: "N".into(),
        description: String::new(),
        source: "s".into(),
        source_type: "stix".into(),
        tlp,
        confidence: 0.5,
        properties,
        ingested_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(stored),
        linked_evidence_ids: Vec::new(),
        status: NodeStatus::Active,
    }
}

#[test]
fn one_version_of_an_object_stands_for_it() {
    let ids = IdSecret::new(Uuid::from_u128(3), []).ids_of(Uuid::from_u128(1));
    let (first, beside) = (ids.node(OBJECT), Uuid::from_u128(2));
    for (of_first, of_beside, stands) in [
        ((Tlp::Red, 1), (Tlp::Green, 2), first),
        ((Tlp::Red, 1), (Tlp::Red, 2), beside),
        ((Tlp::Green, 3), (Tlp::Amber, 2), first),
        ((Tlp::Red, 3), (Tlp::Green, 2), first),
    ] {
        let nodes = [
            version(first, of_first.0, of_first.1),
            version(beside, of_beside.0, of_beside.1),
        ];
        let other = if stands == first { beside } else { first };
        let want = HashMap::from([(other, stands)]);
        assert_eq!(standing_versions(ids, &nodes), want, "{of_first:?} {of_beside:?}");
    }
    let mut other = version(beside, Tlp::Green, 1);
    other.source_type = "misp".into();
    assert!(standing_versions(ids, [&version(first, Tlp::Red, 1), &other]).is_empty());
}
