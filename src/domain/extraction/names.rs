//! Finds all gazetteer names in a text in a single pass.
//!
//! Each name is matched with its parts joined by a space, a hyphen or nothing. Names that are also ordinary words
//! count only in their own case, and some only beside a word that says what they are.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use super::gazetteer::{Entry, Gazetteer, Mode};
use super::rule_names;
use super::source::{Source, is_one_of};
use crate::domain::cursor::Cursor;

/// Words that trigger the search for a detection rule's name.
const TRIGGERS: [&str; 4] = ["yara", "sigma", "logsource:", "rule "];

/// Words beside which an ordinary word is a name.
const CONTEXT: &[&str] = &[
    "malware",
    "ransomware",
    "backdoor",
    "trojan",
    "rat",
    "implant",
    "loader",
    "dropper",
    "downloader",
    "tool",
    "tools",
    "toolkit",
    "framework",
    "group",
    "actor",
    "actors",
    "apt",
    "gang",
    "operators",
    "operator",
    "affiliates",
    "affiliate",
    "spyware",
    "worm",
    "botnet",
    "stealer",
    "infostealer",
    "rootkit",
    "wiper",
    "hackers",
    "cluster",
    "keylogger",
    "beacon",
    "bootkit",
    "family",
    "variant",
    "samples",
    "sample",
    "payload",
    "payloads",
    "c2",
    "encryptor",
    "miner",
    "webshell",
    "locker",
    "banker",
    "virus",
    "shellcode",
    "adversary",
    "extortionists",
    "exploit",
    "kit",
    "modules",
    "infection",
    "infections",
    "stager",
    "raas",
    "implants",
    "backdoors",
];
/// Verbs that introduce a name.
const NAMING: &[&str] = &[
    "called",
    "named",
    "dubbed",
    "aka",
    "deployed",
    "deploys",
    "deploying",
    "dropped",
    "drops",
    "delivers",
];

/// A case-insensitive name, and the cases in which it is written.
#[derive(Debug)]
struct Pattern {
    entry: usize,
    forms: Vec<(Mode, String)>,
}

/// The automaton over all names, and the meaning of each pattern.
#[derive(Debug)]
pub(super) struct NameFinder {
    automaton: Option<AhoCorasick>,
    patterns: Vec<Pattern>,
}

impl NameFinder {
    pub fn new(gazetteer: &Gazetteer) -> Self {
        let mut by_text: BTreeMap<String, Pattern> = BTreeMap::new();
        for (at, entry) in gazetteer.entries().iter().enumerate() {
            for (name, mode) in entry.names().zip(&entry.modes) {
                for text in spellings(name) {
                    let pattern = by_text.entry(text.to_ascii_lowercase());
                    pattern
                        .or_insert_with(|| Pattern {
                            entry: at,
                            forms: Vec::new(),
                        })
                        .forms
                        .push((*mode, text));
                }
            }
        }
        let words = TRIGGERS.iter().copied().chain(by_text.keys().map(String::as_str));
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words)
            .ok();
        NameFinder {
            automaton,
            patterns: by_text.into_values().collect(),
        }
    }

    /// Records every name in the source.
    pub fn find(&self, source: &mut Source<'_>, gazetteer: &Gazetteer) {
        let Some(automaton) = &self.automaton else { return };
        let mut cursor = Cursor::new(source.text);
        while let Some(found) = automaton.find(Input::new(source.text).range(cursor.at()..)) {
            let (start, end) = (found.start(), found.end());
            // A longer pattern that merely starts inside a word must not hide the next name.
            cursor.skip_to(start);
            cursor.bump();
            let index = found.pattern().as_usize();
            if !starts_word(source, start) {
                continue;
            }
            let pattern = index
                .checked_sub(TRIGGERS.len())
                .and_then(|at| self.patterns.get(at));
            match pattern {
                None => trigger(source, index, start, end),
                Some(pattern) if ends_word(source, end) || ends_plural(source, start, end) => {
                    let entry = gazetteer.entries().get(pattern.entry);
                    if entry.is_some_and(|entry| name(source, pattern, entry, start, end)) {
                        cursor.skip_to(end);
                    }
                }
                Some(_) => {}
            }
        }
    }
}

