//! Lists of staging batches and of recall sessions: newest first, page by page, and only what the caller may see.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::hosted::staging::{FOUND, TEXT, entity};
use crate::stix::{object, text, with};

const OPEN: &str = "TLP:RED";

async fn clear(client: &Client, ceiling: &str) {
    let change = json!({"tlp_ceiling": ceiling, "elevated_clearance": true});
    client.settings(change).await;
}

async fn batches(client: &Client, query: &str) -> Vec<Value> {
    let answer = client
        .get(&format!("/api/ingest/batch{query}"))
        .await
        .expect(200)
        .await;
    let batches = answer["batches"].as_array().unwrap();
    assert_eq!(answer["count"], batches.len(), "{answer}");
    batches.clone()
}

async fn sessions(client: &Client, query: &str) -> Vec<Value> {
    let answer = client
        .get(&format!("/api/recall/sessions{query}"))
        .await
        .expect(200)
        .await;
    let sessions = answer["sessions"].as_array().unwrap();
    assert_eq!(answer["count"], sessions.len(), "{answer}");
    sessions.clone()
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| text(row, "id")).collect()
}

/// The counts of a listed batch: pending, accepted, rejected, merged, uncertain, committed.
fn counts(batch: &Value) -> [u64; 6] {
    let of = |status: &str| batch["entities"][status].as_u64().unwrap();
    [
        "pending",
        "accepted",
        "rejected",
        "merged",
        "uncertain",
        "committed",
    ]
    .map(of)
}

#[test]
fn batches_are_listed_newest_first_and_in_one_state_page_by_page() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        assert_eq!(batches(admin, "").await, [] as [Value; 0]);
        let mut made = Vec::new();
        for number in 0..5 {
            let preview = admin
                .preview(&json!({"text": format!("{TEXT} ({number})")}))
                .await;
            made.insert(0, text(&preview, "batch_id").to_owned());
        }
        for at in [1, 3] {
            let filter = json!({"batch_id": made[at]});
            let accept = json!({"filter": filter, "status": "accepted"});
            admin
                .patch("/api/ingest/staging", &accept)
                .await
                .expect(200)
                .await;
            admin.commit(&json!(made[at])).await;
        }
        let all = batches(admin, "").await;
        assert_eq!(ids(&all), made);
        for (at, batch) in all.iter().enumerate() {
            let whole = admin.batch(&batch["id"]).await["batch"].clone();
            for field in [
                "status",
                "source_type",
                "ingest_mode",
                "created_at",
                "committed_at",
            ] {
                assert_eq!(batch[field], whole[field], "{field}");
            }
            let all = FOUND.len() as u64;
            let want = if at % 2 == 1 {
                [0, 0, 0, 0, 0, all]
            } else {
                [all, 0, 0, 0, 0, 0]
            };
            assert_eq!(counts(batch), want, "{batch}");
        }
        for (state, places) in [("committed", vec![1, 3]), ("open", vec![0, 2, 4])] {
            let want: Vec<&str> = places.iter().map(|at| made[*at].as_str()).collect();
            let found = batches(admin, &format!("?status={state}")).await;
            assert_eq!(ids(&found), want, "{state}");
            for (offset, want) in want.iter().enumerate() {
                let page = batches(admin, &format!("?status={state}&limit=1&offset={offset}")).await;
                assert_eq!(ids(&page), [*want], "{state} from {offset}");
            }
        }
        let pages = [
            batches(admin, "?limit=2").await,
            batches(admin, "?limit=9&offset=2").await,
        ]
        .concat();
        assert_eq!(ids(&pages), made);
        for (query, field) in [
            ("?status=done", "status"),
            ("?limit=201", "limit"),
            ("?state=open", "state"),
        ] {
            let refusal = admin
                .get(&format!("/api/ingest/batch{query}"))
                .await
                .refused(400)
                .await;
            assert!(refusal.contains(field), "{refusal}");
        }
        let other = app.workspace("elsewhere").await;
        assert_eq!(batches(&other, "").await, [] as [Value; 0]);
        app.stop().await;
    });
}

#[test]
fn a_listed_batch_tells_nothing_of_what_is_hidden() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        clear(admin, OPEN).await;
        let green = json!({"text": TEXT, "default_tlp": "GREEN"});
        let mixed = admin.preview(&green).await;
        admin.preview(&json!({"text": TEXT, "default_tlp": "RED"})).await;
        admin
            .decide(
                entity(&mixed, "X-Agent"),
                json!({"status": "pending", "resolved_tlp": "RED"}),
            )
            .await;
        let accept = json!({"filter": {"batch_id": mixed["batch_id"]}, "status": "accepted"});
        assert_eq!(batches(admin, "").await.len(), 2);
        clear(admin, "TLP:AMBER").await;
        let seen = batches(admin, "").await;
        assert_eq!(
            ids(&seen),
            [text(&mixed, "batch_id")],
            "the RED one is not listed"
        );
        let all = FOUND.len() as u64;
        assert_eq!(counts(&seen[0]), [all - 1, 0, 0, 0, 0, 0]);
        // Committed for those who see no more, and open for those who do.
        admin
            .patch("/api/ingest/staging", &accept)
            .await
            .expect(200)
            .await;
        admin.commit(&mixed["batch_id"]).await;
        let seen = batches(admin, "?status=committed").await;
        assert_eq!(seen.len(), 1);
        assert_eq!(counts(&seen[0]), [0, 0, 0, 0, 0, all - 1]);
        assert_eq!(batches(admin, "?status=open").await, [] as [Value; 0]);
        clear(admin, OPEN).await;
        let seen = batches(admin, "?status=open").await;
        assert_eq!(seen.len(), 2);
        assert_eq!(counts(&seen[1]), [1, 0, 0, 0, 0, all - 1]);
        assert_eq!(batches(admin, "?status=committed").await, [] as [Value; 0]);
        app.stop().await;
    });
}

#[test]
fn sessions_are_listed_to_those_who_searched_as_they_may_see_them_now() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        clear(admin, OPEN).await;
        let red = with(object("tool", "Heron Red"), json!({"x_mitre_tlp": "TLP:RED"}));
        admin.ingest(json!([object("tool", "Heron Green"), red])).await;
        let mut made = Vec::new();
        for query in ["Heron", "Heron Green", "Heron Red"] {
            made.insert(0, text(&admin.search(query).await, "recall_id").to_owned());
        }
        let viewer = app.user("viewer").await;
        let own = viewer.search("Heron").await;
        let all = sessions(admin, "").await;
        assert_eq!(ids(&all), made, "newest first, and nobody else's");
        assert_eq!(ids(&sessions(&viewer, "").await), [text(&own, "recall_id")]);
        let pages = [
            sessions(admin, "?limit=1").await,
            sessions(admin, "?limit=5&offset=1").await,
        ]
        .concat();
        assert_eq!(pages, all);
        for ceiling in [OPEN, "TLP:AMBER"] {
            clear(admin, ceiling).await;
            for listed in sessions(admin, "").await {
                let path = format!("/api/recall/sessions/{}", text(&listed, "id"));
                let read = admin.get(&path).await.expect(200).await;
                assert_eq!(listed, read, "{ceiling}");
                assert_eq!(
                    listed["has_red_node"],
                    ceiling == OPEN && read["node_ids"].as_array().unwrap().len() == 2
                );
            }
        }
        admin
            .get("/api/recall/sessions?limit=101")
            .await
            .refused(400)
            .await;
        let other = app.workspace("elsewhere").await;
        assert_eq!(sessions(&other, "").await, [] as [Value; 0]);
        app.stop().await;
    });
}
