use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use uuid::Uuid;

use super::*;
use crate::config::{Flags, Settings};

fn settings() -> NotifierSettings {
    NotifierSettings {
        mode: NotifierMode::Plain,
        host: "localhost".into(),
        port: 25,
        from: "Threat Memory <memory@example.org>".into(),
        to: vec!["Operator <ops@example.org>".into(), "second@example.org".into()],
        retry_seconds: 30,
        give_up_days: 7,
        timeout_ms: 1_000,
        ca_file: "".into(),
    }
}

fn compose(about: &str, reply_to: &str, text: &str) -> String {
    let mailer = Mailer::new(&settings(), None).unwrap().unwrap();
    let letter = OperatorEmail {
        id: Uuid::nil(),
        date: DateTime::UNIX_EPOCH,
        subject: "Pilot request:",
        about: about.into(),
        reply_to: reply_to.into(),
        text: text.into(),
    };
    let message = letter.compose(&mailer.from, &mailer.to).unwrap();
    String::from_utf8(message).unwrap()
}

#[test]
fn a_letter_is_a_message_in_ascii_with_a_stable_id() {
    let message = compose("Bank", "a@example.com", "Grüße\n.\nend\n");
    let (head, body) = message.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        head.lines().collect::<Vec<_>>(),
        [
            "From: \"Threat Memory\" <memory@example.org>",
            "Date: Thu, 01 Jan 1970 00:00:00 +0000",
            "Message-ID: <00000000-0000-0000-0000-000000000000@example.org>",
            "Subject: Pilot request:",
            " =?utf-8?b?QmFuaw==?=",
            "Auto-Submitted: auto-generated",
            "MIME-Version: 1.0",
            "Content-Type: text/plain; charset=utf-8",
            "To: Operator <ops@example.org>, second@example.org",
            "Reply-To: a@example.com",
            "Content-Transfer-Encoding: base64",
        ]
    );
    let text = STANDARD.decode(body.replace("\r\n", "")).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap().replace("\r\n", "\n"),
        "Grüße\n.\nend\n"
    );
    assert_eq!(message, compose("Bank", "a@example.com", "Grüße\n.\nend\n"));
}

#[test]
fn no_text_from_outside_can_begin_a_header_or_a_line() {
    let evil = [
        "a\r\nBcc: evil@example.net",
        "a\nBcc: evil@example.net\n\nbody",
        "a\u{2028}Bcc: evil@example.net\u{85}",
        "=?utf-8?q?a=0D=0ABcc:_evil@example.net?=",
        "\u{202e}gro.elpmaxe\u{200f}",
        "\r\n.\r\nMAIL FROM:<evil@example.net>",
        &"x".repeat(2_000),
        &"ü€𝄞".repeat(300),
    ];
    for text in evil {
        let message = compose(text, text, text);
        assert!(message.is_ascii(), "{message}");
        let (head, body) = message.split_once("\r\n\r\n").unwrap();
        assert!(!message.to_lowercase().contains("evil"), "{message}");
        let names = head.split("\r\n").filter(|line| !line.starts_with(' '));
        assert_eq!(names.count(), 9, "{message}");
        assert!(head.split("\r\n").all(|line| line.len() <= 76), "{message}");
        assert!(!head.replace("\r\n", "").contains(['\r', '\n']), "{message}");
        assert!(!body.contains('.'), "{message}");
        let subject = head.split("\r\nSubject: ").nth(1).unwrap();
        let words = subject
            .split("\r\n")
            .skip(1)
            .take_while(|line| line.starts_with(" =?utf-8?b?"));
        let decode = |word: &str| STANDARD.decode(&word[11..word.len() - 2]).unwrap();
        // Each word alone is whole characters.
        let decoded: String = words
            .map(|word| String::from_utf8(decode(word)).unwrap())
            .collect();
        assert_eq!(decoded, text);
    }
}

#[test]
fn an_address_that_needs_more_than_ascii_is_left_out_of_the_header() {
    for address in ["ü@example.com", "a@bücher.example", "a..b@c", "a@b, c@d", ""] {
        let message = compose("x", address, "x");
        assert!(!message.contains("Reply-To"), "{message}");
    }
}

