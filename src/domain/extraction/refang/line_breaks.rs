//! Line breaks inside values: hashes, hosts and addresses that a narrow column or a table cell divides.
//!
//! Two halves of a hash are joined if that gives one valid hash, unless they may be two hashes in a list: then the name of
//! the algorithm before them decides, or else where they stand. Two hashes of a list begin their lines alike, while a hash
//! that a line wraps begins in the middle of one.

use std::ops::Range;

use super::super::rules::host;
use super::markers::COMMON_TLDS;

/// Hexadecimal digits of MD5, SHA-1, SHA-256 and SHA-512.
const LENGTHS: [usize; 4] = [32, 40, 64, 128];
const ALGORITHMS: [(&str, usize); 15] = [
    ("md5", 32),
    ("md-5", 32),
    ("sha1", 40),
    ("sha-1", 40),
    ("sha 1", 40),
    ("sha256", 64),
    ("sha-256", 64),
    ("sha 256", 64),
    ("sha_256", 64),
    ("sha2-256", 64),
    ("sha512", 128),
    ("sha-512", 128),
    ("sha 512", 128),
    ("sha_512", 128),
    ("sha2-512", 128),
];
/// Words before one hash, and before several.
const SINGULAR: [&str; 4] = ["hash", "digest", "checksum", "fingerprint"];
const PLURAL: [&str; 8] = [
    "hashes",
    "digests",
    "checksums",
    "samples",
    "files",
    "indicators",
    "iocs",
    "md5s",
];
/// Digits of the first part of a hash, at least.
const MIN_PART: usize = 8;
const MAX_PARTS: usize = 8;
/// How far back an algorithm is named.
const REACH: usize = 64;
/// Characters of a value on each side of a break.
const WORD: usize = 160;
/// Blanks and marks of a quotation around a break.
const MARGIN: usize = 16;

/// Which line breaks are inside values; remembers the hashes that it has joined.
#[derive(Debug, Default)]
pub(super) struct LineBreaks {
    /// Breaks before this place are inside the hash that was joined last.
    joined_until: usize,
    /// Where the last hash ended, and how long it should be.
    last: (usize, Option<usize>),
}

impl LineBreaks {
    /// What to leave out so that the value around this break is whole: the break, blanks and a hyphen of hyphenation;
    /// `None` if the break is not inside a value.
    pub(super) fn inside_value(&mut self, text: &str, at: Range<usize>) -> Option<Range<usize>> {
        let line = text.get(floor(text, at.start, WORD)..at.start)?;
        let left = line.trim_end_matches([' ', '\t', '\r']);
        let left_end = at.start - (line.len() - left.len());
        let last = left.bytes().next_back()?;
        if !(last.is_ascii_alphanumeric() || matches!(last, b'.' | b'-')) {
            return None;
        }
        let right_start = at.end + margin(text.get(at.end..)?);
        let right = text.get(right_start..ceiling(text, right_start, WORD))?;
        if let Some(joint) = self.inside_hash(text, left, left_end, &at) {
            return Some(joint);
        }
        let word = left.rsplit(|c: char| !is_host_char(c)).next().unwrap_or_default();
        let next = right.split(|c: char| !is_host_char(c)).next().unwrap_or_default();
        let whole = match last {
            b'.' => is_address(word, next) || is_domain_before_dot(word, next),
            b'-' => is_domain_before_hyphen(word, next),
            _ => false,
        };
        whole.then_some(left_end..right_start)
    }

