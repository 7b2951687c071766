//! Names that notes introduce are known in the notes that follow, and after a restart.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use super::copy::CopiedMemory;
use super::*;
use crate::actors::note_store::graph::MemoryGraph;
use crate::actors::note_store::known_names::NoteNames;
use crate::domain::memory::entity::{EntityDraft, mentions_in, mentions_with};
use crate::store::StoredEntity;

#[test]
fn a_name_or_alias_of_one_note_is_known_in_the_next() {
    run(async {
        let copied = CopiedMemory::new().await;
        let core = copied.core();
        for (text, want) in [
            (
                "Researchers found a backdoor dubbed Marrowgate at the refinery.",
                "marrowgate",
            ),
            ("Marrowgate beacons every hour.", "marrowgate"),
            (
                "Marrowgate, also known as Gate-7b, was seen in June.",
                "marrowgate",
            ),
            ("In July GATE 7B came back.", "marrowgate"),
            ("Turla, also known as Torvold, was active in May.", "turla"),
            ("Torvold's loader changed in August.", "turla"),
        ] {
            assert_eq!(remember(&core, text).await.entities, [want], "{text}");
        }
        assert!(
            remember(&core, "Gate was open all day.")
                .await
                .entities
                .is_empty()
        );
        copied.assert_right("after further aliases").await;
        let core = copied.core();
        for (text, want) in [
            ("After a restart Gate-7b is known.", "marrowgate"),
            ("After a restart Torvold is known.", "turla"),
        ] {
            assert_eq!(remember(&core, text).await.entities, [want], "{text}");
        }
    });
}

#[test]
fn notes_of_one_request_know_the_names_of_those_before() {
    run(async {
        let copied = CopiedMemory::new().await;
        let texts = [
            "They wrote a backdoor dubbed Marrowgate in March.",
            "Marrowgate, also known as Torvold, was sold in April.",
            "In June Torvold was gone.",
        ];
        let told = tell(&copied.core(), texts.into_iter().map(note).collect()).await;
        for outcome in told {
            assert_eq!(outcome.unwrap().entities, ["marrowgate"]);
        }
        copied.assert_right("after a request of several notes").await;
    });
}

/// A text of some ten kilobytes as reports are.
fn report() -> String {
    let mut text = String::new();
    for number in 0..60 {
        write!(
            text,
            "On Monday the group behind Operation {number} used Cobalt Strike and a loader against a Finnish refinery. \
             Analysts at Example Corp saw traffic to 198.51.100.{number}, and the files were encrypted an hour later. "
        )
        .unwrap();
    }
    text
}

/// Names of five syllables, some of two words, in which all letters are about as common.
fn made_up_name(number: usize) -> String {
    let mut name = String::new();
    let mut left = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for _ in 0..5 {
        for letters in ["bdfgklmnprstvwxz", "aeiou"] {
            name.extend(letters.chars().nth(left % letters.len()));
            left /= letters.len();
        }
    }
    if number.is_multiple_of(3) {
        name.insert(6, ' ');
    }
    name
}

#[test]
#[ignore = "measures time; run it alone"]
fn a_hundred_thousand_names_cost_little_to_read_with() {
    let names = (0..100_000).map(made_up_name);
    let entities = (1..).zip(names).map(|(number, name)| StoredEntity {
        id: Uuid::from_u128(number),
        draft: EntityDraft::from_name("malware", &name, 0.9).unwrap(),
        created_at: clock::now(),
        merged_into: None,
    });
    let graph = RwLock::new(MemoryGraph::of(Vec::new(), entities.collect(), Vec::new()));
    let (names, text) = (NoteNames::of(&graph), report());
    let best = |work: &dyn Fn()| -> Duration {
        let took = (0..20).map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        });
        took.min().unwrap()
    };
    let without = best(&|| drop(mentions_in(&text)));
    let looked = best(&|| drop(names.in_text(&text)));
    let with = best(&|| drop(mentions_with(&text, &names.in_text(&text))));
    println!(
        "{} bytes: {without:?} without, {with:?} with the names, {looked:?} of it to look them up",
        text.len()
    );
    // Optimised, 1.3 times.
    assert!(with < without * 3, "{without:?}, {with:?}");
}
