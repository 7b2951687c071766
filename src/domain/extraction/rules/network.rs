//! IPv4, IPv6 (RFC 4291, written as RFC 5952) and CIDR blocks.
//!
//! Four dotted numbers are more often a version than an address, so the surrounding words decide. A defanged address
//! is always an address. Private, loopback and documentation addresses get a lower confidence.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::super::source::{Source, is_one_of, last_word};
use super::super::token::{DIGIT, DOT, SLASH, Token};
use super::super::word_lists::{VERSION_TAILS, VERSION_WORDS};
use crate::domain::kinds::EntityKind;

/// Words that may connect two version numbers.
const VERSION_LINKS: &[&str] = &[
    "and", "or", "to", "through", "before", "until", "prior", "than", "earlier", "later", "from", "by", "in",
    "up", "range",
];
/// Words before `name/1.2.3.4` after which it is an address.
const PROTOCOLS: &[&str] = &[
    "tcp", "udp", "ip", "http", "https", "ftp", "ssh", "host", "icmp", "ipv4", "c2",
];

/// Finds an IPv4 address, or a range of two; returns whether it is a host.
pub(in crate::domain::extraction) fn ipv4(source: &mut Source<'_>, part: &Token<'_>, before: &str) -> bool {
    let mut found = false;
    let mut start = part.start;
    for text in part.text.split('-') {
        let piece = Token::new(text, start);
        start += text.len() + 1;
        let Some(address) = parse_v4(piece.text) else {
            continue;
        };
        if !source.is_defanged(&piece.span()) && is_version(source, &piece, address, before) {
            continue;
        }
        let confidence = confidence_v4(address);
        source.push(
            EntityKind::Ipv4,
            address.to_string(),
            piece.span(),
            "ipv4",
            confidence,
        );
        found = true;
    }
    found
}

/// Finds `address/prefix` of either family.
pub(in crate::domain::extraction) fn cidr(source: &mut Source<'_>, token: &Token<'_>) -> bool {
    if !token.is_only(DIGIT | DOT | SLASH) {
        return false;
    }
    let Some((address, prefix)) = token.text.split_once('/') else {
        return false;
    };
    let (Some(address), Some(prefix)) = (parse_v4(address), prefix_length(prefix, 32)) else {
        return false;
    };
    let piece = Token::new(token.text.split('/').next().unwrap_or_default(), token.start);
    if !source.is_defanged(&token.span()) && is_version(source, &piece, address, "") {
        return true;
    }
    let confidence = confidence_v4(address);
    source.push(
        EntityKind::Cidr,
        format!("{address}/{prefix}"),
        token.span(),
        "cidr",
        confidence,
    );
    true
}

/// Finds an IPv6 address with an optional prefix length or zone; returns whether the token is one.
pub(in crate::domain::extraction) fn ipv6(source: &mut Source<'_>, token: &Token<'_>) -> bool {
    let text = token.text.trim_end_matches(['.', '-']);
    let text = text
        .strip_suffix(':')
        .filter(|t| !t.ends_with(':'))
        .unwrap_or(text);
    let (body, prefix) = match text.split_once('/') {
        Some((body, prefix)) => (body, prefix_length(prefix, 128)),
        None => (text, None),
    };
    let bare = body.split('%').next().unwrap_or_default();
    let Ok(address) = bare.parse::<Ipv6Addr>() else {
        return false;
    };
    if !is_written_like_v6(bare, address) {
        return false;
    }
    let confidence = confidence_v6(address);
    let (kind, value, len) = match prefix {
        Some(prefix) => (EntityKind::Cidr, format!("{address}/{prefix}"), text.len()),
        None if address.to_ipv4_mapped().is_some() => {
            (EntityKind::Ipv4, address.to_canonical().to_string(), body.len())
        }
        None => (EntityKind::Ipv6, address.to_string(), body.len()),
    };
    let rule = if kind == EntityKind::Cidr { "cidr" } else { "ipv6" };
    source.push(kind, value, token.start..token.start + len, rule, confidence);
    true
}

/// Rejects `std::abs`-like code, MAC addresses and times.
fn is_written_like_v6(text: &str, address: Ipv6Addr) -> bool {
    if address.is_unspecified() {
        return false;
    }
    if address.is_loopback() {
        return true;
    }
    let first = text.split(':').next().unwrap_or_default();
    let compressed = text.contains("::");
    let short_groups = text.split(':').all(|group| group.len() <= 2);
    let digit = text.bytes().any(|byte| byte.is_ascii_digit());
    if compressed {
        digit
            && (first.len() == 4
                || (first.len() == 3 && text.matches(':').count() > 3)
                || text.starts_with("::ffff:")
                || text.starts_with("64:ff9b:"))
    } else {
        !short_groups
    }
}

fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    // The standard parser rejects leading zeros, and with them dates and padded versions.
    if text.len() < 7 { None } else { text.parse().ok() }
}

fn prefix_length(text: &str, most: u8) -> Option<u8> {
    let digits = text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    text.parse().ok().filter(|length| *length <= most)
}

