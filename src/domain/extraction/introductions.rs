//! Names that a text itself introduces: "a new backdoor dubbed BlackSoul", "we named this threat actor CloudFall", "the
//! “TokyoX” loader".
//!
//! New reports are about threats that no list has yet. A name is taken where the text says that it is one, with the noun
//! of a threat beside it that tells its kind; then it counts wherever the same text has it in the same case. Every
//! window is bounded.

mod words;

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use super::context;
use super::known::KnownThing;
use super::names::{ends_word, starts_word};
use super::source::{Source, is_one_of};
use super::word_lists::{
    ALIAS_FILLERS, GROUP_NOUNS, HOSTILE_WORDS, ORDINARY_LEADS, ORDINARY_NOUNS, PRODUCT_WORDS, PROGRAM_NOUNS,
    RESEARCH_WORDS, THREAT_NOUNS, VENDORS, VERB_FILLERS,
};
use crate::domain::kinds::EntityKind;
use words::{ADDING, COMPANIES, LEADING, NOT_THREATS, OTHER_THINGS, PARTITIVES, PRONOUNS, VARIANTS};

pub(super) use words::{ALIASES, DEFINING, NOUNS, VERBS, VERBS_AS};

/// Words before the verb that are looked at, and those of "named this new threat actor CloudFall".
const REACH: usize = 8;
const PHRASE: usize = 5;
/// Words of a definition that are looked at.
const DEFINITION: usize = 9;
/// Words of a name, and its bytes.
const MAX_NAME_WORDS: usize = 3;
const MAX_NAME_BYTES: usize = 40;
const MIN_NAME_LETTERS: usize = 3;
/// How much of a sentence is read behind a name.
const SENTENCE: usize = 200;
const QUOTES: [(char, char); 5] = [('"', '"'), ('“', '”'), ('‘', '’'), ('\'', '\''), ('*', '*')];

/// A name and where the text gives it.
#[derive(Debug, PartialEq)]
pub(super) struct IntroducedName {
    /// None if it is only another name of what the text names before.
    pub(super) kind: Option<EntityKind>,
    pub(super) span: Range<usize>,
    /// Where the name ends of which it is another: "Turla, also known as Torvold".
    pub(super) also: Option<usize>,
}

impl IntroducedName {
    fn new(kind: EntityKind, span: Range<usize>) -> Self {
        IntroducedName {
            kind: Some(kind),
            span,
            also: None,
        }
    }
}

/// What a name in the text stands for.
#[derive(Debug, Clone)]
pub(super) struct ResolvedName {
    pub(super) kind: EntityKind,
    pub(super) value: String,
    pub(super) span: Range<usize>,
    /// What the memory knows of it.
    pub(super) known: Vec<Arc<KnownThing>>,
}

/// The name that the verb at this place gives. `needs_as`: it gives one only with an "as".
pub(super) fn after_verb(source: &Source<'_>, verb: Range<usize>, needs_as: bool) -> Option<IntroducedName> {
    let before = context::sentence(source, verb.start);
    let is_passive = is_one_of(source.text.get(verb.clone())?, &["known", "tracked", "referred"]);
    let mut at = verb.end + skip_naming_phrase(source.after(verb.end, MAX_NAME_BYTES), needs_as)?;
    let (mut noun, mut words) = ("", 0);
    for word in source.after(at, MAX_NAME_BYTES * 2).split(' ').take(PHRASE) {
        // Directly behind the verb "eCh0raix" is the name, and "eCrime" in "dubbed the eCrime gang" is none.
        let noun_in_capitals = word == "RAT" && words > 0;
        if !(noun_in_capitals || word.starts_with(char::is_lowercase)) || (words == 0 && is_mixed(word)) {
            break;
        }
        words += 1;
        // "named the threat actor behind it …"
        if words == 1 || !is_one_of(word, &["behind", "it", "this", "them"]) {
            noun = word;
        }
        at += word.len();
        at += source.after(at, 1).strip_prefix(' ').map(|_| 1)?;
    }
    let (span, behind) = name_at(source, at)?;
    let rest = rest_of_sentence(source, behind);
    let name = source.text.get(span.clone())?;
    let is_bare = words == 0 || (words == 1 && is_one_of(noun, LEADING));
    let kind = if is_bare {
        let own = || kind_of(context::last_word(name));
        kind_before(before).or_else(|| kind_behind(rest)).or_else(own)
    } else if is_one_of(noun, VARIANTS) && is_new_word(name) {
        Some(EntityKind::Malware)
    } else {
        kind_of(noun)
    };
    let said = source.text.get(verb.start..span.start)?;
    let about_threats = || [before, said, rest].into_iter().any(is_about_threats);
    let kind = kind.filter(|kind| *kind == EntityKind::Malware || about_threats());
    // What has a possessive is no name: "known as Germany's worst".
    let also = is_passive && is_bare && !rest.starts_with(['\'', '’']);
    let also = also.then(|| end_of_subject(before)).flatten();
    let also = also.map(|subject| verb.start - before.len() + subject);
    (kind.is_some() || also.is_some()).then_some(IntroducedName { kind, span, also })
}

