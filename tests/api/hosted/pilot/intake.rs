//! What is taken in, and who reads it.

use serde_json::json;

use super::sink::{Security, Sink};
use super::{PILOT, REQUESTS, body, mailing};
use crate::helpers::{TestApp, keys_of, run, settings};

async fn spawn() -> TestApp {
    let mut settings = settings("mem://");
    settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    TestApp::with(settings).await
}

#[test]
fn a_request_is_kept_and_read_without_e_mail() {
    run(async {
        let app = spawn().await;
        let nobody = app.anonymous();
        nobody
            .applies(json!({"org": " First \r\n", "cti_stack": null}))
            .await;
        nobody.applies(json!({"org": "Second", "unknown": 1})).await;
        let full = json!({"name": "ü".repeat(200), "org": "Third", "cti_stack": "ü".repeat(500)});
        nobody.applies(full.clone()).await;

        let requests = app.admin.pilot_requests().await;
        let orgs: Vec<_> = requests.iter().map(|request| &request["org"]).collect();
        assert_eq!(orgs, ["Third", "Second", "First"]);
        let keys = [
            "created_at",
            "cti_stack",
            "email",
            "id",
            "name",
            "notification",
            "org",
            "role",
        ];
        for request in &requests {
            assert_eq!(keys_of(request), keys);
            assert_eq!(request["notification"], "off");
        }
        assert_eq!(
            (&requests[0]["name"], &requests[0]["cti_stack"]),
            (&full["name"], &full["cti_stack"])
        );
        assert_eq!(requests[1]["cti_stack"], "MISP");
        assert_eq!(requests[2]["cti_stack"], json!(null));
        let page = app
            .admin
            .get(&format!("{REQUESTS}?limit=1&offset=1"))
            .await
            .expect(200)
            .await;
        assert_eq!(
            (&page["count"], &page["pilot_requests"][0]),
            (&json!(1), &requests[1])
        );
        for (query, rule) in [
            ("limit=0", "limit: must be a whole number from 1 to 1000"),
            ("limit=1001", "limit: must be a whole number from 1 to 1000"),
            ("offset=-1", "offset: must be a whole number from 0 to 1000000"),
        ] {
            let error = app
                .admin
                .get(&format!("{REQUESTS}?{query}"))
                .await
                .refused(400)
                .await;
            assert_eq!(error, rule);
        }
        app.stop().await;
    });
}

#[test]
fn requests_and_reading_them_are_audited_without_personal_data() {
    run(async {
        let app = spawn().await;
        let address = app.anonymous().with_header("x-forwarded-for", "192.0.2.77");
        address.post(PILOT, &body(json!({}))).await.expect(200).await;
        let request = app.admin.pilot_requests().await.remove(0);
        let entry = app.admin.audited("pilot.request").await.remove(0);
        assert_eq!(entry["resource"], "pilot_request");
        assert_eq!(entry["resource_id"], request["id"]);
        assert_eq!(entry["ip_address"], "192.0.2.77");
        assert_eq!(
            (&entry["user_id"], &entry["outcome"]),
            (&json!(null), &json!("success"))
        );
        assert_eq!(entry["metadata"], json!({"role": "threat-intel-lead"}));
        let read = app.admin.audited("pilot.read").await;
        assert_eq!((read.len(), &read[0]["metadata"]), (1, &json!({"rows": 1})));
        assert_eq!(read[0]["user_email"], crate::helpers::ADMIN);
        let log = serde_json::to_string(&app.admin.audit_logs().await).unwrap();
        for personal in ["Grace", "grace@", "Example Bank", "MISP"] {
            assert!(!log.contains(personal), "{personal} is in {log}");
        }
        let chain = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(chain["valid"], true);
        app.stop().await;
    });
}

#[test]
fn only_the_operators_administrators_read_requests() {
    run(async {
        let app = spawn().await;
        app.anonymous().applies(json!({})).await;
        let foreign = app.workspace("foreign").await;
        let error = foreign.get(REQUESTS).await.refused(403).await;
        assert_eq!(error, "only the operator's administrators read pilot requests");
        assert!(foreign.audited("pilot.request").await.is_empty());
        app.user("analyst").await.get(REQUESTS).await.refused(403).await;
        app.api_key(&["read", "ingest"])
            .await
            .get(REQUESTS)
            .await
            .refused(403)
            .await;
        app.anonymous().get(REQUESTS).await.refused(401).await;
        assert!(app.admin.audited("pilot.read").await.is_empty());
        app.stop().await;
    });
}

