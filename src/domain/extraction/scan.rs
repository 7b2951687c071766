//! One pass over the text: splits it into tokens and runs the rules on each interesting one.
//!
//! Tokens end at white space and at the punctuation that surrounds indicators in prose, CSV, JSON and Markdown.
//! Words of letters only, nine tenths of prose, are skipped after one table look-up per byte. A rule may consume
//! more than its token (a URL, a path with spaces). The pass continues after it and never goes back, so the work
//! is linear in the text.

use super::rules::{bitcoin, hash, host, identifiers, network, paths, rule_names, url};
use super::source::Source;
use super::token::{
    ALPHA, AT, BACKSLASH, COLON, DASH, DIGIT, DOT, HEX, HIGH, OTHER, SLASH, Token, UNDER, class,
};
use crate::domain::cursor::Cursor;

/// Longer tokens contain no indicator except a URL or path at their start.
const MAX_TOKEN_LENGTH: usize = 2048;

/// Finds everything except names.
pub(super) fn scan(source: &mut Source<'_>) {
    let mut cursor = Cursor::new(source.text);
    while let Some(token) = next_token(&mut cursor) {
        if token.is_only(HEX | ALPHA | HIGH | DASH) || token.classes == DOT {
            continue;
        }
        let end = inspect(source, &token);
        cursor.skip_to(end.max(token.end()));
    }
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
    pieces(source, &token);
    token.end()
}

/// Runs the rules on the parts between colons, slashes and backslashes; a path after a host is skipped.
fn pieces(source: &mut Source<'_>, token: &Token<'_>) {
    let mut start = 0;
    let mut host = false;
    let mut before = "";
    let is_separator = |c| matches!(c, ':' | '/' | '\\');
    for text in token.text.split(is_separator) {
        let separator = token.text.as_bytes().get(start.max(1) - 1).copied();
        if host && separator == Some(b'/') {
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

/// Runs the rules on one part; returns whether it is a host.
fn piece(source: &mut Source<'_>, part: &Token<'_>, before: &str) -> bool {
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
        if identifiers::find(source, part)
            || (part.is_only(HEX | DIGIT) && hash::find(source, part))
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
