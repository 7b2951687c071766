//! Texts that are copied to many rows are limited: a request with a longer one is refused as a whole, and the error
//! names the field.

use serde_json::{Value, json};

use crate::helpers::{TestApp, run};
use crate::hosted::ways_in::counts;
use crate::stix::{self, evidence};

/// A text of this many two-byte characters.
fn long(count: usize) -> String {
    "ü".repeat(count)
}

fn event(changes: Value) -> Value {
    let mut event = json!({"uuid": "u", "Attribute": [{"type": "domain", "value": "znever.example"}]});
    for (key, value) in changes.as_object().unwrap() {
        event[key] = value.clone();
    }
    json!({"event": event})
}

/// A body with texts at their length limit in every field that is copied to each row.
fn at_the_limit(way: &str) -> Value {
    let (name, tag) = (long(500), long(200));
    let tags: Vec<Value> = (0..100).map(|n| json!(format!("{n:03}{}", long(197)))).collect();
    let named: Vec<Value> = tags.iter().map(|tag| json!({"name": tag})).collect();
    match way {
        "osint" => json!({"collector": name, "items": [{"title": "zlimit", "tags": tags}]}),
        "report" => json!({"title": name, "source_name": name,
            "content_blocks": [{"entity_name": "zlimit", "node_type": "tool"}]}),
        "misp" => event(
            json!({"uuid": name, "info": name, "Orgc": {"name": name}, "Tag": named,
            "Galaxy": [{"type": "sector", "GalaxyCluster": [{"value": "x", "tag_name": tag}]}],
            "Object": [{"uuid": name, "name": name, "Tag": named, "Attribute": [
                {"type": "domain", "value": "inside.example", "Tag": named}]}]}),
        ),
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_copied_to_every_row_is_taken_up_to_its_limit() {
    run(async {
        let app = TestApp::shared().await;
        for (way, nodes) in [("osint", 1), ("report", 1), ("misp", 2)] {
            let results = app.admin.send_in(way, &at_the_limit(way)).await;
            assert_eq!(counts(&results), [nodes, 0, 1], "{way}");
        }
        app.stop().await;
    });
}

#[test]
fn what_is_copied_to_every_row_is_refused_above_its_limit_with_its_name() {
    run(async {
        let app = TestApp::shared().await;
        let (name, tag) = (long(501), long(201));
        let many: Vec<String> = (0..101).map(|n| format!("t{n}")).collect();
        let item = |tags: Value| json!({"collector": "c", "items": [{"title": "znever"}, {"title": "znever", "tags": tags}]});
        let blocks = json!([{"entity_name": "znever", "node_type": "tool"}]);
        let object = |changes: Value| {
            let mut object = json!({"Attribute": [{"type": "domain", "value": "znever.example"}]});
            for (key, value) in changes.as_object().unwrap() {
                object[key] = value.clone();
            }
            event(json!({"Object": [{"name": "x"}, object]}))
        };
        let galaxy =
            |clusters: Value| event(json!({"Galaxy": [{"type": "sector", "GalaxyCluster": clusters}]}));
        let clusters: Vec<Value> = many.iter().map(|tag| json!({"value": tag})).collect();
        let (characters, entries) = (
            "must have from 1 to 500 characters",
            "must hold at most 100 entries",
        );
        for (way, body, want) in [
            (
                "osint",
                json!({"collector": name, "items": [{"title": "znever"}]}),
                format!("collector: {characters}"),
            ),
            ("osint", item(json!(many)), format!("items[1].tags: {entries}")),
            (
                "osint",
                item(json!(["a", tag])),
                "items[1].tags[1]: must have from 1 to 200 characters".into(),
            ),
            (
                "report",
                json!({"title": name, "content_blocks": blocks}),
                format!("title: {characters}"),
            ),
            (
                "report",
                json!({"title": "x", "source_name": name, "content_blocks": blocks}),
                format!("source_name: {characters}"),
            ),
            (
                "misp",
                event(json!({"uuid": name})),
                "event.uuid: must have at most 500 characters".into(),
            ),
            (
                "misp",
                event(json!({"Orgc": {"name": name}})),
                "event.Orgc.name: must have at most 500 characters".into(),
            ),
            (
                "misp",
                event(json!({"Org": {"name": name}})),
                "event.Org.name: must have at most 500 characters".into(),
            ),
            (
                "misp",
                event(json!({"Tag": many})),
                format!("event.Tag: {entries}"),
            ),
            (
                "misp",
                event(json!({"Tag": [{"name": "a"}, {"name": tag}]})),
                "event.Tag[1].name: must have at most 200 characters".into(),
            ),
            (
                "misp",
                event(json!({"EventTag": [{"Tag": {"name": tag}}]})),
                "event.EventTag[0].name: must have at most 200 characters".into(),
            ),
            (
                "misp",
                event(json!({"Attribute": [{"Tag": [{"name": tag}]}]})),
                "event.Attribute[0].Tag[0].name: must have at most 200 characters".into(),
            ),
            (
                "misp",
                object(json!({"name": name})),
                "event.Object[1].name: must have at most 500 characters".into(),
            ),
            (
                "misp",
                object(json!({"uuid": name})),
                "event.Object[1].uuid: must have at most 500 characters".into(),
            ),
            (
                "misp",
                object(json!({"Tag": many})),
                format!("event.Object[1].Tag: {entries}"),
            ),
            (
                "misp",
                object(json!({"Attribute": [{"Tag": [tag]}]})),
                "event.Object[1].Attribute[0].Tag[0].name: must have at most 200 characters".into(),
            ),
            (
                "misp",
                galaxy(json!(clusters)),
                format!("event.Galaxy: {entries}"),
            ),
            (
                "misp",
                galaxy(json!([{"value": "x", "tag_name": tag}])),
                "event.Galaxy: each tag must have at most 200 characters".into(),
            ),
            (
                "misp",
                event(json!({"Galaxy": vec![json!({}); 101]})),
                format!("event.Galaxy: {entries}"),
            ),
        ] {
            let error = app.admin.refuses(way, &body).await;
            assert_eq!(error, want, "{way}");
        }
        assert!(app.admin.nodes_of("znever").await.is_empty());
        app.stop().await;
    });
}

#[test]
fn a_long_title_of_an_event_stands_in_its_evidence_only() {
    run(async {
        let app = TestApp::shared().await;
        let results = app
            .admin
            .send_in("misp", &event(json!({"info": long(5000)})))
            .await;
        assert_eq!(counts(&results), [1, 0, 1]);
        let node = app.admin.one("znever.example").await;
        assert_eq!((&node["description"], evidence(&node)), (&json!(""), 1));
        app.stop().await;
    });
}

#[test]
fn an_identity_with_an_endless_name_is_skipped_and_names_no_source() {
    run(async {
        let app = TestApp::shared().await;
        let identity = |name: String| {
            json!({"type": "identity", "id": stix::id("identity"), "spec_version": "2.1",
                "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z", "name": name})
        };
        let (fit, unfit) = (identity(long(500)), identity(long(501)));
        let by = |name: &str, identity: &Value| {
            stix::with(
                stix::object("tool", name),
                json!({"created_by_ref": identity["id"]}),
            )
        };
        let objects = json!([by("Heron", &fit), by("Crane", &unfit), fit, unfit]);
        let results = app.admin.ingest(objects).await;
        assert_eq!(results["nodes_created"], 2, "{results}");
        assert_eq!(
            results["skipped_objects"],
            json!([{"id": unfit["id"], "reason": "name: longer than 500 characters"}])
        );
        assert_eq!(app.admin.one("Heron").await["source"], fit["name"]);
        assert_eq!(app.admin.one("Crane").await["source"], "stix");
        app.stop().await;
    });
}

#[test]
fn a_body_of_countless_tiny_objects_is_refused_before_it_is_read() {
    run(async {
        let app = TestApp::shared().await;
        let tiny = format!("[{}{{}}]", "{\"a\":0},".repeat(200_000));
        for (way, body) in [
            (
                "analyst",
                format!(
                    "{{\"nodes\":[{{\"name\":\"x\",\"node_type\":\"tool\",\"properties\":{{\"p\":{tiny}}}}}]}}"
                ),
            ),
            (
                "misp",
                format!("{{\"event\":{{\"uuid\":\"u\",\"Attribute\":[],\"x\":{tiny}}}}}"),
            ),
            ("stix", format!("{{\"bundle\":{tiny}}}")),
        ] {
            let answer = app.admin.post_bytes(&format!("/api/ingest/{way}"), body).await;
            let error = answer.refused(400).await;
            assert!(
                error.starts_with("body: holds too many small objects"),
                "{way}: {error}"
            );
        }
        app.stop().await;
    });
}
