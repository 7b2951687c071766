//! A word that only names a kind of things is not unknown because no note has it.

use super::*;

const EXPLOITING: &[&str] = &[
    "APT28 exploits CVE-2017-20056, then moves with PsExec.",
    "Turla exploits CVE-2019-35894, then moves with Mimikatz.",
    "Mails to retail banks carried a document that installs FlawedAmmyy.",
];

#[test]
fn questions_of_kinds_have_answers_where_no_note_has_the_word() {
    run(async {
        let core = fresh(tuning()).await;
        for content in EXPLOITING {
            remember(&core, content).await;
        }
        for question in [
            "Which actors exploit vulnerabilities?",
            "exploited vulnerability",
            "Which threat groups exploit weaknesses?",
            "vulnerabilities",
        ] {
            let found = told(&core, question).await;
            let first = found.first().map(|(content, _)| content.as_str());
            assert!(
                first.is_some_and(|first| first.contains("exploits CVE")),
                "{question}: {first:?}"
            );
        }
        for question in ["xyzzyqwert", "Which actors play chess?", "malware for the Amiga"] {
            assert!(told(&core, question).await.is_empty(), "{question}");
        }
    });
}