/// Where the name ends that a passive verb gives another one, if punctuation or a word joins both.
fn end_of_subject(before: &str) -> Option<usize> {
    let mut rest = before;
    loop {
        let text = rest.trim_end_matches([' ', ',', '(', '–', '—']);
        let word = context::last_word(text);
        if word.is_empty() || !is_one_of(word, &ALIAS_FILLERS) {
            let between = before.get(text.len()..)?;
            return (!text.is_empty() && !between.trim().is_empty()).then_some(text.len());
        }
        rest = text.strip_suffix(word)?;
    }
}

/// The name behind this noun, if an actor bears it: "a threat actor who goes by the alias Torvold".
pub(super) fn after_alias(source: &Source<'_>, noun: Range<usize>) -> Option<IntroducedName> {
    let before = context::sentence(source, noun.start);
    let mut words = before.rsplit(' ').take(REACH);
    let bears = words.any(|word| kind_of(word) == Some(EntityKind::Actor)) && is_about_threats(before);
    let at = noun.end + source.after(noun.end, 1).strip_prefix(' ').map(|_| 1)?;
    let (span, _) = name_at(source, at)?;
    bears.then_some(IntroducedName::new(EntityKind::Actor, span))
}

/// The name that this definition is of: "BlackSoul is a new backdoor that …".
pub(super) fn before_definition(source: &Source<'_>, verb: Range<usize>) -> Option<IntroducedName> {
    let subject = context::sentence(source, verb.start).strip_suffix(' ')?;
    let subject = subject.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '\n');
    let start = verb.start - 1 - subject.len();
    let (span, behind) = name_at(source, start)?;
    let definition = rest_of_sentence(source, verb.end);
    let kind = kind_of_definition(definition)?;
    let name = source.text.get(span.clone())?;
    let clear = !is_ordinary_subject(name)
        && (kind != EntityKind::Actor || is_hostile(definition))
        && (kind != EntityKind::Tool || (is_mixed(name) && is_about_threats(definition)));
    (behind == verb.start - 1 && clear && !is_one_of(name, PRONOUNS)).then(|| IntroducedName::new(kind, span))
}

/// The name beside the noun at this place, if it is in quotes or has capitals inside: "the “Torvo” loader", "the VexaSoul
/// backdoor".
pub(super) fn beside_noun(source: &Source<'_>, noun: Range<usize>) -> Option<IntroducedName> {
    let kind = kind_of(context::last_word(source.text.get(noun.clone())?))?;
    let span = name_before(source, noun.start)
        .filter(|_| !is_part_of_other(source, noun.end))
        .or_else(|| name_behind(source, noun.end).filter(|span| !is_part_of_other(source, span.end)))?;
    if is_ordinary_subject(source.text.get(span.clone())?) {
        return None;
    }
    let around = [
        context::sentence(source, noun.start),
        rest_of_sentence(source, noun.end),
    ];
    let clear = kind != EntityKind::Tool || around.into_iter().any(is_about_threats);
    clear.then_some(IntroducedName::new(kind, span))
}

fn name_behind(source: &Source<'_>, at: usize) -> Option<Range<usize>> {
    let at = at + source.after(at, 1).strip_prefix(' ').map(|_| 1)?;
    let (span, _) = name_at(source, at)?;
    let quoted = inside_quotes(source.after(at, MAX_NAME_BYTES)).is_some();
    (quoted || is_new_word(source.text.get(span.clone())?)).then_some(span)
}

