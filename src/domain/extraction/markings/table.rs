//! Markings in tables: a column headed "TLP" with levels below it, or a column for each level with a tick below one.

use super::anchor::Anchor;
use super::choices::Choices;
use super::levels::{LIST, Ladder, is_explaining, is_joint, is_key, is_version, level_at};
use super::marks::{Mark, Marks, is_cross};
use super::words::Words;
use crate::domain::tlp::Tlp;

/// How cells are separated in tables of markdown, CSV files and plain text.
const SEPARATORS: [&str; 5] = ["|", "\t", ";", ",", "  "];

/// The strictest level in a column headed "TLP".
pub(super) fn tlp_of_cells(text: &str) -> Option<Tlp> {
    let mut column: Option<Column> = None;
    let mut strictest = None;
    for line in text.lines() {
        let is_row = column.as_mut().is_some_and(|column| column.read(line));
        // A blank line, or the rule below the head.
        if is_row || !line.contains(char::is_alphanumeric) {
            continue;
        }
        let next = Column::headed(line);
        let has_ended = column
            .as_ref()
            .is_some_and(|column| !line.contains(column.separator));
        if next.is_some() || has_ended {
            strictest = strictest.max(column.and_then(|column| column.level()));
            column = next;
        }
    }
    strictest.max(column.and_then(|column| column.level()))
}

/// The column of a table in which levels stand.
struct Column {
    separator: &'static str,
    /// The place of the cell "TLP", if there is one.
    place: Option<usize>,
    /// Whether the head may be a sentence with commas.
    is_prose: bool,
    /// The columns headed with a level.
    heads: Vec<(usize, Tlp)>,
    rows: Ladder,
    /// The strictest level without an empty box in its cell.
    strictest: Option<Tlp>,
    /// The strictest level with one.
    unticked: Option<Tlp>,
    /// The strictest level of a row with a tick.
    ticked: Option<Tlp>,
    /// Whether other cells of the rows have boxes.
    has_marks: bool,
    /// Whether they have anything else.
    has_text: bool,
    /// Rows that say who may read what has their level.
    explained: usize,
    /// The strictest level with a tick below it.
    below: Option<Tlp>,
}

impl Column {
    /// The column that a line is the head of.
    fn headed(line: &str) -> Option<Self> {
        if !line
            .as_bytes()
            .windows(3)
            .any(|part| part.eq_ignore_ascii_case(b"tlp"))
        {
            return None;
        }
        let of = |separator: &'static str| {
            if !line.contains(separator) || is_sentence(line, separator) {
                return None;
            }
            let place = cells(line, separator).position(is_head);
            let level_of = |(at, cell)| Some((at, Cell::of(cell)?.level));
            let heads = cells(line, separator).enumerate().filter_map(level_of);
            let heads: Vec<(usize, Tlp)> = heads.collect();
            let heads = if heads.len() < LIST { Vec::new() } else { heads };
            (place.is_some() || !heads.is_empty()).then_some((separator, place, heads))
        };
        let (separator, place, heads) = SEPARATORS.into_iter().find_map(of)?;
        Some(Self {
            separator,
            place,
            is_prose: is_prose(line, separator),
            heads,
            rows: Ladder::default(),
            strictest: None,
            unticked: None,
            ticked: None,
            has_marks: false,
            has_text: false,
            explained: 0,
            below: None,
        })
    }

    /// Reads a line; whether it is a row with a level or a tick.
    fn read(&mut self, line: &str) -> bool {
        if is_sentence(line, self.separator) {
            return false;
        }
        let mut is_row = false;
        for (at, cell) in cells(line, self.separator).enumerate() {
            if Some(at) == self.place
                && let Some(cell) = Cell::of(cell)
            {
                self.add(cell, line);
                is_row = true;
            }
            let head = self.heads.binary_search_by_key(&at, |(place, _)| *place);
            if let Some((_, level)) = head.ok().and_then(|head| self.heads.get(head))
                && Mark::alone(cell) == Some(Mark::Tick)
            {
                self.below = self.below.max(Some(*level));
                is_row = true;
            }
        }
        is_row
    }

    /// Adds the cell of a row.
    fn add(&mut self, cell: Cell, line: &str) {
        // What looks like prose may raise a marking, not lower it.
        let is_prose = self.is_prose || is_prose(line, self.separator) || !line.contains(self.separator);
        if is_prose && cell.level < Tlp::Amber {
            return;
        }
        let level = Some(cell.level);
        self.rows.step(cell.level);
        if cell.mark == Some(Mark::Empty) {
            self.unticked = self.unticked.max(level);
        } else {
            self.strictest = self.strictest.max(level);
        }
        let mark = cell.mark.or_else(|| self.read_beside(line));
        if mark == Some(Mark::Tick) {
            self.ticked = self.ticked.max(level);
        }
    }

    /// The mark in another cell of a row: that of its level, unless the row has more than those.
    fn read_beside(&mut self, line: &str) -> Option<Mark> {
        let place = self.place;
        let beside = cells(line, self.separator).enumerate();
        let mut mark = None;
        let mut is_explained = false;
        for (_, cell) in beside.filter(|(at, cell)| Some(*at) != place && !cell.trim().is_empty()) {
            let found = Mark::alone(cell);
            self.has_text |= found.is_none();
            is_explained |= Words::new(cell).any(|word| is_explaining(&word.key()));
            mark = mark.max(found);
        }
        self.explained += usize::from(is_explained);
        self.has_marks |= mark.is_some();
        mark
    }

    /// The level that the column states.
    fn level(&self) -> Option<Tlp> {
        let is_form = self.has_marks && !self.has_text && self.rows.len() > 1;
        let is_explained = !self.has_text || self.explained >= LIST;
        let own = if is_form || is_explained && self.rows.is_complete() {
            // An explanation of the levels has no tick.
            self.ticked
        } else if self.rows.len() == 1 {
            // An empty box beside the only level does not hide a marking.
            self.strictest
                .max(self.unticked.filter(|level| *level >= Tlp::Amber))
        } else {
            self.strictest
        };
        own.max(self.below)
    }
}

