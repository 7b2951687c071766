//! What a feed, a user or a workspace brought goes with it, and the log keeps its entries without their texts.

use reqwest::Method;
use serde_json::{Value, json};

use super::erasure::{held, words_in};
use super::feeds::{BATCHES, FEEDS, allowing};
use super::merges::node_of;
use crate::helpers::{Answer, Client, PASSWORD, TestApp, run, settings};
use crate::process::started_once;
use crate::stix::{object, relationship, text, with};

const ERASURES: &str = "/api/admin/erasures";

/// Words of which no part comes twice, so that a compressed text holds them as they are.
const PERSON: &str = "kyrpghub";
const ASKED: &str = "vugnekax";
const FEED: &str = "qvxstwzj";
const TENANT: &str = "zulmedyt";
const NODE: &str = "wobnjfiz";
const WORDS: [&str; 5] = [PERSON, ASKED, FEED, TENANT, NODE];

impl Client {
    pub async fn delete_with(&self, path: &str, body: &Value) -> Answer {
        Answer(
            self.request(Method::DELETE, path)
                .json(body)
                .send()
                .await
                .unwrap(),
        )
    }
}

/// The metadata of the entries of an action, newest first.
async fn metadata(admin: &Client, action: &str) -> Vec<Value> {
    let entries = admin.audited(action).await.into_iter();
    entries.map(|entry| entry["metadata"].clone()).collect()
}

#[test]
fn a_user_goes_with_what_the_user_asked_wrote_and_staged() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = TestApp::durable(dir.path()).await;
        let admin = &app.admin;
        let email = format!("{PERSON}@example.com");
        let body = json!({"email": email, "password": PASSWORD, "role": "analyst"});
        let made = admin.post("/api/admin/users", &body).await.expect(201).await;
        let id = text(&made["user"], "id").to_owned();
        let user = app.anonymous().sign_in(&email, PASSWORD).await;
        app.anonymous().login(&email, "wrong").await.refused(401).await;
        let entry = json!({"nodes": [{"name": format!("Turbine {NODE}"), "node_type": "actor", "description": "by hand"}]});
        user.post("/api/ingest/analyst", &entry).await.expect(201).await;
        let kept = object("tool", "Turbine Tool");
        user.ingest(json!([kept.clone()])).await;
        let path = format!("/api/nodes/{}", node_of(admin, &kept).await);
        let change = json!({"description": format!("said {ASKED}"), "reason": PERSON});
        user.patch(&path, &change).await.expect(200).await;
        user.search(&format!("turbine {ASKED}")).await;
        user.get(&format!("/api/recall/semantic?q=turbine+{ASKED}"))
            .await
            .expect(200)
            .await;
        user.preview(&json!({"text": format!("{ASKED} talks to turbine.example.org")}))
            .await;
        let before = admin.audited("recall.search").await;
        assert_eq!(before[0]["metadata"]["query"], format!("turbine {ASKED}"));
        assert_eq!(before[0]["user_email"], email.as_str());
        let created = metadata(admin, "admin.user_create").await;
        assert_eq!(created[0]["email"], email.as_str());

        for (body, error) in [
            (json!({"user_id": uuid::Uuid::nil()}), "user_id: user not found"),
            (json!({"feed_id": id}), "feed_id: feed not found"),
        ] {
            assert_eq!(admin.post(ERASURES, &body).await.refused(404).await, error);
        }
        let own = admin.get("/api/auth/me").await.expect(200).await;
        let own = json!({"user_id": own["user"]["id"]});
        let refused = admin.post(ERASURES, &own).await.refused(400).await;
        assert!(refused.starts_with("user_id: must be another user"), "{refused}");
        let other = app.workspace("elsewhere").await;
        let body = json!({"user_id": id});
        other.post(ERASURES, &body).await.refused(404).await;
        let receipt = admin.erase(body.clone()).await;
        let removed = &receipt["removed"];
        let counts = ["users", "nodes", "staging_batches", "api_keys"].map(|key| removed[key].as_u64());
        assert_eq!(counts, [Some(1), Some(1), Some(1), Some(0)], "{receipt}");
        assert!(
            removed["sessions"].as_u64() >= Some(1) && removed["audit_texts"].as_u64() >= Some(2),
            "{receipt}"
        );

        user.get("/api/graph").await.refused(401).await;
        admin.post(ERASURES, &body).await.refused(404).await;
        assert_eq!(words_in(&app, &WORDS).await, Vec::<String>::new());
        // The entries stay, without the text; the address that nobody had an account of is one, too.
        let entries = admin.audited("recall.search").await;
        let entry = entries.iter().find(|entry| entry["id"] == before[0]["id"]);
        let entry = entry.unwrap();
        assert!(
            text(&entry["metadata"], "query_digest").starts_with("sha256:"),
            "{entry}"
        );
        assert_eq!(entry["metadata"]["query"], Value::Null);
        assert_eq!(
            (&entry["user_email"], &entry["user_id"]),
            (&Value::Null, &json!(id))
        );
        let chain = admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(chain["valid"], true, "{chain}");
        let node = admin.get(&path).await.expect(200).await;
        assert_eq!(node["node"]["name"], "Turbine Tool");
        app.stop().await;
        assert_eq!(held(dir.path(), &WORDS), Vec::<String>::new());
    });
}

