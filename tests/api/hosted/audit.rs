//! The audit log: its contents, its queries, and the hash chain that reveals every change.

use chrono::{DateTime, Duration, Utc};
use serde_json::{Value, json};
use threat_memory::auth::token;
use threat_memory::domain::audit::{AuditEntry, Outcome};
use threat_memory::store::Store;

use crate::helpers::{ADMIN, Client, PASSWORD, TestApp, encode, keys_of, run};
use crate::stix;

const COLUMNS: [&str; 11] = [
    "id",
    "tenant_id",
    "user_id",
    "user_email",
    "action",
    "resource",
    "resource_id",
    "outcome",
    "ip_address",
    "metadata",
    "created_at",
];

/// Actions with their outcomes, newest first.
fn actions(logs: &[Value]) -> Vec<(&str, &str)> {
    logs.iter()
        .map(|entry| (stix::text(entry, "action"), stix::text(entry, "outcome")))
        .collect()
}

async fn logs(client: &Client, pairs: &[(&str, &str)]) -> Vec<Value> {
    let path = format!("/api/audit/logs?{}", encode(pairs));
    let answer = client.get(&path).await.expect(200).await;
    let logs = answer["logs"].as_array().unwrap().clone();
    assert_eq!(keys_of(&answer), ["count", "logs"]);
    assert_eq!(answer["count"], json!(logs.len()));
    logs
}

fn time_of(entry: &Value) -> DateTime<Utc> {
    stix::text(entry, "created_at").parse().unwrap()
}

#[test]
fn everything_that_must_be_audited_is_and_with_the_eleven_fields() {
    run(async {
        let app = TestApp::spawn().await;
        let admin = &app.admin;
        admin
            .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
            .await;
        let (_, email) = admin.add_user("viewer").await;
        app.anonymous().login(&email, "wrong").await.refused(401).await;
        app.anonymous()
            .login("nobody@example.com", "wrong")
            .await
            .refused(401)
            .await;
        let secret = stix::with(stix::object("tool", "Heron"), json!({"labels": ["tlp:red"]}));
        admin.ingest(json!([secret, stix::object("tool", "Hook")])).await;
        let (key_id, key) = admin.add_key(&["read"]).await;
        let key = app.anonymous().with_header("x-api-key", &key);
        let found = key.search("Hook, \"Heron\"\n").await;
        key.get("/api/recall/semantic?q=Hook").await.expect(200).await;
        let recall = stix::text(&found, "recall_id");
        let export = format!("/api/recall/sessions/{recall}/export.stix");
        key.get(&export).await.refused(403).await;
        admin.settings(json!({"red_export_grant": true})).await;
        key.export(recall).await;
        admin.get("/api/audit/export").await.expect(200).await;

        let logs = admin.audit_logs().await;
        let want = [
            ("audit.export", "success"),
            ("recall.export", "success"),
            ("admin.workspace_change", "success"),
            ("recall.export_denied", "denied"),
            ("recall.semantic", "success"),
            ("recall.search", "success"),
            ("admin.api_key_create", "success"),
            ("ingest.stix", "success"),
            ("auth.login", "failure"),
            ("auth.login", "failure"),
            ("admin.user_create", "success"),
            ("admin.workspace_change", "success"),
            ("auth.login", "success"),
            ("admin.bootstrap", "success"),
        ];
        assert_eq!(actions(&logs), want);
        let mut columns = COLUMNS;
        columns.sort_unstable();
        let me = admin.get("/api/auth/me").await.expect(200).await;
        for entry in &logs {
            assert_eq!(keys_of(entry), columns);
            assert_eq!(entry["tenant_id"], me["workspace"]["id"]);
            assert_eq!(entry["ip_address"], "127.0.0.1");
            assert!(entry["metadata"].is_object());
        }
        // A key acts for its owner; the entry records which key it was.
        let search = &logs[5];
        assert_eq!(
            (&search["user_id"], &search["user_email"]),
            (&me["user"]["id"], &json!(ADMIN))
        );
        assert_eq!(search["metadata"]["api_key_id"], json!(key_id));
        assert_eq!(search["metadata"]["query"], "Hook, \"Heron\"");
        assert_eq!(search["metadata"]["max_tlp"], "TLP:RED");
        for at in [1, 3, 5] {
            assert_eq!(logs[at]["resource_id"], json!(recall), "{}", logs[at]);
        }
        assert_eq!(logs[7]["metadata"]["nodes_created"], 2);
        assert_eq!(
            (&logs[8]["user_email"], &logs[9]["user_email"]),
            (&json!("nobody@example.com"), &json!(email))
        );
        assert_eq!(logs[8]["user_id"], Value::Null);
        let chain = admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(keys_of(&chain), ["entries", "head", "unchained", "valid"]);
        assert_eq!(
            (&chain["valid"], &chain["entries"], &chain["unchained"]),
            (&json!(true), &json!(14), &json!(0))
        );
        app.stop().await;
    });
}

