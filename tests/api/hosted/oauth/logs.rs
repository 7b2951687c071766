//! Nothing that a sign-in keeps secret stands in the log, at the finest level.

use super::*;
use crate::helpers::run;
use crate::process::{Service, copy_started_once, hosted};

#[test]
fn no_code_verifier_token_or_secret_of_a_sign_in_is_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    copy_started_once(&data);
    run(async {
        let provider = Provider::start(Key::rsa());
        let config = dir.path().join("c.toml");
        let text = format!(
            "[oauth]\npublic_url = \"{PUBLIC_URL}\"\n[oauth.providers.corp]\nkind = \"oidc\"\n\
             issuer = \"{}\"\nclient_id = \"{CLIENT}\"\n\
             [oauth.providers.hub]\nkind = \"github\"\nbase_url = \"{0}\"\napi_url = \"{0}/api/v3\"\n\
             client_id = \"{CLIENT}\"",
            provider.base
        );
        std::fs::write(&config, text).unwrap();
        let mut command = hosted(&data);
        command
            .arg("--config")
            .arg(&config)
            .env("THREAT_MEMORY_LOG__FILTER", "trace")
            .env("THREAT_MEMORY_OAUTH_CORP_CLIENT_SECRET", SECRET)
            .env("THREAT_MEMORY_OAUTH_HUB_CLIENT_SECRET", SECRET);
        let mut service = Service::start(command);
        let admin = service.anonymous().sign_in(crate::helpers::ADMIN, PASSWORD).await;
        add_user(&admin, EMAIL).await;
        let emails = json!([{"email": EMAIL, "primary": true, "verified": true}]);
        provider.plan(|plan| plan.emails = emails);
        let mut secrets = vec![SECRET.to_owned(), "github-access-token".into()];
        let mut browser = Browser::at(service.anonymous(), "198.51.100.7");
        for name in ["corp", "hub"] {
            let location = browser.begin(name).await;
            let callback = provider.consent(&location).await;
            secrets.extend(browser.cookies.iter().map(|(_, value, _)| value.clone()));
            let of_url = callback.query_pairs().map(|(_, value)| value.into_owned());
            secrets.extend(of_url);
            let body = browser.back(&callback).await.expect(200).await;
            secrets.push(body["access_token"].as_str().unwrap().to_owned());
        }
        // Failures, which say more.
        let callback = provider.consent(&browser.begin("corp").await).await;
        secrets.extend(callback.query_pairs().map(|(_, value)| value.into_owned()));
        provider.plan(|plan| plan.claims = json!({"aud": "another"}));
        browser.back(&callback).await.refused(401).await;
        provider.plan(|plan| plan.token = json!({"id_token": "an-unreadable-token"}));
        browser.sign_in(&provider, "corp").await.refused(502).await;
        secrets.push("an-unreadable-token".into());
        for request in [
            provider.seen("/token"),
            provider.seen("/login/oauth/access_token"),
        ]
        .concat()
        {
            secrets.extend(["code", "code_verifier"].map(|name| request.form[name].clone()));
            secrets.extend(request.authorization);
        }
        assert!(secrets.len() > 20, "{secrets:?}");
        // At its end it has written every line.
        service.terminate();
        service.ended().await;
        let mut logs = String::new();
        for file in std::fs::read_dir(data.join("logs")).unwrap() {
            logs.push_str(&std::fs::read_to_string(file.unwrap().path()).unwrap());
        }
        assert!(logs.contains("/api/auth/oauth/{provider}/callback"), "{logs}");
        assert!(logs.contains("a sign-in provider failed"), "{logs}");
        for secret in &secrets {
            assert!(!logs.contains(secret.as_str()), "{secret} is in the log");
        }
    });
}
