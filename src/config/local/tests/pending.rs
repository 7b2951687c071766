//! Pending changes over several starts.

use serde_json::json;

use super::*;

/// A data directory on which the program is started repeatedly.
struct DataDir {
    dir: tempfile::TempDir,
    config: Option<&'static str>,
}

impl DataDir {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            config: None,
        }
    }

    /// One start with these variables. The file sets the data directory, so that a change can move it.
    fn start(&self, vars: &[(&str, &str)]) -> Result<(LocalSettings, Editor), ConfigError> {
        let file = self.dir.path().join("c.toml");
        let data = self.dir.path().join("data");
        let head = format!("[storage]\ndata_dir = {:?}\n", data.display().to_string());
        std::fs::write(&file, head + self.config.unwrap_or_default()).unwrap();
        load(Some(&file), vars, &LocalFlags::default())
    }

    fn pending(&self) -> PathBuf {
        self.dir.path().join("data").join(PENDING_FILE)
    }
}

#[test]
fn going_back_to_the_running_value_keeps_what_an_earlier_start_took_over() {
    let place = DataDir::new();
    let (_, mut editor) = place.start(&[]).unwrap();
    editor.change(&json!({"llm.model": "next"})).unwrap();
    let (settings, mut editor) = place.start(&[]).unwrap();
    assert_eq!(settings.llm.model, "next");
    editor.change(&json!({"llm.model": "third"})).unwrap();
    let done = editor.change(&json!({"llm.model": "next"})).unwrap().1;
    assert_eq!(done.applied, ["llm.model"]);
    assert_eq!(place.start(&[]).unwrap().0.llm.model, "next");
    let (_, mut editor) = place.start(&[]).unwrap();
    editor.change(&json!({"llm.model": ""})).unwrap();
    assert_eq!(
        place.start(&[]).unwrap().0.llm.model,
        "",
        "and it can be taken back"
    );
}

#[test]
fn a_moved_data_directory_and_another_backend_can_be_moved_back() {
    let place = DataDir::new();
    let other = place.dir.path().join("elsewhere");
    let (_, mut editor) = place.start(&[]).unwrap();
    editor
        .change(&json!({"storage.data_dir": other, "backend": "mem"}))
        .unwrap();
    let (settings, mut editor) = place.start(&[]).unwrap();
    assert_eq!(
        (settings.storage.data_dir, settings.backend.as_str()),
        (other, "mem")
    );
    editor
        .change(&json!({"backend": "surrealkv", "web.port": 9000}))
        .unwrap();
    let (settings, mut editor) = place.start(&[]).unwrap();
    assert_eq!(
        (settings.backend.as_str(), settings.web.port),
        ("surrealkv", 9000)
    );
    let home = place.dir.path().join("data");
    editor.change(&json!({"storage.data_dir": home})).unwrap();
    let (settings, _) = place.start(&[]).unwrap();
    assert_eq!((settings.storage.data_dir, settings.web.port), (home, 9000));
}

#[test]
fn what_waits_is_judged_together_with_the_environment_and_in_any_order() {
    let place = DataDir::new();
    let vars = [("LOCAL_LLM_MODEL", "of the environment")];
    let (_, mut editor) = place.start(&vars).unwrap();
    let parts = json!({"llm": {"provider": "openai", "max_chunk_chars": 600, "overlap_chars": 100}});
    assert_eq!(editor.change(&parts).unwrap().1.pending_restart.len(), 3);
    let (settings, _) = place.start(&vars).unwrap();
    assert_eq!(settings.llm.provider, LlmProvider::Openai);
    assert_eq!(
        (settings.llm.max_chunk_chars, settings.llm.overlap_chars),
        (600, 100)
    );
    let (settings, _) = place.start(&[]).unwrap();
    assert_eq!(
        settings.llm.provider,
        LlmProvider::None,
        "without its model the provider can't be used, which must not keep the service down"
    );
}

#[test]
fn a_host_that_waits_never_exposes_the_service_and_never_keeps_it_down() {
    let place = DataDir::new();
    let key = [("LOCAL_WEB_API_KEY", "k")];
    let (_, mut editor) = place.start(&key).unwrap();
    editor
        .change(&json!({"web.host": "0.0.0.0", "logging.keep_files": 3}))
        .unwrap();
    assert_eq!(place.start(&key).unwrap().0.web.host, "0.0.0.0");
    let (settings, _) = place.start(&[]).unwrap();
    assert_eq!(
        (settings.web.host.as_str(), settings.logging.keep_files),
        ("127.0.0.1", 3)
    );
}

#[test]
fn the_environment_hides_what_waits_and_does_not_lose_it() {
    let place = DataDir::new();
    let (_, mut editor) = place.start(&[]).unwrap();
    editor.change(&json!({"web.port": 9999})).unwrap();
    let (settings, mut editor) = place.start(&[("LOCAL_WEB_PORT", "1111")]).unwrap();
    assert_eq!(settings.web.port, 1111);
    editor.change(&json!({"web.workers": 3})).unwrap();
    assert_eq!(place.start(&[]).unwrap().0.web.port, 9999);
}

