//! What the operator decides about workspaces, administrators who remove each other, and signing out.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::eventually;

use super::feeds::server::Server;
use super::feeds::{PAGE, allowing, tools};
use crate::helpers::{ADMIN, Answer, Client, PASSWORD, TestApp, run, settings};
use crate::stix::text;

const LOGOUT: &str = "/api/auth/logout";
const WORKSPACES: &str = "/api/admin/workspaces";
const SUSPENDED: &str = "the workspace is suspended by the operator of this service";

async fn id_of(user: &Client) -> String {
    let me = user.get("/api/auth/me").await.expect(200).await;
    text(&me["user"], "id").to_owned()
}

async fn workspace_of(user: &Client) -> String {
    let me = user.get("/api/auth/me").await.expect(200).await;
    text(&me["workspace"], "id").to_owned()
}

/// Two administrators change each other at the same moment; the statuses of their answers.
async fn change_each_other(pair: [(&Client, &str); 2], change: &Value) -> [u16; 2] {
    let [(one, first), (other, second)] = pair;
    let (first, second) = (
        format!("/api/admin/users/{first}"),
        format!("/api/admin/users/{second}"),
    );
    let (one, other) = tokio::join!(one.patch(&second, change), other.patch(&first, change));
    [one.status(), other.status()]
}

#[test]
fn of_two_administrators_who_remove_each_other_one_stays() {
    run(async {
        let app = TestApp::shared().await;
        let second = app.user("admin").await;
        let ids = [id_of(&app.admin).await, id_of(&second).await];
        let clients = [&app.admin, &second];
        let demoted = json!({"role": "viewer"});
        for round in 0..16 {
            let pair = [(clients[0], ids[0].as_str()), (clients[1], ids[1].as_str())];
            let mut statuses = change_each_other(pair, &demoted).await;
            let left = clients.map(|client| client.get("/api/admin/users"));
            let [one, other] = left;
            let rights = [one.await.status(), other.await.status()];
            let winner = rights.iter().position(|status| *status == 200);
            let winner = winner.unwrap_or_else(|| panic!("round {round}: nobody is left, {statuses:?}"));
            assert_eq!(rights[1 - winner], 403, "round {round}");
            statuses.sort_unstable();
            // The later one is either no administrator when it is admitted, or none when it is written.
            assert_eq!(statuses, [200, 403], "round {round}");
            let again = json!({"role": "admin"});
            let path = format!("/api/admin/users/{}", ids[1 - winner]);
            clients[winner].patch(&path, &again).await.expect(200).await;
        }
        let pair = [(clients[0], ids[0].as_str()), (clients[1], ids[1].as_str())];
        change_each_other(pair, &json!({"disabled": true})).await;
        let [one, other] = clients.map(|client| client.get("/api/admin/users"));
        let mut rights = [one.await.status(), other.await.status()];
        rights.sort_unstable();
        assert_eq!(rights, [200, 401]);
        app.stop().await;
    });
}

#[test]
fn of_two_administrators_who_erase_each_other_one_stays() {
    run(async {
        let app = TestApp::shared().await;
        let second = app.user("admin").await;
        let ids = [id_of(&app.admin).await, id_of(&second).await];
        let clients = [&app.admin, &second];
        let erase = |who: usize| {
            let body = json!({"user_id": ids[1 - who]});
            async move { clients[who].post("/api/admin/erasures", &body).await.status() }
        };
        let (one, other) = tokio::join!(erase(0), erase(1));
        let accepted = [one, other].iter().filter(|status| **status == 202).count();
        assert_eq!(accepted, 1, "{one} {other}");
        let [one, other] = clients.map(|client| client.get("/api/admin/users"));
        let mut rights = [one.await.status(), other.await.status()];
        rights.sort_unstable();
        assert_eq!(rights, [200, 401]);
        app.stop().await;
    });
}

