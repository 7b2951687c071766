//! Every route with every kind of caller, and a check that no route is missing from the table.

mod source;

use std::collections::BTreeSet;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use test_support::eventually;

use self::source::routes_in_the_source;
pub use self::source::routes_of_the_source;
use super::{collections, feeds, pilot};
use crate::helpers::{Answer, Client, PASSWORD, TestApp, run, settings};
use crate::stix;

/// What a route requires of its caller.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Needs {
    Nothing,
    SignIn,
    /// A token, not an API key.
    Token,
    RecallRead,
    /// `recall:write` and the feature `knowledge_graph`.
    RecallWrite,
    AuditRead,
    AuditExport,
    Admin,
    /// An administrator of the operator's workspace.
    Operator,
}

const CALLERS: [&str; 13] = [
    "nobody",
    "garbage token",
    "revoked key",
    "expired key",
    "viewer",
    "analyst",
    "audit",
    "admin",
    "key[read]",
    "key[ingest]",
    "key[read,ingest]",
    "foreign admin",
    "foreign admin without features",
];

impl Needs {
    /// One character per caller: `1` is 401, `3` is 403, `+` the route's success status, `f` its status for another
    /// workspace.
    fn verdicts(self) -> &'static str {
        //  nobody, garbage, revoked, expired | viewer, analyst, audit, admin | r, i, ri | foreign, no features
        match self {
            Needs::Nothing => "+++++++++++++",
            Needs::SignIn => "1111+++++++++",
            Needs::Token => "1111++++fff++",
            Needs::RecallRead => "1111+++++3+ff",
            Needs::RecallWrite => "11113+3+3++f3",
            Needs::AuditRead => "111133++333ff",
            Needs::AuditExport => "111133++333ff",
            Needs::Admin => "1111333+333ff",
            Needs::Operator => "1111333+33333",
        }
    }
}

/// One route, with the status for a permitted caller and that for a permitted caller of another workspace.
struct Route {
    method: Method,
    path: &'static str,
    needs: Needs,
    success: u16,
    foreign: u16,
    body: fn() -> Value,
}

fn route(method: Method, path: &'static str, needs: Needs, success: u16, foreign: u16) -> Route {
    Route {
        method,
        path,
        needs,
        success,
        foreign,
        body: || json!({}),
    }
}

fn with_body(mut route: Route, body: fn() -> Value) -> Route {
    route.body = body;
    route
}

const PREVIEW: &str = "Fancy Bear used Mimikatz against 198.51.100.7 and exploited CVE-2024-3094.";

fn new_email() -> String {
    format!("{}@example.com", uuid::Uuid::new_v4())
}

