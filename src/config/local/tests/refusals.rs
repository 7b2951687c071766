//! Wording of refused changes and refused starts, which never quote a secret.

use serde_json::json;

use super::*;

fn refused(change: Value) -> Vec<ConfigIssue> {
    plain().1.change(&change).unwrap_err()
}

#[test]
fn a_number_out_of_its_range_names_the_bound() {
    for (change, kind, ctx) in [
        (json!({"web.max_k": 1001}), "less_than_equal", json!({"le": 1000})),
        (json!({"web.max_k": 0}), "greater_than_equal", json!({"ge": 1})),
        (json!({"web.max_k": -5}), "greater_than_equal", json!({"ge": 1})),
        (
            json!({"retrieval.graph_weight": -0.5}),
            "greater_than_equal",
            json!({"ge": 0.0}),
        ),
        (
            json!({"web.port": 70_000}),
            "less_than_equal",
            json!({"le": 65_535}),
        ),
        (json!({"web.port": -1}), "greater_than_equal", json!({"ge": 0})),
        (
            json!({"retrieval.default_k": 51}),
            "less_than_equal",
            json!({"le": 50}),
        ),
    ] {
        let issues = refused(change.clone());
        assert_eq!((issues.len(), issues[0].kind), (1, kind), "{change}");
        assert_eq!(issues[0].ctx, Some(ctx), "{change}");
        assert!(issues[0].msg.starts_with("Input should be "), "{change}");
    }
    assert_eq!(refused(json!({"web.max_k": 5.5}))[0].kind, "int_from_float");
}

#[test]
fn every_broken_rule_of_a_change_is_reported() {
    let issues =
        refused(json!({"web": {"max_k": 0, "workers": 0}, "telemetry.keep_days": 0, "search.fresh_docs": 1}));
    let mut places: Vec<_> = issues.iter().map(|issue| issue.loc[1..].join(".")).collect();
    places.sort();
    assert_eq!(places, ["telemetry.keep_days", "web.max_k", "web.workers"]);
    let many: serde_json::Map<_, _> = (0..5000).map(|n| (format!("k{n}"), json!(n))).collect();
    assert_eq!(refused(Value::Object(many)).len(), 100);
}

#[test]
fn one_key_given_twice_with_different_values_is_refused() {
    let issues = refused(json!({"retrieval.default_k": 3, "retrieval": {"default_k": 4}}));
    assert_eq!(issues[0].loc, ["body", "retrieval", "default_k"]);
    let same = json!({"retrieval.default_k": 3, "retrieval": {"default_k": 3}});
    assert_eq!(
        plain().1.change(&same).unwrap().1.applied,
        ["retrieval.default_k"]
    );
}

#[test]
fn refusals_quote_neither_secrets_nor_long_inputs() {
    let long = "x".repeat(1000);
    for change in [
        json!({"nope": {"a_password": "hidden-pw", "z": long}}),
        json!({"nope": [{"api_key": "hidden-pw"}, long]}),
        json!({"web": ["hidden-no", {"token": "hidden-pw"}]}),
        json!({"llm.api_key": ["hidden-pw"]}),
        json!({"platform": {"token": {"x": "hidden-pw"}}}),
        json!({"governance.pii.action": long}),
        json!({"web.host": long}),
        json!({"logging.filter": format!("={long}")}),
        json!({"backend": long}),
    ] {
        let text = serde_json::to_string(&refused(change.clone())).unwrap();
        assert!(!text.contains("hidden-pw"), "{text}");
        assert!(!text.contains(&"x".repeat(201)), "{text}");
    }
    for change in [
        json!({"llm.max_tokens": "many"}),
        json!({"llm.max_tokens": 1, "llm.provider": "openai", "llm.model": "m"}),
        json!({"web.api_key": 202401019999_u64}),
        json!({"ssh_Key": "many"}),
    ] {
        assert_eq!(refused(change.clone())[0].input, "***", "{change}");
    }
    let nested = refused(json!({"nope": {"My_Password": 202401019999_u64, "keys": [true], "port": 5}}));
    assert_eq!(
        nested[0].input,
        json!({"My_Password": "***", "keys": ["***"], "port": 5})
    );
}

