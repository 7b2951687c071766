//! Texts of relationships: a sentence finds what it is about by the examples of a technique.

use std::path::Path;

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::stix::{names, object, relationship, statement, version, with};

const EXAMPLE: &str =
    "Grey Lantern rewrote the ladder logic of the turbine controllers. (Citation: Report 2024)";
/// Shares no word with a name or description of a node.
const SENTENCE: &str = "Intruders silently rewrote ladder logic so that the turbine spun faster";

/// A group, techniques that do not describe themselves, and an example of one of them, which comes last.
fn objects() -> Vec<Value> {
    let mut objects = vec![object("intrusion-set", "Grey Lantern")];
    objects.extend((0..30).map(|n| object("attack-pattern", &format!("Method {n}"))));
    let example = relationship(&objects[0], "uses", &objects[18]);
    objects.push(with(example, json!({"description": EXAMPLE})));
    objects
}

async fn first(client: &Client) -> String {
    let answer = client.search(SENTENCE).await;
    names(&answer)
        .first()
        .map(|name| (*name).to_owned())
        .unwrap_or_default()
}

#[test]
fn a_sentence_finds_a_technique_by_its_example_until_that_is_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    run(async move {
        let objects = objects();
        let (example, nodes) = objects.split_last().unwrap();
        let app = TestApp::durable(&path).await;
        app.admin.ingest(json!(nodes)).await;
        assert_ne!(first(&app.admin).await, "Method 17");
        // The relationship comes without its ends.
        app.admin.ingest(json!([example])).await;
        assert_eq!(first(&app.admin).await, "Method 17");
        app.stop().await;

        let app = restarted_without_index(&path).await;
        assert_eq!(first(&app.admin).await, "Method 17");
        app.admin
            .ingest(json!([version(example, 2030, json!({"revoked": true}))]))
            .await;
        assert_ne!(first(&app.admin).await, "Method 17");
        app.stop().await;
        let app = restarted_without_index(&path).await;
        assert_ne!(first(&app.admin).await, "Method 17");
        app.stop().await;
    });
}

async fn restarted_without_index(dir: &Path) -> TestApp {
    std::fs::remove_dir_all(dir.join("index")).unwrap();
    TestApp::durable(dir).await
}

#[test]
fn an_example_above_the_clearance_says_nothing() {
    run(async {
        let app = TestApp::shared().await;
        app.admin
            .settings(json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true}))
            .await;
        let mut objects = objects();
        let example = objects.pop().unwrap();
        app.admin.ingest(json!(objects)).await;
        let silent = app.admin.search(SENTENCE).await["results"].clone();
        app.admin
            .ingest(json!([with(example, json!({"labels": ["TLP:RED"]}))]))
            .await;
        assert_eq!(first(&app.admin).await, "Method 17");
        app.admin.settings(json!({"tlp_ceiling": "TLP:AMBER"})).await;
        assert_eq!(app.admin.search(SENTENCE).await["results"], silent);

        // An end that is hidden hides what is said about both.
        app.admin.settings(json!({"tlp_ceiling": "TLP:RED"})).await;
        let red = object("malware", "Quiet Engine");
        let red = with(red, json!({"labels": ["TLP:RED"]}));
        let open = with(
            relationship(&red, "uses", &objects[5]),
            json!({"description": EXAMPLE}),
        );
        app.admin.ingest(json!([red, open])).await;
        app.admin.settings(json!({"tlp_ceiling": "TLP:AMBER"})).await;
        assert_eq!(app.admin.search(SENTENCE).await["results"], silent);
        app.stop().await;
    });
}

#[test]
fn an_example_is_silent_once_its_marking_turns_out_to_be_above_the_clearance() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.settings(json!({"tlp_ceiling": "TLP:AMBER"})).await;
        let mut objects = objects();
        let definition = with(
            statement("x"),
            json!({"definition_type": "tlp", "definition": {"tlp": "red"}}),
        );
        let example = objects.pop().unwrap();
        app.admin.ingest(json!(objects)).await;
        let silent = app.admin.search(SENTENCE).await["results"].clone();
        let waiting = with(example, json!({"object_marking_refs": [definition["id"]]}));
        app.admin.ingest(json!([waiting])).await;
        assert_eq!(first(&app.admin).await, "Method 17");
        app.admin.ingest(json!([definition])).await;
        assert_eq!(app.admin.search(SENTENCE).await["results"], silent);
        app.stop().await;
    });
}

