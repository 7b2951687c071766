//! Reads TLP markings however they are written.
//!
//! Rule: `TLP` and a level make a marking if nothing but layout, punctuation and words such as "level" stands between
//! them. A level below AMBER would lower what nobody marked, so it needs a clearer form than one above. What takes a
//! marking back ("not TLP:RED"), lists of all levels and compounds ("red team") are none.
//!
//! The look-ahead is bounded in words and ends at the next `TLP`, so each separator is read a constant number of times.

use super::layout::{decode, strip};
use super::levels::{
    is_key, is_not, is_strict_amber, is_verb, is_version, level_at, makes_compound, may_follow_not, named,
    single, with_strict,
};
use super::table;
use super::words::{Link, Word, Words};
use crate::domain::tlp::Tlp;

/// Most words between `TLP` and its level.
const BETWEEN: usize = 8;
/// Most of them that mean nothing here, as in "TLP of this report: RED".
const UNKNOWN: usize = 3;
/// Words before `TLP` that may take the marking back.
const BEFORE: usize = 4;
/// Levels from which on a list explains TLP.
const LIST: usize = 3;

/// The most restrictive TLP marking stated in the text.
pub fn tlp_hint(text: &str) -> Option<Tlp> {
    let decoded = decode(text);
    let stripped = strip(&decoded);
    // Attributes of tags state markings too.
    let tagged = (stripped != decoded).then(|| strictest(&decoded)).flatten();
    strictest(&stripped)
        .max(tagged)
        .max(table::tlp_of_cells(&stripped))
}

fn strictest(text: &str) -> Option<Tlp> {
    let mut found = None;
    let mut words = Words::new(text);
    let mut before: [Word<'_>; BEFORE] = [Word::default(); BEFORE];
    while let Some(word) = words.next() {
        if let Some(anchor) = Anchor::at(&word, &mut words)
            && !is_taken_back(&word, &before)
        {
            found = found
                .max(anchor.level(words.clone()))
                .max(in_front(&word, &before, &words));
        } else if word.text.starts_with(['a', 'A']) && is_strict_amber(&word, &words) {
            found = found.max(Some(Tlp::AmberPk));
        }
        before.rotate_left(1);
        if let Some(last) = before.last_mut() {
            *last = word;
        }
    }
    found
}

/// A word that names TLP.
enum Anchor {
    /// `TLP`, whose level may follow.
    Alone,
    /// A word with the level in it, such as `TLPRED`.
    Level(Tlp),
}

impl Anchor {
    /// The anchor that begins at a word; moves `words` behind it.
    fn at(word: &Word<'_>, words: &mut Words<'_>) -> Option<Self> {
        if !word
            .text
            .starts_with(|c: char| matches!(c, 't' | 'T') || !c.is_ascii())
        {
            return None;
        }
        let key = word.latin_key();
        if key == "t" {
            return spelled(words).then_some(Self::Alone);
        }
        if key == "traffic" {
            return full_name(words).then_some(Self::Alone);
        }
        if key == "trafficlightprotocol" {
            return Some(Self::Alone);
        }
        let rest = key.strip_prefix("tlp")?;
        let level = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if let Some(level) = named(level).filter(|level| *level >= Tlp::Amber || !word.has_small_letters()) {
            return Some(Self::Level(with_strict(level, words)));
        }
        let alone = rest.is_empty() || is_version(rest) || is_key(rest) || is_camel(word.text);
        alone.then_some(Self::Alone)
    }

    fn level(&self, words: Words<'_>) -> Option<Tlp> {
        match self {
            Self::Level(level) => Some(*level),
            Self::Alone => level_after(words),
        }
    }
}

/// Whether a word that begins with `TLP` goes on in camel case, as in `tlpLevel`.
fn is_camel(text: &str) -> bool {
    let mut chars = text.chars().skip(2);
    let [p, next, after] = [chars.next(), chars.next(), chars.next()];
    let upper = |c: Option<char>| c.is_some_and(char::is_uppercase);
    upper(next) && (!upper(p) || after.is_some_and(char::is_lowercase))
}

fn spelled(words: &mut Words<'_>) -> bool {
    let mut ahead = words.clone();
    for want in ["l", "p"] {
        let next = ahead.next();
        let fits = |word: &Word<'_>| {
            (word.follows_blank() || word.gap == ".") && single(word).as_deref() == Some(want)
        };
        if !next.as_ref().is_some_and(fits) {
            return false;
        }
    }
    *words = ahead;
    true
}

fn full_name(words: &mut Words<'_>) -> bool {
    let mut ahead = words.clone();
    for want in ["light", "proto"] {
        let near = |word: &Word<'_>| word.gap.len() <= 3 && word.key().starts_with(want);
        if !ahead.next().as_ref().is_some_and(near) {
            return false;
        }
    }
    *words = ahead;
    true
}