#[test]
fn every_rule_is_named_with_its_field() {
    run(async {
        let app = spawn().await;
        let line = "must not hold control characters, line breaks or direction overrides";
        let email = "must be an e-mail address, such as name@example.com";
        for (field, value, rule) in [
            ("name", json!(null), "must be a string"),
            ("name", json!(7), "must be a string"),
            ("name", json!(""), "is required and must not be blank"),
            ("name", json!(" \r\n"), "is required and must not be blank"),
            ("name", json!("x".repeat(201)), "must have at most 200 characters"),
            ("name", json!("a\r\nBcc: b@example.net"), line),
            ("name", json!("a\0b"), line),
            ("email", json!("nobody"), email),
            ("email", json!("a@b@c"), email),
            ("email", json!("a@example.com\r\nBcc: b@example.net"), email),
            ("email", json!("a@example.com,b@example.net"), email),
            ("email", json!("a@example.com>\u{2028}<b@example.net"), email),
            ("email", json!(format!("{}@example.com", "x".repeat(250))), email),
            ("org", json!(" "), "is required and must not be blank"),
            ("org", json!("ü".repeat(201)), "must have at most 200 characters"),
            ("org", json!("a\u{2028}b"), line),
            (
                "role",
                json!("hacker"),
                "must be one of cti-analyst, soc-manager, threat-intel-lead, security-engineer, ciso, other",
            ),
            (
                "role",
                json!("CISO"),
                "must be one of cti-analyst, soc-manager, threat-intel-lead, security-engineer, ciso, other",
            ),
            (
                "cti_stack",
                json!("x".repeat(501)),
                "must have at most 500 characters",
            ),
            (
                "cti_stack",
                json!("a\0"),
                "must not hold NUL characters, Unicode line separators or direction overrides",
            ),
            (
                "cti_stack",
                json!("a\u{2028}b"),
                "must not hold NUL characters, Unicode line separators or direction overrides",
            ),
            ("cti_stack", json!(["MISP"]), "must be a string"),
        ] {
            let body = body(json!({field: value}));
            let error = app
                .anonymous()
                .elsewhere()
                .post(PILOT, &body)
                .await
                .refused(400)
                .await;
            assert_eq!(error, format!("{field}: {rule}"), "{body}");
        }
        for field in ["name", "email", "org", "role"] {
            let mut body = body(json!({}));
            body.as_object_mut().unwrap().remove(field);
            let error = app
                .anonymous()
                .elsewhere()
                .post(PILOT, &body)
                .await
                .refused(400)
                .await;
            assert_eq!(error, format!("{field}: is required"));
        }
        for role in [
            "cti-analyst",
            "soc-manager",
            "threat-intel-lead",
            "security-engineer",
            "ciso",
            "other",
        ] {
            app.anonymous().applies(json!({"role": role})).await;
        }
        let large = body(json!({"unknown": "x".repeat(16 << 10)}));
        let error = app
            .anonymous()
            .elsewhere()
            .post(PILOT, &large)
            .await
            .refused(413)
            .await;
        assert_eq!(error, "body exceeds the limit of 16384 bytes");
        assert_eq!(app.admin.pilot_requests().await.len(), 6);
        app.stop().await;
    });
}

#[test]
fn five_a_minute_from_one_address_and_more_from_others() {
    run(async {
        let app = spawn().await;
        let nobody = app.anonymous().elsewhere();
        for left in (0..5).rev() {
            let answer = nobody.post(PILOT, &body(json!({}))).await;
            assert_eq!(answer.header("ratelimit-limit"), Some("5"));
            assert_eq!(
                answer.header("ratelimit-remaining"),
                Some(left.to_string().as_str())
            );
            answer.expect(200).await;
        }
        // What breaks a rule counts too.
        let answer = nobody.post(PILOT, &json!({})).await;
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        assert_eq!(answer.header("ratelimit-remaining"), Some("0"));
        assert_eq!(answer.refused(429).await, "rate limit exceeded");
        nobody
            .elsewhere()
            .post(PILOT, &body(json!({})))
            .await
            .expect(200)
            .await;
        assert_eq!(app.admin.pilot_requests().await.len(), 6);
        app.stop().await;
    });
}

#[test]
fn metrics_count_what_is_to_be_sent_and_was_sent() {
    run(async {
        let sink = Sink::start(Security::Never).await;
        sink.refuse("RCPT", "451 later");
        let app = TestApp::with(mailing(settings("mem://"), &sink, Security::Never)).await;
        app.anonymous().applies(json!({})).await;
        super::until(|| sink.steps("RCPT") > 0).await;
        sink.release();
        app.admin.all_sent(1).await;
        let metrics = app.admin.metrics().await;
        assert!(metrics.contains("# HELP outbox_pending "), "{metrics}");
        for outcome in ["sent", "failed"] {
            assert!(
                metrics.contains(&format!("notifications_total{{outcome=\"{outcome}\"}}")),
                "{metrics}"
            );
        }
        app.stop().await;
    });
}