#[test]
fn a_feed_goes_with_what_no_other_source_brought() {
    run(async {
        let dir = started_once();
        let url = format!("surrealkv://{}", dir.path().display());
        let app = TestApp::with(allowing(settings(&url))).await;
        let admin = &app.admin;
        let body = json!({"name": format!("feed {FEED}"), "description": format!("about {FEED}"),
            "connector_config_ref": format!("http://127.0.0.1/{FEED}/collections/x/objects/"),
            "default_tlp": "TLP:GREEN", "redistribution_state": "prohibited"});
        let made = admin.post(FEEDS, &body).await.expect(201).await;
        let feed = text(&made["feed"], "id").to_owned();
        let own = with(
            object("malware", &format!("Turbine {FEED}")),
            json!({"is_family": false}),
        );
        let (shared, known) = (object("tool", "Turbine Shared"), object("tool", "Turbine Known"));
        let link = with(
            relationship(&shared, "uses", &known),
            json!({"description": format!("says {FEED}")}),
        );
        let of_own = relationship(&own, "uses", &shared);
        let absent = object("tool", "Turbine Absent");
        let waiting = with(
            relationship(&own, "uses", &absent),
            json!({"description": format!("waits {FEED}")}),
        );
        // It waits for review.
        let staged = object("tool", &format!("Turbine staged {FEED}"));
        let objects = json!([own, shared, known, link, of_own, waiting, staged]);
        let upload = json!({"input_kind": "stix_bundle", "feed_source_id": feed, "bundle": objects});
        let upload = admin.post(BATCHES, &upload).await.expect(201).await;
        let batch = format!("{BATCHES}/{}", text(&upload["batch"], "id"));
        for item in upload["items"].as_array().unwrap() {
            if !text(item, "name").starts_with("Turbine staged") {
                let path = format!("{batch}/items/{}", text(item, "id"));
                let accepted = json!({"status": "accepted"});
                admin.post(&path, &accepted).await.expect(200).await;
            }
        }
        admin
            .post(&format!("{batch}/commit"), &json!({}))
            .await
            .expect(200)
            .await;
        // These came from elsewhere, too.
        admin.ingest(json!([shared, known])).await;
        let found = admin.search(&format!("turbine {FEED}")).await;
        assert!(found["results"].as_array().unwrap().len() >= 2, "{found}");

        let body = json!({"feed_id": feed});
        let other = app.workspace("elsewhere").await;
        other.post(ERASURES, &body).await.refused(404).await;
        let receipt = admin.erase(body.clone()).await;
        let removed = &receipt["removed"];
        let counts = ["feeds", "nodes", "relationships"].map(|key| removed[key].as_u64().unwrap());
        assert_eq!(counts, [1, 1, 2], "{receipt}");
        let counts = ["feed_items", "waiting_relationships"].map(|key| removed[key].as_u64().unwrap());
        assert!(counts[0] >= 6 && counts[1] <= 1, "{receipt}");
        assert_eq!(words_in(&app, &WORDS).await, Vec::<String>::new());
        admin.post(ERASURES, &body).await.refused(404).await;
        admin.get(&format!("{FEEDS}/{feed}")).await.refused(404).await;
        for left in ["Turbine Shared", "Turbine Known"] {
            assert_eq!(admin.search(left).await["results"][0]["name"], left);
        }
        let chain = admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(chain["valid"], true, "{chain}");
        app.stop().await;
        assert_eq!(held(dir.path(), &WORDS), Vec::<String>::new());
    });
}

