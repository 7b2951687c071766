//! Authentication: passwords, tokens and API keys, and what must never be written down.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use secrecy::SecretString;
use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{ADMIN, Client, PASSWORD, TestApp, keys_of, run, settings};

const SECRET: &str = "a token secret of more than 32 bytes";
const WRONG: &str = "wrong e-mail address or password";
const REFUSED: &str = "invalid or missing credentials";

/// The payload of a client's token.
fn claims(client: &Client) -> Value {
    use base64::Engine;
    let payload = client.sends("authorization").split('.').nth(1).unwrap();
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(payload)
        .unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

async fn known_secret() -> TestApp {
    let mut settings = settings("mem://");
    settings.jwt_secret = Some(SecretString::from(SECRET));
    TestApp::with(settings).await
}

#[test]
fn users_change_their_own_password_and_all_their_sessions_end() {
    run(async {
        let app = TestApp::spawn().await;
        let (id, email) = app.admin.add_user("viewer").await;
        let [one, other] = [
            app.anonymous().sign_in(&email, PASSWORD).await,
            app.anonymous().sign_in(&email, PASSWORD).await,
        ];
        let path = "/api/auth/password";
        let new = "quite another password 77";
        for (body, want) in [
            (
                json!({"current_password": "wrong", "new_password": new}),
                "current_password: is not the password",
            ),
            (
                json!({"current_password": PASSWORD, "new_password": "short"}),
                "new_password: ",
            ),
            (
                json!({"current_password": PASSWORD, "new_password": PASSWORD}),
                "new_password: must differ",
            ),
            (json!({"current_password": PASSWORD}), "new_password: is required"),
            (json!({"new_password": new}), "current_password: is required"),
        ] {
            let error = one.post(path, &body).await.refused(400).await;
            assert!(error.starts_with(want), "{error}");
        }
        let key = app.api_key(&["read", "ingest"]).await;
        let change = json!({"current_password": PASSWORD, "new_password": new});
        assert_eq!(
            key.post(path, &change).await.refused(403).await,
            "an API key has no password"
        );
        one.post(path, &change).await.expect(204).await;
        for session in [&one, &other] {
            session.get("/api/auth/me").await.refused(401).await;
        }
        app.anonymous().login(&email, PASSWORD).await.refused(401).await;
        let again = app.anonymous().sign_in(&email, new).await;
        let logged = app.admin.audited("auth.password_change").await;
        let outcomes: Vec<&Value> = logged.iter().map(|entry| &entry["outcome"]).collect();
        assert_eq!(outcomes, ["success", "failure"]);
        assert!(logged.iter().all(|entry| entry["resource_id"] == *id));
        // Guesses at it are counted.
        let guess = json!({"current_password": "a wrong guess", "new_password": "yet another password 88"});
        for _ in 0..5 {
            let answer = again.post(path, &guess).await;
            assert!([400, 429].contains(&answer.status()));
        }
        again.post(path, &guess).await.refused(429).await;
        app.stop().await;
    });
}

#[test]
fn the_login_body_is_as_documented_and_the_token_lives_24_hours() {
    run(async {
        let app = TestApp::spawn().await;
        let body = app.anonymous().login(" Admin@Example.COM ", PASSWORD).await;
        let body = body.expect(200).await;
        assert_eq!(
            keys_of(&body),
            ["access_token", "expires_in", "token_type", "user", "workspace"]
        );
        assert_eq!(
            (body["token_type"].clone(), body["expires_in"].clone()),
            (json!("Bearer"), json!(86400))
        );
        assert_eq!(keys_of(&body["user"]), ["email", "id", "role"]);
        assert_eq!(keys_of(&body["workspace"]), ["id", "name", "tier"]);
        assert_eq!(
            (body["user"]["email"].clone(), body["user"]["role"].clone()),
            (json!(ADMIN), json!("admin"))
        );
        let claims = claims(&app.admin);
        let life = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
        assert_eq!(life, 86400);
        assert_eq!(claims["ws"], body["workspace"]["id"]);

        let me = app.admin.get("/api/auth/me").await.expect(200).await;
        assert_eq!(
            (me["user"].clone(), me["workspace"].clone()),
            (body["user"].clone(), body["workspace"].clone())
        );
        app.stop().await;
    });
}

#[test]
fn a_malformed_login_is_400_and_names_the_field() {
    run(async {
        let app = TestApp::shared().await;
        for (body, want) in [
            (json!({}), "email: is required"),
            (json!({"email": "a@b"}), "password: is required"),
            (json!({"email": 1, "password": "x"}), "email: must be a string"),
            (
                json!({"email": "a@b", "password": null}),
                "password: must be a string",
            ),
            (
                json!({"email": "a@b", "password": 202401019999_u64}),
                "password: must be a string",
            ),
        ] {
            let error = app.anonymous().post("/api/auth/login", &body).await;
            let error = error.refused(400).await;
            assert!(error.starts_with(want), "{error}");
        }
        let text = app.anonymous().post_bytes("/api/auth/login", "{").await;
        assert!(text.refused(400).await.starts_with("body: is not valid JSON"));
        let long = format!(r#"{{"email":"a@b","password":"{}"}}"#, "x".repeat(20_000));
        let long = app.anonymous().post_bytes("/api/auth/login", long).await;
        long.refused(413).await;
        app.stop().await;
    });
}

#[test]
fn a_wrong_password_an_unknown_a_disabled_and_an_odd_account_answer_alike() {
    run(async {
        let app = TestApp::spawn().await;
        let (disabled, disabled_email) = app.admin.add_user("viewer").await;
        let path = format!("/api/admin/users/{disabled}");
        app.admin
            .patch(&path, &json!({"disabled": true}))
            .await
            .expect(200)
            .await;
        let long = format!("{}@example.com", "x".repeat(300));
        for (email, password) in [
            (ADMIN, "not the password"),
            ("nobody@example.com", PASSWORD),
            (disabled_email.as_str(), PASSWORD),
            ("", ""),
            ("nul\0@example.com", PASSWORD),
            (long.as_str(), PASSWORD),
        ] {
            let error = app.anonymous().login(email, password).await.refused(401).await;
            assert_eq!(error, WRONG, "{email}");
        }
        app.stop().await;
    });
}

#[test]
fn the_fifth_failure_is_429_and_then_not_even_the_right_password_helps() {
    run(async {
        let app = TestApp::spawn().await;
        let (_, email) = app.admin.add_user("viewer").await;
        for _ in 0..4 {
            app.anonymous().login(&email, "wrong").await.refused(401).await;
        }
        for password in ["wrong", PASSWORD] {
            // An e-mail address in another case is the same account.
            let answer = app.anonymous().login(&email.to_uppercase(), password).await;
            let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=901).contains(&wait), "{wait}");
            assert_eq!(answer.refused(429).await, "rate limit exceeded");
        }
        // Another account from the same address is not locked.
        app.anonymous().login(ADMIN, PASSWORD).await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn a_success_clears_the_failures() {
    run(async {
        let app = TestApp::spawn().await;
        let (_, email) = app.admin.add_user("viewer").await;
        for _ in 0..2 {
            for _ in 0..4 {
                app.anonymous().login(&email, "wrong").await.refused(401).await;
            }
            app.anonymous().login(&email, PASSWORD).await.expect(200).await;
        }
        app.stop().await;
    });
}

#[test]
fn disabling_a_user_kills_its_token_and_its_keys_at_once() {
    run(async {
        let app = TestApp::shared().await;
        let (id, email) = app.admin.add_user("admin").await;
        let second = app.anonymous().sign_in(&email, PASSWORD).await;
        let (_, key) = second.add_key(&["read"]).await;
        let key = app.anonymous().with_header("x-api-key", &key);
        for client in [&second, &key] {
            client.get("/api/auth/me").await.expect(200).await;
        }
        let path = format!("/api/admin/users/{id}");
        app.admin
            .patch(&path, &json!({"disabled": true}))
            .await
            .expect(200)
            .await;
        for client in [&second, &key] {
            assert_eq!(client.get("/api/auth/me").await.refused(401).await, REFUSED);
        }
        app.stop().await;
    });
}

#[test]
fn a_changed_password_kills_every_older_token_also_one_of_the_same_second() {
    run(async {
        let app = TestApp::shared().await;
        let (id, email) = app.admin.add_user("viewer").await;
        let path = format!("/api/admin/users/{id}");
        let mut password = PASSWORD.to_owned();
        // Several rounds, so that at least one sign-in and password change fall within the same second.
        for round in 0..3 {
            let old = app.anonymous().sign_in(&email, &password).await;
            password = format!("{PASSWORD} {round}");
            let change = app.admin.patch(&path, &json!({"password": password})).await;
            change.expect(200).await;
            assert_eq!(old.get("/api/auth/me").await.refused(401).await, REFUSED);
            let new = app.anonymous().sign_in(&email, &password).await;
            new.get("/api/auth/me").await.expect(200).await;
        }
        app.anonymous().login(&email, PASSWORD).await.refused(401).await;
        app.stop().await;
    });
}

#[test]
fn a_changed_role_counts_for_tokens_that_are_out_already() {
    run(async {
        let app = TestApp::shared().await;
        let (id, email) = app.admin.add_user("analyst").await;
        let user = app.anonymous().sign_in(&email, PASSWORD).await;
        user.get("/api/audit/logs").await.refused(403).await;
        let path = format!("/api/admin/users/{id}");
        app.admin
            .patch(&path, &json!({"role": "audit"}))
            .await
            .expect(200)
            .await;
        user.get("/api/audit/logs").await.expect(200).await;
        let ingest = user.post("/api/ingest/stix", &json!({"bundle": []})).await;
        assert_eq!(ingest.refused(403).await, "permission recall:write required");
        app.stop().await;
    });
}

#[test]
fn forged_expired_and_foreign_tokens_are_refused() {
    run(async {
        let app = known_secret().await;
        let good = claims(&app.admin);
        let sign = |claims: &Value, algorithm, secret: &str| {
            let key = EncodingKey::from_secret(secret.as_bytes());
            jsonwebtoken::encode(&Header::new(algorithm), claims, &key).unwrap()
        };
        let changed = |key: &str, value: Value| {
            let mut claims = good.clone();
            claims[key] = value;
            sign(&claims, Algorithm::HS256, SECRET)
        };
        let works = app.anonymous().bearer(&sign(&good, Algorithm::HS256, SECRET));
        works.get("/api/auth/me").await.expect(200).await;

        let own = app.admin.sends("authorization").strip_prefix("Bearer ").unwrap();
        let parts: Vec<&str> = own.split('.').collect();
        let none = |header: &str| {
            use base64::Engine;
            let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(header);
            format!("{header}.{}.", parts[1])
        };
        let mut headless = good.clone();
        headless.as_object_mut().unwrap().remove("exp");
        let now = chrono::Utc::now().timestamp();
        for (what, token) in [
            (
                "another secret",
                sign(&good, Algorithm::HS256, "another secret of 32 bytes or more"),
            ),
            ("another algorithm", sign(&good, Algorithm::HS512, SECRET)),
            ("alg none", none(r#"{"alg":"none","typ":"JWT"}"#)),
            ("alg None", none(r#"{"alg":"None"}"#)),
            ("no signature", format!("{}.{}.", parts[0], parts[1])),
            ("no expiry", sign(&headless, Algorithm::HS256, SECRET)),
            ("expired", changed("exp", json!(now - 1))),
            ("another issuer", changed("iss", json!("somebody"))),
            ("another workspace", changed("ws", json!(uuid::Uuid::new_v4()))),
            ("another user", changed("sub", json!(uuid::Uuid::new_v4()))),
            ("empty", String::new()),
        ] {
            let answer = app.anonymous().bearer(&token).get("/api/auth/me").await;
            assert_eq!(answer.refused(401).await, REFUSED, "{what}");
        }
        app.stop().await;
    });
}

#[test]
fn both_headers_may_say_the_same_and_nothing_else() {
    run(async {
        let app = TestApp::shared().await;
        let (_, key) = app.admin.add_key(&["read"]).await;
        let (_, other) = app.admin.add_key(&["read"]).await;
        let nobody = app.anonymous();
        let me = nobody.bearer(&key).get("/api/auth/me").await.expect(200).await;
        assert_eq!(keys_of(&me), ["api_key", "workspace"]);
        let both = nobody.bearer(&key).with_header("x-api-key", &key);
        both.get("/api/auth/me").await.expect(200).await;
        for client in [
            nobody.bearer(&other).with_header("x-api-key", &key),
            app.admin.with_header("x-api-key", &key),
        ] {
            let error = client.get("/api/auth/me").await.refused(401).await;
            assert_eq!(error, "Authorization and X-API-Key differ");
        }
        let token = app.admin.sends("authorization").to_owned();
        for (name, value) in [
            ("authorization", "Basic YTpi"),
            ("authorization", key.as_str()),
            ("authorization", "Bearer"),
            ("x-api-key", ""),
            ("x-api-key", "tm_made-up"),
            ("x-api-key", token.as_str()),
        ] {
            let answer = nobody.with_header(name, value).get("/api/auth/me").await;
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert_eq!(answer.refused(401).await, REFUSED, "{name}: {value}");
        }
        let twice = nobody.bearer(&key).with_header("authorization", &token);
        twice.get("/api/auth/me").await.refused(401).await;
        app.stop().await;
    });
}

#[test]
fn a_workspace_has_one_rate_for_all_its_callers_and_a_429_says_when_to_come_back() {
    run(async {
        let mut settings = settings("mem://");
        settings.limits.tiers.insert("pilot".into(), 3);
        let app = TestApp::with(settings).await;
        let pilot = app.workspace("pilot").await;
        let answer = pilot.get("/api/auth/me").await;
        let figures = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
        assert_eq!(figures.map(|name| answer.header(name).is_some()), [true; 3]);
        assert_eq!(
            (answer.header(figures[0]), answer.header(figures[1])),
            (Some("3"), Some("2"))
        );
        let (_, key) = pilot.add_key(&["read"]).await;
        let key = app.anonymous().with_header("x-api-key", &key);
        // A refused request counts as well, and an API key does not get its own rate limit.
        let last = key.get("/api/recall/search").await;
        assert_eq!(last.header("ratelimit-remaining"), Some("0"));
        last.refused(400).await;
        key.get("/api/auth/me").await.refused(429).await;
        let answer = pilot.get("/api/auth/me").await;
        assert_eq!(answer.header("ratelimit-remaining"), Some("0"));
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=3601).contains(&wait));
        assert_eq!(answer.refused(429).await, "rate limit exceeded");
        // Another workspace of the same tier has its own rate limit.
        let other = app.workspace("other").await;
        other.get("/api/auth/me").await.expect(200).await;
        app.admin.get("/api/auth/me").await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn a_flood_of_sign_ins_does_not_hold_up_those_who_are_signed_in() {
    run(async {
        let (gate, guesses, most) = extent((8, 40, 30), (64, 200, 150));
        let mut settings = settings("mem://");
        settings.actors.of_mut("identity").gate = gate;
        let app = TestApp::with(settings).await;
        let nobody = app.anonymous();
        let guess = |n| {
            let client = nobody.clone();
            tokio::spawn(async move {
                let answer = client.login(&format!("{n}@example.com"), "a guess").await;
                (answer.status(), answer.header("retry-after").is_some())
            })
        };
        let flood: Vec<_> = (0..guesses).map(guess).collect();
        while !flood.iter().all(|one| one.is_finished()) {
            app.admin.get("/api/auth/me").await.expect(200).await;
        }
        let mut turned_away = 0;
        for one in flood {
            match one.await.unwrap() {
                (401, false) => {}
                (503, true) => turned_away += 1,
                other => panic!("{other:?}"),
            }
        }
        // Sign-ins beyond the capacity are refused rather than queued.
        assert!(turned_away > guesses - most, "{turned_away}");
        nobody.login(ADMIN, PASSWORD).await.expect(200).await;
        app.stop().await;
    });
}
