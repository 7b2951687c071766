//! STIX patterns (STIX 2.1 section 9): building them from typed values, and checking their grammar.
//!
//! A pattern is built only from a value of the stated kind. A "hash" of the wrong length or a malformed "address"
//! gives no pattern, because an indicator that never matches is worse than none. All text in a pattern passes through
//! [`literal`], so a value cannot break out of its quotes.
//!
//! [`is_well_formed`] checks grammar, not semantics: comparing incompatible types is allowed, as in the
//! reference implementation.

mod grammar;
mod lexer;
mod observed;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

pub use grammar::is_well_formed;
pub use observed::{ObservedValue, observed_values};

/// The kind of observable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Observable {
    /// An address, or a network with a prefix length.
    Ipv4,
    /// An address, or a network with a prefix length.
    Ipv6,
    Domain,
    Url,
    Email,
    Mac,
    /// `AS15139` or `15139`.
    AutonomousSystem,
    Md5,
    Sha1,
    Sha256,
    Sha512,
    Ssdeep,
    Tlsh,
    FileName,
    DirectoryPath,
    Mutex,
    RegistryKey,
    /// MD5 digest of a certificate.
    CertificateMd5,
    CertificateSha1,
    CertificateSha256,
    UserAgent,
    UserAccount,
    /// A destination port.
    Port,
}

/// Quotes a text as a string literal; the grammar escapes only `'` and `\` (section 9.2).
pub fn literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('\'');
    quoted
}

/// The pattern `[…]` that matches one value; `None` if the value is not of this kind.
pub fn pattern(kind: Observable, value: &str) -> Option<String> {
    Some(format!("[{}]", comparison(kind, value)?))
}

/// The pattern that matches all values together, as for `filename|sha256`; `None` if one is not of its kind.
///
/// Values of one object (a file's name and digest) are compared within one observation, others in observations joined
/// by AND. Within one observation, AND between two object types never matches (section 9.5).
pub fn pattern_all(values: &[(Observable, &str)]) -> Option<String> {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for (kind, value) in values {
        let test = comparison(*kind, value)?;
        let object = object_type(*kind);
        match groups.iter_mut().find(|(known, _)| *known == object) {
            Some((_, tests)) => tests.push(test),
            None => groups.push((object, vec![test])),
        }
    }
    let observations: Vec<String> = groups
        .iter()
        .map(|(_, tests)| format!("[{}]", tests.join(" AND ")))
        .collect();
    (!observations.is_empty()).then(|| observations.join(" AND "))
}

/// The comparison expression (section 9.6) for one value, without brackets; `None` if the value is not of this kind.
pub fn comparison(kind: Observable, value: &str) -> Option<String> {
    let value = value.trim();
    if value.is_empty() || value.chars().any(char::is_control) {
        return None;
    }
    Some(format!("{} {}", object_path(kind), test(kind, value)?))
}

/// The object type of a kind: the part of its path before the colon.
fn object_type(kind: Observable) -> &'static str {
    let path = object_path(kind);
    path.split_once(':').map_or(path, |(object, _)| object)
}

fn object_path(kind: Observable) -> &'static str {
    match kind {
        Observable::Ipv4 => "ipv4-addr:value",
        Observable::Ipv6 => "ipv6-addr:value",
        Observable::Domain => "domain-name:value",
        Observable::Url => "url:value",
        Observable::Email => "email-addr:value",
        Observable::Mac => "mac-addr:value",
        Observable::AutonomousSystem => "autonomous-system:number",
        Observable::Md5 => "file:hashes.MD5",
        Observable::Sha1 => "file:hashes.'SHA-1'",
        Observable::Sha256 => "file:hashes.'SHA-256'",
        Observable::Sha512 => "file:hashes.'SHA-512'",
        Observable::Ssdeep => "file:hashes.SSDEEP",
        Observable::Tlsh => "file:hashes.TLSH",
        Observable::FileName => "file:name",
        Observable::DirectoryPath => "directory:path",
        Observable::Mutex => "mutex:name",
        Observable::RegistryKey => "windows-registry-key:key",
        Observable::CertificateMd5 => "x509-certificate:hashes.MD5",
        Observable::CertificateSha1 => "x509-certificate:hashes.'SHA-1'",
        Observable::CertificateSha256 => "x509-certificate:hashes.'SHA-256'",
        Observable::UserAgent => "network-traffic:extensions.'http-request-ext'.request_header.'User-Agent'",
        Observable::UserAccount => "user-account:account_login",
        Observable::Port => "network-traffic:dst_port",
    }
}

/// Operator and operand for a value, if it can be of this kind. Deliberately rough: the extraction rules classify
/// values, and this only prevents patterns that never match.
fn test(kind: Observable, value: &str) -> Option<String> {
    let spaceless = !value.chars().any(char::is_whitespace);
    let equals = |plausible: bool| plausible.then(|| format!("= {}", literal(value)));
    match kind {
        Observable::Ipv4 => address(value, 32, |text| text.parse::<Ipv4Addr>().is_ok()),
        Observable::Ipv6 => address(value, 128, |text| text.parse::<Ipv6Addr>().is_ok()),
        Observable::AutonomousSystem => {
            let digits = value
                .strip_prefix("AS")
                .or_else(|| value.strip_prefix("as"))
                .unwrap_or(value);
            Some(format!("= {}", digits.parse::<u32>().ok()?))
        }
        Observable::Port => Some(format!("= {}", value.parse::<u16>().ok()?)),
        Observable::Md5 | Observable::CertificateMd5 => equals(is_hex(value, 32)),
        Observable::Sha1 | Observable::CertificateSha1 => equals(is_hex(value, 40)),
        Observable::Sha256 | Observable::CertificateSha256 => equals(is_hex(value, 64)),
        Observable::Sha512 => equals(is_hex(value, 128)),
        Observable::Ssdeep => equals(spaceless && value.split(':').count() == 3),
        Observable::Tlsh => equals((70..=72).contains(&value.len()) && is_alphanumeric(value)),
        Observable::Domain => {
            equals(spaceless && !value.contains(['/', '@', ':', '\\', '\'']) && !value.starts_with('.'))
        }
        Observable::Url => equals(spaceless && is_url(value)),
        Observable::Email => equals(spaceless && is_email(value)),
        Observable::Mac => equals(value.len() == 17 && value.split([':', '-']).all(|part| is_hex(part, 2))),
        Observable::RegistryKey => equals(value.contains('\\')),
        Observable::FileName
        | Observable::DirectoryPath
        | Observable::Mutex
        | Observable::UserAgent
        | Observable::UserAccount => equals(true),
    }
}

/// An address is compared by value, a network by containment (ISSUBSET, section 9.6).
fn address(value: &str, bits: u8, is_address: impl Fn(&str) -> bool) -> Option<String> {
    match value.split_once('/') {
        None => is_address(value).then(|| format!("= {}", literal(value))),
        Some((network, length)) => {
            let length_fits = length.parse::<u8>().is_ok_and(|length| length <= bits);
            (length_fits && is_address(network)).then(|| format!("ISSUBSET {}", literal(value)))
        }
    }
}

fn is_url(value: &str) -> bool {
    value
        .split_once(':')
        .is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
}

fn is_email(value: &str) -> bool {
    value
        .split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
}

fn is_alphanumeric(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_hex(value: &str, digits: usize) -> bool {
    value.len() == digits && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}