#[test]
fn a_workspace_goes_with_all_that_is_in_it() {
    run(async {
        let dir = started_once();
        let url = format!("surrealkv://{}", dir.path().display());
        let app = TestApp::with(allowing(settings(&url))).await;
        let admin = &app.admin;
        let name = format!("Tenant {TENANT}");
        let tenant = app.workspace(&name).await;
        tenant
            .settings(json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true}))
            .await;
        let hidden = with(
            object("malware", &format!("Turbine {NODE}")),
            json!({"x_mitre_tlp": "TLP:RED"}),
        );
        let tool = object("tool", &format!("Tool {NODE}"));
        let link = relationship(&hidden, "uses", &tool);
        tenant.ingest(json!([hidden, tool, link])).await;
        tenant.search(&format!("turbine {ASKED}")).await;
        let (_, key) = tenant.add_key(&["read"]).await;
        let key = app.anonymous().with_header("x-api-key", &key);
        key.get("/api/graph").await.expect(200).await;
        let feed = json!({"name": format!("feed {FEED}"), "connector_config_ref": "http://127.0.0.1/collections/x/objects/",
            "default_tlp": "TLP:GREEN", "redistribution_state": "allowed"});
        tenant.post(FEEDS, &feed).await.expect(201).await;
        tenant
            .preview(&json!({"text": format!("{ASKED} talks to turbine.example.org")}))
            .await;
        let kept = object("tool", "Kept Tool");
        admin.ingest(json!([kept])).await;

        let me = tenant.get("/api/auth/me").await.expect(200).await;
        let id = text(&me["workspace"], "id").to_owned();
        let path = format!("/api/admin/workspaces/{id}");
        let right = json!({"name": name});
        let own = admin.get("/api/auth/me").await.expect(200).await;
        let own = &own["workspace"];
        let own_path = format!("/api/admin/workspaces/{}", text(own, "id"));
        tenant.delete_with(&path, &right).await.refused(403).await;
        let wrong = json!({"name": "another"});
        let refused = admin.delete_with(&path, &wrong).await.refused(400).await;
        assert!(refused.starts_with("name: must be the name"), "{refused}");
        admin.delete_with(&path, &json!({})).await.refused(400).await;
        let nobody = format!("/api/admin/workspaces/{}", uuid::Uuid::nil());
        admin.delete_with(&nobody, &right).await.refused(404).await;
        admin
            .delete_with(&own_path, &json!({"name": own["name"]}))
            .await
            .refused(409)
            .await;
        tenant.get("/api/graph").await.expect(200).await;

        let begun = admin.delete_with(&path, &right).await.expect(202).await;
        let receipt = admin.erased(text(&begun["erasure"], "id")).await;
        let removed = &receipt["removed"];
        let counts = [
            "nodes",
            "relationships",
            "users",
            "api_keys",
            "feeds",
            "staging_batches",
        ]
        .map(|key| removed[key].as_u64().unwrap());
        assert_eq!(counts, [2, 1, 1, 1, 1, 1], "{receipt}");
        assert_eq!(receipt["what"], "workspace_id");
        tenant.get("/api/graph").await.refused(401).await;
        key.get("/api/graph").await.refused(401).await;
        admin.get(&path).await.refused(404).await;
        admin.delete_with(&path, &right).await.refused(404).await;
        assert_eq!(words_in(&app, &WORDS).await, Vec::<String>::new());
        assert_eq!(admin.search("Kept Tool").await["results"][0]["name"], "Kept Tool");
        let requests = admin.audited("erasure.request").await;
        assert_eq!(requests[0]["metadata"]["workspace_id"], id.as_str());
        app.stop().await;
        assert_eq!(held(dir.path(), &WORDS), Vec::<String>::new());
        assert!(!dir.path().join("index").join(&id).exists());
        let app = TestApp::durable(dir.path()).await;
        let again = app.workspace(&name).await;
        let graph = again.get("/api/graph").await.expect(200).await;
        assert_eq!(graph["nodes"], json!([]));
        app.stop().await;
    });
}

