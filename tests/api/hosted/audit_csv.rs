//! The audit log as CSV: complete, streamed, and harmless in a spreadsheet.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use serde_json::Value;
use threat_memory::actors::audit_writer::Append;
use threat_memory::domain::audit::{AuditEntry, Outcome};

use crate::helpers::{TestApp, run};

const TEXTS: [&str; 10] = [
    "plain",
    "=cmd|' /C calc'!A0",
    "+1",
    "-2+3",
    "@SUM(A1)",
    "\ttab",
    "\r\nnewline, \"quoted\"",
    "＝full width",
    "Zürich 東京 \u{1f980}",
    "semi;colon",
];

fn workspace_of(log: &[Value]) -> uuid::Uuid {
    log[0]["tenant_id"].as_str().unwrap().parse().unwrap()
}

#[test]
fn five_thousand_rows_are_streamed_once_each_and_no_cell_is_a_formula() {
    run(async {
        let app = TestApp::spawn().await;
        let tenant = workspace_of(&app.admin.audit_logs().await);
        let ip = [127, 0, 0, 1].into();
        let start = Utc::now() - TimeDelta::hours(1);
        // A quarter of the entries shares the microsecond of another.
        let entries: Vec<AuditEntry> = (0..5_100)
            .map(|n: i64| {
                let at = start + TimeDelta::microseconds(n / 4 * 3);
                let text = TEXTS[usize::try_from(n).unwrap() % TEXTS.len()];
                let mut entry = AuditEntry::anonymous(tenant, ip, text, text, Outcome::Success, at)
                    .on(text)
                    .with("q", text);
                entry.user_email = Some(text.into());
                entry
            })
            .collect();
        for some in entries.chunks(500) {
            let appends = some
                .iter()
                .map(|entry| app.application().state().audit.call(Append(entry.clone())));
            assert!(join_all(appends).await.iter().all(Result::is_ok));
        }
        let to = (start + TimeDelta::minutes(1)).to_rfc3339().replace('+', "%2B");
        let answer = app
            .admin
            .get(&format!("/api/audit/export?limit=5000&to={to}"))
            .await;
        assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
        assert_eq!(answer.header("content-length"), None);
        let (status, text) = answer.whole().await;
        assert_eq!(status, 200);

        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 5_000);
        let mut ids: Vec<&str> = rows.iter().map(|row| &row[0]).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 5_000);
        let times: Vec<DateTime<Utc>> = rows.iter().map(|row| row[10].parse().unwrap()).collect();
        assert!(times.is_sorted_by(|a, b| a >= b));
        let by_id: HashMap<String, &AuditEntry> = entries
            .iter()
            .map(|entry| (entry.id.to_string(), entry))
            .collect();
        for row in &rows {
            let formula = |cell: &str| cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝']);
            assert!(!row.iter().any(formula), "{row:?}");
            let entry = by_id[&row[0]];
            assert_eq!(
                row[6].strip_prefix('\'').unwrap_or(&row[6]),
                entry.resource_id.as_deref().unwrap()
            );
            assert_eq!(
                serde_json::from_str::<Value>(&row[9]).unwrap()["q"],
                *entry.metadata["q"].as_str().unwrap()
            );
        }
        assert_eq!(
            app.admin.audited("audit.export").await[0]["metadata"]["rows"],
            5_000
        );
        app.stop().await;
    });
}
