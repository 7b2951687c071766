//! Rule-based extraction as clients of both services and of the library see it.

use std::time::Duration;

use serde_json::{Map, json};
use threat_memory::MemoryManager;

use crate::helpers::{TestApp, run};
use crate::local::LocalApp;

/// A text on which the rules once never terminated.
const ENDLESS: &str = "OilRig has named it \\ProgramData\\Adobe.exe. An APT3 downloader uses it.";
/// Far longer than the extraction takes.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_file_name_at_the_end_of_a_sentence_is_remembered_and_previewed() {
    run(async {
        let local = LocalApp::spawn().await;
        let told = tokio::time::timeout(PATIENCE, local.client.remember(ENDLESS)).await;
        let told = told.expect("remember never comes back");
        assert_eq!(told["status"], "created");
        local.stop().await;

        let hosted = TestApp::spawn().await;
        let body = json!({"text": ENDLESS});
        let preview = tokio::time::timeout(PATIENCE, hosted.admin.preview(&body)).await;
        let preview = preview.expect("a preview never comes back");
        let names: Vec<&str> = preview["entities"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|entity| entity["name"].as_str())
            .collect();
        assert_eq!(names, ["OilRig", "\\ProgramData\\Adobe.exe", "APT3"]);
        let figures = hosted.anonymous().metrics().await;
        let overdue = figures
            .lines()
            .find(|line| line.starts_with("blocking_tasks_overdue"));
        assert_eq!(overdue, Some("blocking_tasks_overdue 0"), "{figures}");
        hosted.stop().await;
    });
}

#[test]
fn the_context_of_a_result_is_the_first_sentence() {
    run(async {
        let app = LocalApp::spawn().await;
        let long = format!("Turla {} returned. Later more.", "and its operators ".repeat(12));
        for (content, context) in [
            (
                "Fancy Bear is another name for APT28; Pawn Storm too. More follows.".to_owned(),
                "Fancy Bear is another name for APT28; Pawn Storm too".to_owned(),
            ),
            (
                long.clone(),
                format!("{}...", long.chars().take(150).collect::<String>().trim_end()),
            ),
        ] {
            app.client.remember(&content).await;
            let found = app
                .client
                .post("/api/recall", &json!({"query": content, "k": 1}))
                .await
                .expect(200)
                .await;
            assert_eq!(found["results"][0]["context"], context);
        }
        app.stop().await;
    });
}

#[test]
fn the_library_keeps_labels_as_written_and_one_actor_under_all_its_types() {
    run(async {
        let memory = MemoryManager::in_memory().await.unwrap();
        for (actor_type, actor, label) in [
            ("threat_actor", "Fancy Bear", "USES_TOOL"),
            ("intrusion_set", "APT 28", "uses-tool"),
            ("actor", "apt28", "USES_TOOL"),
        ] {
            memory
                .ingest_relationship(actor_type, actor, "tool", "Cobalt Strike", label, Map::new())
                .await
                .unwrap();
        }
        for actor_type in ["actor", "threat_actor", "intrusion_set"] {
            let related = memory
                .get_entity_relationships(actor_type, "APT28")
                .await
                .unwrap();
            let mut labels: Vec<&str> = related.iter().map(|found| found.relationship.as_str()).collect();
            labels.sort_unstable();
            assert_eq!(labels, ["USES_TOOL", "uses-tool"], "{actor_type}");
        }
        let tool = memory
            .get_entity_relationships("tool", "cobalt strike")
            .await
            .unwrap();
        assert!(tool.iter().all(|found| found.node.entity_value == "apt28"));
        memory.close().await;
    });
}
