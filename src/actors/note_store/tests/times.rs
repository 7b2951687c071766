//! Questions about a time, an order of time, two things at once, and what was corrected.

use super::*;
use crate::domain::question::TimeOrder;
use crate::search::SCORE_FLOOR;

const ATTACKS: &[(&str, &str)] = &[
    (
        "may23",
        "On 14 May 2023 the Lathe Group hit the Varnholt refinery with Marrowgate.",
    ),
    (
        "jun23",
        "On 2 June 2023 the Lathe Group hit the Holt dam with Marrowgate.",
    ),
    (
        "may24",
        "In May 2024 the Lathe Group hit the Gorse airport with Marrowgate.",
    ),
    (
        "q322",
        "In Q3 2022 the Lathe Group hit the Sedge bank with Marrowgate.",
    ),
    (
        "iso21",
        "2021-11-05: Lathe Group hit Rushmere port with Marrowgate.",
    ),
    ("us20", "05/06/2020 Lathe Group hit Thistle mill with Marrowgate."),
    (
        "de19",
        "Am 3. Oktober 2019 traf die Lathe Group das Werk Fenn mit Marrowgate.",
    ),
    (
        "none",
        "The Lathe Group likes to use Marrowgate against many kinds of plants.",
    ),
    (
        "gorse",
        "In April 2023 the Gorse Team hit the Sedge bank, and again in January 2026 and in 2018.",
    ),
];

async fn filled() -> Arc<NoteCore> {
    let core = fresh(tuning()).await;
    for (_, text) in ATTACKS {
        remember(&core, text).await;
    }
    core
}

async fn recalled(core: &NoteCore, query: &str, k: usize) -> NotesFound {
    let message = RecallNotes {
        question: read(query),
        k,
        options: RecallOptions {
            explain: true,
            ..RecallOptions::default()
        },
    };
    let found = core.recall_notes(message).await.unwrap();
    let scores: Vec<f32> = found.notes.iter().map(|note| note.score).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{query}: {scores:?}");
    assert!(
        scores.iter().all(|score| (0.0..=1.0).contains(score)),
        "{query}: {scores:?}"
    );
    found
}

fn contents(found: &NotesFound) -> Vec<&str> {
    found
        .notes
        .iter()
        .map(|found| found.note.content.as_str())
        .collect()
}

fn keys(found: &NotesFound) -> Vec<&'static str> {
    let key = |content: &str| {
        let known = ATTACKS.iter().find(|(_, text)| *text == content);
        known.map_or("other", |(key, _)| key)
    };
    contents(found).into_iter().map(key).collect()
}

#[test]
fn notes_of_the_time_asked_for_lead_and_the_period_is_told() {
    run(async {
        let core = filled().await;
        for (question, leading) in [
            ("Lathe Group attacks before 2020", &["de19"][..]),
            ("Lathe Group attacks in 05/2023", &["may23"]),
            ("Lathe Group attacks in 2023", &["jun23", "may23"]),
            ("Lathe Group attacks since 2024", &["may24"]),
            ("Lathe Group attacks in May 2020", &["us20"]),
            ("Lathe Group attacks in June 2020", &["us20"]),
            (
                "Lathe Group attacks between May and June 2023",
                &["jun23", "may23"],
            ),
            ("Lathe Group attacks between 2019 and 2020", &["de19", "us20"]),
            ("Angriffe der Lathe Group vor 2020", &["de19"]),
            ("attaques du Lathe Group avant 2020", &["de19"]),
        ] {
            let found = recalled(&core, question, 9).await;
            let mut first = keys(&found);
            first.truncate(leading.len());
            first.sort_unstable();
            assert_eq!(first, leading, "{question}");
            let mut led = found.notes.iter().take(leading.len());
            assert!(led.all(|note| note.score > SCORE_FLOOR), "{question}");
            let time = found.question.unwrap().time;
            assert!(time.period.is_some(), "{question}");
        }
        // The others stand behind.
        let found = recalled(&core, "Lathe Group attacks before 2020", 9).await;
        assert!(found.notes.len() > 1);
        let untimed = recalled(&core, "Lathe Group attacks", 9).await;
        assert_eq!(untimed.question.unwrap().time.period, None);
    });
}

#[test]
fn what_was_added_in_a_time_is_told_by_when_it_was_stored() {
    run(async {
        let core = filled().await;
        let found = recalled(&core, "notes on the Lathe Group added today", 9).await;
        let leading: Vec<&str> = keys(&found).into_iter().take(8).collect();
        assert!(!leading.contains(&"gorse"), "{leading:?}");
        let found = recalled(&core, "Lathe Group attacks since yesterday", 9).await;
        assert_eq!(keys(&found)[0], "none");
    });
}

