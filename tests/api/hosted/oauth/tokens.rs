//! ID tokens: what makes one acceptable (OpenID Connect Core 1.0 section 3.1.3.7).

use super::provider::{Plan, Signing};
use super::*;
use crate::helpers::run;

const UNTRUSTED: &str = "the provider's ID token is not acceptable for this sign-in";
const NO_EMAIL: &str = "the provider has not verified an e-mail address of this user";

/// What a sign-in is refused with, and the reason in the audit log.
async fn refused(app: &TestApp, provider: &Provider, plan: Plan) -> (String, String) {
    provider.plan(|own| *own = plan);
    let error = Browser::new(app)
        .sign_in(provider, "corp")
        .await
        .refused(401)
        .await;
    let entry = last_audited(app).await;
    assert_eq!(entry["outcome"], "failure", "{entry}");
    (error, entry["metadata"]["reason"].as_str().unwrap().to_owned())
}

fn claims(claims: Value) -> Plan {
    Plan {
        claims,
        ..Plan::default()
    }
}

fn signing(signing: Signing) -> Plan {
    Plan {
        signing,
        ..Plan::default()
    }
}

#[test]
fn a_token_with_wrong_claims_is_refused() {
    run(async {
        let provider = Provider::start(Key::rsa());
        let app = spawn_with(&provider).await;
        let now = chrono::Utc::now().timestamp();
        for (wrong, reason) in [
            (json!({"aud": "another-client"}), "the audience is wrong"),
            (json!({"aud": null}), "the audience is wrong"),
            (
                json!({"aud": [CLIENT, "another-client"]}),
                "the audience is wrong",
            ),
            (
                json!({"azp": "another-client"}),
                "it was issued to another client",
            ),
            (json!({"iss": "https://evil.example.org"}), "the issuer is wrong"),
            (
                json!({"iss": format!("{}/", provider.base)}),
                "the issuer is wrong",
            ),
            (
                json!({"exp": now - 61, "iat": now - 400}),
                "it has expired, or is from the future",
            ),
            (json!({"iat": now + 300}), "it has expired, or is from the future"),
            (json!({"nonce": "another"}), "the nonce is wrong"),
            (json!({"nonce": null}), "the nonce is wrong"),
            (
                json!({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}),
                "at_hash belongs to another access token",
            ),
        ] {
            let got = refused(&app, &provider, claims(wrong.clone())).await;
            assert_eq!(got, (UNTRUSTED.into(), reason.into()), "{wrong}");
        }
        // Clocks may differ by a minute; an audience of one, azp and no at_hash are fine.
        let fine = json!({"exp": now - 30, "aud": [CLIENT], "azp": CLIENT, "at_hash": null});
        provider.plan(|plan| plan.claims = fine);
        Browser::new(&app)
            .sign_in(&provider, "corp")
            .await
            .expect(200)
            .await;
        app.stop().await;
    });
}

#[test]
fn a_token_that_the_provider_did_not_sign_is_refused() {
    run(async {
        for key in [Key::rsa(), Key::elliptic()] {
            let provider = Provider::start(key);
            let app = spawn_with(&provider).await;
            for (by, reason) in [
                (Signing::Stranger, "the signature is wrong"),
                (Signing::Unsigned, "it is not signed"),
                // The confusion of a public key with a secret one (RFC 8725 section 2.1).
                (
                    Signing::Hmac(provider.public_key()),
                    "the algorithm is not allowed",
                ),
                (Signing::Hmac(SECRET.into()), "the algorithm is not allowed"),
            ] {
                let got = refused(&app, &provider, signing(by)).await;
                assert_eq!(got, (UNTRUSTED.into(), reason.into()));
            }
            provider.plan(|plan| *plan = Plan::default());
            Browser::new(&app)
                .sign_in(&provider, "corp")
                .await
                .expect(200)
                .await;
            app.stop().await;
        }
    });
}

