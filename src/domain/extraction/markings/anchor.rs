//! The words that name TLP, and whether a text takes them back.

use super::levels::{is_key, is_not, is_version, level_at, may_follow_not, named, single, with_strict};
use super::words::{Word, Words};
use crate::domain::tlp::Tlp;

/// A word that names TLP.
pub(super) enum Anchor {
    /// `TLP`, whose level may follow.
    Alone,
    /// A word with the level in it, such as `TLPRED`.
    Level(Tlp),
}

impl Anchor {
    /// The anchor that begins at a word; moves `words` behind it.
    pub(super) fn at(word: &Word<'_>, words: &mut Words<'_>) -> Option<Self> {
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

    /// The level directly behind, on the same line; moves `words` behind it.
    pub(super) fn own_level(&self, words: &mut Words<'_>) -> Option<Tlp> {
        match self {
            Self::Level(level) => Some(*level),
            Self::Alone => {
                let word = words.next().filter(|word| !word.crosses_line())?;
                level_at(&word, words)
            }
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
pub(super) fn is_taken_back(anchor: &Word<'_>, before: &[Word<'_>]) -> bool {
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
