use serde_json::json;

use super::*;
use crate::domain::draft::{JsonText, NodeDraft};
use crate::domain::node::NodeType;

const A: &str = "11111111-1111-4111-8111-111111111111";
const B: &str = "22222222-2222-4222-8222-222222222222";

fn draft(entries: serde_json::Value) -> NodeDraft {
    let properties = json!({"attribute_count": 1, "misp_attributes": entries});
    NodeDraft {
        identity: "ioc\0domain\0a.example".into(),
        node_type: NodeType::Ioc,
        name: "a.example".into(),
        description: String::new(),
        source: "Testers".into(),
        source_type: "misp",
        tlp: Tlp::Green,
        confidence: 0.5,
        properties: JsonText::from_text(properties.to_string()),
        evidence: vec![],
        merge_by_name: false,
    }
}

fn entry(uuid: &str, time: i64) -> serde_json::Value {
    json!({"uuid": uuid, "timestamp": time.to_string(), "to_ids": true})
}

fn stored(
    uuid: &str,
    node: u128,
    time: i64,
    (is_ended, is_deleted): (bool, bool),
) -> (String, StoredAttribute) {
    let known = KnownAttribute {
        uuid: uuid.into(),
        version: AttributeVersion::of(Some(time), None),
        is_ended,
        is_deleted,
    };
    let node = Uuid::from_u128(node);
    (uuid.into(), StoredAttribute { node, known })
}

fn outcome(
    entries: serde_json::Value,
    rows: Vec<(String, StoredAttribute)>,
) -> (u64, Vec<usize>, usize, usize) {
    let drafts = Arc::new(Drafts {
        nodes: vec![draft(entries)],
        ..Drafts::default()
    });
    let mut known = Stored::new();
    for (uuid, row) in rows {
        known.entry(uuid).or_default().push(row);
    }
    let done = compare(&drafts, &stated_attributes(&drafts), &known);
    let left = done.drafts.as_ref().unwrap_or(&drafts).nodes[0].properties.map();
    let left = left["misp_attributes"].as_array().unwrap().len();
    let stale = done.corrections.stale.keys().copied().collect();
    (done.outdated, stale, left, done.corrections.ended.len())
}

#[test]
fn the_newest_version_of_an_attribute_counts() {
    let live = (false, false);
    for (entries, rows, want) in [
        // A newer one ends the older ones.
        (
            json!([entry(A, 20)]),
            vec![stored(A, 1, 10, live)],
            (0, vec![], 1, 1),
        ),
        // The same one changes nothing, and neither does an older one.
        (
            json!([entry(A, 10)]),
            vec![stored(A, 1, 10, live)],
            (0, vec![], 1, 0),
        ),
        (
            json!([entry(A, 5)]),
            vec![stored(A, 1, 10, live)],
            (1, vec![0], 1, 0),
        ),
        // Its value was corrected since.
        (
            json!([entry(A, 10)]),
            vec![stored(A, 1, 10, (true, false)), stored(A, 2, 20, live)],
            (1, vec![0], 1, 0),
        ),
        // It was deleted.
        (
            json!([entry(A, 10)]),
            vec![stored(A, 1, 10, (true, true))],
            (1, vec![0], 1, 0),
        ),
        (
            json!([entry(A, 30)]),
            vec![stored(A, 1, 10, (true, true))],
            (0, vec![], 1, 1),
        ),
        // Another attribute of the value is news.
        (
            json!([entry(A, 5), entry(B, 5)]),
            vec![stored(A, 1, 10, live)],
            (1, vec![], 1, 0),
        ),
        // Without times, what comes last counts.
        (
            json!([{"uuid": A}]),
            vec![stored(A, 1, 0, live)],
            (0, vec![], 1, 1),
        ),
    ] {
        assert_eq!(outcome(entries.clone(), rows), want, "{entries}");
    }
}

#[test]
fn what_is_withdrawn_ends_wherever_it_is_stated() {
    for (time, ends) in [(5, 0), (10, 1), (20, 1), (0, 1)] {
        let drafts = Arc::new(Drafts {
            withdrawn: vec![AttributeEnd {
                uuid: A.into(),
                version: AttributeVersion::of(Some(time), None),
                is_deleted: true,
            }],
            ..Drafts::default()
        });
        let (uuid, row) = stored(A, 1, 10, (false, false));
        let known = Stored::from([(uuid, vec![row])]);
        let done = compare(&drafts, &Stated::new(), &known);
        assert_eq!(done.corrections.ended.len(), ends, "{time}");
    }
}
