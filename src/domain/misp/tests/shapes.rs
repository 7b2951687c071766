//! Wrappers, broken events, skipped attributes, size.

use test_support::extent;

use super::*;

#[test]
fn every_wrapper_is_taken_off() {
    let bare = json!({"uuid": UUID, "Attribute": []});
    for wrapped in [
        bare.clone(),
        json!({"Event": bare}),
        json!([{"Event": bare}]),
        json!([bare]),
        json!({"response": [{"Event": bare}]}),
        json!({"response": {"Event": bare}}),
        json!({"response": [bare]}),
    ] {
        assert_eq!(
            Value::Object(unwrap_event(wrapped.clone()).unwrap()),
            bare,
            "{wrapped}"
        );
    }
}

#[test]
fn no_event_and_two_events_are_named() {
    for (given, rule) in [
        (json!(null), "must be an object".to_owned()),
        (json!("x"), "must be an object".to_owned()),
        (json!([]), "holds no event".to_owned()),
        (json!({"response": []}), "holds no event".to_owned()),
        (
            json!([{"Event": {"uuid": "a"}}, {"uuid": "b"}]),
            "must hold one event, holds 2: a, b".to_owned(),
        ),
        (
            json!({"response": [1, 2, 3]}),
            "must hold one event, holds 3".to_owned(),
        ),
    ] {
        assert_eq!(
            unwrap_event(given.clone()),
            Err(("event".to_owned(), rule)),
            "{given}"
        );
    }
}

#[test]
fn what_an_event_needs_is_named() {
    for (given, field, rule) in [
        (json!({}), "event.uuid", "is required"),
        (
            json!({"uuid": null, "Attribute": []}),
            "event.uuid",
            "is required",
        ),
        (
            json!({"uuid": 7, "Attribute": []}),
            "event.uuid",
            "must be a string",
        ),
        (
            json!({"uuid": " ", "Attribute": []}),
            "event.uuid",
            "must not be empty",
        ),
        (
            json!({"uuid": "\u{0} \u{0}", "Attribute": []}),
            "event.uuid",
            "must not be empty",
        ),
        (json!({"uuid": "a"}), "event.Attribute", "is required"),
        (
            json!({"uuid": "a", "Object": []}),
            "event.Attribute",
            "is required",
        ),
        (
            json!({"uuid": "a", "Attribute": {}}),
            "event.Attribute",
            "must be an array",
        ),
        (
            json!({"uuid": "a", "Attribute": [], "Object": "x"}),
            "event.Object",
            "must be an array",
        ),
    ] {
        let given = given.as_object().unwrap();
        assert_eq!(
            plan(given, DEFAULTS),
            Err((field.to_owned(), rule.to_owned())),
            "{given:?}"
        );
    }
}

#[test]
fn what_can_not_be_taken_is_counted_with_its_reason() {
    let plan = planned(json!({
        "Attribute": [
            7, {"type": "text", "value": "x", "deleted": "1"}, {"type": "text", "value": "x", "deleted": true},
            {"type": "text"}, {"type": "text", "value": null}, {"type": "text", "value": " \n"},
            {"type": "text", "value": 443}, {"type": "text", "value": "a\u{0}b"}, {"value": "no type"},
            {"type": "text", "value": "x".repeat((1 << 20) + 1)},
        ],
        "Object": [
            {"deleted": true, "Attribute": [{"type": "text", "value": "x"}, {"type": "text", "value": "y"}]},
            [],
            {"uuid": "o", "Attribute": null, "ObjectReference": [{"referenced_uuid": "p"}]},
        ],
    }));
    assert_eq!(names(&plan), ["ab", "no type"]);
    assert_eq!(
        reasons(&plan),
        json!({"attribute is not an object": 1, "attribute is deleted": 2, "value is empty": 3,
               "value is not a string": 1, "value is longer than 1 MiB": 1, "object is deleted": 2,
               "object is not an object": 1, "object reference from an object without nodes": 1})
    );
}

#[test]
fn an_event_without_usable_attributes_is_its_evidence() {
    let plan =
        planned(json!({"info": "Empty", "Orgc": {"name": "CERT"}, "Attribute": [], "date": "2020-01-01"}));
    assert!(plan.drafts.nodes.is_empty() && plan.skipped.is_empty());
    let [evidence] = plan.drafts.evidence.as_slice() else {
        panic!()
    };
    assert_eq!(
        (evidence.title.as_str(), evidence.source.as_str()),
        ("Empty", "CERT")
    );
    assert_eq!(evidence.ext_id.as_deref(), Some(UUID));
    assert_eq!(
        Value::Object(evidence.raw.map()),
        json!({"uuid": UUID, "info": "Empty", "Orgc": {"name": "CERT"}, "date": "2020-01-01",
               "attributes_received": 0, "objects_received": 0})
    );
}

#[test]
fn the_bytes_of_a_sample_are_not_kept() {
    let sample = json!({"type": "malware-sample", "value": "x.exe|d41d8cd98f00b204e9800998ecf8427e",
        "data": "UEsDBA==", "ShadowAttribute": [{"value": "y"}], "Galaxy": []});
    let plan = planned(json!({"Attribute": [sample]}));
    assert_eq!(plan.drafts.nodes.len(), 2);
    assert!(!format!("{plan:?}").contains("UEsDBA"));
}

