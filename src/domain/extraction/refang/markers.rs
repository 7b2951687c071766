//! What defangs, escapes or disguises a value, and where it does.

use std::ops::Range;

use super::super::script::is_latin;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum MarkerContext {
    /// An alphanumeric character on both sides; one space allowed in between.
    Joined,
    /// An alphanumeric character on both sides, nothing in between.
    Tight,
    /// A scheme: not inside a word, and followed by a colon.
    Scheme,
    /// A word in capitals between the parts of a host: `evil DOT com`.
    DotWord,
    /// A word in capitals before a host: `bob AT evil DOT com`.
    AtWord,
    /// A dot of another script between ASCII letters, and before a common top-level domain if it also ends sentences.
    WideDot,
    /// The escaped dot of a regular expression, outside paths.
    EscapedDot,
    /// The escaped slash of JSON, in an address.
    EscapedSlash,
    /// The end of a line, inside a value.
    LineBreak,
    /// No condition.
    Always,
}

impl MarkerContext {
    /// Whether somebody wrote it so that nobody follows the value.
    pub(super) fn is_deliberate(self) -> bool {
        matches!(
            self,
            Self::Joined | Self::Tight | Self::Scheme | Self::DotWord | Self::AtWord
        )
    }
}

/// Marker, replacement, condition. The longest marker wins.
pub(super) const MARKERS: &[(&str, &str, MarkerContext)] = &[
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
    ("[:][//]", "://", MarkerContext::Tight),
    ("[:]", ":", MarkerContext::Tight),
    ("[//]", "//", MarkerContext::Tight),
    ("[/]", "/", MarkerContext::Tight),
    ("hxxp", "http", MarkerContext::Scheme),
    ("hxxxp", "http", MarkerContext::Scheme),
    ("h**p", "http", MarkerContext::Scheme),
    ("hxtp", "http", MarkerContext::Scheme),
    ("htxp", "http", MarkerContext::Scheme),
    ("httx", "http", MarkerContext::Scheme),
    ("h__p", "http", MarkerContext::Scheme),
    ("http[s]", "https", MarkerContext::Scheme),
    ("hxxp[s]", "https", MarkerContext::Scheme),
    ("fxp", "ftp", MarkerContext::Scheme),
    (" dot ", ".", MarkerContext::DotWord),
    (" at ", "@", MarkerContext::AtWord),
    ("\u{ff0e}", ".", MarkerContext::WideDot),
    ("\u{3002}", ".", MarkerContext::WideDot),
    ("\u{ff61}", ".", MarkerContext::WideDot),
    ("\\.", ".", MarkerContext::EscapedDot),
    ("\\/", "/", MarkerContext::EscapedSlash),
    ("\\u002f", "/", MarkerContext::Always),
    ("\\u0026", "&", MarkerContext::Always),
    ("\\u003d", "=", MarkerContext::Always),
    ("&amp;", "&", MarkerContext::Always),
    ("&lt;", "<", MarkerContext::Always),
    ("&gt;", ">", MarkerContext::Always),
    ("&quot;", "\"", MarkerContext::Always),
    ("&apos;", "'", MarkerContext::Always),
    ("&#39;", "'", MarkerContext::Always),
    ("&#x27;", "'", MarkerContext::Always),
    ("&#47;", "/", MarkerContext::Always),
    ("&#x2f;", "/", MarkerContext::Always),
    ("\n", "", MarkerContext::LineBreak),
    ("<br>", "", MarkerContext::LineBreak),
    ("<br/>", "", MarkerContext::LineBreak),
    ("<br />", "", MarkerContext::LineBreak),
    ("\u{2010}", "-", MarkerContext::Always),
    ("\u{2011}", "-", MarkerContext::Always),
    ("\u{200b}", "", MarkerContext::Always),
    ("\u{200d}", "", MarkerContext::Always),
    ("\u{2060}", "", MarkerContext::Always),
    ("\u{feff}", "", MarkerContext::Always),
    ("\u{ad}", "", MarkerContext::Always),
];

/// Top-level domains that stand alone as a word where a host was taken apart.
pub(super) const COMMON_TLDS: &[&str] = &[
    "com", "net", "org", "info", "biz", "ru", "cn", "xyz", "top", "io", "onion",
];
/// How much of a word around a marker is looked at.
const WORD: usize = 64;