#[test]
fn a_broken_file_is_refused_without_its_text() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    for (text, want) in [
        ("[web]\napi_key = hidden-key", "line 2"),
        ("[llm]\napi_key = \"hidden-key", "line 2"),
        (
            "[llm]\napi_key = 12_345_678",
            "llm.api_key: must be a text in quotes",
        ),
        ("[llm]\nmax_tokens = \"12345678\"", "llm.max_tokens"),
        (
            "[llm]\nprovider = \"openai\"\nmodel = \"m\"\nmax_tokens = 12345678",
            "llm.max_tokens: must be from 64 to 131072",
        ),
        ("[platform]\ntoken = [\"hidden-key\"]", "platform.token"),
        ("llm_api_key = \"hidden-key\"", "llm_api_key"),
        ("llm_local_backend = \"ollama\"", "llm_local_backend"),
        ("[web]\nport = 70000", "web.port: must be from 0 to 65535"),
        ("[retrieval]\ngraph_weight = nan", "retrieval.graph_weight"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = load(Some(&file), &[], &LocalFlags::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(want), "{text} gave {error}");
        assert!(
            !["hidden-key", "12345678", "12_345_678"]
                .iter()
                .any(|value| error.contains(value)),
            "{error}"
        );
    }
}

#[test]
fn secrets_are_text_whatever_they_look_like() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    let text = "[web]\napi_key = 202401019999\n[llm]\napi_key = true\n[platform]\ntoken = 2024-01-01";
    std::fs::write(&file, text).unwrap();
    let (settings, _) = load(Some(&file), &[], &LocalFlags::default()).unwrap();
    let shown = [
        &settings.web.api_key,
        &settings.llm_api_key,
        &settings.platform.token,
    ];
    assert_eq!(
        shown.map(ExposeSecret::expose_secret),
        ["202401019999", "true", "2024-01-01"]
    );
    let vars = [
        ("LOCAL_WEB_API_KEY", "5"),
        ("LOCAL_LLM_API_KEY", "[1]"),
        ("PLATFORM_TOKEN", "null"),
    ];
    let (settings, _) = load(Some(&file), &vars, &LocalFlags::default()).unwrap();
    let shown = [
        &settings.web.api_key,
        &settings.llm_api_key,
        &settings.platform.token,
    ];
    assert_eq!(shown.map(ExposeSecret::expose_secret), ["5", "[1]", "null"]);
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused_and_not_taken_for_unset() {
    use std::os::unix::ffi::OsStringExt;
    let bytes = std::ffi::OsString::from_vec(vec![b'k', 0xff]);
    let vars = HashMap::from([("LOCAL_WEB_API_KEY".to_owned(), bytes)]);
    let error = LocalSettings::load_with(None, &LocalFlags::default(), &vars)
        .unwrap_err()
        .to_string();
    assert!(error.contains("LOCAL_WEB_API_KEY"), "{error}");
}

#[test]
fn variables_of_blanks_are_unset_and_no_number_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(&file, "[web]\napi_key = \"of the file\"").unwrap();
    let (settings, _) = load(
        Some(&file),
        &[("LOCAL_WEB_API_KEY", "  ")],
        &LocalFlags::default(),
    )
    .unwrap();
    assert_eq!(settings.web.api_key.expose_secret(), "of the file");
    let error = load(
        None,
        &[("LOCAL_RETRIEVAL_GRAPH_WEIGHT", "nan")],
        &LocalFlags::default(),
    )
    .unwrap_err()
    .to_string();
    assert!(error.contains("LOCAL_RETRIEVAL_GRAPH_WEIGHT"), "{error}");
}

