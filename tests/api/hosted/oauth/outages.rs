//! Providers that are down, slow, huge or lead elsewhere.

use std::time::Instant;

use test_support::until;

use super::provider::Mishap;
use super::*;
use crate::helpers::run;

const DISCOVERY: &str = "/.well-known/openid-configuration";

/// A provider for each case, and a service that knows them all by their numbers.
async fn many(cases: usize) -> (TestApp, Vec<(&'static str, Provider)>) {
    let named = |number: usize| {
        (
            &*format!("corp-{number}").leak(),
            Provider::start(Key::elliptic()),
        )
    };
    let providers: Vec<(&'static str, Provider)> = (0..cases).map(named).collect();
    let known = providers.iter().map(|(name, provider)| (*name, oidc(provider)));
    let app = spawn(oauth(known)).await;
    add_user(&app.admin, EMAIL).await;
    (app, providers)
}

#[test]
fn a_provider_that_fails_is_502_and_says_at_which_step() {
    run(async {
        let steps = [
            (DISCOVERY, "its discovery document"),
            ("/jwks", "its discovery document"),
            ("/token", "its token endpoint"),
        ];
        let mishaps = [Mishap::Huge, Mishap::Redirect, Mishap::Error, Mishap::NotJson];
        let cases = steps
            .iter()
            .flat_map(|step| mishaps.iter().map(move |mishap| (step, mishap)));
        let (app, providers) = many(steps.len() * mishaps.len()).await;
        for ((name, provider), (&(path, step), &mishap)) in providers.iter().zip(cases) {
            provider.plan(|plan| plan.mishap = Some((path, mishap)));
            let mut browser = Browser::new(&app);
            let error = if path == "/token" {
                browser.sign_in(provider, name).await.refused(502).await
            } else {
                browser
                    .get(&format!("/api/auth/oauth/{name}"))
                    .await
                    .refused(502)
                    .await
            };
            assert_eq!(error, format!("the sign-in provider failed: {step}"));
            // It is not held against the provider once it works.
            provider.plan(|plan| plan.mishap = None);
            browser.sign_in(provider, name).await.expect(200).await;
        }
        app.stop().await;
    });
}

#[test]
fn a_provider_that_is_gone_is_502() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let mut browser = Browser::new(&app);
        let callback = provider.consent(&browser.begin("corp").await).await;
        provider.stop().await;
        let error = browser.back(&callback).await.refused(502).await;
        assert_eq!(error, "the sign-in provider failed: its token endpoint");
        let entry = last_audited(&app).await;
        assert_eq!(
            entry["metadata"],
            json!({"provider": "corp", "reason": "provider failed"})
        );
        app.stop().await;
    });
}

#[test]
fn a_provider_that_stalls_is_504_in_time_and_starves_nobody() {
    run(async {
        let (slow, quick) = (Provider::start(Key::elliptic()), Provider::start(Key::elliptic()));
        let mut settings = oauth([("slow", oidc(&slow)), ("quick", oidc(&quick))]);
        settings.timeout_ms = 4_000;
        let app = spawn(settings).await;
        add_user(&app.admin, EMAIL).await;
        slow.plan(|plan| plan.mishap = Some((DISCOVERY, Mishap::Stall)));
        // The actor's gate is 64: a quarter waits for providers, half of that for this one.
        let mut waiting = Vec::new();
        let since = Instant::now();
        for _ in 0..8 {
            let mut browser = Browser::new(&app);
            waiting.push(actix::spawn(async move {
                browser.get("/api/auth/oauth/slow").await.refused(504).await
            }));
        }
        until(|| slow.seen(DISCOVERY).len() == 8).await;
        let one_more = Browser::new(&app).get("/api/auth/oauth/slow").await;
        assert_eq!(one_more.header("retry-after"), Some("1"));
        one_more.refused(503).await;
        Browser::new(&app)
            .sign_in(&quick, "quick")
            .await
            .expect(200)
            .await;
        app.anonymous().login(EMAIL, PASSWORD).await.expect(200).await;
        app.admin.get("/api/auth/me").await.expect(200).await;
        assert!(waiting.iter().all(|request| !request.is_finished()));
        for request in waiting {
            assert_eq!(
                request.await.unwrap(),
                "the sign-in provider did not answer in time"
            );
        }
        assert!(since.elapsed().as_secs() < 9, "{:?}", since.elapsed());
        app.stop().await;
    });
}

#[test]
fn endpoints_that_the_provider_names_obey_the_rules_for_outgoing_requests() {
    run(async {
        let cases = [
            ("token_endpoint", "http://169.254.169.254/token"),
            ("token_endpoint", "https://169.254.169.254/token"),
            ("token_endpoint", "http://10.0.0.1/token"),
            ("jwks_uri", "http://192.168.0.1/jwks"),
            ("jwks_uri", "file:///etc/passwd"),
            ("authorization_endpoint", "javascript:alert(1)"),
            ("authorization_endpoint", "http://id.example.org/authorize"),
        ];
        let (app, providers) = many(cases.len() + 1).await;
        for ((corp, provider), (name, url)) in providers.iter().zip(cases) {
            provider.plan(|plan| plan.discovery = json!({name: url}));
            let mut browser = Browser::new(&app);
            let answer = browser.get(&format!("/api/auth/oauth/{corp}")).await;
            let answer = if answer.status() == 302 {
                // Only the token endpoint is asked later.
                let location = answer.header("location").unwrap().parse().unwrap();
                let callback = provider.consent(&location).await;
                browser.back(&callback).await
            } else {
                answer
            };
            answer.refused(502).await;
            assert!(provider.seen("/token").is_empty(), "{name} {url}");
        }
        let (corp, provider) = &providers[cases.len()];
        provider.plan(|plan| plan.discovery = json!({"issuer": "https://evil.example.org"}));
        Browser::new(&app)
            .get(&format!("/api/auth/oauth/{corp}"))
            .await
            .refused(502)
            .await;
        app.stop().await;
    });
}

#[test]
fn keys_and_tokens_may_come_from_another_host() {
    run(async {
        let (provider, other) = (Provider::start(Key::elliptic()), Provider::start(Key::elliptic()));
        let app = spawn_with(&provider).await;
        let elsewhere = format!("{}/jwks", other.base);
        provider.plan(|plan| plan.discovery = json!({"jwks_uri": elsewhere}));
        let error = Browser::new(&app)
            .sign_in(&provider, "corp")
            .await
            .refused(401)
            .await;
        assert!(error.contains("ID token"), "{error}");
        // First with the provider's metadata, then because no key fitted.
        assert_eq!(other.seen("/jwks").len(), 2);
        app.stop().await;
    });
}

#[test]
fn wrong_client_credentials_are_the_operator_s_fault() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let wrong = ProviderSettings {
            client_secret: Some(SecretString::from("another")),
            ..oidc(&provider)
        };
        let app = spawn(oauth([("corp", wrong)])).await;
        let error = Browser::new(&app)
            .sign_in(&provider, "corp")
            .await
            .refused(502)
            .await;
        assert_eq!(error, "the sign-in provider failed: its token endpoint");
        app.stop().await;
    });
}
