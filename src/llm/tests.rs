//! The actor and the client against a stub server that works, is slow, fails, or is hostile.

mod failures;
mod hostile;
mod memory;
mod questions;

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::*;
use crate::actors::extractor::{Extract, ExtractorCore, ExtractorHandle};
use crate::actors::roster::Roster;
use crate::config::{Flags, Settings};
use crate::domain::extraction::KnownNames;
use crate::domain::node::NodeType;
use crate::domain::staging::{ExtractedEntity, Extraction};

const KEY: &str = "sk-very-secret";
const TEXT: &str =
    "SilkMoth deployed BlueLoader against a bank. It called evil[.]com. CVE-2024-3094 was exploited.";

/// The stub's response, by the number of the request.
type Behaviour = fn(usize, &Value) -> HttpResponse;

struct Stub {
    behaviour: Behaviour,
    requests: AtomicUsize,
    bodies: Mutex<Vec<Value>>,
}

async fn chat(stub: web::Data<Stub>, request: HttpRequest, body: web::Json<Value>) -> HttpResponse {
    let at = stub.requests.fetch_add(1, Ordering::SeqCst);
    let key = format!("Bearer {KEY}");
    if request
        .headers()
        .get("authorization")
        .is_none_or(|value| value != key.as_str())
    {
        return HttpResponse::Unauthorized().finish();
    }
    stub.bodies.lock().unwrap().push(body.0.clone());
    if (stub.behaviour)(at, &body).status() == 599 {
        // Simulates a model that never finishes.
        std::future::pending::<()>().await;
    }
    (stub.behaviour)(at, &body)
}

fn says(content: impl Into<String>) -> HttpResponse {
    let message = json!({"role": "assistant", "content": content.into()});
    HttpResponse::Ok().json(json!({"choices": [{"message": message, "finish_reason": "stop"}]}))
}

fn entity(name: &str, node_type: &str, quote: &str) -> Value {
    json!({"name": name, "node_type": node_type, "description": format!("about {name}"), "confidence": 0.8,
           "quote": quote, "aliases": [], "reasoning": "named"})
}

fn good() -> Value {
    json!({
        "entities": [
            entity("SilkMoth", "actor", "SilkMoth deployed BlueLoader"),
            entity("BlueLoader", "tool", "SilkMoth deployed BlueLoader"),
        ],
        "relations": [{"source": "SilkMoth", "target": "BlueLoader", "relationship": "uses",
                       "quote": "SilkMoth deployed BlueLoader against a bank."}],
    })
}

/// Runs a test like the program: in an actix system on a multi-thread runtime.
fn run<F: Future<Output = ()>>(test: F) {
    let system = actix::System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
    });
    system.block_on(test);
}

struct World {
    stub: Arc<Stub>,
    settings: Settings,
    handle: ExtractorHandle,
}

impl World {
    fn new(behaviour: Behaviour) -> Self {
        Self::with(behaviour, |_| {})
    }

    fn with(behaviour: Behaviour, change: impl FnOnce(&mut Settings)) -> Self {
        let stub = Arc::new(Stub {
            behaviour,
            requests: AtomicUsize::new(0),
            bodies: Mutex::default(),
        });
        let data = web::Data::from(Arc::clone(&stub));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .app_data(web::JsonConfig::default().limit(8 << 20))
                .route("/v1/chat/completions", web::post().to(chat))
        })
        .workers(1)
        .disable_signals()
        .bind("127.0.0.1:0")
        .unwrap();
        let address = server.addrs()[0];
        actix_web::rt::spawn(server.run());
        let mut settings = Settings::load(None, &Flags::default()).unwrap();
        settings.llm.provider = LlmProvider::Openai;
        settings.llm.base_url = format!("http://{address}/v1/");
        settings.llm.model = "small".into();
        settings.llm.timeout_ms = 10_000;
        settings.llm_api_key = Some(SecretString::from(KEY));
        change(&mut settings);
        let limits = settings.actors.of("extractor");
        let core = ExtractorCore::new(
            model_of(&settings.llm, settings.llm_api_key.clone()).unwrap(),
            limits,
        );
        let handle = Roster::new(move |_| limits).worker(&Arc::new(core));
        Self {
            stub,
            settings,
            handle,
        }
    }

    async fn extract(&self, text: &str) -> Extraction {
        let request = Extract {
            workspace: None,
            text: text.into(),
            source_type: SourceType::AnalystReport,
            known: KnownNames::default(),
        };
        let extraction = self.handle.call(request).await.unwrap();
        assert!(!format!("{extraction:?}").contains(KEY));
        extraction
    }

    fn requests(&self) -> usize {
        self.stub.requests.load(Ordering::SeqCst)
    }

    fn body(&self, at: usize) -> Value {
        self.stub.bodies.lock().unwrap()[at].clone()
    }
}

fn names(extraction: &Extraction) -> Vec<&str> {
    let mut names: Vec<&str> = extraction
        .entities
        .iter()
        .map(|entity| entity.name.as_str())
        .collect();
    names.sort_unstable();
    names
}

fn find<'e>(extraction: &'e Extraction, name: &str) -> &'e ExtractedEntity {
    extraction
        .entities
        .iter()
        .find(|entity| entity.name == name)
        .unwrap()
}

