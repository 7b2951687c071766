//! Finds all gazetteer names in a text in a single pass.
//!
//! Each name is matched with its parts joined by a space, a hyphen or nothing. Names that are also ordinary words
//! count only in their own case, and some only where the [`context`] says what they are.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind};

use super::gazetteer::{Gazetteer, Mode};
use super::source::Source;
use super::{context, rule_names};
use crate::domain::cursor::Cursor;

/// Words that trigger the search for a detection rule's name.
const TRIGGERS: [&str; 4] = ["yara", "sigma", "logsource:", "rule "];

/// What stands between two items of a list.
const JOINTS: [&str; 9] = [", ", " and ", ", and ", " or ", ", or ", "/", " / ", " & ", " ("];
/// Confidence in a name that is spelled as in the list.
const SPELLED: f32 = 0.95;
/// Confidence in another case or with its parts joined otherwise.
const RESPELLED: f32 = 0.88;
/// Confidence in an ordinary word that is a name elsewhere in the text.
const RECALLED: f32 = 0.8;

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
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(words)
            .ok();
        NameFinder {
            automaton,
            patterns: by_text.into_values().collect(),
        }
    }

    /// Records every name in the source.
    pub fn find(&self, source: &mut Source<'_>, gazetteer: &Gazetteer) {
        let found = self.candidates(source, gazetteer);
        for candidate in accepted(source, gazetteer, found) {
            let Some(entry) = gazetteer.entries().get(candidate.entry) else {
                continue;
            };
            source.push(
                entry.kind,
                entry.name.clone(),
                candidate.span,
                "gazetteer-name",
                candidate.confidence,
            );
        }
    }

    /// Every spelling of a name, in text order.
    fn candidates(&self, source: &mut Source<'_>, gazetteer: &Gazetteer) -> Vec<Candidate> {
        let mut found = Vec::new();
        let Some(automaton) = &self.automaton else {
            return found;
        };
        let mut cursor = Cursor::new(source.text);
        while let Some(hit) = automaton.find(Input::new(source.text).range(cursor.at()..)) {
            let (start, end) = (hit.start(), hit.end());
            // A longer pattern that merely starts inside a word must not hide the next name.
            cursor.skip_to(start);
            cursor.bump();
            if !starts_word(source, start) {
                continue;
            }
            if hit.pattern().as_usize() < TRIGGERS.len() {
                trigger(source, hit.pattern().as_usize(), start, end);
            } else if let Some(candidate) = self.longest(source, gazetteer, hit) {
                // The words of a doubtful name may be others' names.
                if candidate.sure {
                    cursor.skip_to(candidate.span.end);
                }
                found.push(candidate);
            }
        }
        found
    }

    /// The longest name that starts with this hit and is cased and bounded as a name is. A hit is no longer than the
    /// longest name, so this takes bounded time.
    fn longest(&self, source: &Source<'_>, gazetteer: &Gazetteer, hit: Match) -> Option<Candidate> {
        let start = hit.start();
        let mut next = Some(hit);
        while let Some(hit) = next.filter(|hit| hit.start() == start) {
            let index = hit.pattern().as_usize().checked_sub(TRIGGERS.len());
            let pattern = index.and_then(|at| self.patterns.get(at));
            let bounded = ends_word(source, hit.end()) || ends_plural(source, start, hit.end());
            if let Some(pattern) = pattern.filter(|_| bounded)
                && let Some(candidate) = candidate(source, gazetteer, pattern, hit.range())
            {
                return Some(candidate);
            }
            let shorter = Input::new(source.text).range(start..hit.end() - 1);
            next = self.automaton.as_ref()?.find(shorter);
        }
        None
    }
}

/// A spelling of a name in the text.
#[derive(Debug)]
struct Candidate {
    entry: usize,
    span: Range<usize>,
    confidence: f32,
    /// Whether it is a name as it stands; otherwise the rest of the text decides.
    sure: bool,
    /// Whether only the beginning of a sentence makes it doubtful.
    inside: bool,
}

fn candidate(
    source: &Source<'_>,
    gazetteer: &Gazetteer,
    pattern: &Pattern,
    span: Range<usize>,
) -> Option<Candidate> {
    let written = source.text.get(span.clone())?;
    let as_written = |wanted: Mode| {
        let mut forms = pattern.forms.iter();
        forms.any(|(mode, text)| *mode == wanted && is_cased(written, text))
    };
    let any = pattern.forms.iter().any(|(mode, _)| *mode == Mode::Any);
    let inside = as_written(Mode::Inside);
    // A plural is none of a name that needs its case.
    if !any && !ends_word(source, span.end) {
        return None;
    }
    let mut sure = any || as_written(Mode::Exact);
    if !sure && !inside && !as_written(Mode::Context) {
        return None;
    }
    if !sure {
        let kind = gazetteer.entries().get(pattern.entry)?.kind;
        let within =
            inside && context::stands_alone(source, &span) && !context::begins_sentence(source, &span);
        sure = within || context::is_name(source, kind, &span);
    }
    let spelled = pattern.forms.iter().any(|(_, text)| written == text);
    let confidence = if spelled { SPELLED } else { RESPELLED };
    Some(Candidate {
        entry: pattern.entry,
        span,
        confidence,
        sure,
        inside,
    })
}

/// Whether a name that needs its case has it: each word of a phrase may also begin with a capital.
fn is_cased(written: &str, name: &str) -> bool {
    let capitals = |text: &str| {
        text.split([' ', '-'])
            .all(|word| !word.starts_with(char::is_lowercase))
    };
    written == name || (name.contains([' ', '-']) && capitals(name) && capitals(written))
}

/// The sure candidates, and the doubtful ones for which the text itself speaks: they stand in a list beside a name,
/// or the same text names their entry surely and they stand alone inside a sentence.
fn accepted(source: &Source<'_>, gazetteer: &Gazetteer, mut found: Vec<Candidate>) -> Vec<Candidate> {
    if found.iter().all(|candidate| candidate.sure) {
        return found;
    }
    let named: HashSet<usize> = found.iter().filter(|one| one.sure).map(|one| one.entry).collect();
    for at in 0..found.len() {
        join(source, gazetteer, &mut found, at, at.checked_sub(1));
    }
    for at in (0..found.len()).rev() {
        join(source, gazetteer, &mut found, at, Some(at + 1));
    }
    for candidate in found.iter_mut().filter(|one| !one.sure) {
        candidate.sure = named.contains(&candidate.entry)
            && context::stands_alone(source, &candidate.span)
            && (candidate.inside || !context::begins_sentence(source, &candidate.span));
        candidate.confidence = RECALLED;
    }
    found.retain(|candidate| candidate.sure);
    found
}

/// Makes the candidate sure if a list joins it to a neighbour that is sure and of the same sort, or if it follows one
/// as its other name.
fn join(
    source: &Source<'_>,
    gazetteer: &Gazetteer,
    found: &mut [Candidate],
    at: usize,
    neighbour: Option<usize>,
) {
    let sort = |candidate: &Candidate| {
        let entry = gazetteer.entries().get(candidate.entry);
        entry.map(|entry| entry.kind.node_type())
    };
    let (Some(one), Some(other)) = (found.get(at), neighbour.and_then(|at| found.get(at))) else {
        return;
    };
    let between = one.span.end.min(other.span.end)..one.span.start.max(other.span.start);
    let gap = source.text.get(between).unwrap_or_default();
    let alias = gap == " (";
    let joined = JOINTS.contains(&gap) && other.sure && (one.sure || alias || sort(one) == sort(other));
    if let Some(one) = found.get_mut(at)
        && joined
    {
        one.sure = true;
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
