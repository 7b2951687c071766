//! Refanging and defanging of text, with a mapping of offsets.
//!
//! Reports write `hxxp://evil[.]com` to prevent accidental clicks. All extractor rules work on the refanged text;
//! [`RefangedText::original`] maps their spans back. Typographic hyphens and zero-width characters that PDF readers leave
//! in indicators are normalised here too. Markers are replaced only between characters that can belong to an
//! indicator, so regular expressions and footnotes stay unchanged.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::domain::cursor::Cursor;

#[derive(Clone, Copy, PartialEq)]
enum MarkerContext {
    /// An alphanumeric character on both sides; one space allowed in between.
    Joined,
    /// An alphanumeric character on both sides, nothing in between.
    Tight,
    /// A scheme: not inside a word, and followed by a colon.
    Scheme,
    /// No condition.
    Always,
}

/// Marker, replacement, condition. The longest marker wins.
const MARKERS: &[(&str, &str, MarkerContext)] = &[
    ("[.]", ".", MarkerContext::Joined),
    ("(.)", ".", MarkerContext::Joined),
    ("{.}", ".", MarkerContext::Joined),
    ("<.>", ".", MarkerContext::Joined),
    ("[dot]", ".", MarkerContext::Joined),
    ("(dot)", ".", MarkerContext::Joined),
    ("{dot}", ".", MarkerContext::Joined),
    ("<dot>", ".", MarkerContext::Joined),
    ("[.", ".", MarkerContext::Tight),
    (".]", ".", MarkerContext::Tight),
    ("[at]", "@", MarkerContext::Joined),
    ("(at)", "@", MarkerContext::Joined),
    ("{at}", "@", MarkerContext::Joined),
    ("<at>", "@", MarkerContext::Joined),
    ("[@]", "@", MarkerContext::Joined),
    ("(@)", "@", MarkerContext::Joined),
    ("{@}", "@", MarkerContext::Joined),
    ("[://]", "://", MarkerContext::Tight),
    ("(://)", "://", MarkerContext::Tight),
    ("[:]//", "://", MarkerContext::Tight),
    ("(:)//", "://", MarkerContext::Tight),
    ("[:]", ":", MarkerContext::Tight),
    ("[/]", "/", MarkerContext::Tight),
    ("hxxp", "http", MarkerContext::Scheme),
    ("h**p", "http", MarkerContext::Scheme),
    ("hxtp", "http", MarkerContext::Scheme),
    ("htxp", "http", MarkerContext::Scheme),
    ("h__p", "http", MarkerContext::Scheme),
    ("fxp", "ftp", MarkerContext::Scheme),
    ("\u{2010}", "-", MarkerContext::Always),
    ("\u{2011}", "-", MarkerContext::Always),
    ("\u{200b}", "", MarkerContext::Always),
    ("\u{200d}", "", MarkerContext::Always),
    ("\u{2060}", "", MarkerContext::Always),
    ("\u{feff}", "", MarkerContext::Always),
    ("\u{ad}", "", MarkerContext::Always),
];

static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(MARKERS.iter().map(|(marker, ..)| marker))
        .ok()
});

/// A replaced span of the original.
#[derive(Debug, Clone)]
struct Replacement {
    from: Range<usize>,
    to: Range<usize>,
    /// Deliberately defanged, as opposed to a typographic hyphen.
    deliberate: bool,
}

/// A text after refanging.
#[derive(Debug, Clone)]
pub(super) struct RefangedText<'t> {
    pub text: Cow<'t, str>,
    replaced: Vec<Replacement>,
}

impl<'t> RefangedText<'t> {
    pub fn new(original: &'t str) -> Self {
        let mut replaced = Vec::new();
        let mut text = String::new();
        let mut copied = 0;
        for found in FINDER.iter().flat_map(|finder| finder.find_iter(original)) {
            let Some((_, with, need)) = MARKERS.get(found.pattern().as_usize()) else {
                continue;
            };
            let Some(from) = widen_marker(original, found.range(), *need, copied) else {
                continue;
            };
            text.push_str(original.get(copied..from.start).unwrap_or_default());
            let at = text.len();
            text.push_str(with);
            copied = from.end;
            let deliberate = *need != MarkerContext::Always;
            replaced.push(Replacement {
                from,
                to: at..text.len(),
                deliberate,
            });
        }
        if replaced.is_empty() {
            return RefangedText {
                text: Cow::Borrowed(original),
                replaced,
            };
        }
        text.push_str(original.get(copied..).unwrap_or_default());
        RefangedText {
            text: Cow::Owned(text),
            replaced,
        }
    }

    /// Maps a non-empty span of the refanged text to the original.
    pub fn original(&self, span: &Range<usize>) -> Range<usize> {
        let start = match self.last_starting_at_or_before(span.start) {
            Some(run) if run.to.contains(&span.start) => run.from.start,
            Some(run) => run.from.end + (span.start - run.to.end.min(span.start)),
            None => span.start,
        };
        let last = span.end.saturating_sub(1);
        let end = match self.last_starting_at_or_before(last) {
            Some(run) if run.to.contains(&last) => run.from.end,
            Some(run) => run.from.end + (span.end - run.to.end.min(span.end)),
            None => span.end,
        };
        start..end.max(start)
    }

