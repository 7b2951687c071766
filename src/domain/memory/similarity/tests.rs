use proptest::prelude::*;

use super::*;

const MIN: f64 = 0.8;
const NOTE: &str = "According to the report, Sandworm used Industroyer against a substation in Ukraine on 2016-12-17 and \
                    the implant called 195.16.88.6 over port 443, which operators noticed late in the night.";

fn swapped(from: &str, to: &str) -> String {
    assert!(NOTE.contains(from), "{from}");
    NOTE.replacen(from, to, 1)
}

#[test]
fn words_are_folded() {
    assert_eq!(
        words("The group’s X-Agent doesn't SLEEP."),
        ["the", "groups", "x", "agent", "doesnt", "sleep"]
    );
    assert!(words(" … ").is_empty());
}

#[test]
fn overlap_is_of_neighbouring_words() {
    for (a, b, want) in [
        ("a b c", "A, b; C.", 1.0),
        ("", "", 1.0),
        ("a", "", 0.0),
        ("one", "ONE", 1.0),
        ("a b c", "a b d", 1.0 / 3.0),
        ("x attacks y", "y attacks x", 0.0),
    ] {
        assert!(
            (overlap(a, b) - want).abs() < 1e-9,
            "{a} / {b}: {}",
            overlap(a, b)
        );
        assert!((overlap(a, b) - overlap(b, a)).abs() < 1e-9);
    }
}

#[test]
fn the_same_in_nearly_the_same_words_is_a_near_duplicate() {
    for other in [
        NOTE.to_owned(),
        NOTE.to_uppercase(),
        swapped("195.16.88.6", "195[.]16[.]88[.]6"),
        swapped("late in", "late  in\n"),
        swapped("the implant", "this implant"),
        swapped("operators noticed", "the operators had noticed"),
        swapped("report, ", "report "),
    ] {
        assert!(is_near_duplicate(NOTE, &other, MIN), "{other}");
        assert!(is_near_duplicate(&other, NOTE, MIN), "{other}");
    }
}

#[test]
fn another_value_name_or_negation_is_another_fact() {
    for other in [
        swapped("195.16.88.6", "195.16.88.7"),
        swapped("2016-12-17", "2016-12-18"),
        swapped("443", "8443"),
        swapped("Sandworm", "APT28"),
        swapped("Industroyer", "BlackEnergy"),
        swapped("Ukraine", "Poland"),
        swapped("Sandworm used", "Sandworm never used"),
        swapped("Sandworm used", "Sandworm may have used"),
        swapped("operators noticed", "operators only noticed"),
        swapped(" on 2016-12-17", ""),
        swapped("a substation", "two substations"),
        format!("{NOTE} CVE-2015-5374 too."),
    ] {
        assert!(!is_near_duplicate(NOTE, &other, 0.5), "{other}");
        assert!(!is_near_duplicate(&other, NOTE, 0.5), "{other}");
    }
    for (a, b) in [
        (
            "The gateway is vulnerable to the attack.",
            "The gateway is not vulnerable to the attack.",
        ),
        (
            "The gateway is patched against it today.",
            "The gateway is unpatched against it today.",
        ),
        (
            "The server isn't affected by the bug.",
            "The server is affected by the bug.",
        ),
        (
            "All three hosts were cleaned by us.",
            "All four hosts were cleaned by us.",
        ),
        (
            "Germany was hit by the same wiper.",
            "France was hit by the same wiper.",
        ),
    ] {
        assert!(!is_near_duplicate(a, b, 0.1), "{a} / {b}");
    }
}

