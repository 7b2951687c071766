//! The routes, with what each requires and answers.

use reqwest::Method;
use serde_json::json;

use super::{Needs, PREVIEW, Route, new_email, route, with_body};
use crate::helpers::PASSWORD;
use crate::hosted::{collections, pilot};
use crate::stix;

pub(super) fn routes() -> Vec<Route> {
    use Needs::{Admin, AuditExport, AuditRead, Nothing, Operator, RecallRead, RecallWrite, SignIn, Token};
    let (get, post) = (Method::GET, Method::POST);
    let (patch, delete) = (Method::PATCH, Method::DELETE);
    vec![
        route(get.clone(), "/health", Nothing, 200, 200),
        route(get.clone(), "/api/health", Nothing, 200, 200),
        with_body(
            route(post.clone(), "/api/auth/login", Nothing, 200, 200),
            || json!({"email": crate::helpers::ADMIN, "password": PASSWORD}),
        ),
        with_body(route(post.clone(), pilot::PILOT, Nothing, 200, 200), || {
            pilot::body(json!({}))
        }),
        route(get.clone(), "/openapi.json", Nothing, 200, 200),
        with_body(
            route(post.clone(), "/api/public/demo-recall", Nothing, 200, 200),
            || json!({"query": "Sandworm"}),
        ),
        route(get.clone(), "/api/public/demo-export.stix", Nothing, 200, 200),
        route(get.clone(), "/api/auth/me", SignIn, 200, 200),
        route(get.clone(), "/api/auth/providers", Nothing, 200, 200),
        with_body(
            route(post.clone(), "/mcp", SignIn, 200, 200),
            || json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ),
        // Without a provider, whose sign-in has tests of its own.
        route(get.clone(), "/api/auth/oauth/{provider}", Nothing, 404, 404),
        route(
            get.clone(),
            "/api/auth/oauth/{provider}/callback",
            Nothing,
            400,
            400,
        ),
        route(get.clone(), "/api/recall/search", RecallRead, 200, 200),
        route(get.clone(), "/api/recall/semantic", RecallRead, 200, 200),
        with_body(
            route(post.clone(), "/api/recall/lookup", RecallRead, 200, 200),
            || json!({"values": ["203.0.113.77"]}),
        ),
        route(get.clone(), "/api/recall/lookup", RecallRead, 200, 200),
        route(get.clone(), "/api/recall/sessions", RecallRead, 200, 200),
        route(get.clone(), "/api/recall/sessions/{id}", RecallRead, 200, 404),
        route(
            get.clone(),
            "/api/recall/sessions/{id}/export.stix",
            RecallRead,
            200,
            404,
        ),
        route(get.clone(), "/api/graph", RecallRead, 200, 200),
        route(get.clone(), "/api/nodes", RecallRead, 200, 404),
        route(get.clone(), "/api/nodes/{id}", RecallRead, 200, 404),
        route(get.clone(), "/api/nodes/duplicates", RecallRead, 200, 200),
        with_body(
            route(post.clone(), "/api/nodes/{id}/merge", RecallWrite, 404, 404),
            || json!({"into": uuid::Uuid::nil()}),
        ),
        with_body(
            route(post.clone(), "/api/nodes/{id}/unmerge", RecallWrite, 409, 404),
            || json!({}),
        ),
        with_body(
            route(post.clone(), "/api/nodes/{id}/distinct", RecallWrite, 404, 404),
            || json!({"from": uuid::Uuid::nil()}),
        ),
        route(
            delete.clone(),
            "/api/nodes/{id}/distinct/{other}",
            RecallWrite,
            404,
            404,
        ),
        route(get.clone(), "/api/evidence/{id}", RecallRead, 200, 404),
        route(get.clone(), "/api/changes", RecallRead, 200, 200),
        with_body(
            route(patch.clone(), "/api/nodes/{id}", RecallWrite, 200, 404),
            || json!({"confidence": 0.7}),
        ),
        with_body(
            route(patch.clone(), "/api/edges/{id}", RecallWrite, 404, 404),
            || json!({"status": "rejected"}),
        ),
        // The original of a node is not rejected alone.
        with_body(
            route(patch.clone(), "/api/evidence/{id}", RecallWrite, 409, 404),
            || json!({"status": "rejected"}),
        ),
        with_body(
            route(post.clone(), "/api/ingest/stix", RecallWrite, 201, 201),
            || json!({"bundle": [stix::object("tool", "Matrix Tool")]}),
        ),
        with_body(
            route(post.clone(), "/api/ingest/osint", RecallWrite, 201, 201),
            || json!({"collector": "matrix", "items": [{"title": "Matrix Tool"}]}),
        ),
        with_body(
            route(post.clone(), "/api/ingest/misp", RecallWrite, 201, 201),
            || json!({"event": {"uuid": uuid::Uuid::new_v4(), "info": "Matrix", "Attribute": []}}),
        ),
        with_body(
            route(post.clone(), "/api/ingest/analyst", RecallWrite, 201, 201),
            || json!({"nodes": [{"name": "Matrix Tool", "node_type": "tool"}]}),
        ),
        with_body(
            route(post.clone(), "/api/ingest/report", RecallWrite, 201, 201),
            || json!({"title": "Matrix", "content_blocks": [{"entity_name": "Matrix Tool", "node_type": "tool"}]}),
        ),
        with_body(
            route(post.clone(), "/api/ingest/preview", RecallWrite, 200, 200),
            || json!({"text": PREVIEW}),
        ),
        route(get.clone(), "/api/ingest/batch", RecallWrite, 200, 200),
        route(get.clone(), "/api/ingest/batch/{id}", RecallWrite, 200, 404),
        route(
            post.clone(),
            "/api/ingest/batch/{id}/commit",
            RecallWrite,
            200,
            404,
        ),
        with_body(
            route(patch.clone(), "/api/ingest/staging", RecallWrite, 404, 404),
            || json!({"status": "uncertain", "entity_ids": [uuid::Uuid::nil()]}),
        ),
        with_body(
            route(patch.clone(), "/api/ingest/staging/{id}", RecallWrite, 200, 404),
            || json!({"status": "uncertain"}),
        ),
        with_body(
            route(post.clone(), "/api/threat-intel/feeds", RecallWrite, 201, 201),
            || {
                json!({"name": "matrix", "connector_config_ref": "http://127.0.0.1:9/objects/",
                "default_tlp": "GREEN", "redistribution_state": "allowed"})
            },
        ),
        route(get.clone(), "/api/threat-intel/feeds", RecallWrite, 200, 200),
        route(get.clone(), "/api/threat-intel/feeds/{id}", RecallWrite, 200, 404),
        with_body(
            route(
                patch.clone(),
                "/api/threat-intel/feeds/{id}",
                RecallWrite,
                200,
                404,
            ),
            || json!({"description": "matrix"}),
        ),
        // One that is not there: the callers share the feed.
        route(
            delete.clone(),
            "/api/threat-intel/feeds/{id}",
            RecallWrite,
            404,
            404,
        ),
        with_body(
            route(post.clone(), "/api/threat-intel/batches", RecallWrite, 201, 201),
            || json!({"input_kind": "stix_bundle", "bundle": [stix::object("tool", "Matrix Tool")]}),
        ),
        route(get.clone(), "/api/threat-intel/batches", RecallWrite, 200, 200),
        route(
            get.clone(),
            "/api/threat-intel/batches/{id}",
            RecallWrite,
            200,
            404,
        ),
        // Not a pull that failed.
        route(
            post.clone(),
            "/api/threat-intel/batches/{id}/resume",
            RecallWrite,
            409,
            404,
        ),
        route(
            get.clone(),
            "/api/threat-intel/batches/{id}/items/{item}",
            RecallWrite,
            200,
            404,
        ),
        with_body(
            route(
                post.clone(),
                "/api/threat-intel/batches/{id}/items/{item}",
                RecallWrite,
                200,
                404,
            ),
            || json!({"status": "pending"}),
        ),
        route(
            post.clone(),
            "/api/threat-intel/batches/{id}/commit",
            RecallWrite,
            200,
            404,
        ),
        route(get.clone(), "/api/audit/logs", AuditRead, 200, 200),
        route(get.clone(), "/api/audit/verify", AuditRead, 200, 200),
        route(get.clone(), "/api/audit/export", AuditExport, 200, 200),
        route(get.clone(), "/api/admin/users", Admin, 200, 200),
        with_body(
            route(post.clone(), "/api/admin/users", Admin, 201, 201),
            || json!({"email": new_email(), "password": PASSWORD, "role": "viewer"}),
        ),
        route(patch.clone(), "/api/admin/users/{id}", Admin, 200, 404),
        route(get.clone(), "/api/admin/api-keys", Admin, 200, 200),
        with_body(
            route(post.clone(), "/api/admin/api-keys", Admin, 201, 201),
            || json!({"name": "matrix", "scopes": ["read"]}),
        ),
        route(delete.clone(), "/api/admin/api-keys/{id}", Admin, 204, 404),
        route(get.clone(), collections::COLLECTIONS, Admin, 200, 200),
        with_body(
            route(post.clone(), collections::COLLECTIONS, Admin, 201, 201),
            || json!({"title": "matrix"}),
        ),
        route(get.clone(), "/api/admin/collections/{id}", Admin, 200, 404),
        with_body(
            route(patch.clone(), "/api/admin/collections/{id}", Admin, 200, 404),
            || json!({"title": "matrix"}),
        ),
        route(delete.clone(), "/api/admin/collections/{id}", Admin, 204, 404),
        with_body(
            route(post.clone(), "/api/admin/erasures", Admin, 404, 404),
            || json!({"node_ids": [uuid::Uuid::nil()]}),
        ),
        route(get.clone(), "/api/admin/erasures/{id}", Admin, 404, 404),
        with_body(
            route(delete, "/api/admin/workspaces/{id}", Operator, 409, 403),
            || json!({"name": "matrix"}),
        ),
        with_body(
            route(post.clone(), "/api/admin/backup", Operator, 200, 403),
            || json!({}),
        ),
        route(get.clone(), pilot::REQUESTS, Operator, 200, 403),
        route(get.clone(), "/api/admin/workspace", Admin, 200, 200),
        route(patch.clone(), "/api/admin/workspace", Admin, 200, 200),
        with_body(
            route(post.clone(), "/api/admin/workspaces", Operator, 201, 403),
            || json!({"name": "matrix", "admin_email": new_email(), "admin_password": PASSWORD}),
        ),
        route(get.clone(), "/api/admin/actors", Operator, 200, 403),
        route(get.clone(), "/api/admin/workspaces", Operator, 200, 403),
        route(get, "/api/admin/workspaces/{id}", Operator, 200, 403),
        route(patch, "/api/admin/workspaces/{id}", Operator, 200, 403),
        with_body(
            route(post.clone(), "/api/auth/password", Token, 400, 403),
            || json!({"current_password": "wrong", "new_password": "quite another password 77"}),
        ),
        // The last one: no token is valid after it.
        route(post, "/api/auth/logout", Token, 204, 403),
    ]
}