    /// Whether any part of this span of the refanged text was deliberately defanged.
    pub fn is_deliberate(&self, span: &Range<usize>) -> bool {
        let first = self.replaced.partition_point(|run| run.to.end <= span.start);
        self.replaced
            .iter()
            .skip(first)
            .take_while(|run| run.to.start < span.end)
            .any(|run| run.deliberate)
    }

    fn last_starting_at_or_before(&self, at: usize) -> Option<&Replacement> {
        let after = self.replaced.partition_point(|run| run.to.start <= at);
        self.replaced.get(after.checked_sub(1)?)
    }
}

/// The span to replace, including adjacent spaces; `None` if the condition fails.
fn widen_marker(text: &str, at: Range<usize>, need: MarkerContext, floor: usize) -> Option<Range<usize>> {
    let before = text.get(floor..at.start)?;
    let after = text.get(at.end..)?;
    match need {
        MarkerContext::Always => Some(at),
        MarkerContext::Tight => {
            let left = before
                .chars()
                .next_back()
                .map_or(floor > 0, char::is_alphanumeric);
            let right = after
                .chars()
                .next()
                .is_some_and(|c| c.is_alphanumeric() || c == '/' || c == '[');
            (left && right).then_some(at)
        }
        MarkerContext::Scheme => {
            let inside = before.chars().next_back().is_some_and(char::is_alphanumeric);
            let rest = after.strip_prefix(['s', 'S']).unwrap_or(after);
            (!inside && rest.starts_with([':', '[', '('])).then_some(at)
        }
        MarkerContext::Joined => {
            let left = before.strip_suffix(' ').unwrap_or(before);
            let right = after.strip_prefix(' ').unwrap_or(after);
            let joined = left.chars().next_back().is_some_and(char::is_alphanumeric)
                && right.chars().next().is_some_and(char::is_alphanumeric);
            joined.then(|| floor + left.len()..text.len() - right.len())
        }
    }
}

/// Refangs the indicators of a text.
pub fn refang(text: &str) -> Cow<'_, str> {
    RefangedText::new(text).text
}

/// Defangs an indicator so that nobody follows it by accident: `hxxp`, `[.]`, `[at]`.
pub fn defang(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 16);
    let mut previous = None;
    let mut cursor = Cursor::new(value);
    while let Some(c) = cursor.bump() {
        let in_word = previous.is_some_and(char::is_alphanumeric);
        let between = in_word && cursor.peek().is_some_and(char::is_alphanumeric);
        match c {
            'h' if !in_word && ends_web_scheme(cursor.rest()) => {
                out.push_str("hxxp");
                previous = Some('p');
                cursor.skip_to(cursor.at() + "ttp".len());
                continue;
            }
            '.' if between => out.push_str("[.]"),
            '@' if between => out.push_str("[at]"),
            _ => out.push(c),
        }
        previous = Some(c);
    }
    out
}

/// Whether the text continues like `http://` or `https://` after the `h`.
fn ends_web_scheme(text: &str) -> bool {
    text.starts_with("ttp://") || text.starts_with("ttps://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_way_of_defanging_is_undone() {
        for (defanged, plain) in [
            ("hxxp://evil[.]com/a", "http://evil.com/a"),
            ("hXXps[:]//evil(.)com", "https://evil.com"),
            ("hxxps[://]evil{.}com", "https://evil.com"),
            ("evil [dot] com", "evil.com"),
            ("evil(DOT)com", "evil.com"),
            ("bob[at]evil[.]com", "bob@evil.com"),
            ("bob (at) evil (dot) com", "bob@evil.com"),
            ("1.2.3[.4", "1.2.3.4"),
            ("10.0.0[.]1[:]443", "10.0.0.1:443"),
            ("CVE\u{2011}2021\u{2011}44228", "CVE-2021-44228"),
            ("fxp://evil[.]com", "ftp://evil.com"),
        ] {
            assert_eq!(refang(defanged), plain, "{defanged}");
        }
    }

    #[test]
    fn ordinary_brackets_stay() {
        for text in [
            "a[.]+b",
            "[1]",
            "look at it",
            "x[..]",
            "array[.]",
            "a hxxp b",
            "(at) noon",
        ] {
            assert_eq!(refang(text), text);
        }
    }

    #[test]
    fn spans_point_into_the_original() {
        let text = "go to hxxp://evil[.]com now";
        let refanged = RefangedText::new(text);
        let at = refanged.text.find("http://evil.com").unwrap();
        let span = refanged.original(&(at..at + "http://evil.com".len()));
        assert_eq!(&text[span], "hxxp://evil[.]com");
        let now = refanged.text.find("now").unwrap();
        assert_eq!(&text[refanged.original(&(now..now + 3))], "now");
    }

    #[test]
    fn defanging_is_undone() {
        for value in [
            "http://evil.com/a.php",
            "bob@evil.com",
            "1.2.3.4",
            "https://a.b/c?d=e.f",
        ] {
            assert_eq!(refang(&defang(value)), value);
            assert_ne!(defang(value), value);
        }
    }
}