#[test]
fn a_refused_ingest_writes_neither_rows_nor_an_entry() {
    run(async {
        let app = TestApp::shared().await;
        let reader = app.api_key(&["read"]).await;
        let body = json!({"bundle": [stix::object("tool", "Heron")]});
        reader.post("/api/ingest/stix", &body).await.refused(403).await;
        app.admin
            .post("/api/ingest/stix", &json!({}))
            .await
            .refused(400)
            .await;
        assert!(app.admin.audited("ingest.stix").await.is_empty());
        assert_eq!(app.admin.search("Heron").await["count"], 0);
        app.stop().await;
    });
}

#[test]
fn entries_are_newest_first_and_filters_take_the_right_ones() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let (id, email) = admin.add_user("viewer").await;
        let viewer = app.anonymous().sign_in(&email, PASSWORD).await;
        for round in 0..4 {
            viewer.search(&format!("of the viewer {round}")).await;
            admin.search(&format!("of the administrator {round}")).await;
        }
        let all = logs(admin, &[]).await;
        assert!(all.windows(2).all(|pair| time_of(&pair[0]) >= time_of(&pair[1])));

        let of_viewer = logs(admin, &[("user_id", &id)]).await;
        assert_eq!(of_viewer.len(), 5);
        assert!(of_viewer.iter().all(|entry| entry["user_id"] == json!(id)));
        assert!(
            logs(admin, &[("user_id", &uuid::Uuid::new_v4().to_string())])
                .await
                .is_empty()
        );

        let mut paged = Vec::new();
        for offset in (0..all.len()).step_by(3) {
            let page = logs(admin, &[("limit", "3"), ("offset", &offset.to_string())]).await;
            assert!(page.len() <= 3);
            paged.extend(page);
        }
        assert_eq!(paged, all);
        assert!(logs(admin, &[("offset", "1000000")]).await.is_empty());

        // `from` is inclusive, `to` is exclusive; other time zones work too, even with an unescaped plus sign.
        let (newest, oldest) = (time_of(&all[2]), time_of(&all[6]));
        let text = |time: DateTime<Utc>| time.to_rfc3339();
        let between = logs(admin, &[("from", &text(oldest)), ("to", &text(newest))]).await;
        assert_eq!(between, all[3..=6]);
        let zone = chrono::FixedOffset::east_opt(7200).unwrap();
        let east = oldest.with_timezone(&zone).to_rfc3339();
        let path = format!("/api/audit/logs?from={east}");
        let since = admin.get(&path).await.expect(200).await;
        assert_eq!(since["logs"].as_array().unwrap()[..], all[..=6]);
        let both = [
            ("from", text(oldest)),
            ("user_id", id.clone()),
            ("limit", "1".into()),
        ];
        let both: Vec<(&str, &str)> = both.iter().map(|(key, value)| (*key, value.as_str())).collect();
        assert_eq!(logs(admin, &both).await[0], of_viewer[0]);
        for far in ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] {
            logs(admin, &[("from", far), ("to", far)]).await;
        }
        app.stop().await;
    });
}

