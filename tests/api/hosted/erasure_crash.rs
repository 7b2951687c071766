//! A process that is killed in the middle of an erasure: the next start ends it, whatever is erased.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use test_support::extent;

use super::erasure::held;
use super::feeds::{BATCHES, FEEDS};
use crate::helpers::{Client, PASSWORD};
use crate::process::{Service, hosted, started_once};
use crate::stix::{object, text};

const ERASURES: &str = "/api/admin/erasures";
/// No part of it comes twice, so that a compressed text holds it as it is.
const WORD: &str = "qvxstwzj";
/// More than one part of an erasure.
const VICTIMS: usize = 150;

/// What is erased, and what is sent for it.
#[derive(Debug, Clone, Copy)]
enum Target {
    Nodes,
    User,
    Feed,
    Workspace,
}

fn victims() -> Value {
    (0..VICTIMS)
        .map(|at| object("tool", &format!("Victim {WORD} {at}")))
        .collect()
}

/// Brings the victims in, and answers with the ids that name them.
async fn bring_in(admin: &Client, target: Target) -> Value {
    match target {
        Target::Nodes => {
            admin.ingest(victims()).await;
            let found = admin.get("/api/graph?limit=200").await.expect(200).await;
            let nodes = found["nodes"].as_array().unwrap().iter();
            nodes.map(|node| node["id"].clone()).collect()
        }
        Target::User => {
            let email = format!("{WORD}@example.com");
            let body = json!({"email": email, "password": PASSWORD, "role": "analyst"});
            let made = admin.post("/api/admin/users", &body).await.expect(201).await;
            let user = Client::at(&admin.base).sign_in(&email, PASSWORD).await;
            let nodes: Vec<Value> = (0..VICTIMS)
                .map(|at| json!({"name": format!("Victim {WORD} {at}"), "node_type": "tool", "description": "d"}))
                .collect();
            let entries = json!({ "nodes": nodes });
            user.post("/api/ingest/analyst", &entries).await.expect(201).await;
            user.search(WORD).await;
            made["user"]["id"].clone()
        }
        Target::Feed => {
            let body = json!({"name": format!("feed {WORD}"), "default_tlp": "TLP:GREEN", "redistribution_state": "prohibited",
                "connector_config_ref": "https://feeds.example.com/root/collections/x/objects/"});
            let made = admin.post(FEEDS, &body).await.expect(201).await;
            let feed = made["feed"]["id"].clone();
            let upload = json!({"input_kind": "stix_bundle", "feed_source_id": feed, "bundle": victims()});
            let upload = admin.post(BATCHES, &upload).await.expect(201).await;
            let batch = format!("{BATCHES}/{}", text(&upload["batch"], "id"));
            let page = admin.get(&format!("{batch}?limit=500")).await.expect(200).await;
            for item in page["items"].as_array().unwrap() {
                let path = format!("{batch}/items/{}", text(item, "id"));
                admin
                    .post(&path, &json!({"status": "accepted"}))
                    .await
                    .expect(200)
                    .await;
            }
            admin
                .post(&format!("{batch}/commit"), &json!({}))
                .await
                .expect(200)
                .await;
            feed
        }
        Target::Workspace => {
            let email = format!("{WORD}@example.com");
            let body =
                json!({"name": WORD, "admin_email": email, "admin_password": PASSWORD, "tier": "pilot"});
            admin.post("/api/admin/workspaces", &body).await.expect(201).await;
            let tenant = Client::at(&admin.base).sign_in(&email, PASSWORD).await;
            tenant.ingest(victims()).await;
            let me = tenant.get("/api/auth/me").await.expect(200).await;
            me["workspace"]["id"].clone()
        }
    }
}

/// Begins the erasure; answers with its id.
async fn begin(admin: &Client, target: Target, ids: &Value) -> String {
    let answer = match target {
        Target::Nodes => admin.post(ERASURES, &json!({ "node_ids": ids })).await,
        Target::User => admin.post(ERASURES, &json!({ "user_id": ids })).await,
        Target::Feed => admin.post(ERASURES, &json!({ "feed_id": ids })).await,
        Target::Workspace => {
            let path = format!("/api/admin/workspaces/{}", ids.as_str().unwrap());
            admin.delete_with(&path, &json!({ "name": WORD })).await
        }
    };
    let begun = answer.expect(202).await;
    text(&begun["erasure"], "id").to_owned()
}

/// The service, with the host of the feed allowed.
fn service(dir: &Path) -> Service {
    let mut command = hosted(dir);
    command.env("TAXII_ALLOWED_HOSTS", "feeds.example.com");
    Service::start(command)
}

async fn erase_through_a_kill(target: Target, pause: Duration) {
    let case = format!("{target:?} after {pause:?}");
    let dir = started_once();
    let running = service(dir.path());
    let admin = running.admin().await;
    let ids = bring_in(&admin, target).await;
    let id = begin(&admin, target, &ids).await;
    // The moment of the kill is what the test varies.
    tokio::time::sleep(pause).await;
    running.kill();
    let running = service(dir.path());
    let admin = running.admin().await;
    let receipt = admin.erased(&id).await;
    assert_eq!(receipt["removed"]["nodes"], VICTIMS, "{case}: {receipt}");
    let graph = admin.get("/api/graph").await.expect(200).await;
    assert_eq!(graph["nodes"], json!([]), "{case}");
    let chain = admin.get("/api/audit/verify").await.expect(200).await;
    assert_eq!(chain["valid"], true, "{case}: {chain}");
    assert_eq!(held(dir.path(), &[WORD]), Vec::<String>::new(), "{case}");
    running.stop();
}

#[test]
fn a_process_killed_in_the_middle_leaves_an_erasure_that_the_next_one_ends() {
    crate::helpers::run(async {
        // In the middle of the rows is where most can go wrong; later the files are rewritten.
        let pauses = [40, 0, 5, 150, 600, 1_500];
        let targets = [Target::Workspace, Target::Nodes, Target::User, Target::Feed];
        for target in &targets[..extent(2, targets.len())] {
            for pause in &pauses[..extent(1, pauses.len())] {
                erase_through_a_kill(*target, Duration::from_millis(*pause)).await;
            }
        }
    });
}
