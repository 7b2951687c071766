//! Settings of the running local service.

use serde_json::json;

use crate::helpers::run;
use crate::local::LocalApp;

async fn put(app: &LocalApp, change: serde_json::Value) -> crate::helpers::Answer {
    let request = app.client.request(reqwest::Method::PUT, "/api/config");
    crate::helpers::Answer(request.json(&change).send().await.unwrap())
}

#[test]
fn a_change_has_its_effect_at_once() {
    run(async {
        let app = LocalApp::spawn().await;
        for number in 0..5 {
            app.client.remember(&format!("ransomware note {number}")).await;
        }
        assert_eq!(app.client.recall("ransomware").await.len(), 5);
        let done = put(
            &app,
            json!({"retrieval": {"default_k": 2}, "web.max_content_chars": 20}),
        )
        .await
        .expect(200)
        .await;
        assert_eq!(
            done["applied"],
            json!(["retrieval.default_k", "web.max_content_chars"])
        );
        assert_eq!(done["pending_restart"], json!([]));
        assert_eq!(app.client.recall("ransomware").await.len(), 2);
        let long = json!({"content": "longer than twenty characters"});
        let refused = app.client.post("/api/remember", &long).await.expect(422).await;
        assert_eq!(refused["detail"][0]["ctx"], json!({"max_length": 20}));
        put(
            &app,
            json!({"governance.pii.enabled": true, "governance.pii.action": "block"}),
        )
        .await
        .expect(200)
        .await;
        assert_eq!(
            app.client.get("/api/health").await.expect(200).await["pii_enabled"],
            true
        );
        let refused = app
            .client
            .post("/api/remember", &json!({"content": "a@example.org"}))
            .await
            .expect(422)
            .await;
        assert_eq!(refused["detail"][0]["loc"], json!(["body", "content"]));
        let items = json!({"items": [{"content": "b@example.org"}, {"content": "fine"}]});
        let done = app.client.post("/api/ingest", &items).await.expect(200).await;
        assert_eq!(
            (&done["succeeded"], &done["results"][0]["success"]),
            (&json!(1), &json!(false))
        );
        put(&app, json!({"web.rate_limit_per_minute": 1}))
            .await
            .expect(200)
            .await;
        assert_eq!(app.client.get("/api/version").await.status(), 429);
        app.stop().await;
    });
}

#[test]
fn a_bad_change_changes_nothing_and_is_named() {
    run(async {
        let app = LocalApp::spawn().await;
        let before = app.client.get("/api/config").await.expect(200).await;
        for (change, loc) in [
            (
                json!({"retrieval.default_k": 3, "nope": 1}),
                json!(["body", "nope"]),
            ),
            (
                json!({"retrieval.default_k": "3"}),
                json!(["body", "retrieval", "default_k"]),
            ),
            (
                json!({"retrieval.default_k": 99}),
                json!(["body", "retrieval", "default_k"]),
            ),
            (json!({"llm": "x"}), json!(["body", "llm"])),
            (json!([1]), json!(["body"])),
        ] {
            let refused = put(&app, change.clone()).await.expect(422).await;
            assert_eq!(refused["detail"][0]["loc"], loc, "{change}");
        }
        assert_eq!(app.client.get("/api/config").await.expect(200).await, before);
        app.stop().await;
    });
}

#[test]
fn restart_only_values_wait_and_then_hold() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = LocalApp::durable(dir.path()).await;
        let done = put(
            &app,
            json!({"llm.local_backend": "ollama", "platform.token": "hidden"}),
        )
        .await
        .expect(200)
        .await;
        assert_eq!(
            (&done["applied"], &done["pending_restart"]),
            (&json!(["platform.token"]), &json!(["llm.local_backend"]))
        );
        let shown = app.client.get("/api/config").await.expect(200).await;
        assert_eq!(
            (&shown["llm"]["local_backend"], &shown["platform"]["token"]),
            (&json!(""), &json!("***"))
        );
        put(&app, json!({"platform.token": "***"}))
            .await
            .expect(200)
            .await;
        let meta = app.client.get("/api/config/meta").await.expect(200).await;
        let fields = meta["restart_required_fields"].as_array().unwrap();
        for field in [
            "backend",
            "embedding.provider",
            "llm.provider",
            "llm.model",
            "storage.data_dir",
            "logging.filter",
        ] {
            assert!(fields.contains(&json!(field)), "{field}");
        }
        app.stop().await;
        let app = LocalApp::durable(dir.path()).await;
        let health = app.client.get("/api/health").await.expect(200).await;
        assert_eq!(health["llm_local_backend"], "ollama");
        app.stop().await;
    });
}
