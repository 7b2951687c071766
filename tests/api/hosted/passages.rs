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
        let app = TestApp::spawn().await;
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
        let app = TestApp::spawn().await;
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
