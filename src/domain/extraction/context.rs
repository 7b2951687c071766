//! Whether an ordinary word is a name where it stands: "Royal ransomware", "groups such as Play, Royal and Akira".
//!
//! A word with a capital is not enough: it may begin a sentence or belong to a longer name ("Royal Mail"). The word
//! must stand alone, and beside it must be a word that only threats have beside them, or a word that introduces a
//! name in a sentence about threats. Every window is bounded, so no text makes this slow.

use std::ops::Range;

use super::source::{Source, is_one_of};
use super::word_lists::{
    ABOUT_THREATS, BEFORE_A_NAME, GROUP_NOUNS, NOUN_MODIFIERS, THREAT_NOUNS, TOOL_NOUNS,
};
use crate::domain::kinds::EntityKind;

/// How far back a sentence is read.
const SENTENCE: usize = 200;
/// How far back the address of a link is read.
const ADDRESS: usize = 300;
/// Items of a list that are skipped to find what introduces it.
const LIST: usize = 8;
/// Words of one item of a list.
const ITEM: usize = 3;

/// Second words of a noun: exploit kit, web shell, information stealer.
const SECOND: &[&str] = &["kit", "shell", "miner", "tool"];
/// Words that introduce a name.
const INTRODUCING: &[&str] = &[
    "called",
    "named",
    "dubbed",
    "aka",
    "codenamed",
    "nicknamed",
    "like",
    "including",
    "include",
    "includes",
    "namely",
    "deployed",
    "deploys",
    "deploying",
    "deploy",
    "dropped",
    "drops",
    "delivers",
    "delivered",
    "executed",
    "installed",
    "downloads",
    "downloaded",
    "uses",
    "used",
    "using",
];

/// Whether the words around make this spelling a name of the kind.
pub(super) fn is_name(source: &Source<'_>, kind: EntityKind, span: &Range<usize>) -> bool {
    stands_alone(source, span) && (is_followed(source, kind, span) || is_preceded(source, span))
}

/// Whether the word is no part of a longer name, path or compound.
pub(super) fn stands_alone(source: &Source<'_>, span: &Range<usize>) -> bool {
    let after = source.after(span.end, 40);
    let next = after.strip_prefix(' ').map(first_word).unwrap_or_default();
    let longer = next.starts_with(char::is_uppercase) && !is_noun(next) && !is_one_of(next, &NOUN_MODIFIERS);
    let before = source.before(span.start, 40);
    let previous = before.strip_suffix(' ').map(last_word).unwrap_or_default();
    let part = previous.starts_with(char::is_uppercase)
        && !is_one_of(previous, &BEFORE_A_NAME)
        && !is_noun(previous);
    stands_apart(source, span) && !longer && !part
}

/// Whether the word is no part of a path or compound.
pub(super) fn stands_apart(source: &Source<'_>, span: &Range<usize>) -> bool {
    let after = source.after(span.end, 8);
    let joined = after.starts_with(['-', '/', '\\', '@', '_', '='])
        || after
            .strip_prefix(['.', ':', '+', '#', '&'])
            .is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    let before = source.before(span.start, 8);
    !joined && !before.ends_with(['-', '/', '\\', '@', '_', '.', '#', '=', '$', '&'])
}

/// Whether the place is in the address of a link or an image in Markdown, where a name is part of a path.
pub(super) fn is_in_address(source: &Source<'_>, at: usize) -> bool {
    let before = source.before(at, ADDRESS);
    let token = before.rsplit(char::is_whitespace).next().unwrap_or(before);
    token
        .rsplit_once("](")
        .is_some_and(|(_, address)| !address.contains(')'))
}

/// Whether the word begins a sentence, a line or an item of a list, where every word has a capital.
pub(super) fn begins_sentence(source: &Source<'_>, span: &Range<usize>) -> bool {
    let before = source.before(span.start, 16);
    let open = |c: char| matches!(c, ' ' | '\t' | '"' | '\'' | '“' | '‘' | '(' | '[' | '*' | '_');
    let before = before.trim_end_matches(open);
    before.is_empty()
        || before.ends_with([
            '.', '!', '?', ':', ';', '\n', '\r', '-', '–', '—', '•', '#', '>', '|',
        ])
}

