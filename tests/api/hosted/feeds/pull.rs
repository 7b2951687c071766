//! Pulls of a well-behaved collection.

use serde_json::json;

use super::server::{Server, TAXII};
use super::{BATCHES, FEEDS, PAGE, all, allowing, batch_path, ids, item_of, tools};
use crate::helpers::{TestApp, keys_of, run, settings};
use crate::process::started_once;
use crate::stix::{object, relationship, statement, text, version, with};

#[test]
fn a_pull_stages_every_page_in_order() {
    run(async {
        let app = TestApp::shared().await;
        let objects = tools(25);
        let server = Server::start(&objects).await;
        let feed = app.admin.feed_of(&server).await;
        let answer = app.admin.pulls(&feed).await;
        let location = answer.header("location").map(str::to_owned);
        let answer = answer.expect(201).await;
        assert_eq!(keys_of(&answer), ["batch", "items"]);
        let batch = &answer["batch"];
        assert_eq!(location.unwrap(), batch_path(text(batch, "id")));
        for (field, want) in [
            ("input_kind", json!("taxii_2_1_pull")),
            ("feed_source_id", json!(feed)),
            ("status", json!("review")),
            ("default_tlp", json!("TLP:GREEN")),
            ("item_count", json!(25)),
            ("pending", json!(25)),
            ("pages", json!(3)),
            ("objects", json!(25)),
            ("unchanged", json!(0)),
            ("unreadable", json!(0)),
        ] {
            assert_eq!(batch[field], want, "{field} in {batch}");
        }
        assert!(batch["bytes"].as_u64().unwrap() > 25 * 100, "{batch}");
        let items = answer["items"].as_array().unwrap();
        assert_eq!(all(items, "stix_id"), ids(&objects));
        assert_eq!(all(items, "name"), all(&objects, "name"));
        let item = &items[0];
        for (field, want) in [
            ("batch_id", batch["id"].clone()),
            ("stix_type", json!("tool")),
            ("change", json!("new")),
            ("status", json!("pending")),
            ("proposed_tlp", json!("TLP:GREEN")),
            ("duplicate_candidates", json!([])),
        ] {
            assert_eq!(item[field], want, "{field} in {item}");
        }
        assert!(item.get("object").is_none(), "{item}");
        let read = app.admin.get(&super::item_path(item)).await.expect(200).await;
        assert_eq!(read["item"]["object"], objects[0]);

        // Nothing becomes a node without a commit.
        let found = app.admin.search("Feed Tool 00000").await;
        assert!(found["results"].as_array().unwrap().is_empty(), "{found}");
        let known = app.admin.get(&format!("{FEEDS}/{feed}")).await.expect(200).await;
        assert!(known["feed"]["last_pull_at"].is_string(), "{known}");
        assert!(known["feed"].get("running_batch_id").is_none(), "{known}");
        app.stop().await;
    });
}

#[test]
fn the_same_parameters_are_sent_page_by_page_and_nothing_else() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&tools(25)).await;
        let url = format!(
            "{}?match[type]=tool&added_after=2023-01-01T00:00:00Z",
            server.url()
        );
        let feed = app.admin.feed_at(&url, json!({})).await;
        // No request may return the cookie.
        server.misbehave(|_, reply| reply.header("set-cookie", "session=1; Path=/"));
        assert_eq!(app.admin.pull(&feed).await["item_count"], 25);
        let requests = server.requests();
        let pages: Vec<_> = requests.iter().filter(|request| request.of_objects()).collect();
        assert_eq!(pages.len(), 3);
        for (at, request) in pages.iter().enumerate() {
            let mut query = request.query.clone();
            assert_eq!(query.remove("next"), (at > 0).then(|| (at * PAGE).to_string()));
            assert_eq!(query.remove("limit"), Some(PAGE.to_string()));
            assert_eq!(query.remove("match[type]"), Some("tool".into()));
            assert_eq!(query.remove("added_after"), Some("2023-01-01T00:00:00Z".into()));
            assert!(query.is_empty(), "{query:?}");
        }
        for request in &requests {
            let mut names: Vec<&str> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            assert_eq!(
                names,
                ["accept", "accept-encoding", "host", "user-agent"],
                "{request:?}"
            );
            assert!(
                request.headers.contains(&("accept".into(), TAXII.into())),
                "{request:?}"
            );
        }
        app.stop().await;
    });
}

