//! Several levels behind one `TLP`: a form with boxes, a list, an explanation of the levels, or two levels of which the
//! stricter one counts.
//!
//! To lower a text takes more than to raise it: where other levels follow one below AMBER, it counts only if it is ticked.
//! A level from AMBER on is not counted only if the others make it plain that it is one of many.

use super::anchor::Anchor;
use super::layout::is_line_end;
use super::levels::{LIST, are_all, is_joint, is_not, is_version, level_at, makes_compound, rank};
use super::marks::{Mark, Marks, is_cross};
use super::words::{Word, Words, is_of_word};
use crate::domain::tlp::Tlp;

/// Most words that explain a level before the next one, if each begins a line.
pub(super) const GLOSS: usize = 100;
/// Fewest words before the explanation of a level names it.
pub(super) const FEW: usize = 3;
/// How often the explanation of a level may name it: "Sources may use TLP:RED when".
pub(super) const MENTIONS: usize = 4;
/// Most words that explain a level before the next one on the same line.
const SHORT_GLOSS: usize = 12;

/// What follows a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    /// The end of the line, of a cell or of a part of the sentence; another level.
    End,
    /// A sign that introduces an explanation.
    Sign,
    /// A word that explains it: "RED for the annex".
    Word,
    /// A word that makes a name of it: "Red Lion".
    Name,
}

impl Follow {
    /// What follows `level`, which `words` have read.
    pub(super) fn of(level: &Word<'_>, words: &Words<'_>) -> Self {
        let Some(c) = words.on_line() else {
            return Self::End;
        };
        if !is_of_word(c) {
            let introduces = matches!(c, ':' | '=' | '(' | '-' | '–' | '—' | '−' | '→');
            return if introduces { Self::Sign } else { Self::End };
        }
        let mut words = words.clone();
        let Some(next) = words.next() else {
            return Self::End;
        };
        if is_joint(&next.key()) || level_at(&next, &mut words).is_some() {
            return Self::End;
        }
        let explains = if level.has_small_letters() {
            next.begins_small()
        } else {
            next.has_small_letters()
        };
        if explains { Self::Word } else { Self::Name }
    }
}

/// What has been read behind the last level.
#[derive(Debug, Clone, Copy, Default)]
struct Between {
    words: usize,
    /// Whether a line ends there.
    has_line: bool,
    /// Whether a sentence ends there.
    has_sentence: bool,
    /// What stands there since the last word.
    gap: Gap,
}

/// Separators without words, apart from "and" and numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Gap {
    has_line: bool,
    /// Whether anything but blanks and the end of a sentence stands there.
    has_sign: bool,
    /// Whether it may end an explanation.
    is_end: bool,
    /// Whether a list goes on behind it, even on the next line.
    is_unfinished: bool,
    /// Whether a level behind it is the value of something else: "severity: RED".
    is_value: bool,
}

impl Between {
    /// Reads what stands before a word.
    fn see(&mut self, gap: &str) {
        let mut before = None;
        for c in gap.chars() {
            let ends_sentence = matches!(c, '.' | '!' | '?');
            self.gap.has_line |= is_line_end(c);
            self.gap.has_sign |= !c.is_whitespace() && !ends_sentence;
            self.gap.is_end |= ends_sentence
                || matches!(
                    c,
                    '\t' | ',' | ';' | '|' | '/' | ')' | ']' | '<' | '•' | '·' | '、' | '，'
                );
            self.gap.is_unfinished |= matches!(c, ',' | ';' | '/' | '、' | '，');
            self.gap.is_value |= matches!(c, ':' | '=') && self.words > 0;
            self.has_sentence |= c.is_whitespace() && before.is_some_and(|c| matches!(c, '.' | '!' | '?'));
            before = Some(c);
        }
        self.has_line |= self.gap.has_line;
    }

    /// Counts a word that explains a level.
    fn explain(&mut self) {
        self.words += 1;
        self.gap = Gap::default();
    }
}

/// Levels that follow one another.
pub(super) struct Choices<'t> {
    words: Words<'t>,
    first: Word<'t>,
    follow: Follow,
    /// Whether the first level ends the line of `TLP`, so that what follows is something else.
    is_closed: bool,
    /// Whether the first level stands on the line of `TLP`.
    is_on_line: bool,
    /// The first level, and others that are written like it.
    listed: Vec<Tlp>,
    strictest: Tlp,
    /// Whether they are a list only if they are all levels: those of an explanation over several lines, or with another
    /// `TLP` among them.
    is_loose: bool,
    /// Whether a level follows that may be none.
    is_doubtful: bool,
    /// Whether the last word is "not".
    is_negated: bool,
    between: Between,
    marks: Marks,
    /// Mentions since the last new level.
    mentions: usize,
    /// Where the words go on behind the last level.
    end: Words<'t>,
}

