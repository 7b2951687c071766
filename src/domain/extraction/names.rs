//! Finds all gazetteer names in a text in a single pass.
//!
//! Each name is matched with its parts joined by a space, a hyphen or nothing. Names that are also ordinary words
//! count only in their own case, and some only where the [`context`] says what they are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind};

use super::gazetteer::{Gazetteer, Mode};
use super::known::{self, KnownNames};
use super::mention::Mention;
use super::rules::rule_names;
use super::script::is_edge;
use super::source::Source;
use super::{context, introductions};
use crate::domain::cursor::Cursor;
use crate::domain::kinds::EntityKind;
use introductions::{IntroducedName, ResolvedName};

/// Words that trigger the search for a detection rule's name.
const RULES: [&str; 4] = ["yara", "sigma", "logsource:", "rule "];
/// The first patterns of the automaton are such words, and those that introduce names; then names follow.
const FIRST_VERB: usize = RULES.len();
const FIRST_VERB_AS: usize = FIRST_VERB + introductions::VERBS.len();
const FIRST_ALIAS: usize = FIRST_VERB_AS + introductions::VERBS_AS.len();
const FIRST_NOUN: usize = FIRST_ALIAS + introductions::ALIASES.len();
const FIRST_DEFINING: usize = FIRST_NOUN + introductions::NOUNS.len();
const FIRST_NAME: usize = FIRST_DEFINING + introductions::DEFINING.len();

/// What stands between two items of a list.
const JOINTS: [&str; 9] = [", ", " and ", ", and ", " or ", ", or ", "/", " / ", " & ", " ("];
/// The rule of a name that the text introduces.
pub(super) const INTRODUCED_NAME: &str = "introduced-name";
/// Confidence in a name that is spelled as in the list.
const SPELLED: f32 = 0.95;
/// Confidence in another case or with its parts joined otherwise.
const RESPELLED: f32 = 0.88;
/// Confidence in an ordinary word that is a name elsewhere in the text.
const RECALLED: f32 = 0.8;
/// Confidence in a name that no list has and the text introduces.
const INTRODUCED: f32 = 0.7;

/// A case-insensitive name, and the cases in which it is written.
#[derive(Debug)]
struct NamePattern {
    entry: usize,
    forms: Vec<(Mode, String)>,
}

/// The automaton over all names, and the meaning of each pattern.
#[derive(Debug)]
pub(super) struct NameFinder {
    automaton: Option<AhoCorasick>,
    patterns: Vec<NamePattern>,
}

