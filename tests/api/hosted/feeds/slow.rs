//! Pulls from a slow server: progress shows while they run, and nothing else waits for them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::{eventually, until};

use super::server::Server;
use super::{BATCHES, FEEDS, PAGE, all, allowing, batch_path, ids, tools};
use crate::helpers::{Client, TestApp, run, settings};
use crate::process::started_once;
use crate::stix::text;

/// A service that tells about a running pull after a moment.
pub(super) async fn prompt(more: impl FnOnce(&mut threat_memory::config::Settings)) -> TestApp {
    let mut settings = allowing(settings("mem://"));
    settings.feeds.timeout_ms = 60_000;
    settings.feeds.answer_ms = 200;
    more(&mut settings);
    TestApp::with(settings).await
}

/// Waits until a batch has so many pages.
async fn at_page(client: &Client, batch: &str, pages: usize) -> Value {
    eventually(|| async {
        let batch = client.feed_batch(batch).await;
        if batch["pages"] == pages {
            Ok(batch)
        } else {
            Err(batch)
        }
    })
    .await
}

#[test]
fn progress_shows_while_a_pull_runs() {
    run(async {
        let app = prompt(|_| {}).await;
        let objects = tools(3 * PAGE);
        let server = Server::start(&objects).await;
        server.allow(0);
        let feed = app.admin.feed_of(&server).await;
        let started = Instant::now();
        let answer = app.admin.pulls(&feed).await.expect(201).await;
        let took = started.elapsed();
        assert!(
            took >= Duration::from_millis(200) && took < Duration::from_secs(10),
            "{took:?}"
        );
        let batch = answer["batch"].clone();
        assert_eq!(
            (&batch["status"], &batch["pages"]),
            (&json!("pulling"), &json!(0)),
            "{batch}"
        );
        assert!(batch.get("ended_at").is_none(), "{batch}");
        let id = text(&batch, "id");
        let known = app.admin.get(&format!("{FEEDS}/{feed}")).await.expect(200).await;
        assert_eq!(known["feed"]["running_batch_id"], id);
        assert!(known["feed"].get("last_pull_at").is_none(), "{known}");

        let mut bytes = 0;
        for pages in 1..=2 {
            server.allow(pages);
            let batch = at_page(&app.admin, id, pages).await;
            assert_eq!(batch["status"], "pulling");
            assert_eq!(
                (&batch["objects"], &batch["item_count"]),
                (&json!(pages * PAGE), &json!(pages * PAGE))
            );
            assert!(batch["bytes"].as_u64().unwrap() > bytes, "{batch}");
            bytes = batch["bytes"].as_u64().unwrap();
        }
        // Items can be decided and committed while the pull goes on.
        let items = app.admin.items(id).await;
        let done = app.admin.commit_items(id, Some(&[text(&items[0], "id")])).await;
        assert_eq!(done["nodes_created"], 1, "{done}");
        server.release();
        let batch = app.admin.pulled(id).await;
        assert_eq!(
            (&batch["status"], &batch["committed"]),
            (&json!("review"), &json!(1))
        );
        assert_eq!(all(&app.admin.items(id).await, "stix_id"), ids(&objects));
        app.stop().await;
    });
}

#[test]
fn a_feed_has_one_pull_at_a_time_and_others_go_on() {
    run(async {
        let app = prompt(|_| {}).await;
        let (slow, quick) = (Server::start(&tools(1)).await, Server::start(&tools(2)).await);
        slow.allow(0);
        let feed = app.admin.feed_of(&slow).await;
        let answer = app.admin.pulls(&feed).await.expect(201).await;
        let running = text(&answer["batch"], "id");
        for _ in 0..2 {
            let error = app.admin.pulls(&feed).await.refused(409).await;
            assert!(error.contains("is being pulled"), "{error}");
        }
        let resume = format!("{}/resume", batch_path(running));
        app.admin.post(&resume, &json!({})).await.refused(409).await;

        let other = app.admin.feed_of(&quick).await;
        assert_eq!(app.admin.pull(&other).await["item_count"], 2);
        let foreign = app.workspace("elsewhere").await;
        let theirs = foreign.feed_of(&quick).await;
        assert_eq!(foreign.pull(&theirs).await["item_count"], 2);
        app.admin.ingest(json!(tools(1))).await;
        app.admin.search("anything").await;

        // A change of the feed neither ends its pull nor allows another one.
        let path = format!("{FEEDS}/{feed}");
        app.admin
            .patch(&path, &json!({"name": "Renamed"}))
            .await
            .expect(200)
            .await;
        app.admin.pulls(&feed).await.refused(409).await;
        slow.release();
        assert_eq!(app.admin.pulled(running).await["item_count"], 1);
        assert_eq!(app.admin.pull(&feed).await["item_count"], 0);
        app.stop().await;
    });
}

