mod pending;
mod ranges;
mod refusals;

use std::collections::HashMap;
use std::ffi::OsString;

use secrecy::ExposeSecret;

use super::pending::FILE as PENDING_FILE;
use super::*;
use crate::config::LlmProvider;

fn load(
    file: Option<&Path>,
    vars: &[(&str, &str)],
    flags: &LocalFlags,
) -> Result<(LocalSettings, Editor), ConfigError> {
    let vars: HashMap<String, OsString> = vars
        .iter()
        .map(|(k, v)| ((*k).to_owned(), OsString::from(v)))
        .collect();
    LocalSettings::load_with(file, flags, &vars)
}

fn plain() -> (LocalSettings, Editor) {
    load(None, &[("LOCAL_BACKEND", "mem")], &LocalFlags::default()).unwrap()
}

#[test]
fn every_source_beats_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(
        &file,
        "[web]\nport = 1000\nmax_k = 40\n[llm]\nmodel = \"of the file\"",
    )
    .unwrap();
    let (settings, _) = load(Some(&file), &[], &LocalFlags::default()).unwrap();
    assert_eq!((settings.web.port, settings.web.max_k), (1000, 40));
    assert_eq!(settings.web.rate_limit_per_minute, 60);
    assert_eq!(settings.web.admin_bind.to_string(), "127.0.0.1:9465");
    let vars = [
        ("LOCAL_WEB_PORT", "2000"),
        ("LOCAL_LLM_MODEL", ""),
        ("LOCAL_WEB_API_KEY", "k"),
    ];
    let (settings, _) = load(Some(&file), &vars, &LocalFlags::default()).unwrap();
    assert_eq!(settings.web.port, 2000);
    assert_eq!(settings.llm.model, "of the file", "an empty variable is unset");
    assert_eq!(settings.web.api_key.expose_secret(), "k");
    let flags = LocalFlags {
        port: Some(3000),
        ..LocalFlags::default()
    };
    assert_eq!(load(Some(&file), &vars, &flags).unwrap().0.web.port, 3000);
}

#[test]
fn every_variable_of_the_contract_sets_its_key() {
    let vars = [
        ("LOCAL_WEB_API_KEY", "key"),
        ("LOCAL_WEB_RATE_LIMIT_PER_MINUTE", "7"),
        ("LOCAL_WEB_WRITE_CONCURRENCY", "3"),
        ("LOCAL_WEB_MAX_QUERY_CHARS", "11"),
        ("LOCAL_WEB_MAX_CONTENT_CHARS", "12"),
        ("LOCAL_WEB_MAX_K", "13"),
        ("LOCAL_WEB_MAX_SYNC_LIMIT", "14"),
        ("PLATFORM_URL", "https://p.example"),
        ("PLATFORM_TOKEN", "secret"),
        ("PLATFORM_SYNC_INTERVAL", "60"),
        ("LOCAL_GOVERNANCE_PII_ENABLED", "yes"),
        ("LOCAL_RETRIEVAL_GRAPH_WEIGHT", "1"),
        ("LOCAL_WEB_ADMIN_HOSTS", "[\"memory.internal\", \"2001:db8::1\"]"),
    ];
    let (settings, _) = load(None, &vars, &LocalFlags::default()).unwrap();
    let web = &settings.web;
    assert_eq!(web.admin_hosts, ["memory.internal", "2001:db8::1"]);
    assert_eq!((web.rate_limit_per_minute, web.write_concurrency), (7, 3));
    assert_eq!((web.max_query_chars, web.max_content_chars), (11, 12));
    assert_eq!((web.max_k, web.max_sync_limit), (13, 14));
    assert_eq!(
        (settings.platform.url.as_str(), settings.platform.sync_interval),
        ("https://p.example", 60)
    );
    assert_eq!(settings.platform.token.expose_secret(), "secret");
    assert!(settings.governance.pii.enabled);
    assert_eq!(settings.retrieval.graph_weight, 1.0);
}

