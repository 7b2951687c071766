//! The requests, in the order of the API, and what each of them leaves in the log.

use serde_json::{Value, json};

use super::{Log, SILENT};
use crate::helpers::{ADMIN, Client, PASSWORD};
use crate::hosted::feeds::server::Server;
use crate::hosted::feeds::{self, BATCHES, FEEDS};
use crate::stix::{object, text, with};

pub(super) async fn sign_in_and_public(log: &mut Log<'_>) {
    let nobody = log.app.anonymous();
    let visitor = |number: u8| nobody.with_header("x-forwarded-for", &format!("203.0.113.{number}"));
    let login = "POST /api/auth/login";
    log.step(
        login,
        nobody.login(ADMIN, PASSWORD).await,
        200,
        &[("auth.login", "success")],
    )
    .await;
    log.step(
        login,
        nobody.login(ADMIN, "wrong").await,
        401,
        &[("auth.login", "failure")],
    )
    .await;
    log.step(
        login,
        nobody.login("nobody@example.org", "wrong").await,
        401,
        &[("auth.login", "failure")],
    )
    .await;
    log.step(login, nobody.post("/api/auth/login", &json!({})).await, 400, &[])
        .await;

    let (route, path) = ("POST /api/public/demo-recall", "/api/public/demo-recall");
    let ask = |number, query: &'static str| {
        let visitor = visitor(number);
        async move { visitor.post(path, &json!({"query": query})).await }
    };
    log.step(route, ask(1, "APT28").await, 200, &[("demo.recall", "success")])
        .await;
    log.step(
        route,
        ask(1, "a@example.org").await,
        400,
        &[("demo.recall", "denied")],
    )
    .await;
    log.step(route, ask(1, "").await, 400, &[]).await;
    let (route, path) = ("GET /api/public/demo-export.stix", "/api/public/demo-export.stix");
    log.step(
        route,
        visitor(2).get(&format!("{path}?q=APT28")).await,
        200,
        &[("demo.export", "success")],
    )
    .await;
    log.step(
        route,
        visitor(2).get(&format!("{path}?q=zzzyyyxxx")).await,
        404,
        &[("demo.export", "failure")],
    )
    .await;
    log.step(route, visitor(2).get(path).await, 400, &[]).await;

    let route = "POST /api/pilot";
    let body = json!({"name": "Ada", "email": "ada@example.org", "org": "Example", "role": "ciso"});
    log.step(
        route,
        visitor(3).post("/api/pilot", &body).await,
        200,
        &[("pilot.request", "success")],
    )
    .await;
    log.step(route, visitor(3).post("/api/pilot", &json!({})).await, 400, &[])
        .await;
    let route = "GET /api/admin/pilot-requests";
    let path = "/api/admin/pilot-requests";
    log.step(
        route,
        log.app.admin.get(path).await,
        200,
        &[("pilot.read", "success")],
    )
    .await;
    log.step(route, nobody.get(path).await, 401, &[]).await;
}

pub(super) async fn ingest(log: &mut Log<'_>, viewer: &Client) {
    let admin = &log.app.admin;
    let heron = with(object("tool", "Audited Heron"), json!({"labels": ["tlp:red"]}));
    admin
        .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
        .await;
    log.added().await;
    let event = json!({"uuid": uuid::Uuid::new_v4(), "info": "x", "Attribute": []});
    for (route, body, action) in [
        (
            "POST /api/ingest/stix",
            json!({"bundle": [object("tool", "Audited Hook"), heron]}),
            "ingest.stix",
        ),
        (
            "POST /api/ingest/osint",
            json!({"collector": "c", "items": [{"title": "Audited"}]}),
            "ingest.osint",
        ),
        ("POST /api/ingest/misp", json!({"event": event}), "ingest.misp"),
        (
            "POST /api/ingest/analyst",
            json!({"nodes": [{"name": "Audited", "node_type": "tool"}]}),
            "ingest.analyst",
        ),
        (
            "POST /api/ingest/report",
            json!({"title": "Audited", "content_blocks": [{"entity_name": "Audited", "node_type": "tool"}]}),
            "ingest.report",
        ),
    ] {
        let path = route.split(' ').nth(1).unwrap();
        log.step(route, admin.post(path, &body).await, 201, &[(action, "success")])
            .await;
        log.step(route, admin.post(path, &json!({})).await, 400, &[])
            .await;
        log.step(route, viewer.post(path, &body).await, 403, &[]).await;
    }
}

