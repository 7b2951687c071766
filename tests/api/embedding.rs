//! An external embedding model: an OpenAI-compatible endpoint, played by a stub server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use secrecy::SecretString;
use serde_json::{Value, json};
use test_support::eventually;
use threat_memory::config::EmbeddingProvider;
use tokio::sync::watch;

use crate::helpers::{TestApp, run, settings};
use crate::process::started_once;

const DIMENSION: usize = 26;
/// What is searched while the endpoint hangs.
const QUESTION: &str = "zzz";

#[derive(Default)]
struct Stub {
    broken: AtomicBool,
    hanging: watch::Sender<bool>,
    requests: AtomicUsize,
    /// Requests for the vector of [`QUESTION`].
    questions: AtomicUsize,
}

/// Embeds a text as its letter counts, which is enough to tell texts apart.
async fn embeddings(stub: web::Data<Stub>, request: HttpRequest, body: web::Json<Value>) -> HttpResponse {
    stub.requests.fetch_add(1, Ordering::SeqCst);
    if body["input"] == json!([QUESTION]) {
        stub.questions.fetch_add(1, Ordering::SeqCst);
    }
    stub.hanging
        .subscribe()
        .wait_for(|hanging| !hanging)
        .await
        .unwrap();
    if stub.broken.load(Ordering::SeqCst) {
        return HttpResponse::InternalServerError().finish();
    }
    assert_eq!(
        request.headers().get("authorization").unwrap(),
        "Bearer secret-key"
    );
    assert_eq!(body["model"], "letters");
    let data: Vec<Value> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let mut counts = [0f32; DIMENSION];
            for byte in text
                .as_str()
                .unwrap()
                .to_lowercase()
                .bytes()
                .filter(u8::is_ascii_lowercase)
            {
                counts[usize::from(byte - b'a')] += 1.0;
            }
            json!({"index": index, "embedding": counts})
        })
        .collect();
    HttpResponse::Ok().json(json!({"data": data}))
}

fn serve(stub: Arc<Stub>) -> SocketAddr {
    let data = web::Data::from(stub);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .route("/v1/embeddings", web::post().to(embeddings))
    })
    .workers(1)
    .disable_signals()
    .bind("127.0.0.1:0")
    .unwrap();
    let address = server.addrs()[0];
    actix_web::rt::spawn(server.run());
    address
}

async fn app(dir: &std::path::Path, address: SocketAddr) -> TestApp {
    let mut settings = settings(&format!("surrealkv://{}", dir.display()));
    settings.embedding.provider = EmbeddingProvider::Openai;
    settings.embedding.base_url = format!("http://{address}/v1");
    settings.embedding.model = "letters".into();
    settings.embedding.dimension = DIMENSION;
    settings.embedding.fill_seconds = 1;
    settings.embedding_api_key = Some(SecretString::from("secret-key"));
    TestApp::with(settings).await
}

fn tool(name: &str) -> Value {
    json!({"type": "tool", "id": format!("tool--{}", uuid::Uuid::new_v4()), "name": name})
}

/// Names found by semantic search, once there are as many as expected.
async fn semantic(app: &TestApp, query: &str, expected: usize) -> Vec<String> {
    eventually(|| async {
        let answer = app.admin.get(&format!("/api/recall/semantic?q={query}")).await;
        let found: Value = answer.0.json().await.unwrap();
        let names = found["results"].as_array().map_or(Vec::new(), |rows| {
            rows.iter()
                .map(|row| row["name"].as_str().unwrap().to_owned())
                .collect()
        });
        if names.len() >= expected {
            Ok(names)
        } else {
            Err(names)
        }
    })
    .await
}

#[test]
fn a_failing_endpoint_costs_no_node_and_vectors_are_filled_in_when_it_is_back() {
    run(async {
        let stub = Arc::new(Stub::default());
        let address = serve(Arc::clone(&stub));
        let dir = tempfile::tempdir().unwrap();
        let app = app(dir.path(), address).await;
        app.admin.ingest(json!([tool("zzz zzz")])).await;
        assert_eq!(semantic(&app, "zzz", 1).await, ["zzz zzz"]);

        stub.broken.store(true, Ordering::SeqCst);
        let results = app.admin.ingest(json!([tool("qqq qqq")])).await;
        assert_eq!(results["nodes_created"], 1);
        // Keyword search finds it at once, without the model.
        assert_eq!(app.admin.search("qqq").await["results"][0]["name"], "qqq qqq");
        app.admin
            .get("/api/recall/semantic?q=qqq")
            .await
            .expect(503)
            .await;

        stub.broken.store(false, Ordering::SeqCst);
        assert_eq!(semantic(&app, "qqq", 2).await[0], "qqq qqq");
        app.stop().await;
    });
}

#[test]
fn a_hanging_endpoint_costs_one_search_a_moment_and_no_answer() {
    run(async {
        let stub = Arc::new(Stub::default());
        let address = serve(Arc::clone(&stub));
        let dir = started_once();
        let app = app(dir.path(), address).await;
        app.admin.ingest(json!([tool("zzz zzz")])).await;
        assert_eq!(semantic(&app, "zzz", 1).await, ["zzz zzz"]);
        stub.hanging.send_replace(true);
        let before = stub.questions.load(Ordering::SeqCst);
        let since = Instant::now();
        for _ in 0..10 {
            assert_eq!(app.admin.search(QUESTION).await["results"][0]["name"], "zzz zzz");
        }
        // One two-second wait; ten of them, or one full time-out, would take longer.
        assert!(since.elapsed() < Duration::from_secs(9), "{:?}", since.elapsed());
        assert_eq!(stub.questions.load(Ordering::SeqCst), before + 1);
        stub.hanging.send_replace(false);
        assert_eq!(semantic(&app, "zzz", 1).await, ["zzz zzz"]);
        app.stop().await;
    });
}

#[test]
fn a_change_of_model_embeds_again_in_the_background() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let built_in = TestApp::durable(dir.path()).await;
        built_in
            .admin
            .ingest(json!([tool("xxx xxx"), tool("kkk kkk")]))
            .await;
        built_in.stop().await;

        let stub = Arc::new(Stub::default());
        stub.broken.store(true, Ordering::SeqCst);
        let address = serve(Arc::clone(&stub));
        let app = app(dir.path(), address).await;
        assert_eq!(app.admin.search("kkk").await["results"][0]["name"], "kkk kkk");
        stub.broken.store(false, Ordering::SeqCst);
        assert_eq!(semantic(&app, "kkk", 2).await[0], "kkk kkk");
        assert!(stub.requests.load(Ordering::SeqCst) > 0);
        app.stop().await;
    });
}
