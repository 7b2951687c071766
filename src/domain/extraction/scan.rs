//! One pass over the text: splits it into tokens and runs the rules on each interesting one.
//!
//! Tokens end at white space, at the punctuation that surrounds indicators in prose, CSV, JSON and Markdown, and where
//! one script ends and another begins: `域名evil.com被` has one of three words.
//! Words of letters only, nine tenths of prose, are skipped after one table look-up per byte. A rule may consume
//! more than its token (a URL, a path with spaces). The pass continues after it and never goes back, so the work
//! is linear in the text.

use super::rules::{bitcoin, cve, files, hash, host, identifiers, network, paths, rule_names, url};
use super::script::{edge, is_latin, is_of_word, is_unspaced};
use super::source::{Source, is_one_of};
use super::token::{
    ALPHA, AT, BACKSLASH, COLON, DASH, DIGIT, DOT, HEX, HIGH, OTHER, SLASH, Token, UNDER, class,
};
use crate::domain::cursor::Cursor;

/// Longer tokens contain no indicator except a URL or path at their start.
const MAX_TOKEN_LENGTH: usize = 2048;
/// RFC 1035, section 2.3.4; each letter of another script takes up to four bytes.
const MAX_HOST_LENGTH: usize = 4 * 253;

/// Methods of HTTP.
const METHODS: &[&str] = &["GET", "POST", "PUT", "HEAD"];

/// Finds everything except names.
pub(super) fn scan(source: &mut Source<'_>) {
    let mut cursor = Cursor::new(source.text);
    while let Some(token) = next_token(&mut cursor) {
        let mut end = token.end();
        if token.has(HIGH) && token.has(HEX | ALPHA | DIGIT) && !is_one_word(&token) {
            let mut done = token.start;
            for part in parts(&token) {
                if part.start >= done {
                    done = inspect(source, &part);
                }
            }
            end = end.max(done);
        } else {
            end = end.max(inspect(source, &token));
        }
        cursor.skip_to(end);
    }
}

/// The parts of a token that are each of one script.
fn parts<'t>(token: &Token<'t>) -> impl Iterator<Item = Token<'t>> {
    let (mut rest, mut at) = (token.text, token.start);
    std::iter::from_fn(move || {
        let lead = Some(foreign_lead(rest)).filter(|lead| *lead > 0);
        let (part, next) = rest.split_at(lead.or_else(|| edge(rest)).unwrap_or(rest.len()));
        let start = at;
        (rest, at) = (next, start + part.len());
        (!part.is_empty()).then(|| Token::new(part, start))
    })
}

/// Length of the words of another script to which a path is attached: `文件/tmp/x`; 0 if there are none.
fn foreign_lead(text: &str) -> usize {
    let len = text.find(|c| !is_of_word(c) || is_latin(c)).unwrap_or_default();
    let rest = text.get(len..).unwrap_or_default();
    if rest.starts_with(['/', '~', '%', '$']) || rest.starts_with("\\\\") {
        len
    } else {
        0
    }
}

/// Whether digits beside letters of another script are of one word with them: in the host `узел1.рф` and the file
/// `отчёт2023.docx`. Scripts without spaces have no such words.
fn is_one_word(token: &Token<'_>) -> bool {
    if !token.has(DOT) || token.text.len() > MAX_HOST_LENGTH {
        return false;
    }
    let token = token.trim_punctuation();
    let ending = token.text.rsplit('.').next().unwrap_or_default();
    let known = files::is_known(&ending.to_ascii_lowercase())
        || (!ending.is_ascii() && host::is_registrable(token.text));
    known
        && token.text.split('.').all(|label| {
            let letters = || label.chars().filter(|c| c.is_alphabetic());
            !letters().any(is_unspaced) && (letters().all(is_latin) || !letters().any(is_latin))
        })
}

/// Takes the next token, which has at least one character.
fn next_token<'t>(cursor: &mut Cursor<'t>) -> Option<Token<'t>> {
    cursor.skip_while(|c| class(c) == 0);
    let (start, rest) = (cursor.at(), cursor.rest());
    let mut classes = 0;
    cursor.skip_while(|c| {
        let class = class(c);
        classes |= class;
        class != 0
    });
    let text = rest.get(..cursor.at() - start)?;
    (!text.is_empty()).then_some(Token { text, start, classes })
}

