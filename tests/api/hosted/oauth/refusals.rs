//! Callbacks that belong to no sign-in of the browser, and refusals of the provider.

use super::*;
use crate::helpers::run;

/// The same URL with other query parameters.
fn with(callback: &Url, pairs: &[(&str, &str)]) -> Url {
    let mut url = callback.clone();
    let kept: Vec<(String, String)> = callback
        .query_pairs()
        .into_owned()
        .filter(|(name, _)| !pairs.iter().any(|(other, _)| other == name))
        .collect();
    url.query_pairs_mut().clear().extend_pairs(kept);
    url.query_pairs_mut()
        .extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    url
}

#[test]
fn a_callback_needs_the_state_and_the_cookie_of_its_own_sign_in() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn(oauth([("corp", oidc(&provider)), ("other", oidc(&provider))])).await;
        add_user(&app.admin, EMAIL).await;
        // Another browser is led to the callback of an attacker's sign-in, without and with a sign-in of its own.
        let mut attacker = Browser::new(&app);
        let callback = provider.consent(&attacker.begin("corp").await).await;
        let mut victim = Browser::new(&app);
        assert_eq!(victim.back(&callback).await.refused(401).await, NOT_PENDING);
        victim.begin("corp").await;
        assert_eq!(victim.back(&callback).await.refused(401).await, NOT_PENDING);
        // Any page can make a browser send this, so it ends no sign-in and leaves nothing in the log.
        assert!(!victim.cookies.is_empty());
        let entries = app.admin.audited("auth.login").await;
        assert!(entries.iter().all(|entry| entry["outcome"] == "success"));
        // A wrong state, and one that is cut off.
        let mut browser = Browser::new(&app);
        for cut in [0, 42] {
            let callback = provider.consent(&browser.begin("corp").await).await;
            let state = callback
                .query_pairs()
                .find(|(name, _)| name == "state")
                .unwrap()
                .1;
            let state = if cut == 0 {
                "x".repeat(43)
            } else {
                state[..cut].to_owned()
            };
            let callback = with(&callback, &[("state", &state)]);
            assert_eq!(browser.back(&callback).await.refused(401).await, NOT_PENDING);
        }
        // The cookie of another provider, and one that is changed.
        let callback = provider.consent(&browser.begin("corp").await).await;
        let (name, value, _) = browser.cookies.pop().unwrap();
        let other_letter = if value.starts_with('A') { 'B' } else { 'A' };
        let changed = format!("{other_letter}{}", &value[1..]);
        let other = callback.as_str().replace("/corp/", "/other/").parse().unwrap();
        for (callback, value) in [(&other, &value), (&callback, &changed)] {
            browser.cookies = vec![(name.clone(), value.clone(), "/".into())];
            assert_eq!(browser.back(callback).await.refused(401).await, NOT_PENDING);
        }
        assert!(provider.seen("/token").is_empty(), "no code was sent on");
        // All the while the sign-in itself is still possible.
        browser.cookies = vec![(name, value, "/".into())];
        browser.back(&callback).await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn an_access_token_is_no_cookie_and_a_cookie_no_access_token() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let mut browser = Browser::new(&app);
        let callback = provider.consent(&browser.begin("corp").await).await;
        let cookie = browser.cookies[0].1.clone();
        let answer = app.anonymous().bearer(&cookie).get("/api/auth/me").await;
        answer.refused(401).await;
        let token = app.admin.sends("authorization").replace("Bearer ", "");
        browser.cookies[0].1 = token;
        assert_eq!(browser.back(&callback).await.refused(401).await, NOT_PENDING);
        app.stop().await;
    });
}

#[test]
fn a_callback_and_a_code_work_once() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let mut browser = Browser::new(&app);
        let callback = provider.consent(&browser.begin("corp").await).await;
        let cookies = browser.cookies.clone();
        browser.back(&callback).await.expect(200).await;
        // A browser that goes back, or somebody who has seen both cookie and URL.
        browser.cookies = cookies;
        assert_eq!(browser.back(&callback).await.refused(401).await, NOT_PENDING);
        assert_eq!(provider.seen("/token").len(), 1);
        // The same code in another sign-in, and a code that was issued to another sign-in.
        let code = callback.query_pairs().find(|(name, _)| name == "code").unwrap().1;
        let second = provider.consent(&Browser::new(&app).begin("corp").await).await;
        let stolen = second.query_pairs().find(|(name, _)| name == "code").unwrap().1;
        for code in [&code, &stolen] {
            let fresh = provider.consent(&browser.begin("corp").await).await;
            let error = browser
                .back(&with(&fresh, &[("code", code)]))
                .await
                .refused(401)
                .await;
            assert!(
                error.starts_with("the provider refused the authorization code"),
                "{error}"
            );
            assert_eq!(last_audited(&app).await["metadata"]["reason"], "code refused");
        }
        app.stop().await;
    });
}

