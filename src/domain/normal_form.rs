//! The normal form of a value: the one spelling by which every way in compares values of a kind.
//!
//! Texts, STIX patterns, MISP attributes and items all state values; two spellings of one thing have one normal form, and
//! the normal form of a normal form is itself. Hosts are written as the DNS has them, so an internationalised name and its
//! punycode are one.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use super::extraction::{cve_id, refang};
use super::kinds::{Case, EntityKind};
use super::network::{self, Network};

/// Registry hives by name and abbreviation.
pub const HIVES: [(&str, &str); 12] = [
    ("HKEY_LOCAL_MACHINE", "HKEY_LOCAL_MACHINE"),
    ("HKEY_CURRENT_USER", "HKEY_CURRENT_USER"),
    ("HKEY_CLASSES_ROOT", "HKEY_CLASSES_ROOT"),
    ("HKEY_CURRENT_CONFIG", "HKEY_CURRENT_CONFIG"),
    ("HKEY_USERS", "HKEY_USERS"),
    ("HKLM", "HKEY_LOCAL_MACHINE"),
    ("HKCU", "HKEY_CURRENT_USER"),
    ("HKCR", "HKEY_CLASSES_ROOT"),
    ("HKCC", "HKEY_CURRENT_CONFIG"),
    ("HKU", "HKEY_USERS"),
    ("REGISTRY\\MACHINE", "HKEY_LOCAL_MACHINE"),
    ("REGISTRY\\USER", "HKEY_USERS"),
];

/// How often a value may be escaped.
const ROUNDS: usize = 4;

/// The normal form of a value of this kind, which may be defanged. A value that is none of its kind keeps its words.
pub fn normal_form(kind: EntityKind, value: &str) -> String {
    let mut form = form_of_plain(kind, &refang(value.trim()));
    // What is escaped twice, or only looks escaped in its new spelling.
    for _ in 0..ROUNDS {
        let next = form_of_plain(kind, &refang(&form));
        if next == form {
            break;
        }
        form = next;
    }
    form
}

/// An internationalised host or mail address as its reader spells it, whose normal form is the punycode; `None` for any
/// other value.
pub fn own_spelling(kind: EntityKind, value: &str) -> Option<String> {
    if value.is_ascii() || !matches!(kind, EntityKind::Domain | EntityKind::Email) {
        return None;
    }
    let spelled = refang(value.trim()).to_lowercase();
    let spelled = spelled.trim_end_matches('.').to_owned();
    (!spelled.is_ascii() && normal_form(kind, &spelled).is_ascii()).then_some(spelled)
}

/// The form of a value that is not defanged.
fn form_of_plain(kind: EntityKind, plain: &str) -> String {
    let form = kind_form(kind, plain.trim());
    match form.trim() {
        bare if bare.len() < form.len() => bare.to_owned(),
        _ => form,
    }
}

fn kind_form(kind: EntityKind, plain: &str) -> String {
    let form = match kind {
        EntityKind::Cve => cve_id(plain),
        EntityKind::Cwe => numbered("CWE", plain),
        EntityKind::Capec => numbered("CAPEC", plain),
        EntityKind::AttckTechnique
        | EntityKind::AttckTactic
        | EntityKind::AttckGroup
        | EntityKind::AttckSoftware
        | EntityKind::AttckMitigation
        | EntityKind::AttckCampaign => Some(attack_id(plain)),
        EntityKind::Ipv4 | EntityKind::Ipv6 => address(plain),
        EntityKind::Cidr => network(plain),
        EntityKind::Domain => Some(host(plain)),
        EntityKind::Email => mail_address(plain),
        EntityKind::Url => Some(web_address(plain)),
        EntityKind::Md5 => digest(plain, 32),
        EntityKind::Sha1 => digest(plain, 40),
        EntityKind::Sha256 => digest(plain, 64),
        EntityKind::Sha512 => digest(plain, 128),
        EntityKind::RegistryKey => Some(registry_key(plain)),
        EntityKind::FilePath => Some(file_path(plain)),
        EntityKind::Asn => system_number(plain),
        EntityKind::Bitcoin => Some(bitcoin(plain)),
        EntityKind::FileName
        | EntityKind::YaraRule
        | EntityKind::SigmaRule
        | EntityKind::Vulnerability
        | EntityKind::Actor
        | EntityKind::Tool
        | EntityKind::Malware => None,
    };
    form.unwrap_or_else(|| match kind.row().case {
        Case::Lower | Case::Ipv6 => plain.to_lowercase(),
        Case::Upper => plain.to_uppercase(),
        Case::Significant | Case::AsWritten | Case::AsNumber => plain.to_owned(),
    })
}

/// A host name as the DNS has it: lower case, punycode, without a port and the dot of the root.
fn host(text: &str) -> String {
    let (name, _) = split_port(text);
    let lower = name.to_lowercase();
    let name = lower.trim_end_matches('.');
    if name.is_ascii() || name.len() > 253 {
        return name.to_owned();
    }
    match url::Host::parse(name) {
        Ok(url::Host::Domain(ascii)) => ascii.trim_end_matches('.').to_owned(),
        _ => name.to_owned(),
    }
}

fn mail_address(text: &str) -> Option<String> {
    let text = strip_prefix_of_any_case(text, "mailto:").unwrap_or(text);
    let (local, domain) = text.rsplit_once('@')?;
    Some(format!("{}@{}", local.to_lowercase(), host(domain)))
}

