//! What corrections, and reading what changed, leave in the audit log.

use serde_json::json;

use super::Log;
use crate::stix::{object, relationship, text};

pub(super) async fn corrections(log: &mut Log<'_>) {
    let admin = &log.app.admin;
    let (group, kit) = (
        object("intrusion-set", "Matrix Egret"),
        object("tool", "Matrix Kit"),
    );
    admin
        .ingest(json!([group, kit, relationship(&group, "uses", &kit)]))
        .await;
    let node = admin.one("Matrix Egret").await;
    let path = format!("/api/nodes/{}", text(&node, "id"));
    let shown = admin.get(&path).await.expect(200).await;
    let edge = format!("/api/edges/{}", text(&shown["relationships"][0], "id"));
    let original = format!("/api/evidence/{}", text(&shown["evidence"][0], "id"));
    log.added().await;
    let (route, change) = ("PATCH /api/nodes/{id}", json!({"confidence": 0.7}));
    let corrected = &[("node.correct", "success")];
    log.step(route, admin.patch(&path, &change).await, 200, corrected)
        .await;
    log.step(route, admin.patch(&path, &json!({})).await, 400, &[])
        .await;
    let rejected = json!({"status": "rejected"});
    log.step(
        "PATCH /api/edges/{id}",
        admin.patch(&edge, &rejected).await,
        200,
        &[("edge.correct", "success")],
    )
    .await;
    let route = "PATCH /api/evidence/{id}";
    log.step(route, admin.patch(&original, &rejected).await, 409, &[])
        .await;
    let shown = admin.get(&path).await.expect(200).await;
    let records = shown["evidence"].as_array().unwrap();
    let own = records.iter().find(|record| record["kind"] == "analyst").unwrap();
    let own = format!("/api/evidence/{}", text(own, "id"));
    log.added().await;
    log.step(
        route,
        admin.patch(&own, &rejected).await,
        200,
        &[("evidence.correct", "success")],
    )
    .await;
    log.step(
        "GET /api/changes",
        admin.get("/api/changes").await,
        200,
        &[("changes.read", "success")],
    )
    .await;
}