/// Runs the rules on one token; returns where to continue.
fn inspect(source: &mut Source<'_>, token: &Token<'_>) -> usize {
    let mut done = token.end();
    if cve::begins(token.text)
        && let Some(end) = cve::find(source, token.start)
    {
        done = end.max(done);
        if end >= token.end() {
            return end;
        }
    }
    if token.is_only(HEX | ALPHA | HIGH | DASH) || token.classes == DOT {
        return done;
    }
    inspect_marked(source, token).max(done)
}

/// Runs the rules on a token that is more than a word.
fn inspect_marked(source: &mut Source<'_>, token: &Token<'_>) -> usize {
    if token.has(BACKSLASH)
        && let Some(end) = paths::windows(source, token)
    {
        return end;
    }
    if token.has(COLON)
        && token.has(SLASH)
        && let Some(end) = url::find(source, token)
    {
        return end;
    }
    if token.text.len() > MAX_TOKEN_LENGTH {
        return token.end();
    }
    if token.text.starts_with(['/', '~']) && paths::unix(source, token) {
        return token.end();
    }
    let ipv6 = token.has(COLON) && token.is_only(HEX | ALPHA | DIGIT | DOT | SLASH | COLON | OTHER | DASH);
    if ipv6 && network::ipv6(source, token) {
        return token.end();
    }
    let token = token.trim_punctuation();
    if token.is_only(HEX | ALPHA | HIGH | DASH) {
        return token.end();
    }
    if token.has(SLASH) && network::cidr(source, &token) {
        return token.end();
    }
    match url::without_scheme(source, &token) {
        Some(end) => end,
        None => {
            pieces(source, &token);
            token.end()
        }
    }
}

/// Runs the rules on the parts between colons, slashes and backslashes; a path after a host is skipped, unless it
/// is a list of hosts.
fn pieces(source: &mut Source<'_>, token: &Token<'_>) {
    // The path of a request names no file of its own: `GET /gate.php`.
    if token.text.starts_with('/') && is_one_of(source.previous_word(token.start), METHODS) {
        return;
    }
    let mut start = 0;
    let mut host = false;
    let mut before = "";
    let is_separator = |c| matches!(c, ':' | '/' | '\\');
    for text in token.text.split(is_separator) {
        let separator = token.text.as_bytes().get(start.max(1) - 1).copied();
        if host && separator == Some(b'/') && !url::is_host(text) {
            return;
        }
        let part = Token::new(text, token.start + start).trim_punctuation();
        host = piece(source, &part, before);
        before = if token.text.as_bytes().get(start + text.len()) == Some(&b'/') {
            text
        } else {
            ""
        };
        start += text.len() + 1;
    }
}

/// Where a CVE id may begin inside a part: `exploit_CVE-2014-1001`.
fn inner_cve(part: &str) -> Option<usize> {
    let ends = part
        .match_indices(['-', '_', '.'])
        .map(|(at, mark)| at + mark.len());
    std::iter::once(0)
        .chain(ends)
        .find(|at| part.get(*at..).is_some_and(cve::begins))
}

/// Runs the rules on one part; returns whether it is a host.
pub(super) fn piece(source: &mut Source<'_>, part: &Token<'_>, before: &str) -> bool {
    if part.text.is_empty() || part.is_only(HEX | ALPHA | HIGH | DASH) {
        return false;
    }
    if part.has(AT) {
        return url::email(source, part);
    }
    if part.is_only(DIGIT | DOT | DASH) {
        return identifiers::numbers(source, part) || network::ipv4(source, part, before);
    }
    if part.has(DIGIT) {
        let ascii = part.is_only(HEX | ALPHA | DIGIT);
        if let Some(at) = inner_cve(part.text) {
            // A longer part may be a file name, which then wins as the longer hit.
            cve::find(source, part.start + at);
        }
        if identifiers::find(source, part)
            || (part.is_only(HEX | DIGIT | ALPHA | DASH | UNDER) && hash::find(source, part))
            || (ascii && bitcoin::find(source, part))
        {
            return false;
        }
    }
    if part.has(UNDER) && rule_names::sigma_name(source, part) {
        return false;
    }
    part.has(DOT) && host::find_dotted(source, part)
}
