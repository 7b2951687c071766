//! Corrections, merges and erasures with an external database, and what another process on it makes of them.

use serde_json::{Value, json};
use test_support::eventually;

use super::{assert_chain, with_database};
use crate::helpers::{Client, PASSWORD, TestApp};
use crate::hosted::erasure::{held, words_in};
use crate::hosted::feeds::{BATCHES, FEEDS, allowing};
use crate::hosted::merges::{merge, node_of, unmerge};
use crate::stix::{names, object, relationship, text, with};

/// Words of which no part comes twice, so that a compressed text holds them as they are: of nodes, of a user, of a feed and
/// of a workspace.
const WORDS: [&str; 4] = ["qvxstwzj", "kyrpghub", "wobnjfiz", "zulmedyt"];
const NODE: &str = WORDS[0];
const USER: &str = WORDS[1];
const FEED: &str = WORDS[2];
const TENANT: &str = WORDS[3];

/// A user with something of its own; answers with the user's id.
async fn add_user(app: &TestApp) -> Value {
    let email = format!("{USER}@example.com");
    let body = json!({"email": email, "password": PASSWORD, "role": "analyst"});
    let made = app.admin.post("/api/admin/users", &body).await.expect(201).await;
    let user = app.anonymous().sign_in(&email, PASSWORD).await;
    let entry = json!({"nodes": [{"name": format!("Turbine {USER}"), "node_type": "actor", "description": "by hand"}]});
    user.post("/api/ingest/analyst", &entry).await.expect(201).await;
    user.search(&format!("turbine {USER}")).await;
    made["user"]["id"].clone()
}

/// A feed with an object of its own; answers with the feed's id.
async fn add_feed(admin: &Client) -> Value {
    let body = json!({"name": format!("feed {FEED}"), "default_tlp": "TLP:GREEN", "redistribution_state": "prohibited",
        "connector_config_ref": "http://127.0.0.1/root/collections/x/objects/"});
    let made = admin.post(FEEDS, &body).await.expect(201).await;
    let feed = made["feed"]["id"].clone();
    let objects = json!([object("tool", &format!("Turbine {FEED}"))]);
    let upload = json!({"input_kind": "stix_bundle", "feed_source_id": feed, "bundle": objects});
    let upload = admin.post(BATCHES, &upload).await.expect(201).await;
    let batch = format!("{BATCHES}/{}", text(&upload["batch"], "id"));
    let item = format!("{batch}/items/{}", text(&upload["items"][0], "id"));
    let accepted = json!({"status": "accepted"});
    admin.post(&item, &accepted).await.expect(200).await;
    admin
        .post(&format!("{batch}/commit"), &json!({}))
        .await
        .expect(200)
        .await;
    feed
}

/// A workspace with a node; answers with its id.
async fn add_workspace(app: &TestApp) -> String {
    let tenant = app.workspace(TENANT).await;
    tenant
        .ingest(json!([object("tool", &format!("Turbine {TENANT}"))]))
        .await;
    let me = tenant.get("/api/auth/me").await.expect(200).await;
    text(&me["workspace"], "id").to_owned()
}

#[test]
fn what_one_process_corrects_merges_and_erases_is_so_in_another() {
    with_database(async |database| {
        let app = TestApp::with(allowing(database.settings("service"))).await;
        let other = TestApp::with(allowing(database.settings("another"))).await;
        let admin = &app.admin;
        let group = with(
            object("intrusion-set", &format!("Turbine {NODE}")),
            json!({"aliases": [format!("Alias {NODE}")]}),
        );
        let (tool, double) = (
            object("tool", "Turbine Tool"),
            object("intrusion-set", "Turbine Double"),
        );
        let link = relationship(&group, "uses", &tool);
        admin.ingest(json!([group, tool, double, link])).await;
        let ids = [node_of(admin, &group).await, node_of(admin, &double).await];

        let change = json!({"description": format!("Said {NODE}."), "reason": "seen"});
        let path = format!("/api/nodes/{}", ids[0]);
        admin.patch(&path, &change).await.expect(200).await;
        merge(admin, &ids[1], &ids[0]).await;
        let told = eventually(|| async {
            let node = other
                .admin
                .get(&format!("/api/nodes/{}", ids[1]))
                .await
                .expect(200)
                .await;
            match node["redirected_from"] == ids[1].as_str() {
                true => Ok(other.admin.get(&path).await.expect(200).await),
                false => Err(node),
            }
        });
        assert_eq!(told.await["node"]["description"], format!("Said {NODE}."));
        unmerge(&other.admin, &ids[1]).await;
        eventually(|| async {
            let found = admin.search("Turbine Double").await;
            match names(&found).first() {
                Some(&"Turbine Double") => Ok(()),
                _ => Err(found),
            }
        })
        .await;

        let user = add_user(&app).await;
        let feed = add_feed(admin).await;
        let workspace = add_workspace(&app).await;
        // The other process has all of it in its index.
        eventually(|| async {
            let found = other.admin.search(&format!("turbine {FEED} {NODE} {USER}")).await;
            let found = found.to_string();
            let missing = [FEED, NODE, USER].into_iter().find(|word| !found.contains(word));
            missing.map_or(Ok(()), Err)
        })
        .await;
        for target in [
            json!({"node_ids": [ids[0]]}),
            json!({ "user_id": user }),
            json!({ "feed_id": feed }),
        ] {
            let receipt = admin.erase(target).await;
            assert_eq!(receipt["removed"]["nodes"], 1, "{receipt}");
        }
        let path = format!("/api/admin/workspaces/{workspace}");
        let begun = admin
            .delete_with(&path, &json!({ "name": TENANT }))
            .await
            .expect(202)
            .await;
        let receipt = admin.erased(text(&begun["erasure"], "id")).await;
        assert_eq!(receipt["removed"]["nodes"], 1, "{receipt}");

        assert_eq!(words_in(&app, &WORDS).await, Vec::<String>::new());
        eventually(|| async {
            let left = words_in(&other, &WORDS).await;
            if left.is_empty() { Ok(()) } else { Err(left) }
        })
        .await;
        // Each process rewrites its own index within some seconds.
        for process in ["service", "another"] {
            let dir = database.settings(process).storage.data_dir;
            eventually(|| async {
                let left = held(&dir, &WORDS);
                if left.is_empty() { Ok(()) } else { Err(left) }
            })
            .await;
        }
        assert_chain(admin).await;
        other.stop().await;
        app.stop().await;
    });
}
