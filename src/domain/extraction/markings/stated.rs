//! Reads TLP markings however they are written.
//!
//! Rule: `TLP` and a level make a marking if nothing but layout, punctuation and words such as "level" stands between
//! them, and of several levels the ticked one counts, or the stricter of two, while three or more are a list that states
//! none. A level below AMBER would lower what nobody marked, so it needs a clearer form than one above, and none at all
//! counts that others follow. What takes a marking back ("not TLP:RED") and compounds ("red team") are no marking.
//!
//! The look-ahead is bounded in words and ends at the next `TLP`, apart from the few that an explanation of the levels may
//! name, so each separator is read a bounded number of times.

use super::anchor::{Anchor, is_taken_back};
use super::choices::{Choices, Follow, is_compound};
use super::layout::{decode, strip, strip_to_words};
use super::legend;
use super::levels::{LIST, is_joint, is_key, is_not, is_strict_amber, is_verb, is_version, level_at, named};
use super::marks::{Mark, Marks, is_cross};
use super::table;
use super::words::{Link, Word, Words};
use crate::domain::tlp::Tlp;

/// Most words between `TLP` and its level.
const BETWEEN: usize = 8;
/// Most of them that mean nothing here, as in "TLP of this report: RED".
const UNKNOWN: usize = 3;
/// Words before `TLP` that may take the marking back.
const BEFORE: usize = 4;

/// The most restrictive TLP marking stated in the text.
pub fn tlp_hint(text: &str) -> Option<Tlp> {
    let decoded = decode(text);
    let stripped = strip(&decoded);
    let tagged = (stripped != decoded).then(|| strictest(&strip_to_words(&decoded)));
    strictest(&stripped)
        .max(tagged.flatten())
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
            found = found.max(in_front(&word, &before, &words));
            let statement = Statement::at(&anchor, &word, &before, &words);
            found = found.max(statement.level);
            words = statement.end.unwrap_or(words);
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

/// What one `TLP` states.
struct Statement<'t> {
    level: Option<Tlp>,
    /// Where the words go on, if it is a form or an explanation that has been read as a whole.
    end: Option<Words<'t>>,
}

impl<'t> Statement<'t> {
    /// The statement of the anchor that begins at `word`; `words` go on behind it.
    fn at(anchor: &Anchor, word: &Word<'t>, before: &[Word<'t>], words: &Words<'t>) -> Self {
        let marks = Marks::at_anchor(word, before.last());
        if let Some((level, end)) = legend::read(anchor, word, marks.clone(), words.clone()) {
            return Self::whole(level, end);
        }
        match anchor {
            Anchor::Level(level) => Self::one(Some(*level)),
            Anchor::Alone => Self::after(marks, words.clone()),
        }
    }

    fn one(level: Option<Tlp>) -> Self {
        Self { level, end: None }
    }

    fn whole(level: Option<Tlp>, end: Words<'t>) -> Self {
        Self {
            level,
            end: Some(end),
        }
    }

    /// The level that follows `TLP`, if the words up to it make it one.
    fn after(mut marks: Marks, mut words: Words<'t>) -> Self {
        let mut link: Option<Link> = None;
        let (mut unknown, mut is_sentence) = (0, false);
        for _ in 0..BETWEEN {
            let Some(word) = words.next() else { break };
            marks.see(word.gap);
            let gap = Link::of(word.gap);
            let so_far = link.map_or(gap, |link| link.then(gap));
            link = Some(so_far);
            // "TLP: x" is a value.
            let is_value = word.gap.trim_end().ends_with([':', '=']);
            if !is_value && is_cross(&word, &words) {
                marks.mark(Mark::Tick);
                continue;
            }
            let mut ahead = words.clone();
            if Anchor::at(&word, &mut ahead).is_some() {
                break;
            }
            if let Some(level) = level_at(&word, &mut ahead) {
                let mention = Mention {
                    word,
                    level,
                    link: so_far,
                    unknown: unknown > 0,
                    is_sentence,
                };
                return mention.statement(marks, ahead);
            }
            let key = word.key();
            if is_not(&key) {
                break;
            }
            marks.word();
            is_sentence |= is_verb(&key);
            if !is_key(&key) && !is_version(&key) {
                unknown += 1;
            }
            if unknown > UNKNOWN {
                break;
            }
        }
        Self::one(None)
    }
}

