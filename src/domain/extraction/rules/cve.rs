//! CVE ids (CVE numbering rules: a year from 1999 on and at least four digits), in the ways in which reports write them.
//!
//! `CVE 2023 34362`, `CVE_2023_34363`, `CVE–2023–34364`, over a line end, as a tag of a Sigma rule (`cve.2021.44228`), and
//! in lists that do not repeat what the ids share: `CVE-2021-26855/26857`, `CVE-2024-21762, -23113 and -23108`,
//! `CVE-2024-(21762,23113)`, `CVE-2023-46805 & 2024-21887`. A bare number in a list is an id only where the sentence goes on
//! as it does behind a list.

use super::super::source::{Source, is_one_of};
use crate::domain::kinds::EntityKind;

const PREFIX: &str = "CVE";
/// How far an id, and each further one of a list, is read.
const REACH: usize = 64;
/// Ids of a list.
const LIST: usize = 64;
/// Characters between the parts of an id.
const JOINT: usize = 4;
/// What joins the ids of a list, and whether a blank must follow.
const JOINTS: &[(&str, bool)] = &[
    ("/", false),
    (",", false),
    (";", false),
    ("&", false),
    ("|", false),
    ("、", false),
    ("，", false),
    ("and", true),
    ("or", true),
    ("und", true),
    ("et", true),
    ("y", true),
    ("и", true),
    ("和", false),
    ("及", false),
    ("与", false),
    ("と", false),
    ("와", false),
    ("과", false),
];
/// Words that go on behind a list of ids; behind "and 5000" other words tell of servers and victims.
const AFTER_A_LIST: &[&str] = &[
    "is",
    "are",
    "was",
    "were",
    "be",
    "been",
    "has",
    "have",
    "had",
    "in",
    "on",
    "to",
    "by",
    "for",
    "with",
    "from",
    "as",
    "at",
    "of",
    "that",
    "which",
    "who",
    "when",
    "while",
    "after",
    "before",
    "and",
    "or",
    "but",
    "via",
    "through",
    "into",
    "against",
    "affect",
    "affects",
    "affecting",
    "allow",
    "allows",
    "can",
    "could",
    "may",
    "might",
    "will",
    "both",
    "together",
    "chained",
    "respectively",
    "vulnerabilities",
    "exploits",
    "flaws",
    "bugs",
    "exploited",
];

/// How the parts of an id are joined.
#[derive(Clone, Copy, PartialEq)]
enum Joint {
    None,
    Blank,
    Mark,
}

/// An id that was read: its year and number, and where it ends.
struct Id<'t> {
    year: &'t str,
    serial: &'t str,
    end: usize,
    tight: bool,
}

/// Whether a word may begin an id.
pub(in crate::domain::extraction) fn begins(word: &str) -> bool {
    word.get(..PREFIX.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(PREFIX))
}

/// The id that a text is, in normal form; `None` if it is none.
pub fn cve_id(text: &str) -> Option<String> {
    let rest = begins(text).then(|| text.get(PREFIX.len()..)).flatten()?;
    let id = read(rest)?;
    (id.end == rest.len()).then(|| format!("{PREFIX}-{}-{}", id.year, id.serial))
}

/// Finds the id that begins here, and the list that follows; returns their end.
pub(in crate::domain::extraction) fn find(source: &mut Source<'_>, start: usize) -> Option<usize> {
    let begin = start + PREFIX.len();
    let rest = source.after(begin, REACH);
    let Some(id) = read(rest) else {
        return group(source, start);
    };
    let mut end = begin + id.end;
    let confidence = if id.tight { 1.0 } else { 0.95 };
    push(source, id.year, id.serial, start..end, confidence);
    for _ in 0..LIST {
        let Some((year, serial, item)) = next_in_list(source.after(end, REACH), id.year, id.serial.len())
        else {
            break;
        };
        let span = end + item.start..end + item.end;
        end = span.end;
        push(source, year, serial, span, 0.9);
    }
    Some(end)
}

fn push(source: &mut Source<'_>, year: &str, serial: &str, span: std::ops::Range<usize>, confidence: f32) {
    let value = format!("{PREFIX}-{year}-{serial}");
    source.push(EntityKind::Cve, value, span, "cve-id", confidence);
}

/// The year and number behind the prefix.
fn read(rest: &str) -> Option<Id<'_>> {
    let (first, at) = joint(rest);
    let year = year(rest.get(at..)?)?;
    let at = at + year.len();
    let (second, gap) = joint(rest.get(at..)?);
    let at = at + gap;
    let serial = serial(rest.get(at..)?)?;
    let like_year = serial.len() == 4 && ("1990"..="2039").contains(&serial);
    let fits = match (first, second) {
        (Joint::None, Joint::None) | (_, Joint::Mark) => true,
        // "CVE 2014 2015" are two years.
        (Joint::Blank, Joint::Blank) => !like_year,
        (_, Joint::Blank) => serial.len() > 4,
        (_, Joint::None) => false,
    };
    let tight = first == Joint::Mark && second == Joint::Mark;
    fits.then_some(Id {
        year,
        serial,
        end: at + serial.len(),
        tight,
    })
}

