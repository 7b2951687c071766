//! Every route with every kind of caller, and a check that no route is missing from the table.

mod routes;
mod source;

use std::collections::BTreeSet;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use test_support::eventually;

use self::routes::routes;
use self::source::routes_in_the_source;
pub use self::source::routes_of_the_source;
use super::feeds;
use crate::helpers::{Answer, Client, TestApp, run, settings};
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
                let made = app.admin.post(super::collections::COLLECTIONS, &new).await;
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