#[test]
fn new_keys_are_read_when_a_token_needs_them_and_not_more_than_once_a_minute() {
    run(async {
        let provider = Provider::start(Key::rsa());
        let app = spawn_with(&provider).await;
        let sign_in = async || Browser::new(&app).sign_in(&provider, "corp").await;
        sign_in().await.expect(200).await;
        assert_eq!(provider.seen("/jwks").len(), 1);
        provider.rotate(Key::elliptic());
        sign_in().await.expect(200).await;
        assert_eq!(provider.seen("/jwks").len(), 2);
        // The next one comes too soon: a flood of bad tokens is no flood of requests.
        provider.rotate(Key::rsa());
        for _ in 0..3 {
            assert_eq!(sign_in().await.refused(401).await, UNTRUSTED);
        }
        let entry = last_audited(&app).await;
        assert_eq!(entry["metadata"]["reason"], "no key of the provider fits");
        assert_eq!(provider.seen("/jwks").len(), 2);
        assert_eq!(provider.seen("/.well-known/openid-configuration").len(), 1);
        app.stop().await;
    });
}

#[test]
fn an_address_that_the_provider_has_not_verified_proves_nothing() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        add_user(&app.admin, "kim@example.com").await;
        for unproved in [
            json!({"email_verified": false}),
            json!({"email_verified": null}),
            json!({"email": null}),
            // The Kelvin sign, whose lower case is the letter k.
            json!({"email": "\u{212a}im@example.com"}),
        ] {
            let got = refused(&app, &provider, claims(unproved.clone())).await;
            let want = (NO_EMAIL.to_owned(), "no verified e-mail address".to_owned());
            assert_eq!(got, want, "{unproved}");
        }
        app.stop().await;
    });
}

#[test]
fn an_answer_without_an_id_token_is_refused() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn_with(&provider).await;
        let plan = Plan {
            token: json!({"id_token": null}),
            ..Plan::default()
        };
        let got = refused(&app, &provider, plan).await;
        assert_eq!(got, (UNTRUSTED.into(), "there is no ID token".into()));
        provider.plan(|plan| plan.token = json!({"id_token": "not.a.token"}));
        Browser::new(&app)
            .sign_in(&provider, "corp")
            .await
            .refused(502)
            .await;
        app.stop().await;
    });
}

#[test]
fn an_address_may_come_from_user_info_of_the_same_user() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let endpoint = format!("{}/userinfo", provider.base);
        provider.plan(|plan| plan.discovery = json!({"userinfo_endpoint": endpoint}));
        let app = spawn_with(&provider).await;
        let sign_in = async || Browser::new(&app).sign_in(&provider, "corp").await;
        let told =
            |sub: &str, verified: Value| json!({"sub": sub, "email": EMAIL, "email_verified": verified});
        provider.plan(|plan| {
            plan.claims = json!({"email": null, "email_verified": null});
            plan.user_info = told("248289761001", json!(true));
        });
        sign_in().await.expect(200).await;
        provider.plan(|plan| plan.user_info = told("another", json!(true)));
        assert_eq!(sign_in().await.refused(401).await, UNTRUSTED);
        for unproved in [json!(false), json!(null)] {
            provider.plan(|plan| plan.user_info = told("248289761001", unproved));
            assert_eq!(sign_in().await.refused(401).await, NO_EMAIL);
        }
        provider.plan(|plan| plan.token = json!({"access_token": "access-\r\nx"}));
        provider.plan(|plan| plan.claims = json!({"email": null, "at_hash": null}));
        sign_in().await.refused(502).await;
        provider.plan(|plan| plan.token = json!({}));
        // What the ID token says counts, and nobody else is asked.
        let asked = provider.seen("/userinfo").len();
        provider.plan(|plan| {
            plan.claims = json!({"email_verified": false});
            plan.user_info = told("248289761001", json!(true));
        });
        assert_eq!(sign_in().await.refused(401).await, NO_EMAIL);
        assert_eq!(provider.seen("/userinfo").len(), asked);
        app.stop().await;
    });
}