#[test]
fn every_key_has_a_variable_of_its_own() {
    let (defaults, _) = trees(None).unwrap();
    let paths = tree::leaves(&defaults);
    let mut names = std::collections::HashSet::new();
    for path in &paths {
        let name = environment::name_of(path);
        let default = tree::get(&defaults, path).unwrap();
        let text = default
            .as_str()
            .map_or_else(|| default.to_string(), str::to_owned);
        let text = if text.is_empty() { "x".to_owned() } else { text };
        let vars = HashMap::from([(name.clone(), OsString::from(&text))]);
        let set = environment::read(&defaults, &vars).unwrap();
        assert_eq!(set.len(), 1, "{name}");
        assert_eq!(&set[0].path, path);
        assert!(default.as_str() == Some("") || &set[0].value == default, "{name}");
        assert!(names.insert(name), "{path} shares its variable");
    }
    let vars = [
        "LOCAL_WEB_PORTT",
        "LOCAL_WEB_PORT",
        "LOCAL_EMPTY",
        "PLATFORM_URL",
        "HOME",
        "LOCAL_A",
    ];
    let vars = vars.map(|name| {
        (
            name.to_owned(),
            OsString::from(if name == "LOCAL_EMPTY" { "" } else { "1" }),
        )
    });
    assert_eq!(
        environment::unknown(&defaults, &HashMap::from(vars)),
        ["LOCAL_A", "LOCAL_WEB_PORTT"]
    );
}

