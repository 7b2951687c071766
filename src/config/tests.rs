use super::*;

#[test]
fn the_shipped_file_is_valid_and_flags_win() {
    let flags = Flags {
        bind: Some("127.0.0.1:0".into()),
        storage: Some("mem://".into()),
        ..Flags::default()
    };
    let settings = Settings::load(None, &flags).unwrap();
    assert_eq!(settings.server.bind.port(), 0);
    // Avoids the port of a Prometheus on the same machine.
    assert_eq!(settings.server.admin_bind.to_string(), "127.0.0.1:9464");
    assert_eq!(settings.data_dir(), None);
    assert_eq!(settings.tier_limit(Tier::Team), 1000);
}

#[test]
fn a_bad_value_is_named_with_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    for (text, want) in [
        ("[server]\nbind = \"nowhere\"", "server.bind"),
        ("[server]\nworkers = -1", "server.workers"),
        ("[server]\nworkers = 0", "server.workers: must be from 1 to 64"),
        ("[server]\nportt = 1", "portt"),
        ("[storage]\nurl = \"file://x\"", "storage.url: must begin with"),
        (
            "[server]\nbodies_in_flight_mib = 0",
            "server.bodies_in_flight_mib: must be from 1 to 65536, is 0",
        ),
        (
            "[server]\nbodies_in_flight_mib = 127",
            "server.bodies_in_flight_mib: must hold two bodies of server.body_limit",
        ),
        (
            "[server]\ncors_origins = [\"https://app.example.org\", \"*\"]",
            "server.cors_origins: entry 2 must name one origin",
        ),
        (
            "[server]\ncors_origins = [\"https://app.example.org/\"]",
            "server.cors_origins: entry 1 must be an origin such as",
        ),
        (
            "[server]\ncors_origins = [\"https://app.example.org:443\"]",
            "server.cors_origins: entry 1 must be",
        ),
        (
            "[server]\ncors_origins = [\"https://u:hidden@app.example.org\"]",
            "server.cors_origins: entry 1 must be",
        ),
        (
            "[server]\ncors_origins = [\"null\"]",
            "server.cors_origins: entry 1",
        ),
        (
            "[server]\nadmin_hosts = [\"metrics.internal\", \"metrics.internal:9464\"]",
            "server.admin_hosts: entry 2 must be a host name or an address, without a port",
        ),
        (
            "[storage]\nurl = \"ws://owner:hidden@host\"",
            "storage.url: must not hold credentials",
        ),
        (
            "[storage]\nconnections = 0",
            "storage.connections: must be from 1 to 64",
        ),
        (
            "[storage]\ntimeout_ms = 99",
            "storage.timeout_ms: must be from 100 to 600000",
        ),
        (
            "[actors.graph_store]\ngate = 0",
            "actors.graph_store.gate: must be from 1",
        ),
        ("[limits.tiers]\npilot = 0", "limits.tiers.pilot: must be from 1"),
        ("[llm]\nprovider = \"openai\"", "llm.model: is required"),
        (
            "[llm]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"ftp://x\"",
            "llm.base_url: must be a URL that begins with",
        ),
        (
            "[llm]\nprovider = \"openai\"\nmodel = \"m\"\noverlap_chars = 7000",
            "llm.overlap_chars: must be from 0 to 4000",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = Settings::load(Some(&file), &Flags::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(want), "{text} gave {error}");
        assert!(!error.contains("hidden"), "{error}");
    }
}

#[test]
fn the_administrator_of_the_first_start_is_checked_at_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    let new = format!("surrealkv://{}/new", dir.path().display());
    let used = format!("surrealkv://{}", dir.path().display());
    for (text, want) in [
        (
            "admin_password = \"short\"",
            "THREAT_MEMORY_ADMIN_PASSWORD: must have at least 12 characters",
        ),
        (
            "admin_password = \"administrator1\"",
            "THREAT_MEMORY_ADMIN_PASSWORD: must not be a common password",
        ),
        (
            "admin_email = \"nobody\"",
            "THREAT_MEMORY_ADMIN_EMAIL: must be an e-mail address",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let load = |storage: &str| {
            let flags = Flags {
                storage: Some(storage.to_owned()),
                ..Flags::default()
            };
            Settings::load(Some(&file), &flags)
        };
        for storage in ["mem://", &new] {
            let error = load(storage).unwrap_err().to_string();
            assert!(error.contains(want), "{text} in {storage} gave {error}");
        }
        assert!(load(&used).is_ok(), "{text}");
    }
}

#[test]
fn a_secret_is_text_in_a_file_too_and_no_message_shows_it() {
    use secrecy::ExposeSecret;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(&file, "admin_password = 202401019999").unwrap();
    let settings = Settings::load(Some(&file), &Flags::default()).unwrap();
    assert_eq!(settings.admin_password.unwrap().expose_secret(), "202401019999");
    for (text, want) in [
        ("admin_password = [\"hidden-1\"]", "admin_password: must be "),
        ("jwt_secret = { x = \"hidden-1\" }", "jwt_secret: must be "),
        ("llm_api_key = 1_111_111", "llm_api_key: must be a text in quotes"),
        ("jwt_secret = hidden-1", "line 1"),
        ("jwt_secret = \"hidden-1\"", "must have at least 32 bytes"),
        ("llm.max_tokens = \"hidden-1\"", "llm.max_tokens: must be "),
        (
            "llm = { provider = \"openai\", model = \"m\", max_tokens = 63 }",
            "llm.max_tokens: must be from 64",
        ),
        ("[a.tokens]\nb = \"hidden-1\"", "unknown field"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = Settings::load(Some(&file), &Flags::default()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(want), "{text} gave {error}");
        let shown = ["hidden-1", "1111111", "1_111_111", "is 63"];
        assert!(!shown.iter().any(|value| error.contains(value)), "{error}");
    }
}

#[test]
fn the_engine_lives_inside_the_data_directory() {
    let flags = Flags {
        bind: None,
        storage: Some("surrealkv://some/where?sync=every".into()),
        ..Flags::default()
    };
    let settings = Settings::load(None, &flags).unwrap();
    assert_eq!(settings.data_dir(), Some(PathBuf::from("some/where")));
    assert_eq!(settings.engine_url(), "surrealkv://some/where/store?sync=every");
}
