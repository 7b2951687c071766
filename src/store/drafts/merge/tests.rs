//! What is merged into a node, and what is kept beside it.

use chrono::DateTime;
use proptest::prelude::*;

use super::*;
use crate::store::rows::record;

fn draft(source: &str, tlp: Tlp, description: &str, properties: Value) -> NodeDraft {
    let Value::Object(properties) = properties else {
        panic!("properties are an object")
    };
    NodeDraft {
        identity: "actor\0x".into(),
        node_type: NodeType::Actor,
        name: "X".into(),
        description: description.into(),
        source: source.into(),
        source_type: "misp",
        tlp,
        confidence: 0.5,
        properties: properties.into(),
        evidence: vec![0],
        merge_by_name: true,
    }
}

fn evidence(kind: &'static str, tlp: Tlp) -> EvidenceDraft {
    EvidenceDraft {
        identity: "e".into(),
        kind,
        ext_id: Some("an event".into()),
        title: "T".into(),
        source: "s".into(),
        tlp,
        raw: Map::new().into(),
    }
}

fn held(by: &NodeDraft) -> MergedNode {
    MergedNode::of_existing_row(NodeRow {
        id: record("node", Uuid::nil()),
        ws: Uuid::nil(),
        node_type: by.node_type.as_str().into(),
        name: by.name.clone(),
        description: by.description.clone(),
        source: by.source.clone(),
        source_type: by.source_type.into(),
        tlp_rank: i64::from(by.tlp.rank()),
        confidence: by.confidence,
        properties: by.properties.text().to_owned(),
        status: "active".into(),
        evidence: vec![],
        evidence_tlp: vec![],
        stix_evidence: None,
        modified: None,
        held_by: None,
        feeds: None,
        changed_at: None,
        rev: 0,
        ingested_at: DateTime::UNIX_EPOCH,
    })
}

/// Absorbs a draft as of the same source if it names that of the node.
fn absorb(node: &mut MergedNode, draft: &NodeDraft) -> Result<Absorption, DomainError> {
    let is_same = node.row.source == draft.source;
    let source = if is_same {
        DraftSource::Same
    } else {
        DraftSource::Other
    };
    node.absorb(draft, source)
}

fn properties(held: MergedNode) -> Value {
    serde_json::from_str(&held.into_row(DateTime::UNIX_EPOCH).properties).unwrap()
}

#[test]
fn a_source_that_says_more_at_a_stricter_marking_gives_the_node_marking_and_text() {
    let first = draft(
        "s",
        Tlp::Green,
        "old",
        json!({"motive": "?", "tags": ["a"], "kept": 1}),
    );
    let more = draft("s", Tlp::Amber, "new", json!({"motive": "money", "tags": ["b"]}));
    let mut node = held(&first);
    assert_eq!(absorb(&mut node, &more).unwrap(), Absorption::Changed);
    assert_eq!((node.row.tlp_rank, node.row.description.as_str()), (2, "new"));
    assert_eq!(
        properties(node),
        json!({"motive": "money", "tags": ["a", "b"], "kept": 1})
    );
    // The draft has a marking but no text: the node keeps its text.
    let mut node = held(&first);
    absorb(&mut node, &draft("s", Tlp::Red, "", json!({}))).unwrap();
    assert_eq!((node.row.tlp_rank, node.row.description.as_str()), (4, "old"));
}

#[test]
fn a_node_takes_what_is_not_stricter_only_where_it_has_nothing() {
    let mut node = held(&draft("s", Tlp::Amber, "old", json!({"motive": "?"})));
    let other = draft("o", Tlp::Green, "new", json!({"motive": "money", "x": 1}));
    assert_eq!(absorb(&mut node, &other).unwrap(), Absorption::Changed);
    assert_eq!((node.row.tlp_rank, node.row.description.as_str()), (2, "old"));
    assert_eq!(absorb(&mut node, &other).unwrap(), Absorption::Known);
    assert_eq!(properties(node), json!({"motive": "?", "x": 1}));
}

