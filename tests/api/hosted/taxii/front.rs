//! Discovery, API roots and collections: who is answered, and in which form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use super::{MEDIA_TYPE, aliases, ask, root_of};
use crate::helpers::{ADMIN, Answer, Client, PASSWORD, TestApp, run};

fn basic(client: &Client, user: &str, password: &str) -> Client {
    let pair = STANDARD.encode(format!("{user}:{password}"));
    client.with_header("authorization", &format!("Basic {pair}"))
}

/// The status and the error object of TAXII.
async fn refused(answer: Answer) -> (u16, Value) {
    assert_eq!(answer.header("content-type"), Some(MEDIA_TYPE));
    let status = answer.status();
    let body: Value = serde_json::from_str(&answer.whole().await.1).unwrap();
    assert!(body["title"].is_string(), "{body}");
    assert_eq!(body["http_status"], status.to_string());
    (status, body)
}

#[test]
fn a_client_finds_its_collections() {
    run(async {
        let app = TestApp::shared().await;
        let answer = ask(&app.admin, "/taxii2/").await;
        assert_eq!(answer.header("content-type"), Some(MEDIA_TYPE));
        let discovery = answer.expect(200).await;
        let root = root_of(&app.admin).await;
        let whole = format!("{}{root}", app.admin.base);
        assert_eq!(discovery["default"], whole);
        assert_eq!(discovery["api_roots"], json!([whole]));
        let found = ask(&app.admin, &root).await.expect(200).await;
        assert_eq!(found["versions"], json!([MEDIA_TYPE]));
        assert!(found["max_content_length"].as_u64() > Some(0), "{found}");
        let found = ask(&app.admin, &format!("{root}collections/")).await;
        let found = found.expect(200).await;
        assert_eq!(aliases(&found), ["all", "tlp-white", "tlp-green", "tlp-amber"]);
        for one in found["collections"].as_array().unwrap() {
            assert_eq!(one["can_read"], true);
            assert_eq!(one["can_write"], false);
            for name in ["id", "alias"] {
                let path = format!("{root}collections/{}/", one[name].as_str().unwrap());
                assert_eq!(ask(&app.admin, &path).await.expect(200).await, *one);
                let without_slash = path.trim_end_matches('/');
                assert_eq!(ask(&app.admin, without_slash).await.expect(200).await, *one);
            }
        }
        app.admin
            .settings(json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true}))
            .await;
        let found = ask(&app.admin, &format!("{root}collections/")).await;
        let found = found.expect(200).await;
        assert_eq!(aliases(&found)[4..], ["tlp-amber-pk", "tlp-red"]);
        assert_eq!(found["collections"][5]["can_read"], false, "there is no grant");
        let writer = app.api_key(&["ingest"]).await;
        let found = ask(&writer, &format!("{root}collections/all/")).await;
        assert_eq!(found.expect(200).await["can_read"], false);
        app.stop().await;
    });
}

#[test]
fn a_refusal_has_the_error_object_of_taxii() {
    run(async {
        let app = TestApp::shared().await;
        let root = root_of(&app.admin).await;
        let stranger = app.workspace("stranger").await;
        let nil = format!("{root}collections/{}/", uuid::Uuid::nil());
        for path in [
            "/taxii2/nothing/",
            "/taxii2/a/b/c/d/e/f/g",
            &nil,
            &format!("{root}collections/tlp-red/"),
            &format!("{root}collections/no such/"),
        ] {
            assert_eq!(refused(ask(&app.admin, path).await).await.0, 404, "{path}");
        }
        assert_eq!(refused(ask(&stranger, &root).await).await.0, 404);
        for path in ["/taxii2/", &root, &format!("{root}collections/"), &nil] {
            let answer = ask(&app.anonymous(), path).await;
            let schemes: Vec<_> = answer.0.headers().get_all("www-authenticate").iter().collect();
            assert!(schemes[0].to_str().unwrap().starts_with("Basic "), "{schemes:?}");
            assert_eq!(refused(answer).await.0, 401, "{path}");
            let other = app
                .admin
                .request(Method::GET, path)
                .header("accept", "application/json");
            assert_eq!(refused(Answer(other.send().await.unwrap())).await.0, 406);
            let answer = Answer(app.admin.request(Method::PUT, path).send().await.unwrap());
            assert_eq!(answer.header("allow"), Some("GET, HEAD"));
            assert_eq!(refused(answer).await.0, 405);
        }
        app.stop().await;
    });
}

#[test]
fn a_client_that_can_do_basic_only_is_let_in() {
    run(async {
        let app = TestApp::spawn().await;
        let root = root_of(&app.admin).await;
        let (_, key) = app.admin.add_key(&["read"]).await;
        let nobody = app.anonymous();
        for client in [
            basic(&nobody, "whoever", &key),
            basic(&nobody, "", &key),
            basic(&nobody, "whoever", &key).with_header("x-api-key", &key),
            basic(&nobody, ADMIN, PASSWORD),
            nobody.with_header("x-api-key", &key),
            nobody.bearer(&key),
        ] {
            for path in ["/taxii2/", &root] {
                ask(&client, path).await.expect(200).await;
            }
        }
        let sign_ins = app.admin.audited("auth.login").await.len();
        let client = basic(&nobody, ADMIN, PASSWORD);
        for _ in 0..5 {
            ask(&client, "/taxii2/").await.expect(200).await;
        }
        assert_eq!(
            app.admin.audited("auth.login").await.len(),
            sign_ins,
            "one sign-in is enough"
        );
        for client in [
            basic(&nobody, ADMIN, "wrong"),
            basic(&nobody, "nobody@example.com", PASSWORD),
            basic(&nobody, "whoever", "tm_wrong"),
            basic(&nobody, "whoever", &key).with_header("x-api-key", "tm_other"),
            nobody.with_header("authorization", "Basic §"),
            nobody.with_header("authorization", "Basic"),
            nobody.with_header("authorization", "Digest x"),
        ] {
            assert_eq!(refused(ask(&client, "/taxii2/").await).await.0, 401);
        }
        // The API itself knows no Basic.
        assert_eq!(basic(&nobody, "", &key).get("/api/auth/me").await.status(), 401);
        app.stop().await;
    });
}

#[test]
fn a_password_that_was_changed_lets_nobody_in_any_more() {
    run(async {
        let app = TestApp::spawn().await;
        let (_, email) = app.admin.add_user("viewer").await;
        let client = basic(&app.anonymous(), &email, PASSWORD);
        ask(&client, "/taxii2/").await.expect(200).await;
        let user = app.anonymous().sign_in(&email, PASSWORD).await;
        let change = json!({"current_password": PASSWORD, "new_password": "quite another password 77"});
        user.post("/api/auth/password", &change).await.expect(204).await;
        for _ in 0..5 {
            let (status, _) = refused(ask(&client, "/taxii2/").await).await;
            assert!([401, 429].contains(&status), "{status}");
        }
        app.stop().await;
    });
}
