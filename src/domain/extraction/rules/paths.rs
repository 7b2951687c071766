//! Windows and Unix paths, and registry keys.
//!
//! Windows names may contain spaces. A space belongs to the path only if every word up to the next backslash is
//! capitalised (`Program Files`, `Windows NT`), or if a capitalised name ends in a known extension. Prose after a
//! path does not look like that.

use super::super::script::{is_edge, is_latin};
use super::super::source::Source;
use super::super::token::Token;
use super::super::word_lists::UNIX_ROOTS;
use super::files;
use crate::domain::cursor::Cursor;
use crate::domain::kinds::EntityKind;
use crate::domain::normal_form;

/// Keys that reports write without the hive.
const BARE_KEYS: &[&str] = &[
    "software\\microsoft\\",
    "software\\classes\\",
    "software\\policies\\",
    "system\\currentcontrolset\\",
];
const MAX_PATH_LENGTH: usize = 1024;
/// Characters of a placeholder in a path, and of a component in which two scripts meet.
const MAX_PLACEHOLDER: usize = 40;
/// Prefix of an environment variable in PowerShell.
const ENVIRONMENT: &str = "$env:";

/// Finds a path or key with backslashes; returns its end.
pub(in crate::domain::extraction) fn windows(source: &mut Source<'_>, token: &Token<'_>) -> Option<usize> {
    let text = token
        .text
        .get(..token.text.len().min(MAX_PATH_LENGTH))
        .unwrap_or(token.text);
    if let Some((at, hive)) = hive_start(text) {
        return key(source, token.start + at, hive);
    }
    if text.starts_with('\\')
        && let Some((start, hive)) = bracketed_hive(source, token.start)
    {
        return key(source, start, hive);
    }
    let lower = text.to_ascii_lowercase();
    if BARE_KEYS
        .iter()
        .any(|key| lower.replace("\\\\", "\\").starts_with(key))
    {
        let end = path_end(source, token.start);
        return emit(
            source,
            EntityKind::RegistryKey,
            token.start..end,
            "registry-key-without-hive",
            0.8,
        );
    }
    let at = path_start(text)?;
    let start = token.start + at;
    let rest = source.after(start, MAX_PATH_LENGTH);
    let prefix = prefix_len(rest);
    // An earlier start of the same path named no file, so this one does not either.
    if start < source.no_file_before && prefix == 0 && !is_share(rest) && !is_variable(rest) {
        return None;
    }
    let end = path_end(source, start + prefix);
    let value = source.text.get(start..end)?;
    let absolute = is_absolute(value);
    let named = value.rsplit('\\').next().and_then(|name| name.rsplit_once('.'));
    let file = named.is_some_and(|(_, extension)| files::is_known(&extension.to_ascii_lowercase()));
    if !absolute && !file {
        source.no_file_before = end;
        return None;
    }
    let confidence = if absolute { 0.95 } else { 0.75 };
    emit(
        source,
        EntityKind::FilePath,
        start..end,
        "windows-path",
        confidence,
    )
}

fn emit(
    source: &mut Source<'_>,
    kind: EntityKind,
    span: std::ops::Range<usize>,
    rule: &'static str,
    confidence: f32,
) -> Option<usize> {
    let text = source.text.get(span.clone())?;
    let value = normal_form::normal_form(kind, text);
    let components = value
        .trim_start_matches('\\')
        .split('\\')
        .filter(|part| !part.is_empty())
        .count();
    if components < 2 {
        return None;
    }
    let end = span.end;
    source.push(kind, value, span, rule, confidence);
    Some(end)
}

/// Where the name of a registry hive begins in the text, and its length.
fn hive_start(text: &str) -> Option<(usize, usize)> {
    let at = ["HK", "hk", "REGISTRY\\"]
        .iter()
        .find_map(|lead| text.find(lead))?;
    let rest = text.get(at..)?;
    let alone = text
        .get(..at)?
        .bytes()
        .next_back()
        .is_none_or(|b| !b.is_ascii_alphanumeric());
    let (name, _) = normal_form::HIVES.iter().find(|(name, _)| {
        let after = rest.get(name.len()..).unwrap_or_default();
        rest.get(..name.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(name))
            && (after.starts_with('\\') || after.starts_with(":\\"))
    })?;
    alone.then_some((at, name.len()))
}