#[test]
fn superlatives_of_time_put_notes_in_order() {
    run(async {
        let core = filled().await;
        let newest = ["may24", "jun23", "may23", "q322", "iso21", "us20", "de19", "none"];
        let mut oldest = newest;
        oldest[..7].reverse();
        for (question, order) in [
            ("most recent attack of the Lathe Group", TimeOrder::NewestFirst),
            (
                "What is the latest attack of the Lathe Group?",
                TimeOrder::NewestFirst,
            ),
            ("last attack of the Lathe Group", TimeOrder::NewestFirst),
            ("letzter Angriff der Lathe Group", TimeOrder::NewestFirst),
            ("dernière attaque du Lathe Group", TimeOrder::NewestFirst),
            ("first attack of the Lathe Group", TimeOrder::OldestFirst),
            ("earliest attack of the Lathe Group", TimeOrder::OldestFirst),
            ("primer ataque del Lathe Group", TimeOrder::OldestFirst),
        ] {
            let found = recalled(&core, question, 9).await;
            let want = match order {
                TimeOrder::NewestFirst => newest,
                TimeOrder::OldestFirst => oldest,
            };
            assert_eq!(keys(&found).get(..8), Some(want.as_slice()), "{question}");
            assert_eq!(found.question.unwrap().time.order, Some(order), "{question}");
        }
        let found = recalled(&core, "first attack of the Lathe Group since 2021", 9).await;
        assert_eq!(keys(&found)[..2], ["iso21", "q322"]);
        // What else the question says goes before the time.
        let found = recalled(&core, "most recent attack of the Lathe Group on a refinery", 9).await;
        assert_eq!(keys(&found)[0], "may23");
        let found = recalled(&core, "latest notes on the Lathe Group", 9).await;
        assert_eq!(keys(&found)[..2], ["none", "de19"]);
    });
}

#[test]
fn what_is_compared_comes_first() {
    run(async {
        let core = fresh(tuning()).await;
        for text in [
            "Turla is a group that APT28 and APT29 are compared with: a difference between APT28, APT29 and Turla is age.",
            "APT29 is a group of the SVR.",
            "APT28 is a group of the GRU.",
            "Turla is a group of the FSB.",
            "FIN7 is versus nobody.",
        ] {
            remember(&core, text).await;
        }
        for question in [
            "APT28 vs APT29",
            "APT28 versus APT29",
            "difference between APT28 and APT29",
            "What is the difference between APT28 and APT29?",
            "compare APT28 with APT29",
            "Unterschied zwischen APT28 und APT29",
        ] {
            let found = recalled(&core, question, 5).await;
            let first: Vec<&str> = contents(&found).into_iter().take(2).collect();
            assert_eq!(
                first,
                ["APT28 is a group of the GRU.", "APT29 is a group of the SVR."],
                "{question}"
            );
        }
    });
}

#[test]
fn corrections_stand_above_what_they_correct_and_both_are_marked() {
    run(async {
        for (older, newer, questions) in [
            (
                "The Lathe Group is based in Ruritania.",
                "Update: the Lathe Group has moved and is now based in Graustark, no longer in Ruritania.",
                &[
                    "Where is the Lathe Group based now?",
                    "Where is the Lathe Group based?",
                    "Lathe Group base in Ruritania",
                ][..],
            ),
            (
                "The Lathe Group hit the Varnholt refinery.",
                "Correction: it was not the Lathe Group that hit the Varnholt refinery, it was the Gorse Team.",
                &[
                    "Who hit the Varnholt refinery?",
                    "Did the Lathe Group hit the Varnholt refinery?",
                ],
            ),
            (
                "Die Lathe Group hat ihren Sitz in Ruritanien.",
                "Korrektur: Die Lathe Group hat ihren Sitz in Graustark, nicht in Ruritanien.",
                &["Wo hat die Lathe Group ihren Sitz?"],
            ),
        ] {
            let core = fresh(tuning()).await;
            let old = remember(&core, older).await.note_id;
            remember(&core, "The Lathe Group uses Marrowgate against refineries.").await;
            let new = remember(&core, newer).await.note_id;
            for question in questions {
                let found = recalled(&core, question, 5).await;
                let place = |id: Uuid| found.notes.iter().position(|found| found.note.id == id);
                assert!(
                    place(new).unwrap() < place(old).unwrap(),
                    "{question}: {:?}",
                    contents(&found)
                );
                for found in &found.notes {
                    let want = match found.note.id {
                        id if id == old => vec![new],
                        id if id == new => vec![old],
                        _ => vec![],
                    };
                    assert_eq!(found.conflicts_with, want, "{question}: {}", found.note.content);
                }
                let one = recalled(&core, question, 1).await;
                assert_eq!(one.notes.len(), 1);
            }
        }
    });
}

#[test]
fn no_correction_stands_above_the_note_with_a_rare_word_of_the_question() {
    run(async {
        // Codes of the same form, and words that no vocabulary knows.
        for rare in ["svcqx17", "updmngr_k9", "zusuzuze", "msdtcx.dll", "198.51.100.7"] {
            let core = fresh(tuning()).await;
            let held = format!("Botnet spread by mail attachments. It leaves the trace {rare} behind.");
            let held = remember(&core, &held).await.note_id;
            for other in ["kekemoru", "vxkwz44"] {
                let other = format!(
                    "Remote support software instead of malware: {other}. It leaves the trace {other} behind."
                );
                remember(&core, &other).await;
            }
            for question in [rare.to_owned(), format!("which malware leaves {rare} now")] {
                let found = recalled(&core, &question, 5).await;
                let first = found.notes.first().map(|found| found.note.id);
                assert_eq!(first, Some(held), "{question}: {:?}", contents(&found));
            }
        }
    });
}