fn trigger(source: &mut Source<'_>, index: usize, start: usize, end: usize) {
    match index {
        0 if ends_word(source, end) => rule_names::after_yara(source, end),
        1 if ends_word(source, end) => rule_names::after_sigma(source, end),
        2 => rule_names::at_log_source(source, start),
        3 => rule_names::at_rule(source, start),
        _ => {}
    }
}

fn name(source: &mut Source<'_>, pattern: &Pattern, entry: &Entry, start: usize, end: usize) -> bool {
    let written = source.text.get(start..end).unwrap_or_default();
    let counts = pattern.forms.iter().any(|(mode, text)| match mode {
        Mode::Any => true,
        Mode::Exact => written == text,
        Mode::Context => written == text && has_context(source, start, end),
    });
    if counts {
        let exact = pattern.forms.iter().any(|(_, text)| written == text);
        let confidence = if exact { 0.95 } else { 0.88 };
        source.push(
            entry.kind,
            entry.name.clone(),
            start..end,
            "gazetteer-name",
            confidence,
        );
    }
    counts
}

fn has_context(source: &Source<'_>, start: usize, end: usize) -> bool {
    let before = source.previous_words(start).any(|word| is_one_of(word, CONTEXT));
    let naming = is_one_of(source.previous_word(start), NAMING);
    let after = source.after(end, 32);
    let after = after.split(['.', '\n', ';']).next().unwrap_or_default();
    let mut words = after
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(2);
    before || naming || words.any(|word| is_one_of(word, CONTEXT))
}

fn starts_word(source: &Source<'_>, at: usize) -> bool {
    source
        .before(at, 4)
        .chars()
        .next_back()
        .is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

fn ends_word(source: &Source<'_>, at: usize) -> bool {
    source
        .after(at, 4)
        .chars()
        .next()
        .is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

/// Whether this is the plural of a long enough name: `Cobalt Strike beacons`.
fn ends_plural(source: &Source<'_>, start: usize, end: usize) -> bool {
    end - start > 5 && source.after(end, 1) == "s" && ends_word(source, end + 1)
}

/// A name with its parts joined in each of the usual ways.
fn spellings(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut previous = ' ';
    for c in name.chars() {
        let boundary = matches!(c, ' ' | '-') || (c.is_ascii_digit() && previous.is_alphabetic());
        if boundary && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(String::new());
        }
        if !matches!(c, ' ' | '-')
            && let Some(part) = parts.last_mut()
        {
            part.push(c);
        }
        previous = c;
    }
    // `H1N1` and `Cl0p` have one spelling only: a single digit inside a word acts as a letter.
    let spaced = name.contains([' ', '-']);
    let number = parts
        .last()
        .is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()));
    let mut out = vec![name.to_owned()];
    if parts.len() > 1 && parts.len() <= 4 && (spaced || number) {
        for separator in [" ", "-", ""] {
            let text = parts.join(separator);
            if !out.contains(&text) && text.len() > 3 {
                out.push(text);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::spellings;

    #[test]
    fn parts_are_joined_in_each_usual_way() {
        assert_eq!(spellings("APT28"), ["APT28", "APT 28", "APT-28"]);
        assert_eq!(spellings("Fancy Bear"), ["Fancy Bear", "Fancy-Bear", "FancyBear"]);
        assert_eq!(spellings("X-Agent"), ["X-Agent", "X Agent", "XAgent"]);
        assert_eq!(spellings("Cl0p"), ["Cl0p"]);
        assert_eq!(spellings("Emotet"), ["Emotet"]);
    }
}
