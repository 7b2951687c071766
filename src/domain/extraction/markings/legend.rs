//! Forms and explanations that name `TLP` with each level, one after the other.

use super::anchor::Anchor;
use super::choices::{FEW, Follow, GLOSS, MENTIONS};
use super::levels::{LIST, Ladder, is_explaining, is_joint};
use super::marks::{Mark, Marks, is_cross};
use super::words::{Word, Words};
use crate::domain::tlp::Tlp;

/// Levels that each follow a `TLP`, with boxes or explanations.
#[derive(Default)]
struct Legend {
    ladder: Ladder,
    marks: Marks,
    /// What follows the first and the last level.
    first: Option<Follow>,
    last: Option<Follow>,
    /// Whether different things follow the levels before the last one.
    is_uneven: bool,
    /// Whether one of those goes on in words, as where it marks something: "TLP:RED report".
    has_words: bool,
    /// Levels that words about sharing follow, and whether such a word follows the last one.
    explained: usize,
    is_explained: bool,
    /// Whether any words stand between the levels.
    is_wordy: bool,
    /// Words since the last level or mention of it, and its mentions.
    words: usize,
    mentions: usize,
}

/// The ticked level of the form or explanation that begins at an anchor, if any, and where the words go on behind it. The
/// outer `None` if there is none. Each level must stand once, from the strictest down or up.
pub(super) fn read<'t>(
    anchor: &Anchor,
    word: &Word<'t>,
    marks: Marks,
    mut words: Words<'t>,
) -> Option<(Option<Tlp>, Words<'t>)> {
    let mut legend = Legend {
        marks,
        ..Legend::default()
    };
    legend.take(anchor, word, &mut words).then_some(())?;
    let mut end = words.clone();
    while legend.words <= GLOSS {
        let Some(word) = words.next() else {
            legend.marks.see(words.gap());
            break;
        };
        legend.marks.see(word.gap);
        if is_cross(&word, &words) {
            legend.marks.mark(Mark::Tick);
        } else if let Some(anchor) = Anchor::at(&word, &mut words) {
            if !legend.take(&anchor, &word, &mut words) {
                break;
            }
            end = words.clone();
        } else {
            legend.word(&word);
        }
    }
    legend.marks.close();
    legend.level().map(|level| (level, end))
}

impl Legend {
    /// Whether the level of an anchor is the next one, or explains the last; moves `words` behind it.
    fn take(&mut self, anchor: &Anchor, word: &Word<'_>, words: &mut Words<'_>) -> bool {
        let Some(level) = anchor.own_level(words) else {
            return false;
        };
        self.is_wordy |= self.words > 0;
        let follow = Follow::of(word, words);
        let is_inside = match follow {
            Follow::Word | Follow::Name => true,
            Follow::End => !word.crosses_line(),
            Follow::Sign => false,
        };
        if is_inside && self.words >= FEW && !self.marks.is_open() && self.ladder.stands_at(level) {
            self.words = 0;
            self.mentions += 1;
            return self.mentions <= MENTIONS;
        }
        if !self.ladder.step(level) {
            return false;
        }
        self.marks.level(level);
        let goes_on = matches!(follow, Follow::Word | Follow::Name);
        if self.first.is_none() && goes_on && !self.marks.is_first_marked() {
            return false;
        }
        self.is_uneven |= self.last.is_some() && self.last != self.first;
        self.has_words |= matches!(self.last, Some(Follow::Word | Follow::Name));
        self.first = self.first.or(Some(follow));
        self.last = Some(follow);
        self.words = 0;
        self.mentions = 0;
        self.is_explained = false;
        true
    }

    fn word(&mut self, word: &Word<'_>) {
        self.marks.word();
        let key = word.key();
        self.words += usize::from(!is_joint(&key));
        if is_explaining(&key) {
            self.explained += usize::from(!self.is_explained);
            self.is_explained = true;
        }
    }

    /// The ticked level; the outer `None` if this is neither a form nor an explanation.
    fn level(&self) -> Option<Option<Tlp>> {
        let steps = self.ladder.len();
        if steps > 1 && self.marks.is_first_marked() && self.marks.are_complete() {
            let is_form = steps >= LIST || !self.has_words;
            return is_form.then(|| self.marks.chosen());
        }
        // The parts of a report may have a marking each.
        let is_explained = !self.is_wordy || self.explained >= LIST;
        let is_legend = self.ladder.is_complete() && is_explained && !self.has_words && !self.is_uneven;
        is_legend.then_some(None)
    }
}