/// Of many pulls that are asked for at once, one runs.
#[test]
fn of_simultaneous_pulls_one_runs() {
    run(async {
        let app = prompt(|_| {}).await;
        let server = Server::start(&tools(PAGE)).await;
        server.allow(0);
        let feed = app.admin.feed_of(&server).await;
        let asking = (0..8).map(|_| app.admin.pulls(&feed));
        let answers = futures_util::future::join_all(asking).await;
        let mut statuses: Vec<u16> = answers.iter().map(crate::helpers::Answer::status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
        server.release();
        let listed = app.admin.get(BATCHES).await.expect(200).await;
        assert_eq!(listed["count"], 1);
        app.admin.pulled(text(&listed["batches"][0], "id")).await;
        app.stop().await;
    });
}

/// More pulls than may run at a time wait for their turn; none is lost.
#[test]
fn pulls_beyond_the_limit_wait_for_their_turn() {
    run(async {
        let app = prompt(|settings| settings.feeds.concurrent_pulls = 2).await;
        let mut servers = Vec::new();
        let mut batches = Vec::new();
        for _ in 0..4 {
            let server = Server::start(&tools(2)).await;
            server.allow(0);
            let feed = app.admin.feed_of(&server).await;
            let answer = app.admin.pulls(&feed).await.expect(201).await;
            assert_eq!(answer["batch"]["status"], "pulling");
            batches.push(text(&answer["batch"], "id").to_owned());
            servers.push(server);
        }
        let asked = || {
            servers
                .iter()
                .filter(|server| !server.requests().is_empty())
                .count()
        };
        until(|| asked() > 0).await;
        assert!(asked() <= 2, "{} pulls at a time", asked());
        servers.iter().for_each(Server::release);
        for batch in &batches {
            assert_eq!(app.admin.pulled(batch).await["item_count"], 2);
        }
        app.stop().await;
    });
}

/// A service that is stopped ends its pulls; they are resumed afterwards.
#[test]
fn a_stopped_service_leaves_pulls_that_can_be_resumed() {
    run(async {
        let dir = started_once();
        let storage = format!("surrealkv://{}", dir.path().display());
        let start = || async {
            let mut settings = allowing(settings(&storage));
            settings.feeds.answer_ms = 200;
            settings.feeds.timeout_ms = 60_000;
            TestApp::with(settings).await
        };
        let app = start().await;
        let objects = tools(3 * PAGE);
        let server = Server::start(&objects).await;
        server.allow(1);
        let feed = app.admin.feed_of(&server).await;
        let answer = app.admin.pulls(&feed).await.expect(201).await;
        let batch = text(&answer["batch"], "id").to_owned();
        at_page(&app.admin, &batch, 1).await;
        let started = Instant::now();
        app.stop().await;
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{:?}",
            started.elapsed()
        );

        server.release();
        let app = start().await;
        let failed = eventually(|| async {
            let batch = app.admin.feed_batch(&batch).await;
            if batch["status"] == "failed" {
                Ok(batch)
            } else {
                Err(batch)
            }
        })
        .await;
        assert!(text(&failed, "error").contains("interrupted"), "{failed}");
        assert_eq!(failed["item_count"], PAGE);
        let resume = format!("{}/resume", batch_path(&batch));
        app.admin.post(&resume, &json!({})).await.expect(200).await;
        app.admin.pulled(&batch).await;
        assert_eq!(all(&app.admin.items(&batch).await, "stix_id"), ids(&objects));
        app.stop().await;
    });
}