fn name_before(source: &Source<'_>, end: usize) -> Option<Range<usize>> {
    let before = source.before(end, MAX_NAME_BYTES).strip_suffix(' ')?;
    let close = before.chars().next_back()?;
    let end = end - 1;
    if let Some((open, _)) = QUOTES.into_iter().find(|(_, quote)| *quote == close) {
        let inner = before.strip_suffix(close)?;
        let inner = inner.get(inner.rfind(open)? + open.len_utf8()..)?;
        let end = end - close.len_utf8();
        return is_name(inner).then_some(end - inner.len()..end);
    }
    let word = before.rsplit([' ', '\n', '(', '“', '"', '\'', '*']).next()?;
    let whole = word.len() < before.len() || word.len() == end;
    (whole && is_new_word(word) && is_name(word)).then_some(end - word.len()..end)
}

/// Whether a word is spelled as no ordinary word and no well-known product is: `BlackSoul`.
fn is_new_word(word: &str) -> bool {
    let turns = word
        .chars()
        .zip(word.chars().skip(1))
        .any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    turns
        && word.starts_with(char::is_uppercase)
        && !word.contains(['-', ' ', '.'])
        && !is_one_of(word, &PRODUCT_WORDS)
}

/// Whether the word is only a part of "malware analysis", "malware researchers", "malware section" and the like.
fn is_part_of_other(source: &Source<'_>, at: usize) -> bool {
    let next = source
        .after(at, MAX_NAME_BYTES)
        .strip_prefix(' ')
        .map(context::first_word);
    next.is_some_and(|next| {
        let one = next.strip_suffix('s').unwrap_or(next);
        is_one_of(one, &RESEARCH_WORDS) || is_one_of(one, NOT_THREATS)
    })
}

/// Further places of the introduced names in the text.
pub(super) fn find_all(source: &Source<'_>, named: &[ResolvedName]) -> Vec<ResolvedName> {
    let places: HashSet<&Range<usize>> = named.iter().map(|one| &one.span).collect();
    let mut meant = BTreeMap::new();
    for one in named {
        if let Some(name) = source.text.get(one.span.clone()) {
            meant.entry(name).or_insert(one);
        }
    }
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(meant.keys());
    let names: Vec<(&str, &ResolvedName)> = meant.into_iter().collect();
    let Ok(automaton) = automaton else {
        return Vec::new();
    };
    let found = automaton.find_iter(source.text).filter_map(|hit| {
        let (name, one) = *names.get(hit.pattern().as_usize())?;
        let span = hit.range();
        let bounded = starts_word(source, span.start)
            && ends_word(source, span.end)
            && !context::is_in_address(source, span.start);
        let given = places.contains(&span);
        let stands = if is_mixed(name) && !name.contains(' ') {
            context::stands_apart(source, &span)
        } else {
            context::stands_alone(source, &span)
                && (name.contains(' ') || !context::begins_sentence(source, &span))
        };
        (given || (bounded && stands)).then(|| ResolvedName { span, ..one.clone() })
    });
    found.collect()
}

/// The kind that the words before a naming verb tell: the nearest noun, past words that only lead to the verb.
fn kind_before(text: &str) -> Option<EntityKind> {
    let words = text.rsplit(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '.'));
    for word in words.filter(|word| !word.is_empty()).take(REACH) {
        if let Some(kind) = kind_of(word) {
            return Some(kind);
        }
        if !word.starts_with(char::is_uppercase) && !is_one_of(word, &VERB_FILLERS) {
            return None;
        }
    }
    None
}

/// The kind that a word or an apposition behind a name tells: "Godlua backdoor", "WinspySuite, an information stealer".
fn kind_behind(text: &str) -> Option<EntityKind> {
    let apposition = [", a ", ", an ", " (a ", " (an "].iter();
    if let Some(text) = apposition.filter_map(|begin| text.strip_prefix(begin)).next() {
        return kind_of_definition(text);
    }
    kind_of(context::first_word(text.strip_prefix(' ')?))
}

/// The kind that a definition tells: its last noun before a word that only adds to it.
fn kind_of_definition(text: &str) -> Option<EntityKind> {
    let mut kind = None;
    for word in text.trim_start().split(' ').take(DEFINITION) {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if is_one_of(bare, PARTITIVES) {
            return None;
        }
        let next = kind_of(bare);
        let ends = word.ends_with([',', '.', ';', ':', ')']);
        let joins = kind.is_none() && is_one_of(bare, &["and", "or"]);
        if next.is_none() && !joins && (kind.is_some() || ends || is_one_of(bare, ADDING)) {
            // "is a malware analysis tool", "is a malware researcher"
            return kind.filter(|_| is_one_of(bare, ADDING) || !word.starts_with(char::is_alphanumeric));
        }
        kind = next;
        if ends {
            return kind;
        }
    }
    kind
}

