//! Rate limits: per workspace for callers with a credential, per address for all others.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;

use crate::helpers::{Answer, Client, TestApp, run, settings};

const ME: &str = "/api/auth/me";
/// Guesses that an address has.
const GUESSES: u64 = 300;

/// Limit, remaining and reset, if the answer has these headers.
fn figures(answer: &Answer) -> Option<[u64; 3]> {
    let names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    let found = names.map(|name| answer.header(name).map(|text| text.parse().unwrap()));
    assert!(found.iter().all(|one| one.is_some() == found[0].is_some()));
    found[0].map(|_| found.map(Option::unwrap))
}

fn remaining(answer: &Answer) -> Option<u64> {
    figures(answer).map(|[_, remaining, _]| remaining)
}

/// A service whose tiers have these limits.
async fn with_tiers(tiers: [(&str, u32); 3]) -> TestApp {
    let mut settings = settings("mem://");
    settings.limits.tiers = tiers.map(|(tier, limit)| (tier.to_owned(), limit)).into();
    TestApp::with(settings).await
}

/// A service that believes what the test says in X-Forwarded-For.
async fn behind_a_proxy() -> TestApp {
    let mut settings = settings("mem://");
    settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    TestApp::with(settings).await
}

fn from(client: &Client, address: &str) -> Client {
    client.with_header("x-forwarded-for", address)
}

#[test]
fn a_workspace_has_the_limit_of_its_tier_for_all_its_users_and_keys_together() {
    run(async {
        let app = with_tiers([("pilot", 20), ("team", 40), ("enterprise", 1000)]).await;
        let (first, second) = (app.workspace("first").await, app.workspace("second").await);
        let (_, email) = first.add_user("viewer").await;
        let (_, key) = first.add_key(&["read"]).await;
        let user = app.anonymous().sign_in(&email, crate::helpers::PASSWORD).await;
        let key = app.anonymous().with_header("x-api-key", &key);
        let callers = [
            &first,
            &user,
            &key,
            &key.with_header("x-forwarded-for", "192.0.2.1"),
        ];
        // Two requests have added the user and the key.
        for (left, caller) in (0..18).rev().zip(callers.iter().cycle()) {
            let answer = caller.get(ME).await;
            let [limit, remaining, reset] = figures(&answer).unwrap();
            assert_eq!((answer.status(), limit, remaining), (200, 20, left));
            assert!((3500..=3600).contains(&reset), "{reset}");
        }
        for caller in callers {
            let answer = caller.get(ME).await;
            let [limit, remaining, reset] = figures(&answer).unwrap();
            assert_eq!((limit, remaining), (20, 0));
            assert_eq!(answer.header("retry-after"), Some(reset.to_string().as_str()));
            assert_eq!(answer.refused(429).await, "rate limit exceeded");
        }
        let answer = second.get(ME).await;
        assert_eq!(
            figures(&answer).map(|[limit, left, _]| (limit, left)),
            Some((20, 19))
        );
        app.admin.oversees(&second, json!({"tier": "team"})).await;
        let answer = second.get(ME).await;
        assert_eq!(
            figures(&answer).map(|[limit, left, _]| (limit, left)),
            Some((40, 37))
        );
        app.stop().await;
    });
}

#[test]
fn of_parallel_requests_no_more_than_the_limit_are_admitted() {
    run(async {
        let app = with_tiers([("pilot", 20), ("team", 40), ("enterprise", 1000)]).await;
        let workspace = app.workspace("parallel").await;
        let answers = join_all((0..60).map(|_| workspace.get(ME))).await;
        let mut counts = BTreeMap::new();
        for answer in answers {
            *counts.entry(answer.status()).or_insert(0) += 1;
        }
        assert_eq!(counts, BTreeMap::from([(200, 20), (429, 40)]));
        app.stop().await;
    });
}

