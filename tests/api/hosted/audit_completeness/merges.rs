//! What merges leave in the audit log.

use serde_json::json;

use super::Log;
use crate::stix::text;

pub(super) async fn merges(log: &mut Log<'_>) {
    let admin = &log.app.admin;
    let names = ["Matrix Wader", "Matrix Heron"];
    let nodes = names.map(|name| json!({"name": name, "node_type": "actor"}));
    admin
        .post("/api/ingest/analyst", &json!({"nodes": nodes}))
        .await
        .expect(201)
        .await;
    let [one, other] = [admin.one(names[0]).await, admin.one(names[1]).await];
    let path = format!("/api/nodes/{}", text(&one, "id"));
    log.added().await;
    log.step(
        "GET /api/nodes/duplicates",
        admin.get("/api/nodes/duplicates").await,
        200,
        &[("node.duplicates", "success")],
    )
    .await;
    let (route, from) = ("POST /api/nodes/{id}/distinct", json!({"from": other["id"]}));
    let marked = &[("node.distinct", "success")];
    log.step(
        route,
        admin.post(&format!("{path}/distinct"), &from).await,
        200,
        marked,
    )
    .await;
    let back = format!("{path}/distinct/{}", text(&other, "id"));
    log.step(
        "DELETE /api/nodes/{id}/distinct/{other}",
        admin.delete(&back).await,
        200,
        &[("node.not_distinct", "success")],
    )
    .await;
    let (route, into) = ("POST /api/nodes/{id}/merge", json!({"into": other["id"]}));
    let itself = json!({"into": one["id"]});
    log.step(
        route,
        admin.post(&format!("{path}/merge"), &itself).await,
        400,
        &[],
    )
    .await;
    let merged = &[("node.merge", "success")];
    log.step(
        route,
        admin.post(&format!("{path}/merge"), &into).await,
        200,
        merged,
    )
    .await;
    log.step(
        "POST /api/nodes/{id}/unmerge",
        admin.post(&format!("{path}/unmerge"), &json!({})).await,
        200,
        &[("node.unmerge", "success")],
    )
    .await;
}
