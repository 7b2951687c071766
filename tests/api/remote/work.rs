//! What the service does with an embedded database also works with a server.

use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use test_support::server;
use threat_memory::app::hosted::Application;

use super::{STIX, assert_chain, until_answered, with_database};
use crate::helpers::{ADMIN, PASSWORD, TestApp};
use crate::hosted::staging::{FOUND, TEXT, results};
use crate::local::durability::local;
use crate::process::{Service, printed, program, refused};
use crate::stix::{assert_faithful, names, object, relationship, text};

#[test]
fn ingest_recall_export_staging_and_audit_work_over_a_server() {
    with_database(async |database| {
        let app = database.service().await;
        let mut objects = vec![
            object("malware", "Quillsnake"),
            object("tool", "Quillsnake Spade"),
        ];
        objects.push(relationship(&objects[0], "uses", &objects[1]));
        let done = app.admin.ingest(json!(objects)).await;
        assert_eq!(
            (&done["nodes_created"], &done["edges_created"]),
            (&json!(2), &json!(1))
        );
        let found = app.admin.get("/api/recall/search?q=Quillsnake&limit=2").await;
        let found = found.expect(200).await;
        assert_eq!(names(&found), ["Quillsnake", "Quillsnake Spade"]);
        let bundle = app.admin.export(text(&found, "recall_id")).await;
        assert_faithful(&bundle, &objects);

        let preview = app.admin.preview(&json!({"text": TEXT})).await;
        let entities = preview["entities"].as_array().unwrap();
        assert_eq!(entities.len(), FOUND.len());
        for entity in entities {
            app.admin.decide(entity, json!({"status": "accepted"})).await;
        }
        let batch = &preview["batch_id"];
        let committed = app.admin.commit(batch).await;
        assert_eq!(committed["remaining"], 0, "{committed}");
        assert!(committed["nodes_created"].as_u64().unwrap() >= 3, "{committed}");
        assert_eq!(app.admin.commit(batch).await, results([0; 6]));

        for action in ["ingest.stix", "recall.search", "recall.export"] {
            assert!(!app.admin.audited(action).await.is_empty(), "{action}");
        }
        assert_chain(&app.admin).await;
        app.stop().await;

        // Another process, with an empty index of its own.
        let app = TestApp::with(database.settings("another")).await;
        let found = app.admin.search("Quillsnake").await;
        assert_eq!(names(&found)[..2], ["Quillsnake", "Quillsnake Spade"]);
        assert_chain(&app.admin).await;
        app.stop().await;
    });
}

#[test]
fn the_local_memory_works_over_a_server() {
    with_database(async |database| {
        let dir = tempfile::tempdir().unwrap();
        let command = || {
            let mut command = local(dir.path(), 8);
            command
                .env("LOCAL_BACKEND", database.proxy.url())
                .env("THREAT_MEMORY_STORAGE_USER", server::USER)
                .env("THREAT_MEMORY_STORAGE_PASSWORD", server::PASSWORD);
            command
        };
        let service = Service::start(command());
        let kept = service
            .anonymous()
            .remember("APT28 uses Server Spade against banks.")
            .await;
        service.kill();
        let service = Service::start(command());
        let found = service.anonymous().recall("Server Spade").await;
        assert_eq!(found, [text(&kept, "note_id")]);
        service.kill();
    });
}

#[test]
fn more_than_a_page_reaches_a_new_index_and_no_answer_holds_it_all() {
    with_database(async |database| {
        const NODES: usize = 6_000;
        let app = database.service().await;
        // A single write, so all rows carry the same revision.
        let objects: Vec<Value> = (0..NODES)
            .map(|at| object("tool", &format!("paged part{at} {}", "x".repeat(500))))
            .collect();
        let done = app.admin.ingest(json!(objects)).await;
        assert_eq!(done["nodes_created"], NODES);
        app.stop().await;

        database.proxy.largest();
        let app = TestApp::with(database.settings("another")).await;
        for at in [0, NODES / 2, NODES - 1] {
            // Until the new index has caught up, a search may be told to come back later.
            let path = format!("/api/recall/search?q=part{at}");
            let (answer, _) = until_answered(|| app.admin.get(&path)).await;
            let found = answer.expect(200).await;
            assert!(text(&found["results"][0], "name").contains(&format!(" part{at} ")));
        }
        let largest = database.proxy.largest();
        println!("the largest answer had {largest} bytes");
        assert!(largest < 2 << 20, "{largest} bytes in one answer");
        app.stop().await;
    });
}