#[test]
fn entries_are_chosen_by_action_and_outcome() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let viewer = app.user("viewer").await;
        for _ in 0..3 {
            viewer.search("x").await;
        }
        admin.search("x").await;
        admin.get("/api/recall/semantic?q=x").await.expect(200).await;
        let all = logs(admin, &[]).await;
        let of =
            |action: &str| -> Vec<&Value> { all.iter().filter(|entry| entry["action"] == action).collect() };
        let found = logs(admin, &[("action", "recall.search")]).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), of("recall.search"));
        assert_eq!(found.len(), 4);
        let page = logs(
            admin,
            &[("action", "recall.search"), ("limit", "2"), ("offset", "1")],
        )
        .await;
        assert_eq!(page, found[1..3]);
        let user = stix::text(&found[1], "user_id");
        let own = logs(admin, &[("action", "recall.search"), ("user_id", user)]).await;
        assert_eq!(own, found[1..]);
        assert_eq!(
            logs(admin, &[("outcome", "success"), ("action", "recall.semantic")])
                .await
                .len(),
            1
        );
        assert!(logs(admin, &[("outcome", "denied")]).await.is_empty());
        assert!(logs(admin, &[("action", "recall")]).await.is_empty());
        let error = admin
            .get("/api/audit/logs?outcome=maybe")
            .await
            .refused(400)
            .await;
        assert!(
            error.starts_with("outcome: must be one of success, failure, denied"),
            "{error}"
        );
        let csv = admin.get("/api/audit/export?action=recall.semantic").await;
        let (_, csv) = csv.whole().await;
        assert_eq!(csv.trim_end().lines().count(), 2, "{csv}");
        app.stop().await;
    });
}

#[test]
fn a_period_of_the_log_may_be_given_in_days_and_does_not_end_before_it_begins() {
    run(async {
        let app = TestApp::shared().await;
        let today = Utc::now().date_naive();
        let tomorrow = (today + chrono::Days::new(1)).to_string();
        let yesterday = (today - chrono::Days::new(1)).to_string();
        app.admin.search("x").await;
        let all = logs(&app.admin, &[]).await;
        // Of the last day all counts; the test may run at midnight.
        let since = logs(&app.admin, &[("from", &yesterday), ("to", &tomorrow)]).await;
        assert_eq!(since, all);
        assert!(logs(&app.admin, &[("to", "2020-01-01")]).await.is_empty());
        for route in ["logs", "export"] {
            for (from, to) in [
                (tomorrow.as_str(), yesterday.as_str()),
                ("2030-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
                ("2030-01-01", "2029-12-31T23:59:59Z"),
            ] {
                let path = format!("/api/audit/{route}?{}", encode(&[("from", from), ("to", to)]));
                let error = app.admin.get(&path).await.refused(400).await;
                assert_eq!(error, "from: must not be after to", "{path}");
            }
        }
        app.stop().await;
    });
}

#[test]
fn parameters_out_of_range_are_400_and_named() {
    run(async {
        let app = TestApp::shared().await;
        for (path, name, values) in [
            ("/api/audit/logs", "limit", &["0", "1001", "-1", "many", ""][..]),
            ("/api/audit/logs", "offset", &["-1", "x", "4294967296"]),
            ("/api/audit/logs", "user_id", &["me", ""]),
            ("/api/audit/logs", "from", &["yesterday", "2020-1-1", ""]),
            ("/api/audit/logs", "to", &["2020-13-01T00:00:00Z"]),
            ("/api/audit/export", "limit", &["0", "5001", "x"]),
            ("/api/audit/export", "from", &["x"]),
            ("/api/audit/export", "to", &["x"]),
        ] {
            for value in values {
                let path = format!("{path}?{}", encode(&[(name, value)]));
                let error = app.admin.get(&path).await.refused(400).await;
                assert!(
                    error.starts_with(&format!("{name}: must be")),
                    "{path} gave {error}"
                );
            }
        }
        for path in ["/api/audit/logs?limit=1000", "/api/audit/export?limit=5000"] {
            app.admin.get(path).await.expect(200).await;
        }
        // A refused request is not an export.
        assert_eq!(app.admin.audited("audit.export").await.len(), 1);
        app.stop().await;
    });
}

#[test]
fn the_csv_is_rfc_4180_and_defuses_formulas() {
    run(async {
        let app = TestApp::spawn().await;
        for account in [
            "=1+1@example.com",
            "+1",
            "-1",
            "@sum(a1)",
            "plain \"quoted\", text",
        ] {
            app.anonymous().login(account, "x").await.refused(401).await;
        }
        app.admin.search("line one\nline two, \"quoted\"").await;
        let logs = app.admin.audit_logs().await;
        let answer = app.admin.get("/api/audit/export").await;
        assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
        let (status, text) = answer.whole().await;
        assert_eq!(status, 200);
        assert!(text.starts_with(&format!("{}\r\n", COLUMNS.join(","))));
        assert!(text.ends_with("\r\n"));

        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), logs.len());
        for (row, entry) in rows.iter().zip(&logs) {
            for (cell, column) in row.iter().zip(COLUMNS) {
                assert!(!cell.starts_with(['=', '+', '-', '@']), "{cell}");
                let want = match &entry[column] {
                    Value::Null => String::new(),
                    Value::String(text) if text.starts_with(['=', '+', '-', '@']) => format!("'{text}"),
                    Value::String(text) => text.clone(),
                    Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                        entry[column].to_string()
                    }
                };
                assert_eq!(cell, want, "{column}");
            }
        }
        let accounts: Vec<&str> = rows.iter().map(|row| &row[3]).collect();
        for defused in ["'=1+1@example.com", "'+1", "'-1", "'@sum(a1)"] {
            assert!(accounts.contains(&defused), "{accounts:?}");
        }
        app.stop().await;
    });
}

