//! Pages that are odd without being wrong: too many, too large, with entries that are no objects, compressed.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::json;
use test_support::extent;

use super::hostile::gzip;
use super::server::{Reply, Server};
use super::{PAGE, all, allowing, batch_path, ids, tools};
use crate::helpers::{TestApp, run, settings};
use crate::stix::text;

#[test]
fn pages_that_lead_nowhere_end_the_pull() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&tools(PAGE)).await;
        server.misbehave(|_, reply| {
            reply.envelope(|body| {
                body["more"] = json!(true);
                body["next"] = json!("same");
            })
        });
        let feed = app.admin.feed_of(&server).await;
        let answer = app.admin.pulls(&feed).await;
        let error = answer.refused(502).await;
        assert!(error.contains("same page again and again"), "{error}");
        assert!(server.requests().len() < 100, "{}", server.requests().len());
        let listed = app
            .admin
            .get(&format!("/api/threat-intel/batches?feed={feed}"))
            .await
            .expect(200)
            .await;
        let batch = &listed["batches"][0];
        assert_eq!(
            (&batch["status"], &batch["item_count"]),
            (&json!("failed"), &json!(PAGE))
        );
        app.stop().await;

        // New objects on every page, for ever.
        let mut limited = allowing(settings("mem://"));
        limited.feeds.max_pages = 5;
        let app = TestApp::with(limited).await;
        server.misbehave(|request, _| {
            Reply::json(&json!({"objects": tools(1), "more": true, "next": format!("t{}", request.number)}))
        });
        let feed = app.admin.feed_of(&server).await;
        let error = app.admin.pulls(&feed).await.refused(502).await;
        assert!(error.contains("more than 5 pages"), "{error}");
        app.admin.get("/health").await.expect(200).await;
        app.stop().await;
    });
}

/// A collection with more pages than one pull may have is read in several.
#[test]
fn the_limit_of_pages_is_no_dead_end() {
    run(async {
        let mut limited = allowing(settings("mem://"));
        limited.feeds.max_pages = 3;
        let app = TestApp::with(limited).await;
        let objects = tools(7 * PAGE);
        let server = Server::start(&objects).await;
        let feed = app.admin.feed_of(&server).await;
        let error = app.admin.pulls(&feed).await.refused(502).await;
        assert!(error.contains("more than 3 pages"), "{error}");
        let listed = app
            .admin
            .get(&format!("/api/threat-intel/batches?feed={feed}"))
            .await
            .expect(200)
            .await;
        let batch = text(&listed["batches"][0], "id").to_owned();
        let resume = format!("{}/resume", batch_path(&batch));
        app.admin.post(&resume, &json!({})).await.refused(502).await;
        let last = app.admin.post(&resume, &json!({})).await.expect(200).await;
        assert_eq!(last["batch"]["status"], "review");
        assert_eq!(all(&app.admin.items(&batch).await, "stix_id"), ids(&objects));
        app.stop().await;
    });
}

/// Entries that are not objects are counted; the rest of the page is staged.
#[test]
fn entries_that_are_not_objects_are_skipped_alone() {
    run(async {
        let app = TestApp::shared().await;
        let objects = tools(2);
        let server = Server::start(&objects).await;
        server.misbehave(|request, reply| {
            if !request.of_objects() {
                return reply;
            }
            reply.envelope(|body| {
                let list = body["objects"].as_array_mut().unwrap();
                for odd in [
                    json!(null),
                    json!("tool"),
                    json!(7),
                    json!([[]]),
                    json!({}),
                    json!({"id": 7}),
                ] {
                    list.insert(1, odd);
                }
            })
        });
        let feed = app.admin.feed_of(&server).await;
        let batch = app.admin.pull(&feed).await;
        assert_eq!(
            (&batch["objects"], &batch["unreadable"]),
            (&json!(8), &json!(4)),
            "{batch}"
        );
        assert_eq!(
            all(&app.admin.items(text(&batch, "id")).await, "stix_id"),
            ids(&objects)
        );
        app.stop().await;
    });
}

#[test]
fn a_page_of_thousands_of_objects_is_staged() {
    run(async {
        let mut large = allowing(settings("mem://"));
        large.feeds.response_kib = 16 << 10;
        let app = TestApp::with(large).await;
        let mut objects = tools(extent(600, 10_000));
        for object in &mut objects {
            object["description"] = json!("x".repeat(1_000));
        }
        let server = Server::start(&[]).await;
        let page = json!({"objects": objects}).to_string();
        server.misbehave(move |_, reply| reply.with_body(page.clone()));
        let feed = app.admin.feed_of(&server).await;
        let started = Instant::now();
        let batch = app.admin.pull(&feed).await;
        println!("staged after {:?}", started.elapsed());
        assert_eq!(
            (&batch["pages"], &batch["item_count"]),
            (&json!(1), &json!(objects.len())),
            "{batch}"
        );
        assert_eq!(
            all(&app.admin.items(text(&batch, "id")).await, "stix_id"),
            ids(&objects)
        );
        app.stop().await;

        // With the usual limit the page is too large at any size that is asked for.
        let app = TestApp::shared().await;
        let feed = app.admin.feed_of(&server).await;
        let error = app.admin.pulls(&feed).await.refused(502).await;
        assert!(error.contains("larger than the limit of 524288 bytes"), "{error}");
        app.stop().await;
    });
}

/// A page that is too large is asked for again with fewer objects.
#[test]
fn a_smaller_page_is_asked_for_when_one_is_too_large() {
    run(async {
        let app = TestApp::shared().await;
        let mut objects = tools(25);
        for object in &mut objects[4..8] {
            object["description"] = json!("x".repeat(150 << 10));
        }
        let server = Server::start(&objects).await;
        let feed = app.admin.feed_of(&server).await;
        let batch = app.admin.pull(&feed).await;
        let items = app.admin.items(text(&batch, "id")).await;
        assert_eq!(all(&items, "stix_id"), ids(&objects));
        let limits: BTreeSet<String> = server
            .requests()
            .iter()
            .map(|r| r.query["limit"].clone())
            .collect();
        assert!(limits.len() > 1, "{limits:?}");
        app.stop().await;
    });
}

/// Compressed pages are read, and count with their full size.
#[test]
fn gzip_is_understood() {
    run(async {
        let app = TestApp::shared().await;
        let objects = tools(15);
        let server = Server::start(&objects).await;
        server.misbehave(|_, reply| {
            let packed = gzip(&reply.body);
            reply.header("content-encoding", "gzip").with_body(packed)
        });
        let batch = app.admin.pull(&app.admin.feed_of(&server).await).await;
        assert_eq!(batch["item_count"], 15);
        assert!(batch["bytes"].as_u64().unwrap() > 15 * 100, "{batch}");
        app.stop().await;
    });
}
