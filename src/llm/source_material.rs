//! Whether a text adds names, numbers or negations of its own.
//!
//! The check does not understand meaning: a wrong combination of given facts passes, and so does an invented name that
//! starts a sentence and looks like an ordinary word.

use std::collections::{BTreeSet, HashSet};

use super::ground::Haystack;
use crate::domain::extraction::Extractor;
use crate::domain::memory::similarity::words;

/// Words that negate, qualify or enlarge a statement.
const NEGATIONS: &str = "\
    no not never none nothing nobody neither nor without cannot cant isnt arent wasnt werent dont doesnt didnt wont \
    wouldnt couldnt shouldnt hasnt havent hadnt unconfirmed confirmed denied denies refuted disproved false benign \
    patched fixed mitigated retracted withdrawn thousand thousands million millions billion billions nicht kein keine \
    nie";
/// A sentence with one of these may be about the notes themselves and may say what they lack.
const OF_NOTES: &str = "note notes source sources information evidence notizen quellen";
/// Month and weekday names, as dates may be written out.
const DATES: &str = "\
    january february march april may june july august september october november december jan feb mar apr jun jul aug \
    sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday utc i";
/// Common abbreviations of the field.
const SHORT: &str =
    "c2 ttp ttps ioc iocs cve cves apt apts ip ips url urls dns http https vpn rat rats ics ot it tlp";
/// Number of leading letters by which word forms are matched: Russia, Russian.
const STEM: usize = 5;
/// Two of these identify German, where every noun is capitalised.
const GERMAN: &str = "der die das und ist nicht von mit eine wurde";

/// The given material.
#[derive(Debug)]
pub struct SourceMaterial {
    haystack: Haystack,
    /// Canonical values found by the rules.
    values: HashSet<String>,
    numbers: BTreeSet<String>,
    turning: BTreeSet<String>,
    stems: HashSet<String>,
}

impl SourceMaterial {
    pub fn new(given: &str) -> Self {
        let hits = Extractor::shared().extract(given);
        Self {
            haystack: Haystack::new(given),
            values: hits.into_iter().map(|hit| hit.value).collect(),
            numbers: numbers(given),
            turning: negations(given).collect(),
            stems: words(given).iter().filter_map(|word| stem(word)).collect(),
        }
    }

    /// Whether all names, numbers and negations of a text were given.
    pub fn invents_nothing(&self, text: &str) -> bool {
        let Some(rest) = self.replace_known(text) else {
            return false;
        };
        let lines = || rest.lines().map(without_list_mark);
        lines().all(|line| numbers(line).is_subset(&self.numbers))
            && lines()
                .flat_map(sentences)
                .all(|sentence| self.adds_no_negation(sentence))
            && (is_german(&rest)
                || lines()
                    .flat_map(sentences)
                    .flat_map(names)
                    .all(|name| self.knows_name(name)))
    }

    /// Replaces everything that the rules find with a placeholder; `None` if any of it is unknown, even by alias or
    /// spelling.
    fn replace_known(&self, text: &str) -> Option<String> {
        let mut rest = String::with_capacity(text.len());
        let mut end = 0;
        for hit in Extractor::shared().extract(text) {
            let known = self.values.contains(&hit.value)
                || self.haystack.name(hit.text(text)).is_some()
                || self.haystack.name(&hit.value).is_some();
            if !known {
                return None;
            }
            rest.push_str(text.get(end..hit.span.start)?);
            rest.push_str("it");
            end = hit.span.end;
        }
        rest.push_str(text.get(end..)?);
        Some(rest)
    }

    fn adds_no_negation(&self, sentence: &str) -> bool {
        let of_notes = words(sentence)
            .iter()
            .any(|word| OF_NOTES.split(' ').any(|known| known == word));
        of_notes || negations(sentence).all(|word| self.turning.contains(&word))
    }

    fn knows_name(&self, name: &str) -> bool {
        let folded = name.to_lowercase();
        let common = DATES
            .split(' ')
            .chain(SHORT.split(' '))
            .any(|word| word == folded);
        let form = stem(&folded).is_some_and(|stem| self.stems.contains(&stem));
        common || form || self.haystack.name(name).is_some()
    }
}

/// The stem of a word, if the word is long enough.
fn stem(word: &str) -> Option<String> {
    let stem: String = word.chars().take(STEM).collect();
    (stem.chars().count() == STEM).then_some(stem)
}