/// The start of a key whose hive stands in angle brackets before this place: `<HKCU>\Software`.
fn bracketed_hive(source: &Source<'_>, at: usize) -> Option<(usize, usize)> {
    let before = source.before(at, 24).strip_suffix('>')?;
    let (_, name) = before.rsplit_once('<')?;
    let known = normal_form::HIVES
        .iter()
        .any(|(hive, _)| hive.eq_ignore_ascii_case(name));
    known.then(|| (at - name.len() - 2, name.len() + 2))
}

fn key(source: &mut Source<'_>, start: usize, hive_len: usize) -> Option<usize> {
    let colon = usize::from(source.after(start + hive_len, 1) == ":");
    let body = start + hive_len + colon;
    let end = path_end(source, body);
    if source.text.get(body..end)?.trim_matches('\\').is_empty() {
        return None;
    }
    let value = source.text.get(start..end)?.to_owned();
    source.push(EntityKind::RegistryKey, value, start..end, "registry-key", 0.97);
    Some(end)
}

/// The start of a path in a token that may begin with a label (`path:C:\x`).
fn path_start(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let drive = text.find(":\\").filter(|colon| {
        let letter = colon.checked_sub(1).and_then(|at| bytes.get(at));
        let before = colon.checked_sub(2).and_then(|at| bytes.get(at));
        // Excludes regular expressions such as `(?-u:\b)`.
        letter.is_some_and(u8::is_ascii_alphabetic)
            && before.is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'-')
    });
    if let Some(colon) = drive {
        return colon.checked_sub(1);
    }
    let starts = text.starts_with(['%', '.', '\\', '$']) || text.starts_with(|c: char| c.is_alphanumeric());
    starts.then_some(0)
}

/// Length of the drive (`C:`) or `$env:TEMP` before the first backslash, where a colon is allowed.
fn prefix_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.get(1) == Some(&b':') {
        return 2;
    }
    let environment = text
        .get(..ENVIRONMENT.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(ENVIRONMENT));
    if environment { ENVIRONMENT.len() } else { 0 }
}

fn is_absolute(value: &str) -> bool {
    let drive = prefix_len(value) == 2
        && value.as_bytes().get(2) == Some(&b'\\')
        && !is_escape(value.get(3..).unwrap_or_default());
    drive || is_share(value) || is_variable(value) || prefix_len(value) == ENVIRONMENT.len()
}

/// Whether the value is a share: `\\server\…`, `\\?\C:\…`
fn is_share(value: &str) -> bool {
    value
        .strip_prefix("\\\\")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '?')))
}

/// Whether the value starts with a variable: `%TEMP%\…`
fn is_variable(value: &str) -> bool {
    value.strip_prefix('%').is_some_and(|rest| {
        rest.split_once("%\\")
            .is_some_and(|(name, _)| !name.contains('\\'))
    })
}

/// Whether this is an escape in a string or regular expression: `u:\b`, `0: {`
fn is_escape(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && !chars
            .next()
            .is_some_and(|c| c.is_alphanumeric() || "\\.-_ $".contains(c))
}

/// The end of the backslash path that starts at `start`.
fn path_end(source: &Source<'_>, start: usize) -> usize {
    let text = source.after(start, MAX_PATH_LENGTH);
    let mut cursor = Cursor::new(text);
    let (mut component, mut end, mut open, mut previous) = (0, 0, 0i32, '\\');
    while let Some(c) = cursor.bump() {
        match c {
            '\\' => component = cursor.at(),
            '(' => open += 1,
            ')' if open > 0 => open -= 1,
            '<' if cursor.at() == component + 1 && component > 0 => {
                match placeholder_len(text.get(component..).unwrap_or_default()) {
                    Some(len) => cursor.skip_to(component + len),
                    None => break,
                }
            }
            ' ' => match extend_over_space(text.get(component..).unwrap_or_default(), end - component) {
                Some(len) => cursor.skip_to(component + len),
                None => break,
            },
            _ if !is_name_char(c) => break,
            // A letter of another script is of the sentence, unless the path goes on behind it.
            _ if is_edge(previous, c) && !is_latin(c) => {
                let before = text.get(component..end).unwrap_or_default();
                if has_known_extension(before) || !goes_on(cursor.rest()) {
                    break;
                }
            }
            _ => {}
        }
        previous = c;
        end = cursor.at();
    }
    let path = text.get(..end).unwrap_or_default();
    start
        + path
            .trim_end_matches(['.', '\\', '-', ':', '&', '+', '=', '!', '~'])
            .len()
}