/// Whether the words are about threats, where that a gang is named says enough.
fn is_about_threats(text: &str) -> bool {
    context::is_about_threats(text) || text.split(' ').any(|word| is_one_of(word, &["gang", "gangs"]))
}

/// Whether the definition of a group is that of one of attackers, and not of those who study them.
fn is_hostile(definition: &str) -> bool {
    let words = || definition.split(|c: char| !c.is_alphanumeric()).take(DEFINITION);
    words().any(|word| is_one_of(word, &HOSTILE_WORDS))
        && !words().any(|word| is_one_of(word, &RESEARCH_WORDS))
}

/// Where a name may begin after the verb: past "as", before which may stand by whom and where it is named so.
fn skip_naming_phrase(text: &str, needs_as: bool) -> Option<usize> {
    let mut at = lead(text, " ");
    if needs_as || text.starts_with(" as ") || text.starts_with(" by ") {
        for word in text.get(at..)?.split(' ').take(PHRASE) {
            at += word.len() + 1;
            if word == "as" {
                return Some(at);
            }
            if word.ends_with(|c: char| !c.is_alphanumeric()) {
                break;
            }
        }
        return (!needs_as).then_some(1);
    }
    (at > 0).then_some(at)
}

/// What follows in the sentence, as far as it is read.
fn rest_of_sentence<'t>(source: &Source<'t>, at: usize) -> &'t str {
    let rest = source.after(at, SENTENCE);
    let ends = ["\n", ". ", "! ", "? "].iter().filter_map(|end| rest.find(end));
    rest.get(..ends.min().unwrap_or(rest.len())).unwrap_or_default()
}

pub(super) fn kind_of(noun: &str) -> Option<EntityKind> {
    let noun = noun.strip_suffix('s').unwrap_or(noun);
    if is_one_of(noun, &["apt", "hacker", "extortionist"]) || is_one_of(noun, &GROUP_NOUNS) {
        Some(EntityKind::Actor)
    } else if is_one_of(noun, &PROGRAM_NOUNS) {
        Some(EntityKind::Tool)
    } else if is_one_of(noun, &THREAT_NOUNS) || is_one_of(noun, &["ransomware-as-a-service", "viru"]) {
        Some(EntityKind::Malware)
    } else {
        None
    }
}

/// The name that begins here, in quotes or as words with capitals, and where what follows it begins.
fn name_at(source: &Source<'_>, at: usize) -> Option<(Range<usize>, usize)> {
    let text = source.after(at, MAX_NAME_BYTES);
    if let Some(range) = inside_quotes(text) {
        let span = at + range.start..at + range.end;
        let close = source.after(span.end, 4).chars().next().map_or(0, char::len_utf8);
        return is_name(source.text.get(span.clone())?).then_some((span.clone(), span.end + close));
    }
    let article = lead(text, "The ");
    let (text, at) = (text.get(article..)?, at + article);
    let mut len = 0;
    for _ in 0..MAX_NAME_WORDS {
        let gap = if len == 0 { 0 } else { lead(text.get(len..)?, " ") };
        let word = token(text.get(len + gap..)?);
        if (len > 0 && gap == 0) || !(word.starts_with(char::is_uppercase) || is_mixed(word)) {
            break;
        }
        len += gap + word.len();
    }
    let span = at..at + len;
    // A name that the window cuts, or a file, path, address or the like.
    let cut = len >= text.len() && !source.after(span.end, 1).is_empty();
    let behind = source.after(span.end, 2);
    let joined = behind.starts_with(['/', '\\', '@', ':', '=', '(']) && behind != ": ";
    let company = is_company(source, span.end);
    (!cut && !joined && !company && is_name(source.text.get(span.clone())?))
        .then_some((span.clone(), span.end))
}

/// A word of a name: `PsiXBot`, `E.K.P`, `X-Agent`.
fn token(text: &str) -> &str {
    let inner = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
    let end = text.find(|c: char| !inner(c)).unwrap_or(text.len());
    text.get(..end)
        .unwrap_or_default()
        .trim_end_matches(['-', '.', '_'])
}

