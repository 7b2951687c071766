//! Questions of two steps in all the orders of what is asked for, what lies between and what is named.

use super::*;

/// The kinds asked for and those on the way.
fn kinds(question: &str, named: Kind) -> (Vec<Kind>, Vec<Kind>) {
    let plan = plan(question, &[named]).unwrap_or_else(|| panic!("no plan: {question}"));
    (plan.wanted, plan.through)
}

fn all_mean(questions: &[&str], named: Kind, wanted: Kind, through: Kind) {
    for question in questions {
        let (asked, way) = kinds(question, named);
        assert_eq!((asked.first(), way), (Some(&wanted), vec![through]), "{question}");
    }
}

#[test]
fn groups_whose_malware_does_something_are_asked_for_in_any_order() {
    let questions = [
        "groups whose malware uses [Remote Services]",
        "operators of malware that implements [Remote Services]",
        "Who runs malware capable of [Remote Services]?",
        "which adversaries' tools perform [Remote Services]",
        "Whose malware can perform [Remote Services]?",
        "Name the groups in whose malware [Remote Services] appears",
        "By which groups is malware used that supports [Remote Services]?",
        "Via malware, who uses [Remote Services]?",
        "Through their malware, which actors are able to do [Remote Services]?",
        "[Remote Services] malware groups",
        "[Remote Services] malware operators",
        "[Remote Services]: malware: groups",
        "[Remote Services] | malware | groups",
        "[Remote Services] -> malware -> groups",
        "groups <- malware <- [Remote Services]",
        "from [Remote Services] via malware to groups",
        "[Remote Services] via malware: which groups?",
        "Malware with [Remote Services] - used by whom?",
        "malware implementing [Remote Services], and its users",
        "Malware that uses [Remote Services] is used by which groups?",
        "Malware with [Remote Services]: which groups used it in their campaigns?",
        "[Remote Services] is implemented by malware. Which groups use that malware?",
        "We saw [Remote Services]. Who operates malware with that capability?",
        "For malware that does [Remote Services], list the groups that are known to have used it in the past.",
        "groups malware [Remote Services]",
    ];
    all_mean(&questions, Kind::Technique, Kind::Group, Kind::Software);
}

#[test]
fn what_the_malware_and_the_campaigns_of_a_group_did_is_asked_for_in_any_order() {
    use Kind::{Campaign, Group, Software, Technique};
    let of_malware = [
        "What do [Sandworm Team] implants do once installed?",
        "[Sandworm Team]: techniques of its malware",
        "[Sandworm Team]'s malware and its techniques",
        "Of the malware that [Sandworm Team] deploys, which techniques are known?",
        "for tools [Sandworm Team] uses, show the techniques they perform",
        "Malware used by [Sandworm Team] performs which techniques?",
        "techniques available to [Sandworm Team] via malware",
        "Techniques that [Sandworm Team] has through its software",
    ];
    all_mean(&of_malware, Group, Technique, Software);
    let of_campaigns = [
        "techniques in [Sandworm Team]-attributed campaigns",
        "what was done in [Sandworm Team]'s campaigns",
        "what did attackers do in campaigns attributed to [Sandworm Team]",
        "[Sandworm Team] campaigns TTPs",
        "How did [Sandworm Team] proceed in its campaigns?",
        "[Sandworm Team]'s campaigns and the techniques used in them",
    ];
    all_mean(&of_campaigns, Group, Technique, Campaign);
    let malware = [
        "Software used during [Sandworm Team]'s operations",
        "campaigns of [Sandworm Team] and the malware deployed in them",
        "[Sandworm Team]'s campaigns: which malware?",
        "With what malware did [Sandworm Team] run its campaigns?",
    ];
    all_mean(&malware, Group, Software, Campaign);
    let shared = [
        "[Sandworm Team] malware other users",
        "By whom else is malware of [Sandworm Team] used?",
        "Is any malware of [Sandworm Team] used by other groups?",
    ];
    all_mean(&shared, Group, Group, Software);
}

