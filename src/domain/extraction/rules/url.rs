//! URLs (RFC 3986, as far as reports use it) and mail addresses (RFC 5321).
//!
//! A URL is one hit: its host and file name are not reported separately.

use super::super::scan;
use super::super::script::{edge, is_edge, is_latin, is_mark, is_of_word, is_unspaced};
use super::super::source::Source;
use super::super::token::Token;
use super::{files, host, network};
use crate::domain::kinds::EntityKind;

const SCHEMES: &[&str] = &[
    "http", "https", "ftp", "ftps", "sftp", "tftp", "tcp", "udp", "ws", "wss", "ssh", "smb", "ldap", "ldaps",
    "rtsp", "socks4", "socks5", "git", "irc", "rmi", "telnet", "mqtt", "rdp", "vnc",
];
/// Common upper bound of servers and browsers.
const MAX_URL_LENGTH: usize = 8192;
/// Length of a field of a row behind a URL.
const MAX_FIELD: usize = 40;

/// Finds the first URL in the token; returns its end.
pub(in crate::domain::extraction) fn find(source: &mut Source<'_>, token: &Token<'_>) -> Option<usize> {
    let colon = token.text.find("://")?;
    let scheme_len = token
        .text
        .as_bytes()
        .get(..colon)?
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric())
        .count();
    let start = token.start + colon - scheme_len;
    let after_scheme = token.start + colon + 3;
    let scheme = source.text.get(start..token.start + colon)?.to_ascii_lowercase();
    if !SCHEMES.contains(&scheme.as_str()) {
        return None;
    }
    let rest = source.after(after_scheme, MAX_URL_LENGTH);
    let authority = authority(rest)?;
    let confidence = confidence(authority)?;
    let glued = source
        .before(start, 4)
        .chars()
        .next_back()
        .is_some_and(is_of_word);
    let path_len = path_len(
        rest.get(authority.len()..)?,
        &Surroundings::of(source, start, glued),
    );
    let len = authority.len() + path_len;
    let path = rest.get(authority.len()..len)?;
    let value = format!("{scheme}://{authority}{path}");
    let end = after_scheme + len;
    source.push(EntityKind::Url, value, start..end, "url", confidence);
    Some(end)
}

/// Finds a host or address with a path and no scheme at the start of a token: `198.51.100.4:8443/gate.php`; returns its
/// end. A path of hosts alone is a list: `evil.com/evil.org`.
pub(in crate::domain::extraction) fn without_scheme(
    source: &mut Source<'_>,
    token: &Token<'_>,
) -> Option<usize> {
    let slash = token.text.find('/').filter(|at| *at > 0)?;
    let authority = token.text.get(..slash)?;
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let port_ok =
        port.is_none_or(|port| (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit()));
    if !port_ok || host.contains(['@', '\\']) || !host.contains('.') {
        return None;
    }
    let before = source.hits.len();
    let is_host = scan::piece(source, &Token::new(host, token.start), "");
    let hit = source
        .hits
        .pop()
        .filter(|_| is_host && source.hits.len() == before);
    source.hits.truncate(before);
    let hit = hit?;
    let at = token.start + slash;
    let around = Surroundings {
        bare: true,
        ..Surroundings::of(source, token.start, false)
    };
    let rest = source.after(at, MAX_URL_LENGTH);
    let path = rest.get(..path_len(rest, &around))?;
    if !is_path(host, path) {
        return None;
    }
    let end = at + path.len();
    let value = source.text.get(token.start..end)?.to_owned();
    let confidence = hit.confidence.min(0.9);
    source.push(
        EntityKind::Url,
        value,
        token.start..end,
        "url-without-scheme",
        confidence,
    );
    Some(end)
}

/// Whether a component behind a host is a host itself, and no file.
pub(in crate::domain::extraction) fn is_host(part: &str) -> bool {
    let extension = part.rsplit('.').next().unwrap_or_default();
    network::is_address(part)
        || (host::is_registrable(part) && !files::is_known(&extension.to_ascii_lowercase()))
}

/// Whether a text behind a host is a path, and neither a list of hosts nor a number.
fn is_path(host: &str, path: &str) -> bool {
    let numeric = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let mut components = path.split(['/', '?', '#']).filter(|part| !part.is_empty());
    components.any(|part| !is_host(part)) && (!numeric || path.contains(char::is_alphabetic))
}

/// The host of a URL with user and port. A word of another script may be attached to it.
fn authority(rest: &str) -> Option<&str> {
    let len = rest.find(is_authority_end).unwrap_or(rest.len());
    let whole = trim_authority(rest.get(..len)?);
    let host = whole.rsplit('@').next()?;
    let host = host.split(':').next()?;
    if host.is_ascii() || host::is_registrable(host) {
        return Some(whole);
    }
    let cut = edge(whole).and_then(|at| whole.get(..at)).map(trim_authority);
    cut.filter(|cut| confidence(cut).is_some()).or(Some(whole))
}

fn trim_authority(text: &str) -> &str {
    text.trim_end_matches(['.', ',', ':', '-', '_', '*'])
}

fn is_authority_end(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '/' | '?'
                | '#'
                | '"'
                | '\''
                | '<'
                | '>'
                | ','
                | ';'
                | '|'
                | '('
                | ')'
                | '`'
                | '{'
                | '}'
                | '\\'
                | '^'
                | '“'
                | '”'
                | '’'
                | '»'
                | '…'
        )
        || is_foreign_mark(c)
}