/// "Royal ransomware", "the Zeus banking trojan", "the Akira group".
fn is_followed(source: &Source<'_>, kind: EntityKind, span: &Range<usize>) -> bool {
    let after = source.after(span.end, 64);
    let after = after
        .strip_prefix("'s")
        .or_else(|| after.strip_prefix("’s"))
        .unwrap_or(after);
    let after = after.trim_start_matches(['"', '”', '’', '\'', ')', '*']);
    let Some(after) = after.strip_prefix(' ') else {
        return false;
    };
    let mut words = after
        .split(' ')
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let mut next = || words.next().unwrap_or_default();
    let (first, second, third) = (next(), next(), next());
    if is_one_of(first, &THREAT_NOUNS) {
        return true;
    }
    let between = is_one_of(first, &NOUN_MODIFIERS);
    if between && (is_one_of(second, &THREAT_NOUNS) || is_one_of(second, SECOND)) {
        return true;
    }
    if between && is_one_of(second, &NOUN_MODIFIERS) && is_one_of(third, &THREAT_NOUNS) {
        return true;
    }
    // "Play groups" and "Phoenix Group" are not of this world: the noun is in lower case, inside a sentence.
    let nouns = if kind == EntityKind::Tool {
        &TOOL_NOUNS
    } else {
        &GROUP_NOUNS
    };
    let noun = if between { second } else { first };
    nouns.contains(&noun) && !begins_sentence(source, span)
}

/// "the backdoor Carbon", "malware called Snake", "ransomware groups such as Akira, Royal and Play".
fn is_preceded(source: &Source<'_>, span: &Range<usize>) -> bool {
    let mut before = sentence(source, span.start);
    if let Some(rest) = before.strip_suffix(' ')
        && is_one_of(last_word(rest), &THREAT_NOUNS)
    {
        return true;
    }
    for _ in 0..LIST {
        let introduced = before.trim_end_matches(|c: char| !c.is_alphanumeric());
        let word = last_word(introduced);
        if is_one_of(word, INTRODUCING) || is_as(introduced) {
            let behind = source.after(span.end, SENTENCE);
            let behind = behind.split(['\n', '.', '!', '?']).next().unwrap_or_default();
            return is_about_threats(introduced) || (are_people(introduced) && is_about_threats(behind));
        }
        if is_one_of(word, &THREAT_NOUNS) && before.trim_end().ends_with([':', '(']) {
            return true;
        }
        let Some(rest) = without_item(before) else {
            return false;
        };
        before = rest;
    }
    false
}

/// "groups such as", "gangs like": what they do may be said behind their names.
fn are_people(text: &str) -> bool {
    let before = text
        .strip_suffix(" such as")
        .or_else(|| text.rsplit_once(' ').map(|(rest, _)| rest));
    let noun = last_word(before.unwrap_or_default().trim_end_matches([',', ' ']));
    is_one_of(noun, &["groups", "gangs", "crews", "actors"])
}

/// "such as", "known as", "referred to as"
fn is_as(text: &str) -> bool {
    let before = text.strip_suffix(" as").map(last_word).unwrap_or_default();
    is_one_of(before, &["such", "known", "tracked", "identified", "to"])
}

/// The text before the last item of a list and its separator; `None` if this is no list.
fn without_item(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let text = text
        .strip_suffix(" and")
        .or_else(|| text.strip_suffix(" or"))
        .or_else(|| text.strip_suffix(" and/or"))
        .map(|rest| rest.trim_end_matches([',', ' ']))
        .or_else(|| text.strip_suffix([',', '/', '&']))?;
    let mut rest = text;
    for _ in 0..ITEM {
        let word = last_word(rest);
        if !word.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()) {
            break;
        }
        rest = rest
            .get(..rest.len() - word.len())?
            .trim_end_matches([' ', '(', '"', '“']);
    }
    (rest.len() < text.len()).then_some(rest)
}

/// The sentence before `at`, as far as it is read.
pub(super) fn sentence<'t>(source: &Source<'t>, at: usize) -> &'t str {
    let window = source.before(at, SENTENCE);
    let start = ["\n", ". ", "! ", "? "]
        .iter()
        .filter_map(|end| window.rfind(end).map(|at| at + end.len()))
        .max();
    window.get(start.unwrap_or_default()..).unwrap_or_default()
}

pub(super) fn is_about_threats(text: &str) -> bool {
    let mut previous = "";
    text.split(|c: char| !c.is_alphanumeric() && c != '-')
        .any(|word| {
            let actor = previous.eq_ignore_ascii_case("threat")
                && is_one_of(word.trim_end_matches('s'), &["actor", "group"]);
            previous = word;
            actor || is_one_of(word, &ABOUT_THREATS)
        })
}

fn is_noun(word: &str) -> bool {
    [&THREAT_NOUNS, &GROUP_NOUNS, &TOOL_NOUNS]
        .iter()
        .any(|list| is_one_of(word, list))
}

pub(super) fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default()
}

pub(super) fn last_word(text: &str) -> &str {
    text.rsplit(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default()
}