/// The level in front of a bracketed `TLP`: "Distribution: RED (TLP)", "RED (TLP 2.0)".
fn in_front(anchor: &Word<'_>, before: &[Word<'_>], words: &Words<'_>) -> Option<Tlp> {
    let opens = matches!(anchor.gap.trim_start(), "(" | "[" | "{");
    let mut words = words.clone();
    while words.peek().is_some_and(|word| {
        (word.follows_blank() || word.gap == ".") && (is_version(&word.key()) || is_key(&word.key()))
    }) {
        words.next();
    }
    let closes = matches!(words.following(), Some(')' | ']' | '}'));
    let last = before.last().filter(|_| opens && closes)?;
    let mut levels = vec![named(&last.latin_key())?];
    // The levels of a list before it.
    for word in before.iter().rev().skip(1) {
        let key = word.latin_key();
        match named(&key) {
            Some(level) if !levels.contains(&level) => levels.push(level),
            Some(_) => {}
            None if is_joint(&key) => {}
            None => break,
        }
    }
    let level = levels.iter().copied().max()?;
    let is_sure = levels.len() == 1 && !last.begins_small();
    (levels.len() < LIST && (level >= Tlp::Amber || is_sure)).then_some(level)
}

/// The first level behind `TLP`.
#[derive(Clone, Copy)]
struct Mention<'t> {
    word: Word<'t>,
    level: Tlp,
    link: Link,
    /// Whether words of no meaning here stand in between.
    unknown: bool,
    /// Whether a verb stands in between.
    is_sentence: bool,
}

impl<'t> Mention<'t> {
    /// What it states together with the levels that follow; `words` go on behind it.
    fn statement(self, marks: Marks, words: Words<'t>) -> Statement<'t> {
        let choices = Choices::read(self.word, self.level, !self.link.line, marks, words.clone());
        if let Some(ticked) = choices.form() {
            return Statement::whole(ticked, choices.end());
        }
        if choices.is_list() {
            return Statement::whole(None, choices.end());
        }
        let is_marking = |level: &Tlp| {
            Self {
                level: *level,
                ..self
            }
            .is_marking(&words)
        };
        Statement::one(choices.level().filter(is_marking))
    }

    /// Whether it is the marking of something; `words` go on behind it.
    fn is_marking(&self, words: &Words<'_>) -> bool {
        let Self { word, link, .. } = self;
        let lowers = self.level < Tlp::Amber;
        let alone = words.is_at_end();
        let in_capitals = !word.has_small_letters();
        let is_name = word.text.starts_with(char::is_uppercase);
        // "TLP of this report: RED", "The TLP of this report is Red".
        let introduced = link.colon && (alone || in_capitals)
            || self.is_sentence && (in_capitals || is_name && !lowers && !self.is_part_of_name(words));
        if self.unknown && (!introduced || link.line || link.sentence) {
            return false;
        }
        // Across the end of a line or a sentence it stands for itself.
        if !link.colon && (link.line || link.sentence) && !alone && !in_capitals {
            return false;
        }
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
        !self.is_of_compound(words)
    }

    /// Whether a name follows that it may be part of: "Red Lion".
    fn is_part_of_name(&self, words: &Words<'_>) -> bool {
        Follow::of(&self.word, words) == Follow::Name
    }

    /// Whether it is something else in its colour: "red team", "WHITE PAPER".
    fn is_of_compound(&self, words: &Words<'_>) -> bool {
        let in_capitals = !self.word.has_small_letters();
        let goes_on_small = words.peek().is_some_and(|next| next.begins_small());
        let is_plain = if self.level < Tlp::Amber {
            self.link.colon && in_capitals && goes_on_small
        } else {
            self.link.colon || in_capitals
        };
        (!is_plain || self.link.line) && is_compound(self.level, words)
    }
}