#[test]
fn every_answer_of_a_limited_route_has_the_figures_and_no_other_one() {
    run(async {
        let mut settings = settings("mem://");
        settings.server.body_limit = 2048;
        let app = TestApp::with(settings).await;
        let viewer = app.user("viewer").await;
        let id = uuid::Uuid::new_v4();
        let large = format!("\"{}\"", "x".repeat(3000));
        for (client, method, path, body, status) in [
            (
                &app.admin,
                Method::GET,
                "/api/recall/search?q=x".to_owned(),
                "",
                200,
            ),
            (&app.admin, Method::HEAD, "/api/recall/search?q=x".into(), "", 200),
            (&app.admin, Method::GET, "/api/recall/search".into(), "", 400),
            (&app.admin, Method::POST, "/api/ingest/stix".into(), "{", 400),
            (
                &app.admin,
                Method::POST,
                "/api/ingest/stix".into(),
                large.as_str(),
                413,
            ),
            (&app.admin, Method::DELETE, "/api/recall/search".into(), "", 405),
            (&viewer, Method::POST, "/api/ingest/stix".into(), "{}", 403),
            (&app.admin, Method::GET, format!("/api/nodes/{id}"), "", 404),
            (
                &app.admin,
                Method::DELETE,
                format!("/api/admin/api-keys/{id}"),
                "",
                404,
            ),
        ] {
            let request = client.request(method.clone(), &path).body(body.to_owned());
            let answer = Answer(request.send().await.unwrap());
            assert_eq!(answer.status(), status, "{method} {path}");
            let limit = figures(&answer).map(|[limit, ..]| limit);
            assert_eq!(limit, Some(1_000_000), "{method} {path}");
        }
        let gzip = app.admin.request(Method::POST, "/api/ingest/stix");
        let gzip = gzip
            .header("content-encoding", "gzip")
            .json(&serde_json::json!({}));
        let answer = Answer(gzip.send().await.unwrap());
        assert_eq!(answer.status(), 415);
        assert_eq!(
            (answer.header("accept-encoding"), answer.header("accept")),
            (Some("identity"), None)
        );
        let xml = app.admin.request(Method::POST, "/api/ingest/stix");
        let xml = xml.header("content-type", "application/xml").body("<x/>");
        let answer = Answer(xml.send().await.unwrap());
        assert_eq!((answer.status(), figures(&answer).is_some()), (415, true));
        let nobody = app.anonymous();
        for (path, status) in [("/health", 200), ("/api/health", 200), ("/nope", 404), (ME, 401)] {
            let answer = nobody.get(path).await;
            assert_eq!((answer.status(), figures(&answer)), (status, None), "{path}");
        }
        app.stop().await;
    });
}

#[test]
fn failed_credentials_count_until_they_are_429_and_valid_ones_go_on_working() {
    run(async {
        let app = TestApp::spawn().await;
        let nobody = app.anonymous();
        let bad = [
            nobody.with_header("x-api-key", "tm_made-up"),
            nobody.bearer("eyJhbGciOiJIUzI1NiJ9.e30.garbage"),
            nobody.with_header("authorization", "Basic YTpi"),
            app.admin.with_header("x-api-key", "tm_made-up"),
        ];
        for (left, client) in (0..GUESSES).rev().zip(bad.iter().cycle()) {
            // No credential is no guess.
            if left % 50 == 0 {
                let answer = nobody.get(ME).await;
                assert_eq!((answer.status(), figures(&answer)), (401, None));
            }
            let answer = client.get(ME).await;
            let [limit, remaining, reset] = figures(&answer).unwrap();
            assert_eq!((limit, remaining), (GUESSES, left));
            assert!((800..=900).contains(&reset), "{reset}");
            answer.refused(401).await;
        }
        for client in &bad {
            let answer = client.get("/api/recall/search?q=x").await;
            let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((800..=900).contains(&wait), "{wait}");
            assert_eq!(answer.header("www-authenticate"), None);
            answer.refused(429).await;
        }
        nobody.get(ME).await.refused(401).await;
        app.admin.get(ME).await.expect(200).await;
        app.api_key(&["read"]).await.get(ME).await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn nobody_gets_another_count_by_naming_another_address() {
    run(async {
        let app = TestApp::spawn().await;
        let guess = app.anonymous().bearer("wrong");
        for (n, header) in ["x-forwarded-for", "forwarded", "x-real-ip", "x-forwarded-for"]
            .into_iter()
            .enumerate()
        {
            let answer = guess.with_header(header, &format!("192.0.2.{n}")).get(ME).await;
            assert_eq!(remaining(&answer), Some(GUESSES - 1 - n as u64), "{header}");
        }
        let login = |n: u64| {
            let client = from(&app.anonymous(), &format!("192.0.2.{n}"));
            async move { remaining(&client.login("nobody@example.com", "wrong").await) }
        };
        assert_eq!((login(1).await, login(2).await), (Some(4), Some(3)));
        app.stop().await;
    });
}

#[test]
fn behind_a_trusted_proxy_each_client_has_its_count_and_ipv6_clients_one_per_network() {
    run(async {
        let app = behind_a_proxy().await;
        let guess = app.anonymous().bearer("wrong");
        for (address, failed) in [
            ("198.51.100.1", 1),
            ("198.51.100.2", 1),
            // The entries to the left are the client's own invention.
            ("192.0.2.9, 198.51.100.1", 2),
            ("198.51.100.1:4711", 3),
            ("::ffff:198.51.100.1", 4),
            ("2001:db8:1:2::1", 1),
            ("2001:db8:1:2::2", 2),
            ("[2001:db8:1:2:ffff::3]:443", 3),
            ("2001:db8:1:3::1", 1),
        ] {
            let answer = from(&guess, address).get(ME).await;
            assert_eq!(remaining(&answer), Some(GUESSES - failed), "{address}");
        }
        let login = |address: &str| {
            let client = from(&app.anonymous(), address);
            async move { remaining(&client.login("nobody@example.com", "wrong").await) }
        };
        for (address, left) in [
            ("2001:db8:1:2::1", 4),
            ("2001:db8:1:2::2", 3),
            ("2001:db8:1:3::1", 4),
            ("198.51.100.1", 4),
        ] {
            assert_eq!(login(address).await, Some(left), "{address}");
        }
        app.stop().await;
    });
}
