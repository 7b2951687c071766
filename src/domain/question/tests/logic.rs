//! Questions that deny, except or join what they name.

use super::*;

const USED: &[Kind] = &[Kind::Software];
const GROUPS: &[Kind] = &[Kind::Group];

/// How a question combines its names, each by its place among them; the word that is not understood otherwise.
fn logic(question: &str, kinds: &[Kind]) -> Result<(Combination, Vec<usize>, Vec<usize>), String> {
    let (parsed, names) = read_names(question, kinds).unwrap_or_else(|| panic!("{question} asks nothing"));
    if let Some(word) = parsed.denial(&names) {
        return Err(word.to_owned());
    }
    let plan = parsed
        .plan(&names)
        .unwrap_or_else(|| panic!("{question} has no plan"));
    let place = |words: &Range<usize>| names.iter().position(|name| name.words == *words).unwrap();
    let logic = plan.logic;
    Ok((
        logic.combination,
        logic.without.iter().map(place).collect(),
        logic.excepted.iter().map(place).collect(),
    ))
}

#[test]
fn a_denied_verb_asks_for_what_is_related_to_none() {
    for (question, kinds) in [
        ("Which groups do not use [Peckware]?", USED),
        ("Which groups don't use [Peckware]?", USED),
        ("Groups that never used [Peckware]", USED),
        ("Which groups have never used [Peckware]?", USED),
        ("malware not used by [Birch Fox]", GROUPS),
        ("Which tools are not used by [Birch Fox]?", GROUPS),
        ("Which malware has not been used by [Birch Fox]?", GROUPS),
        ("Which tools does [Birch Fox] not use?", GROUPS),
    ] {
        assert_eq!(
            logic(question, kinds),
            Ok((Combination::None, vec![], vec![])),
            "{question}"
        );
    }
}

#[test]
fn names_are_left_out_of_the_answer_or_of_what_it_is_related_to() {
    for (question, kinds, without, excepted) in [
        (
            "malware used by [Alder Fox] but not by [Cedar Fox]",
            GROUPS,
            vec![1],
            vec![],
        ),
        (
            "Which malware is used by [Alder Fox] and not by [Cedar Fox]?",
            GROUPS,
            vec![1],
            vec![],
        ),
        (
            "malware of [Alder Fox], not of [Cedar Fox] or [Birch Fox]",
            GROUPS,
            vec![1, 2],
            vec![],
        ),
        (
            "Which groups other than [Alder Fox] use [Peckware]?",
            &[Kind::Group, Kind::Software],
            vec![],
            vec![0],
        ),
        (
            "Which groups besides [Alder Fox] use [Peckware]?",
            &[Kind::Group, Kind::Software],
            vec![],
            vec![0],
        ),
        (
            "Which groups use [Peckware], except [Alder Fox]?",
            &[Kind::Software, Kind::Group],
            vec![],
            vec![1],
        ),
    ] {
        assert_eq!(
            logic(question, kinds),
            Ok((Combination::Any, without, excepted)),
            "{question}"
        );
    }
}

#[test]
fn both_asks_for_what_is_related_to_all() {
    for question in [
        "Which groups use both [Peckware] and [Quillware]?",
        "groups with both [Peckware] and [Quillware]",
    ] {
        assert_eq!(
            logic(question, USED),
            Ok((Combination::All, vec![], vec![])),
            "{question}"
        );
    }
    for question in [
        "Which groups use [Peckware] and [Quillware]?",
        "Which groups use [Peckware] or [Quillware]?",
    ] {
        assert_eq!(
            logic(question, USED),
            Ok((Combination::Any, vec![], vec![])),
            "{question}"
        );
    }
}

#[test]
fn what_is_denied_otherwise_is_not_understood() {
    for (question, kinds, word) in [
        ("Which groups use malware except [Rookware]?", USED, "except"),
        (
            "Which groups use malware without [T1059]?",
            &[Kind::Technique][..],
            "without",
        ),
        ("Which groups no longer use [Peckware]?", USED, "no"),
        (
            "Which malware used by no group uses [T1059]?",
            &[Kind::Technique][..],
            "no",
        ),
        ("Which groups did not use [Peckware] in 2021?", USED, "not"),
    ] {
        assert_eq!(logic(question, kinds), Err(word.to_owned()), "{question}");
    }
}

#[test]
fn words_of_time_deny_nothing() {
    for question in [
        "Which groups used [Peckware] no later than 2020?",
        "Which groups used [Peckware] not before 2020?",
        "Which groups use not only [Peckware]?",
    ] {
        assert_eq!(
            logic(question, USED),
            Ok((Combination::Any, vec![], vec![])),
            "{question}"
        );
    }
}
