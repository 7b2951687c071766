//! What clients see when the database, the connection to it or the service itself fails.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::{eventually, extent, server};

use super::proxy::Cut;
use super::{STIX, assert_chain, assert_unavailable, until_answered, with_database};
use crate::durability::{Sent, assert_whole, stream};
use crate::helpers::{ADMIN, Client, PASSWORD};
use crate::process::{Service, program};
use crate::stix::{object, relationship, text};

/// A bundle of two nodes and an edge, and a word that occurs nowhere else.
fn bundle() -> (String, Value) {
    let word = format!("w{}", uuid::Uuid::new_v4().simple());
    let mut objects = vec![
        object("malware", &format!("{word} one")),
        object("tool", &format!("{word} two")),
    ];
    objects.push(relationship(&objects[0], "uses", &objects[1]));
    (word, json!({"bundle": objects}))
}

/// The number of nodes with this word in their names.
async fn count(client: &Client, word: &str) -> usize {
    let path = format!("/api/recall/search?q={word}");
    let (answer, _) = until_answered(|| client.get(&path)).await;
    let answer = answer.expect(200).await;
    let found = answer["results"].as_array().unwrap().iter();
    found.filter(|node| text(node, "name").contains(word)).count()
}

/// Sends a bundle until it is accepted; returns the results and the number of refusals.
async fn send(client: &Client, body: &Value) -> (Value, usize) {
    let (answer, refused) = until_answered(|| client.post(STIX, body)).await;
    (answer.expect(201).await["results"].clone(), refused)
}

#[test]
fn dropped_connections_are_opened_again() {
    with_database(async |database| {
        let app = database.service().await;
        for _ in 0..extent(1, 3) {
            let (word, body) = bundle();
            database.proxy.drop_all();
            let (results, refused) = send(&app.admin, &body).await;
            println!("refused {refused} times");
            assert_eq!(results["nodes_created"], 2, "{results}");
            database.proxy.drop_all();
            assert_eq!(count(&app.admin, &word).await, 2);
        }
        assert_chain(&app.admin).await;
        app.stop().await;
    });
}

#[test]
fn requests_in_flight_are_told_that_the_connection_dropped_and_succeed_when_they_are_sent_again() {
    with_database(async |database| {
        let app = database.service().await;
        let (stop, client) = (Arc::new(AtomicBool::new(false)), app.admin.clone());
        let streams: Vec<_> = (0..4)
            .map(|_| tokio::spawn(stream(client.clone(), Arc::clone(&stop))))
            .collect();
        for _ in 0..extent(2, 6) {
            // Lets the streams write between two drops.
            tokio::time::sleep(Duration::from_millis(400)).await;
            database.proxy.drop_all();
        }
        stop.store(true, Ordering::Relaxed);
        let mut all: Vec<Sent> = Vec::new();
        for stream in streams {
            all.extend(stream.await.unwrap());
        }
        // The last connections may still be being established.
        count(&client, "anything").await;
        let (whole, absent) = assert_whole(&client, &all).await;
        println!("{whole} whole, {absent} absent");
        for sent in all.iter().filter(|sent| !sent.acknowledged) {
            send(&client, &json!({"bundle": sent.objects})).await;
        }
        // Writes that were committed but whose response was lost reach the index without further action.
        eventually(|| async {
            let counts = assert_whole(&client, &all).await;
            if counts == (all.len(), 0) {
                Ok(())
            } else {
                Err(counts)
            }
        })
        .await;
        assert_chain(&client).await;
        app.stop().await;
    });
}

#[test]
fn a_connection_that_drops_in_the_middle_of_a_transaction_leaves_nothing_behind() {
    with_database(async |database| {
        let app = database.service().await;
        for statement in [
            "INSERT INTO node",
            "INSERT RELATION INTO edge",
            "INSERT $rows RETURN NONE",
            "commit",
        ] {
            let (word, body) = bundle();
            database.proxy.cut(statement, Cut::Before);
            assert_unavailable(app.admin.post(STIX, &body).await).await;
            assert!(!database.proxy.is_whole(), "{statement} was never sent");
            assert_eq!(count(&app.admin, &word).await, 0, "{statement}");
            let (results, _) = send(&app.admin, &body).await;
            assert_eq!(
                (&results["nodes_created"], &results["edges_created"]),
                (&json!(2), &json!(1)),
                "{statement}"
            );
            assert_eq!(count(&app.admin, &word).await, 2, "{statement}");
        }
        assert_chain(&app.admin).await;
        app.stop().await;
    });
}

#[test]
fn a_commit_whose_answer_is_lost_is_found_and_sending_it_again_makes_no_doubles() {
    with_database(async |database| {
        let app = database.service().await;
        let (word, body) = bundle();
        database.proxy.cut("commit", Cut::After);
        assert_unavailable(app.admin.post(STIX, &body).await).await;
        assert!(!database.proxy.is_whole());
        let (results, _) = send(&app.admin, &body).await;
        assert_eq!(results["nodes_created"], 0, "it was committed: {results}");
        eventually(|| async {
            let found = count(&app.admin, &word).await;
            if found == 2 { Ok(()) } else { Err(found) }
        })
        .await;
        // The audit entry committed with it also has its chain link.
        assert_chain(&app.admin).await;
        assert_eq!(app.admin.audited("ingest.stix").await.len(), 2);
        app.stop().await;
    });
}

#[test]
fn an_audit_entry_whose_answer_is_lost_is_linked_all_the_same() {
    with_database(async |database| {
        let app = database.service().await;
        database.proxy.cut("INSERT IGNORE $rows", Cut::After);
        // The audit entry of a sign-in is a write of its own.
        let answer = app.anonymous().login(ADMIN, "wrong").await;
        assert_unavailable(answer).await;
        assert!(!database.proxy.is_whole());
        count(&app.admin, "anything").await;
        assert_chain(&app.admin).await;
        app.stop().await;
    });
}