#[test]
fn what_the_provider_refuses_is_refused_in_our_own_words() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let mut browser = Browser::new(&app);
        for (error, status) in [
            ("access_denied", 401),
            ("login_required", 401),
            ("server_error", 502),
            ("<script>alert(1)</script>", 502),
        ] {
            let callback = provider.consent(&browser.begin("corp").await).await;
            let pairs = [
                ("error", error),
                ("error_description", "<b>told</b>"),
                ("code", ""),
            ];
            let answer = browser.back(&with(&callback, &pairs)).await;
            assert_eq!(answer.header("content-type"), Some("application/json"));
            let said = answer.refused(status).await;
            assert!(!said.contains('<') && !said.contains(error), "{said}");
            assert!(browser.cookies.is_empty());
        }
        assert!(provider.seen("/token").is_empty());
        // Only with the right state: nobody else can end a sign-in, or fill the audit log with such entries.
        let callback = provider.consent(&browser.begin("corp").await).await;
        let pairs = [("error", "access_denied"), ("state", "another")];
        let said = browser.back(&with(&callback, &pairs)).await.refused(401).await;
        assert_eq!(said, NOT_PENDING);
        app.stop().await;
    });
}

#[test]
fn a_reply_of_another_issuer_is_a_mix_up() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let mut browser = Browser::new(&app);
        let callback = provider.consent(&browser.begin("corp").await).await;
        let other = with(&callback, &[("iss", "https://evil.example.org")]);
        browser.back(&other).await.refused(401).await;
        assert!(provider.seen("/token").is_empty());
        let callback = provider.consent(&browser.begin("corp").await).await;
        let own = with(&callback, &[("iss", &provider.base)]);
        browser.back(&own).await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn parameters_and_providers_that_are_missing_are_named() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let mut browser = Browser::new(&app);
        let callback = provider.consent(&browser.begin("corp").await).await;
        for name in ["state", "code"] {
            let error = browser
                .back(&with(&callback, &[(name, "")]))
                .await
                .refused(400)
                .await;
            assert_eq!(error, format!("{name}: is required and must not be empty"));
        }
        let long = "x".repeat(4097);
        let error = browser
            .back(&with(&callback, &[("code", &long)]))
            .await
            .refused(400)
            .await;
        assert_eq!(error, "code: must have at most 4096 characters");
        // None of these has used up the sign-in.
        browser.back(&callback).await.expect(200).await;
        let error = browser.get("/api/auth/oauth/nobody").await.refused(404).await;
        assert_eq!(error, "provider not found");
        let path = "/api/auth/oauth/nobody/callback?state=a&code=b";
        assert_eq!(browser.get(path).await.refused(404).await, "provider not found");
        let path = format!("/api/auth/oauth/corp?workspace={}", "x".repeat(201));
        let error = browser.get(&path).await.refused(400).await;
        assert_eq!(error, "workspace: must have at most 200 characters");
        app.stop().await;
    });
}

#[test]
fn failed_callbacks_and_failed_passwords_count_against_the_same_address() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let address = "198.51.100.9";
        let browser = Browser::at(app.anonymous(), address);
        let before = browser.client.login("nobody@example.com", "wrong").await;
        before.refused(401).await;
        let mut browser = Browser::at(app.anonymous(), address);
        // Without a sign-in of this browser: it counts for the routes of providers only.
        let answer = browser.get(&format!("{CALLBACK}?state=a&code=b")).await;
        assert_eq!(answer.header("ratelimit-limit"), Some("60"));
        answer.refused(401).await;
        let begun = browser.begin("corp").await;
        let callback = provider.consent(&begun).await;
        let denied = with(&callback, &[("code", ""), ("error", "access_denied")]);
        let answer = browser.back(&denied).await;
        // 300 in 15 minutes; the password took the first one.
        assert_eq!(answer.header("ratelimit-limit"), Some("300"));
        assert_eq!(answer.header("ratelimit-remaining"), Some("298"));
        answer.refused(401).await;
        app.stop().await;
    });
}