#[test]
fn values_that_would_keep_the_next_start_down_are_refused() {
    let place = DataDir::new();
    let (_, mut editor) = place.start(&[("LOCAL_WEB_API_KEY", "k")]).unwrap();
    for (change, path) in [
        (json!({"logging.filter": "=[,"}), "logging.filter"),
        (json!({"web.host": "no such host!"}), "web.host"),
        (json!({"web.host": ""}), "web.host"),
        (json!({"backend": "ws://127.0.0.1:1"}), "backend"),
    ] {
        let issues = editor.change(&change).unwrap_err();
        assert_eq!(issues[0].loc[1..].join("."), path, "{change}");
    }
    assert!(!place.pending().exists());
    std::fs::create_dir_all(place.pending().parent().unwrap()).unwrap();
    std::fs::write(
        place.pending(),
        r#"{"logging.filter": "=[,", "backend": "ws://x", "web.port": "1"}"#,
    )
    .unwrap();
    let (settings, _) = place.start(&[]).unwrap();
    assert_eq!(
        (settings.logging.filter.as_str(), settings.backend.as_str()),
        ("info", "surrealkv")
    );
}

#[test]
fn an_external_database_needs_both_credentials() {
    let vars = [
        ("LOCAL_BACKEND", "ws://127.0.0.1:1"),
        ("THREAT_MEMORY_STORAGE_USER", "u"),
        ("THREAT_MEMORY_STORAGE_PASSWORD", "p"),
    ];
    assert!(load(None, &vars, &LocalFlags::default()).is_ok());
    let error = load(None, &vars[..2], &LocalFlags::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("THREAT_MEMORY_STORAGE_PASSWORD"), "{error}");
}

#[test]
fn a_left_over_part_of_a_write_neither_hinders_nor_widens_the_next_one() {
    use std::os::unix::fs::PermissionsExt;
    let place = DataDir::new();
    let (_, mut editor) = place.start(&[]).unwrap();
    let part = place.pending().with_extension("part");
    std::fs::create_dir_all(part.parent().unwrap()).unwrap();
    std::fs::write(&part, "half").unwrap();
    editor.change(&json!({"llm.api_key": "hidden"})).unwrap();
    let mode = std::fs::metadata(place.pending()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!part.exists());
    assert_eq!(place.start(&[]).unwrap().0.llm_api_key.expose_secret(), "hidden");
}

#[test]
fn a_change_that_can_not_be_written_is_not_made() {
    let place = DataDir::new();
    let (_, editor) = place.start(&[]).unwrap();
    std::fs::write(
        place.dir.path().join("data"),
        "a file where the directory should be",
    )
    .unwrap();
    let change = json!({"llm.model": "m", "retrieval.default_k": 3});
    let (next, ..) = editor.plan(&change).unwrap();
    assert!(next.save().is_err());
    assert_eq!(editor.redacted_settings()["retrieval"]["default_k"], 10);
}

#[test]
fn two_listeners_that_wait_for_one_address_never_keep_the_service_down() {
    for (host, admin) in [("127.0.0.1", "127.0.0.1:9000"), ("localhost", "0.0.0.0:9000")] {
        let place = DataDir::new();
        let (_, mut editor) = place.start(&[]).unwrap();
        let change = json!({"web.api_key": "k", "web.host": host, "web.port": 9000, "web.admin_bind": admin});
        editor.change(&change).unwrap();
        let (settings, _) = place.start(&[]).unwrap();
        assert_ne!(settings.web.port, settings.web.admin_bind.port(), "{change}");
    }
}

#[test]
fn what_this_machine_can_not_use_never_keeps_the_service_down() {
    let place = DataDir::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let (_, mut editor) = place.start(&[]).unwrap();
    editor
        .change(&json!({
            "storage.data_dir": "/proc/nothing/here", "web.api_key": "k", "web.host": "203.0.113.9",
            "web.admin_bind": taken.to_string(), "llm.model": "m", "warninglists.dir": "/proc/nothing/lists",
        }))
        .unwrap();
    let (settings, _) = place.start(&[]).unwrap();
    let data = place.dir.path().join("data");
    assert_eq!(settings.storage.data_dir, data);
    assert_eq!(
        (settings.web.host.as_str(), settings.llm.model.as_str()),
        ("127.0.0.1", "m")
    );
    assert_ne!(settings.web.admin_bind, taken);
    assert_eq!(settings.warninglists.dir, std::path::PathBuf::new());
    assert_eq!(settings.web.api_key.expose_secret(), "k", "what can be used is");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(data).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn what_the_environment_or_a_flag_sets_is_changed_there() {
    let place = DataDir::new();
    let vars = [("LOCAL_WEB_API_KEY", "k-e-y"), ("LOCAL_LLM_MODEL", "m")];
    let (_, mut editor) = place.start(&vars).unwrap();
    let issues = editor
        .change(&json!({"web.api_key": "new", "web.port": 18_262}))
        .unwrap_err();
    assert_eq!(
        (issues.len(), issues[0].loc.join(".")),
        (1, "body.web.api_key".to_owned())
    );
    assert!(issues[0].msg.contains("LOCAL_WEB_API_KEY"), "{}", issues[0].msg);
    assert_eq!(issues[0].input, "***");
    for same in [json!({"llm.model": "m"}), json!({"web.api_key": "***"})] {
        editor.change(&same).unwrap();
    }
    let flags = LocalFlags {
        port: Some(18_260),
        ..LocalFlags::default()
    };
    let (_, mut editor) = load(None, &[], &flags).unwrap();
    let issues = editor.change(&json!({"web.port": 18_261})).unwrap_err();
    assert!(issues[0].msg.contains("--port"), "{}", issues[0].msg);
}
