//! Every key works over its whole range; values that would be clamped elsewhere are refused here.

use serde_json::json;

use super::*;

#[test]
fn what_would_be_cut_elsewhere_is_out_of_range() {
    for (path, most) in [
        ("synthesis.timeout_ms", 120_000),
        ("enrichment.timeout_ms", 120_000),
        ("synthesis.max_source_chars", 32_000),
        ("web.stream_buffer", 65_536),
    ] {
        let (_, mut editor) = plain();
        editor.change(&json!({path: most})).unwrap();
        let issues = editor.change(&json!({path: most + 1})).unwrap_err();
        assert_eq!(issues[0].loc[1..].join("."), path);
        assert_eq!(issues[0].ctx, Some(json!({"le": most})), "{path}");
    }
}

#[test]
fn a_model_gets_no_more_time_than_the_actor_that_asks_it() {
    let vars = [
        ("LOCAL_BACKEND", "mem"),
        ("LOCAL_ACTORS_EXTRACTOR_TIMEOUT_MS", "100000"),
    ];
    let error = load(None, &vars, &LocalFlags::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        "configuration: enrichment.timeout_ms: must be from 100 to 75000, is 120000 \
         (at most three quarters of actors.extractor.timeout_ms)"
    );
    let vars = [
        ("LOCAL_BACKEND", "mem"),
        ("LOCAL_ACTORS_EXTRACTOR_TIMEOUT_MS", "100000"),
        ("LOCAL_ENRICHMENT_TIMEOUT_MS", "75000"),
    ];
    let (settings, _) = load(None, &vars, &LocalFlags::default()).unwrap();
    assert_eq!(settings.enrichment.timeout_ms, 75_000);
}

#[test]
fn actors_without_writes_have_no_keys_for_them() {
    let (_, mut editor) = plain();
    for actor in ["rate_limiter", "extractor", "write_semaphore", "enricher"] {
        for key in ["write_gate", "write_timeout_ms"] {
            let path = format!("actors.{actor}.{key}");
            let issues = editor.change(&json!({&path: 10})).unwrap_err();
            assert_eq!(
                (issues[0].kind, issues[0].loc[1..].join(".")),
                ("extra_forbidden", path)
            );
        }
    }
    editor
        .change(&json!({"actors.graph_store.write_gate": 10}))
        .unwrap();
}

#[test]
fn what_resolvers_take_for_an_address_is_no_name() {
    for host in [
        "0",
        "0x0",
        "0.0",
        "127.1",
        "0x7f.0x0.0x0.0x1",
        "localhost.1",
        "1.",
        ".",
    ] {
        let flags = LocalFlags {
            host: Some(host.into()),
            ..LocalFlags::default()
        };
        let error = load(None, &[("LOCAL_WEB_API_KEY", "k")], &flags).unwrap_err();
        assert!(error.to_string().contains("web.host: must be"), "{host}: {error}");
    }
    for host in ["localhost", "a1.example", "1a", "0xg", "127.0.0.1", "::1"] {
        let flags = LocalFlags {
            host: Some(host.into()),
            ..LocalFlags::default()
        };
        load(None, &[], &flags).unwrap();
    }
}
