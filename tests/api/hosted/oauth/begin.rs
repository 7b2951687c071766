//! The way to the provider, and a sign-in that succeeds.

use std::collections::HashMap;

use serde_json::json;

use super::*;
use crate::helpers::run;

#[test]
fn a_sign_in_ends_with_the_login_body_and_a_token_that_works() {
    run(async {
        for key in [Key::rsa(), Key::elliptic()] {
            let algorithm = key.algorithm();
            let provider = Provider::start(key);
            let app = spawn_with(&provider).await;
            let mut browser = Browser::new(&app);
            let answer = browser.sign_in(&provider, "corp").await;
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            let body = answer.expect(200).await;
            let login = app.anonymous().login(EMAIL, PASSWORD).await.expect(200).await;
            assert_eq!(crate::helpers::keys_of(&body), crate::helpers::keys_of(&login));
            for part in ["token_type", "expires_in", "user", "workspace"] {
                assert_eq!(body[part], login[part], "{algorithm} {part}");
            }
            let token = body["access_token"].as_str().unwrap();
            let me = app.anonymous().bearer(token).get("/api/auth/me").await;
            assert_eq!(me.expect(200).await["user"]["email"], "analyst@example.com");
            let entry = last_audited(&app).await;
            assert_eq!(entry["outcome"], "success");
            assert_eq!(entry["metadata"], json!({"provider": "corp"}));
            assert_eq!(entry["user_id"], body["user"]["id"]);
            // The cookie is gone.
            assert!(browser.cookies.is_empty());
            app.stop().await;
        }
    });
}

#[test]
fn the_browser_is_sent_away_with_state_nonce_and_pkce_and_keeps_a_narrow_cookie() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let mut browser = Browser::new(&app);
        let answer = browser.get("/api/auth/oauth/corp").await;
        assert_eq!(
            (answer.status(), answer.header("ratelimit-limit")),
            (302, Some("60"))
        );
        let cookie = answer.header("set-cookie").unwrap();
        for part in [
            "HttpOnly",
            "SameSite=Lax",
            "Max-Age=600",
            &format!("Path={CALLBACK}"),
        ] {
            assert!(cookie.split("; ").any(|own| own == part), "{cookie}");
        }
        assert!(
            !cookie.contains("Secure") && !cookie.contains("Domain"),
            "{cookie}"
        );
        let location: Url = answer.header("location").unwrap().parse().unwrap();
        let query: HashMap<_, _> = location.query_pairs().into_owned().collect();
        assert_eq!(query["response_type"], "code");
        assert_eq!(query["client_id"], CLIENT);
        assert_eq!(query["redirect_uri"], format!("{PUBLIC_URL}{CALLBACK}"));
        assert_eq!(query["scope"], "openid email");
        assert_eq!(query["code_challenge_method"], "S256");
        for part in ["state", "nonce", "code_challenge"] {
            assert_eq!(query[part].len(), 43, "{part}");
        }
        // Each sign-in has its own.
        let again = browser.begin("corp").await;
        let again: HashMap<_, _> = again.query_pairs().into_owned().collect();
        for part in ["state", "nonce", "code_challenge"] {
            assert_ne!(query[part], again[part], "{part}");
        }
        // The provider was asked about itself once.
        assert_eq!(provider.seen("/.well-known/openid-configuration").len(), 1);
        app.stop().await;
    });
}

#[test]
fn behind_https_the_cookie_is_secure_and_has_the_path_that_browsers_see() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let mut settings = oauth([("corp", oidc(&provider))]);
        settings.public_url = "https://tm.example.org/memory/".into();
        let app = spawn(settings).await;
        let answer = Browser::new(&app).get("/api/auth/oauth/corp").await;
        let cookie = answer.header("set-cookie").unwrap();
        assert!(cookie.starts_with("__Secure-threat-memory-oauth="), "{cookie}");
        for part in ["Secure", &format!("Path=/memory{CALLBACK}")] {
            assert!(cookie.split("; ").any(|own| own == part), "{cookie}");
        }
        let location = answer.header("location").unwrap();
        let uri = "redirect_uri=https%3A%2F%2Ftm.example.org%2Fmemory%2Fapi%2Fauth%2Foauth%2Fcorp%2Fcallback";
        assert!(location.contains(uri), "{location}");
        app.stop().await;
    });
}

#[test]
fn the_client_authenticates_as_the_provider_asks_for() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let public = ProviderSettings {
            client_secret: None,
            ..oidc(&provider)
        };
        let app = spawn(oauth([("corp", oidc(&provider)), ("public", public)])).await;
        add_user(&app.admin, EMAIL).await;
        let sign_in = async |name| {
            Browser::new(&app)
                .sign_in(&provider, name)
                .await
                .expect(200)
                .await
        };
        sign_in("corp").await;
        sign_in("public").await;
        let [basic, public] = &provider.seen("/token")[..] else {
            panic!("not two token requests");
        };
        assert!(basic.authorization.is_some() && !basic.form.contains_key("client_secret"));
        assert!(public.authorization.is_none() && public.form["client_id"] == CLIENT);
        provider.plan(|plan| {
            plan.discovery = json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]});
        });
        app.stop().await;
        let app = spawn_with(&provider).await;
        Browser::new(&app)
            .sign_in(&provider, "corp")
            .await
            .expect(200)
            .await;
        let post = provider.seen("/token").pop().unwrap();
        assert!(post.authorization.is_none() && post.form["client_secret"] == SECRET);
        app.stop().await;
    });
}

#[test]
fn sign_in_pages_can_list_the_providers() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let hub = ProviderSettings {
            kind: ProviderKind::Github,
            issuer: None,
            base_url: Some(provider.base.clone()),
            api_url: Some(provider.base.clone()),
            ..oidc(&provider)
        };
        let app = spawn(oauth([("hub", hub), ("corp", oidc(&provider))])).await;
        let listed = app.anonymous().get("/api/auth/providers").await.expect(200).await;
        let want = json!([{"name": "corp", "kind": "oidc"}, {"name": "hub", "kind": "github"}]);
        assert_eq!(listed, json!({"providers": want}));
        app.stop().await;
    });
}

#[test]
fn the_routes_have_a_limit_per_address() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let mut browser = Browser::at(app.anonymous(), "198.51.100.7");
        for _ in 0..60 {
            browser.get("/api/auth/providers").await.expect(200).await;
        }
        let answer = browser.get("/api/auth/oauth/corp").await;
        assert!(answer.header("retry-after").is_some());
        answer.refused(429).await;
        Browser::at(app.anonymous(), "198.51.100.8").begin("corp").await;
        app.stop().await;
    });
}