pub(super) async fn staging(log: &mut Log<'_>, viewer: &Client) {
    let admin = &log.app.admin;
    let route = "POST /api/ingest/preview";
    let body = json!({"text": "Fancy Bear used Mimikatz against 198.51.100.7"});
    let path = "/api/ingest/preview";
    let staged = log
        .step(
            route,
            admin.post(path, &body).await,
            200,
            &[("ingest.preview", "success")],
        )
        .await;
    log.step(route, admin.post(path, &json!({"text": "short"})).await, 400, &[])
        .await;
    log.step(route, viewer.post(path, &body).await, 403, &[]).await;

    let route = "PATCH /api/ingest/staging/{id}";
    let path = format!("/api/ingest/staging/{}", text(&staged["entities"][0], "id"));
    let accept = json!({"status": "accepted"});
    let change = [("ingest.staging_change", "success")];
    log.step(route, admin.patch(&path, &accept).await, 200, &change)
        .await;
    log.step(
        route,
        admin.patch(&path, &json!({"status": "done"})).await,
        400,
        &[],
    )
    .await;
    log.step(route, viewer.patch(&path, &accept).await, 403, &[])
        .await;

    let (route, path) = ("PATCH /api/ingest/staging", "/api/ingest/staging");
    let ids: Vec<&str> = staged["entities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(one, "id"))
        .collect();
    let uncertain = json!({"status": "uncertain", "entity_ids": ids});
    log.step(route, admin.patch(path, &uncertain).await, 200, &change)
        .await;
    let again = json!({"status": "accepted", "filter": {"batch_id": staged["batch_id"]}});
    log.step(route, admin.patch(path, &again).await, 200, &change)
        .await;
    log.step(route, admin.patch(path, &again).await, 200, &[]).await;
    log.step(route, viewer.patch(path, &again).await, 403, &[]).await;

    let route = "POST /api/ingest/batch/{id}/commit";
    let path = format!("/api/ingest/batch/{}/commit", text(&staged, "batch_id"));
    let commit = [("ingest.batch_commit", "success")];
    log.step(route, admin.post(&path, &json!({})).await, 200, &commit)
        .await;
    log.step(route, viewer.post(&path, &json!({})).await, 403, &[])
        .await;
    let unknown = format!("/api/ingest/batch/{}/commit", uuid::Uuid::new_v4());
    log.step(route, admin.post(&unknown, &json!({})).await, 404, &[])
        .await;
    let batch = format!("/api/ingest/batch/{}", text(&staged, "batch_id"));
    log.step(
        "GET /api/ingest/batch",
        admin.get("/api/ingest/batch").await,
        200,
        &[],
    )
    .await;
    log.step("GET /api/ingest/batch/{id}", admin.get(&batch).await, 200, &[])
        .await;
}

pub(super) async fn recall(log: &mut Log<'_>, key: &Client) {
    let admin = &log.app.admin;
    let route = "GET /api/recall/search";
    let path = "/api/recall/search?q=Audited+Heron";
    let found = log
        .step(route, admin.get(path).await, 200, &[("recall.search", "success")])
        .await;
    log.step(route, admin.get("/api/recall/search").await, 400, &[])
        .await;
    log.step(route, key.get(path).await, 403, &[]).await;
    let route = "GET /api/recall/semantic";
    let path = "/api/recall/semantic?q=Audited+Heron";
    log.step(
        route,
        admin.get(path).await,
        200,
        &[("recall.semantic", "success")],
    )
    .await;
    log.step(route, key.get(path).await, 403, &[]).await;
    let route = "POST /api/recall/lookup";
    let (path, body) = ("/api/recall/lookup", json!({"values": ["203.0.113.77"]}));
    let looked_up = [("recall.lookup", "success")];
    log.step(route, admin.post(path, &body).await, 200, &looked_up)
        .await;
    log.step(route, admin.post(path, &json!({})).await, 400, &[])
        .await;
    log.step(route, key.post(path, &body).await, 403, &[]).await;
    let route = "GET /api/recall/lookup";
    let path = "/api/recall/lookup?value=203.0.113.77";
    log.step(route, admin.get(path).await, 200, &looked_up).await;
    log.step(route, key.get(path).await, 403, &[]).await;

    let session = format!("/api/recall/sessions/{}", text(&found, "recall_id"));
    log.step(
        "GET /api/recall/sessions/{id}",
        admin.get(&session).await,
        200,
        &[],
    )
    .await;
    let route = "GET /api/recall/sessions/{id}/export.stix";
    let path = format!("{session}/export.stix");
    log.step(
        route,
        admin.get(&path).await,
        403,
        &[("recall.export_denied", "denied")],
    )
    .await;
    admin.settings(json!({"red_export_grant": true})).await;
    log.added().await;
    log.step(
        route,
        admin.get(&path).await,
        200,
        &[("recall.export", "success")],
    )
    .await;
    log.step(route, key.get(&path).await, 403, &[]).await;

    let node = &found["results"][0];
    let path = format!("/api/nodes/{}", text(node, "id"));
    log.step(
        "GET /api/graph",
        admin.get("/api/graph").await,
        200,
        &[("graph.read", "success")],
    )
    .await;
    let by_object = format!("/api/nodes?stix_id={}", text(&node["properties"], "stix_id"));
    log.step(
        "GET /api/nodes",
        admin.get(&by_object).await,
        200,
        &[("node.read", "success")],
    )
    .await;
    log.step(
        "GET /api/nodes/{id}",
        admin.get(&path).await,
        200,
        &[("node.read", "success")],
    )
    .await;
    log.step("GET /api/nodes/{id}", key.get(&path).await, 403, &[])
        .await;
    let path = format!(
        "/api/evidence/{}",
        node["linked_evidence_ids"][0].as_str().unwrap()
    );
    log.step(
        "GET /api/evidence/{id}",
        admin.get(&path).await,
        200,
        &[("evidence.read", "success")],
    )
    .await;
    let unknown = format!("/api/evidence/{}", uuid::Uuid::new_v4());
    log.step("GET /api/evidence/{id}", admin.get(&unknown).await, 404, &[])
        .await;
}

pub(super) async fn agents(log: &mut Log<'_>, key: &Client) {
    let route = "POST /mcp";
    let call = |client: Client, tool: &'static str, arguments: Value| async move {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        client.post("/mcp", &message).await
    };
    let admin = log.app.admin.clone();
    let found = call(admin.clone(), "search", json!({"query": "Audited"})).await;
    let both = [("recall.search", "success"), ("mcp.search", "success")];
    log.step(route, found, 200, &both).await;
    let refused = call(admin, "search", json!({"query": ""})).await;
    log.step(route, refused, 200, &[("mcp.search", "failure")]).await;
    let denied = call(key.clone(), "search", json!({"query": "Audited"})).await;
    log.step(route, denied, 200, &[("mcp.search", "denied")]).await;
}