/// Length of a placeholder that is a whole component: `<SID>\`.
fn placeholder_len(component: &str) -> Option<usize> {
    let inner = component.strip_prefix('<')?;
    let close = inner
        .bytes()
        .take(MAX_PLACEHOLDER)
        .position(|byte| byte == b'>')?;
    let word = inner.get(..close)?;
    let plain = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_' | b'-'));
    let whole = inner.get(close + 1..).is_some_and(|rest| rest.starts_with('\\'));
    (plain && whole).then_some(close + 2)
}

/// Whether a component goes on to a backslash in the same script.
fn goes_on(rest: &str) -> bool {
    rest.chars()
        .take(MAX_PLACEHOLDER)
        .find(|c| !is_name_char(*c) || is_latin(*c) || *c == '\\')
        == Some('\\')
}

fn is_name_char(c: char) -> bool {
    let ascii = c.is_ascii_graphic()
        && !matches!(
            c,
            '<' | '>' | '"' | '|' | '?' | '*' | '/' | ',' | ';' | '\'' | '`' | ':' | '[' | ']' | ')' | '^'
        );
    ascii || (!c.is_ascii() && c.is_alphanumeric())
}

/// How far a component with a space at `space` extends, always beyond the space; `None` if the path ends there.
fn extend_over_space(component: &str, space: usize) -> Option<usize> {
    let first = component.get(..space)?;
    // At the end of a sentence the name is followed by a full stop.
    if first.is_empty() || has_known_extension(first.trim_end_matches('.')) {
        return None;
    }
    let window_end = component
        .char_indices()
        .nth(64)
        .map_or(component.len(), |(at, _)| at);
    let window = component.get(..window_end)?;
    let stop = window
        .find(|c: char| !(is_name_char(c) || c == ' ' || c == ')'))
        .unwrap_or(window.len())
        .min(window.find('\\').unwrap_or(window.len()));
    let name = window.get(..stop)?;
    if window.get(stop..).is_some_and(|rest| rest.starts_with('\\')) {
        let documents = name.eq_ignore_ascii_case("Documents and Settings");
        return (documents || is_titled(name)).then_some(stop);
    }
    let mut end = 0;
    for word in name.split(' ').take(5) {
        end += word.len();
        if has_known_extension(word.trim_end_matches('.')) {
            let full = name.get(..end)?.trim_end_matches('.');
            return (full.len() > space && is_titled(full)).then_some(full.len());
        }
        end += 1;
    }
    None
}

fn is_titled(name: &str) -> bool {
    let words = name.split(' ');
    name.split(' ').count() <= 5
        && words.into_iter().all(|word| {
            word.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || matches!(c, '(' | '{' | '-'))
                && !word.starts_with("HK")
        })
}

fn has_known_extension(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(base, extension)| !base.is_empty() && files::is_known(&extension.to_ascii_lowercase()))
}

/// Finds an absolute or home-relative Unix path that is the whole token.
pub(in crate::domain::extraction) fn unix(source: &mut Source<'_>, token: &Token<'_>) -> bool {
    let text = token.text.split(':').next().unwrap_or_default();
    let text = text.trim_end_matches(['.', '-', '/', '~', '%', '$', '+', '@']);
    let mut components = text.split('/');
    let lead = components.next().unwrap_or_default();
    let first = components.next().unwrap_or_default();
    let home = lead.starts_with('~') && !first.is_empty();
    let rooted = lead.is_empty()
        && UNIX_ROOTS.contains(&first)
        && components.next().is_some_and(|part| !part.is_empty());
    if text.len() > MAX_PATH_LENGTH || !(home || rooted) {
        return false;
    }
    let span = token.start..token.start + text.len();
    source.push(EntityKind::FilePath, text.to_owned(), span, "unix-path", 0.9);
    true
}