/// The findings of the rules in [`TEXT`].
const RULES: [&str; 2] = ["CVE-2024-3094", "evil.com"];
const UNITED: [&str; 4] = ["BlueLoader", "CVE-2024-3094", "SilkMoth", "evil.com"];

/// Checks for the rules' findings and the single warning that explains the fallback.
fn assert_fallback(extraction: &Extraction, why: &str) {
    assert_eq!(names(extraction), RULES);
    let want = format!("language model unavailable: {why}");
    let [warning] = extraction.warnings.as_slice() else {
        panic!("{:?}", extraction.warnings);
    };
    assert!(
        warning.starts_with(&want) && warning.ends_with("; rules extractor used"),
        "{warning}"
    );
}

#[test]
fn a_good_answer_is_united_with_what_the_rules_found() {
    run(async {
        let world = World::new(|_, _| says(good().to_string()));
        let extraction = world.extract(TEXT).await;
        assert_eq!(names(&extraction), UNITED);
        assert!(extraction.warnings.is_empty(), "{:?}", extraction.warnings);
        assert_eq!(extraction.relations.len(), 1);
        assert_eq!(find(&extraction, "SilkMoth").confidence, 0.8);
        let body = world.body(0);
        assert_eq!(
            (&body["model"], &body["temperature"], &body["max_tokens"]),
            (&json!("small"), &json!(0), &json!(4096))
        );
        assert_eq!(body["response_format"]["type"], "json_schema");
        assert!(
            body["messages"][1]["content"]
                .as_str()
                .unwrap()
                .contains("(analyst_report)")
        );
        assert!(!body.to_string().contains(KEY));
    });
}

#[test]
fn without_a_provider_the_rules_say_so() {
    run(async {
        let world = World::with(
            |_, _| says("{}"),
            |settings| settings.llm.provider = LlmProvider::None,
        );
        let extraction = world.extract(TEXT).await;
        assert_eq!(names(&extraction), RULES);
        assert_eq!(
            extraction.warnings,
            ["no language model is configured; rules extractor used"]
        );
        assert_eq!(world.requests(), 0);
    });
}

#[test]
fn a_long_text_is_read_in_parts_and_merged_by_identity() {
    run(async {
        let world = World::with(
            |_, body| {
                let user = body["messages"][1]["content"].as_str().unwrap();
                let mut found = Vec::new();
                for name in ["SilkMoth", "BlueLoader", "GreyGhost"] {
                    if user.contains(name) {
                        found.push(entity(
                            name,
                            if name == "BlueLoader" { "tool" } else { "actor" },
                            name,
                        ));
                    }
                }
                says(json!({"entities": found, "relations": []}).to_string())
            },
            |settings| {
                settings.llm.max_chunk_chars = 500;
                settings.llm.overlap_chars = 100;
            },
        );
        let filler = "Nothing of note happened on that day in the office. ".repeat(20);
        let text =
            format!("SilkMoth came. {filler}\n\nSilkMoth used BlueLoader. {filler}\n\nGreyGhost left.");
        let extraction = world.extract(&text).await;
        assert_eq!(names(&extraction), ["BlueLoader", "GreyGhost", "SilkMoth"]);
        assert!(world.requests() > 4);
        let (from, to) = find(&extraction, "GreyGhost").span.unwrap();
        assert_eq!((&text[from..to], from > 2000), ("GreyGhost", true));
    });
}

#[test]
fn a_part_without_an_answer_costs_that_part() {
    run(async {
        let world = World::with(
            |_, body| {
                let user = body["messages"][1]["content"].as_str().unwrap();
                if user.contains("GreyGhost") {
                    return says("no");
                }
                let found = [entity("SilkMoth", "actor", "SilkMoth came")];
                says(json!({"entities": found, "relations": []}).to_string())
            },
            |settings| {
                settings.llm.max_chunk_chars = 500;
                settings.llm.overlap_chars = 0;
            },
        );
        let filler = "Nothing of note happened on that day in the office. ".repeat(12);
        let text = format!("SilkMoth came. {filler}\n\nGreyGhost left.");
        let extraction = world.extract(&text).await;
        assert_eq!(names(&extraction), ["SilkMoth"]);
        assert_eq!(extraction.warnings.len(), 1, "{:?}", extraction.warnings);
        assert!(
            extraction.warnings[0]
                .starts_with("language model failed for part 2 of 2: the answer is unusable"),
            "{:?}",
            extraction.warnings
        );
    });
}

#[test]
fn an_outage_ends_the_reading_of_a_long_text() {
    run(async {
        let world = World::with(
            |at, _| match at {
                0 => says(json!({"entities": [], "relations": []}).to_string()),
                _ => HttpResponse::Forbidden().finish(),
            },
            |settings| {
                settings.llm.max_chunk_chars = 500;
                settings.llm.overlap_chars = 0;
            },
        );
        let extraction = world
            .extract(&"Nothing of note happened on that day. ".repeat(200))
            .await;
        assert_eq!(world.requests(), 4);
        assert_eq!(extraction.warnings.len(), 4, "{:?}", extraction.warnings);
        assert!(extraction.warnings[3].starts_with("language model was not asked about parts 5 to "));
    });
}
