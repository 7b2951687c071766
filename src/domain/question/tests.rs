mod description;
mod logic;
mod noun_pairs;
mod times;
mod two_steps;

use chrono::TimeZone;

use super::*;

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 3, 18, 12, 0, 0).unwrap()
}

/// A question that may ask for related things.
fn parsed(text: &str) -> Option<Question> {
    Some(Question::read(text, now())).filter(Question::asks_for_related)
}

/// A question in which the words in brackets are names of nodes of these kinds, and these names.
fn read_names(question: &str, kinds: &[Kind]) -> Option<(Question, Vec<Name>)> {
    let text = question.replace(['[', ']'], "");
    let reading = parsed(&text)?;
    let mut names = Vec::new();
    for (name, kind) in question
        .split('[')
        .skip(1)
        .map(|part| part.split(']').next().unwrap())
        .zip(kinds.iter().cycle())
    {
        let candidates = reading.candidates();
        let found = candidates.iter().find(|candidate| candidate.text == name);
        let words = found
            .unwrap_or_else(|| panic!("{name} is no candidate of {text}"))
            .words
            .clone();
        names.push(Name {
            words,
            kinds: vec![*kind],
        });
    }
    Some((reading, names))
}

/// The plan of a question in which the words in brackets are names of nodes of these kinds.
fn plan(question: &str, kinds: &[Kind]) -> Option<QuestionPlan> {
    let (question, names) = read_names(question, kinds)?;
    question.plan(&names)
}

#[test]
fn what_is_asked_for_follows_from_the_words() {
    use Kind::{Campaign, Group, Mitigation, Software, Technique};
    for (question, named, wanted, through) in [
        (
            "Which groups use [Remote Services]?",
            Technique,
            vec![Group],
            vec![],
        ),
        ("[T0886] groups", Technique, vec![Group], vec![]),
        (
            "Whose malware uses [Remote Services]?",
            Technique,
            vec![Group],
            vec![Software],
        ),
        ("Whose malware is [Industroyer]?", Software, vec![Group], vec![]),
        (
            "Which groups' malware uses [Remote Services]?",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "[Remote Services] is used by the malware of which groups?",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "Through their malware, which groups use [Remote Services]?",
            Technique,
            vec![Group],
            vec![Software],
        ),
        (
            "campaigns in which malware used [Remote Services]",
            Technique,
            vec![Campaign],
            vec![Software],
        ),
        (
            "malware which groups use for [Remote Services]",
            Technique,
            vec![Software],
            vec![Group],
        ),
        (
            "Who uses which malware for [Remote Services]?",
            Technique,
            vec![Group, Campaign],
            vec![Software],
        ),
        (
            "behaviour of [Sandworm Team]'s malware",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "what [Sandworm Team]'s malware does",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "What is [Sandworm Team]'s malware capable of?",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "what does the software of [Sandworm Team] use",
            Group,
            vec![Technique],
            vec![Software],
        ),
        (
            "What malware does [Sandworm Team] use?",
            Group,
            vec![Software],
            vec![],
        ),
        ("who uses [Industroyer]", Software, vec![Group, Campaign], vec![]),
        ("[Industroyer] users", Software, vec![Group, Campaign], vec![]),
        ("[Sandworm Team]'s arsenal", Group, vec![Software], vec![]),
        ("malware, tools of [Sandworm Team]", Group, vec![Software], vec![]),
        (
            "tools and techniques of the group [Sandworm Team]",
            Group,
            vec![Software, Technique],
            vec![],
        ),
        (
            "How can [Remote Services] be mitigated?",
            Technique,
            vec![Mitigation],
            vec![],
        ),
        (
            "what to do to reduce the risk of [Remote Services]",
            Technique,
            vec![Mitigation],
            vec![],
        ),
        (
            "What does [Network Segmentation] protect from?",
            Mitigation,
            vec![Technique],
            vec![],
        ),
        (
            "mitigations against [Industroyer] techniques",
            Software,
            vec![Mitigation],
            vec![Technique],
        ),
        (
            "Which mitigations cover what [Sandworm Team] uses?",
            Group,
            vec![Mitigation],
            vec![Technique],
        ),
        (
            "malware of the groups behind [Big Attack]",
            Campaign,
            vec![Software],
            vec![Group],
        ),
        (
            "groups sharing malware with [Sandworm Team]",
            Group,
            vec![Group],
            vec![Software],
        ),
        (
            "techniques seen in [Sandworm Team] campaigns",
            Group,
            vec![Technique],
            vec![Campaign],
        ),
        (
            "what does [Sandworm Team] use",
            Group,
            vec![Technique, Software],
            vec![],
        ),
        (
            "List all groups that used [Remote Services] in their operations.",
            Technique,
            vec![Group],
            vec![],
        ),
    ] {
        let plan = plan(question, &[named]).unwrap_or_else(|| panic!("no plan: {question}"));
        assert_eq!((plan.wanted, plan.through), (wanted, through), "{question}");
    }
}