#[test]
fn keys_that_nobody_can_send_and_addresses_that_nobody_can_reach_are_refused() {
    for (change, path) in [
        (json!({"web.api_key": " "}), "web.api_key"),
        (json!({"web.api_key": "abc "}), "web.api_key"),
        (json!({"web.api_key": "p\u{e4}ss"}), "web.api_key"),
        (json!({"web.api_key": "a\nb"}), "web.api_key"),
        (json!({"web.host": "0.0.0.0", "web.api_key": " "}), "web.api_key"),
        (json!({"web.admin_bind": "0.0.0.0:9999"}), "web.admin_bind"),
        (json!({"web.admin_hosts": ["a b"]}), "web.admin_hosts"),
        (json!({"web.admin_hosts": ["a", 1]}), "web.admin_hosts"),
        (json!({"web.admin_hosts": "a"}), "web.admin_hosts"),
        (json!({"web.admin_hosts": null}), "web.admin_hosts"),
        (json!({"storage.data_dir": "a\u{0}b"}), "storage.data_dir"),
        (json!({"platform.url": "not a url"}), "platform.url"),
        (json!({"platform.url": "http://user:hunter2@h/"}), "platform.url"),
        (json!({"backend": "ws://root:hunter2@db:8000"}), "backend"),
        (json!({"llm": "hunter2"}), "llm"),
        (json!({"llm": ["hunter2"]}), "llm"),
        (
            json!({"llm.provider": "openai", "llm.model": "m", "llm.base_url": "http://"}),
            "llm.base_url",
        ),
        (
            json!({"embedding.provider": "openai", "embedding.model": "m", "embedding.base_url": "http://[::bad"}),
            "embedding.base_url",
        ),
        (
            json!({"llm.provider": "openai", "llm.model": "m", "llm.base_url": "http://h/v1?api_key=hunter2"}),
            "llm.base_url",
        ),
        (
            json!({"llm.provider": "openai", "llm.model": "m", "llm.base_url": "http://169.254.169.254/v1"}),
            "llm.base_url",
        ),
        (
            json!({"web.max_content_chars": 5000, "web.body_limit": 4096}),
            "web.max_content_chars",
        ),
    ] {
        let issues = plain().1.change(&change).unwrap_err();
        assert_eq!(issues[0].loc[1..].join("."), path, "{change}");
        let said = json!(issues).to_string();
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_lower_limit_lowers_the_shipped_default_and_names_one_that_was_set() {
    let (settings, _) = load(None, &[("LOCAL_WEB_MAX_K", "5")], &LocalFlags::default()).unwrap();
    assert_eq!((settings.web.max_k, settings.default_k()), (5, 5));
    assert_eq!(plain().0.retrieval.default_k, super::super::validate::SHIPPED_K);
    let (settings, _) = plain().1.change(&json!({"web.max_k": 5})).unwrap();
    assert_eq!(settings.default_k(), 5);
    let vars = [("LOCAL_WEB_MAX_K", "5"), ("LOCAL_RETRIEVAL_DEFAULT_K", "6")];
    let error = load(None, &vars, &LocalFlags::default()).unwrap_err().to_string();
    assert!(
        error.contains("retrieval.default_k: must be from 1 to 5"),
        "{error}"
    );
}

#[test]
fn a_refused_variable_tells_the_range_and_an_unknown_section_the_real_ones() {
    for (name, value, said) in [
        (
            "LOCAL_WEB_WRITE_CONCURRENCY",
            "x",
            "must be a whole number from 1 to 1024",
        ),
        ("LOCAL_WEB_PORT", "x", "must be a whole number from 0 to 65535"),
        ("LOCAL_RETRIEVAL_GRAPH_WEIGHT", "x", "must be a number from 0"),
        ("LOCAL_TELEMETRY_ENABLED", "x", "must be true or false"),
    ] {
        let error = load(None, &[(name, value)], &LocalFlags::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(name) && error.contains(said), "{error}");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(&file, "[nope]\n").unwrap();
    let error = load(Some(&file), &[], &LocalFlags::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`nope`") && !error.contains("llm_api_key"),
        "{error}"
    );
    let flags = LocalFlags {
        data_dir: Some(PathBuf::from(
            <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"/tmp/\xff"),
        )),
        ..LocalFlags::default()
    };
    let error = load(None, &[], &flags).unwrap_err().to_string();
    assert!(error.contains("--data-dir"), "{error}");
}
