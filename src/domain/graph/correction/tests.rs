use proptest::prelude::*;

use super::*;

fn fields() -> CorrectableFields {
    CorrectableFields {
        name: "APT28".into(),
        description: "A threat group.".into(),
        aliases: vec!["Fancy Bear".into(), "Cozy Bear".into()],
        confidence: 0.5,
        tlp: Tlp::Green,
        status: NodeStatus::Active,
    }
}

fn record(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

#[test]
fn what_was_set_stands_over_what_sources_state_later_and_gives_way_when_cleared() {
    let mut correction = NodeCorrection::default();
    let mut shown = fields();
    let changes = NodeChanges {
        description: Some("Ours.".into()),
        add_aliases: vec!["Sofacy".into()],
        remove_aliases: vec!["Cozy Bear".into()],
        ..NodeChanges::default()
    };
    correction.correct(&mut shown, &changes, record(1));
    assert_eq!(shown.description, "Ours.");
    assert_eq!(shown.aliases, ["Fancy Bear", "Sofacy"]);
    // A feed says more, and repeats the wrong alias.
    let mut stated = CorrectableFields {
        description: "A newer text.".into(),
        aliases: vec!["Fancy Bear".into(), "Cozy Bear".into(), "Strontium".into()],
        ..fields()
    };
    correction.lay(&mut stated);
    assert_eq!(stated.description, "Ours.");
    assert_eq!(stated.aliases, ["Fancy Bear", "Strontium", "Sofacy"]);
    let clear = NodeChanges {
        clear: vec![CorrectedField::Description, CorrectedField::Aliases],
        ..NodeChanges::default()
    };
    correction.correct(&mut stated, &clear, record(2));
    assert_eq!(stated.description, "A newer text.");
    assert_eq!(stated.aliases, ["Fancy Bear", "Cozy Bear", "Strontium"]);
    assert!(correction.is_empty());
}

/// What a node shows for each marking that a source states after somebody has set one.
#[test]
fn a_marking_that_was_set_gives_way_only_to_a_stricter_one() {
    use Tlp::{Amber, Green, Red, White};
    for (before, set, later, want) in [
        (Green, Amber, Green, Amber),
        (Green, Amber, White, Amber),
        (Green, Amber, Red, Red),
        (Amber, Green, Amber, Green),
        (Amber, Green, White, Green),
        (Amber, Green, Red, Red),
    ] {
        let mut correction = NodeCorrection::default();
        let mut shown = CorrectableFields {
            tlp: before,
            ..fields()
        };
        let changes = NodeChanges {
            tlp: Some(set),
            ..NodeChanges::default()
        };
        correction.correct(&mut shown, &changes, record(1));
        assert_eq!(shown.tlp, set);
        let mut stated = CorrectableFields {
            tlp: later,
            ..fields()
        };
        correction.lay(&mut stated);
        assert_eq!(stated.tlp, want, "{before} set to {set}, then stated {later}");
        // What was stricter once is not lowered by what comes after it.
        let mut again = CorrectableFields {
            tlp: later,
            ..fields()
        };
        correction.lay(&mut again);
        assert_eq!(
            again.tlp, want,
            "{before} set to {set}, then stated {later} twice"
        );
    }
}

proptest! {
    /// Whatever is set and cleared, sources' words come back unchanged, and laying twice changes nothing.
    #[test]
    fn lifting_gives_back_what_sources_state(
        name in proptest::option::of("[a-c]{1,3}"),
        description in proptest::option::of("[a-c]{0,3}"),
        added in proptest::collection::vec("[a-c]{1,2}", 0..3),
        removed in proptest::collection::vec("[a-c]{1,2}", 0..3),
        stated in proptest::collection::vec("[a-c]{1,2}", 0..3),
        confidence in proptest::option::of(0.0..1.0_f64),
    ) {
        let mut correction = NodeCorrection::default();
        let mut shown = fields();
        let changes = NodeChanges {
            name, description, confidence,
            add_aliases: added,
            remove_aliases: removed,
            ..NodeChanges::default()
        };
        correction.correct(&mut shown, &changes, record(1));
        let mut later = CorrectableFields { aliases: stated, ..fields() };
        let want = later.clone();
        correction.lay(&mut later);
        let mut lifted = later.clone();
        correction.lift(&mut lifted);
        prop_assert_eq!(&lifted, &want);
        correction.lay(&mut lifted);
        prop_assert_eq!(&lifted, &later);
        let stored = serde_json::to_string(&correction).unwrap();
        prop_assert_eq!(serde_json::from_str::<NodeCorrection>(&stored).unwrap(), correction);
    }
}
