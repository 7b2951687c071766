//! Questions about groups that are described, not named.

use test_support::extent;

use super::*;

#[test]
fn what_described_groups_have_is_asked_for() {
    use Kind::{Campaign, Software, Technique};
    for (question, described, expected) in [
        (
            "malware of groups attributed to the GRU",
            "gru",
            Some((vec![Software], vec![])),
        ),
        (
            "What malware do GRU-linked actors use?",
            "gru",
            Some((vec![Software], vec![])),
        ),
        (
            "techniques of the malware of Russian groups",
            "russian russia russ",
            Some((vec![Technique], vec![Software])),
        ),
        (
            "malware in the campaigns of North Korean state-sponsored groups",
            "state korean korea north",
            Some((vec![Software], vec![Campaign])),
        ),
        (
            "GRU-linked groups' malware",
            "gru",
            Some((vec![Software], vec![])),
        ),
        (
            "Which tools are used by most Chinese groups that target the energy sector?",
            "chinese china chin energy sector",
            Some((vec![Software], vec![])),
        ),
        (
            "What malware do groups linked to the Ministry of Intelligence and Security use?",
            "ministry intelligence security",
            Some((vec![Software], vec![])),
        ),
        (
            "What malware did Russian groups use in 2015 to open valves?",
            "russian russia russ",
            Some((vec![Software], vec![])),
        ),
        (
            "malware of groups with attribution to the GRU",
            "gru",
            Some((vec![Software], vec![])),
        ),
        (
            "What malware do actors with ties to the GRU have?",
            "gru",
            Some((vec![Software], vec![])),
        ),
        (
            "Which malware has operators whose attribution is to the GRU?",
            "gru",
            Some((vec![Software], vec![])),
        ),
        (
            "malware of groups that the GRU controls",
            "gru",
            Some((vec![Software], vec![])),
        ),
        (
            "What malware do hackers of the FSB use?",
            "fsb",
            Some((vec![Software], vec![])),
        ),
        (
            "malware of groups answering to the GRU",
            "gru",
            Some((vec![Software], vec![])),
        ),
        (
            "malware of hacking groups in Iran",
            "iran",
            Some((vec![Software], vec![])),
        ),
        (
            "The GRU has several groups: what malware do they use?",
            "gru",
            Some((vec![Software], vec![])),
        ),
        ("groups attributed to the GRU", "gru", None),
    ] {
        let reading = parsed(question).unwrap();
        let description = reading.description().unwrap_or_else(|| panic!("{question}"));
        assert_eq!(description.text(), described, "{question}");
        let plan = reading.plan_for_described_groups();
        assert_eq!(
            plan.map(|plan| (plan.wanted, plan.through)),
            expected,
            "{question}"
        );
    }
}

#[test]
fn other_words_describe_no_groups() {
    for question in [
        "Which malware uses remote services?",
        "tools groups use to steal cookies",
        "Which techniques do most groups use against valves?",
        "What malware did different groups in 2015 use?",
        "Which malware do groups in the wild use?",
        "malware of groups performing lateral movement",
        "What malware do groups control valves with?",
        "Who is behind the attack on the grid?",
    ] {
        let reading = parsed(question).unwrap();
        assert_eq!(reading.description(), None, "{question}");
    }
}

#[test]
fn a_text_fits_a_description_by_whole_words() {
    for (question, text, fits) in [
        (
            "malware of Russian groups",
            "It is attributed to Russia's GRU.",
            true,
        ),
        ("malware of Russian groups", "A RUSSIAN group.", true),
        ("malware of Chinese groups", "It operates out of China.", true),
        (
            "malware of Russian GRU-linked groups",
            "It is attributed to Russia's GRU.",
            true,
        ),
        (
            "malware of Russian FSB-linked groups",
            "It is attributed to Russia's GRU.",
            false,
        ),
        ("malware of groups from Laurasia", "A Laurasian group.", true),
        ("malware of groups from China", "A Chinese group.", true),
        (
            "malware of groups from Mali",
            "They deploy malicious programs.",
            false,
        ),
        (
            "malware of groups linked to Intel",
            "An intelligence service.",
            false,
        ),
        ("malware of criminals groups", "It is run by a criminal.", true),
        ("malware of groups from Iran", "", false),
    ] {
        let reading = parsed(question).unwrap();
        let description = reading.description().unwrap_or_else(|| panic!("{question}"));
        assert_eq!(description.fits(text), fits, "{question} / {text}");
    }
}

/// A question contains the words that describe what it is about, whatever text it is made of.
#[test]
fn cuts_of_real_texts_describe_groups_by_words_of_their_own() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/data/attack/ics-attack.json"
    );
    let Ok(text) = std::fs::read_to_string(path) else {
        return;
    };
    let bundle: serde_json::Value = serde_json::from_str(&text).unwrap();
    let objects = bundle["objects"].as_array().unwrap();
    let texts: Vec<&str> = objects
        .iter()
        .filter_map(|object| object["description"].as_str())
        .collect();
    let words: Vec<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
    let all = texts.join(" ");
    let mut described = 0;
    for (at, length) in (0..words.len() - 40)
        .step_by(extent(1_013, 97))
        .zip((1..40).cycle())
    {
        let cut = words[at..at + length].join(" ");
        for question in [
            cut.clone(),
            format!("Which malware do {cut} groups use?"),
            format!("malware of groups linked to {cut}"),
            format!("Groups: {cut}, what malware do they use?"),
        ] {
            let Some(reading) = parsed(&question) else {
                continue;
            };
            reading.plan_for_described_groups();
            if let Some(description) = reading.description() {
                described += 1;
                assert!(reading.text_of(&description.words).is_some(), "{question}");
                assert!(description.fits(&question), "{question}: {}", description.text());
            }
        }
    }
    assert!(described > extent(50, 500), "{described}");
    // Ten times the longest text that is looked at, and more: linear in it.
    let reading = parsed("malware of Laurasian groups").unwrap();
    assert!(!reading.description().unwrap().fits(&all));
}
