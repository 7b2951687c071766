//! Names that the memory itself knows, in a text.
//!
//! A memory may know a hundred thousand names, so no automaton holds them: the text gives the phrases that could be names
//! ([`each_phrase_of`]), whoever owns the memory looks them up, and those found ([`KnownNames`]) are read beside the gazetteer.
//! Rules: a name that is more than ordinary words counts in any case. Ordinary words count in their own case: several as
//! they stand, a single one only where the words around make it a name, or where the text names the same thing for sure
//! elsewhere. A name of several things is one in dispute.

mod ordinary;
mod phrases;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::context;
use super::gazetteer::canonical_name;
use super::introductions::kind_of;
use super::refang::RefangedText;
use super::script::is_of_word;
use super::source::{Source, is_one_of};
use crate::domain::kinds::EntityKind;
use crate::domain::node::NodeType;
use ordinary::{is_description, is_distinct, is_of_unspaced};

/// Confidence in a name as it is spelled, in another spelling, and in an ordinary word that is a name elsewhere.
const SPELLED: f32 = 0.93;
const RESPELLED: f32 = 0.86;
const RECALLED: f32 = 0.78;
/// Letters of a single word that counts in lower case.
const MIN_LOWER: usize = 5;
/// Letters of a name inside a word of a script without spaces.
const MIN_INSIDE: usize = 3;
/// Nouns beside the name of a vulnerability, and of a technique.
const OF_VULNERABILITIES: [&str; 10] = [
    "vulnerability",
    "vulnerabilities",
    "flaw",
    "flaws",
    "bug",
    "bugs",
    "exploit",
    "exploits",
    "weakness",
    "CVE",
];
const OF_TECHNIQUES: [&str; 6] = [
    "technique",
    "techniques",
    "sub-technique",
    "subtechnique",
    "tactic",
    "TTP",
];

/// A thing that the memory knows.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownThing {
    pub kind: EntityKind,
    pub name: String,
    /// What tells it from others of its type: an assigned identifier if it has one, else its name.
    pub value: String,
    pub aliases: Vec<String>,
    pub external_ids: Vec<String>,
}

impl KnownThing {
    fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.aliases.iter().chain(&self.external_ids).map(String::as_str);
        [self.name.as_str(), self.value.as_str()]
            .into_iter()
            .chain(others)
    }

    /// Its own spelling of a name in the text.
    fn spelling(&self, written: &str) -> &str {
        let wanted = canonical_name(written);
        let mut names = self.names();
        names
            .find(|name| canonical_name(name) == wanted)
            .unwrap_or(&self.name)
    }

    /// Its assigned identifier, if that is what is written. A technique of the memory's own may have a number that no
    /// matrix has.
    pub(super) fn identifier(&self, written: &str) -> Option<&str> {
        let written = canonical_name(written);
        let is_written = |id: &&str| canonical_name(id) == written;
        let value = Some(self.value.as_str()).filter(is_written);
        if self.kind == EntityKind::AttckTechnique {
            let other = value.filter(|id| canonical_name(id) != canonical_name(&self.name));
            let numbers = self.external_ids.iter().map(String::as_str);
            let mut numbers = numbers.filter(|id| is_technique_number(id));
            return other.or_else(|| numbers.find(is_written));
        }
        value.filter(|_| self.kind == EntityKind::Cve)
    }

    fn node_type(&self) -> NodeType {
        self.kind.node_type()
    }
}

/// Whether an id has the form of a technique's: T0866, T1059.001.
fn is_technique_number(id: &str) -> bool {
    let is_number = |part: &str, length| part.len() == length && part.bytes().all(|b| b.is_ascii_digit());
    let number = id.strip_prefix(['T', 't']).unwrap_or_default();
    match number.split_once('.') {
        Some((number, sub)) => is_number(number, 4) && is_number(sub, 3),
        None => is_number(number, 4),
    }
}

/// The phrases of a text that are names of things the memory knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnownNames {
    things: HashMap<String, Vec<Arc<KnownThing>>>,
    /// The first bytes of the phrases.
    starts: HashSet<[u8; START]>,
}

/// Bytes of the shortest phrase.
const START: usize = 2;

impl KnownNames {
    /// Adds a thing that carries this phrase as a name.
    pub fn add(&mut self, phrase: &str, thing: &Arc<KnownThing>) {
        self.starts.extend(start_of(phrase));
        let things = self.things.entry(phrase.to_owned()).or_default();
        if !things.iter().any(|known| known == thing) {
            things.push(Arc::clone(thing));
        }
    }

    fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    /// Whether one of the phrases may begin a text.
    fn may_begin(&self, text: &str) -> bool {
        start_of(text).is_some_and(|start| self.starts.contains(&start))
    }
}

fn start_of(text: &str) -> Option<[u8; START]> {
    text.as_bytes().first_chunk::<START>().copied()
}

/// Calls `look` with each phrase of a text that could be a name; the same phrase may come several times. Where `begins` says
/// of the text from a word on that no name begins there, no phrase is looked at: most words cost no more than that.
pub fn each_phrase_of(text: &str, begins: impl Fn(&str) -> bool, mut look: impl FnMut(&str)) {
    let refanged = RefangedText::new(text);
    phrases::each_phrase(&refanged.text, begins, |span| {
        look(refanged.text.get(span).unwrap_or_default());
    });
}

/// A known name in the text.
#[derive(Debug)]
pub(super) struct KnownMatch {
    pub(super) span: Range<usize>,
    /// What it stands for: one thing, or one of each type if the text does not tell.
    pub(super) things: Vec<Arc<KnownThing>>,
    pub(super) confidence: f32,
    /// Whether it is a name as it stands; otherwise the rest of the text decides.
    is_sure: bool,
}

/// The known names in the source, in text order, without overlaps.
pub(super) fn find(source: &Source<'_>, known: &KnownNames) -> Vec<KnownMatch> {
    if known.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<KnownMatch> = Vec::new();
    let begins = |text: &str| known.may_begin(text);
    phrases::each_phrase(source.text, begins, |span| {
        let written = source.text.get(span.clone()).unwrap_or_default();
        let things = known.things.get(written);
        found.extend(things.and_then(|things| candidate(source, things, span)));
    });
    let sure: HashSet<String> = found
        .iter()
        .filter(|one| one.is_sure)
        .flat_map(|one| &one.things)
        .map(|thing| canonical_name(&thing.name))
        .collect();
    found.retain_mut(|one| {
        let named = one
            .things
            .iter()
            .any(|thing| sure.contains(&canonical_name(&thing.name)));
        let recalled = !one.is_sure
            && named
            && context::stands_alone(source, &one.span)
            && !context::begins_sentence(source, &one.span);
        if recalled {
            one.confidence = RECALLED;
        }
        one.is_sure || recalled
    });
    found.sort_by_key(|one| (one.span.start, std::cmp::Reverse(one.span.end)));
    let mut end = 0;
    found.retain(|one| {
        let is_free = one.span.start >= end;
        if is_free {
            end = one.span.end;
        }
        is_free
    });
    found
}

/// A phrase that is a name of these things, if it is written as a name is.
fn candidate(source: &Source<'_>, things: &[Arc<KnownThing>], span: Range<usize>) -> Option<KnownMatch> {
    let written = source.text.get(span.clone())?;
    if context::is_in_address(source, span.start) || !is_whole(source, &span) {
        return None;
    }
    let fits: Vec<(&Arc<KnownThing>, bool)> = things
        .iter()
        .filter_map(|thing| Some((thing, certainty(source, thing, written, &span)?)))
        .collect();
    let is_sure = fits.iter().any(|(_, sure)| *sure);
    let fitting: Vec<&Arc<KnownThing>> = fits
        .iter()
        .filter(|(_, sure)| *sure == is_sure)
        .map(|(thing, _)| *thing)
        .collect();
    let things = meant(source, &fitting, written, &span);
    let spelled = things.first()?.spelling(written) == written;
    Some(KnownMatch {
        span,
        confidence: if spelled { SPELLED } else { RESPELLED },
        things,
        is_sure,
    })
}

/// Whether a phrase of a script without spaces is long enough to stand inside a run of letters, and no part of a foreign
/// word in Japanese.
fn is_whole(source: &Source<'_>, span: &Range<usize>) -> bool {
    let written = source.text.get(span.clone()).unwrap_or_default();
    if !is_of_unspaced(written) {
        return true;
    }
    let before = source.before(span.start, 4).chars().next_back();
    let after = source.after(span.end, 4).chars().next();
    let is_kana = |c: char| matches!(c, '\u{30a1}'..='\u{30fa}' | '\u{30fc}');
    let cuts =
        |inner: Option<char>, outer: Option<char>| inner.is_some_and(is_kana) && outer.is_some_and(is_kana);
    let attached = [before, after].into_iter().flatten().any(is_of_word);
    !cuts(written.chars().next(), before)
        && !cuts(written.chars().next_back(), after)
        && (!attached || written.chars().count() >= MIN_INSIDE)
}