#[test]
fn the_tier_is_the_operators_and_both_logs_tell_of_it() {
    run(async {
        let app = TestApp::spawn().await;
        let tenant = app.workspace("Tenant").await;
        for tier in ["enterprise", "team", "pilot"] {
            let change = json!({"tier": tier});
            let refused = tenant
                .patch("/api/admin/workspace", &change)
                .await
                .refused(403)
                .await;
            assert!(refused.starts_with("tier: is set by the operator"), "{refused}");
            let own = format!("{WORKSPACES}/{}", workspace_of(&tenant).await);
            let refused = tenant.patch(&own, &change).await.refused(403).await;
            assert!(
                refused.starts_with("only the operator's administrators"),
                "{refused}"
            );
        }
        // Beside other settings it is left out.
        let change = json!({"tier": "enterprise", "tlp_ceiling": "TLP:GREEN"});
        let answer = tenant
            .patch("/api/admin/workspace", &change)
            .await
            .expect(200)
            .await;
        let changed = &answer["workspace"];
        assert_eq!(
            (&changed["tier"], &changed["tlp_ceiling"]),
            (&json!("pilot"), &json!("TLP:GREEN"))
        );
        assert_eq!(
            answer["warnings"],
            json!(["tier: is set by the operator of this service, for each workspace, so it stays pilot"])
        );
        let listed = app.admin.get(WORKSPACES).await.expect(200).await;
        assert_eq!(listed["count"], 2, "{listed}");
        let names: Vec<&str> = (0..2).map(|at| text(&listed["workspaces"][at], "name")).collect();
        assert_eq!(names, ["Operator", "Tenant"]);
        let shown = app.admin.oversees(&tenant, json!({"tier": "team"})).await;
        assert_eq!(
            (&shown["tier"], &shown["suspended"]),
            (&json!("team"), &json!(false))
        );
        assert_eq!(shown, listed_as(&app, &shown).await);
        assert_eq!(
            crate::helpers::keys_of(&shown),
            ["created_at", "id", "name", "suspended", "tier"]
        );
        let me = tenant.get("/api/auth/me").await.expect(200).await;
        assert_eq!(me["workspace"]["tier"], "team");

        let changes = app.admin.audited("admin.workspace_change").await;
        assert_eq!(changes.len(), 1);
        assert_eq!(
            (&changes[0]["user_email"], &changes[0]["resource_id"]),
            (&json!(ADMIN), &shown["id"])
        );
        assert_eq!(changes[0]["metadata"], json!({"tier": "team"}));
        let changes = tenant.audited("admin.workspace_change").await;
        assert_eq!(changes.len(), 2, "the operator's, and the tenant's own before it");
        assert_eq!(changes[0]["metadata"], json!({"tier": "team", "by": "operator"}));
        assert_eq!(
            [&changes[0]["user_email"], &changes[0]["ip_address"]],
            [&Value::Null; 2]
        );
        for client in [&app.admin, &tenant] {
            let report = client.get("/api/audit/verify").await.expect(200).await;
            assert_eq!(report["valid"], true);
        }

        let nobody = format!("{WORKSPACES}/{}", uuid::Uuid::new_v4());
        for path in [nobody.as_str(), "/api/admin/workspaces/x"] {
            app.admin.get(path).await.refused(404).await;
            app.admin
                .patch(path, &json!({"tier": "team"}))
                .await
                .refused(404)
                .await;
        }
        let own = format!("{WORKSPACES}/{}", workspace_of(&app.admin).await);
        let refused = app
            .admin
            .patch(&own, &json!({"suspended": true}))
            .await
            .refused(409)
            .await;
        assert!(refused.starts_with("suspended: "), "{refused}");
        let refused = app
            .admin
            .patch(&own, &json!({"tier": "gold"}))
            .await
            .refused(400)
            .await;
        assert!(refused.starts_with("tier: must be one of"), "{refused}");
        app.admin.settings(json!({"tier": "team"})).await;
        app.stop().await;
    });
}

async fn listed_as(app: &TestApp, shown: &Value) -> Value {
    let path = format!("{WORKSPACES}/{}", text(shown, "id"));
    app.admin.get(&path).await.expect(200).await["workspace"].clone()
}

#[test]
fn a_suspended_workspace_is_refused_everywhere_until_it_is_not() {
    run(async {
        let mut settings = allowing(settings("mem://"));
        settings.feeds.answer_ms = 200;
        settings.feeds.timeout_ms = 60_000;
        let app = TestApp::with(settings).await;
        let tenant = app.workspace("Tenant").await;
        let (_, email) = tenant.add_user("viewer").await;
        let viewer = app.anonymous().sign_in(&email, PASSWORD).await;
        let leaving = app.anonymous().sign_in(&email, PASSWORD).await;
        let (_, key) = tenant.add_key(&["read", "ingest"]).await;
        let key = app.anonymous().with_header("x-api-key", &key);
        let server = Server::start(&tools(3 * PAGE)).await;
        server.allow(0);
        let feed = tenant.feed_of(&server).await;
        let batch = tenant.pulls(&feed).await.expect(201).await["batch"].clone();
        assert_eq!(batch["status"], "pulling");

        let shown = app.admin.oversees(&tenant, json!({"suspended": true})).await;
        assert_eq!(shown["suspended"], true);
        server.release();
        for client in [&tenant, &viewer, &key] {
            for path in [
                "/api/auth/me",
                "/api/recall/search?q=x",
                "/api/threat-intel/feeds",
            ] {
                let answer = client.get(path).await;
                assert!(answer.header("ratelimit-limit").is_some());
                assert_eq!(answer.refused(403).await, SUSPENDED);
            }
        }
        // Who signs out now does not come back with the workspace.
        leaving.post(LOGOUT, &json!({})).await.expect(204).await;
        leaving.post(LOGOUT, &json!({})).await.refused(401).await;
        let refused = key.post(LOGOUT, &json!({})).await.refused(403).await;
        assert!(refused.starts_with("only a user's token"), "{refused}");
        let login = app.anonymous().login(&email, PASSWORD).await;
        assert_eq!(login.refused(403).await, SUSPENDED);
        // Who does not know the password learns nothing.
        app.anonymous()
            .login(&email, "a wrong password")
            .await
            .refused(401)
            .await;
        app.admin.get("/api/auth/me").await.expect(200).await;

        app.admin
            .patch(
                &format!("{WORKSPACES}/{}", text(&shown, "id")),
                &json!({"suspended": false}),
            )
            .await
            .expect(200)
            .await;
        for client in [&tenant, &viewer, &key] {
            client.get("/api/recall/search?q=x").await.expect(200).await;
            client.get("/api/auth/me").await.expect(200).await;
        }
        leaving.get("/api/auth/me").await.refused(401).await;
        assert_eq!(tenant.audited("auth.logout").await.len(), 1);
        let ended = eventually(|| async {
            let batch = tenant.feed_batch(text(&batch, "id")).await;
            if batch["status"] == "failed" {
                Ok(batch)
            } else {
                Err(batch)
            }
        })
        .await;
        assert_eq!(ended["pages"], 0, "{ended}");
        let denied = tenant.audited("auth.login").await;
        let denied: Vec<&Value> = denied
            .iter()
            .filter(|entry| entry["outcome"] == "denied")
            .collect();
        assert_eq!(denied.len(), 1);
        assert_eq!(denied[0]["metadata"]["reason"], "workspace suspended");
        assert_eq!(tenant.audited("admin.workspace_change").await.len(), 2);
        app.stop().await;
    });
}