impl<'t> Choices<'t> {
    /// The levels from the first on, behind which `words` go on. `is_on_line` says whether it stands on the line of `TLP`;
    /// `marks` are those before it.
    pub(super) fn read(
        first: Word<'t>,
        first_level: Tlp,
        is_on_line: bool,
        mut marks: Marks,
        words: Words<'t>,
    ) -> Self {
        marks.level(first_level);
        let mut choices = Self {
            follow: Follow::of(&first, &words),
            end: words.clone(),
            words,
            first,
            is_closed: false,
            is_on_line,
            listed: vec![first_level],
            strictest: first_level,
            is_loose: false,
            is_doubtful: false,
            is_negated: false,
            between: Between::default(),
            marks,
            mentions: 0,
        };
        while choices.go_on() {}
        choices.marks.close();
        choices
    }

    /// Reads the next word; whether more may follow.
    fn go_on(&mut self) -> bool {
        let Some(word) = self.words.next() else {
            self.marks.see(self.words.gap());
            return false;
        };
        self.between.see(word.gap);
        self.marks.see(word.gap);
        let is_first = self.listed.len() == 1 && self.between.words == 0;
        let ends_line = self.between.has_line && !self.between.gap.is_unfinished;
        self.is_closed |= is_first && self.is_on_line && ends_line && !self.marks.are_at_first();
        if self.is_closed && self.marks.is_open() {
            return false;
        }
        if is_cross(&word, &self.words) {
            self.marks.mark(Mark::Tick);
            return true;
        }
        let mut ahead = self.words.clone();
        if let Some(anchor) = Anchor::at(&word, &mut ahead) {
            return self.takes_anchor(&anchor, ahead);
        }
        let key = word.key();
        if is_joint(&key) || is_version(&key) {
            self.between.gap.is_end |= is_joint(&key);
            self.between.gap.is_unfinished |= is_joint(&key);
            return true;
        }
        if let Some(level) = level_at(&word, &mut ahead)
            && self.takes(&word, level, &ahead)
        {
            if self.begins_anew(level) {
                return false;
            }
            self.add(level, self.is_alike(&word));
            self.end = ahead.clone();
            self.words = ahead;
            return true;
        }
        self.is_negated = is_not(&key);
        self.marks.word();
        self.between.explain();
        self.between.words <= GLOSS && !self.is_closed
    }

    /// Whether a level is one of these, and where it is none, whether that is in doubt.
    fn takes(&mut self, word: &Word<'_>, level: Tlp, behind: &Words<'_>) -> bool {
        // Below a line of its own only a column of levels goes on with it.
        let is_outside = self.is_closed && !(self.between.gap.has_line && behind.on_line().is_none());
        if self.is_negated || is_outside || is_compound(level, behind) {
            return false;
        }
        let follow = Follow::of(word, behind);
        let is_alike = self.is_alike(word);
        if !self.fits(word, follow, is_alike) {
            let is_near =
                !self.between.has_line && !self.between.has_sentence && self.between.words <= SHORT_GLOSS;
            let is_name = follow == Follow::Name && self.follow != Follow::Name;
            // In other letters it is a level only if nothing else stands there.
            let is_bare = self.between.words == 0 && follow == Follow::End;
            let is_other = (is_alike || is_bare) && !is_name && !self.listed.contains(&level);
            self.is_doubtful |= is_other && (is_near || self.between.gap.has_line);
            return false;
        }
        true
    }

    /// Whether another list begins with a level, which this one has already; if it is the first, that one stands alone.
    fn begins_anew(&mut self, level: Tlp) -> bool {
        let is_kind_of = |other: Tlp| rank(other) == rank(level);
        let is_known = self.listed.contains(&level)
            || self.listed.iter().copied().any(is_kind_of) && !self.marks.last().is_some_and(is_kind_of);
        let is_apart = self.between.has_line && (self.between.words > 0 || self.is_closed);
        let is_anew = is_known && is_apart && !self.marks.is_first_marked();
        if let Some(first) = self.listed.first().copied()
            && is_anew
            && is_kind_of(first)
        {
            self.listed.truncate(1);
            self.strictest = first;
            self.is_doubtful = false;
        }
        is_anew
    }

