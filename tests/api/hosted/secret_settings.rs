//! Secrets in the settings of a real process: always treated as text, validated before start-up, never shown.

use std::path::Path;

use test_support::{extent, is_full};

use crate::helpers::{ADMIN, run};
use crate::process::{Service, finish, hosted, program, started_once};

#[test]
fn a_password_of_digits_is_a_password() {
    run(async {
        for password in [
            "202401019999",
            "[1, 2, 3, 4, 5]",
            "\"0123456789\"",
            "true          ",
        ]
        .into_iter()
        .take(extent(1, 4))
        {
            let dir = tempfile::tempdir().unwrap();
            let mut command = hosted(dir.path());
            command.env("THREAT_MEMORY_ADMIN_PASSWORD", password);
            let service = Service::start(command);
            let client = service.anonymous();
            client.login(ADMIN, password).await.expect(200).await;
        }
        if !is_full() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, "admin_password = 202401019999").unwrap();
        let mut command = hosted(dir.path());
        command
            .arg("--config")
            .arg(&file)
            .env_remove("THREAT_MEMORY_ADMIN_PASSWORD");
        let service = Service::start(command);
        service
            .anonymous()
            .login(ADMIN, "202401019999")
            .await
            .expect(200)
            .await;
    });
}

#[test]
fn an_administrator_that_can_not_be_made_is_refused_with_2_and_by_name() {
    for (name, value, rule) in [
        (
            "THREAT_MEMORY_ADMIN_PASSWORD",
            "hunter22222",
            "must have at least 12 characters",
        ),
        (
            "THREAT_MEMORY_ADMIN_PASSWORD",
            "12345",
            "must have at least 12 characters",
        ),
        (
            "THREAT_MEMORY_ADMIN_PASSWORD",
            "adminpassword1",
            "must not be a common password",
        ),
        ("THREAT_MEMORY_ADMIN_EMAIL", "nobody", "must be an e-mail address"),
        ("THREAT_MEMORY_ADMIN_EMAIL", "12345", "must be an e-mail address"),
        ("THREAT_MEMORY_JWT_SECRET", "12345", "must have at least 32 bytes"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let ended = finish(hosted(&data).env(name, value));
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{name}={value}: {said}");
        let want = format!("configuration: {name}: {rule}");
        assert!(said.contains(&want), "{name}={value}: {said}");
        assert!(!said.contains(value), "{said}");
        assert!(!data.exists(), "{name}={value}");
    }
}

/// What does not show by the data directory alone is told by the store: that it has no administrator yet.
#[test]
fn an_administrator_is_checked_at_the_first_start_alone() {
    run(async {
        let weak = |dir: &Path| {
            let mut command = hosted(dir);
            command
                .env("THREAT_MEMORY_ADMIN_PASSWORD", "administrator1")
                .env("THREAT_MEMORY_ADMIN_EMAIL", "nobody");
            command
        };
        let used = started_once();
        let service = Service::start(weak(used.path()));
        service.admin().await.get("/api/auth/me").await.expect(200).await;
        service.stop();
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("lost+found")).unwrap();
        for _ in 0..2 {
            let ended = finish(&mut weak(dir.path()));
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(2), "{said}");
            let want = "configuration: THREAT_MEMORY_ADMIN_PASSWORD: must not be a common password";
            assert!(said.contains(want), "{said}");
            assert!(!said.contains("administrator1"), "{said}");
        }
        let service = Service::start(hosted(dir.path()));
        service.admin().await.get("/api/auth/me").await.expect(200).await;
    });
}

#[test]
fn no_refusal_of_a_setting_shows_a_secret() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    for (service, text) in [
        ("hosted", "jwt_secret = 424_242"),
        ("hosted", "admin_password = [424242]"),
        ("hosted", "llm_api_key = { x = 424242 }"),
        (
            "hosted",
            "llm.max_tokens = 424242\nllm.provider = \"openai\"\nllm.model = \"m\"",
        ),
        ("local", "[web]\napi_key = 424_242"),
        ("local", "[platform]\ntoken = [424242]"),
        (
            "local",
            "[llm]\nmax_tokens = 424242\nprovider = \"openai\"\nmodel = \"m\"",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let ended = finish(
            program()
                .arg(service)
                .arg("--config")
                .arg(&file)
                .current_dir(dir.path()),
        );
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{text}: {said}");
        assert!(
            !said.contains("424242") && !said.contains("424_242"),
            "{text}: {said}"
        );
    }
}
