//! A corpus of sentences, and properties that hold for any text.

mod forward;
mod introductions;
mod lists;
mod names;
mod ordinary_phrases;
mod scripts;
mod time;

use std::collections::HashMap;

use chrono::DateTime;
use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::domain::question::Question;

#[derive(Deserialize)]
struct Sample {
    text: String,
    hits: Vec<(EntityKind, String)>,
}

fn corpus() -> Vec<Sample> {
    include_str!("../../../tests/data/extraction_corpus.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn found(text: &str) -> Vec<(EntityKind, String)> {
    Extractor::shared()
        .extract(text)
        .into_iter()
        .map(|hit| (hit.kind, hit.value))
        .collect()
}

#[test]
fn precision_and_recall_on_the_corpus_are_at_least_97_percent() {
    let samples = corpus();
    assert!(samples.len() >= 240, "{} sentences", samples.len());
    let (mut right, mut wrong, mut missed) = (0, 0, 0);
    for sample in &samples {
        let mut open: HashMap<&(EntityKind, String), i32> = HashMap::new();
        for hit in &sample.hits {
            *open.entry(hit).or_default() += 1;
        }
        for hit in found(&sample.text) {
            match open.get_mut(&hit).filter(|left| **left > 0) {
                Some(left) => {
                    *left -= 1;
                    right += 1;
                }
                None => {
                    wrong += 1;
                    println!("wrong:  {} {:?} in {:?}", hit.0, hit.1, sample.text);
                }
            }
        }
        for (hit, left) in open.into_iter().filter(|(_, left)| *left > 0) {
            missed += left;
            println!("missed: {} {:?} in {:?}", hit.0, hit.1, sample.text);
        }
    }
    let precision = f64::from(right) / f64::from(right + wrong);
    let recall = f64::from(right) / f64::from(right + missed);
    println!(
        "precision {precision:.4} recall {recall:.4} on {} sentences",
        samples.len()
    );
    assert!(
        precision >= 0.97 && recall >= 0.97,
        "precision {precision} recall {recall}"
    );
}

#[test]
fn hits_stand_where_they_say_in_the_original() {
    let text =
        "APT\u{2011}28 – “Fancy Bear” – sent hxxps://evil[.]com/a to bob[at]evil[.]com, 1.2.3[.]4 (ü).";
    let hits = Extractor::shared().extract(text);
    let texts: Vec<&str> = hits.iter().map(|hit| hit.text(text)).collect();
    assert_eq!(
        texts,
        [
            "APT\u{2011}28",
            "Fancy Bear",
            "hxxps://evil[.]com/a",
            "bob[at]evil[.]com",
            "1.2.3[.]4"
        ]
    );
}

#[test]
fn private_addresses_are_reported_with_less_confidence() {
    let confidence = |text| {
        Extractor::shared()
            .extract(text)
            .first()
            .map(|hit| hit.confidence)
    };
    assert!(confidence("from 10.0.0.5 to").is_some_and(|c| c <= 0.4));
    assert!(confidence("from 127.0.0.1 to").is_some_and(|c| c <= 0.4));
    assert!(confidence("from 45.77.10.3 to").is_some_and(|c| c >= 0.8));
}

/// Fragments that trigger rules, in any order.
fn tricky() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "hxxp",
        "http",
        "://",
        "[.]",
        "[",
        "]",
        "(dot)",
        " ",
        ".",
        "evil",
        "com",
        "é",
        "ß",
        "İ",
        "\u{200b}",
        "\u{2011}",
        "\\",
        "C:",
        "HKLM",
        "@",
        "[at]",
        "1.2.3.4",
        "/24",
        "::",
        "fe80",
        "CVE-2021-",
        "44228",
        "T1059",
        ".001",
        "APT",
        "28",
        "Snake",
        "malware",
        " the alias ",
        " dubbed ",
        "VexaSoul",
        " is a ",
        "uses",
        "\n",
        "\"",
        "(",
        ")",
        "YARA rule ",
        "Sigma rule ",
        "logsource:",
        "rule x {",
        "-",
        "_",
        ":",
        "/",
        "%",
        "TEMP",
        "bc1q",
        "𝕏",
        "“",
        "”",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let hits = Extractor::shared().extract(text);
    let mut last = 0;
    for hit in &hits {
        prop_assert!(
            hit.span.start >= last && hit.span.start < hit.span.end,
            "{:?}",
            hit
        );
        prop_assert!(text.get(hit.span.clone()).is_some(), "{:?}", hit);
        prop_assert!(
            !hit.value.is_empty() && (0.0..=1.0).contains(&hit.confidence),
            "{:?}",
            hit
        );
        last = hit.span.end;
    }
    for relation in stated_relations(text, &hits) {
        prop_assert!(relation.subject < hits.len() && relation.object < hits.len());
        prop_assert!(text.get(relation.sentence.clone()).is_some());
    }
    Question::read(text, DateTime::UNIX_EPOCH).filters();
    Ok(())
}

/// Fragments at which paths may be cut, joined or misread.
fn paths() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "\\",
        "\\\\",
        "/",
        ".",
        "..",
        ". ",
        " ",
        "  ",
        ":",
        "-",
        "_",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "%",
        "$env:",
        "\"",
        "'",
        "“",
        "”",
        "`",
        "```",
        "<",
        ">",
        "&",
        "=",
        "+",
        "!",
        "~",
        "#",
        "@",
        ",",
        ";",
        "\t",
        "\n",
        "C:\\",
        "HKLM\\",
        "HKLM:",
        "Software\\Microsoft\\",
        "%TEMP%\\",
        "/tmp/",
        "~/",
        "\\\\?\\",
        "u:\\b",
        "Program Files",
        "Documents and Settings",
        "Windows NT",
        "ProgramData",
        "Adobe.exe",
        "a.exe",
        ".exe",
        "Setup 1.docx",
        "x",
        "A",
        "An",
        "é",
        "漢",
    ]);
    prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn spans_are_ordered_and_inside_texts_of_paths_quotes_and_code(text in paths()) {
        check(&text)?;
    }

    #[test]
    fn spans_are_ordered_and_inside_any_text(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn spans_are_ordered_and_inside_tricky_text(text in tricky()) {
        check(&text)?;
    }

    #[test]
    fn a_defanged_value_is_found_again(
        name in "[a-z]{3,12}(-[a-z0-9]{1,6})?",
        tld in prop::sample::select(vec!["com", "net", "ru", "co.uk", "top", "info"]),
        user in "[a-z]{2,8}(\\.[a-z]{2,8})?",
        path in "(/[a-z0-9]{1,8}){0,3}",
        octets in (1u8..=223, any::<u8>(), any::<u8>(), any::<u8>()),
    ) {
        let host = format!("{name}.{tld}");
        let address = format!("{}.{}.{}.{}", octets.0, octets.1, octets.2, octets.3);
        for (kind, value) in [
            (EntityKind::Domain, host.clone()),
            (EntityKind::Email, format!("{user}@{host}")),
            (EntityKind::Url, format!("https://{host}{path}")),
            (EntityKind::Ipv4, address),
        ] {
            let text = format!("seen at {} today", defang(&value));
            prop_assert_eq!(found(&text), vec![(kind, value)]);
        }
    }
}
