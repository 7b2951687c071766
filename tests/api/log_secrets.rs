//! Passwords, tokens and keys must never appear in the log of a real run.

use std::io::BufRead;
use std::process::{Command, Stdio};

use serde_json::json;
use test_support::is_full;

use crate::helpers::{ADMIN, Client, PASSWORD, run};
use crate::process::copy_started_once;

const SECRET: &str = "a token secret of more than 32 bytes";

/// Kills the process if a test ends early.
struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn no_secret_ever_stands_in_the_log_and_sigterm_ends_with_0() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    // A first start logs the most and takes the longest.
    if !is_full() {
        copy_started_once(&data);
    }
    let child = Command::new(env!("CARGO_BIN_EXE_threat-memory"))
        .args(["hosted", "--bind", "127.0.0.1:0", "--storage"])
        .arg(format!("surrealkv://{}", data.display()))
        .envs([
            ("THREAT_MEMORY_ADMIN_EMAIL", ADMIN),
            ("THREAT_MEMORY_ADMIN_PASSWORD", PASSWORD),
            ("THREAT_MEMORY_JWT_SECRET", SECRET),
            ("THREAT_MEMORY_SERVER__ADMIN_BIND", "127.0.0.1:0"),
            ("THREAT_MEMORY_LOG__FILTER", "trace"),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut process = Process(child);
    let mut lines = std::io::BufReader::new(process.0.stderr.take().unwrap()).lines();
    let mut terminal = String::new();
    let base = loop {
        let Some(Ok(line)) = lines.next() else {
            panic!("the service did not start: {terminal}");
        };
        terminal.push_str(&line);
        terminal.push('\n');
        if let Some(rest) = line.strip_prefix("API on ") {
            break rest.split(',').next().unwrap().to_owned();
        }
    };
    let rest = std::thread::spawn(move || lines.map_while(Result::ok).collect::<String>());
    let mut secrets = vec![PASSWORD.to_owned(), SECRET.to_owned()];
    run(async {
        let nobody = Client::at(&base);
        let admin = nobody.sign_in(ADMIN, PASSWORD).await;
        secrets.push(admin.sends("authorization").replace("Bearer ", ""));
        let (id, email) = admin.add_user("viewer").await;
        let change = json!({"password": "another long password"});
        let path = format!("/api/admin/users/{id}");
        admin.patch(&path, &change).await.expect(200).await;
        nobody
            .login(&email, "a mistyped password")
            .await
            .refused(401)
            .await;
        let (_, key) = admin.add_key(&["read", "ingest"]).await;
        let client = nobody.with_header("x-api-key", &key);
        client.search("anything").await;
        client.get("/api/audit/logs").await.refused(403).await;
        nobody
            .bearer("made.up.token-abc")
            .get("/api/auth/me")
            .await
            .refused(401)
            .await;
        secrets.extend([
            key,
            "another long password".into(),
            "a mistyped password".into(),
            "made.up.token-abc".into(),
        ]);
    });
    let pid = process.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(process.0.wait().unwrap().code(), Some(0));
    terminal.push_str(&rest.join().unwrap());
    let mut logs = String::new();
    for file in std::fs::read_dir(data.join("logs")).unwrap() {
        logs.push_str(&std::fs::read_to_string(file.unwrap().path()).unwrap());
    }
    assert!(logs.contains("request answered"), "{logs}");
    for text in [&logs, &terminal] {
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{secret} is in the log");
        }
        assert!(!text.contains("$argon2"), "a password hash is in the log");
    }
}