#[test]
fn a_csv_export_takes_its_bounds_and_leaves_an_entry_with_its_size() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        for _ in 0..3 {
            admin.search("anything").await;
        }
        let all = logs(admin, &[]).await;
        let (from, to) = (time_of(&all[2]).to_rfc3339(), time_of(&all[0]).to_rfc3339());
        let query = encode(&[("from", &from), ("to", &to), ("limit", "1")]);
        let (status, text) = admin
            .get(&format!("/api/audit/export?{query}"))
            .await
            .whole()
            .await;
        assert_eq!((status, text.lines().count()), (200, 2));
        assert!(text.contains(stix::text(&all[1], "id")), "{text}");
        let exports = admin.audited("audit.export").await;
        assert_eq!((exports.len(), &exports[0]["metadata"]["rows"]), (1, &json!(1)));
        app.stop().await;
    });
}

#[test]
fn the_audit_role_reads_and_exports_and_administers_nothing() {
    run(async {
        let app = TestApp::shared().await;
        let auditor = app.user("audit").await;
        for path in ["/api/audit/logs", "/api/audit/verify", "/api/audit/export"] {
            auditor.get(path).await.expect(200).await;
        }
        let viewer = app.user("viewer").await;
        for (path, permission) in [
            ("/api/audit/logs", "audit:read"),
            ("/api/audit/verify", "audit:read"),
            ("/api/audit/export", "audit:export"),
        ] {
            let error = viewer.get(path).await.refused(403).await;
            assert_eq!(error, format!("permission {permission} required"));
        }
        let exports = app.admin.audited("audit.export").await;
        assert_eq!(exports.len(), 1);
        assert!(exports[0]["user_email"].as_str().unwrap().starts_with("audit-"));
        app.stop().await;
    });
}

#[test]
fn entries_that_a_cut_left_without_a_link_are_linked_at_the_next_start() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = TestApp::durable(dir.path()).await;
        let me = app.admin.get("/api/auth/me").await.expect(200).await;
        let tenant: uuid::Uuid = stix::text(&me["workspace"], "id").parse().unwrap();
        app.stop().await;

        // The state left by a process that was killed between the two writes.
        let secret = token::secret_of(Some(dir.path())).unwrap();
        let url = format!("surrealkv://{}/store", dir.path().display());
        let store = tokio::spawn(async move {
            let store = Store::open(
                &url,
                "hosted",
                threat_memory::store::StorageMemory::default(),
                None,
                &secret,
            )
            .await
            .unwrap();
            let ip = std::net::IpAddr::from([127, 0, 0, 1]);
            let now = Utc::now();
            let entry = |at| AuditEntry::anonymous(tenant, ip, "test.cut", "x", Outcome::Success, at);
            let entries = [entry(now), entry(now - Duration::minutes(5))];
            store.append_audit(&entries).await.unwrap();
            let report = store.verify_audit(tenant).await.unwrap();
            assert_eq!((report.valid, report.unchained), (true, 2));
        });
        store.await.unwrap();

        let app = TestApp::durable(dir.path()).await;
        let chain = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(
            (&chain["valid"], &chain["unchained"]),
            (&json!(true), &json!(0)),
            "{chain}"
        );
        assert_eq!(app.admin.audited("test.cut").await.len(), 2);
        app.stop().await;
    });
}
