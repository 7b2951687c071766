//! The log over HTTP, in the format the program writes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::helpers::run;
use crate::process::{Service, program};

fn local(dir: &std::path::Path) -> Command {
    let mut command = program();
    command.args(["local", "--port", "0", "--data-dir"]).arg(dir);
    command
        .env("LOCAL_WEB_ADMIN_BIND", "127.0.0.1:0")
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// A log line in this program's format.
fn line(event: &str) -> String {
    let fields = json!({"message": event});
    format!(
        "{}\n",
        json!({"timestamp": "2026-01-01T00:00:00Z", "level": "ERROR", "fields": fields, "target": "t"})
    )
}

fn events(page: &Value) -> Vec<&str> {
    let logs = page["logs"].as_array().unwrap();
    logs.iter()
        .map(|entry| entry["event"].as_str().unwrap())
        .collect()
}

#[test]
fn after_midnight_the_lines_of_the_day_before_are_still_there() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        // A directory that others can read is a warning of its own.
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        std::fs::create_dir(dir.path().join("logs")).unwrap();
        for (day, event) in [("2026-01-01", "the day before"), ("2025-12-31", "long ago")] {
            std::fs::write(
                dir.path().join(format!("logs/threat-memory.{day}.log")),
                line(event),
            )
            .unwrap();
        }
        let mut command = local(dir.path());
        command.env("LOCAL_GOVERNANCE_PII_ENABLED", "true");
        let service = Service::start(command);
        let client = service.anonymous();
        client.remember("Write to someone@mail.example.org.").await;
        let own = client.get("/api/logs?level=warning").await.expect(200).await;
        assert_eq!(
            (&own["logs"][0]["event"], &own["logs"][0]["level"]),
            (&json!("a note holds personal data"), &json!("warning"))
        );
        assert!(!own.to_string().contains("someone"), "{own}");
        let whole = client.get("/api/logs?lines=10000").await.expect(200).await;
        assert_eq!(whole["truncated"], false);
        assert_eq!(whole.get("error"), None);
        assert_eq!(events(&whole)[..2], ["long ago", "the day before"]);
        // Filtered by level, since each request adds a line.
        let last = client
            .get("/api/logs?level=error&lines=1")
            .await
            .expect(200)
            .await;
        assert_eq!(
            (events(&last), &last["truncated"]),
            (vec!["the day before"], &json!(true))
        );
        service.kill();
        // Without a log file of its own, the service shows none, whatever files the folder contains.
        let mut silent = local(dir.path());
        silent.env("LOCAL_LOGGING_FILE", "false");
        let service = Service::start(silent);
        let page = service.anonymous().get("/api/logs").await.expect(200).await;
        assert_eq!(
            page,
            json!({"logs": [], "truncated": false, "error": "No log file configured"})
        );
        service.kill();
    });
}
