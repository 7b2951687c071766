//! What happens to notes with personal data.

use super::*;

#[test]
fn personal_data_is_flagged_blanked_out_or_refused_as_configured() {
    run(async {
        let text = "Call Jane at +44 20 7946 0958 about card 4111 1111 1111 1111.";
        for (action, blanked) in [(PiiAction::Log, false), (PiiAction::Redact, true)] {
            let core = fresh(Tuning {
                pii: Some(action),
                ..tuning()
            })
            .await;
            let told = remember(&core, text).await;
            let note = core.read_note(ReadNote(told.note_id)).await.unwrap().note;
            assert!(
                note.flags.iter().any(|flag| flag.starts_with("pii:")),
                "{:?}",
                note.flags
            );
            assert_eq!(!note.content.contains("4111"), blanked);
        }
        let core = fresh(Tuning {
            pii: Some(PiiAction::Block),
            ..tuning()
        })
        .await;
        let mut referred = note("a quiet note");
        referred.source_ref = "from jane.doe@gmail.com".into();
        let refused = tell(&core, vec![referred.clone()]).await.remove(0).unwrap_err();
        assert!(refused.to_string().starts_with("source_ref: holds personal data"));
        let redacting = fresh(Tuning {
            pii: Some(PiiAction::Redact),
            ..tuning()
        })
        .await;
        let told = tell(&redacting, vec![referred]).await.remove(0).unwrap();
        let kept = redacting.read_note(ReadNote(told.note_id)).await.unwrap().note;
        assert_eq!((kept.source_ref.as_str(), kept.flags.len()), ("from [EMAIL]", 1));
        let both = tell(&core, vec![note(text), note("nothing personal")]).await;
        assert!(
            both[0]
                .as_ref()
                .unwrap_err()
                .to_string()
                .starts_with("content: holds personal data")
        );
        assert!(both[1].is_ok());
    });
}
