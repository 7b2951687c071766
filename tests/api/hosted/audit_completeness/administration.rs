//! The requests of administrators, and what each of them leaves in the log.

use serde_json::json;

use super::Log;
use crate::helpers::{Answer, Client, PASSWORD};
use crate::stix::text;

pub(super) async fn administration(log: &mut Log<'_>, viewer: &Client) {
    let admin = &log.app.admin;
    let route = "POST /api/admin/users";
    let body = json!({"email": "audited@example.org", "password": PASSWORD, "role": "viewer"});
    let made = log
        .step(
            route,
            admin.post("/api/admin/users", &body).await,
            201,
            &[("admin.user_create", "success")],
        )
        .await;
    log.step(route, admin.post("/api/admin/users", &body).await, 409, &[])
        .await;
    log.step(route, viewer.post("/api/admin/users", &body).await, 403, &[])
        .await;
    let route = "PATCH /api/admin/users/{id}";
    let path = format!("/api/admin/users/{}", text(&made["user"], "id"));
    let change = json!({"disabled": true});
    log.step(
        route,
        admin.patch(&path, &change).await,
        200,
        &[("admin.user_change", "success")],
    )
    .await;
    log.step(route, viewer.patch(&path, &change).await, 403, &[])
        .await;

    let route = "POST /api/admin/api-keys";
    let body = json!({"name": "audited", "scopes": ["read"]});
    let made = log
        .step(
            route,
            admin.post("/api/admin/api-keys", &body).await,
            201,
            &[("admin.api_key_create", "success")],
        )
        .await;
    log.step(route, viewer.post("/api/admin/api-keys", &body).await, 403, &[])
        .await;
    let route = "DELETE /api/admin/api-keys/{id}";
    let path = format!("/api/admin/api-keys/{}", text(&made, "id"));
    log.step(
        route,
        admin.delete(&path).await,
        204,
        &[("admin.api_key_revoke", "success")],
    )
    .await;
    log.step(route, viewer.delete(&path).await, 403, &[]).await;

    collections(log, viewer).await;
    let (route, path) = ("PATCH /api/admin/workspace", "/api/admin/workspace");
    let change = json!({"red_export_grant": false});
    log.step(
        route,
        admin.patch(path, &change).await,
        200,
        &[("admin.workspace_change", "success")],
    )
    .await;
    log.step(route, viewer.patch(path, &change).await, 403, &[]).await;
    let (route, path) = ("POST /api/admin/workspaces", "/api/admin/workspaces");
    let body = json!({"name": "Audited", "admin_email": "a@example.org", "admin_password": PASSWORD});
    let made = log
        .step(
            route,
            admin.post(path, &body).await,
            201,
            &[("admin.workspace_create", "success")],
        )
        .await;
    log.step(route, viewer.post(path, &body).await, 403, &[]).await;
    let route = "PATCH /api/admin/workspaces/{id}";
    let path = format!("/api/admin/workspaces/{}", text(&made["workspace"], "id"));
    let change = json!({"tier": "team"});
    let changed = [("admin.workspace_change", "success")];
    log.step(route, admin.patch(&path, &change).await, 200, &changed)
        .await;
    log.step(route, viewer.patch(&path, &change).await, 403, &[])
        .await;

    let leaving = log.app.user("viewer").await;
    log.added().await;
    let (route, path) = ("POST /api/auth/password", "/api/auth/password");
    let change = json!({"current_password": "wrong", "new_password": "quite another password 77"});
    let failed = [("auth.password_change", "failure")];
    log.step(route, leaving.post(path, &change).await, 400, &failed)
        .await;
    let change = json!({"current_password": PASSWORD, "new_password": "short"});
    log.step(route, leaving.post(path, &change).await, 400, &[]).await;
    let changing = log.app.user("viewer").await;
    log.added().await;
    let change = json!({"current_password": PASSWORD, "new_password": "quite another password 77"});
    let changed = [("auth.password_change", "success")];
    log.step(route, changing.post(path, &change).await, 204, &changed)
        .await;
    log.step(route, changing.post(path, &change).await, 401, &[])
        .await;
    let (route, path) = ("POST /api/auth/logout", "/api/auth/logout");
    let left = [("auth.logout", "success")];
    log.step(route, leaving.post(path, &json!({})).await, 204, &left)
        .await;
    log.step(route, leaving.post(path, &json!({})).await, 401, &[])
        .await;

    // What one that is not refused leaves, and its work in the background: `hosted/erasure`.
    let (route, path) = ("POST /api/admin/erasures", "/api/admin/erasures");
    let body = json!({"node_ids": [uuid::Uuid::nil()]});
    log.step(route, admin.post(path, &body).await, 404, &[]).await;
    log.step(route, viewer.post(path, &body).await, 403, &[]).await;
    let route = "DELETE /api/admin/workspaces/{id}";
    let path = format!("/api/admin/workspaces/{}", uuid::Uuid::nil());
    let request = |client: &Client| {
        client
            .request(reqwest::Method::DELETE, &path)
            .json(&json!({"name": "x"}))
    };
    let refused = Answer(request(admin).send().await.unwrap());
    log.step(route, refused, 404, &[]).await;
    let refused = Answer(request(viewer).send().await.unwrap());
    log.step(route, refused, 403, &[]).await;
    let (route, path) = ("POST /api/admin/backup", "/api/admin/backup");
    let written = [("backup.create", "success")];
    log.step(route, admin.post(path, &json!({})).await, 200, &written)
        .await;
    log.step(route, viewer.post(path, &json!({})).await, 403, &[])
        .await;
    let (route, path) = ("GET /api/audit/export", "/api/audit/export");
    log.step(route, admin.get(path).await, 200, &[("audit.export", "success")])
        .await;
    log.step(route, viewer.get(path).await, 403, &[]).await;
}

async fn collections(log: &mut Log<'_>, viewer: &Client) {
    let admin = &log.app.admin;
    let (route, path) = ("POST /api/admin/collections", "/api/admin/collections");
    let body = json!({"title": "audited", "alias": "audited"});
    let defined = [("admin.collection_define", "success")];
    let made = log
        .step(route, admin.post(path, &body).await, 201, &defined)
        .await;
    log.step(route, admin.post(path, &body).await, 409, &[]).await;
    log.step(route, viewer.post(path, &body).await, 403, &[]).await;
    let path = format!("{path}/{}", text(&made["collection"], "id"));
    let (route, change) = ("PATCH /api/admin/collections/{id}", json!({"title": "changed"}));
    let changed = [("admin.collection_change", "success")];
    log.step(route, admin.patch(&path, &change).await, 200, &changed)
        .await;
    log.step(route, admin.patch(&path, &json!({})).await, 400, &[])
        .await;
    log.step(route, viewer.patch(&path, &change).await, 403, &[])
        .await;
    let route = "DELETE /api/admin/collections/{id}";
    let deleted = [("admin.collection_delete", "success")];
    log.step(route, viewer.delete(&path).await, 403, &[]).await;
    log.step(route, admin.delete(&path).await, 204, &deleted).await;
    log.step(route, admin.delete(&path).await, 404, &[]).await;
}