#[test]
fn statements_and_mere_names_ask_for_nothing() {
    for (text, named) in [
        ("[Sandworm Team] group", Kind::Group),
        ("malware [Industroyer]", Kind::Software),
        ("[LockBit] ransomware group", Kind::Software),
        ("[Sandworm Team]", Kind::Group),
        (
            "[Sandworm Team] used malware to open breakers of substations in three regions and then wiped disks",
            Kind::Group,
        ),
    ] {
        assert_eq!(plan(text, &[named]), None, "{text}");
    }
    for text in [
        "",
        "emails with a malicious attachment sent to selected employees",
        "The group deployed KillDisk, which malware researchers at ESET tied to the 2015 attacks",
        "In 2016 the group deployed a wiper, which malware researchers tied to the attacks on substations in Ukraine.",
        "Researchers did not say what malware the Sandworm Team used in these attacks on the power grid",
        "This shows in what campaigns the malware of the Sandworm Team was used against the grid.",
    ] {
        assert!(parsed(text).is_none(), "{text}");
    }
}

#[test]
fn times_are_understood() {
    let day = |year, month, day| Some(Utc.with_ymd_and_hms(year, month, day, 0, 0, 0).unwrap());
    for (question, from, until) in [
        ("campaigns in 2022", day(2022, 1, 1), day(2023, 1, 1)),
        (
            "Which campaign took place in the year 2000?",
            day(2000, 1, 1),
            day(2001, 1, 1),
        ),
        ("campaigns since October 2023", day(2023, 10, 1), None),
        ("campaigns before 2016", None, day(2016, 1, 1)),
        ("campaigns after 2017", day(2018, 1, 1), None),
        ("campaigns until 2016", None, day(2017, 1, 1)),
        ("campaigns no later than 2016", None, day(2017, 1, 1)),
        ("campaigns not after 2016", None, day(2017, 1, 1)),
        ("campaigns in or before 2016", None, day(2017, 1, 1)),
        ("campaigns in or after 2016", day(2016, 1, 1), None),
        ("campaigns up to and including 2016", None, day(2017, 1, 1)),
        ("Which campaigns were there as of 2016?", None, day(2017, 1, 1)),
        ("Which campaigns had started by 2016?", None, day(2017, 1, 1)),
        ("campaigns no earlier than 2016", day(2016, 1, 1), None),
        ("campaigns up to the end of 2016", None, day(2017, 1, 1)),
        (
            "campaigns between June 2016 and the end of 2017",
            day(2016, 6, 1),
            day(2018, 1, 1),
        ),
        ("campaigns from 2015 to 2017", day(2015, 1, 1), day(2018, 1, 1)),
        ("campaigns last month", day(2026, 2, 1), day(2026, 3, 1)),
        ("campaigns this year", day(2026, 1, 1), None),
        ("campaigns since 2025-12-24", day(2025, 12, 24), None),
    ] {
        let period = plan(question, &[])
            .and_then(|plan| plan.period)
            .unwrap_or_else(|| panic!("no time: {question}"));
        assert_eq!((period.from, period.until), (from, until), "{question}");
    }
    let period = plan("campaigns in the last 30 days", &[])
        .unwrap()
        .period
        .unwrap();
    assert_eq!(period.from, Some(now() - chrono::Duration::days(30)));
    assert!(
        plan("mitigations added after 2020", &[])
            .unwrap()
            .period
            .unwrap()
            .entered
    );
    let of_campaigns = plan("Which malware was used in campaigns since 2017?", &[]).unwrap();
    assert!(of_campaigns.period_is_of_through);
}

#[test]
fn a_thing_is_recognised_by_part_of_its_name() {
    for (words, name, alike) in [
        (vec!["credential", "dumping"], "OS Credential Dumping", true),
        (vec!["phishing"], "Spearphishing Attachment", true),
        (vec!["default", "passwords"], "Default Credentials", true),
        (vec!["sniffs", "network", "traffic"], "Network Sniffing", true),
        (vec!["written", "go"], "Command-Line Interface", false),
        (vec!["leaves", "q7-panel"], "Example: stealer panel", false),
        (vec!["user_qx_17"], "User Training", false),
    ] {
        assert_eq!(
            name_similarity(&words, std::iter::once(name)) > 0.0,
            alike,
            "{words:?} / {name}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(text in "\\PC{0,200}", names in proptest::collection::vec((0usize..20, 1usize..4), 0..3)) {
        if let Some(reading) = parsed(&text) {
            reading.candidates();
            reading.subject();
            reading.subject_words();
            reading.description().map(|description| description.fits(&text));
            reading.plan_for_described_groups();
            let name = |(start, length): (usize, usize)| Name { words: start..start + length, kinds: vec![Kind::Group] };
            let names: Vec<Name> = names.into_iter().map(name).collect();
            reading.plan(&names);
        }
    }
}

#[test]
fn a_text_states_a_time_by_its_dates() {
    let stated = |year: &str, text: &str| {
        let question = format!("campaigns in {year}");
        let plan = parsed(&question).unwrap().plan(&[]).unwrap();
        plan.period.unwrap().is_stated_in(text)
    };
    for (text, is_stated) in [
        ("Seen in March 2021.", true),
        ("Compiled on 2021-12-31, it was used for years.", true),
        ("From 2020 (and 2021) on.", true),
        ("Seen in March 2022.", false),
        ("Compiled on 2020-12-31.", false),
        ("CVE-2021-44228 and 20210", false),
        ("", false),
    ] {
        assert_eq!(stated("2021", text), is_stated, "{text}");
    }
}
