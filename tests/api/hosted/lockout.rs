//! Account lockout: failed sign-ins are counted in a sliding window per account and address.

use futures_util::future::join_all;
use serde_json::json;
use test_support::extent;

use crate::helpers::{ADMIN, Answer, Client, PASSWORD, TestApp, run, settings};

const FIGURES: [&str; 3] = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];

fn figures(answer: &Answer) -> [u64; 3] {
    FIGURES.map(|name| answer.header(name).unwrap().parse().unwrap())
}

fn counts(mut statuses: Vec<u16>) -> Vec<(u16, usize)> {
    statuses.sort_unstable();
    let runs = statuses.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len())).collect()
}

async fn statuses(client: &Client, email: &str, passwords: &[&str]) -> Vec<u16> {
    let all = passwords.iter().map(|password| client.login(email, password));
    join_all(all).await.iter().map(Answer::status).collect()
}

#[test]
fn parallel_sign_ins_with_the_right_password_all_succeed() {
    run(async {
        let app = TestApp::spawn().await;
        let (_, email) = app.admin.add_user("viewer").await;
        for count in extent(&[8][..], &[10, 25]) {
            let got = statuses(&app.anonymous(), &email, &vec![PASSWORD; *count]).await;
            assert_eq!(counts(got), [(200, *count)]);
        }
        // After four earlier failures, only one attempt runs at a time, but all of them get their turn.
        for _ in 0..4 {
            app.anonymous().login(&email, "wrong").await.refused(401).await;
        }
        let got = statuses(&app.anonymous(), &email, &[PASSWORD; 10]).await;
        assert_eq!(counts(got), [(200, 10)]);
        app.stop().await;
    });
}

#[test]
fn of_parallel_guesses_no_more_than_the_limit_are_answered() {
    run(async {
        let app = TestApp::spawn().await;
        let (_, email) = app.admin.add_user("viewer").await;
        for _ in 0..2 {
            app.anonymous().login(&email, "wrong").await.refused(401).await;
        }
        let got = statuses(&app.anonymous(), &email, &["a guess"; 16]).await;
        assert_eq!(counts(got), [(401, 2), (429, 14)]);
        let right = app.anonymous().login(&email, PASSWORD).await;
        right.refused(429).await;
        app.stop().await;
    });
}

#[test]
fn every_answer_of_sign_in_says_how_many_failures_are_left_and_429_when_to_come_back() {
    run(async {
        let app = TestApp::spawn().await;
        let (_, email) = app.admin.add_user("viewer").await;
        let client = app.anonymous();
        for email in [email.as_str(), "nobody@example.com"] {
            for left in [4, 3, 2, 1] {
                let answer = client.login(email, "wrong").await;
                let [limit, remaining, reset] = figures(&answer);
                assert_eq!((limit, remaining), (5, left));
                assert!((880..=900).contains(&reset), "{reset}");
                answer.refused(401).await;
            }
            for _ in 0..2 {
                let answer = client.login(email, "wrong").await;
                let [limit, remaining, reset] = figures(&answer);
                assert_eq!((limit, remaining), (5, 0));
                let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
                assert!((880..=901).contains(&wait), "{wait}");
                assert!(reset <= wait && wait <= reset + 1, "{reset} {wait}");
                assert_eq!(answer.refused(429).await, "rate limit exceeded");
            }
        }
        let answer = client.login(ADMIN, PASSWORD).await;
        assert_eq!(figures(&answer), [5, 5, 0]);
        answer.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn an_address_that_is_too_long_is_counted_and_audited_too() {
    run(async {
        let app = TestApp::spawn().await;
        let long = format!("{}@example.com", "x".repeat(300));
        for _ in 0..4 {
            app.anonymous().login(&long, PASSWORD).await.refused(401).await;
        }
        for _ in 0..2 {
            app.anonymous().login(&long, PASSWORD).await.refused(429).await;
        }
        let other = format!("{}@example.com", "x".repeat(301));
        app.anonymous().login(&other, PASSWORD).await.refused(401).await;
        let failures = app.admin.audited("auth.login").await;
        let shown = format!("{}\u{2026}", "x".repeat(254));
        let audited = failures
            .iter()
            .filter(|entry| entry["user_email"] == shown.as_str());
        assert_eq!(audited.count(), 7);
        app.stop().await;
    });
}

#[test]
fn the_lock_is_for_one_client_address_only() {
    run(async {
        let mut settings = settings("mem://");
        settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
        let app = TestApp::with(settings).await;
        let (_, email) = app.admin.add_user("viewer").await;
        let client = |from: &str| app.anonymous().with_header("x-forwarded-for", from);
        for n in 0..5 {
            // Neither the entries that the client adds itself nor its port make it a different client.
            let from = format!("192.0.2.{n}, 198.51.100.7:{}", 4000 + n);
            let wanted = if n < 4 { 401 } else { 429 };
            client(&from).login(&email, "wrong").await.refused(wanted).await;
        }
        client("198.51.100.7")
            .login(&email, PASSWORD)
            .await
            .refused(429)
            .await;
        client("[2001:db8::7]:4000")
            .login(&email, PASSWORD)
            .await
            .expect(200)
            .await;
        let logins = app.admin.audited("auth.login").await;
        let from: Vec<_> = logins.iter().map(|entry| entry["ip_address"].clone()).collect();
        let mut wanted = vec![json!("2001:db8::7")];
        wanted.extend(vec![json!("198.51.100.7"); 6]);
        assert_eq!(from[..7], wanted);
        app.stop().await;
    });
}