#[test]
fn processes_that_share_a_database_lose_no_race_and_make_no_doubles() {
    with_database(async |database| {
        let apps = [
            database.service().await,
            TestApp::with(database.settings("another")).await,
        ];
        let objects: Vec<Value> = (0..60).map(|at| object("tool", &format!("raced {at}"))).collect();
        let body = json!({"bundle": objects});
        let sending = (0..12).map(|at| {
            let (client, body) = (apps[at % 2].admin.clone(), body.clone());
            async move { client.post(STIX, &body).await.expect(201).await }
        });
        let answers = futures_util::future::join_all(sending).await;
        let created: u64 = answers
            .iter()
            .map(|answer| answer["results"]["nodes_created"].as_u64().unwrap())
            .sum();
        assert_eq!(created, 60);
        for app in apps {
            assert_chain(&app.admin).await;
            app.stop().await;
        }
    });
}

#[test]
fn parallel_requests_share_several_connections() {
    with_database(async |database| {
        let app = database.service().await;
        app.admin.ingest(json!([object("tool", "Much Asked")])).await;
        database.proxy.delay(Duration::from_millis(100));
        let asking = (0..16).map(|_| app.admin.search("Much Asked"));
        for found in futures_util::future::join_all(asking).await {
            assert_eq!(names(&found)[0], "Much Asked");
        }
        database.proxy.delay(Duration::ZERO);
        // Up to four connections, plus one for the owner at start-up.
        let opened = database.proxy.accepted();
        assert!((4..=5).contains(&opened), "{opened} connections");
        app.stop().await;
    });
}

#[test]
fn a_server_that_can_not_be_used_is_named_at_the_start() {
    with_database(async |database| {
        let mut settings = database.settings("service");
        settings.storage_password = Some("wrong".to_owned().into());
        let error = Application::start(settings).await.err().unwrap().to_string();
        assert!(error.contains(&database.proxy.url()), "{error}");
        assert!(!error.contains("wrong"), "{error}");

        database.kill();
        let error = Application::start(database.settings("service")).await;
        let error = error.err().unwrap().to_string();
        assert!(error.contains(&database.proxy.url()), "{error}");

        database.restart();
        let app = database.service().await;
        let client = app.anonymous().sign_in(ADMIN, PASSWORD).await;
        client.search("anything").await;
        app.stop().await;
    });
}

#[test]
fn a_password_is_reset_beside_a_service_and_with_its_secret_alone() {
    with_database(async |database| {
        let app = database.service().await;
        let reset = |secret: Option<&str>| {
            let mut command = program();
            command
                .args([
                    "admin",
                    "reset-password",
                    ADMIN,
                    "--storage",
                    &database.proxy.url(),
                ])
                .current_dir(database.dir.path())
                .env("THREAT_MEMORY_STORAGE_USER", server::USER)
                .env("THREAT_MEMORY_STORAGE_PASSWORD", server::PASSWORD);
            if let Some(secret) = secret {
                command.env("THREAT_MEMORY_JWT_SECRET", secret);
            }
            command
        };
        let said = refused(&mut reset(None));
        assert!(said.contains("THREAT_MEMORY_JWT_SECRET"), "{said}");
        let said = refused(&mut reset(Some("another secret of more than 32 bytes")));
        assert!(said.contains("its secret"), "{said}");
        assert!(!database.dir.path().join("data").exists(), "a secret was made");
        // The service still opens connections.
        database.proxy.drop_all();
        until_answered(|| app.admin.get("/api/recall/search?q=Quillsnake")).await;
        let secret = database.settings("service").jwt_secret.unwrap();
        let told = printed(&mut reset(Some(secret.expose_secret())));
        let made = told.split("only now: ").nth(1).unwrap().trim().to_owned();
        database.proxy.drop_all();
        let anonymous = app.anonymous();
        let (answer, _) = until_answered(|| anonymous.login(ADMIN, PASSWORD)).await;
        answer.refused(401).await;
        anonymous.login(ADMIN, &made).await.expect(200).await;
        app.stop().await;
    });
}
