//! The local service with a language model: answers with citations, and notes that are refined afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::{Value, json};
use test_support::{eventually, extent};

use crate::helpers::run;
use crate::local::LocalApp;

const MERGED: &str = "The command server of the BlueLoader malware is hosted at 203.0.113.7 in Prague and is reached \
                      through evil.example.";

/// Stub of the model, which can't run in a test.
#[derive(Default)]
pub struct Model {
    pub down: AtomicBool,
}

/// Answers each kind of request, identified by its schema name.
async fn chat(model: web::Data<Model>, body: web::Json<Value>) -> HttpResponse {
    if model.down.load(Ordering::SeqCst) {
        return HttpResponse::ServiceUnavailable().finish();
    }
    let said = body["messages"].to_string();
    if said.contains("refused") {
        return HttpResponse::BadRequest().finish();
    }
    if said.contains("endless") {
        std::future::pending::<()>().await;
    }
    let content = match body["response_format"]["json_schema"]["name"].as_str().unwrap() {
        "evolution" if said.contains("moved to") => {
            json!({"action": "supersede", "target": "N1", "merged": ""})
        }
        "evolution" if said.contains("reached through") => {
            json!({"action": "update", "target": "N1", "merged": MERGED})
        }
        "evolution" => json!({"action": "add", "target": "", "merged": ""}),
        "extraction" if said.contains("BlueLoader") => json!({
            "entities": [{
                "name": "BlueLoader", "node_type": "tool", "description": "", "confidence": 0.9,
                "quote": "the BlueLoader malware", "aliases": [], "reasoning": "",
            }],
            "relations": [],
        }),
        "extraction" => json!({"entities": [], "relations": []}),
        _ => json!({
            "answer": "Turla uses Snake.", "confidence": 0.9,
            "citations": [
                {"source": "S1", "quote": "Turla uses Snake"},
                {"source": "S9", "quote": "Turla uses Snake"},
                {"source": "S1", "quote": "words that stand nowhere"},
            ],
        }),
    };
    let message = json!({"role": "assistant", "content": content.to_string()});
    HttpResponse::Ok().json(json!({"choices": [{"message": message, "finish_reason": "stop"}]}))
}

pub fn serve() -> (Arc<Model>, String) {
    let model = Arc::new(Model::default());
    let data = web::Data::from(Arc::clone(&model));
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .route("/v1/chat/completions", web::post().to(chat))
    })
    .workers(1)
    .disable_signals()
    .bind("127.0.0.1:0")
    .unwrap();
    let address = server.addrs()[0];
    actix_web::rt::spawn(server.run());
    let config = format!(
        "llm.provider = \"openai\"\nllm.model = \"m\"\nllm.retries = 0\nllm.base_url = \"http://{address}/v1\""
    );
    (model, config)
}

pub async fn wait_for(app: &LocalApp, wanted: impl Fn(&Value) -> bool) -> Value {
    eventually(|| async {
        let health = app.client.get("/api/health").await.expect(200).await;
        if wanted(&health) { Ok(health) } else { Err(health) }
    })
    .await
}

#[test]
fn remember_never_waits_for_the_model_and_the_queue_survives_a_restart() {
    run(async {
        let (model, config) = serve();
        model.down.store(true, Ordering::SeqCst);
        let dir = tempfile::tempdir().unwrap();
        let app = LocalApp::with(Some(dir.path()), &config).await;
        for number in 0..3 {
            app.client
                .remember(&format!("Note {number} about the loader of FIN7."))
                .await;
        }
        let health = wait_for(&app, |health| health["queue_status"] == "backing_off").await;
        assert_eq!(health["enrichment_queue_depth"], 3);
        assert_eq!(
            (&health["llm_provider"], &health["llm_model"]),
            (&json!("openai"), &json!("m"))
        );
        app.stop().await;
        model.down.store(false, Ordering::SeqCst);
        let app = LocalApp::with(Some(dir.path()), &config).await;
        wait_for(&app, |health| {
            health["enrichment_queue_depth"] == 0 && health["queue_status"] == "idle"
        })
        .await;
        app.stop().await;
    });
}

#[test]
fn a_model_that_is_out_of_reach_costs_an_answer_and_nothing_else() {
    run(async {
        let (model, config) = serve();
        model.down.store(true, Ordering::SeqCst);
        let app = LocalApp::with(None, &config).await;
        app.client.remember("Turla uses Snake.").await;
        let answer = app
            .client
            .post("/api/synthesize", &json!({"query": "Who uses Snake?"}))
            .await
            .expect(200)
            .await;
        assert_eq!(answer["sources_count"], 1);
        assert_eq!(answer["synthesis"]["confidence"], 0.0);
        app.stop().await;
    });
}

