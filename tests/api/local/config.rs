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

/// A request with a body or an answer in TOML.
async fn toml(app: &LocalApp, method: reqwest::Method, body: Option<&str>) -> crate::helpers::Answer {
    let mut request = app.client.request(method, "/api/config");
    request = match body {
        Some(text) => request
            .header("content-type", "application/toml")
            .body(text.to_owned()),
        None => request.header("accept", "application/toml, */*;q=0.5"),
    };
    crate::helpers::Answer(request.send().await.unwrap())
}

#[test]
fn the_settings_explain_themselves() {
    run(async {
        let app = LocalApp::with(None, "web.api_key = \"hidden-key\"").await;
        let client = app.client.bearer("hidden-key");
        let shown = client.get("/api/config").await.expect(200).await;
        let meta = client.get("/api/config/meta").await.expect(200).await;
        assert!(!meta.to_string().contains("hidden-key"));
        let fields = meta["fields"].as_array().unwrap();
        let of = |path: &str| fields.iter().find(|field| field["path"] == path).unwrap();
        for field in fields {
            let path = field["path"].as_str().unwrap();
            let value = shown.pointer(&format!("/{}", path.replace('.', "/"))).unwrap();
            let fits = match field["type"].as_str().unwrap() {
                "boolean" => value.is_boolean(),
                "integer" => value.is_u64(),
                "number" => value.is_f64(),
                "text" | "secret" => value.is_string(),
                "list" => value.is_array(),
                _ => false,
            };
            assert!(fits, "{field}");
            let restart = meta["restart_required_fields"]
                .as_array()
                .unwrap()
                .contains(&json!(path));
            assert_eq!(field["restart"], restart, "{path}");
        }
        assert_eq!(of("web.port")["set_by"], "--port");
        assert_eq!(of("web.max_k")["set_by"], json!(null), "a file is no obstacle");
        assert_eq!(
            (&of("web.api_key")["is_set"], &of("llm.api_key")["is_set"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(of("web.max_k")["is_set"], json!(null));
        assert_eq!(
            of("governance.pii.action")["choices"],
            json!(["log", "redact", "block"])
        );
        let sections = meta["sections"].as_array().unwrap();
        assert!(sections.iter().any(|section| section["name"] == "governance.pii"));
        app.stop().await;
    });
}

#[test]
fn the_settings_leave_as_a_file_that_keeps_them() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = LocalApp::durable(dir.path()).await;
        let change = json!({
            "retrieval": {"default_k": 7, "graph_weight": 1}, "llm.model": "a \"model\"",
            "platform.token": "hidden-token", "llm.api_key": "hidden-key",
        });
        put(&app, change).await.expect(200).await;
        let answer = toml(&app, reqwest::Method::GET, None).await;
        assert_eq!(answer.header("content-type"), Some("application/toml"));
        let (status, text) = answer.whole().await;
        assert_eq!(status, 200);
        assert!(!text.contains("hidden"), "{text}");
        for line in [
            "default_k = 7",
            "graph_weight = 1.0",
            r#"model = "a \"model\"""#,
            "max_k = 50",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        // It is the state already, so nothing changes, not even what waits.
        let before = app.client.get("/api/config/meta").await.expect(200).await;
        let done = toml(&app, reqwest::Method::PUT, Some(&text))
            .await
            .expect(200)
            .await;
        assert_eq!(done["pending_restart"], json!(["llm.model"]));
        assert_eq!(app.client.get("/api/config/meta").await.expect(200).await, before);
        app.stop().await;
        // Another installation with that file has these settings.
        let other = tempfile::tempdir().unwrap();
        let file = other.path().join("local.toml");
        std::fs::write(&file, text).unwrap();
        let flags = threat_memory::config::local::LocalFlags::default();
        let (settings, _) = threat_memory::config::local::LocalSettings::load(Some(&file), &flags).unwrap();
        assert_eq!(
            (settings.retrieval.default_k, settings.llm.model.as_str()),
            (7, "a \"model\"")
        );
    });
}

#[test]
fn a_change_in_toml_is_checked_like_one_in_json() {
    run(async {
        let app = LocalApp::spawn().await;
        let text = "web.max_k = 40 # dotted\n[retrieval]\ndefault_k = 3\n[governance.pii]\nenabled = true\n";
        let done = toml(&app, reqwest::Method::PUT, Some(text))
            .await
            .expect(200)
            .await;
        assert_eq!(
            done["applied"],
            json!(["governance.pii.enabled", "retrieval.default_k", "web.max_k"])
        );
        for (text, loc) in [
            (
                "[retrieval]\ndefault_k = 41",
                json!(["body", "retrieval", "default_k"]),
            ),
            (
                "[retrieval]\ndefault_k = 2024-01-01",
                json!(["body", "retrieval", "default_k"]),
            ),
            (
                "[retrieval]\ngraph_weight = nan",
                json!(["body", "retrieval", "graph_weight"]),
            ),
            ("nope = 1", json!(["body", "nope"])),
            ("[retrieval\n", json!(["body", 10])),
        ] {
            let refused = toml(&app, reqwest::Method::PUT, Some(text))
                .await
                .expect(422)
                .await;
            assert_eq!(refused["detail"][0]["loc"], loc, "{text}");
        }
        let refused = toml(&app, reqwest::Method::PUT, Some("a = 1\nb =\n"))
            .await
            .expect(422)
            .await;
        let msg = refused["detail"][0]["msg"].as_str().unwrap();
        assert!(
            msg.starts_with("TOML decode error at line 2, column 4: "),
            "{msg}"
        );
        assert_eq!(refused["detail"][0]["type"], "toml_invalid");
        // Without that type, the body is JSON as before.
        let request = app.client.request(reqwest::Method::PUT, "/api/config").body(text);
        let refused = crate::helpers::Answer(request.send().await.unwrap())
            .expect(422)
            .await;
        assert_eq!(refused["detail"][0]["type"], "json_invalid");
        let shown = app.client.get("/api/config").await.expect(200).await;
        assert_eq!(shown["retrieval"]["default_k"], 3);
        app.stop().await;
    });
}

#[test]
fn what_waits_is_shown_and_can_be_taken_back() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = LocalApp::durable(dir.path()).await;
        let pending = async || {
            let meta = app.client.get("/api/config/meta").await.expect(200).await;
            let fields = meta["fields"].as_array().unwrap().iter();
            let waiting = fields.filter(|field| !field["pending"].is_null());
            waiting
                .map(|field| format!("{} {}", field["path"], field["pending"]).replace('"', ""))
                .collect::<Vec<_>>()
        };
        put(
            &app,
            json!({"llm.model": "m", "llm.api_key": "hidden", "web.workers": 3, "web.max_k": 20}),
        )
        .await
        .expect(200)
        .await;
        assert_eq!(
            pending().await,
            ["web.workers 3", "llm.model m", "llm.api_key ***"]
        );
        let done = put(&app, json!({"web.workers": 2})).await.expect(200).await;
        assert_eq!(done["applied"], json!(["web.workers"]), "the value in effect");
        for (path, status) in [
            ("llm.api_key", 200),
            ("llm.api_key", 404),
            ("web.max_k", 404),
            ("nope", 404),
        ] {
            let path = format!("/api/config/pending/{path}");
            app.client.delete(&path).await.expect(status).await;
        }
        assert_eq!(pending().await, ["llm.model m"]);
        app.stop().await;
        let app = LocalApp::durable(dir.path()).await;
        let shown = app.client.get("/api/config").await.expect(200).await;
        assert_eq!(
            (
                &shown["llm"]["model"],
                &shown["llm"]["api_key"],
                &shown["web"]["workers"]
            ),
            (&json!("m"), &json!(""), &json!(2))
        );
        app.stop().await;
    });
}