#[test]
fn a_second_pull_brings_only_what_is_new() {
    run(async {
        let app = TestApp::shared().await;
        let objects = tools(25);
        let server = Server::start(&objects).await;
        let feed = app.admin.feed_of(&server).await;
        let first = app.admin.pull(&feed).await;
        // The feed's commits don't change what counts as new.
        let staged = app.admin.items(text(&first, "id")).await;
        app.admin
            .commit_items(text(&first, "id"), Some(&[text(&staged[0], "id")]))
            .await;

        let requests = server.requests().len();
        let nothing = app.admin.pull(&feed).await;
        // The last object comes again: others may have been added at its date.
        for (field, want) in [("item_count", 0), ("objects", 1), ("unchanged", 1)] {
            assert_eq!(nothing[field], want, "{field} in {nothing}");
        }
        assert_eq!(nothing["status"], "committed", "{nothing}");
        let asked = &server.requests()[requests];
        assert_eq!(
            asked.query["added_after"]
                .parse::<chrono::DateTime<chrono::Utc>>()
                .unwrap()
                .to_rfc3339(),
            "2024-01-01T00:00:23+00:00"
        );

        let new = tools(3);
        let newer = [
            version(&objects[0], 2024, json!({})),
            version(&objects[1], 2025, json!({"name": "Renamed"})),
        ];
        let older = version(&objects[2], 2019, json!({"created": "2018-01-01T00:00:00.000Z"}));
        server.add(&new);
        server.add(&newer);
        server.add(&[older, objects[3].clone()]);
        let second = app.admin.pull(&feed).await;
        for (field, want) in [("objects", 8), ("item_count", 5), ("unchanged", 3), ("pages", 1)] {
            assert_eq!(second[field], want, "{field} in {second}");
        }
        let items = app.admin.items(text(&second, "id")).await;
        for object in &new {
            assert_eq!(item_of(&items, object)["change"], "new");
        }
        for object in &newer {
            // One was committed before, the other is only staged.
            assert_eq!(item_of(&items, object)["change"], "update");
            assert_eq!(item_of(&items, object)["name"], object["name"]);
        }
        app.stop().await;
    });
}

/// What another route brought into the workspace counts as well.
#[test]
fn objects_of_the_workspace_are_compared_too() {
    run(async {
        let app = TestApp::shared().await;
        let objects = tools(3);
        app.admin.ingest(json!(objects[..2])).await;
        let newer = version(&objects[1], 2025, json!({}));
        let server = Server::start(&[objects[0].clone(), newer.clone(), objects[2].clone()]).await;
        let batch = app.admin.pull(&app.admin.feed_of(&server).await).await;
        assert_eq!(
            (&batch["item_count"], &batch["unchanged"]),
            (&json!(2), &json!(1))
        );
        let items = app.admin.items(text(&batch, "id")).await;
        assert_eq!(item_of(&items, &newer)["change"], "update");
        assert_eq!(item_of(&items, &objects[2])["change"], "new");
        app.stop().await;
    });
}

/// Several versions of one object, on one page and on two.
#[test]
fn the_newest_version_wins() {
    run(async {
        let app = TestApp::shared().await;
        let mut objects = tools(PAGE - 2);
        let first = object("tool", "Versions On One Page");
        let second = object("tool", "Versions On Two Pages");
        objects.insert(0, version(&first, 2024, json!({})));
        objects.insert(1, first.clone());
        objects.push(second.clone());
        objects.push(version(&second, 2023, json!({})));
        let server = Server::start(&objects).await;
        let batch = app.admin.pull(&app.admin.feed_of(&server).await).await;
        let items = app.admin.items(text(&batch, "id")).await;
        let versions = |of: &serde_json::Value| -> Vec<(String, String)> {
            let of = items.iter().filter(|item| item["stix_id"] == of["id"]);
            of.map(|item| {
                (
                    text(item, "modified")[..4].to_owned(),
                    text(item, "change").to_owned(),
                )
            })
            .collect()
        };
        assert_eq!(versions(&first), [("2024".to_owned(), "new".to_owned())]);
        let kept = versions(&second);
        assert_eq!(kept.last().unwrap().0, "2023", "{kept:?}");
        app.stop().await;
    });
}

/// Without the headers of the standard the manifest tells how far a pull has come.
#[test]
fn a_server_without_date_headers_is_read_on_by_its_manifest() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&tools(15)).await;
        server.misbehave(|_, reply| {
            reply
                .without_header("x-taxii-date-added-first")
                .without_header("x-taxii-date-added-last")
        });
        let feed = app.admin.feed_of(&server).await;
        assert_eq!(app.admin.pull(&feed).await["item_count"], 15);
        server.add(&tools(1));
        let second = app.admin.pull(&feed).await;
        assert_eq!(
            (&second["objects"], &second["item_count"]),
            (&json!(2), &json!(1))
        );
        app.stop().await;
    });
}