#[test]
fn plain_connections_stay_on_this_machine() {
    for (host, local) in [
        ("localhost", true),
        ("127.0.0.2", true),
        ("::1", true),
        ("localhost.example.org", false),
        ("192.0.2.1", false),
        ("::ffff:192.0.2.1", false),
        ("0.0.0.0", false),
    ] {
        let made = Mailer::new(
            &NotifierSettings {
                host: host.into(),
                ..settings()
            },
            None,
        );
        assert_eq!(made.is_ok(), local, "{host}");
    }
}

/// A mailer with the settings of a configuration file.
fn load(text: &str) -> Result<Option<Mailer>, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(&file, text).unwrap();
    let settings = Settings::load(Some(&file), &Flags::default()).map_err(|error| error.to_string())?;
    Mailer::new(&settings.notifier, None).map_err(|error| format!("notifier.{error}"))
}

#[test]
fn nothing_is_mailed_by_default() {
    assert!(load("").unwrap().is_none());
}

#[test]
fn a_bad_setting_is_named_with_its_key_and_rule() {
    let dir = tempfile::tempdir().unwrap();
    let no_pem = dir.path().join("no.pem");
    std::fs::write(&no_pem, "nothing").unwrap();
    let missing = dir.path().join("missing.pem");
    let valid = "mode = \"plain\"\nhost = \"127.0.0.1\"\nfrom = \"a@example.org\"\nto = [\"b@example.org\"]";
    assert!(load(&format!("[notifier]\n{valid}")).unwrap().is_some());
    let ca = |path: &std::path::Path| format!("mode = \"tls\"\nca_file = \"{}\"", path.display());
    for (change, want) in [
        ("mode = \"ssl\"", "notifier.mode: "),
        ("host = \"\"", "notifier.host: is required"),
        (
            "host = \"smtp://mail.example.org\"",
            "notifier.host: must be a host name or an IP address",
        ),
        (
            "host = \"mail.example.org:25\"",
            "notifier.host: must be a host name or an IP address",
        ),
        (
            "host = \"mail.example.org\"",
            "notifier.host: must be localhost or a loopback address with mode \"plain\"",
        ),
        (
            "host = \"192.0.2.1\"",
            "notifier.host: must be localhost or a loopback address",
        ),
        ("port = 0", "notifier.port: must be from 1 to 65535"),
        ("port = 65536", "notifier.port: "),
        ("from = \"nobody\"", "notifier.from: must be an e-mail address"),
        (
            "from = \"ü@example.org\"",
            "notifier.from: must be an e-mail address",
        ),
        (
            "from = \"A <a@example.org>\\r\\nBcc: <c@example.org>\"",
            "notifier.from: must be an e-mail address",
        ),
        ("to = []", "notifier.to: must have 1 to 20 addresses"),
        (
            "to = [\"b@example.org\", \"c\"]",
            "notifier.to: entry 2 must be an e-mail address",
        ),
        (
            "retry_seconds = 0",
            "notifier.retry_seconds: must be from 1 to 3600",
        ),
        ("give_up_days = 0", "notifier.give_up_days: must be from 1 to 30"),
        (
            "timeout_ms = 99",
            "notifier.timeout_ms: must be from 100 to 600000",
        ),
        ("password = \"hunter2\"", "password"),
        (&ca(&missing), "notifier.ca_file: can't be read: "),
        (&ca(&no_pem), "notifier.ca_file: must hold certificates in PEM"),
    ] {
        let keys: Vec<&str> = change.lines().filter_map(|line| line.split(' ').next()).collect();
        let kept = valid
            .lines()
            .filter(|line| !keys.iter().any(|key| line.starts_with(key)));
        let text = format!("[notifier]\n{}\n{change}", kept.collect::<Vec<_>>().join("\n"));
        let error = load(&text).err().unwrap_or_default();
        assert!(error.contains(want), "{change} gave {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