/// The range inside quotes that open at the beginning of the text.
fn inside_quotes(text: &str) -> Option<Range<usize>> {
    let open = text.chars().next()?;
    let (_, close) = QUOTES.into_iter().find(|(begin, _)| *begin == open)?;
    let inner = text.get(open.len_utf8()..)?;
    let end = inner.find(close)?;
    let inner = inner.get(..end)?.trim_end_matches(['.', ',']);
    Some(open.len_utf8()..open.len_utf8() + inner.len())
}

/// Whether this can be the name of a threat.
fn is_name(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    let first = words.first().copied().unwrap_or_default();
    let last = words.last().copied().unwrap_or_default();
    let extension = text
        .rsplit_once('.')
        .is_some_and(|(_, end)| end.starts_with(|c: char| c.is_lowercase() || c.is_ascii_digit()));
    let letters = text.chars().filter(|c| c.is_alphanumeric()).count();
    let spelled = text
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '.' | '_' | '+' | '!'));
    let capital = first.starts_with(char::is_uppercase) || is_mixed(first);
    letters >= MIN_NAME_LETTERS
        && text.chars().any(char::is_alphabetic)
        && words.len() <= MAX_NAME_WORDS + 1
        && spelled
        && capital
        && !extension
        && !is_one_of(first, OTHER_THINGS)
        && !is_one_of(last, OTHER_THINGS)
        && !(words.len() == 1 && (kind_of(first).is_some() || is_one_of(first, &VERB_FILLERS)))
        && !is_ordinary(&words)
        && !is_one_of(last, COMPANIES)
        && !words.iter().any(|word| word.is_empty())
}

/// Whether the words say what something is and not how it is called: "This Trojan", "First Stage", "Python Script",
/// "Sample A". Such a name is none even where a text gives it.
pub(super) fn is_ordinary(words: &[&str]) -> bool {
    let is_noun = |word: &str| {
        let one = word.strip_suffix('s').unwrap_or(word);
        is_one_of(word, &ORDINARY_NOUNS) || is_one_of(one, &ORDINARY_NOUNS)
    };
    let counts = |word: &str| word.chars().all(|c| c.is_ascii_digit()) || word.len() == 1;
    let is_of_order = |word: &str| is_one_of(word, &ORDINARY_LEADS) || counts(word);
    let is_plain = |word: &str| {
        is_noun(word) || is_of_order(word) || is_one_of(word, &VENDORS) || kind_of(word).is_some()
    };
    let begins = words.first().is_some_and(|word| is_one_of(word, &ORDINARY_LEADS));
    (begins && words.len() > 1 && words.iter().skip(1).all(|word| is_plain(word)))
        || words.iter().all(|word| is_plain(word))
}

/// Whether the subject of a definition, or what stands beside a noun, is ordinary words: a sentence begins with a capital,
/// a heading has only capitals, and what such words begin or end with tells them from a name.
fn is_ordinary_subject(name: &str) -> bool {
    let words: Vec<&str> = name.split(' ').collect();
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return true;
    };
    let one = last.strip_suffix('s').unwrap_or(last);
    is_ordinary(&words)
        || words.iter().any(|word| is_one_of(word, PRONOUNS))
        || is_one_of(first, &ORDINARY_LEADS)
        || (words.len() > 1 && is_one_of(first, &VENDORS))
        || is_one_of(last, &ORDINARY_NOUNS)
        || is_one_of(one, &ORDINARY_NOUNS)
}

/// Whether the words behind tell that a name is that of a company: "Torvo s.r.o.", "Torvo, Inc.".
fn is_company(source: &Source<'_>, at: usize) -> bool {
    let text = source.after(at, MAX_NAME_BYTES);
    let text = text.strip_prefix(',').unwrap_or(text);
    text.strip_prefix(' ')
        .is_some_and(|text| is_one_of(token(text), COMPANIES))
}

/// Whether a word has capitals or digits inside.
fn is_mixed(word: &str) -> bool {
    word.chars()
        .skip(1)
        .any(|c| c.is_uppercase() || c.is_ascii_digit())
        && word.chars().any(char::is_alphabetic)
}

/// The length of what the text begins with, if it does.
fn lead(text: &str, with: &str) -> usize {
    if text.starts_with(with) { with.len() } else { 0 }
}