#[test]
fn a_slow_answer_is_a_503_and_a_silent_connection_is_replaced() {
    with_database(async |database| {
        let mut settings = database.settings("service");
        settings.storage.timeout_ms = 1_000;
        let app = crate::helpers::TestApp::with(settings).await;
        let (word, body) = bundle();
        send(&app.admin, &body).await;

        database.proxy.delay(Duration::from_secs(3));
        let begun = Instant::now();
        assert_unavailable(app.admin.get(&format!("/api/recall/search?q={word}")).await).await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        database.proxy.delay(Duration::ZERO);
        assert_eq!(count(&app.admin, &word).await, 2);

        database.proxy.stall(true);
        let begun = Instant::now();
        assert_unavailable(app.admin.post(STIX, &body).await).await;
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        // The service must not wait for the stalled connections once the network is back.
        // Three time-outs, in which it has noticed the silence.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let before = database.proxy.accepted();
        database.proxy.drop_all();
        database.proxy.stall(false);
        assert_eq!(count(&app.admin, &word).await, 2);
        assert!(database.proxy.accepted() > before);
        assert_chain(&app.admin).await;
        app.stop().await;
    });
}

#[test]
fn a_server_that_is_killed_and_starts_again_is_used_again_and_nothing_acknowledged_is_lost() {
    with_database(async |database| {
        let app = database.service().await;
        let mut sent = Vec::new();
        for round in 0..extent(1, 2) {
            let (word, body) = bundle();
            send(&app.admin, &body).await;
            sent.push(word);
            database.kill();
            // The first refusal comes at the latest when the silence is noticed; while the server is down, the rest are
            // immediate.
            assert_unavailable(app.admin.post(STIX, &body).await).await;
            let begun = Instant::now();
            for _ in 0..5 {
                assert_unavailable(app.admin.get("/api/recall/search?q=x").await).await;
            }
            println!("round {round}: five refusals in {:?}", begun.elapsed());
            assert!(begun.elapsed() < Duration::from_secs(20));
            database.restart();
            for word in &sent {
                assert_eq!(count(&app.admin, word).await, 2);
            }
        }
        let (results, _) = send(&app.admin, &bundle().1).await;
        assert_eq!(results["nodes_created"], 2);
        assert_chain(&app.admin).await;
        app.stop().await;
    });
}

#[test]
fn a_service_that_is_killed_loses_nothing_acknowledged_and_leaves_nothing_half_there() {
    with_database(async |database| {
        let files = tempfile::tempdir().unwrap();
        let command = || {
            let mut command = program();
            command
                .args([
                    "hosted",
                    "--bind",
                    "127.0.0.1:0",
                    "--storage",
                    &database.proxy.url(),
                ])
                .env("THREAT_MEMORY_SERVER__ADMIN_BIND", "127.0.0.1:0")
                .env("THREAT_MEMORY_LIMITS__TIERS__ENTERPRISE", "1000000")
                .env("THREAT_MEMORY_ADMIN_EMAIL", ADMIN)
                .env("THREAT_MEMORY_ADMIN_PASSWORD", PASSWORD)
                .env("THREAT_MEMORY_STORAGE__DATA_DIR", files.path())
                .env("THREAT_MEMORY_STORAGE_USER", server::USER)
                .env("THREAT_MEMORY_STORAGE_PASSWORD", server::PASSWORD)
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            command
        };
        for round in 0..extent(1, 2) {
            let service = Service::start(command());
            let client = service.admin().await;
            let stop = Arc::new(AtomicBool::new(false));
            let streams: Vec<_> = (0..3)
                .map(|_| tokio::spawn(stream(client.clone(), Arc::clone(&stop))))
                .collect();
            // The service is killed at another moment in each round.
            tokio::time::sleep(Duration::from_millis(900 + 700 * round)).await;
            service.kill();
            stop.store(true, Ordering::Relaxed);
            let mut all = Vec::new();
            for stream in streams {
                all.extend(stream.await.unwrap());
            }
            let service = Service::start(command());
            let client = service.admin().await;
            let (whole, absent) = assert_whole(&client, &all).await;
            println!("round {round}: {whole} whole, {absent} absent");
            assert_chain(&client).await;
            service.kill();
        }
    });
}

#[test]
fn a_note_whose_answer_is_lost_is_a_duplicate_when_it_is_sent_again() {
    with_database(async |database| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = crate::local::durability::local(dir.path(), 8);
        command
            .env("LOCAL_BACKEND", database.proxy.url())
            .env("THREAT_MEMORY_STORAGE_USER", server::USER)
            .env("THREAT_MEMORY_STORAGE_PASSWORD", server::PASSWORD);
        let service = Service::start(command);
        let client = service.anonymous();
        let note = json!({"content": "APT28 uses Server Spade against banks."});
        database.proxy.cut("INSERT $new", Cut::After);
        let answer = client.post("/api/remember", &note).await;
        assert_eq!(answer.header("retry-after"), Some("1"));
        answer.expect(503).await;
        assert!(!database.proxy.is_whole());
        let answer = eventually(|| async {
            let answer = client.post("/api/remember", &note).await;
            if answer.status() == 503 {
                Err("still refused")
            } else {
                Ok(answer)
            }
        })
        .await;
        let again = answer.expect(200).await;
        assert_eq!(again["status"], "duplicate", "{again}");
        assert_eq!(client.recall("Server Spade").await, [text(&again, "note_id")]);
        service.kill();
    });
}
