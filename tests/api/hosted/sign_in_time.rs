//! The time of a refused sign-in reveals nothing about the account.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::{extent, is_full};

use crate::helpers::{ADMIN, PASSWORD, TestApp, run, settings};

/// Minimum and maximum number of rounds: in few of them, chance decides which kind is slow.
const ROUNDS: std::ops::Range<usize> = 24..120;
/// Accepted ratio of the slowest kind to the fastest. One extra hash would add a fifth.
const TOLERANCE: f64 = 1.14;

/// The mean of the faster half, in seconds. Other load slows some responses by a multiple, and the fastest of many
/// differs from run to run by more than the mean does.
fn typical(times: &[Duration]) -> f64 {
    let mut times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    times.sort_unstable_by(f64::total_cmp);
    let faster = &times[..times.len() / 2];
    faster.iter().sum::<f64>() / faster.len() as f64
}

#[test]
fn sign_ins_that_fail_take_as_long_whatever_is_known_of_the_address() {
    run(async {
        let mut settings = settings("mem://");
        settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
        let app = TestApp::with(settings).await;
        let (disabled, disabled_email) = app.admin.add_user("viewer").await;
        let path = format!("/api/admin/users/{disabled}");
        app.admin
            .patch(&path, &json!({"disabled": true}))
            .await
            .expect(200)
            .await;
        let several = json!({"email": "several@example.com", "password": PASSWORD, "role": "viewer"});
        for name in ["Alpha", "Beta", "Gamma", "Delta", "Epsilon"] {
            let client = app.workspace(name).await;
            client.post("/api/admin/users", &several).await.expect(201).await;
        }
        let long = format!("{}@example.com", "x".repeat(300));
        let kinds: Vec<Value> = [
            (ADMIN, None),
            ("nobody@example.com", None),
            (&disabled_email, None),
            ("several@example.com", None),
            ("several@example.com", Some("Alpha")),
            ("several@example.com", Some("nowhere")),
            (&long, None),
        ]
        .map(|(email, workspace)| json!({"email": email, "password": "a wrong one", "workspace": workspace}))
        .into();
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); kinds.len()];
        let mut typicals = Vec::new();
        for round in 0..extent(2, ROUNDS.end) {
            for (at, body) in kinds.iter().enumerate() {
                // A different address each time, or the lockout would answer.
                let from = format!("198.51.{round}.{at}");
                let client = app.anonymous().with_header("x-forwarded-for", &from);
                client.get("/health").await.expect(200).await;
                let since = Instant::now();
                let answer = client.post("/api/auth/login", body).await;
                times[at].push(since.elapsed());
                answer.refused(401).await;
            }
            if !is_full() || round + 1 < ROUNDS.start {
                continue;
            }
            typicals = times.iter().map(|of_kind| typical(of_kind)).collect();
            let least = typicals.iter().copied().fold(f64::MAX, f64::min);
            if typicals.iter().all(|of_kind| *of_kind < least * TOLERANCE) {
                app.stop().await;
                return;
            }
        }
        assert!(!is_full(), "seconds, kind by kind: {typicals:?}");
        app.stop().await;
    });
}
