//! The list of changes: everything once, in the order of the commits, and nothing that is hidden.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, encode, run};
use crate::stix::{object, relationship, text, version, with};

/// Reads the list from a position to its end, page by page.
async fn follow(client: &Client, since: &str, limit: usize) -> (Vec<Value>, String) {
    let (mut all, mut since) = (Vec::new(), since.to_owned());
    loop {
        let limit = limit.to_string();
        let query = encode(&[("since", &since), ("limit", &limit)]);
        let page = client
            .get(&format!("/api/changes?{query}"))
            .await
            .expect(200)
            .await;
        all.extend(page["changes"].as_array().unwrap().iter().cloned());
        let next = text(&page, "next").to_owned();
        if next == since {
            return (all, next);
        }
        since = next;
    }
}

/// What each change is of and what it is.
fn told(changes: &[Value]) -> Vec<(String, String)> {
    let of = |change: &Value| match change["node"]["name"].as_str() {
        Some(name) => name.to_owned(),
        None => change["relationship"]["relationship_type"]
            .as_str()
            .unwrap_or("?")
            .to_owned(),
    };
    changes
        .iter()
        .map(|change| (of(change), text(change, "kind").to_owned()))
        .collect()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter()
        .map(|(one, other)| ((*one).to_owned(), (*other).to_owned()))
        .collect()
}

#[test]
fn what_was_created_changed_rejected_and_restored_is_told_in_order() {
    run(async {
        let app = TestApp::shared().await;
        let (_, start) = follow(&app.admin, "0", 100).await;
        let group = with(
            object("intrusion-set", "Umber Heron"),
            json!({"description": "Steals maps."}),
        );
        let kit = object("tool", "Heron Kit");
        app.admin
            .ingest(json!([group, kit, relationship(&group, "uses", &kit)]))
            .await;
        let newer = version(&group, 2031, json!({"description": "Sells maps."}));
        app.admin.ingest(json!([newer])).await;
        // The same again changes nothing.
        app.admin.ingest(json!([newer])).await;
        let (changes, next) = follow(&app.admin, &start, 1).await;
        let want = pairs(&[
            ("Umber Heron", "created"),
            ("Heron Kit", "created"),
            ("uses", "created"),
            ("Umber Heron", "changed"),
        ]);
        assert_eq!(
            told(&changes).iter().collect::<HashSet<_>>(),
            want.iter().collect::<HashSet<_>>()
        );
        assert_eq!(changes.len(), 4);
        let last = &changes[3];
        assert_eq!(last["before"]["description"], "Steals maps.");
        assert_eq!(last["after"]["description"], "Sells maps.");
        assert_eq!(last["via"], "ingest.stix");
        let me = app.admin.get("/api/auth/me").await.expect(200).await;
        assert_eq!(last["by"], me["user"]["id"]);

        let id = text(&changes[0]["node"], "id");
        let path = format!("/api/nodes/{id}");
        for status in ["rejected", "active"] {
            app.admin
                .patch(&path, &json!({"status": status}))
                .await
                .expect(200)
                .await;
        }
        let (changes, end) = follow(&app.admin, &next, 100).await;
        let kinds: Vec<&str> = changes.iter().map(|change| text(change, "kind")).collect();
        assert_eq!(kinds, ["rejected", "restored"]);
        assert_eq!(changes[0]["via"], "node.correct");
        // Filters, and a list that was read to its end.
        let query = encode(&[("since", "0"), ("kind", "created"), ("node_type", "tool")]);
        let tools = app
            .admin
            .get(&format!("/api/changes?{query}"))
            .await
            .expect(200)
            .await;
        assert_eq!(
            told(tools["changes"].as_array().unwrap()),
            pairs(&[("Heron Kit", "created")])
        );
        assert_eq!(follow(&app.admin, &end, 5).await, (Vec::new(), end));
        app.stop().await;
    });
}

#[test]
fn hidden_writes_are_not_told_and_do_not_move_the_position() {
    run(async {
        let app = TestApp::shared().await;
        let open = json!({"tlp_ceiling": "RED", "elevated_clearance": true});
        let shut = json!({"tlp_ceiling": "GREEN", "elevated_clearance": false});
        app.admin.settings(open.clone()).await;
        let green = json!({"nodes": [{"name": "Heron Kit", "node_type": "tool", "tlp": "GREEN"}]});
        app.admin
            .post("/api/ingest/analyst", &green)
            .await
            .expect(201)
            .await;
        app.admin.settings(shut.clone()).await;
        let (before, position) = follow(&app.admin, "0", 100).await;

        app.admin.settings(open.clone()).await;
        let red = json!({"nodes": [{"name": "Umber Heron", "node_type": "actor", "tlp": "RED"}]});
        app.admin
            .post("/api/ingest/analyst", &red)
            .await
            .expect(201)
            .await;
        // A text of another source about what everybody sees.
        let said = json!({"collector": "c", "items": [{"title": "Heron Kit", "content": "A secret.", "item_type": "tool"}],
            "default_tlp": "TLP:RED"});
        app.admin.post("/api/ingest/osint", &said).await.expect(201).await;
        let (seen, _) = follow(&app.admin, &position, 100).await;
        assert_eq!(seen.len(), 2, "{seen:?}");
        app.admin.settings(shut.clone()).await;
        assert_eq!(follow(&app.admin, &position, 100).await, (Vec::new(), position));
        assert_eq!(follow(&app.admin, "0", 100).await.0, before);

        // What rises above a reader is told no more.
        app.admin.settings(open).await;
        let id = text(&before[0]["node"], "id");
        app.admin
            .patch(&format!("/api/nodes/{id}"), &json!({"tlp": "RED"}))
            .await
            .expect(200)
            .await;
        app.admin.settings(shut).await;
        assert!(follow(&app.admin, "0", 100).await.0.is_empty());
        app.stop().await;
    });
}