#[test]
fn bad_values_are_named_and_secrets_are_not_quoted() {
    for (vars, want) in [
        (
            [("LOCAL_WEB_MAX_K", "many")],
            "LOCAL_WEB_MAX_K (web.max_k): must be a whole number",
        ),
        ([("LOCAL_WEB_MAX_K", "0")], "web.max_k: must be from 1 to 1000"),
        (
            [("LOCAL_TELEMETRY_ENABLED", "maybe")],
            "LOCAL_TELEMETRY_ENABLED (telemetry.enabled): must be true or false",
        ),
        ([("LOCAL_BACKEND", "sqlite")], "backend: must be surrealkv"),
        (
            [("LOCAL_GOVERNANCE_PII_ACTION", "shred")],
            "governance.pii.action",
        ),
        ([("LOCAL_WEB_ADMIN_BIND", "nowhere")], "web.admin_bind"),
        (
            [("LOCAL_WEB_ADMIN_HOSTS", "memory.internal")],
            "LOCAL_WEB_ADMIN_HOSTS (web.admin_hosts): must be a list of texts",
        ),
        (
            [("LOCAL_WEB_ADMIN_HOSTS", "[1]")],
            "LOCAL_WEB_ADMIN_HOSTS (web.admin_hosts): must be a list of texts",
        ),
        (
            [("LOCAL_WEB_ADMIN_HOSTS", "[\"a.example\", \"b.example:9465\"]")],
            "web.admin_hosts: entry 2 must be a host name or an address, without a port",
        ),
    ] {
        let error = load(None, &vars, &LocalFlags::default()).unwrap_err().to_string();
        assert!(error.contains(want), "{vars:?} gave {error}");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(&file, "[platform]\ntoken = [123456]").unwrap();
    let error = load(Some(&file), &[], &LocalFlags::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("platform.token") && !error.contains("123456"),
        "{error}"
    );
    std::fs::write(&file, "[web]\nportt = 1").unwrap();
    let error = load(Some(&file), &[], &LocalFlags::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("portt"), "{error}");
}

#[test]
fn every_address_at_once_needs_a_key_and_others_do_not() {
    for (host, fine) in [
        ("127.0.0.1", true),
        ("127.8.8.8", true),
        ("::1", true),
        ("::ffff:127.0.0.1", true),
        ("localhost", true),
        ("0.0.0.0", false),
        ("::", false),
        ("::ffff:0.0.0.0", false),
        ("0:0:0:0:0:0:0:0", false),
        ("192.168.1.2", true),
        ("127.0.0.9", true),
        ("::ffff:10.0.0.1", true),
        ("example.com", true),
    ] {
        let flags = LocalFlags {
            host: Some(host.into()),
            ..LocalFlags::default()
        };
        let outcome = load(None, &[], &flags);
        assert_eq!(outcome.is_ok(), fine, "{host}");
        if let Err(error) = outcome {
            assert!(
                error
                    .to_string()
                    .contains("Set LOCAL_WEB_API_KEY before exposing the web API")
            );
        }
        assert!(load(None, &[("LOCAL_WEB_API_KEY", "k")], &flags).is_ok());
    }
}

#[test]
fn changes_may_be_nested_or_dotted_and_say_when_they_take_effect() {
    let (_, mut editor) = plain();
    let change = json!({"retrieval": {"default_k": 5}, "web.max_k": 20, "llm": {"model": "m"}, "logging.filter": "info"});
    let (settings, done) = editor.change(&change).unwrap();
    assert_eq!(
        done.applied,
        ["logging.filter", "retrieval.default_k", "web.max_k"]
    );
    assert_eq!(done.pending_restart, ["llm.model"]);
    assert_eq!((settings.retrieval.default_k, settings.web.max_k), (5, 20));
    assert_eq!(settings.llm.model, "");
    let shown = editor.redacted_settings();
    assert_eq!(shown["retrieval"]["default_k"], 5);
    assert_eq!(shown["llm"]["model"], "", "what waits is not shown as running");
    assert_eq!(editor.change(&json!({})).unwrap().1, ChangeOutcome::default());
    let back = editor.change(&json!({"llm.model": ""})).unwrap().1;
    assert_eq!(
        (back.applied, back.pending_restart.len()),
        (vec!["llm.model".to_owned()], 0)
    );
}

#[test]
fn one_bad_value_and_nothing_is_applied() {
    let (_, mut editor) = plain();
    let before = editor.redacted_settings();
    for (change, kind, loc) in [
        (json!({"nope": {"a": 1}}), "extra_forbidden", "nope"),
        (json!({"nope": 1}), "extra_forbidden", "nope"),
        (
            json!({"llm": {"extra": {"token": "t"}}}),
            "extra_forbidden",
            "llm.extra",
        ),
        (json!({"llm": "str"}), "dict_type", "llm"),
        (json!({"web.max_k": "5"}), "int_type", "web.max_k"),
        (json!({"web.max_k": 0}), "greater_than_equal", "web.max_k"),
        (
            json!({"telemetry": {"enabled": 1}}),
            "bool_type",
            "telemetry.enabled",
        ),
        (json!({"llm.model": null}), "string_type", "llm.model"),
        (json!({"llm.provider": "openai"}), "value_error", "llm.model"),
        (
            json!({"retrieval.graph_weight": "x"}),
            "float_type",
            "retrieval.graph_weight",
        ),
        (json!({"web.host": "0.0.0.0"}), "value_error", "web.host"),
        (json!([1]), "model_attributes_type", ""),
    ] {
        let mut whole = change.clone();
        if let Some(map) = whole.as_object_mut() {
            map.insert("retrieval.default_k".into(), json!(3));
        }
        let issues = editor.change(&whole).unwrap_err();
        assert_eq!(issues[0].kind, kind, "{change}");
        assert_eq!(issues[0].loc[1..].join("."), loc, "{change}");
        assert_eq!(editor.redacted_settings(), before, "{change}");
    }
    let issues = editor
        .change(&json!({"a": 1, "b": 2, "web.max_k": true}))
        .unwrap_err();
    assert_eq!(issues.len(), 3);
    let long = editor.change(&json!({"nope": "x".repeat(1000)})).unwrap_err();
    assert!(long[0].input.as_str().unwrap().chars().count() <= 201);
}

#[test]
fn secrets_are_hidden_at_every_depth_and_three_stars_leave_them_alone() {
    let vars = [
        ("LOCAL_BACKEND", "mem"),
        ("PLATFORM_TOKEN", "hidden-one"),
        ("LOCAL_LLM_API_KEY", "hidden-two"),
    ];
    let (settings, mut editor) = load(None, &vars, &LocalFlags::default()).unwrap();
    assert!(!format!("{settings:?}").contains("hidden-"));
    let shown = editor.redacted_settings();
    assert_eq!(
        (&shown["platform"]["token"], &shown["llm"]["api_key"]),
        (&json!("***"), &json!("***"))
    );
    assert_eq!(shown["web"]["api_key"], "", "none is set");
    assert_eq!(shown["llm"]["max_tokens"], 4096);
    assert!(!shown.to_string().contains("hidden-"));
    let (settings, done) = editor.change(&json!({"platform.token": "***"})).unwrap();
    assert_eq!(done, ChangeOutcome::default());
    assert_eq!(settings.platform.token.expose_secret(), "hidden-one");
    let (settings, done) = editor.change(&json!({"platform": {"token": "new"}})).unwrap();
    assert_eq!(done.applied, ["platform.token"]);
    assert_eq!(settings.platform.token.expose_secret(), "new");
    let issues = editor
        .change(&json!({"llm": {"api_key": {"password": "oops"}}}))
        .unwrap_err();
    assert!(!format!("{issues:?}").contains("oops"));
    let deep = tree::redact_secrets(&json!({"a": [{"PassWord": "p", "b": {"my_secret_thing": ["s"]}}]}));
    assert_eq!(
        deep,
        json!({"a": [{"PassWord": "***", "b": {"my_secret_thing": ["***"]}}]})
    );
}

#[test]
fn what_waits_takes_effect_at_the_next_start_below_environment_and_flags() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let flags = LocalFlags {
        data_dir: Some(dir.path().to_owned()),
        ..LocalFlags::default()
    };
    let (_, mut editor) = load(None, &[], &flags).unwrap();
    editor
        .change(&json!({"llm.model": "next", "web.port": 9999, "retrieval.default_k": 7}))
        .unwrap();
    let file = dir.path().join(PENDING_FILE);
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let (settings, mut editor) = load(None, &[], &flags).unwrap();
    assert_eq!((settings.llm.model.as_str(), settings.web.port), ("next", 9999));
    assert_eq!(
        settings.retrieval.default_k, 10,
        "what took effect at once was in memory only"
    );
    assert_eq!(
        load(None, &[("LOCAL_WEB_PORT", "1")], &flags).unwrap().0.web.port,
        1
    );
    editor.change(&json!({"llm.model": "third"})).unwrap();
    let (settings, _) = load(None, &[], &flags).unwrap();
    assert_eq!((settings.llm.model.as_str(), settings.web.port), ("third", 9999));
    std::fs::write(&file, r#"{"web.workers": 0, "gone.key": 1, "web.port": 8888}"#).unwrap();
    assert_eq!(
        load(None, &[], &flags).unwrap().0.web.port,
        8888,
        "a value that no longer fits is left out"
    );
    std::fs::write(&file, "not json").unwrap();
    assert_eq!(load(None, &[], &flags).unwrap().0.web.port, 8088);
}

/// Every key that takes effect at once. A new key belongs either here or in the restart-required set.
const LIVE: [&str; 27] = [
    "enrichment.max_queue",
    "evolution.near_duplicate_cosine",
    "evolution.near_duplicate_overlap",
    "governance.enabled",
    "governance.pii.action",
    "governance.pii.enabled",
    "platform.sync_interval",
    "platform.token",
    "platform.url",
    "retrieval.default_k",
    "retrieval.graph_weight",
    "retrieval.recency_half_life_days",
    "retrieval.recency_weight",
    "synthesis.max_source_chars",
    "synthesis.timeout_ms",
    "telemetry.enabled",
    "telemetry.keep_days",
    "telemetry.max_file_mib",
    "telemetry.record_queries",
    "web.heartbeat_seconds",
    "web.max_content_chars",
    "web.max_k",
    "web.max_query_chars",
    "web.max_streams",
    "web.max_sync_limit",
    "web.rate_limit_per_minute",
    "web.write_concurrency",
];

#[test]
fn every_key_is_either_live_or_needs_a_restart() {
    let (_, editor) = plain();
    let restart = editor.restart_required();
    let mut all: Vec<String> = LIVE.iter().map(|path| (*path).to_owned()).collect();
    all.extend(restart.iter().cloned());
    all.sort_unstable();
    assert_eq!(all, tree::leaves(&editor.defaults));
    let before = plain().0;
    // Set by a variable here, which overrides a change.
    let changeable = |path: &String| path != "backend";
    for path in tree::leaves(&editor.defaults).into_iter().filter(changeable) {
        let value = other_than(&path, tree::get(&editor.running, &path).unwrap());
        let (_, mut editor) = plain();
        let mut change = json!({&path: value});
        // A provider requires the name of its model.
        let model = path
            .strip_suffix(".provider")
            .map(|section| format!("{section}.model"));
        if let Some(model) = &model {
            change[model] = json!("m");
        }
        let (settings, mut done) = editor
            .change(&change)
            .unwrap_or_else(|issues| panic!("{path}: {issues:?}"));
        done.pending_restart
            .retain(|waiting| Some(waiting) != model.as_ref());
        let moved = format!("{settings:?}") != format!("{before:?}");
        if LIVE.contains(&path.as_str()) {
            assert_eq!((done.applied, done.pending_restart), (vec![path.clone()], vec![]));
            // Secrets are hidden, so their change is not visible.
            assert!(
                moved || tree::is_secret(&path),
                "{path} has a new value in effect"
            );
        } else {
            assert_eq!((done.applied, done.pending_restart), (vec![], vec![path.clone()]));
            assert!(!moved, "{path} keeps its value until the restart");
        }
    }
    let (_, mut editor) = plain();
    let (settings, _) = editor.change(&json!({"platform.token": "another"})).unwrap();
    assert_eq!(settings.platform.token.expose_secret(), "another");
}

/// A different valid value for the key.
fn other_than(path: &str, value: &Value) -> Value {
    match value {
        Value::Bool(truth) => json!(!truth),
        Value::Number(number) if number.is_f64() => json!(number.as_f64().unwrap() * 0.99),
        // Already at their maximum.
        Value::Number(number) if ["enrichment.timeout_ms", "logging.traces_percent"].contains(&path) => {
            json!(number.as_u64().unwrap() - 1)
        }
        Value::Number(number) => json!(number.as_u64().unwrap() + 1),
        Value::String(_) if path == "governance.pii.action" => json!("redact"),
        Value::String(_) if path.ends_with(".provider") => json!("openai"),
        Value::String(_) if path == "web.admin_bind" => json!("127.0.0.1:9"),
        Value::String(_) if path == "logging.filter" => json!("debug"),
        Value::String(_) if path.ends_with("url") => json!("http://other.example"),
        Value::String(_) => json!("other"),
        Value::Array(_) => json!(["other.example"]),
        Value::Null | Value::Object(_) => panic!("{path}"),
    }
}

#[test]
fn the_restart_required_set_is_the_contract_s() {
    let (_, editor) = plain();
    let paths = editor.restart_required();
    for path in [
        "backend",
        "embedding.provider",
        "llm.provider",
        "llm.model",
        "storage.data_dir",
        "logging.filter",
        "logging.file",
    ] {
        assert!(paths.iter().any(|known| known == path), "{path}");
    }
    assert!(
        !paths
            .iter()
            .any(|path| path == "retrieval.default_k" || path == "web.max_k")
    );
    assert!(paths.is_sorted());
}

impl Editor {
    /// Applies a change as the actor that owns the settings does.
    fn change(&mut self, changes: &Value) -> Result<(LocalSettings, ChangeOutcome), Vec<ConfigIssue>> {
        let (next, settings, done) = self.plan(changes)?;
        if !next.waits_as(self) {
            next.save().unwrap();
        }
        *self = next;
        Ok((settings, done))
    }
}
