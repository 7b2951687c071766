//! A sign-in that a console began: the callback is a page that hands the answer over.

use serde_json::{Value, json};

use super::keys::Key;
use super::provider::{EMAIL, Provider};
use super::{Browser, add_user, oauth, oidc, spawn_with};
use crate::helpers::{Answer, TestApp, run, settings};

const ID: &str = "0123456789abcdef0123456789abcdef";

/// The value of a `meta` element.
fn meta(page: &str, name: &str) -> String {
    let start = format!("<meta name=\"{name}\" content=\"");
    let value = page.split_once(&start).unwrap().1.split('"').next().unwrap();
    let value = value.replace("&quot;", "\"").replace("&lt;", "<");
    value.replace("&gt;", ">").replace("&amp;", "&")
}

/// The status of an answer, and what its page hands over.
async fn handed_over(answer: Answer) -> (u16, Value) {
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(
        answer.header("content-security-policy"),
        Some(crate::pages::POLICY)
    );
    let (status, page) = answer.whole().await;
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    assert_eq!(meta(&page, "channel"), format!("threat-memory.sign-in.{ID}"));
    (status, serde_json::from_str(&meta(&page, "answer")).unwrap())
}

#[test]
fn the_console_gets_the_answer_and_a_later_sign_in_elsewhere_does_not_go_there() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let mut browser = Browser::new(&app);
        let path = format!("corp?console={ID}");
        let (status, answer) = handed_over(browser.sign_in(&provider, &path).await).await;
        assert_eq!((status, &answer["status"]), (200, &json!(200)));
        let token = answer["body"]["access_token"].as_str().unwrap();
        let me = app
            .anonymous()
            .bearer(token)
            .get("/api/auth/me")
            .await
            .expect(200)
            .await;
        assert_eq!(me["user"]["email"], EMAIL.to_lowercase());
        assert_eq!(browser.cookies, []);

        // A console's sign-in that was left, and then one without a console.
        browser.begin(&path).await;
        assert_eq!(browser.cookies.len(), 2);
        let answer = browser.sign_in(&provider, "corp").await.expect(200).await;
        assert!(answer["access_token"].is_string(), "{answer}");
        assert_eq!(browser.cookies, []);
        app.stop().await;
    });
}

#[test]
fn the_console_is_told_why_a_sign_in_failed() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let mut browser = Browser::new(&app);
        let location = browser.begin(&format!("corp?console={ID}")).await;
        let mut callback = provider.consent(&location).await;
        let state = callback
            .query_pairs()
            .find(|(name, _)| name == "state")
            .unwrap()
            .1
            .into_owned();
        callback
            .query_pairs_mut()
            .clear()
            .append_pair("state", &state)
            .append_pair("error", "access_denied");
        let (status, answer) = handed_over(browser.back(&callback).await).await;
        let body = json!({"error": "the sign-in was cancelled or refused at the provider"});
        assert_eq!((status, answer), (401, json!({"status": 401, "body": body})));

        // The name of a workspace is a text that others chose.
        let other = app.workspace("\"><script>&amp;").await;
        add_user(&other, EMAIL).await;
        let answer = browser.sign_in(&provider, &format!("corp?console={ID}")).await;
        let (status, answer) = handed_over(answer).await;
        let error = answer["body"]["error"].as_str().unwrap();
        assert!(status == 400 && error.contains("\"><script>&amp;"), "{error}");
        app.stop().await;
    });
}

#[test]
fn the_id_of_a_console_is_checked() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        for id in ["x", &ID.to_uppercase(), &ID[1..], &format!("{ID}0")] {
            let answer = app
                .anonymous()
                .get(&format!("/api/auth/oauth/corp?console={id}"))
                .await;
            let error = answer.refused(400).await;
            assert!(error.starts_with("console"), "{error}");
        }
        app.stop().await;

        let mut settings = settings("mem://");
        settings.oauth = oauth([("corp", oidc(&provider))]);
        settings.server.console = false;
        let app = TestApp::with(settings).await;
        let path = format!("/api/auth/oauth/corp?console={ID}");
        let error = app.anonymous().get(&path).await.refused(400).await;
        assert_eq!(error, "console: must be left out: server.console is off");
        app.stop().await;
    });
}
