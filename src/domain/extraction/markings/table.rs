//! Markings in tables: a column headed "TLP" with levels below it.

use super::levels::{is_key, is_version, level_at};
use super::words::Words;
use crate::domain::tlp::Tlp;

/// How cells are separated in tables of markdown, CSV files and plain text.
const SEPARATORS: [&str; 5] = ["|", "\t", ";", ",", "  "];

/// The strictest level in a column headed "TLP".
pub(super) fn tlp_of_cells(text: &str) -> Option<Tlp> {
    let mut head: Option<(&str, usize)> = None;
    let mut strictest = None;
    for line in text.lines() {
        if !line.contains(char::is_alphanumeric) {
            // A blank line, or the rule below the head.
            continue;
        }
        if let Some((separator, place)) = head {
            let level = cells(line, separator).nth(place).and_then(level_of);
            strictest = strictest.max(level);
            if level.is_some() {
                continue;
            }
            if !line.contains(separator) {
                head = None;
            }
        }
        head = head_of(line).or(head);
    }
    strictest
}

fn cells<'l>(line: &'l str, separator: &'l str) -> impl Iterator<Item = &'l str> {
    // Columns of plain text are as far apart as they need to be.
    let spaced = separator.trim().is_empty() && separator != "\t";
    line.split(separator)
        .filter(move |cell| !spaced || !cell.trim().is_empty())
}

/// The separator of a line that has a cell "TLP", and the place of the cell.
fn head_of(line: &str) -> Option<(&'static str, usize)> {
    if !line
        .as_bytes()
        .windows(3)
        .any(|part| part.eq_ignore_ascii_case(b"tlp"))
    {
        return None;
    }
    let of = |separator: &'static str| {
        let many = line.contains(separator);
        let place = cells(line, separator).position(is_head).filter(|_| many)?;
        Some((separator, place))
    };
    SEPARATORS.into_iter().find_map(of)
}

fn is_head(cell: &str) -> bool {
    let mut words = Words::new(cell);
    let first = words.next().is_some_and(|word| word.latin_key() == "tlp");
    first && words.all(|word| is_key(&word.key()) || is_version(&word.key()))
}

/// The level of a cell that holds nothing else.
fn level_of(cell: &str) -> Option<Tlp> {
    let mut words = Words::new(cell);
    let first = words.next()?;
    let level = level_at(&first, &mut words)?;
    words.next().is_none().then_some(level)
}