/// The span to replace, including adjacent spaces; `None` if the condition fails.
pub(super) fn widen_marker(
    text: &str,
    at: Range<usize>,
    need: MarkerContext,
    floor: usize,
) -> Option<Range<usize>> {
    let before = text.get(floor..at.start)?;
    let after = text.get(at.end..)?;
    match need {
        MarkerContext::Always => Some(at),
        MarkerContext::LineBreak => None,
        MarkerContext::Tight => {
            let left = before
                .chars()
                .next_back()
                .map_or(floor > 0, char::is_alphanumeric);
            let right = after
                .chars()
                .next()
                .is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '[' | ':'));
            (left && right).then_some(at)
        }
        MarkerContext::Scheme => {
            // A word of another script may be attached.
            let inside = before.chars().next_back().is_some_and(is_latin);
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
        MarkerContext::DotWord => {
            let joined = text.get(at.clone()) == Some(" DOT ") && ends_label(before, floor);
            let (label, rest) = after.split_at(label_len(after));
            let host = is_common_tld(label) || (!label.is_empty() && rest.starts_with(" DOT "));
            (joined && host).then_some(at)
        }
        MarkerContext::AtWord => {
            let joined = text.get(at.clone()) == Some(" AT ") && ends_label(before, floor);
            let (label, rest) = after.split_at(label_len(after));
            let host = [" DOT ", "[dot]", "[.]", "(dot)", "(.)", " [dot] ", " (dot) "];
            (joined && !label.is_empty() && host.iter().any(|dot| rest.starts_with(dot))).then_some(at)
        }
        MarkerContext::WideDot => {
            let left = before
                .chars()
                .next_back()
                .map_or(floor > 0, |c| c.is_ascii_alphanumeric());
            let (label, rest) = after.split_at(label_len(after));
            let full_width = text.get(at.clone()) == Some("\u{ff0e}");
            let ends = !rest.starts_with(['.', '-', '_']);
            let host = !label.is_empty() && (full_width || (is_common_tld(label) && ends));
            (left && host).then_some(at)
        }
        MarkerContext::EscapedDot => {
            let right = after.starts_with(|c: char| c.is_ascii_alphanumeric());
            (ends_label(before, floor) && right && !is_in_path(text, &at)).then_some(at)
        }
        MarkerContext::EscapedSlash => {
            let left = before.chars().next_back().map_or(floor > 0, |c| {
                c.is_ascii_alphanumeric() || matches!(c, ':' | '/' | '.' | '-' | '_' | '=')
            });
            let drive = before.strip_suffix(':').is_some_and(|rest| {
                let mut letters = rest.chars().rev();
                letters.next().is_some_and(|c| c.is_ascii_alphabetic())
                    && !letters.next().is_some_and(|c| c.is_ascii_alphabetic())
            });
            let right =
                after.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '\\' | '?' | '_'));
            (left && right && !drive).then_some(at)
        }
    }
}

/// Whether what is before a marker may be a part of a host; what was replaced directly before it is.
fn ends_label(before: &str, floor: usize) -> bool {
    before
        .chars()
        .next_back()
        .map_or(floor > 0, |c| c.is_ascii_alphanumeric())
}

fn label_len(text: &str) -> usize {
    let end = text
        .bytes()
        .take(WORD)
        .position(|byte| !byte.is_ascii_alphanumeric() && byte != b'-');
    end.unwrap_or(text.len().min(WORD)).min(text.len())
}

fn is_common_tld(label: &str) -> bool {
    COMMON_TLDS.iter().any(|tld| tld.eq_ignore_ascii_case(label))
}

/// Whether the word around has a backslash that escapes no punctuation of an address, as paths have.
fn is_in_path(text: &str, at: &Range<usize>) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '|' | '`');
    let mut from = at.start.saturating_sub(WORD);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let mut to = (at.end + WORD).min(text.len());
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    let before = text.get(from..at.end).unwrap_or_default();
    let before = before.rsplit(ends).next().unwrap_or_default();
    let after = text.get(at.end..to).unwrap_or_default();
    let after = after.split(ends).next().unwrap_or_default();
    let escapes_else = |word: &str| {
        word.match_indices('\\').any(|(at, _)| {
            let next = word.get(at + 1..).and_then(|rest| rest.chars().next());
            next.is_some_and(|next| !matches!(next, '.' | '/' | '-' | ':'))
        })
    };
    escapes_else(before) || escapes_else(after) || before.contains(":\\")
}