/// Whether the four numbers are a version, a section number or an object identifier.
fn is_version(source: &Source<'_>, piece: &Token<'_>, address: Ipv4Addr, before: &str) -> bool {
    let octets = address.octets();
    if octets[0] == 0 && !address.is_unspecified() {
        return true;
    }
    // In `Firefox/1.2.3.4`, the name before the slash is a product.
    let product = before.bytes().any(|byte| byte.is_ascii_alphabetic());
    if product && !is_one_of(before, PROTOCOLS) && !before.contains('.') {
        return true;
    }
    let word = source.previous_word(piece.start);
    is_one_of(word, &VERSION_WORDS)
        || has_version_tail(source, piece.end())
        || is_heading(source, piece, octets)
        || is_small_in_prose(source, piece, address)
        || follows_version(source, piece.start, word)
}

fn has_version_tail(source: &Source<'_>, end: usize) -> bool {
    let after = source
        .after(end, 24)
        .trim_start_matches([' ', ')', ','])
        .to_ascii_lowercase();
    VERSION_TAILS.iter().any(|tail| {
        after
            .strip_prefix(tail)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic() && c != 's'))
    })
}

/// Whether this is a heading: `1.2.3.4 Title` at the start of a line.
fn is_heading(source: &Source<'_>, piece: &Token<'_>, octets: [u8; 4]) -> bool {
    let before = source.before(piece.start, 8);
    let starts_line = before.trim_end_matches([' ', '#', '\t']).is_empty()
        || before.trim_end_matches([' ', '#', '\t']).ends_with('\n');
    let after = source.after(piece.end(), 3);
    let titled = after
        .strip_prefix(' ')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_uppercase()));
    starts_line && titled && octets.iter().all(|octet| *octet < 30)
}

/// Whether four small numbers follow a word in prose, without network context: `fixed in 1.6.0.1`.
fn is_small_in_prose(source: &Source<'_>, piece: &Token<'_>, address: Ipv4Addr) -> bool {
    let octets = address.octets();
    let resolver = matches!(
        octets,
        [8, 8, 8, 8] | [8, 8, 4, 4] | [1, 1, 1, 1] | [1, 0, 0, 1] | [9, 9, 9, 9] | [4, 2, 2, 2]
    );
    if address.is_private() || address.is_unspecified() || resolver || octets.iter().any(|octet| *octet > 30)
    {
        return false;
    }
    let in_prose = source
        .before(piece.start, 2)
        .strip_suffix(' ')
        .is_some_and(|w| w.ends_with(|c: char| c.is_alphabetic()));
    let port = source.after(piece.end(), 1) == ":";
    let around = source.before(piece.start, 64);
    in_prose && !port && !mentions_traffic(around) && !mentions_traffic(source.after(piece.end(), 48))
}

/// Whether a link word comes before, and a version word near by: `before 2.1.0.14`, `versions 1.0.0.1 to 1.0.0.9`.
fn follows_version(source: &Source<'_>, start: usize, word: &str) -> bool {
    let window = source.before(start, 72);
    let sentence = window.rsplit(['\n', ';']).next().unwrap_or_default();
    let sentence = sentence.rsplit(". ").next().unwrap_or_default();
    let linked = is_one_of(word, VERSION_LINKS)
        || sentence.trim_end().ends_with([',', '-'])
        || last_word(sentence).is_empty();
    let version_near = sentence
        .split(|c: char| !c.is_alphanumeric())
        .any(|w| is_one_of(w, &["version", "versions", "firmware", "build", "builds"]));
    let explicit = is_one_of(word, &["before", "than"])
        && sentence.split_whitespace().count() <= 8
        && !mentions_traffic(sentence);
    (linked && version_near) || explicit
}

fn mentions_traffic(sentence: &str) -> bool {
    let lower = sentence.to_ascii_lowercase();
    [
        "connect",
        "ip ",
        "ips ",
        "ipv4",
        "address",
        "traffic",
        "c2",
        "server",
        "beacon",
        "host",
        "infrastructure",
        "resolv",
        "ping",
        "scan",
        "dns",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

fn confidence_v4(address: Ipv4Addr) -> f32 {
    let octets = address.octets();
    if address.is_loopback() || address.is_unspecified() || address.is_broadcast() || address.is_multicast() {
        return 0.3;
    }
    if address.is_private() || address.is_link_local() || (octets[0] == 100 && octets[1] & 0xc0 == 64) {
        return 0.4;
    }
    if address.is_documentation() { 0.6 } else { 0.9 }
}

fn confidence_v6(address: Ipv6Addr) -> f32 {
    let first = address.segments()[0];
    if address.is_loopback() || address.is_multicast() {
        return 0.3;
    }
    // fc00::/7 is private (RFC 4193), fe80::/10 link-local, 2001:db8::/32 documentation (RFC 3849).
    if first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80 {
        return 0.4;
    }
    if first == 0x2001 && address.segments()[1] == 0x0db8 {
        0.6
    } else {
        0.95
    }
}

/// Whether a host part of a URL or mail address is an IPv4 or a bracketed IPv6 address.
pub(super) fn is_address(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok(),
    }
}