    /// Whether a level stands where the next one of a form, a list or an explanation would stand.
    fn fits(&self, word: &Word<'_>, follow: Follow, is_alike: bool) -> bool {
        let is_marked = self.marks.is_open() && self.marks.are_at_first();
        let explained = follow == Follow::Word && !word.has_small_letters();
        let is_item = is_marked || follow != Follow::Name;
        let is_same = is_marked || follow == self.follow;
        let Between {
            words, has_line, gap, ..
        } = self.between;
        is_item
            && match (words, has_line) {
                (0, false) => {
                    (gap.has_sign || is_alike) && (is_marked || follow != Follow::Word || explained)
                }
                (0, true) => is_alike && is_same,
                (_, false) => {
                    let ends = words <= SHORT_GLOSS && gap.is_end && !gap.is_value;
                    is_marked || ends && is_same && (follow != Follow::Word || is_alike && explained)
                }
                (_, true) => is_alike && is_same && gap.has_line,
            }
    }

    /// Whether a level is written like the first, in capitals or not.
    fn is_alike(&self, word: &Word<'_>) -> bool {
        !word.has_case()
            || !self.first.has_case()
            || word.has_small_letters() == self.first.has_small_letters()
    }

    fn add(&mut self, level: Tlp, is_alike: bool) {
        self.is_loose |= self.between.words > 0 && self.between.has_line;
        if !self.listed.contains(&level) {
            self.is_doubtful |= !is_alike;
            if is_alike {
                self.listed.push(level);
                // Only new levels have mentions of their own: one `TLP` is not read up to the end of the text.
                self.mentions = 0;
            }
        }
        self.strictest = self.strictest.max(level);
        self.marks.level(level);
        self.between = Between::default();
    }

    /// Whether this goes on behind another `TLP`: "RED, AMBER and TLP:GREEN", "RED: who reads TLP:RED must".
    fn takes_anchor(&mut self, anchor: &Anchor, mut ahead: Words<'t>) -> bool {
        let Some(level) = anchor.own_level(&mut ahead) else {
            return false;
        };
        if self.between.words > 0 {
            self.mentions += 1;
            let is_same = self.marks.last().is_some_and(|last| rank(last) == rank(level));
            let is_explained = self.between.words >= FEW && matches!(self.follow, Follow::End | Follow::Sign);
            if !is_same || !is_explained || self.mentions > MENTIONS {
                return false;
            }
        } else if self.between.has_line || self.listed.contains(&level) || self.listed.len() + 1 < LIST {
            return false;
        } else {
            self.is_loose = true;
            self.add(level, true);
        }
        self.end = ahead.clone();
        self.words = ahead;
        true
    }

    /// The ticked level of a form; the outer `None` if it is no form.
    pub(super) fn form(&self) -> Option<Option<Tlp>> {
        let marks = &self.marks;
        // A list of tasks below a marking has boxes, too.
        let has_own = marks.is_first_marked() || !marks.has_empty();
        let is_form = marks.are_complete() || marks.has_boxes() && has_own && self.listed.len() >= LIST;
        if !is_form {
            return None;
        }
        let chosen = marks.chosen();
        if marks.levels() > 1 {
            return Some(chosen);
        }
        // An empty box beside the only level does not hide a marking.
        (chosen.is_none() && self.strictest < Tlp::Amber).then_some(None)
    }

    /// Whether the levels are listed or explained, and none of them is the marking.
    pub(super) fn is_list(&self) -> bool {
        self.listed.len() >= LIST && (!self.is_loose || are_all(&self.listed))
    }

    /// The level that counts where this is neither a form nor a list.
    pub(super) fn level(&self) -> Option<Tlp> {
        let is_sure = self.listed.len() == 1 && !self.is_doubtful;
        (self.strictest >= Tlp::Amber || is_sure).then_some(self.strictest)
    }

    pub(super) fn strictest(&self) -> Tlp {
        self.strictest
    }

    /// The mark of the only level.
    pub(super) fn mark(&self) -> Option<Mark> {
        let empty = self.marks.has_empty().then_some(Mark::Empty);
        self.marks.chosen().map(|_| Mark::Tick).or(empty)
    }

    /// Whether nothing but levels has been read.
    pub(super) fn are_all(&self) -> bool {
        self.between.words == 0 && self.words.peek().is_none()
    }

    /// Where the words go on behind the last level.
    pub(super) fn end(self) -> Words<'t> {
        self.end
    }
}

/// Whether a level and what follows it mean something else, as in "red team".
pub(super) fn is_compound(level: Tlp, behind: &Words<'_>) -> bool {
    let joins = |next: &Word<'_>| next.follows_blank() || matches!(next.gap, "-" | "_");
    let next = behind.peek().filter(joins);
    next.is_some_and(|next| makes_compound(level, &next.key()))
}