/// Digit runs not preceded by a letter, without leading zeros and thousands separators.
fn numbers(text: &str) -> BTreeSet<String> {
    let chars: Vec<char> = text.chars().collect();
    let digit = |at: usize| chars.get(at).filter(|c| c.is_ascii_digit());
    let mut found = BTreeSet::new();
    let (mut run, mut part_of_word) = (String::new(), false);
    for at in 0..=chars.len() {
        if let Some(c) = digit(at) {
            if run.is_empty() {
                let before = at.checked_sub(1).and_then(|at| chars.get(at));
                part_of_word = before.is_some_and(|c| c.is_alphabetic());
            }
            run.push(*c);
            continue;
        }
        let thousands = chars.get(at) == Some(&',')
            && (at + 1..at + 4).all(|at| digit(at).is_some())
            && digit(at + 4).is_none();
        if thousands || run.is_empty() {
            continue;
        }
        let number = run.trim_start_matches('0');
        if !part_of_word {
            found.insert(if number.is_empty() { "0" } else { number }.to_owned());
        }
        run.clear();
    }
    found
}

fn negations(text: &str) -> impl Iterator<Item = String> {
    let turns = |word: &String| NEGATIONS.split(' ').any(|known| known == word);
    words(text).into_iter().filter(turns)
}

/// A line without its list marker: `1.`, `2)`.
fn without_list_mark(line: &str) -> &str {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let marked = rest.len() < line.len() && line.len() - rest.len() <= 2;
    match rest.strip_prefix(['.', ')']) {
        Some(rest) if marked && rest.starts_with(' ') => rest,
        Some(_) | None => line,
    }
}

fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut end = ' ';
    line.split_inclusive(move |c: char| {
        let ends = c.is_whitespace() && matches!(end, '.' | '!' | '?' | ':' | ';');
        end = c;
        ends
    })
}

/// Words of a sentence that look like names.
fn names(sentence: &str) -> impl Iterator<Item = &str> {
    let words = sentence.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '’')));
    let words = words
        .map(|word| word.trim_end_matches("'s").trim_end_matches("’s"))
        .filter(|word| !word.is_empty());
    words.enumerate().filter_map(|(at, word)| {
        let mut letters = word.chars();
        let capital = letters.next().is_some_and(char::is_uppercase);
        let inner = letters.any(char::is_uppercase);
        ((capital && at > 0) || inner).then_some(word)
    })
}

fn is_german(text: &str) -> bool {
    let words: HashSet<String> = words(text).into_iter().collect();
    GERMAN.split(' ').filter(|word| words.contains(*word)).count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invents_nothing(text: &str) -> bool {
        SourceMaterial::new(
            "SilkMoth deployed BlueLoader against 1,200 banks in Prague on 2024-03-01. Fancy Bear did not.\n\
             Who deployed it?\n",
        )
        .invents_nothing(text)
    }

    #[test]
    fn what_was_given_may_be_said_in_other_words() {
        for text in [
            "SilkMoth used BlueLoader.",
            "On 1 March 2024, SilkMoth attacked 1200 banks in Prague with BlueLoader.",
            "Attackers deployed it; APT28 did not.",
            "1. SilkMoth did it.\n2) It used BlueLoader.",
            "SilkMoth did. The notes do not say why.",
            "SilkMoth's loader had a C2 server. Additionally, the Praguers paid.",
            "Die Gruppe SilkMoth hat die Banken in Prag mit dem Lader BlueLoader angegriffen und infiziert.",
            "",
        ] {
            assert!(invents_nothing(text), "{text}");
        }
    }

    #[test]
    fn names_numbers_and_negations_of_its_own_are_told() {
        for text in [
            "SilkMoth used BlueLoader against 1,300 banks.",
            "SilkMoth used BlueLoader against 12 banks.",
            "SilkMoth used BlueLoader in 2023.",
            "SilkMoth never used BlueLoader.",
            "SilkMoth denied it, and stole millions.",
            "SilkMoth used BlueLoader on behalf of Ruritania.",
            "SilkMoth used BlueLoader. It belongs to the GRU.",
            "RedMoth used BlueLoader.",
            "SilkMoth and Sandworm used BlueLoader.",
            "SilkMoth used BlueLoader through CVE-2024-3094.",
        ] {
            assert!(!invents_nothing(text), "{text}");
        }
    }

    #[test]
    fn numbers_are_runs_of_digits() {
        let of = |text: &str| numbers(text).into_iter().collect::<Vec<_>>();
        assert_eq!(
            of("1,200 of 1200, 2024-03-01, 00, v2.10"),
            ["0", "1", "10", "1200", "2024", "3"]
        );
        assert_eq!(of("1,20 and 1,2000"), ["1", "20", "2000"]);
        assert!(of("none").is_empty());
    }
}