    fn inside_hash(
        &mut self,
        text: &str,
        left: &str,
        left_end: usize,
        at: &Range<usize>,
    ) -> Option<Range<usize>> {
        let bare = left.strip_suffix('-').unwrap_or(left);
        let first = trailing_digits(bare);
        let end = left_end - (left.len() - bare.len());
        let next = at.end + margin(text.get(at.end..)?);
        if at.start < self.joined_until {
            return Some(end..next);
        }
        let start = end - first.len();
        let apart = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let bounded = text.get(..start)?.chars().next_back().is_none_or(apart);
        if first.len() < MIN_PART || start < self.joined_until || !bounded {
            return None;
        }
        let parts = parts_from(text, next);
        let in_list = self.is_in_list(text, start);
        let length = if in_list {
            self.last.1
        } else {
            length_before(text, start)
        };
        let lengths: Vec<usize> = parts.iter().map(Range::len).collect();
        let wrapped = !in_list && is_wrapped(text, start);
        let count = joined_parts(first.len(), &lengths, length, wrapped);
        // Behind a whole hash a number or a word may stand in the next line.
        let rest = parts.iter().take(count).filter_map(|part| text.get(part.clone()));
        let digits: String = rest.collect();
        let random = digits.bytes().any(|b| b.is_ascii_digit())
            && (!LENGTHS.contains(&first.len()) || digits.bytes().any(|b| b.is_ascii_alphabetic()));
        let count = if random { count } else { 0 };
        let Some(last) = count.checked_sub(1).and_then(|at| parts.get(at)) else {
            self.last = (end, length);
            return None;
        };
        self.joined_until = last.end;
        self.last = (last.end, length);
        Some(end..next)
    }

    /// Whether the last hash stands directly before this place.
    fn is_in_list(&self, text: &str, start: usize) -> bool {
        let (end, _) = self.last;
        let between = text
            .get(end..start)
            .filter(|between| end > 0 && between.len() <= MARGIN);
        between.is_some_and(|between| {
            !between
                .trim_matches(['<', 'b', 'r', '>'])
                .contains(char::is_alphanumeric)
        })
    }
}

/// How many of the parts that follow belong to the hash whose first part has so many digits. `length`: of the algorithm
/// that is named; `wrapped`: whether it stands as no hash of a list does.
fn joined_parts(first: usize, parts: &[usize], length: Option<usize>, wrapped: bool) -> usize {
    let is_hash = |length: usize| LENGTHS.contains(&length);
    let sums = parts.iter().scan(first, |sum, length| {
        *sum += length;
        Some(*sum)
    });
    let sums: Vec<usize> = sums.collect();
    let up_to = |place: Option<usize>| place.map_or(0, |at| at + 1);
    if length == Some(first) {
        return 0;
    }
    let named = up_to(sums.iter().position(|sum| Some(*sum) == length));
    if named > 0 {
        return named;
    }
    match parts {
        // Two hashes, or two halves of one.
        [half] if *half == first && is_hash(first) => {
            usize::from(wrapped && length.is_none() && is_hash(2 * first))
        }
        [next, ..] if is_hash(first) && is_hash(*next) => 0,
        _ => {
            // Lines of a column are of one width, but for the last.
            let is_column = |count: usize| {
                let (last, others) = (parts.get(count - 1), parts.get(..count - 1));
                others.is_some_and(|others| others.iter().all(|part| *part == first)) && last <= Some(&first)
            };
            let hashes =
                || (1..=sums.len()).filter(|count| sums.get(count - 1).is_some_and(|sum| is_hash(*sum)));
            let column = hashes().rev().find(|count| is_column(*count));
            column.or_else(|| hashes().next()).unwrap_or_default()
        }
    }
}

/// The length of the hash that begins here, if the text before it names its algorithm.
fn length_before(text: &str, start: usize) -> Option<usize> {
    let window = text.get(floor(text, start, REACH)..start)?.to_ascii_lowercase();
    let named = ALGORITHMS.iter().filter_map(|(name, length)| {
        let at = window.rfind(name)? + name.len();
        let rest = window.get(at..)?;
        let other = rest
            .split(|c: char| !c.is_ascii_hexdigit())
            .any(|word| word.len() >= 32);
        (!rest.starts_with(|c: char| c.is_ascii_digit()) && !other).then_some((at, *length))
    });
    named.max().map(|(_, length)| length)
}