#[test]
fn who_is_behind_campaigns_and_what_they_have_is_asked_for_in_any_order() {
    use Kind::{Campaign, Group, Software, Technique};
    let behind = [
        "[Industroyer] was used in campaigns by which groups?",
        "[Industroyer] campaigns - who ran them?",
        "[Industroyer] campaigns actors",
        "[Industroyer] campaigns attribution",
        "Via campaigns, who used [Industroyer]?",
    ];
    all_mean(&behind, Software, Group, Campaign);
    let by_technique = [
        "Campaigns with [Remote Services], and the groups behind them",
        "Groups who used [Remote Services] in campaigns",
        "In whose campaigns has [Remote Services] been used?",
        "To which groups are campaigns using [Remote Services] attributed?",
    ];
    all_mean(&by_technique, Technique, Group, Campaign);
    let malware = [
        "[Big Attack]: which group, and what malware does it have?",
        "[Big Attack] -> group -> malware",
        "Tools of the people behind [Big Attack]",
        "What do the actors behind [Big Attack] have in their arsenal?",
        "Whoever did [Big Attack]: what malware do they use?",
    ];
    all_mean(&malware, Campaign, Software, Group);
    let techniques = [
        "The actor that conducted [Big Attack]: techniques",
        "By what techniques is the [Big Attack]'s actor known?",
        "TTPs of [Big Attack]'s perpetrators",
    ];
    all_mean(&techniques, Campaign, Technique, Group);
    let others = [
        "Groups using [Industroyer]: what else do they use?",
        "What other tools are in the arsenal of [Industroyer] operators?",
        "Malware also used by the operators of [Industroyer]",
        "[Industroyer] groups malware",
    ];
    all_mean(&others, Software, Software, Group);
}

#[test]
fn mitigations_and_what_they_mitigate_are_asked_for_in_any_order() {
    use Kind::{Group, Mitigation, Software, Technique};
    let against = [
        "Techniques that [Sandworm Team] uses can be mitigated how?",
        "[Sandworm Team] techniques - how to mitigate?",
        "techniques of [Sandworm Team] and how they can be mitigated",
        "what would stop the techniques used by [Sandworm Team]",
        "ways to mitigate [Sandworm Team] TTPs",
        "Countering the behaviours of [Sandworm Team]",
        "What can be done about [Sandworm Team]'s techniques?",
        "[Sandworm Team]'s techniques and mitigations for them",
    ];
    all_mean(&against, Group, Mitigation, Technique);
    let malware = [
        "For the techniques [Network Segmentation] covers, show the malware that performs at least one of them",
        "[Network Segmentation] mitigates techniques - used by what malware?",
        "[Network Segmentation] techniques malware",
    ];
    all_mean(&malware, Mitigation, Software, Technique);
    let groups = [
        "[Network Segmentation] blocks techniques of which groups?",
        "[Network Segmentation] against which groups' techniques?",
    ];
    all_mean(&groups, Mitigation, Group, Technique);
}

#[test]
fn a_time_stands_where_no_name_does() {
    use Kind::{Campaign, Group, Software, Technique};
    for (question, wanted, through) in [
        ("campaigns in 2022: groups", Group, Campaign),
        ("2022 campaigns - groups", Group, Campaign),
        (
            "In campaigns since 2017, which malware was used?",
            Software,
            Campaign,
        ),
        ("For campaigns after 2016, list the malware", Software, Campaign),
        ("malware added since 2022 and its techniques", Technique, Software),
    ] {
        let plan = plan(question, &[]).unwrap_or_else(|| panic!("no plan: {question}"));
        assert_eq!(
            (plan.wanted, plan.through),
            (vec![wanted], vec![through]),
            "{question}"
        );
    }
}

#[test]
fn a_second_noun_need_not_lie_between() {
    use Kind::{Campaign, Group, Mitigation, Software, Technique};
    for (question, named, wanted) in [
        (
            "Which groups use [Remote Services] in malware attacks?",
            Technique,
            vec![Group],
        ),
        (
            "Which groups used [Remote Services] in their operations?",
            Technique,
            vec![Group],
        ),
        (
            "ransomware groups using [Remote Services]",
            Technique,
            vec![Group],
        ),
        (
            "groups using [Remote Services] and malware",
            Technique,
            vec![Group],
        ),
        (
            "Which malware with [Remote Services] is used by groups?",
            Technique,
            vec![Software],
        ),
        (
            "Which mitigations help against [Remote Services] of ransomware?",
            Technique,
            vec![Mitigation],
        ),
        (
            "techniques of [Sandworm Team] and its malware",
            Group,
            vec![Technique],
        ),
        (
            "Who is [Sandworm Team], and which malware do they use?",
            Group,
            vec![Software],
        ),
        (
            "Which tools do operators of [Sandworm Team] use?",
            Group,
            vec![Software],
        ),
        (
            "Which campaigns of [Sandworm Team] used ransomware?",
            Group,
            vec![Campaign],
        ),
    ] {
        assert_eq!(kinds(question, named), (wanted, vec![]), "{question}");
    }
}