#[test]
fn an_answer_rests_on_quotes_that_stand_in_the_notes() {
    run(async {
        let (_model, config) = serve();
        let app = LocalApp::with(None, &config).await;
        let told = app.client.remember("Turla uses Snake against ministries.").await;
        let body = json!({"query": "Who uses Snake?", "format": "direct_answer"});
        let answer = app.client.post("/api/synthesize", &body).await.expect(200).await;
        let synthesis = &answer["synthesis"];
        assert_eq!(synthesis["answer"], "Turla uses Snake.");
        assert_eq!(
            synthesis["sources"],
            json!([{"note_id": told["note_id"], "quote": "Turla uses Snake"}])
        );
        let confidence = synthesis["confidence"].as_f64().unwrap();
        assert!(
            (0.0..=0.9).contains(&confidence) && confidence > 0.0,
            "{confidence}"
        );
        app.stop().await;
    });
}

#[test]
fn a_decision_of_the_model_supersedes_a_note_which_stays_readable() {
    run(async {
        let (_model, config) = serve();
        let app = LocalApp::with(None, &config).await;
        let old = app
            .client
            .remember("The Snake command server of Turla is hosted at 203.0.113.7 in Prague.")
            .await;
        wait_for(&app, |health| health["enrichment_queue_depth"] == 0).await;
        let new = app
            .client
            .remember("The Snake command server of Turla has moved to 203.0.113.9 in Vienna.")
            .await;
        assert_eq!(new["status"], "created");
        wait_for(&app, |health| health["enrichment_queue_depth"] == 0).await;
        let path = format!("/api/notes/{}", old["note_id"].as_str().unwrap());
        let note = app.client.get(&path).await.expect(200).await;
        assert_eq!(note["superseded_by"], new["note_id"], "{note}");
        assert_eq!(
            app.client.recall("Snake command server").await,
            [new["note_id"].as_str().unwrap()]
        );
        app.stop().await;
    });
}

#[test]
fn notes_that_the_model_refuses_or_never_answers_hold_up_no_other() {
    run(async {
        let (_model, config) = serve();
        let config = format!("{config}\nllm.timeout_ms = 300");
        let app = LocalApp::with(None, &config).await;
        let refused = app.client.remember("A refused note about Sandworm.").await;
        let endless = &["An endless story of Turla.", "Another endless story of APT28."][..extent(1, 2)];
        for text in endless
            .iter()
            .chain(&["A note about FIN7.", "A note about Lazarus Group."])
        {
            app.client.remember(text).await;
        }
        let stuck = 1 + endless.len();
        wait_for(&app, |health| health["enrichment_queue_depth"] == stuck).await;
        // Later successes show that the fault lies in these notes, so they leave the queue with the rules'
        // results.
        for number in 0.. {
            let health = app.client.get("/api/health").await.expect(200).await;
            if health["enrichment_queue_depth"] == 0 {
                break;
            }
            assert!(number < 120, "{health}");
            app.client.remember(&format!("Good note {number}.")).await;
            // Faster than the model takes them, the queue would only grow.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let found = app.client.recall("Sandworm").await;
        assert_eq!(found[0], refused["note_id"].as_str().unwrap());
        app.stop().await;
    });
}

#[test]
fn a_merge_keeps_what_the_model_found_and_what_the_notes_are_flagged_with() {
    run(async {
        let (_model, config) = serve();
        let app = LocalApp::with(None, &format!("{config}\ngovernance.pii.enabled = true")).await;
        // Personal data may also be in a note's source, but the model only sees the text.
        let remember = async |text: &str, source: &str| {
            let body = json!({"content": text, "source_ref": source});
            app.client.post("/api/remember", &body).await.expect(200).await
        };
        let old = remember(
            "The command server of the BlueLoader malware is hosted at 203.0.113.7 in Prague.",
            "analyst@corp.example.org",
        )
        .await;
        wait_for(&app, |health| health["enrichment_queue_depth"] == 0).await;
        let new = remember(
            "The command server of the BlueLoader malware is reached through evil.example.",
            "phone number: 030 9018200",
        )
        .await;
        wait_for(&app, |health| health["enrichment_queue_depth"] == 0).await;
        let path = format!("/api/notes/{}", old["note_id"].as_str().unwrap());
        let note = app.client.get(&path).await.expect(200).await;
        assert_eq!(note["flags"], json!(["pii:email"]));
        let merged = note["superseded_by"].as_str().unwrap().to_owned();
        assert_ne!(merged, new["note_id"].as_str().unwrap());
        let note = app
            .client
            .get(&format!("/api/notes/{merged}"))
            .await
            .expect(200)
            .await;
        assert_eq!(note["content"], MERGED);
        assert_eq!(note["flags"], json!(["pii:phone", "pii:email"]));
        let sources = json!(["phone number: 030 9018200", "analyst@corp.example.org"]);
        assert_eq!(note["source_refs"], sources);
        let entities: Vec<&str> = note["entities"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entity| entity.as_str().unwrap())
            .collect();
        for value in ["203.0.113.7", "evil.example", "blueloader"] {
            assert!(entities.contains(&value), "{value}: {entities:?}");
        }
        app.stop().await;
    });
}
