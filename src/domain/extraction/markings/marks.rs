//! The boxes and ticks of a form, and the levels they stand at.

use super::layout::is_line_end;
use super::words::{Word, Words};
use crate::domain::tlp::Tlp;

/// A box or a sign beside a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Empty,
    /// A bullet or a cross, which is a choice only beside empty boxes.
    Filled,
    Tick,
}

impl Mark {
    fn of(c: char) -> Option<Self> {
        // Those for private use are of the font Wingdings, as texts of Word and PDF files hold them.
        match c {
            '☐' | '□' | '○' | '◯' | '◻' | '▢' | '❏' | '❑' | '❒' | '\u{f06f}' | '\u{f0a8}' => {
                Some(Self::Empty)
            }
            '☑'
            | '☒'
            | '✓'
            | '✔'
            | '✅'
            | '⊠'
            | '◉'
            | '🔘'
            | '🗵'
            | '🗷'
            | '🗸'
            | '🗹'
            | '\u{f078}'
            | '\u{f0fc}'..='\u{f0fe}' => Some(Self::Tick),
            '●' | '■' | '◼' | '⬛' | '✕' | '✖' | '✗' | '✘' | '×' | '❌' => {
                Some(Self::Filled)
            }
            _ => None,
        }
    }

    /// The mark that stands alone in a text, such as a cell of a table.
    pub(super) fn alone(text: &str) -> Option<Self> {
        let mut marks = Marks::default();
        let mut words = Words::new(text);
        if let Some(word) = words.next() {
            let is_cross = is_x(&word) && words.next().is_none();
            return is_cross.then_some(Self::Tick);
        }
        marks.see(text);
        marks.open.map(|(mark, _)| mark)
    }
}

fn is_x(word: &Word<'_>) -> bool {
    // The letters of both alphabets.
    matches!(word.text, "x" | "X" | "х" | "Х")
}

/// Whether a word is the cross of `[x]`, or of a cell that holds nothing else.
pub(super) fn is_cross(word: &Word<'_>, words: &Words<'_>) -> bool {
    if !is_x(word) {
        return false;
    }
    let before = word.gap.trim_end_matches(' ').chars().next_back();
    let fills_cell = before.is_none_or(|c| matches!(c, '|' | ':' | '\t') || is_line_end(c));
    match words.on_line() {
        Some(']') => before == Some('['),
        Some(')') => before == Some('('),
        Some('|') | None => fills_cell,
        Some(_) => false,
    }
}

/// What separates a mark from a level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    #[default]
    Beside,
    Cell,
    Line,
}

/// The levels with a mark, in one of two readings: a mark as near to the level before it as to the one behind is of the
/// one before, or of the one behind.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    /// The strictest levels with such a mark.
    filled: Option<Tlp>,
    ticked: Option<Tlp>,
    /// Levels with any mark.
    marked: usize,
    is_last_marked: bool,
}

impl Reading {
    fn mark(&mut self, mark: Mark, level: Tlp) {
        match mark {
            Mark::Empty => {}
            Mark::Filled => self.filled = self.filled.max(Some(level)),
            Mark::Tick => self.ticked = self.ticked.max(Some(level)),
        }
        self.marked += usize::from(!self.is_last_marked);
        self.is_last_marked = true;
    }
}

/// Marks as they are read from the first level of a form on.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    level: Option<Tlp>,
    /// Levels so far; the same one twice in a row, as in "🔴 RED", is one.
    levels: usize,
    /// The last mark as long as the level behind it is to come, and its distance from the level before.
    open: Option<(Mark, Distance)>,
    /// What stands behind the last level, and behind the last mark.
    from_level: Distance,
    from_mark: Distance,
    before: Reading,
    behind: Reading,
    has_empty: bool,
    has_tick: bool,
    /// Whether each mark stands before its level.
    leads: bool,
    is_first_marked: bool,
}