#[test]
fn sentences_of_reports_ask_for_nothing() {
    for (text, named) in [
        (
            "[Sandworm Team] deployed malware in two campaigns against operators and later wiped the disks of workstations.",
            Kind::Group,
        ),
        (
            "The malware of [Sandworm Team] includes tools and techniques that groups in the region had used before.",
            Kind::Group,
        ),
        (
            "In its campaigns [Sandworm Team] relied on malware, and its operators used techniques that nobody had seen.",
            Kind::Group,
        ),
        (
            "Analysts found [Industroyer], malware of a group whose campaigns had used other tools for the same techniques.",
            Kind::Software,
        ),
        (
            "The operators noticed [Remote Services] only after the malware had run: groups like this one use such tools.",
            Kind::Technique,
        ),
        (
            "With [Network Segmentation] in place, the malware did not reach the plant, whatever techniques the group tried.",
            Kind::Mitigation,
        ),
        (
            "After [Big Attack], several groups shared malware with each other and used its techniques in later campaigns.",
            Kind::Campaign,
        ),
        (
            "The report describes how the malware used [Remote Services], by which groups had moved between networks before.",
            Kind::Technique,
        ),
        (
            "Once inside, the group used its malware to list processes, show the tools that ran and find [Remote Services].",
            Kind::Technique,
        ),
    ] {
        assert_eq!(plan(text, &[named]), None, "{text}");
    }
}

const WORDS: [&str; 32] = [
    "which",
    "what",
    "who",
    "whose",
    "groups",
    "malware",
    "techniques",
    "campaigns",
    "mitigations",
    "attribution",
    "operations",
    "attackers",
    "behind",
    "of",
    "by",
    "with",
    "in",
    "to",
    "and",
    "its",
    "them",
    "that",
    "any",
    "other",
    "list",
    "else",
    "do",
    "done",
    "how",
    "mitigate",
    "Stuxnet",
    "2017",
];

proptest::proptest! {
    #[test]
    fn words_are_read_in_any_order(
        order in proptest::collection::vec((0usize..WORDS.len(), 0usize..8), 1..24),
        names in proptest::collection::vec((0usize..24, 1usize..4, 0usize..5), 0..3),
    ) {
        const ENDS: [&str; 8] = [" ", " ", " ", " ", ", ", ": ", " -> ", "? "];
        let text: String = order.iter().map(|(word, end)| format!("{}{}", WORDS[*word], ENDS[*end])).collect();
        if let Some(reading) = parsed(&text) {
            let name = |(start, length, kind): (usize, usize, usize)| Name {
                words: start..start + length,
                kinds: vec![Kind::ALL[kind]],
            };
            let names: Vec<Name> = names.into_iter().map(name).collect();
            let plan = reading.plan(&names);
            let named = |kind: &Kind| names.iter().any(|name| name.kinds.contains(kind));
            for plan in plan.into_iter().filter(|_| !names.is_empty()) {
                proptest::prop_assert!(!plan.wanted.is_empty());
                let related = |kind: &Kind| kind.connected_kinds().iter().any(named);
                proptest::prop_assert!(plan.through.iter().all(related), "{text}: {plan:?}");
            }
            reading.plan_for_described_groups();
        }
    }
}

#[test]
fn groups_attributed_to_a_named_one_lie_between() {
    let questions = [
        "malware of groups attributed to the [GRU]",
        "Which malware do groups run by [GRU] use?",
        "tools of actors linked to [GRU]",
    ];
    all_mean(&questions, Kind::Group, Kind::Software, Kind::Group);
    // These only say what is named.
    let (wanted, through) = kinds("Which malware do operators of [Sandworm Team] use?", Kind::Group);
    assert_eq!((wanted.first(), through), (Some(&Kind::Software), Vec::new()));
}
