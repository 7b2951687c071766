//! What the operator's mail server receives.

use serde_json::json;

use super::sink::{Act, Security, Sink};
use super::{OPERATOR, arrived, mailing, spawn};
use crate::helpers::{TestApp, run, settings};

#[test]
fn the_operator_is_told_once_and_can_answer_the_applicant() {
    run(async {
        let sink = Sink::start(Security::Never).await;
        let mut settings = mailing(settings("mem://"), &sink, Security::Never);
        settings.notifier.retry_seconds = 3_600;
        let app = TestApp::with(settings).await;
        // The outbox was looked at when the service started, and without a word from the intake is looked at rarely.
        let begun = std::time::Instant::now();
        app.anonymous()
            .applies(json!({"cti_stack": "MISP\nOpenCTI"}))
            .await;
        let mail = arrived(&sink, 1).await.remove(0);
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
        app.admin.all_sent(1).await;
        let request = app.admin.pilot_requests().await.remove(0);
        let id = request["id"].as_str().unwrap();
        assert_eq!(mail.from, "MAIL FROM:<memory@example.org>");
        assert_eq!(mail.to, [format!("RCPT TO:<{OPERATOR}>")]);
        assert_eq!(mail.signed_in, None);
        let header = |name: &str| mail.header(name).unwrap();
        assert_eq!(header("From"), "\"Threat Memory\" <memory@example.org>");
        assert_eq!(header("To"), OPERATOR);
        assert_eq!(header("Reply-To"), "grace@example.com");
        assert_eq!(header("Message-ID"), format!("<{id}@example.org>"));
        assert_eq!(header("Content-Type"), "text/plain; charset=utf-8");
        assert_eq!(mail.subject(), "Pilot request: Example Bank");
        let text = mail.text();
        for part in [
            "Grace Hopper",
            "grace@example.com",
            "Example Bank",
            "threat-intel-lead",
            "> MISP\r\n> OpenCTI",
            id,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        app.stop().await;
        assert_eq!(sink.received().len(), 1);
    });
}

#[test]
fn one_refused_recipient_does_not_keep_it_from_the_others() {
    run(async {
        let sink = Sink::start(Security::Never).await;
        sink.behave(|step| match step.line.contains("<gone@") {
            true => Act::Say("550 5.1.1 no such user".into()),
            false => Act::Usual,
        });
        let mut settings = mailing(settings("mem://"), &sink, Security::Never);
        settings.notifier.to = vec!["gone@example.org".into(), OPERATOR.into()];
        let app = TestApp::with(settings).await;
        app.anonymous().applies(json!({})).await;
        app.admin.all_sent(1).await;
        assert_eq!(arrived(&sink, 1).await[0].to, [format!("RCPT TO:<{OPERATOR}>")]);
        app.stop().await;
    });
}

#[test]
fn nothing_an_applicant_writes_becomes_a_header_a_recipient_or_a_command() {
    run(async {
        let sink = Sink::start(Security::Never).await;
        let app = spawn(&sink).await;
        let texts = [
            "=?utf-8?q?x=0D=0ABcc:_evil@example.net?=",
            "=?utf-8?b?DQpCY2M6IGV2aWxAZXhhbXBsZS5uZXQ=?=",
            "\u{200f}ten.elpmaxe@live\u{200f}",
            "<evil@example.net>, \"evil\" <evil@example.net>",
            "evil@example.net",
            ".",
            "%0d%0aBcc: evil@example.net",
            &"e".repeat(200),
            &"𝄞".repeat(200),
        ];
        let stacks = [
            "\r\n.\r\nMAIL FROM:<evil@example.net>\r\nRCPT TO:<evil@example.net>\r\nDATA\r\nevil",
            "a\n.\nQUIT",
            "a\r.\rQUIT",
            "\n..\n.",
            "Bcc: evil@example.net\n\nevil",
            "a\u{b}Bcc: evil@example.net\u{c}\u{85}.",
            &"e".repeat(500),
            "\u{1b}[2Jevil",
            "=?utf-8?q?x=0D=0ABcc:_evil@example.net?=",
        ];
        for (at, (text, stack)) in texts.iter().zip(stacks).enumerate() {
            app.anonymous()
                .applies(json!({"name": text, "org": text, "cti_stack": stack}))
                .await;
            let mail = arrived(&sink, at + 1).await.remove(at);
            assert_eq!(mail.to, [format!("RCPT TO:<{OPERATOR}>")]);
            assert!(mail.wire.is_ascii(), "{}", mail.wire);
            assert!(!mail.wire.contains("evil"), "{}", mail.wire);
            assert!(
                !mail.wire.replace("\r\n", "").contains(['\r', '\n']),
                "{}",
                mail.wire
            );
            assert!(
                mail.wire.split("\r\n").all(|line| line.len() <= 76),
                "{}",
                mail.wire
            );
            let names = mail.head().split("\r\n").filter(|line| !line.starts_with(' '));
            let mut names: Vec<_> = names.map(|line| line.split(':').next().unwrap()).collect();
            names.sort_unstable();
            let known = [
                "Auto-Submitted",
                "Content-Transfer-Encoding",
                "Content-Type",
                "Date",
                "From",
                "MIME-Version",
                "Message-ID",
                "Reply-To",
                "Subject",
                "To",
            ];
            assert_eq!(names, known, "{}", mail.wire);
            assert_eq!(mail.subject(), format!("Pilot request: {text}"));
            assert!(
                mail.text().contains(&format!("Organisation: {text}\r\n")),
                "{}",
                mail.text()
            );
        }
        for address in ["ü@example.com", "a@bücher.example"] {
            let at = sink.received().len();
            app.anonymous().applies(json!({"email": address})).await;
            let mail = arrived(&sink, at + 1).await.remove(at);
            assert_eq!(mail.header("Reply-To"), None);
            assert!(mail.text().contains(address), "{}", mail.text());
        }
        // One session for each, and no command that was not meant.
        app.stop().await;
        let sent = sink.received().len();
        for verb in ["connect", "EHLO", "MAIL", "RCPT", "DATA", "content"] {
            assert_eq!(sink.steps(verb), sent, "{verb}");
        }
    });
}