#[test]
fn object_references_become_edges_between_what_says_most() {
    let file = json!({"uuid": "F", "name": "file", "Attribute": [
            {"uuid": "1", "type": "filename", "value": "x.exe"},
            {"uuid": "2", "type": "md5", "value": "d41d8cd98f00b204e9800998ecf8427e", "distribution": "0"}],
        "ObjectReference": [
            {"uuid": "r1", "referenced_uuid": "u", "relationship_type": "downloaded-from", "comment": "at night"},
            {"uuid": "r2", "referenced_uuid": "3", "relationship_type": "Talks To"},
            {"uuid": "r3", "referenced_uuid": "elsewhere", "relationship_type": "uses"},
            {"uuid": "r4", "referenced_uuid": "1", "relationship_type": "has"},
            {"uuid": "r5", "referenced_uuid": "f", "relationship_type": "same"},
            {"uuid": "r6", "referenced_uuid": "u", "relationship_type": "gone", "deleted": "1"}]});
    let plan = planned(json!({
        "Object": [file, {"uuid": "U", "name": "url", "Attribute": [
            {"uuid": "4", "type": "text", "value": "http"}, {"uuid": "5", "type": "url", "value": "http://evil.example/"}]}],
        "Attribute": [{"uuid": "3", "type": "ip-dst", "value": "198.51.100.3"}],
    }));
    let md5 = "d41d8cd98f00b204e9800998ecf8427e";
    assert_eq!(
        edges(&plan),
        [
            (md5, "downloaded-from", "http://evil.example/"),
            (md5, "related-to", "198.51.100.3"),
            (md5, "has", "x.exe"),
        ]
    );
    assert_eq!(
        plan.drafts.edges[0].proof,
        "MISP object reference r1 of file F: at night"
    );
    // The digest is RED, and so is every edge from it.
    assert!(
        plan.drafts
            .edges
            .iter()
            .all(|edge| edge.tlp == Tlp::Red && edge.evidence == 0)
    );
    assert_eq!(
        reasons(&plan),
        json!({"object reference leads outside the event": 1, "object reference leads to its own node": 1})
    );
}

#[test]
fn many_thousand_attributes_are_planned_quickly() {
    let count = extent(5_000, 20_000_u32);
    let attributes: Vec<Value> = (0..count)
        .map(|i| {
            let (kind, value) = match i % 4 {
                0 => (
                    "ip-dst|port",
                    format!("10.{}.{}.{}|443", i >> 16, (i >> 8) & 255, i & 255),
                ),
                1 => ("domain", format!("host{i}.evil.example")),
                2 => ("filename|sha256", format!("x{i}.exe|{:064x}", i)),
                _ => ("url", format!("http://host{i}.evil.example/gate.php?id={i}")),
            };
            json!({"uuid": format!("u{i}"), "type": kind, "value": value, "category": "Network activity",
                   "to_ids": true, "distribution": "5", "comment": "", "timestamp": "1564410755",
                   "deleted": false, "Galaxy": [], "ShadowAttribute": [], "Tag": [{"name": "x"}]})
        })
        .collect();
    let event = event(json!({"distribution": "0", "info": "Big", "Attribute": attributes}));
    let started = std::time::Instant::now();
    let plan = plan(&event, DEFAULTS).unwrap();
    let took = started.elapsed();
    println!("{count} attributes in {took:?}");
    assert_eq!(plan.drafts.nodes.len(), (count + count / 4) as usize);
    assert!(plan.drafts.nodes.iter().all(|node| node.tlp == Tlp::Red));
    // Generous enough for unoptimised builds on busy machines.
    assert!(took.as_secs() < 60, "{took:?}");
}

#[test]
fn an_event_report_speaks_for_the_values_that_it_names() {
    let report = |content: &str, deleted: bool, distribution: &str| json!({"uuid": UUID, "name": "Analysis", "content": content, "deleted": deleted, "distribution": distribution});
    let event = json!({
        "uuid": UUID, "distribution": "3",
        "Attribute": [
            {"uuid": UUID, "type": "domain", "category": "Network activity", "value": "gate.heron-case.com"},
            {"uuid": UUID, "type": "domain", "category": "Network activity", "value": "other.heron-case.com"},
        ],
        "EventReport": [
            report("# Head\nThe loader beacons to gate.heron-case.com every half hour.\n\nA second part with a marbled jitter.", false, "5"),
            report("Only for ourselves: the victim was told.", false, "0"),
            report("This was taken back by its author.", true, "5"),
        ],
    });
    let plan = planned(event);
    let about = |words: &str| {
        let found = plan
            .drafts
            .passages
            .iter()
            .filter(|passage| passage.text.contains(words));
        found
            .map(|passage| (passage.about[0], passage.tlp))
            .collect::<Vec<_>>()
    };
    let event_tlp = plan.drafts.nodes[0].tlp;
    assert_eq!(about("beacons to"), [(0, event_tlp)]);
    assert_eq!(about("marbled"), [(0, event_tlp), (1, event_tlp)]);
    assert!(about("for ourselves").iter().all(|(_, tlp)| *tlp == Tlp::Red));
    assert_eq!(about("taken back"), []);
}