/// The parts of hexadecimal digits in this line and those that follow, a part in each.
fn parts_from(text: &str, start: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut at, mut digits) = (start, 0);
    while parts.len() < MAX_PARTS {
        let rest = text.get(at..).unwrap_or_default();
        let len = rest.bytes().take(129).take_while(u8::is_ascii_hexdigit).count();
        let after = rest.get(len..).unwrap_or_default();
        digits += len;
        let hyphen =
            usize::from(after.starts_with("-\n") || after.starts_with("-\r\n") || after.starts_with("-<br"));
        let next = after.get(hyphen..).unwrap_or_default();
        let attached = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if len == 0 || digits > 128 || next.starts_with(attached) {
            break;
        }
        parts.push(at..at + len);
        let blanks = next.len() - next.trim_start_matches([' ', '\t', '\r']).len();
        let next = next.get(blanks..).unwrap_or_default();
        let Some(line) = ["\n", "<br>", "<br/>", "<br />"]
            .into_iter()
            .find(|line| next.starts_with(line))
        else {
            break;
        };
        at += len + hyphen + blanks.min(MARGIN) + line.len();
        at += margin(text.get(at..).unwrap_or_default());
    }
    parts
}

/// Blanks and marks of a quotation or comment at the beginning of a line.
fn margin(line: &str) -> usize {
    line.bytes()
        .take(MARGIN)
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'>' | b'#'))
        .count()
}

fn trailing_digits(text: &str) -> &str {
    let start = text.rfind(|c: char| !c.is_ascii_hexdigit());
    let start = start.map_or(0, |at| {
        at + text
            .get(at..)
            .and_then(|c| c.chars().next())
            .map_or(0, char::len_utf8)
    });
    text.get(start..).unwrap_or_default()
}

/// Whether a hash stands here as no hash of a list does: it does not begin its line, or the word before is that of one.
fn is_wrapped(text: &str, at: usize) -> bool {
    let before = text.get(floor(text, at, REACH)..at).unwrap_or_default();
    let words = before.trim_end_matches(|c: char| !c.is_alphanumeric());
    let word = words
        .rsplit(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    let is_one_of = |list: &[&str]| list.iter().any(|one| one.eq_ignore_ascii_case(word));
    let bare = before.trim_end_matches([' ', '\t', '#', '-', '*', '•', '"', '\'', '`', '(']);
    let begins_line = bare.is_empty() || bare.ends_with(['\n', '|', '>']);
    is_one_of(&SINGULAR) || !(begins_line || is_one_of(&PLURAL))
}

fn is_host_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// `198.51.` and `100.44`
fn is_address(left: &str, right: &str) -> bool {
    let numbers = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let right = right.trim_end_matches('.');
    numbers(left) && numbers(right) && format!("{left}{right}").parse::<std::net::Ipv4Addr>().is_ok()
}

/// `login.evil-update.` and `com`; a sentence may end where a word without a dot does.
fn is_domain_before_dot(left: &str, right: &str) -> bool {
    let name = left.trim_end_matches('.');
    let tld = right.trim_end_matches('.');
    name.contains('.')
        && left.len() == name.len() + 1
        && COMMON_TLDS.contains(&tld)
        && host::is_registrable(&format!("{name}.{tld}"))
}

/// `login.evil-` and `update.com`
fn is_domain_before_hyphen(left: &str, right: &str) -> bool {
    let right = right.trim_end_matches(['.', '-']);
    left.contains('.') && right.contains('.') && host::is_registrable(&format!("{left}{right}"))
}

fn floor(text: &str, at: usize, reach: usize) -> usize {
    let mut from = at.saturating_sub(reach);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    from
}

fn ceiling(text: &str, at: usize, reach: usize) -> usize {
    let mut to = at.saturating_add(reach).min(text.len());
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    to
}