fn cells<'l>(line: &'l str, separator: &'l str) -> impl Iterator<Item = &'l str> {
    // Columns of plain text are as far apart as they need to be.
    let spaced = separator.trim().is_empty() && separator != "\t";
    line.split(separator)
        .filter(move |cell| !spaced || !cell.trim().is_empty())
}

/// Whether the separators are punctuation that prose has too.
fn is_prose(line: &str, separator: &str) -> bool {
    let blank_follows = |cell: &str| cell.starts_with(' ');
    matches!(separator, "," | ";") && line.split(separator).skip(1).any(blank_follows)
}

/// Whether a line is an enumeration in a sentence: "red, white, and blue".
fn is_sentence(line: &str, separator: &str) -> bool {
    let goes_on = |cell: &str| {
        let mut words = Words::new(cell);
        let first = words.next();
        first.is_some_and(|word| is_joint(&word.key())) && words.next().is_some()
    };
    is_prose(line, separator) && line.split(separator).skip(1).any(goes_on)
}

fn is_head(cell: &str) -> bool {
    let mut words = Words::new(cell);
    let first = words.next().is_some_and(|word| word.latin_key() == "tlp");
    first && words.all(|word| is_key(&word.key()) || is_version(&word.key()))
}

/// A cell that holds levels and nothing else.
struct Cell {
    level: Tlp,
    mark: Option<Mark>,
}

impl Cell {
    fn of(cell: &str) -> Option<Self> {
        let mut words = Words::new(cell);
        let mut marks = Marks::default();
        loop {
            let word = words.next()?;
            if let Some(anchor) = Anchor::at(&word, &mut words) {
                let level = anchor.own_level(&mut words)?;
                let is_all = words.next().is_none();
                return is_all.then_some(Self { level, mark: None });
            }
            marks.see(word.gap);
            if is_cross(&word, &words) {
                marks.mark(Mark::Tick);
                continue;
            }
            let level = level_at(&word, &mut words)?;
            let choices = Choices::read(word, level, false, marks, words);
            return Self::chosen(&choices);
        }
    }

    fn chosen(choices: &Choices<'_>) -> Option<Self> {
        if !choices.are_all() {
            return None;
        }
        match choices.form() {
            Some(ticked) => {
                let mark = if ticked.is_some() { Mark::Tick } else { Mark::Empty };
                let level = ticked.unwrap_or(choices.strictest());
                Some(Self {
                    level,
                    mark: Some(mark),
                })
            }
            None if choices.is_list() => None,
            None => {
                let level = choices.level()?;
                Some(Self {
                    level,
                    mark: choices.mark(),
                })
            }
        }
    }
}
