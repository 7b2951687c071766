//! One pass over the text: splits it into tokens and runs the rules on each interesting one.
//!
//! Tokens end at white space and at the punctuation that surrounds indicators in prose, CSV, JSON and Markdown.
//! Words of letters only, nine tenths of prose, are skipped after one table look-up per byte. A rule may consume
//! more than its token (a URL, a path with spaces). The pass continues after it and never goes back, so the work
//! is linear in the text.

use super::source::Source;
use super::{bitcoin, hash, host, identifiers, network, paths, rule_names, url};
use crate::domain::cursor::Cursor;

pub(super) const HEX: u16 = 1;
pub(super) const ALPHA: u16 = 1 << 1;
pub(super) const DIGIT: u16 = 1 << 2;
pub(super) const DOT: u16 = 1 << 3;
pub(super) const DASH: u16 = 1 << 4;
pub(super) const UNDER: u16 = 1 << 5;
pub(super) const SLASH: u16 = 1 << 6;
pub(super) const BACKSLASH: u16 = 1 << 7;
pub(super) const COLON: u16 = 1 << 8;
pub(super) const AT: u16 = 1 << 9;
pub(super) const OTHER: u16 = 1 << 10;
pub(super) const HIGH: u16 = 1 << 11;

/// Longer tokens contain no indicator except a URL or path at their start.
const MAX_TOKEN_LENGTH: usize = 2048;

const CLASS: [u16; 256] = classes();

const fn classes() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'f' | b'A'..=b'F' => HEX,
            b'g'..=b'z' | b'G'..=b'Z' => ALPHA,
            b'0'..=b'9' => DIGIT,
            b'.' => DOT,
            b'-' => DASH,
            b'_' => UNDER,
            b'/' => SLASH,
            b'\\' => BACKSLASH,
            b':' => COLON,
            b'@' => AT,
            b'%' | b'+' | b'~' | b'$' => OTHER,
            128.. => HIGH,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// A part of the text without delimiters, with the classes of its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'t> {
    pub text: &'t str,
    pub start: usize,
    pub classes: u16,
}

impl<'t> Token<'t> {
    pub fn new(text: &'t str, start: usize) -> Self {
        let classes = text.bytes().fold(0, |all, byte| all | CLASS[usize::from(byte)]);
        Token { text, start, classes }
    }

    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub fn span(&self) -> std::ops::Range<usize> {
        self.start..self.end()
    }

    pub fn has(&self, class: u16) -> bool {
        self.classes & class != 0
    }

    /// Whether all bytes are of these classes.
    pub fn is_only(&self, classes: u16) -> bool {
        self.classes & !classes == 0
    }

    /// Without punctuation that ends a sentence or starts an extension.
    fn trim_punctuation(&self) -> Token<'t> {
        let from_left = self.text.trim_start_matches(['.', '-', ':', '+', '@', '_']);
        let start = self.start + self.text.len() - from_left.len();
        let text = from_left.trim_end_matches(['.', '-', ':', '+', '@', '_', '/', '\\', '~', '%', '$']);
        Token::new(text, start)
    }
}

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

/// Letters and digits of other scripts belong to tokens; their punctuation does not.
fn class(c: char) -> u16 {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => CLASS[usize::from(byte)],
        Ok(_) | Err(_) if c.is_alphanumeric() => HIGH,
        Ok(_) | Err(_) => 0,
    }
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
