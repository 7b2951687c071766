//! What every route leaves in the audit log, with success and with refusal.
//!
//! Audited are sign-ins and their failures, every search, export and denied export, every ingest, staging change, commit,
//! feed and batch, administrative change, audit export, and pilot request. Nothing else is.

mod administration;
mod corrections;
mod merges;
mod steps;

use std::collections::BTreeSet;

use serde_json::Value;

use super::auth_matrix::routes_of_the_source;
use super::feeds;
use crate::helpers::{Answer, TestApp, run, settings};
use crate::stix::text;

/// Routes that read and are no search: they leave nothing in the log.
const SILENT: [&str; 28] = [
    "GET /health",
    "GET /api/health",
    "GET /openapi.json",
    "GET /docs",
    "GET /docs/{file}",
    "GET /api/auth/me",
    "GET /api/auth/providers",
    "GET /api/auth/oauth/{provider}",
    "GET /api/ingest/batch",
    "GET /api/ingest/batch/{id}",
    "GET /api/threat-intel/feeds",
    "GET /api/threat-intel/feeds/{id}",
    "GET /api/threat-intel/batches",
    "GET /api/threat-intel/batches/{id}",
    "GET /api/threat-intel/batches/{id}/items/{item}",
    "GET /api/admin/users",
    "GET /api/admin/api-keys",
    "GET /api/admin/collections",
    "GET /api/admin/collections/{id}",
    "GET /api/admin/workspace",
    "GET /api/admin/actors",
    "GET /api/admin/workspaces",
    "GET /api/admin/erasures/{id}",
    "GET /api/admin/workspaces/{id}",
    "GET /api/audit/logs",
    "GET /api/audit/verify",
    "GET /api/recall/sessions",
    "GET /api/recall/sessions/{id}",
];
/// Its audit entries need a provider: `hosted/oauth` checks them.
const ELSEWHERE: [&str; 1] = ["GET /api/auth/oauth/{provider}/callback"];

/// The audit log of the operator's workspace, read step by step.
struct Log<'a> {
    app: &'a TestApp,
    seen: BTreeSet<String>,
    routes: BTreeSet<String>,
}

impl<'a> Log<'a> {
    async fn of(app: &'a TestApp) -> Self {
        let mut log = Self {
            app,
            seen: BTreeSet::new(),
            routes: BTreeSet::new(),
        };
        log.added().await;
        log
    }

    /// What was recorded since the last call: action and outcome, oldest first.
    async fn added(&mut self) -> Vec<(String, String)> {
        // No step leaves as many.
        let newest = self
            .app
            .admin
            .get("/api/audit/logs?limit=40")
            .await
            .expect(200)
            .await;
        let mut logs = newest["logs"].as_array().unwrap().clone();
        logs.retain(|entry| self.seen.insert(text(entry, "id").to_owned()));
        let part = |entry: &Value, key: &str| text(entry, key).to_owned();
        logs.iter()
            .rev()
            .map(|entry| (part(entry, "action"), part(entry, "outcome")))
            .collect()
    }

    /// Checks an answer's status and what its request left in the log; returns the body.
    #[track_caller]
    fn step(
        &mut self,
        route: &'static str,
        answer: Answer,
        status: u16,
        wants: &[(&str, &str)],
    ) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        self.routes.insert(route.to_owned());
        async move {
            let (got, body) = answer.whole().await;
            assert_eq!(got, status, "{route} at {caller}: {body}");
            let added = self.added().await;
            let added: Vec<(&str, &str)> = added
                .iter()
                .map(|(action, outcome)| (&**action, &**outcome))
                .collect();
            assert_eq!(added, wants, "{route} at {caller}");
            serde_json::from_str(&body).unwrap_or(Value::Null)
        }
    }
}

#[test]
fn every_route_leaves_what_the_list_says() {
    run(async {
        let mut settings = feeds::allowing(settings("mem://"));
        settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
        let app = TestApp::with(settings).await;
        let (viewer, key) = (app.user("viewer").await, app.api_key(&["ingest"]).await);
        let mut log = Log::of(&app).await;
        steps::sign_in_and_public(&mut log).await;
        steps::ingest(&mut log, &viewer).await;
        steps::staging(&mut log, &viewer).await;
        steps::recall(&mut log, &key).await;
        steps::agents(&mut log, &key).await;
        merges::merges(&mut log).await;
        corrections::corrections(&mut log).await;
        steps::threat_feeds(&mut log, &viewer).await;
        administration::administration(&mut log, &viewer).await;
        steps::silent(&mut log, &viewer).await;

        let named = log
            .routes
            .iter()
            .map(String::as_str)
            .chain(ELSEWHERE)
            .collect::<BTreeSet<_>>();
        let all = routes_of_the_source();
        let missing: Vec<&String> = all
            .iter()
            .filter(|route| !named.contains(route.as_str()))
            .collect();
        assert!(missing.is_empty(), "not called by this test: {missing:?}");
        let report = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(report["valid"], true);
        app.stop().await;
    });
}
