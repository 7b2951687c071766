//! Texts are read with the names that the caller's workspace knows, and with no others.

use serde_json::{Value, json};

use super::staging::entity;
use crate::helpers::{Client, TestApp, run};
use crate::stix::{object, text, with};

/// What is stored, and a sentence about each name and alias, with the type of its node.
const SENTENCES: [(&str, &str, &str); 11] = [
    (
        "Carbvane was seen on two hosts of the refinery.",
        "Carbvane",
        "tool",
    ),
    ("We found VANECARB in the memory image.", "Carbvane", "tool"),
    ("They blame Quillmoor Spider's crew.", "Quillmoor Spider", "actor"),
    ("Traffic matches UNQ 77 activity.", "Quillmoor Spider", "actor"),
    ("За атакой стоит Лазурный Паук.", "Quillmoor Spider", "actor"),
    (
        "Das war Teil von Operation Tinbark.",
        "Operation Tinbark",
        "actor",
    ),
    ("They ran Ropewalk to move laterally.", "Ropewalk", "tool"),
    (
        "The exploit for Brackenbleed was used.",
        "Brackenbleed",
        "vulnerability",
    ),
    ("Mossgate beacons every hour.", "Mossgate", "tool"),
    ("A host ran gatemoss at noon.", "Mossgate", "tool"),
    ("They used Sap Drain on the pump.", "Sap Drain", "attck"),
];

fn objects(level: &str) -> Value {
    let marked = |object: Value, more: Value| with(with(object, json!({"x_mitre_tlp": level})), more);
    json!([
        marked(
            object("malware", "Carbvane"),
            json!({"aliases": ["Vanecarb"], "is_family": true})
        ),
        marked(
            object("intrusion-set", "Quillmoor Spider"),
            json!({"aliases": ["UNQ-77", "Лазурный Паук"]})
        ),
        marked(object("campaign", "Operation Tinbark"), json!({})),
        marked(object("tool", "Ropewalk"), json!({})),
        marked(object("vulnerability", "Brackenbleed"), json!({})),
        marked(
            object("attack-pattern", "Sap Drain"),
            json!({
                "external_references": [{"source_name": "mitre-attack", "external_id": "T9917"}]
            })
        ),
    ])
}

fn analyst(level: &str) -> Value {
    json!({"nodes": [{"name": "Mossgate", "node_type": "tool", "tlp": level, "properties": {"aliases": ["GateMoss"]}}]})
}

async fn preview(client: &Client, text: &str) -> Value {
    client
        .preview(&json!({"text": text, "default_tlp": "TLP:GREEN"}))
        .await
}

#[test]
fn stored_names_are_found_in_later_texts_and_merged() {
    run(async {
        let app = TestApp::shared().await;
        let client = app.workspace("names").await;
        client.ingest(objects("TLP:GREEN")).await;
        client.send_in("analyst", &analyst("TLP:GREEN")).await;
        for (sentence, name, node_type) in SENTENCES {
            let found = preview(&client, sentence).await;
            let entity = entity(&found, name);
            assert_eq!(text(entity, "node_type"), node_type, "{sentence}");
            assert_eq!(entity["duplicate_candidates"][0]["name"], name, "{sentence}");
            let auto = json!({"text": sentence, "ingest_mode": "auto", "default_tlp": "TLP:GREEN"});
            let committed = client.preview(&auto).await;
            let results = client.commit(&committed["batch_id"]).await;
            assert_eq!(results["nodes_created"], 0, "{sentence}: {results}");
        }
        let both = preview(&client, "Technique T9917 was used (Sap Drain).").await;
        assert_eq!(both["entities"].as_array().unwrap().len(), 1, "{both}");
        app.stop().await;
    });
}

/// A preview without what differs between two of the same text.
fn comparable(mut preview: Value) -> String {
    preview.as_object_mut().unwrap().remove("batch_id");
    for entity in preview["entities"].as_array_mut().unwrap() {
        let entity = entity.as_object_mut().unwrap();
        entity.retain(|key, _| key != "id" && key != "batch_id");
    }
    preview.to_string()
}

#[test]
fn names_that_the_caller_may_not_see_change_no_byte_of_the_answer() {
    run(async {
        let app = TestApp::shared().await;
        let (hidden, other) = (app.workspace("hidden").await, app.workspace("other").await);
        hidden.open().await;
        hidden.ingest(objects("TLP:RED")).await;
        hidden.send_in("analyst", &analyst("TLP:RED")).await;
        let lowered = json!({"tlp_ceiling": "TLP:GREEN", "elevated_clearance": false});
        hidden.settings(lowered.clone()).await;
        other.settings(lowered).await;
        let all: Vec<&str> = SENTENCES.iter().map(|(sentence, ..)| *sentence).collect();
        for sentence in all.iter().copied().chain([all.join(" ").as_str()]) {
            let (one, two) = (preview(&hidden, sentence).await, preview(&other, sentence).await);
            assert_eq!(comparable(one), comparable(two), "{sentence}");
        }
        app.stop().await;
    });
}

#[test]
fn a_name_of_several_nodes_waits_for_a_reviewer() {
    run(async {
        let app = TestApp::shared().await;
        let client = app.workspace("disputes").await;
        let family = |name: &str| {
            with(
                object("malware", name),
                json!({"aliases": ["ChronosVole"], "is_family": true}),
            )
        };
        client
            .ingest(json!([family("ChargenVole"), family("RushVole")]))
            .await;
        let text = "We saw CHRONOSVOLE on the mail server of the dam.";
        let found = client
            .preview(&json!({"text": text, "default_tlp": "TLP:GREEN", "ingest_mode": "auto"}))
            .await;
        let entity = entity(&found, "ChronosVole");
        assert_eq!(entity["status"], "pending");
        let candidates = entity["duplicate_candidates"].as_array().unwrap();
        let mut names: Vec<&str> = candidates
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["ChargenVole", "RushVole"]);
        app.stop().await;
    });
}