/// Whether the phrase is surely a name of the thing: `None` if it is not written as one.
fn certainty(source: &Source<'_>, thing: &KnownThing, written: &str, span: &Range<usize>) -> Option<bool> {
    let name = thing.spelling(written);
    let is_single = !written.contains(|c: char| !c.is_alphanumeric());
    if is_distinct(name) {
        let lower = !written.contains(|c: char| c.is_uppercase() || c.is_numeric()) && written.is_ascii();
        return (!lower || !is_single || written.len() >= MIN_LOWER || name == written).then_some(true);
    }
    if !has_case_of(written, name) {
        return None;
    }
    if !is_single && !is_description(name) {
        return Some(true);
    }
    Some(is_name(source, thing.kind, span))
}

/// Whether ordinary words are written as the name is: in its case, with a capital each, or all in capitals.
fn has_case_of(written: &str, name: &str) -> bool {
    let capitals = |text: &str| {
        let mut words = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        // "Manipulation of Sluice"
        words.all(|word| word.len() < 4 || !word.starts_with(char::is_lowercase))
            && text.starts_with(|c: char| !c.is_lowercase())
    };
    written == name || (capitals(name) && capitals(written))
}

/// Whether the words around make an ordinary word a name of this kind.
fn is_name(source: &Source<'_>, kind: EntityKind, span: &Range<usize>) -> bool {
    match kind.node_type() {
        NodeType::Attck => stands_beside(source, span, &OF_TECHNIQUES),
        NodeType::Vulnerability | NodeType::Cve => stands_beside(source, span, &OF_VULNERABILITIES),
        NodeType::Actor | NodeType::Tool | NodeType::Ioc | NodeType::Osint => {
            context::is_name(source, kind, span)
        }
    }
}

fn stands_beside(source: &Source<'_>, span: &Range<usize>, nouns: &[&str]) -> bool {
    context::stands_alone(source, span) && words_beside(source, span).any(|word| is_one_of(word, nouns))
}

/// The words directly behind and before a name.
fn words_beside<'t>(source: &Source<'t>, span: &Range<usize>) -> impl Iterator<Item = &'t str> {
    let after = source.after(span.end, 64);
    let possessive = ["'s", "’s"].into_iter().find_map(|end| after.strip_prefix(end));
    let after = possessive
        .unwrap_or(after)
        .trim_start_matches(['"', '”', '’', '\'', ')', '*']);
    let behind = after.strip_prefix(' ').map(context::first_word);
    let before = source
        .before(span.start, 64)
        .trim_end_matches(['"', '“', '‘', '\'', '(', '*']);
    let before = before.strip_suffix(' ').map(context::last_word);
    behind.into_iter().chain(before)
}

/// What a phrase stands for among the things that carry it. Things of one type are in dispute, and the phrase then stands
/// for itself; of several types, the word beside it says which is meant.
fn meant(
    source: &Source<'_>,
    things: &[&Arc<KnownThing>],
    written: &str,
    span: &Range<usize>,
) -> Vec<Arc<KnownThing>> {
    let mut of_type: BTreeMap<&str, Vec<&Arc<KnownThing>>> = BTreeMap::new();
    for thing in things {
        let same = of_type.entry(thing.node_type().as_str()).or_default();
        // A tool that is known as malware, too.
        match same.iter_mut().find(|known| known.value == thing.value) {
            Some(known) if thing.kind == EntityKind::Malware => *known = *thing,
            Some(_) => {}
            None => same.push(*thing),
        }
    }
    let mut meant: Vec<Arc<KnownThing>> = Vec::new();
    for same in of_type.values() {
        match same.as_slice() {
            [] => {}
            [only] => meant.push(Arc::clone(only)),
            [first, ..] => meant.push(Arc::new(KnownThing {
                kind: first.kind,
                name: first.spelling(written).to_owned(),
                value: first.spelling(written).to_owned(),
                aliases: Vec::new(),
                external_ids: Vec::new(),
            })),
        }
    }
    if meant.len() > 1 {
        let told = words_beside(source, span).find_map(|word| {
            let is_of = |thing: &Arc<KnownThing>| match thing.node_type() {
                NodeType::Attck => is_one_of(word, &OF_TECHNIQUES),
                NodeType::Cve | NodeType::Vulnerability => is_one_of(word, &OF_VULNERABILITIES),
                NodeType::Actor | NodeType::Tool | NodeType::Ioc | NodeType::Osint => {
                    kind_of(word).is_some_and(|kind| kind.node_type() == thing.node_type())
                }
            };
            meant.iter().position(is_of)
        });
        if let Some(told) = told {
            return vec![meant.swap_remove(told)];
        }
    }
    meant
}

#[cfg(test)]
mod tests;