#[test]
fn what_is_not_staged_is_counted_with_the_reason() {
    run(async {
        let app = TestApp::shared().await;
        let tool = object("tool", "Kept");
        let objects = [
            tool.clone(),
            with(object("tool", "Broken"), json!({"name": 7})),
            object("grouping", "Without A Context"),
            json!({"type": "tool"}),
            statement("a marking"),
            relationship(&tool, "uses", &tool),
        ];
        let server = Server::start(&objects).await;
        let batch = app.admin.pull(&app.admin.feed_of(&server).await).await;
        assert_eq!((&batch["objects"], &batch["item_count"]), (&json!(6), &json!(2)));
        let skipped = batch["skipped_by_type"].as_object().unwrap();
        let counts: Vec<(&str, &serde_json::Value)> = skipped
            .iter()
            .map(|(kind, skipped)| (kind.as_str(), &skipped["count"]))
            .collect();
        let want = [
            ("grouping", &json!(1)),
            ("marking-definition", &json!(1)),
            ("tool", &json!(2)),
        ];
        assert_eq!(counts, want, "{batch}");
        assert_eq!(skipped["marking-definition"]["kept"], 1, "{batch}");
        assert_eq!(batch["skipped_objects"].as_array().unwrap().len(), 3, "{batch}");
        app.stop().await;
    });
}

#[test]
fn an_empty_collection_is_no_failure() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&[]).await;
        let feed = app.admin.feed_of(&server).await;
        for _ in 0..2 {
            let batch = app.admin.pull(&feed).await;
            assert_eq!((&batch["item_count"], &batch["pages"]), (&json!(0), &json!(1)));
        }
        server.add(&tools(1));
        assert_eq!(app.admin.pull(&feed).await["item_count"], 1);
        app.stop().await;
    });
}

#[test]
fn batches_are_listed_newest_first() {
    run(async {
        let app = TestApp::shared().await;
        let servers = [Server::start(&tools(1)).await, Server::start(&tools(2)).await];
        let feeds = [
            app.admin.feed_of(&servers[0]).await,
            app.admin.feed_of(&servers[1]).await,
        ];
        let mut made = Vec::new();
        for at in [0, 1, 0] {
            made.insert(0, text(&app.admin.pull(&feeds[at]).await, "id").to_owned());
        }
        let listed = async |query: &str| -> Vec<String> {
            let answer = app
                .admin
                .get(&format!("{BATCHES}{query}"))
                .await
                .expect(200)
                .await;
            let batches = answer["batches"].as_array().unwrap();
            assert_eq!(answer["count"], batches.len());
            batches.iter().map(|batch| text(batch, "id").to_owned()).collect()
        };
        assert_eq!(listed("").await, made);
        assert_eq!(listed("?limit=1&offset=1").await, made[1..2]);
        assert_eq!(listed(&format!("?feed={}", feeds[1])).await, made[1..2]);
        // The last pull brought nothing, so nothing is left to decide.
        assert_eq!(listed("?status=review").await, made[1..]);
        assert!(listed("?status=failed").await.is_empty());
        for wrong in ["?limit=0", "?limit=1001", "?status=done", "?feed=x", "?offset=-1"] {
            app.admin
                .get(&format!("{BATCHES}{wrong}"))
                .await
                .refused(400)
                .await;
        }
        app.stop().await;
    });
}

/// A pull that failed may be resumed, or a new one goes on where it ended.
#[test]
fn a_new_pull_goes_on_after_a_failed_one() {
    run(async {
        let app = TestApp::shared().await;
        let objects = tools(3 * PAGE);
        let server = Server::start(&objects).await;
        server.misbehave(|request, reply| {
            if request.number < 2 {
                reply
            } else {
                reply.with_body("{")
            }
        });
        let feed = app.admin.feed_of(&server).await;
        app.admin.pulls(&feed).await.refused(502).await;
        server.behave();
        let second = app.admin.pull(&feed).await;
        assert_eq!(second["item_count"], PAGE, "{second}");
        let listed = app.admin.get(BATCHES).await.expect(200).await;
        let first = text(&listed["batches"][1], "id");
        let mut staged = app.admin.items(first).await;
        staged.extend(app.admin.items(text(&second, "id")).await);
        assert_eq!(all(&staged, "stix_id"), ids(&objects));
        // Nothing is left for the failed one, which ends well.
        let resumed = app
            .admin
            .post(&format!("{}/resume", batch_path(first)), &json!({}))
            .await;
        assert_eq!(resumed.expect(200).await["batch"]["item_count"], 2 * PAGE);
        app.stop().await;
    });
}

/// The allow-list may be narrowed after a feed was registered.
#[test]
fn a_feed_that_is_no_longer_allowed_is_not_pulled() {
    run(async {
        let dir = started_once();
        let storage = format!("surrealkv://{}", dir.path().display());
        let app = TestApp::with(allowing(settings(&storage))).await;
        let server = Server::start(&tools(1)).await;
        let feed = app.admin.feed_of(&server).await;
        app.stop().await;
        let mut settings = allowing(settings(&storage));
        settings.feeds.allowed_hosts = vec!["feeds.example.com".into()];
        let app = TestApp::with(settings).await;
        let error = app.admin.pulls(&feed).await.refused(400).await;
        assert!(error.contains("(host-not-allowed)"), "{error}");
        assert!(server.requests().is_empty());
        app.stop().await;
    });
}
