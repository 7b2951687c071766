//! The local service with a language model: answers with citations, and notes that evolve afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::{Value, json};

use crate::helpers::run;
use crate::local::LocalApp;

/// Stands for a model: it is what can't run here.
#[derive(Default)]
struct Model {
    down: AtomicBool,
}

/// Answers each kind of question by the name of its schema.
async fn chat(model: web::Data<Model>, body: web::Json<Value>) -> HttpResponse {
    if model.down.load(Ordering::SeqCst) {
        return HttpResponse::ServiceUnavailable().finish();
    }
    let said = body["messages"].to_string();
    let content = match body["response_format"]["json_schema"]["name"].as_str().unwrap() {
        "evolution" => {
            let action = if said.contains("no longer") {
                "supersede"
            } else {
                "add"
            };
            let schema = &body["response_format"]["json_schema"]["schema"]["properties"];
            let mut answer =
                json!({"target": if action == "add" { "" } else { "N1" }, "merged": "", "reason": "r"});
            for key in ["action", "decision"] {
                if schema.get(key).is_some() {
                    answer[key] = json!(action);
                }
            }
            answer
        }
        "extraction" => json!({"entities": [], "relations": []}),
        _ => json!({"answer": "", "confidence": 0.0, "citations": [], "sources": []}),
    };
    let message = json!({"role": "assistant", "content": content.to_string()});
    HttpResponse::Ok().json(json!({"choices": [{"message": message, "finish_reason": "stop"}]}))
}

fn serve() -> (Arc<Model>, String) {
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

async fn wait_for(app: &LocalApp, wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..500 {
        let health = app.client.get("/api/health").await.expect(200).await;
        if wanted(&health) {
            return health;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{}", app.client.get("/api/health").await.expect(200).await);
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