/// Texts of every kind that are about a node, each with its marking, in the order in which they are sent.
async fn sent_texts(client: &Client, level: &str) {
    let title = "Notes on Grey Lantern";
    let block = json!({"entity_name": "Grey Lantern", "node_type": "actor", "tlp": level,
        "excerpt": "Crews silently rewrote ladder logic at the dam."});
    let report = json!({"title": title, "source_name": "Lab", "content_blocks": [block]});
    client.send_in("report", &report).await;
    let node = json!({"name": "Grey Lantern", "node_type": "actor", "tlp": level,
        "description": "Seen to have rewritten ladder logic of spinning turbines."});
    client.send_in("analyst", &json!({"nodes": [node]})).await;
}

#[test]
fn excerpts_and_notes_speak_for_their_node_to_those_who_may_see_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    run(async move {
        let app = TestApp::durable(&path).await;
        app.admin
            .settings(json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true}))
            .await;
        let mut objects = objects();
        objects.pop();
        objects[0] = with(objects[0].clone(), json!({"description": "An actor."}));
        app.admin.ingest(json!(objects)).await;
        let silent = app.admin.search(SENTENCE).await["results"].clone();
        sent_texts(&app.admin, "TLP:RED").await;
        assert_eq!(first(&app.admin).await, "Grey Lantern");
        app.admin.settings(json!({"tlp_ceiling": "TLP:AMBER"})).await;
        assert_eq!(app.admin.search(SENTENCE).await["results"], silent);

        sent_texts(&app.admin, "TLP:GREEN").await;
        let texts = |why: &Value| -> Vec<String> {
            let passages = why["passages"].as_array().unwrap().iter();
            passages
                .map(|passage| passage["text"].as_str().unwrap().to_owned())
                .collect()
        };
        let told = app.admin.search_with(SENTENCE, &[("explain", "true")]).await;
        assert_eq!(told["results"][0]["name"], "Grey Lantern");
        let texts = texts(&told["results"][0]["why"]);
        assert_eq!(texts.len(), 2, "{told}");
        assert!(texts.iter().all(|text| text.contains("ladder logic")));
        app.stop().await;

        let app = restarted_without_index(&path).await;
        assert_eq!(first(&app.admin).await, "Grey Lantern");
        app.stop().await;
    });
}

/// An event whose file is referred to with a comment that somebody wrote, or without one.
fn misp_event(comment: &str) -> Value {
    let hash = "5d0e".repeat(16);
    let common = json!({"distribution": "5", "timestamp": "1714560000", "to_ids": true});
    let attribute = |uuid: &str, kind: &str, value: &str| {
        let own = json!({"uuid": uuid, "type": kind, "category": "Network activity", "value": value});
        with(common.clone(), own)
    };
    let (file, address) = (
        "5f0f2b7e-1111-4222-8333-444455550010",
        "5f0f2b7e-1111-4222-8333-444455550001",
    );
    json!({"Event": {"uuid": "5f0f2b7e-1111-4222-8333-444455556666", "info": "A wave of mail", "distribution": "1",
        "timestamp": "1714560000", "Attribute": [attribute(address, "ip-dst", "203.0.113.77")],
        "Object": [{"uuid": file, "name": "file", "distribution": "5",
            "Attribute": [attribute("5f0f2b7e-1111-4222-8333-444455550011", "sha256", &hash)],
            "ObjectReference": [{"uuid": "5f0f2b7e-1111-4222-8333-444455550020", "object_uuid": file,
                "referenced_uuid": address, "relationship_type": "communicates-with", "comment": comment}]}]}})
}

#[test]
fn where_misp_states_a_relationship_is_quoted_by_no_result() {
    run(async {
        let app = TestApp::shared().await;
        for (name, comment, quoted) in [
            ("Silent", "", json!([])),
            (
                "Telling",
                "called home every night at three",
                json!(["called home every night at three"]),
            ),
        ] {
            let client = app.workspace(name).await;
            let body = json!({"event": misp_event(comment)});
            client.post("/api/ingest/misp", &body).await.expect(201).await;
            let answer = client
                .get("/api/recall/search?q=called+home+every+night+at+three&explain=true")
                .await
                .expect(200)
                .await;
            let passages = answer["results"][0]["why"]["passages"].as_array();
            let texts: Vec<&Value> = passages
                .into_iter()
                .flatten()
                .map(|passage| &passage["text"])
                .collect();
            assert_eq!(json!(texts), quoted, "{comment}");
        }
        app.stop().await;
    });
}
