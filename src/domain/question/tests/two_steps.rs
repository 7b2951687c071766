//! Questions for what is two relationships away, in the many ways people put them.

use super::*;

#[test]
fn what_lies_between_is_understood() {
    use Kind::{Campaign, Group, Mitigation, Software, Technique};
    for (question, named, wanted, through) in [
        (
            "[Sandworm Team] malware techniques",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "[Remote Services] malware campaigns",
            Technique,
            vec![Campaign],
            vec![],
        ),
        (
            "What TTPs did [Sandworm Team] employ across its campaigns?",
            Group,
            vec![Technique],
            vec![Campaign],
        ),
        (
            "Which tools were seen in operations carried out by [Sandworm Team]?",
            Group,
            vec![Software],
            vec![Campaign],
        ),
        (
            "Who ran [Big Attack], and what malware does that group have?",
            Campaign,
            vec![Software],
            vec![Group],
        ),
        (
            "The group to which [Big Attack] is attributed relies on which malware families?",
            Campaign,
            vec![Software],
            vec![Group],
        ),
        (
            "[Big Attack] perpetrator's malware",
            Campaign,
            vec![Software],
            vec![Group],
        ),
        (
            "Against which malware families' techniques does [Network Segmentation] help?",
            Mitigation,
            vec![Software],
            vec![Technique],
        ),
        (
            "APTs with [Remote Services]-capable malware",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "show me the controls that counter the [Big Attack] TTPs",
            Campaign,
            vec![Mitigation],
            vec![Technique],
        ),
        (
            "Apart from [Industroyer] itself, what malware families do the groups that deploy it have?",
            Software,
            vec![Software],
            vec![Group],
        ),
        (
            "Which groups perform [Remote Services] through their malware?",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "Malware that performs [Remote Services]: who has it?",
            Technique,
            vec![Group, Campaign],
            vec![Software],
        ),
        (
            "list everything [Sandworm Team]'s malware does",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "What does [Sandworm Team] do with its malware?",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "How does the malware of [Sandworm Team] behave on infected machines?",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "[Sandworm Team] malware behaviour",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "Which malware uses [Remote Services], and by which groups is it used?",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "Which malware uses [Remote Services] and who has it?",
            Technique,
            vec![Group, Campaign],
            vec![Software],
        ),
        (
            "What malware does [Sandworm Team] have, and what are its techniques?",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "Which adversaries have [Industroyer] in their arsenal?",
            Software,
            vec![Group, Campaign],
            vec![],
        ),
        (
            "in the operations ascribed to [Sandworm Team], which techniques were employed",
            Group,
            vec![Technique],
            vec![Campaign],
        ),
        (
            "[Industroyer] was used over several years in campaigns by what threat groups",
            Software,
            vec![Group],
            vec![Campaign],
        ),
        (
            "techniques used by [Sandworm Team] - what mitigates them",
            Group,
            vec![Mitigation],
            vec![Technique],
        ),
        (
            "How many malware families does [Sandworm Team] use?",
            Group,
            vec![Software],
            vec![],
        ),
        (
            "Which other groups' malware uses [Remote Services]?",
            Technique,
            vec![Group],
            vec![Software],
        ),
        ("[Sandworm Team] group's malware", Group, vec![Software], vec![]),
        ("[Big Attack] campaign malware", Campaign, vec![Software], vec![]),
        (
            "With whom does [Sandworm Team] have malware in common?",
            Group,
            vec![Group, Campaign],
            vec![Software],
        ),
    ] {
        let plan = plan(question, &[named]).unwrap_or_else(|| panic!("no plan: {question}"));
        assert_eq!((plan.wanted, plan.through), (wanted, through), "{question}");
    }
}

#[test]
fn a_question_can_describe_groups() {
    use Kind::{Campaign, Software, Technique};
    for (question, expected) in [
        (
            "malware of groups attributed to the GRU",
            Some((vec![Software], vec![])),
        ),
        (
            "What malware do GRU-linked actors use?",
            Some((vec![Software], vec![])),
        ),
        (
            "techniques of the malware of Russian groups",
            Some((vec![Technique], vec![Software])),
        ),
        (
            "malware in the campaigns of Iranian groups",
            Some((vec![Software], vec![Campaign])),
        ),
        ("GRU-linked groups' malware", Some((vec![Software], vec![]))),
        ("groups attributed to the GRU", None),
    ] {
        let reading = Reading::of(question, now()).unwrap();
        assert!(reading.describes_groups(), "{question}");
        let plan = reading
            .plan_of_described()
            .map(|plan| (plan.wanted, plan.through));
        assert_eq!(plan, expected, "{question}");
    }
    let reading = Reading::of("Which malware uses remote services?", now()).unwrap();
    assert!(!reading.describes_groups());
    assert!(is_described(
        &["russian", "gru"],
        "It is attributed to Russia's GRU."
    ));
    assert!(!is_described(
        &["russian", "utilities"],
        "It is attributed to Russia's GRU."
    ));
}