/// Scheme and host in lower case, the host as in [`host`]; the rest as written.
fn web_address(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            (Some(scheme), rest)
        }
        // A word that is no address.
        _ if !text.contains('/') => return text.to_owned(),
        _ => (None, text),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, name) = match authority.rsplit_once('@') {
        Some((user, name)) => (format!("{user}@"), name),
        None => (String::new(), authority),
    };
    let (name, port) = split_port(name);
    let name = match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => match inner.parse::<Ipv6Addr>() {
            Ok(ip) => format!("[{ip}]"),
            Err(_) => name.to_lowercase(),
        },
        None => host(name),
    };
    // RFC 3986, 6.2.3: the default port of a scheme says nothing.
    let lower = scheme.map(str::to_ascii_lowercase);
    let usual = |port: &&str| {
        matches!(
            (lower.as_deref(), *port),
            (Some("http"), "80") | (Some("https"), "443")
        )
    };
    let port = port.filter(|port| !usual(port));
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let scheme = scheme
        .map(|scheme| format!("{}://", scheme.to_ascii_lowercase()))
        .unwrap_or_default();
    format!("{scheme}{user}{name}{port}{path}")
}

/// A host and its port.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    let split = authority.rsplit_once(':');
    split
        .filter(|(name, port)| {
            let whole = !name.contains(':') || (name.starts_with('[') && name.ends_with(']'));
            whole && (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit())
        })
        .map_or((authority, None), |(name, port)| (name, Some(port)))
}

/// An address without brackets, port and zone.
fn address(text: &str) -> Option<String> {
    let (name, _) = split_port(text);
    let bare = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(name);
    let address = network::address(bare.split('%').next().unwrap_or(bare));
    address.map(|address| address.to_string())
}

/// A network by its first address.
fn network(text: &str) -> Option<String> {
    text.contains('/')
        .then(|| Network::read(text))?
        .map(|network| network.to_string())
}

/// A digest without a prefix `0x` and without marks between its bytes.
fn digest(text: &str, length: usize) -> Option<String> {
    let bare = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .unwrap_or(text);
    let digits: String = bare
        .chars()
        .filter(|c| !(c.is_whitespace() || matches!(c, ':' | '-')))
        .collect();
    (digits.len() == length && digits.bytes().all(|b| b.is_ascii_hexdigit()))
        .then(|| digits.to_ascii_lowercase())
}

/// `CWE-79` in `CWE 079`, `cwe_79`.
fn numbered(prefix: &str, text: &str) -> Option<String> {
    let rest = text
        .get(..prefix.len())
        .filter(|head| head.eq_ignore_ascii_case(prefix))
        .and(text.get(prefix.len()..))?;
    let digits = rest.trim_start_matches([' ', '-', '_', ':', '–', '.']);
    let number: u32 = Some(digits)
        .filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?
        .parse()
        .ok()?;
    Some(format!("{prefix}-{number}"))
}

/// `T1218.011` in the tag `attack.t1218.011`, and in `T1218/011`.
fn attack_id(text: &str) -> String {
    let upper = text.to_uppercase();
    let id = upper
        .strip_prefix("ATTACK.")
        .filter(|id| !id.is_empty())
        .unwrap_or(&upper);
    match id.split_once('/') {
        Some((technique, sub)) if sub.len() == 3 => format!("{technique}.{sub}"),
        _ => id.to_owned(),
    }
}

/// The hive written out, as STIX 2.1 section 6.17 requires, and single backslashes.
fn registry_key(text: &str) -> String {
    let text = collapse_backslashes(text);
    let bare = text.trim_start_matches('\\');
    let bare = ["Computer\\", "Registry::"]
        .iter()
        .find_map(|lead| strip_prefix_of_any_case(bare, lead))
        .unwrap_or(bare);
    let slashed = bare.split(['/', '\\']).next().unwrap_or_default().len();
    let full = HIVES.iter().find_map(|(short, full)| {
        let rest = strip_prefix_of_any_case(bare, short)
            .or_else(|| strip_prefix_of_any_case(bare.strip_prefix('<')?, short)?.strip_prefix('>'))?;
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        let rest = match rest.strip_prefix('/') {
            Some(rest) if slashed == short.len() => Cow::Owned(format!("\\{}", rest.replace('/', "\\"))),
            _ => Cow::Borrowed(rest),
        };
        (rest.is_empty() || rest.starts_with('\\')).then(|| format!("{full}{rest}"))
    });
    let key = full.as_deref().unwrap_or(&text);
    key.trim_end_matches(|c: char| c == '\\' || c.is_whitespace())
        .to_owned()
}

fn strip_prefix_of_any_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| text.get(prefix.len()..))
        .flatten()
}

/// Double backslashes come from code and JSON. A share keeps two leading ones, a path from the root one.
fn file_path(text: &str) -> String {
    let body = text.trim_start_matches('\\');
    let lead = match text.len() - body.len() {
        0 => "",
        1 => "\\",
        _ => "\\\\",
    };
    format!("{lead}{}", collapse_backslashes(body))
}

fn collapse_backslashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\\' || !out.ends_with('\\') {
            out.push(c);
        }
    }
    out
}

/// `AS` and the number.
fn system_number(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let digits = ["asn", "as", ""]
        .iter()
        .find_map(|lead| lower.strip_prefix(lead))?;
    let digits = digits.trim_start_matches([' ', '-', ':', '#', '\u{a0}']);
    digits.parse::<u32>().ok().map(|number| format!("AS{number}"))
}

/// Bech32 addresses are case-insensitive; older formats are not.
fn bitcoin(text: &str) -> String {
    match text.get(..3) {
        Some(head) if head.eq_ignore_ascii_case("bc1") => text.to_ascii_lowercase(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
