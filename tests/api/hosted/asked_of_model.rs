//! Questions that the rules do not understand, read by a language model that a stub server plays.

use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::staging_model::{Behaviour, app, says, serve};
use crate::helpers::{Client, TestApp, run};
use crate::stix::{object, relationship, text, with};

const QUESTION: &str = "Where has Marshgate turned up?";

fn groups() -> HttpResponse {
    let reading = json!({"names": ["Marshgate", "Quiet Otter"], "wanted": ["group"], "through": [], "since": "",
        "until": ""});
    says(reading.to_string())
}

/// A service with that model, which knows who uses Marshgate.
async fn world(behaviour: Behaviour) -> TestApp {
    let app = app(serve(behaviour)).await;
    let (heron, otter) = (
        object("intrusion-set", "Zinc Heron"),
        with(
            object("intrusion-set", "Quiet Otter"),
            json!({"description": "Marshgate has turned up before, where has Marshgate not?"}),
        ),
    );
    let marshgate = object("malware", "Marshgate");
    let uses = relationship(&heron, "uses", &marshgate);
    app.admin.ingest(json!([heron, otter, marshgate, uses])).await;
    app
}

async fn names(client: &Client, mode: &str) -> Vec<String> {
    let found: Value = client.search_with(QUESTION, &[("mode", mode)]).await;
    let results = found["results"].as_array().unwrap();
    results.iter().map(|node| text(node, "name").to_owned()).collect()
}

#[test]
fn the_graph_answers_what_the_model_reads() {
    run(async {
        let app = world(groups).await;
        for mode in ["blended", "structured"] {
            assert_eq!(names(&app.admin, mode).await[0], "Zinc Heron", "{mode}");
        }
        app.stop().await;
        let app = world(|| says("Zinc Heron, surely.")).await;
        assert_ne!(names(&app.admin, "blended").await[0], "Zinc Heron");
        app.stop().await;
    });
}

#[test]
fn a_model_that_fails_costs_nothing_but_its_answer() {
    run(async {
        let app = world(|| HttpResponse::BadGateway().finish()).await;
        let first = names(&app.admin, "blended").await;
        assert!(first.contains(&"Marshgate".to_owned()), "{first:?}");
        let since = Instant::now();
        for _ in 0..5 {
            assert_eq!(names(&app.admin, "blended").await, first);
        }
        assert!(
            since.elapsed() < Duration::from_secs(2),
            "an outage is not waited for again"
        );
        app.stop().await;
    });
}