impl NameFinder {
    pub fn new(gazetteer: &Gazetteer) -> Self {
        let mut by_text: BTreeMap<String, NamePattern> = BTreeMap::new();
        for (at, entry) in gazetteer.entries().iter().enumerate() {
            for (name, mode) in entry.names().zip(&entry.modes) {
                for text in spellings(name) {
                    let pattern = by_text.entry(text.to_ascii_lowercase());
                    pattern
                        .or_insert_with(|| NamePattern {
                            entry: at,
                            forms: Vec::new(),
                        })
                        .forms
                        .push((*mode, text));
                }
            }
        }
        let words = triggers().chain(by_text.keys().map(String::as_str));
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
    pub fn find(&self, source: &mut Source<'_>, gazetteer: &Gazetteer, own: &KnownNames) {
        let (found, introduced) = self.candidates(source, gazetteer);
        let mut named = Vec::new();
        for candidate in accept_candidates(source, gazetteer, found) {
            let Some(entry) = gazetteer.entries().get(candidate.entry) else {
                continue;
            };
            let (mut span, mut confidence) = (candidate.span, candidate.confidence);
            if entry.kind == EntityKind::Tool
                && let Some(end) = end_of_program(source, &span)
            {
                (span.end, confidence) = (end, SPELLED);
            }
            named.push(ResolvedName {
                kind: entry.kind,
                value: entry.name.clone(),
                span: span.clone(),
                known: Vec::new(),
            });
            source.push(entry.kind, entry.name.clone(), span, "gazetteer-name", confidence);
        }
        push_known(source, own, &mut named);
        push_introduced(source, introduced, &named);
    }

    /// Every spelling of a name, in text order.
    fn candidates(
        &self,
        source: &mut Source<'_>,
        gazetteer: &Gazetteer,
    ) -> (Vec<SpellingMatch>, Vec<IntroducedName>) {
        let (mut found, mut introduced) = (Vec::new(), Vec::new());
        let Some(automaton) = &self.automaton else {
            return (found, introduced);
        };
        let mut cursor = Cursor::new(source.text);
        while let Some(hit) = automaton.find(Input::new(source.text).range(cursor.at()..)) {
            let (start, end) = (hit.start(), hit.end());
            // A longer pattern that merely starts inside a word must not hide the next name.
            cursor.skip_to(start);
            cursor.bump();
            if !starts_word(source, start) || context::is_in_address(source, start) {
                continue;
            }
            if hit.pattern().as_usize() < FIRST_NAME {
                introduced.extend(trigger(source, hit.pattern().as_usize(), start, end));
            } else if let Some(candidate) = self.longest_match(source, gazetteer, hit) {
                // The words of a doubtful name may be others' names.
                if candidate.sure {
                    cursor.skip_to(candidate.span.end);
                }
                found.push(candidate);
            }
        }
        (found, introduced)
    }

    /// The longest name that starts with this hit and is cased and bounded as a name is. A hit is no longer than the
    /// longest name, so this takes bounded time.
    fn longest_match(&self, source: &Source<'_>, gazetteer: &Gazetteer, hit: Match) -> Option<SpellingMatch> {
        let start = hit.start();
        let mut next = Some(hit);
        while let Some(hit) = next.filter(|hit| hit.start() == start) {
            let index = hit.pattern().as_usize().checked_sub(FIRST_NAME);
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

/// Records the names that the memory knows, where the gazetteer has no name at least as long.
fn push_known(source: &mut Source<'_>, own: &KnownNames, named: &mut Vec<ResolvedName>) {
    for one in known::find(source, own) {
        let first = named.partition_point(|other| other.span.end <= one.span.start);
        let behind = named.partition_point(|other| other.span.start < one.span.end);
        let overlapping = named.get(first..behind.max(first)).unwrap_or_default();
        let Some(thing) = one.things.first() else {
            continue;
        };
        if overlapping.iter().any(|other| other.span.len() >= one.span.len()) {
            continue;
        }
        let resolved = ResolvedName {
            kind: thing.kind,
            value: thing.value.clone(),
            span: one.span.clone(),
            known: one.things.clone(),
        };
        source.hits.push(Mention {
            kind: thing.kind,
            value: thing.value.clone(),
            span: one.span,
            rule: "known-name",
            confidence: one.confidence,
            known: one.things,
        });
        named.splice(first..behind.max(first), [resolved]);
    }
}

/// Records the names that the text introduces, and their further places.
fn push_introduced(source: &mut Source<'_>, introduced: Vec<IntroducedName>, named: &[ResolvedName]) {
    let is_new = |span: &Range<usize>| {
        let next = named.partition_point(|other| other.span.end <= span.start);
        named.get(next).is_none_or(|other| other.span.start >= span.end)
    };
    let new: Vec<IntroducedName> = introduced.into_iter().filter(|one| is_new(&one.span)).collect();
    let own = |one: &IntroducedName| {
        Some(ResolvedName {
            kind: one.kind?,
            value: source.text.get(one.span.clone())?.to_owned(),
            span: one.span.clone(),
            known: Vec::new(),
        })
    };
    let of_place: HashMap<usize, ResolvedName> = new
        .iter()
        .filter(|one| one.also.is_none())
        .filter_map(|one| Some((one.span.end, own(one)?)))
        .collect();
    let other_of = |one: &IntroducedName| {
        let end = one.also?;
        let at = named.binary_search_by_key(&end, |other| other.span.end);
        let other = at
            .ok()
            .and_then(|at| named.get(at))
            .or_else(|| of_place.get(&end))?;
        Some(ResolvedName {
            span: one.span.clone(),
            ..other.clone()
        })
    };
    let new: Vec<ResolvedName> = new
        .iter()
        .filter_map(|one| other_of(one).or_else(|| own(one)))
        .collect();
    if new.is_empty() {
        return;
    }
    for one in introductions::find_all(source, &new) {
        if is_new(&one.span) {
            source.push(one.kind, one.value, one.span, INTRODUCED_NAME, INTRODUCED);
            if let Some(hit) = source.hits.last_mut() {
                hit.known = one.known;
            }
        }
    }
}

/// A spelling of a name in the text.
#[derive(Debug)]
struct SpellingMatch {
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
    pattern: &NamePattern,
    span: Range<usize>,
) -> Option<SpellingMatch> {
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
    let kind = gazetteer.entries().get(pattern.entry)?.kind;
    let program = kind == EntityKind::Tool && end_of_program(source, &span).is_some();
    let mut sure = any || program || as_written(Mode::Exact);
    let spelled = sure || inside || as_written(Mode::Context);
    if !spelled && !is_recased(written, pattern) {
        return None;
    }
    if !sure && spelled {
        let within =
            inside && context::stands_alone(source, &span) && !context::begins_sentence(source, &span);
        sure = within || context::is_name(source, kind, &span);
    }
    let exactly = pattern.forms.iter().any(|(_, text)| written == text);
    let confidence = if exactly { SPELLED } else { RESPELLED };
    Some(SpellingMatch {
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

/// Whether a name that needs its case is written in capitals or as a word with one: `SLIVER`, `Thallium`. The
/// words around say too little then ("the RAMP forum"): the text must name it in its own case, or in a list.
fn is_recased(written: &str, pattern: &NamePattern) -> bool {
    let same = |(_, text): &(Mode, String)| text.eq_ignore_ascii_case(written);
    let mut rest = written.chars().skip(1);
    let capital = written.len() > 3 && written.starts_with(char::is_uppercase);
    let even = rest.clone().all(char::is_uppercase) || rest.all(char::is_lowercase);
    capital && even && pattern.forms.iter().any(same)
}

/// The sure candidates, and the doubtful ones for which the text itself speaks: they stand in a list beside a name,
/// or the same text names their entry surely and they stand alone inside a sentence.
fn accept_candidates(
    source: &Source<'_>,
    gazetteer: &Gazetteer,
    mut found: Vec<SpellingMatch>,
) -> Vec<SpellingMatch> {
    if found.iter().all(|candidate| candidate.sure) {
        return found;
    }
    let named: HashSet<usize> = found.iter().filter(|one| one.sure).map(|one| one.entry).collect();
    for at in 0..found.len() {
        confirm_by_list(source, gazetteer, &mut found, at, at.checked_sub(1));
    }
    for at in (0..found.len()).rev() {
        confirm_by_list(source, gazetteer, &mut found, at, Some(at + 1));
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
fn confirm_by_list(
    source: &Source<'_>,
    gazetteer: &Gazetteer,
    found: &mut [SpellingMatch],
    at: usize,
    neighbour: Option<usize>,
) {
    let sort = |candidate: &SpellingMatch| {
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

fn triggers<'t>() -> impl Iterator<Item = &'t str> {
    let verbs = introductions::VERBS.into_iter().chain(introductions::VERBS_AS);
    let nouns = introductions::ALIASES.into_iter().chain(introductions::NOUNS);
    RULES
        .into_iter()
        .chain(verbs)
        .chain(nouns)
        .chain(introductions::DEFINING)
}

/// Follows a trigger; returns the name that it introduces.
fn trigger(source: &mut Source<'_>, index: usize, start: usize, end: usize) -> Option<IntroducedName> {
    match index {
        0 if ends_word(source, end) => rule_names::after_yara(source, end),
        1 if ends_word(source, end) => rule_names::after_sigma(source, end),
        2 => rule_names::at_log_source(source, start),
        3 => rule_names::at_rule(source, start),
        FIRST_VERB.. if !ends_word(source, end) => {}
        FIRST_VERB..FIRST_VERB_AS => return introductions::after_verb(source, start..end, false),
        FIRST_VERB_AS..FIRST_ALIAS => return introductions::after_verb(source, start..end, true),
        FIRST_ALIAS..FIRST_NOUN => return introductions::after_alias(source, start..end),
        FIRST_NOUN..FIRST_DEFINING => return introductions::beside_noun(source, start..end),
        FIRST_DEFINING..FIRST_NAME => return introductions::before_definition(source, start..end),
        _ => {}
    }
    None
}

pub(super) fn starts_word(source: &Source<'_>, at: usize) -> bool {
    let inner = source.after(at, 4).chars().next();
    source
        .before(at, 4)
        .chars()
        .next_back()
        .is_none_or(|c| (!c.is_alphanumeric() && c != '_') || inner.is_some_and(|inner| is_edge(c, inner)))
}

pub(super) fn ends_word(source: &Source<'_>, at: usize) -> bool {
    let inner = source.before(at, 4).chars().next_back();
    source
        .after(at, 4)
        .chars()
        .next()
        .is_none_or(|c| (!c.is_alphanumeric() && c != '_') || inner.is_some_and(|inner| is_edge(inner, c)))
}

/// Whether this is the plural of a long enough name: `Cobalt Strike beacons`.
fn ends_plural(source: &Source<'_>, start: usize, end: usize) -> bool {
    end - start > 5 && source.after(end, 1) == "s" && ends_word(source, end + 1)
}

/// Where the file name of a tool ends: `netsh.exe` and `Ping.exe` tell of the tool and are no indicators by themselves.
fn end_of_program(source: &Source<'_>, name: &Range<usize>) -> Option<usize> {
    const EXTENSION: &str = ".exe";
    let ends = |at: usize| {
        let extension = source.before(at, EXTENSION.len());
        extension.eq_ignore_ascii_case(EXTENSION) && ends_word(source, at)
    };
    [name.end, name.end + EXTENSION.len()]
        .into_iter()
        .find(|at| ends(*at))
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
    // Markdown escapes an underscore inside a word.
    if name.contains('_') {
        out.push(name.replace('_', "\\_"));
    }
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
        assert_eq!(spellings("More_eggs"), ["More_eggs", r"More\_eggs"]);
    }
}