/// Readers that follow while others write miss nothing and see nothing twice; what they have at the end is the graph.
#[test]
fn changes_followed_beside_writers_give_the_graph() {
    run(async {
        let app = TestApp::shared().await;
        let (_, start) = follow(&app.admin, "0", 1000).await;
        let writers = (0..4).map(|writer| {
            let client = app.admin.clone();
            async move {
                for round in 0..6 {
                    let names = (0..3).map(|n| {
                        json!({"name": format!("Kit {writer} {}", (round + n) % 5),
                        "node_type": "tool", "confidence": f64::from(round + 1) / 10.0})
                    });
                    let body = json!({"nodes": names.collect::<Vec<_>>()});
                    client.post("/api/ingest/analyst", &body).await.expect(201).await;
                }
            }
        });
        let reader = async {
            let (mut all, mut since) = (Vec::new(), start.clone());
            for _ in 0..12 {
                let (changes, next) = follow(&app.admin, &since, 3).await;
                all.extend(changes);
                since = next;
            }
            (all, since)
        };
        let ((mut all, since), _) = tokio::join!(reader, futures_util::future::join_all(writers));
        let (rest, _) = follow(&app.admin, &since, 7).await;
        all.extend(rest);
        let (whole, _) = follow(&app.admin, &start, 1000).await;
        assert_eq!(all, whole);
        // Times grow with the order of the commits, however long each request waited for its turn.
        assert!(whole.is_sorted_by_key(|change| text(change, "at").to_owned()));

        // The last confidence that was told of each node is the one that it has.
        let mut confidence: HashMap<String, Value> = HashMap::new();
        for change in &whole {
            let id = text(&change["node"], "id").to_owned();
            match text(change, "kind") {
                "created" => assert!(confidence.insert(id, Value::Null).is_none(), "{change}"),
                "changed" => {
                    if let Some(after) = change["after"].get("confidence") {
                        *confidence.get_mut(&id).unwrap() = after.clone();
                    }
                }
                kind => panic!("{kind}"),
            }
        }
        assert_eq!(confidence.len(), 20);
        for (id, told) in confidence {
            let node = app.admin.get(&format!("/api/nodes/{id}")).await.expect(200).await;
            if !told.is_null() {
                assert_eq!(node["node"]["confidence"], told);
            }
        }
        app.stop().await;
    });
}

#[test]
fn times_and_positions_are_checked() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!([object("tool", "Heron Kit")])).await;
        let (all, end) = follow(&app.admin, "0", 100).await;
        let at = text(&all[all.len() - 1], "at").to_owned();
        for (since, until, want) in [
            ("2020-01-01", "", all.len()),
            ("2020-01-01", "2020-02-01", 0),
            ("2099-01-01", "", 0),
            (&at, "", 1),
            ("0", &end, all.len()),
        ] {
            let mut query = vec![("since", since), ("limit", "1000")];
            if !until.is_empty() {
                query.push(("until", until));
            }
            let page = app
                .admin
                .get(&format!("/api/changes?{}", encode(&query)))
                .await
                .expect(200)
                .await;
            assert_eq!(page["changes"].as_array().unwrap().len(), want, "{since} {until}");
        }
        let other = app.workspace("Other").await;
        for (client, query, field) in [
            (&app.admin, "since=yesterday", "since"),
            (&app.admin, "since=2021-01-01&until=2020-01-01", "since"),
            (&app.admin, "until=never", "until"),
            (&app.admin, "kind=gone", "kind"),
            (&app.admin, "node_type=gone", "node_type"),
            (&app.admin, "limit=0", "limit"),
            // A position is of one workspace.
            (&other, &format!("since={end}"), "since"),
        ] {
            let refused = client
                .get(&format!("/api/changes?{query}"))
                .await
                .refused(400)
                .await;
            assert!(refused.contains(field), "{query}: {refused}");
        }
        app.stop().await;
    });
}

#[test]
fn questions_for_what_changed_are_answered_from_the_list() {
    run(async {
        let app = TestApp::shared().await;
        let (group, kit) = (
            object("intrusion-set", "Umber Heron"),
            object("tool", "Heron Kit"),
        );
        let other = object("tool", "Sedge Tool");
        app.admin
            .ingest(json!([group, kit, other, relationship(&group, "uses", &kit)]))
            .await;
        let newest = json!({"nodes": [{"name": "Fen Crew", "node_type": "actor", "tlp": "GREEN"}]});
        app.admin
            .post("/api/ingest/analyst", &newest)
            .await
            .expect(201)
            .await;
        for mode in ["blended", "structured"] {
            let ask = async |question: &str| {
                let query = encode(&[("q", question), ("mode", mode), ("limit", "3")]);
                let found = app
                    .admin
                    .get(&format!("/api/recall/search?{query}"))
                    .await
                    .expect(200)
                    .await;
                crate::stix::names(&found)
                    .into_iter()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            let new = ask("What is new since yesterday?").await;
            assert_eq!(new[0], "Fen Crew", "{mode}: {new:?}");
            assert_eq!(new.len(), 3, "{mode}: {new:?}");
            let about = ask("What changed about Umber Heron this week?").await;
            let about: HashSet<&str> = about.iter().map(String::as_str).collect();
            assert!(
                about.is_superset(&HashSet::from(["Umber Heron", "Heron Kit"])),
                "{mode}: {about:?}"
            );
            assert!(!about.contains("Fen Crew"), "{mode}: {about:?}");
        }
        app.stop().await;
    });
}
