//! Questions that deny, except or join what they name.

use super::*;

#[test]
fn notes_of_what_a_question_denies_are_not_its_answer() {
    run(async {
        let core = fresh(tuning()).await;
        for content in [
            "APT28 uses X-Agent.",
            "Turla uses Carbon.",
            "APT28 uses Mimikatz.",
            "Turla uses Mimikatz.",
            "FIN7 uses Carbanak.",
        ] {
            remember(&core, content).await;
        }
        for (question, first) in [
            ("Which groups do not use Mimikatz?", "FIN7 uses Carbanak."),
            ("Which groups use both Carbon and Mimikatz?", "Turla uses"),
            (
                "Which groups other than Turla use Mimikatz?",
                "APT28 uses Mimikatz.",
            ),
        ] {
            let found = asked(&core, question, Scope::default(), 5).await;
            let content = &found.notes[0].note.content;
            assert!(content.starts_with(first), "{question}: {content}");
        }
        let found = asked(&core, "Which tools are not used by APT28?", Scope::default(), 2).await;
        let denied = found
            .notes
            .iter()
            .any(|found| found.note.content.starts_with("APT28"));
        assert!(!denied, "{:?}", found.notes);
        let found = asked(
            &core,
            "Which groups use tools without Mimikatz?",
            Scope::default(),
            5,
        )
        .await;
        assert_eq!(found.question.unwrap().denial.as_deref(), Some("without"));
    });
}
