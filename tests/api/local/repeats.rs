//! A text that is stored again stays one note and keeps whatever is new about it.

use serde_json::{Value, json};

use crate::helpers::run;
use crate::local::LocalApp;

const TEXT: &str = "Turla used Mimikatz against ministries.";

async fn remember(app: &LocalApp, fields: &Value) -> Value {
    let mut body = json!({"content": TEXT});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    app.client.post("/api/remember", &body).await.expect(200).await
}

async fn note(app: &LocalApp, told: &Value) -> Value {
    let path = format!("/api/notes/{}", told["note_id"].as_str().unwrap());
    app.client.get(&path).await.expect(200).await
}

#[test]
fn a_domain_means_the_same_with_and_without_outer_white_space() {
    run(async {
        let app = LocalApp::spawn().await;
        let first = remember(&app, &json!({"domain": " ops\t"})).await;
        let again = remember(&app, &json!({"domain": "ops"})).await;
        assert_eq!(
            (&again["status"], &again["note_id"]),
            (&json!("duplicate"), &first["note_id"])
        );
        assert_eq!(note(&app, &first).await["domain"], "ops");
        remember(&app, &json!({})).await;
        for domain in ["ops", " ops "] {
            let body = json!({"query": "Turla", "domain": domain});
            let found = app.client.post("/api/recall", &body).await.expect(200).await;
            assert_eq!(found["count"], 1, "{domain:?}");
            assert_eq!(found["results"][0]["id"], first["note_id"]);
        }
        let blank = remember(&app, &json!({"domain": "  "})).await;
        assert_eq!(blank["status"], "duplicate", "a blank domain is the default one");
        app.stop().await;
    });
}

#[test]
fn a_repeat_from_a_better_source_raises_the_tier_and_adds_its_source() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = LocalApp::durable(dir.path()).await;
        let first = remember(&app, &json!({"source_type": "llm", "source_ref": "chat 1"})).await;
        let before = note(&app, &first).await;
        assert_eq!(
            (&before["tier"], &before["confidence"], &before["source_refs"]),
            (&json!("c"), &json!(0.5), &json!(["chat 1"]))
        );
        for (source_type, source_ref, tier, confidence) in [
            ("report", "report 7", "b", 0.8),
            // A less trusted source does not change the trust, but its reference is kept.
            ("llm", "chat 2", "b", 0.8),
            ("report", "report 7", "b", 0.8),
            ("manual", "", "a", 1.0),
        ] {
            let again = remember(
                &app,
                &json!({"source_type": source_type, "source_ref": source_ref}),
            )
            .await;
            assert_eq!(
                (&again["status"], &again["note_id"]),
                (&json!("duplicate"), &first["note_id"])
            );
            let now = note(&app, &first).await;
            assert_eq!(
                (&now["tier"], &now["confidence"]),
                (&json!(tier), &json!(confidence)),
                "{source_type}"
            );
        }
        let entities = app.client.get("/api/entities?tier=a").await.expect(200).await;
        assert_eq!(entities["total"], 2, "the graph knows the new tier");
        let found = app
            .client
            .post("/api/recall", &json!({"query": "Turla"}))
            .await
            .expect(200)
            .await;
        assert_eq!(found["results"][0]["tier"], "a");
        app.stop().await;
        let app = LocalApp::durable(dir.path()).await;
        let kept = note(&app, &first).await;
        assert_eq!(
            (&kept["tier"], &kept["source_ref"], &kept["source_refs"]),
            (
                &json!("a"),
                &json!("chat 1"),
                &json!(["chat 1", "report 7", "chat 2"])
            )
        );
        let nodes = app
            .client
            .get("/api/graph/nodes?type=note")
            .await
            .expect(200)
            .await;
        assert_eq!(
            (&nodes["count"], &nodes["nodes"][0]["tier"]),
            (&json!(1), &json!("a"))
        );
        app.stop().await;
    });
}

#[test]
fn repeats_in_one_ingest_count_as_those_that_come_one_after_the_other() {
    run(async {
        let app = LocalApp::spawn().await;
        let items = [
            json!({"content": TEXT, "source_type": "llm"}),
            json!({"content": TEXT, "source_type": "report", "source_ref": "report 7"}),
            json!({"content": TEXT, "source_type": "report", "source_ref": "report 8"}),
        ];
        let done = app.client.ingest_notes(&items).await;
        let told = &done["results"][0];
        assert_eq!(done["results"][2]["note_id"], told["note_id"]);
        let stored = note(&app, told).await;
        assert_eq!(
            (&stored["tier"], &stored["source_ref"], &stored["source_refs"]),
            (&json!("b"), &json!("report 7"), &json!(["report 7", "report 8"]))
        );
        let done = app
            .client
            .ingest_notes(&[
                json!({"content": TEXT, "source_ref": "a"}),
                json!({"content": TEXT, "source_ref": "b"}),
            ])
            .await;
        assert_eq!(done["results"][1]["status"], "duplicate");
        let stored = note(&app, told).await;
        assert_eq!(stored["source_refs"], json!(["report 7", "report 8", "a", "b"]));
        assert_eq!(stored["tier"], "a");
        app.stop().await;
    });
}
