//! Phrases of ordinary words become no malware, tool or actor; what a text introduces by a name does.

use super::*;

fn names(text: &str) -> Vec<&str> {
    let hits = Extractor::shared().extract(text).into_iter();
    hits.filter(|hit| hit.kind.is_name())
        .map(|hit| text.get(hit.span).unwrap_or_default())
        .collect()
}

#[test]
fn phrases_of_ordinary_words_name_nothing() {
    let phrases: Vec<&str> = include_str!("../../../../tests/data/ordinary_phrases.txt")
        .lines()
        .collect();
    assert!(phrases.len() >= 80, "{} phrases", phrases.len());
    let mut wrong = Vec::new();
    for phrase in phrases {
        let found = names(phrase);
        if !found.is_empty() {
            wrong.push(format!("{found:?} in {phrase:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_that_a_text_introduces_are_found() {
    let rows: Vec<(&str, &str)> = include_str!("../../../../tests/data/introductions.txt")
        .lines()
        .filter_map(|line| line.split_once('|'))
        .collect();
    assert!(rows.len() >= 60, "{} introductions", rows.len());
    let mut missed = Vec::new();
    for (name, text) in rows {
        let found = names(text);
        if !found.contains(&name) {
            missed.push(format!("{name} in {text:?}: {found:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn the_form_of_a_company_is_no_file() {
    for text in [
        "The certificate was issued to Torvo Software s.r.o. in Brno.",
        "It belongs to Torvo d.o.o. and Torvo z.o.o.",
        "Torvo spol. s r.o. signed it, S.p.A. and e.g. i.e. a.k.a.",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}
