//! Questions for what is two relationships away, in the many ways people put them.

use super::*;

#[test]
fn what_lies_between_is_understood() {
    use Kind::{Campaign, Group, Mitigation, Software, Technique};
    for (question, named, wanted, through) in [
        (
            "Which techniques does [Sandworm Team] get from its own malware?",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "What techniques does [Sandworm Team] gain from malware?",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "Which groups perform [Remote Services] by way of malware?",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "Which techniques does [Sandworm Team] use to deliver malware?",
            Group,
            vec![Technique],
            vec![],
        ),
        (
            "[Remote Services]: which groups have malware for it?",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "For [Remote Services], list the groups whose malware implements it.",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "[Remote Services] -> malware -> groups",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "Threat groups: malware uses [Remote Services]",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "[Sandworm Team]'s arsenal: techniques",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "techniques <- malware <- [Sandworm Team]",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "Through its malware, what can [Sandworm Team] do?",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "[Sandworm Team]: what does its malware do?",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "We found malware of [Sandworm Team]. What does it do?",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "For the malware of [Sandworm Team], list the techniques.",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "[Sandworm Team] malware, tools and techniques",
            Group,
            vec![Software, Technique],
            vec![],
        ),
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
            "Which groups perform [Remote Services] with malware?",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "Which techniques does [Sandworm Team] carry out by means of its malware?",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "What did [Sandworm Team] do in its campaigns?",
            Group,
            vec![Technique],
            vec![Campaign],
        ),
        (
            "How can we defend against what [Sandworm Team] does?",
            Group,
            vec![Mitigation],
            vec![Technique],
        ),
        (
            "What helps against [Industroyer]?",
            Software,
            vec![Mitigation],
            vec![Technique],
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
        (
            "[Big Attack] was one of several operations that relied on what malware",
            Campaign,
            vec![Software],
            vec![],
        ),
        (
            "Malware with [Remote Services] - who has it?",
            Technique,
            vec![Group, Campaign],
            vec![Software],
        ),
        (
            "Campaigns of [Sandworm Team] in which ransomware was used",
            Group,
            vec![Campaign],
            vec![],
        ),
        (
            "List campaigns of [Sandworm Team] since 2021 in which ransomware was used",
            Group,
            vec![Campaign],
            vec![],
        ),
        (
            "What malware is used by [Sandworm Team], who attacked Ukraine in 2015?",
            Group,
            vec![Software],
            vec![],
        ),
        (
            "What techniques does [Sandworm Team], whom many fear, use?",
            Group,
            vec![Technique],
            vec![],
        ),
        (
            "the malware of [Sandworm Team], who attacked Ukraine",
            Group,
            vec![Software],
            vec![],
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