#[test]
fn a_text_that_the_node_may_not_take_is_a_record_of_its_own() {
    let restricted = draft("o", Tlp::Amber, "new", json!({"motive": "money"}));
    let mut node = held(&draft("s", Tlp::Green, "old", json!({})));
    assert_eq!(absorb(&mut node, &restricted).unwrap(), Absorption::TooRestricted);
    assert!(!node.is_changed());
    let kept = evidence_of_rejected(&restricted, &[evidence("misp", Tlp::Amber)]).unwrap();
    assert_eq!(
        (kept.tlp, kept.kind, kept.title.as_str()),
        (Tlp::Amber, "misp", "X")
    );
    assert_eq!(
        Value::Object(kept.raw.map()),
        json!({"name": "X", "node_type": "actor", "description": "new", "properties": {"motive": "money"},
            "confidence": 0.5, "tlp": "TLP:AMBER"})
    );
    assert_eq!(kept.ext_id.as_deref(), Some("an event"));
    let hidden = evidence_of_rejected(&restricted, &[evidence("misp", Tlp::Red)]).unwrap();
    assert_eq!(
        hidden.ext_id, None,
        "the event is RED, what it says here is AMBER"
    );
    assert_eq!(kept.identity, hidden.identity);
    // A report's own record holds it, unless it is more restricted than the block.
    assert_eq!(
        evidence_of_rejected(&restricted, &[evidence("report", Tlp::Amber)]),
        None
    );
    assert!(evidence_of_rejected(&restricted, &[evidence("report", Tlp::Red)]).is_some());
}

#[test]
fn lists_stop_growing_and_the_second_title_of_an_article_is_an_alias() {
    let mut first = draft("s", Tlp::Green, "", json!({}));
    first.node_type = NodeType::Osint;
    first.merge_by_name = false;
    let mut node = held(&first);
    let title = |n: usize| format!("title {n}");
    first.name = title(0);
    absorb(&mut node, &first).unwrap();
    // To add all of them one by one takes a debug build seconds.
    let more: Vec<String> = (1..MAX_UNITED - 50).map(title).collect();
    let mut many = draft("s", Tlp::Green, "", json!({ "aliases": more }));
    many.node_type = NodeType::Osint;
    absorb(&mut node, &many).unwrap();
    for n in MAX_UNITED - 50..MAX_UNITED + 100 {
        first.name = title(n);
        absorb(&mut node, &first).unwrap();
    }
    let aliases = properties(node)["aliases"].as_array().unwrap().clone();
    assert_eq!(aliases.len(), MAX_UNITED);
    assert_eq!(aliases[0], "title 0");
}

proptest! {
    #[test]
    fn no_text_of_a_node_is_marked_higher_than_the_node(
        says in proptest::collection::vec((0..2usize, 0..5usize), 1..12),
    ) {
        let of = |n: usize, (source, level): (usize, usize)| {
            let source = ["a", "b"][source];
            // Each text names its own marking.
            let text = format!("{level} {n}");
            draft(source, Tlp::ALL[level], &text, json!({format!("k{n}"): text, "shared": text, "tags": [text]}))
        };
        let mut node = held(&of(0, says[0]));
        for (n, said) in says.iter().enumerate().skip(1) {
            absorb(&mut node, &of(n, *said)).unwrap();
        }
        let rank = node.row.tlp_rank;
        let description = node.row.description.clone();
        let mut texts = vec![description];
        for value in properties(node).as_object().unwrap().values() {
            match value.as_array() {
                Some(items) => texts.extend(items.iter().map(|item| item.as_str().unwrap().to_owned())),
                None => texts.push(value.as_str().unwrap().to_owned()),
            }
        }
        for text in texts {
            let level: i64 = text.split(' ').next().unwrap().parse().unwrap();
            prop_assert!(level <= rank, "{} at {}", text, rank);
        }
    }
}