/// What stands between two parts of an id, and its length: at most one mark and one line end.
fn joint(text: &str) -> (Joint, usize) {
    let (mut len, mut marks, mut lines) = (0, 0, 0);
    for c in text.chars().take(JOINT) {
        match c {
            ' ' | '\u{a0}' | '\t' | '\r' => {}
            '\n' => lines += 1,
            '-' | '_' | ':' | '.' | '‐' | '‑' | '‒' | '–' | '—' | '−' | '－' => marks += 1,
            _ => break,
        }
        len += c.len_utf8();
    }
    match (marks, lines, len) {
        (0, 0, 0) => (Joint::None, 0),
        (0, 0..=1, _) => (Joint::Blank, len),
        (1, 0..=1, _) => (Joint::Mark, len),
        _ => (Joint::None, 0),
    }
}

fn digits(text: &str) -> &str {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.get(..end).unwrap_or_default()
}

/// The year that the text begins with; digits may follow where nothing joins it to the number.
fn year(text: &str) -> Option<&str> {
    let year = digits(text).get(..4)?;
    ("1999"..="2099").contains(&year).then_some(year)
}

/// The number that the text begins with, if it ends there.
fn serial(text: &str) -> Option<&str> {
    let serial = digits(text);
    let apart = !text
        .get(serial.len()..)?
        .starts_with(|c: char| c.is_ascii_alphanumeric());
    ((4..=7).contains(&serial.len()) && apart).then_some(serial)
}

/// `CVE-2024-(21762,23113)`: the ids share what stands before the bracket.
fn group(source: &mut Source<'_>, start: usize) -> Option<usize> {
    let begin = start + PREFIX.len();
    let text = source.after(begin, REACH * 4);
    let (_, at) = joint(text);
    let year = year(text.get(at..)?)?;
    let (_, gap) = joint(text.get(at + year.len()..)?);
    let open = at + year.len() + gap;
    let rest = text.get(open..)?.strip_prefix(['(', '{', '['])?;
    let close = rest.find([')', '}', ']'])?;
    let (mut found, mut place) = (Vec::new(), open + 1);
    for item in rest.get(..close)?.split([',', '/', '|', ';']) {
        let bare = item.trim_start_matches([' ', '-']);
        let number = serial(bare).filter(|number| number.len() == bare.trim_end().len())?;
        let at = begin + place + item.len() - bare.len();
        found.push((number, at..at + number.len()));
        place += item.len() + 1;
    }
    let mut first = Some(start);
    for (number, span) in found {
        let span = first.take().unwrap_or(span.start)..span.end;
        push(source, year, number, span, 0.95);
    }
    Some(begin + open + 1 + close + 1)
}

/// The next id of a list: its year and number, and where they stand in the text.
fn next_in_list<'t>(
    text: &'t str,
    year_of_list: &'t str,
    usual: usize,
) -> Option<(&'t str, &'t str, std::ops::Range<usize>)> {
    let (joint, mut at) = list_joint(text)?;
    let rest = text.get(at..)?;
    let dash = rest.len() - rest.trim_start_matches(['-', '‑', '–']).len();
    at += dash;
    let rest = text.get(at..)?;
    if let Some(year) = year(rest)
        && let Some(dashed) = rest.get(year.len()..)?.strip_prefix(['-', '–', '‑'])
    {
        let serial = serial(dashed)?;
        let start = at;
        let end = text.len() - dashed.len() + serial.len();
        return Some((year, serial, start..end));
    }
    let serial = serial(rest)?;
    let after = rest.get(serial.len()..)?;
    let like_year = serial.len() == 4 && ("1990"..="2039").contains(&serial);
    let attached = dash > 0 || (joint == "/" && !text.starts_with(' ') && !text.get(1..)?.starts_with(' '));
    let told = attached || (serial.len() == usual && goes_on_as_behind_list(after));
    let one = !like_year || (attached && usual == 4);
    (told && one).then_some((year_of_list, serial, at..at + serial.len()))
}

/// What joins the next item of a list, and where that begins.
fn list_joint(text: &str) -> Option<(&str, usize)> {
    let (mut at, mut found) = (0, None);
    // ", and" are two.
    for _ in 0..2 {
        let rest = text.get(at..)?;
        let bare = rest.trim_start_matches([' ', '\u{a0}', '\n']);
        let Some((joint, _)) = JOINTS.iter().find(|(joint, blank)| {
            bare.strip_prefix(joint)
                .is_some_and(|rest| !blank || rest.starts_with([' ', '\n']))
        }) else {
            break;
        };
        at += rest.len() - bare.len() + joint.len();
        found = Some(*joint);
    }
    let rest = text.get(at..)?;
    at += rest.len() - rest.trim_start_matches([' ', '\u{a0}', '\n']).len();
    found.map(|joint| (joint, at))
}

fn goes_on_as_behind_list(after: &str) -> bool {
    let Some(rest) = after.strip_prefix(' ') else {
        // "12345,000" and "12345.6" are numbers.
        let thousands = after
            .strip_prefix(',')
            .is_some_and(|rest| digits(rest).len() == 3);
        let decimals = after
            .strip_prefix('.')
            .is_some_and(|rest| !digits(rest).is_empty());
        return !thousands && !decimals && !after.starts_with(['%', '$', '€', '+']);
    };
    let word = rest
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    word.is_empty() || is_one_of(word, AFTER_A_LIST)
}