impl Marks {
    /// The mark before `TLP` itself, as in "[x] TLP:RED".
    pub(super) fn at_anchor(anchor: &Word<'_>, last: Option<&Word<'_>>) -> Self {
        let mut marks = Self::default();
        let near = anchor.gap.rsplit(is_line_end).next().unwrap_or_default();
        let is_boxed = |word: &&Word<'_>| {
            let opens = word.gap.trim_end().chars().next_back();
            let closes = near.trim_start().chars().next();
            let pair = (opens, closes);
            let is_pair = matches!(
                pair,
                (Some('['), Some(']')) | (Some('('), Some(')')) | (Some('|'), Some('|'))
            );
            is_x(word) && is_pair && near.len() == anchor.gap.len()
        };
        if last.filter(is_boxed).is_some() {
            marks.mark(Mark::Tick);
        } else {
            marks.see(near);
        }
        marks
    }

    /// Reads what stands between two words.
    pub(super) fn see(&mut self, gap: &str) {
        // Inside brackets: the sign so far.
        let mut inside: Option<Option<Mark>> = None;
        for c in gap.chars() {
            match c {
                '[' | '(' => inside = Some(None),
                ']' | ')' => {
                    if let Some(sign) = inside.take() {
                        self.mark(sign.unwrap_or(Mark::Empty));
                    }
                }
                '\t' | ',' | ';' | '|' | '/' | '.' | '•' | '·' | '、' | '，' | '-' | '–' | '—'
                    if inside.is_none() =>
                {
                    self.move_on(Distance::Cell);
                }
                _ if is_line_end(c) => {
                    inside = None;
                    self.move_on(Distance::Line);
                }
                // An empty box may be written `[_]` or `[-]`.
                '_' | '-' => {}
                _ if c.is_whitespace() => {}
                _ => match (Mark::of(c), &mut inside) {
                    (sign, Some(inside)) => *inside = sign.or(Some(Mark::Filled)),
                    (Some(mark), None) => self.mark(mark),
                    (None, None) => {}
                },
            }
        }
    }

    /// A mark follows.
    pub(super) fn mark(&mut self, mark: Mark) {
        self.close();
        self.open = Some((mark, self.from_level));
        self.from_mark = Distance::Beside;
    }

    fn move_on(&mut self, distance: Distance) {
        self.from_level = self.from_level.max(distance);
        self.from_mark = self.from_mark.max(distance);
    }

    /// A level follows. A mark between two levels is of the nearer one.
    pub(super) fn level(&mut self, level: Tlp) {
        let open = self.open.take();
        let behind = self.from_mark;
        if let (Some((mark, before)), Some(last)) = (open, self.level)
            && before <= behind
            && before < Distance::Line
        {
            self.give(mark);
            self.before.mark(mark, last);
            if before < behind {
                self.behind.mark(mark, last);
            }
        }
        let is_first = self.level.is_none();
        if self.level != Some(level) {
            self.levels += 1;
            self.before.is_last_marked = false;
            self.behind.is_last_marked = false;
        }
        self.level = Some(level);
        self.from_level = Distance::Beside;
        if let Some((mark, before)) = open
            && behind < Distance::Line
            && (is_first || before >= behind)
        {
            self.leads |= is_first;
            self.give(mark);
            self.behind.mark(mark, level);
            if is_first || before > behind {
                self.before.mark(mark, level);
            }
        }
    }

    /// A word follows that is no level.
    pub(super) fn word(&mut self) {
        self.close();
        // A mark behind an explanation is beside it, and so beside its level.
        if self.from_level == Distance::Cell {
            self.from_level = Distance::Beside;
        }
    }

    /// No level follows: a mark on the line of the last one is of that.
    pub(super) fn close(&mut self) {
        if let Some((mark, Distance::Beside | Distance::Cell)) = self.open.take()
            && let Some(last) = self.level
        {
            self.give(mark);
            self.before.mark(mark, last);
            self.behind.mark(mark, last);
        }
    }

    /// A mark is of the last level.
    fn give(&mut self, mark: Mark) {
        self.is_first_marked |= self.levels == 1;
        self.has_empty |= mark == Mark::Empty;
        self.has_tick |= mark == Mark::Tick;
    }

    /// Whether a mark stands beside the first level, or on its line before any other.
    pub(super) fn are_at_first(&self) -> bool {
        let is_near = |(_, before)| before < Distance::Line;
        self.is_first_marked || self.levels == 1 && self.open.is_some_and(is_near)
    }

    pub(super) fn is_first_marked(&self) -> bool {
        self.is_first_marked
    }

    /// The last level.
    pub(super) fn last(&self) -> Option<Tlp> {
        self.level
    }

    /// Number of levels.
    pub(super) fn levels(&self) -> usize {
        self.levels
    }

    /// Whether the last mark may be of a level that follows.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn has_empty(&self) -> bool {
        self.has_empty
    }

    /// Whether any level has a box or a tick.
    pub(super) fn has_boxes(&self) -> bool {
        self.has_empty || self.has_tick
    }

    /// Whether each level has a mark.
    pub(super) fn are_complete(&self) -> bool {
        let reading = if self.leads { self.behind } else { self.before };
        self.has_boxes() && reading.marked == self.levels
    }

    /// The strictest level that is ticked.
    pub(super) fn chosen(&self) -> Option<Tlp> {
        let chosen = |reading: &Reading| {
            let filled = reading.filled.filter(|_| self.has_empty);
            if self.has_tick { reading.ticked } else { filled }
        };
        match (self.leads, self.are_complete()) {
            (true, _) => chosen(&self.behind),
            (false, true) => chosen(&self.before),
            // A single tick between two levels may be of either.
            (false, false) => chosen(&self.before).max(chosen(&self.behind)),
        }
    }
}