fn routes() -> Vec<Route> {
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
        route(get.clone(), pilot::REQUESTS, Operator, 200, 403),
        route(get.clone(), "/api/admin/workspace", Admin, 200, 200),
        route(patch.clone(), "/api/admin/workspace", Admin, 200, 200),
        with_body(
            route(post.clone(), "/api/admin/workspaces", Operator, 201, 403),
            || json!({"name": "matrix", "admin_email": new_email(), "admin_password": PASSWORD}),
        ),
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

/// The callers, in the order of [`CALLERS`].
async fn callers(app: &TestApp) -> Vec<Client> {
    let nobody = app.anonymous();
    let soon = chrono::Utc::now() + chrono::Duration::milliseconds(500);
    let body = json!({"name": "short-lived", "scopes": ["read", "ingest"], "expires_at": soon});
    let made = app.admin.post("/api/admin/api-keys", &body).await;
    let made = made.expect(201).await;
    let expired = nobody.with_header("x-api-key", made["key"].as_str().unwrap());
    let (id, key) = app.admin.add_key(&["read", "ingest"]).await;
    let revoked = nobody.with_header("x-api-key", &key);
    revoked.get("/api/auth/me").await.expect(200).await;
    let revoke = format!("/api/admin/api-keys/{id}");
    app.admin.delete(&revoke).await.expect(204).await;
    let bare = app.workspace("without features").await;
    bare.settings(json!({"features": []})).await;
    let callers = vec![
        nobody.clone(),
        nobody.bearer("eyJhbGciOiJIUzI1NiJ9.e30.garbage"),
        revoked,
        expired.clone(),
        app.user("viewer").await,
        app.user("analyst").await,
        app.user("audit").await,
        app.admin.clone(),
        app.api_key(&["read"]).await,
        app.api_key(&["ingest"]).await,
        app.api_key(&["read", "ingest"]).await,
        app.workspace("foreign").await,
        bare,
    ];
    // Most of the key's half-second lifetime has passed during the sign-ins above.
    eventually(|| async {
        let status = expired.get("/api/auth/me").await.status();
        if status == 401 { Ok(()) } else { Err(status) }
    })
    .await;
    callers
}

async fn send(client: &Client, route: &Route, ids: &[(&str, String)]) -> Answer {
    let id = ids.iter().find(|(prefix, _)| route.path.starts_with(prefix));
    let mut path = id.map_or(route.path.to_owned(), |(_, id)| route.path.replace("{id}", id));
    if let Some((_, item)) = ids.iter().find(|(name, _)| *name == "{item}") {
        path = path.replace("{item}", item);
    }
    if route.path.ends_with("/search") || route.path.ends_with("/semantic") {
        path.push_str("?q=matrix+tool");
    } else if (route.method.as_str(), route.path) == ("GET", "/api/recall/lookup") {
        path.push_str("?value=203.0.113.77");
    } else if route.path.ends_with("/demo-export.stix") {
        path.push_str("?q=sandworm");
    } else if let ("/api/nodes", Some((_, object))) =
        (route.path, ids.iter().find(|(name, _)| *name == "stix_id"))
    {
        path.push_str(&format!("?stix_id={object}"));
    } else if (route.method.as_str(), route.path) == ("DELETE", "/api/threat-intel/feeds/{id}") {
        path = format!("{}/{}", feeds::FEEDS, uuid::Uuid::nil());
    }
    // From many addresses: public routes have limits per address.
    let request = client.elsewhere().request(route.method.clone(), &path);
    let request = match route.method {
        Method::POST | Method::PATCH | Method::DELETE => request.json(&(route.body)()),
        _ => request,
    };
    Answer(request.send().await.unwrap())
}

#[test]
fn every_route_answers_every_caller_as_the_table_says() {
    run(async {
        let mut settings = feeds::allowing(settings("mem://"));
        settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
        let app = TestApp::with(settings).await;
        app.admin
            .ingest(json!([stix::object("tool", "Matrix Tool")]))
            .await;
        let found = app.admin.search("Matrix Tool").await;
        let staged = app
            .admin
            .post("/api/ingest/preview", &json!({"text": PREVIEW}))
            .await;
        let staged = staged.expect(200).await;
        let bundle = json!({"input_kind": "stix_bundle", "bundle": [stix::object("tool", "Matrix Item")]});
        let upload = app.admin.post(feeds::BATCHES, &bundle).await.expect(201).await;
        let part = |value: &Value| value.as_str().unwrap().to_owned();
        let ids = [
            (
                "/api/threat-intel/feeds/",
                app.admin.feed_at("http://127.0.0.1:9/objects/", json!({})).await,
            ),
            ("/api/threat-intel/batches/", part(&upload["batch"]["id"])),
            ("{item}", part(&upload["items"][0]["id"])),
            ("/api/ingest/batch/", part(&staged["batch_id"])),
            ("/api/ingest/staging/", part(&staged["entities"][0]["id"])),
            (
                "/api/recall/sessions/",
                found["recall_id"].as_str().unwrap().to_owned(),
            ),
            ("/api/nodes/", part(&found["results"][0]["id"])),
            ("stix_id", part(&found["results"][0]["properties"]["stix_id"])),
            (
                "/api/evidence/",
                part(&found["results"][0]["linked_evidence_ids"][0]),
            ),
            ("/api/admin/users/", app.admin.add_user("viewer").await.0),
            ("/api/admin/api-keys/", app.admin.add_key(&["read"]).await.0),
            ("/api/admin/collections/", {
                let new = json!({"title": "matrix"});
                let made = app.admin.post(collections::COLLECTIONS, &new).await;
                part(&made.expect(201).await["collection"]["id"])
            }),
            ("/api/admin/workspaces/", {
                let own = app.admin.get("/api/auth/me").await.expect(200).await;
                part(&own["workspace"]["id"])
            }),
        ];
        let callers = callers(&app).await;
        let mut wrong = Vec::new();
        for route in routes() {
            assert_eq!(route.needs.verdicts().len(), CALLERS.len(), "{:?}", route.needs);
            let answers = join_all(callers.iter().map(|client| send(client, &route, &ids))).await;
            for ((name, answer), verdict) in CALLERS.iter().zip(answers).zip(route.needs.verdicts().chars()) {
                let want = match verdict {
                    '1' => 401,
                    '3' => 403,
                    'f' => route.foreign,
                    _ => route.success,
                };
                let (status, body) = answer.whole().await;
                let error = serde_json::from_str::<Value>(&body).is_ok_and(|body| body["error"].is_string());
                if status != want || (status >= 400) != error {
                    wrong.push(format!(
                        "{} {} as {name}: {status}, not {want}: {body}",
                        route.method, route.path
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        app.stop().await;
    });
}

#[test]
fn the_table_names_every_route_of_the_source() {
    let table: BTreeSet<(String, String)> = routes()
        .iter()
        .map(|route| (route.method.to_string(), route.path.to_owned()))
        .collect();
    let source = routes_in_the_source();
    let missing: Vec<_> = source.difference(&table).collect();
    let gone: Vec<_> = table.difference(&source).collect();
    assert!(missing.is_empty(), "not in the table of this test: {missing:?}");
    assert!(gone.is_empty(), "in the table, but no route: {gone:?}");
}