/// Whether a character is punctuation outside ASCII: no URL has any that is not encoded.
fn is_foreign_mark(c: char) -> bool {
    !c.is_ascii() && !c.is_alphanumeric() && !is_mark(c)
}

/// The confidence that this is a URL; `None` if the authority is not a host.
fn confidence(authority: &str) -> Option<f32> {
    let host = authority.rsplit('@').next()?;
    if host.starts_with('[') {
        let inner = host.split(']').next()?;
        return network::is_address(&format!("{inner}]")).then_some(0.95);
    }
    let (name, port) = host
        .split_once(':')
        .map_or((host, None), |(name, port)| (name, Some(port)));
    let port_ok =
        port.is_none_or(|port| (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit()));
    if !port_ok || name.is_empty() {
        return None;
    }
    if network::is_address(name) || host::is_registrable(name) {
        return Some(0.97);
    }
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'));
    let local = matches!(name, "localhost" | "127.0.0.1" | "example");
    let named =
        name.starts_with(|c: char| c.is_alphanumeric()) && name.ends_with(|c: char| c.is_alphanumeric());
    (plain && named).then_some(if local { 0.3 } else { 0.5 })
}

/// What is before a URL tells where it ends.
struct Surroundings {
    /// A letter is attached to its beginning, so one may be attached to its end.
    glued: bool,
    /// It is a field of a row: what separates it from the one before.
    separator: Option<char>,
    /// It begins its line, so it may be the first field of a row.
    first: bool,
    /// It has no scheme, so a comma ends it.
    bare: bool,
}

impl Surroundings {
    fn of(source: &Source<'_>, start: usize, glued: bool) -> Self {
        let before = source.before(start, 4).trim_end_matches(['"', '\'']);
        let previous = before.chars().next_back();
        Surroundings {
            glued,
            separator: previous.filter(|c| matches!(c, ',' | ';')),
            first: previous.is_none_or(|c| c == '\n'),
            bare: false,
        }
    }
}

/// Length of path, query and fragment, without the punctuation and the words of the surrounding sentence.
///
/// Letters of other scripts belong to a path (an IRI) where a component consists of them, as in `/wiki/マルウェア`; where one
/// is attached to a Latin letter or to a URL that is attached to a word itself, the sentence goes on.
fn path_len(rest: &str, around: &Surroundings) -> usize {
    if !rest.starts_with(['/', '?', '#']) {
        return 0;
    }
    let mut end = rest.len();
    let mut depth = 0i32;
    let mut previous = '/';
    // Where a component of another script began.
    let mut foreign = None;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        let after = rest.get(at + c.len_utf8()..).unwrap_or_default();
        let joined = is_edge(previous, c) && is_latin(c) && starts_url(rest.get(at..).unwrap_or_default());
        let next_url = joined || (matches!(c, ',' | ';') && starts_url(after));
        let next_field = matches!(c, ',' | ';') && is_next_field(c, after, around);
        let attached =
            is_edge(previous, c) && !is_latin(c) || (around.glued && c.is_alphanumeric() && !is_latin(c));
        if depth < 0 || next_url || next_field || attached || is_url_end(c) {
            end = at;
            // Full-width punctuation ends a sentence, and letters without spaces before it are its words.
            if let Some(start) = foreign.filter(|_| is_foreign_mark(c)) {
                end = start;
            }
            break;
        }
        if is_unspaced(c) {
            foreign = foreign.or(Some(at));
        } else if !is_mark(c) {
            foreign = None;
        }
        if !is_mark(c) {
            previous = c;
        }
    }
    let path = rest.get(..end).unwrap_or_default();
    path.trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '~', '_'])
        .len()
}

/// Whether a comma or semicolon ends a field of a row, and not a part of a path: the URL has no scheme, is a field
/// behind the same mark, or begins a line and a plain word follows up to the next mark or the end of the line.
fn is_next_field(mark: char, after: &str, around: &Surroundings) -> bool {
    let field = after.split([mark, '\n', '\r']).next().unwrap_or_default();
    let plain = field
        .chars()
        .all(|c| c.is_alphabetic() || matches!(c, ' ' | '-' | '_'));
    around.bare || around.separator == Some(mark) || (around.first && plain && field.len() <= MAX_FIELD)
}

fn is_url_end(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\'' | '<' | '>' | '|' | '`' | '{' | '}' | '[' | ']' | '\\' | '^'
        )
        || is_foreign_mark(c)
}

fn starts_url(text: &str) -> bool {
    text.get(..4)
        .is_some_and(|head| head.eq_ignore_ascii_case("http"))
}

/// Finds a mail address, or the host after an `@`; returns whether it found anything.
pub(in crate::domain::extraction) fn email(source: &mut Source<'_>, part: &Token<'_>) -> bool {
    let Some((local, domain)) = part.text.rsplit_once('@') else {
        return false;
    };
    let domain_start = part.end() - domain.len();
    if network::is_address(domain) {
        let piece = Token::new(domain, domain_start);
        return network::ipv4(source, &piece, "");
    }
    let local_ok = (1..=64).contains(&local.len())
        && local
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b".!#$%&'*+-/=?^_`{|}~".contains(&b));
    if !local_ok || !host::is_registrable(domain) {
        return false;
    }
    source.push(
        EntityKind::Email,
        part.text.to_owned(),
        part.span(),
        "email",
        0.95,
    );
    true
}