#[test]
fn questions_that_name_an_erased_node_go_with_it_and_others_stay() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let group = with(
            object("intrusion-set", "Wader Turbine"),
            json!({"aliases": ["Blue Heron"]}),
        );
        admin.ingest(json!([group.clone()])).await;
        for question in [
            "what does wader turbine use",
            "BLUE HERON",
            "wader turbines",
            "heron",
        ] {
            admin.search(question).await;
        }
        let id = node_of(admin, &group).await;
        let receipt = admin.erase(json!({"node_ids": [id]})).await;
        assert_eq!(receipt["removed"]["audit_texts"], 2, "{receipt}");
        let left = metadata(admin, "recall.search").await;
        let mut left: Vec<&str> = left.iter().filter_map(|one| one["query"].as_str()).collect();
        left.sort_unstable();
        assert_eq!(left, ["heron", "wader turbines"]);
        let sessions = admin.get("/api/recall/sessions").await.expect(200).await;
        let queries: Vec<&str> = sessions["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|session| text(session, "query"))
            .collect();
        assert_eq!(queries, ["heron", "wader turbines"]);
        app.stop().await;
    });
}

#[test]
fn items_of_threat_feeds_go_with_their_object_and_come_again_if_it_is_sent_again() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let (tool, other) = (object("tool", "Staged Wader"), object("malware", "Other Wader"));
        let link = relationship(&other, "uses", &tool);
        let left = object("tool", "Left Wader");
        let bundle = json!({"input_kind": "stix_bundle", "bundle": [tool.clone(), other, link, left]});
        let upload = admin.post(BATCHES, &bundle).await.expect(201).await;
        let batch = format!("{BATCHES}/{}", text(&upload["batch"], "id"));
        let items = upload["items"].as_array().unwrap().iter();
        for item in items.filter(|item| item["name"] != "Left Wader") {
            let path = format!("{batch}/items/{}", text(item, "id"));
            let accepted = json!({"status": "accepted"});
            admin.post(&path, &accepted).await.expect(200).await;
        }
        let commit = format!("{batch}/commit");
        admin.post(&commit, &json!({})).await.expect(200).await;
        let receipt = admin
            .erase(json!({"node_ids": [node_of(admin, &tool).await]}))
            .await;
        // The object, and the relationship to it.
        assert_eq!(receipt["removed"]["feed_items"], 2, "{receipt}");
        let now = admin.get(&batch).await.expect(200).await;
        let counts = ["item_count", "pending", "committed"].map(|key| now["batch"][key].as_u64());
        assert_eq!(counts, [Some(2), Some(1), Some(1)], "{now}");
        admin.post(&commit, &json!({})).await.expect(200).await;
        admin.ingest(json!([tool.clone()])).await;
        assert_eq!(
            admin.search("Staged Wader").await["results"][0]["name"],
            "Staged Wader"
        );
        app.stop().await;
    });
}
