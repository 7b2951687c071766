//! URLs (RFC 3986, as far as reports use it) and mail addresses (RFC 5321).
//!
//! A URL is one hit: its host and file name are not reported separately.

use super::super::source::Source;
use super::super::token::Token;
use super::{host, network};
use crate::domain::kinds::EntityKind;

const SCHEMES: &[&str] = &[
    "http", "https", "ftp", "ftps", "sftp", "tftp", "tcp", "udp", "ws", "wss", "ssh", "smb", "ldap", "ldaps",
    "rtsp", "socks4", "socks5", "git", "irc", "rmi", "telnet", "mqtt", "rdp", "vnc",
];
/// Common upper bound of servers and browsers.
const MAX_URL_LENGTH: usize = 8192;

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
    let authority_len = rest.find(is_authority_end).unwrap_or(rest.len());
    let authority = rest
        .get(..authority_len)?
        .trim_end_matches(['.', ',', ':', '-', '_', '*']);
    let confidence = confidence(authority)?;
    let path_len = path_len(rest.get(authority.len()..)?);
    let len = authority.len() + path_len;
    let path = rest.get(authority.len()..len)?;
    let value = format!("{scheme}://{}{path}", lower_host(authority));
    let end = after_scheme + len;
    source.push(EntityKind::Url, value, start..end, "url", confidence);
    Some(end)
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

fn lower_host(authority: &str) -> String {
    match authority.rsplit_once('@') {
        Some((user, host)) => format!("{user}@{}", host.to_lowercase()),
        None => authority.to_lowercase(),
    }
}

/// Length of path, query and fragment, without the punctuation of the surrounding sentence.
fn path_len(rest: &str) -> usize {
    if !rest.starts_with(['/', '?', '#']) {
        return 0;
    }
    let mut end = rest.len();
    let mut depth = 0i32;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        let next_url = matches!(c, ',' | ';') && starts_url(rest.get(at + 1..).unwrap_or_default());
        if depth < 0 || next_url || is_url_end(c) {
            end = at;
            break;
        }
    }
    let path = rest.get(..end).unwrap_or_default();
    path.trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '~', '_'])
        .len()
}

fn is_url_end(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\''
                | '<'
                | '>'
                | '|'
                | '`'
                | '{'
                | '}'
                | '['
                | ']'
                | '\\'
                | '^'
                | '“'
                | '”'
                | '‘'
                | '’'
                | '«'
                | '»'
                | '…'
        )
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
        part.text.to_lowercase(),
        part.span(),
        "email",
        0.95,
    );
    true
}