/// Whether the words before a marking say that it is none, as in "not marked TLP:RED".
fn is_taken_back(anchor: &Word<'_>, before: &[Word<'_>]) -> bool {
    let mut gap = *anchor;
    for word in before.iter().rev() {
        if !(gap.follows_blank() || gap.gap == "-") {
            return false;
        }
        let key = word.key();
        let shortened = key == "t" && matches!(word.gap, "'" | "’");
        if is_not(&key) || shortened {
            return true;
        }
        if !may_follow_not(&key) {
            return false;
        }
        gap = *word;
    }
    false
}

/// The level in front of a bracketed `TLP`: "Distribution: RED (TLP)".
fn in_front(anchor: &Word<'_>, before: &[Word<'_>], words: &Words<'_>) -> Option<Tlp> {
    let opens = matches!(anchor.gap.trim_start(), "(" | "[" | "{");
    let closes = matches!(words.following(), Some(')' | ']' | '}'));
    let last = before.last().filter(|_| opens && closes)?;
    let level = named(&last.latin_key())?;
    (level >= Tlp::Amber || !last.begins_small()).then_some(level)
}

/// The level that follows `TLP`, if the words up to it make it one.
fn level_after(mut words: Words<'_>) -> Option<Tlp> {
    let mut link: Option<Link> = None;
    let (mut unknown, mut is_sentence) = (0, false);
    for _ in 0..BETWEEN {
        let word = words.next()?;
        let gap = Link::of(word.gap);
        let so_far = link.map_or(gap, |link| link.then(gap));
        let mut ahead = words.clone();
        if Anchor::at(&word, &mut ahead).is_some() {
            return None;
        }
        if let Some(level) = level_at(&word, &mut ahead) {
            let written = Written {
                word,
                level,
                link: so_far,
                unknown: unknown > 0,
                is_sentence,
            };
            return written.is_marking(&ahead).then_some(level);
        }
        let key = word.key();
        if is_not(&key) {
            return None;
        }
        is_sentence |= is_verb(&key);
        if !is_key(&key) && !is_version(&key) {
            unknown += 1;
        }
        if unknown > 0 && (unknown > UNKNOWN || so_far.line || so_far.sentence) {
            return None;
        }
        link = Some(so_far);
    }
    None
}

/// A level as it follows `TLP`.
struct Written<'t> {
    word: Word<'t>,
    level: Tlp,
    link: Link,
    /// Whether words of no meaning here stand in between.
    unknown: bool,
    /// Whether a verb stands in between.
    is_sentence: bool,
}

impl Written<'_> {
    /// Whether it is the marking of something; `words` go on behind it.
    fn is_marking(&self, words: &Words<'_>) -> bool {
        let Self { word, link, .. } = self;
        let lowers = self.level < Tlp::Amber;
        let alone = words.is_at_end();
        let in_capitals = !word.has_small_letters();
        // "TLP of this report: RED", "The TLP of this report is RED".
        let introduced = link.colon && (alone || in_capitals) || self.is_sentence && in_capitals;
        if self.unknown && (!introduced || link.line || link.sentence) {
            return false;
        }
        // Across the end of a line or a sentence it stands for itself.
        if !link.colon && (link.line || link.sentence) && !alone && !in_capitals {
            return false;
        }
        let is_name = word.text.starts_with(char::is_uppercase);
        if lowers && !is_name && (self.is_sentence || !(link.colon || alone)) {
            return false;
        }
        // A name of a host or a file may raise a marking, not lower it.
        if lowers
            && link.joined
            && words.following() == Some('.')
            && words.peek().is_some_and(|word| word.gap == ".")
        {
            return false;
        }
        !self.is_compound(words) && !is_list(self.level, words.clone())
    }

    /// Whether it is something else in its colour: "red team".
    fn is_compound(&self, words: &Words<'_>) -> bool {
        let is_plain = self.link.colon && self.level >= Tlp::Amber || !self.word.has_small_letters();
        if is_plain && !self.link.line {
            return false;
        }
        let joins = |next: &Word<'_>| next.follows_blank() || next.gap == "-";
        let next = words.peek().filter(joins);
        next.is_some_and(|next| makes_compound(self.level, &next.key()))
    }
}

/// Whether more levels follow, as where a text explains TLP.
fn is_list(first: Tlp, mut words: Words<'_>) -> bool {
    let mut listed = vec![first];
    while let Some(word) = words.next() {
        let between = word
            .gap
            .chars()
            .all(|c| c.is_whitespace() || matches!(c, ',' | '/' | '"' | '\'' | '`' | '*'));
        let level = level_at(&word, &mut words);
        let and = matches!(
            word.key().as_str(),
            "and" | "or" | "und" | "oder" | "et" | "ou" | "y" | "o" | "e" | "и"
        );
        match level {
            Some(level) if between => {
                if !listed.contains(&level) {
                    listed.push(level);
                }
            }
            None if between && and => {}
            Some(_) | None => break,
        }
        if listed.len() >= LIST {
            return true;
        }
    }
    false
}
