//! Refanging and defanging of text, with a mapping of offsets.
//!
//! Reports write `hxxp://evil[.]com` to prevent accidental clicks. All extractor rules work on the refanged text;
//! [`RefangedText::original`] maps their spans back. What else stands in the way of a value is undone here too: the
//! typographic hyphens and zero-width characters of PDF readers, line breaks inside values, the escapes of HTML, JSON and
//! regular expressions. Markers are replaced only between characters that can belong to an indicator, so regular
//! expressions and footnotes stay unchanged.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::domain::cursor::Cursor;
use line_breaks::LineBreaks;
use markers::{MARKERS, MarkerContext, widen_marker};

mod line_breaks;
mod markers;

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
        let mut breaks = LineBreaks::default();
        for found in FINDER.iter().flat_map(|finder| finder.find_iter(original)) {
            let Some((_, with, need)) = MARKERS.get(found.pattern().as_usize()) else {
                continue;
            };
            let from = if *need == MarkerContext::LineBreak {
                breaks.inside_value(original, found.range())
            } else {
                widen_marker(original, found.range(), *need, copied)
            };
            let Some(from) = from.filter(|from| from.start >= copied) else {
                continue;
            };
            text.push_str(original.get(copied..from.start).unwrap_or_default());
            let at = text.len();
            text.push_str(with);
            copied = from.end;
            replaced.push(Replacement {
                from,
                to: at..text.len(),
                deliberate: need.is_deliberate(),
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