pub(super) async fn threat_feeds(log: &mut Log<'_>, viewer: &Client) {
    let admin = &log.app.admin;
    let taxii = Server::start(&feeds::tools(2)).await;
    let body = json!({"name": "Audited", "connector_config_ref": taxii.url(), "default_tlp": "GREEN",
        "redistribution_state": "allowed"});
    let route = "POST /api/threat-intel/feeds";
    let made = log
        .step(
            route,
            admin.post(FEEDS, &body).await,
            201,
            &[("feed.register", "success")],
        )
        .await;
    log.step(route, admin.post(FEEDS, &json!({})).await, 400, &[])
        .await;
    log.step(route, viewer.post(FEEDS, &body).await, 403, &[]).await;
    let feed = text(&made["feed"], "id");
    let (route, path) = ("PATCH /api/threat-intel/feeds/{id}", format!("{FEEDS}/{feed}"));
    let change = json!({"description": "x"});
    log.step(
        route,
        admin.patch(&path, &change).await,
        200,
        &[("feed.change", "success")],
    )
    .await;
    log.step(route, viewer.patch(&path, &change).await, 403, &[])
        .await;

    let route = "POST /api/threat-intel/batches";
    let done = [("feed.pull", "success"), ("feed.pull_done", "success")];
    let pulled = log.step(route, admin.pulls(feed).await, 201, &done).await;
    log.step(route, viewer.pulls(feed).await, 403, &[]).await;
    let batch = text(&pulled["batch"], "id");
    let route = "POST /api/threat-intel/batches/{id}/items/{item}";
    let path = feeds::item_path(&pulled["items"][0]);
    let accept = json!({"status": "accepted"});
    log.step(
        route,
        admin.post(&path, &accept).await,
        200,
        &[("feed.item_change", "success")],
    )
    .await;
    log.step(route, viewer.post(&path, &accept).await, 403, &[]).await;
    let route = "POST /api/threat-intel/batches/{id}/commit";
    log.step(
        route,
        admin.commits(batch, None).await,
        200,
        &[("feed.commit", "success")],
    )
    .await;
    log.step(route, viewer.commits(batch, None).await, 403, &[]).await;

    let route = "DELETE /api/threat-intel/feeds/{id}";
    let path = format!("{FEEDS}/{feed}");
    log.step(route, viewer.delete(&path).await, 403, &[]).await;
    log.step(
        route,
        admin.delete(&path).await,
        204,
        &[("feed.delete", "success")],
    )
    .await;
    log.step(route, admin.delete(&path).await, 404, &[]).await;

    let gone = Server::start(&[]).await;
    let feed = admin.feed_of(&gone).await;
    drop(gone);
    log.added().await;
    let failed = [("feed.pull", "success"), ("feed.pull_failed", "failure")];
    let body = json!({"input_kind": "taxii_2_1_pull", "feed_source_id": feed});
    let answer = admin.post(BATCHES, &body).await;
    let resume = format!("{}/resume", answer.header("location").unwrap());
    log.step("POST /api/threat-intel/batches", answer, 502, &failed)
        .await;
    let answer = admin.post(&resume, &json!({})).await;
    log.step("POST /api/threat-intel/batches/{id}/resume", answer, 502, &failed)
        .await;
}

/// Each of these is called as its own path, or with an unknown id, and as a viewer.
pub(super) async fn silent(log: &mut Log<'_>, viewer: &Client) {
    let unknown = uuid::Uuid::new_v4().to_string();
    for route in SILENT {
        let path = route.strip_prefix("GET ").unwrap();
        let path = path
            .replace("{id}", &unknown)
            .replace("{item}", &unknown)
            .replace("{file}", "index.css");
        for client in [&log.app.admin, viewer, &log.app.anonymous()] {
            let answer = client.get(&path.replace("{provider}", "unknown")).await;
            let status = answer.status();
            log.step(route, answer, status, &[]).await;
        }
    }
}
