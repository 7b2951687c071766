//! GitHub: no ID token, but a list of e-mail addresses.

use super::*;
use crate::helpers::run;

fn github(provider: &Provider) -> ProviderSettings {
    ProviderSettings {
        kind: ProviderKind::Github,
        issuer: None,
        base_url: Some(provider.base.clone()),
        api_url: Some(format!("{}/api/v3", provider.base)),
        ..oidc(provider)
    }
}

fn email(email: &str, primary: bool, verified: bool) -> Value {
    json!({"email": email, "primary": primary, "verified": verified, "visibility": null})
}

async fn spawn_hub(settings: ProviderSettings) -> TestApp {
    let app = spawn(oauth([("hub", settings)])).await;
    add_user(&app.admin, EMAIL).await;
    app
}

#[test]
fn the_primary_verified_address_signs_in() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_hub(github(&provider)).await;
        let emails = [email("side@example.com", false, true), email(EMAIL, true, true)];
        provider.plan(|plan| plan.emails = json!(emails));
        let body = Browser::new(&app)
            .sign_in(&provider, "hub")
            .await
            .expect(200)
            .await;
        let token = body["access_token"].as_str().unwrap();
        let me = app.anonymous().bearer(token).get("/api/auth/me").await;
        assert_eq!(me.expect(200).await["user"]["email"], "analyst@example.com");
        let asked = &provider.seen("/login/oauth/authorize")[0].query;
        assert_eq!(asked["scope"], "user:email");
        assert_eq!(asked["code_challenge_method"], "S256");
        assert_eq!(last_audited(&app).await["metadata"], json!({"provider": "hub"}));
        app.stop().await;
    });
}

#[test]
fn other_addresses_prove_nothing() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_hub(github(&provider)).await;
        for emails in [
            json!([email(EMAIL, true, false)]),
            json!([email(EMAIL, false, true), email("side@example.com", true, false)]),
            json!([]),
        ] {
            provider.plan(|plan| plan.emails = emails);
            let error = Browser::new(&app)
                .sign_in(&provider, "hub")
                .await
                .refused(401)
                .await;
            assert_eq!(
                error,
                "the provider has not verified an e-mail address of this user"
            );
        }
        provider.plan(|plan| plan.emails = json!({"message": "Not Found"}));
        Browser::new(&app)
            .sign_in(&provider, "hub")
            .await
            .refused(502)
            .await;
        app.stop().await;
    });
}

#[test]
fn a_code_of_github_works_once_and_wrong_credentials_are_the_operator_s_fault() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        provider.plan(|plan| plan.emails = json!([email(EMAIL, true, true)]));
        let app = spawn_hub(github(&provider)).await;
        let mut browser = Browser::new(&app);
        let first = provider.consent(&browser.begin("hub").await).await;
        browser.back(&first).await.expect(200).await;
        let second = provider.consent(&browser.begin("hub").await).await;
        let code = |url: &Url| {
            url.query_pairs()
                .find(|(name, _)| name == "code")
                .unwrap()
                .1
                .into_owned()
        };
        let replayed = second.as_str().replace(&code(&second), &code(&first));
        let error = browser.back(&replayed.parse().unwrap()).await.refused(401).await;
        assert!(
            error.starts_with("the provider refused the authorization code"),
            "{error}"
        );
        app.stop().await;
        let wrong = ProviderSettings {
            client_secret: Some(SecretString::from("another")),
            ..github(&provider)
        };
        let app = spawn_hub(wrong).await;
        let error = Browser::new(&app)
            .sign_in(&provider, "hub")
            .await
            .refused(502)
            .await;
        assert_eq!(error, "the sign-in provider failed: its token endpoint");
        app.stop().await;
    });
}
