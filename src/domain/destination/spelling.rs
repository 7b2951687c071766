//! URLs as they are written. Parsers normalise `0x7f.1`, `%31%32%37.0.0.1` and `１２７.0.0.1` to 127.0.0.1 before a rule
//! can see them, and disagree about backslashes and blanks. A feed's URL must have one meaning for everybody.

use std::net::{IpAddr, Ipv6Addr};

use url::Url;

use super::rule::{Refusal, Rule};

/// Longest URL in bytes (RFC 9110 section 4.1 recommends to support 8,000).
const MAX_URL: usize = 8_192;

/// Parses a URL whose spelling has one meaning. Scheme and destination are not checked.
pub(super) fn parse(text: &str) -> Result<Url, Refusal> {
    let invalid = |host: &str| Refusal::new(Rule::InvalidUrl, host);
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if text.len() > MAX_URL || text.chars().any(odd) {
        return Err(invalid(""));
    }
    let url = Url::parse(text).map_err(|_| invalid(""))?;
    let host = url.host_str().unwrap_or_default();
    let refuse = |rule| Err(Refusal::new(rule, host));
    // file:, data: and the like have no authority; the rule on schemes names them better.
    let Some(authority) = authority(text) else {
        return if matches!(url.scheme(), "http" | "https") {
            refuse(Rule::InvalidUrl)
        } else {
            refuse(Rule::Scheme)
        };
    };
    if authority.contains('@') || !url.username().is_empty() || url.password().is_some() {
        return refuse(Rule::Userinfo);
    }
    if url.port() == Some(0) {
        return refuse(Rule::Port);
    }
    let written = without_port(authority);
    match literal(&url) {
        Some(address) if !is_canonical(written, address) => return refuse(Rule::AddressSpelling),
        Some(_) => {}
        None if written.contains('%') || written.is_empty() => return refuse(Rule::InvalidUrl),
        None if host.ends_with('.') => return refuse(Rule::TrailingDot),
        None => {}
    }
    Ok(url)
}

/// The address, if the host is one.
pub(super) fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Whether a URL leads to this machine itself, where plain HTTP is as safe as HTTPS.
pub fn is_loopback(url: &Url) -> bool {
    let is_loopback = literal(url).is_some_and(|address| address.is_loopback());
    url.host_str() == Some("localhost") || is_loopback
}

/// Host and port as written, with user name and password if there are any.
fn authority(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(':')?;
    let rest = rest.strip_prefix("//")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    rest.get(..end).filter(|authority| !authority.is_empty())
}

fn without_port(authority: &str) -> &str {
    if authority.starts_with('[') {
        return authority.split_inclusive(']').next().unwrap_or_default();
    }
    authority.split(':').next().unwrap_or_default()
}

/// Dotted decimal without leading zeros, or IPv6 in brackets (RFC 4291 section 2.2: any of its forms).
fn is_canonical(written: &str, address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => written == address.to_string(),
        IpAddr::V6(address) => {
            let inner = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            inner.and_then(|inner| inner.parse::<Ipv6Addr>().ok()) == Some(address)
        }
    }
}
