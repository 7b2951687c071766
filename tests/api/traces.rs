//! Traces over OTLP, to a receiver of the test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use test_support::until;

use crate::helpers::{ADMIN, PASSWORD, run};
use crate::process::{Service, hosted, started_once};

/// The traces of a caller whose spans go elsewhere.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
const QUESTION: &str = "Quiet Heron in March";

#[derive(Default)]
struct Receiver {
    bodies: Mutex<Vec<Vec<u8>>>,
    spans: Mutex<Vec<Span>>,
    /// `traceparent` of requests for vectors.
    parents: Mutex<Vec<String>>,
}

async fn receive(receiver: web::Data<Receiver>, body: web::Bytes) -> HttpResponse {
    let export = ExportTraceServiceRequest::decode(body.clone()).unwrap();
    let scopes = export
        .resource_spans
        .into_iter()
        .flat_map(|resource| resource.scope_spans);
    receiver
        .spans
        .lock()
        .unwrap()
        .extend(scopes.flat_map(|scope| scope.spans));
    receiver.bodies.lock().unwrap().push(body.to_vec());
    HttpResponse::Ok().finish()
}

async fn embed(receiver: web::Data<Receiver>, request: HttpRequest, body: web::Json<Value>) -> HttpResponse {
    let parent = request.headers().get("traceparent");
    let parent = parent.map(|parent| parent.to_str().unwrap().to_owned());
    receiver.parents.lock().unwrap().extend(parent);
    let count = body["input"].as_array().unwrap().len();
    let data: Vec<Value> = (0..count)
        .map(|at| json!({"index": at, "embedding": [1.0, 0.5]}))
        .collect();
    HttpResponse::Ok().json(json!({"data": data}))
}

fn serve(receiver: Arc<Receiver>) -> String {
    let data = web::Data::from(receiver);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .route("/v1/traces", web::post().to(receive))
            .route("/v1/embeddings", web::post().to(embed))
    });
    let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
    let address = server.addrs()[0];
    actix_web::rt::spawn(server.run());
    format!("http://{address}")
}

/// The name of a span, and of those above it.
fn path<'a>(spans: &'a [Span], span: &'a Span) -> Vec<&'a str> {
    let above = spans.iter().find(|other| other.span_id == span.parent_span_id);
    let mut names = above.map(|above| path(spans, above)).unwrap_or_default();
    names.push(&span.name);
    names
}

#[test]
fn a_request_is_one_trace_of_messages_statements_and_calls_and_holds_nothing_that_was_sent() {
    run(async {
        let receiver = Arc::new(Receiver::default());
        let url = serve(Arc::clone(&receiver));
        let store = started_once();
        let mut command = hosted(store.path());
        command
            .env("THREAT_MEMORY_LOG__TRACES_URL", &url)
            .env("THREAT_MEMORY_LOG__FILTER", "warn")
            .env("THREAT_MEMORY_EMBEDDING__PROVIDER", "openai")
            .env("THREAT_MEMORY_EMBEDDING__BASE_URL", format!("{url}/v1"))
            .env("THREAT_MEMORY_EMBEDDING__MODEL", "halves")
            .env("THREAT_MEMORY_EMBEDDING__DIMENSION", "2");
        let service = Service::start(command);
        let admin = service.admin().await;
        admin.ingest(json!([{"type": "malware", "id": format!("malware--{}", uuid::Uuid::new_v4()), "name": "Quiet Heron"}])).await;
        let traced = admin.with_header("traceparent", &format!("00-{TRACE}-{CALLER}-01"));
        let asked = format!("/api/recall/search?q={}", QUESTION.replace(' ', "+"));
        traced.get(&asked).await.expect(200).await;
        // What still waits is sent at the end.
        tokio::task::spawn_blocking(|| service.stop()).await.unwrap();

        let trace = hex::decode(TRACE).unwrap();
        let ours = || -> Vec<Span> {
            let spans = receiver.spans.lock().unwrap();
            spans
                .iter()
                .filter(|span| span.trace_id == trace)
                .cloned()
                .collect()
        };
        until(|| ours().iter().any(|span| span.name.starts_with("GET "))).await;
        let spans = ours();
        let request = spans
            .iter()
            .find(|span| span.name == "GET /api/recall/search")
            .unwrap();
        assert_eq!(hex::encode(&request.parent_span_id), CALLER);
        let mut paths: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        for span in &spans {
            *paths.entry(path(&spans, span)).or_default() += 1;
        }
        let search = ["GET /api/recall/search", "graph_store recall"];
        for below in [vec!["wait"], vec!["work"], vec!["work", "store"]] {
            let whole: Vec<&str> = search.iter().chain(&below).copied().collect();
            assert!(paths.contains_key(&whole), "{whole:?} is not in {paths:#?}");
        }
        let call = spans.iter().find(|span| span.name == "POST 127.0.0.1").unwrap();
        let passed_on = format!("00-{TRACE}-{}-01", hex::encode(&call.span_id));
        assert!(
            receiver.parents.lock().unwrap().contains(&passed_on),
            "{passed_on}"
        );
        for span in &spans {
            assert!(
                span.start_time_unix_nano >= request.start_time_unix_nano
                    && span.end_time_unix_nano >= span.start_time_unix_nano,
                "{span:?}"
            );
        }
        let sent = receiver.bodies.lock().unwrap().concat();
        let sent = String::from_utf8_lossy(&sent);
        for secret in ["Heron", "March", "Bearer", PASSWORD, ADMIN] {
            assert!(!sent.contains(secret), "a trace holds {secret}");
        }
    });
}

#[test]
fn a_receiver_that_is_away_stops_nothing_and_is_told_once() {
    run(async {
        let store = started_once();
        let mut command = hosted(store.path());
        command.env("THREAT_MEMORY_LOG__TRACES_URL", "http://127.0.0.1:1");
        let service = Service::start(command);
        for _ in 0..50 {
            service.anonymous().get("/health").await.expect(200).await;
        }
        tokio::task::spawn_blocking(|| service.stop()).await.unwrap();
        let logs = std::fs::read_dir(store.path().join("logs")).unwrap();
        let text: String = logs
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
            .collect();
        assert_eq!(text.matches("traces don't arrive").count(), 1, "{text}");
    });
}