#[test]
fn a_token_that_was_signed_out_is_refused_for_good_and_no_other_is() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = TestApp::durable(dir.path()).await;
        let (leaving, staying) = (
            app.anonymous().sign_in(ADMIN, PASSWORD).await,
            app.anonymous().sign_in(ADMIN, PASSWORD).await,
        );
        let request = leaving.request(Method::POST, LOGOUT).send().await.unwrap();
        Answer(request).expect(204).await;
        leaving.get("/api/auth/me").await.refused(401).await;
        leaving.post(LOGOUT, &json!({})).await.refused(401).await;
        staying.get("/api/auth/me").await.expect(200).await;
        let logs = staying.audited("auth.logout").await;
        assert_eq!((logs.len(), &logs[0]["user_email"]), (1, &json!(ADMIN)));
        let (_, key) = staying.add_key(&["read"]).await;
        let key = app.anonymous().with_header("x-api-key", &key);
        let refused = key.post(LOGOUT, &json!({})).await.refused(403).await;
        assert!(refused.starts_with("only a user's token"), "{refused}");
        key.get("/api/auth/me").await.expect(200).await;
        let tokens = [leaving, staying].map(|client| client.sends("authorization").to_owned());
        app.stop().await;

        let app = TestApp::durable(dir.path()).await;
        for (token, status) in tokens.iter().zip([401, 200]) {
            let client = app.anonymous().with_header("authorization", token);
            assert_eq!(client.get("/api/auth/me").await.status(), status);
        }
        app.stop().await;
    });
}

#[test]
fn the_metrics_answer_no_foreign_host() {
    run(async {
        let app = TestApp::shared().await;
        let client = app.anonymous();
        let port = client.admin_base.rsplit_once(':').unwrap().1.to_owned();
        for (host, status) in [
            (format!("127.0.0.1:{port}"), 200),
            (format!("localhost:{port}"), 200),
            (format!("evil.example:{port}"), 421),
            ("127.0.0.1.evil.example".to_owned(), 421),
            ("192.0.2.1".to_owned(), 421),
        ] {
            for path in ["/metrics", "/nothing"] {
                let request = client.http.get(format!("{}{path}", client.admin_base));
                let answer = request.header("host", &host).send().await.unwrap();
                let want = if status == 200 && path == "/nothing" {
                    404
                } else {
                    status
                };
                assert_eq!(answer.status().as_u16(), want, "{host} {path}");
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_weak_password_is_refused_with_its_rule() {
    run(async {
        let app = TestApp::shared().await;
        let user = format!("/api/admin/users/{}", app.admin.add_user("viewer").await.0);
        for (password, rule) in [
            ("aaaaaaaaaaaa", "different characters"),
            ("secretsecret", "repeated word"),
            ("abcdefghijklm", "sequence"),
            ("Someone@Example.com", "e-mail"),
            ("Password12345", "common password"),
        ] {
            let new = json!({"email": "someone@example.com", "password": password, "role": "viewer"});
            let refused = app.admin.post("/api/admin/users", &new).await.refused(400).await;
            assert!(
                refused.starts_with("password: must ") && refused.contains(rule),
                "{refused}"
            );
            if rule != "e-mail" {
                let refused = app.admin.patch(&user, &json!({"password": password})).await;
                assert!(refused.refused(400).await.contains(rule));
            }
        }
        app.stop().await;
    });
}
