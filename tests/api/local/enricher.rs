//! What a language model adds to notes, and what it must leave unchanged.

use serde_json::{Value, json};

use crate::helpers::run;
use crate::local::LocalApp;
use crate::local::model::{serve, wait_for};

/// The whole graph, without the metrics.
async fn graph(app: &LocalApp) -> [Value; 3] {
    let mut found = [Value::Null, Value::Null, Value::Null];
    let paths = ["/api/graph/nodes", "/api/graph/edges", "/api/entities?limit=500"];
    for (slot, path) in found.iter_mut().zip(paths) {
        *slot = app.client.get(path).await.expect(200).await;
    }
    found
}

#[test]
fn a_model_that_finds_nothing_changes_nothing_in_the_graph() {
    run(async {
        let (model, config) = serve();
        model.down.store(true, std::sync::atomic::Ordering::SeqCst);
        let app = LocalApp::with(None, &config).await;
        let text = "Emotet uses Mimikatz. TA0001, CAPEC-66 and CWE-79 were seen with G0007 at 10.1.2.3.";
        let told = app.client.remember(text).await;
        assert_eq!(told["entities"][0], "emotet");
        let before = graph(&app).await;
        assert_eq!(before[2]["total"], told["entities"].as_array().unwrap().len());
        model.down.store(false, std::sync::atomic::Ordering::SeqCst);
        wait_for(&app, |health| health["enrichment_queue_depth"] == 0).await;
        assert_eq!(graph(&app).await, before);
        let stats = app.client.get("/api/stats").await.expect(200).await;
        let one = json!({"unique_entities": 1, "total_mappings": 1});
        for kind in ["malware", "tool", "tactic", "capec", "cwe"] {
            assert_eq!(stats["entity_index"][kind], one, "{kind}");
        }
        app.stop().await;
    });
}

#[test]
fn the_longest_time_for_a_note_holds_for_reading_it_too() {
    run(async {
        let (_model, config) = serve();
        let config = format!("{config}\nenrichment.timeout_ms = 300");
        let app = LocalApp::with(None, &config).await;
        // The model takes half a minute per request, and is asked only for the entities of the notes.
        for text in [
            "An endless story of Turla.",
            "Another endless story, this one about APT28.",
        ] {
            app.client.remember(text).await;
        }
        let health = wait_for(&app, |health| health["queue_status"] == "backing_off").await;
        assert_eq!(health["enrichment_queue_depth"], 2, "neither is lost");
        app.stop().await;
    });
}

#[test]
fn the_queue_says_that_the_worker_works_and_then_that_it_waits() {
    run(async {
        let (_model, config) = serve();
        let app = LocalApp::with(None, &config).await;
        let health = app.client.get("/api/health").await.expect(200).await;
        assert_eq!(health["queue_status"], "idle");
        app.client.remember("An endless story of Turla.").await;
        wait_for(&app, |health| health["queue_status"] == "processing").await;
        app.stop().await;
    });
}