#[test]
fn who_did_what_to_whom_and_what_is_said_of_it_are_facts() {
    let long = "The incident report of the energy sector says that the beacon slept for a night before lateral movement \
                through the mail server began, that the credential dump was staged on a share, and that";
    for (a, b) in [
        (
            "Turla attacked Lazarus Group servers",
            "Lazarus Group attacked Turla servers",
        ),
        (
            "data flowed from 10.0.0.1 to 10.9.9.2",
            "data flowed from 10.9.9.2 to 10.0.0.1",
        ),
        ("the victim is a bank", "the victim is a hospital"),
        ("ministries were asked", "embassies were asked"),
        ("operators noticed it", "operators saw it"),
        ("its jitter is < 5 seconds", "its jitter is > 5 seconds"),
        ("the offset is 5 bytes", "the offset is -5 bytes"),
        ("it is malware.", "it is malware?"),
        ("ransom and loader came", "loader and ransom came"),
    ] {
        let (a, b) = (format!("{long} {a}"), format!("{long} {b}"));
        assert!(overlap(&a, &b) > 0.7, "{a} / {b}: {}", overlap(&a, &b));
        assert!(!is_near_duplicate(&a, &b, 0.5), "{a} / {b}");
        assert!(!is_near_duplicate(&b, &a, 0.5), "{b} / {a}");
    }
    for (a, b) in [("👍👍👍", "👎👎👎"), ("\u{200b}", "\0"), ("﷽", "!")] {
        assert!(!is_near_duplicate(a, b, 0.0), "{a} / {b}");
    }
    // A text that says more may supersede one that says less, not vice versa.
    let (less, more) = (format!("{long} logs went"), format!("{long} logs quietly went"));
    assert!(is_near_duplicate(&less, &more, MIN) && !is_near_duplicate(&more, &less, MIN));
}

#[test]
fn names_of_one_thing_are_one_fact() {
    let facts = KeyFacts::of("Fancy Bear used CVE-2023-23397 on 2023-04-01.");
    assert_eq!(facts, KeyFacts::of("On 2023-04-01, APT28: CVE-2023-23397"));
    assert!(facts.share(&KeyFacts::of("APT 28 again")) && !facts.share(&KeyFacts::of("on 2023-04-01")));
    assert!(facts.cover(&KeyFacts::of("APT28")) && !facts.cover(&KeyFacts::of("APT28 in 2024")));
    let both = KeyFacts::of("APT28").union(&KeyFacts::of("CVE-2023-23397 2023-04-01"));
    assert_eq!(both, facts);
}

#[test]
fn turning_words_and_contained_words() {
    assert!(
        qualifying_words("It is NOT only seen by APT28.")
            .into_iter()
            .eq(["not", "only"])
    );
    assert!((containment("They used mimikatz twice", "Mimikatz is being used") - 0.5).abs() < 1e-9);
    assert!(containment("PWNED", "APT28 uses X-Agent") < 1e-9);
    assert!((containment("it is so", "") - 1.0).abs() < 1e-9);
}

#[test]
fn long_texts_are_compared_quickly() {
    let long = NOTE.repeat(250);
    let since = std::time::Instant::now();
    assert!(is_near_duplicate(&long, &long, MIN));
    assert!(since.elapsed().as_secs() < 10, "{:?}", since.elapsed());
    // The worst case: every word differs.
    let (a, b): (String, String) = (
        (0..10_000).map(|at| format!("wa{} ", letters(at))).collect(),
        (0..10_000).map(|at| format!("wb{} ", letters(at))).collect(),
    );
    assert!(!is_near_duplicate(&a, &b, 0.0) && overlap(&a, &b) < 1e-9);
    assert!(since.elapsed().as_secs() < 20, "{:?}", since.elapsed());
}

fn letters(number: usize) -> String {
    number
        .to_string()
        .chars()
        .map(|c| char::from(b'a' + (c as u8 - b'0')))
        .collect()
}

proptest! {
    #[test]
    fn a_text_duplicates_itself(text in r"(\PC|[a-z]{1,4} |not |8\.8\.4\.4 ){0,40}") {
        prop_assert!(is_near_duplicate(&text, &text, 1.0));
    }

    #[test]
    fn nothing_of_the_older_one_is_lost(a in r"([a-d]{1,2} |not |1 |B ){0,12}", b in r"([a-d]{1,2} |not |1 |B ){0,12}") {
        if is_near_duplicate(&a, &b, 0.3) {
            prop_assert_eq!(KeyFacts::of(&a), KeyFacts::of(&b));
            let (older, newer) = (words(&a), words(&b));
            let missing = older.iter().find(|word| !newer.contains(word) && !STOP_WORD_SET.contains(word.as_str()));
            prop_assert_eq!(missing, None);
        }
        // Mutual near-duplicates must have the same meaningful words.
        if is_near_duplicate(&a, &b, 0.3) && is_near_duplicate(&b, &a, 0.3) {
            prop_assert_eq!(PreparedText::new(&a).carrying, PreparedText::new(&b).carrying);
        }
    }
}
