//! Dotted names: domain, file, or neither.
//!
//! A domain is a suffix from the public-suffix list (compiled in) with a label before it. Many file extensions are
//! also top-level domains (`.zip`, `.sh`, `.py`, `.rs`, `.md`): the surrounding words decide, and without a clue it
//! is a file. Code (`obj.name`, `System.IO`), sentences joined without a space (`done.It`) and products (`ASP.NET`)
//! are neither. A defanged name is always a domain.

use super::super::script::is_mark;
use super::super::source::Source;
use super::super::token::{AT, Token};
use super::files;
use crate::domain::kinds::EntityKind;

/// Top-level domains that are source-file extensions after a directory (`src/demo.cc`).
const SOURCE_TLDS: &[&str] = &["cc", "in", "am", "ml", "la", "st", "ps", "fun", "rs", "is", "pl"];
/// Typical names of objects in code.
const RECEIVERS: &[&str] = &[
    "self",
    "this",
    "obj",
    "object",
    "os",
    "sys",
    "window",
    "document",
    "event",
    "ctx",
    "config",
    "request",
    "req",
    "res",
    "response",
    "user",
    "process",
    "console",
    "string",
    "math",
    "json",
    "date",
    "socket",
    "args",
    "params",
    "std",
    "java",
    "system",
    "array",
    "element",
    "node",
    "file",
    "item",
    "data",
    "client",
    "super",
    "module",
    "exports",
    "subprocess",
    "re",
    "logging",
    "requests",
    "asyncio",
    "threading",
    "urllib",
    "shutil",
    "base64",
    "hashlib",
    "ctypes",
    "datetime",
    "axios",
    "jquery",
    "crypto",
    "kernel32",
    "ntdll",
    "wscript",
    "activexobject",
    "shell",
    "foo",
    "bar",
    "e",
    "i",
    "s",
    "f",
    "x",
];
/// Product names and abbreviations.
const NOT_A_HOST: &[&str] = &[
    "asp.net",
    "vb.net",
    "ado.net",
    "ml.net",
    "et.al",
    "command.com",
    "socket.io",
    "paint.net",
];
/// Names for documentation (RFC 2606), or outside the DNS.
const SPECIAL_TLDS: &[&str] = &["example", "bit", "bazar", "i2p"];

/// Classifies a dotted part; returns whether it is a host.
pub(in crate::domain::extraction) fn find_dotted(source: &mut Source<'_>, part: &Token<'_>) -> bool {
    let defanged = source.is_defanged(&part.span());
    let lower = part.text.to_lowercase();
    let extension = lower.rsplit('.').next().unwrap_or_default();
    let domain = suffix_confidence(&lower, defanged);
    if !defanged && let Some(confidence) = files::confidence(source, part, extension, domain.is_some()) {
        files::push(source, part, confidence);
        return false;
    }
    let Some(confidence) = domain else { return false };
    let glued_word = !defanged && (is_glued(part.text) || is_code(source, part, &lower));
    if glued_word {
        return false;
    }
    source.push(EntityKind::Domain, lower, part.span(), "domain", confidence);
    true
}

/// Whether a name can be registered under a public suffix.
pub(in crate::domain::extraction) fn is_registrable(name: &str) -> bool {
    suffix_confidence(&name.to_lowercase(), true).is_some()
}

fn suffix_confidence(lower: &str, defanged: bool) -> Option<f32> {
    if lower.len() > 253 || !lower.split('.').all(is_label) {
        return None;
    }
    let (rest, tld) = lower.rsplit_once('.')?;
    if SPECIAL_TLDS.contains(&tld) || (defanged && matches!(tld, "test" | "invalid" | "local")) {
        return Some(0.6);
    }
    let suffix = psl::suffix(lower.as_bytes()).filter(psl::Suffix::is_known)?;
    let private = suffix.typ() == Some(psl::Type::Private);
    let whole = suffix.as_bytes().len() == lower.len();
    let registrable = rest.rsplit('.').next().is_some_and(|label| !label.contains('_'));
    // Dynamic-DNS and hosting suffixes (duckdns.org) are reported in their own right.
    if whole {
        return (private && lower.contains('.')).then_some(0.7);
    }
    // Long top-level domains and `.name` are rare in attacks but common in code.
    let rare = tld == "name" || (tld.len() > 6 && !tld.starts_with("xn--"));
    registrable.then_some(if rare { 0.6 } else { 0.9 })
}

fn is_label(label: &str) -> bool {
    let bytes = label.len();
    (1..=63).contains(&bytes)
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_') || is_mark(c))
}

/// Whether two sentences are joined without a space: `attack.It`.
fn is_glued(text: &str) -> bool {
    let Some((_, tld)) = text.rsplit_once('.') else {
        return false;
    };
    let capital = tld.starts_with(|c: char| c.is_uppercase());
    let shouted = !text.chars().any(char::is_lowercase);
    capital && !shouted
}

fn is_code(source: &Source<'_>, part: &Token<'_>, lower: &str) -> bool {
    let (first, rest) = lower.split_once('.').unwrap_or((lower, ""));
    let labels = lower.split('.').count();
    let tld = lower.rsplit('.').next().unwrap_or_default();
    let called = source.after(part.end(), 1).starts_with('(')
        || source.before(part.start, 1) == "$"
        || source.before(part.start, 2) == "->";
    let after = source.after(part.end(), 3);
    let compared = after.starts_with("::") || after.starts_with(" ==") || after.starts_with(" !=");
    let in_directory = SOURCE_TLDS.contains(&tld) && source.before(part.start, 1) == "/";
    let common = matches!(
        tld,
        "com" | "net" | "org" | "info" | "biz" | "ru" | "cn" | "xyz" | "top"
    );
    let receiver = RECEIVERS.contains(&first) && labels == 2 && !common;
    // `com.example.app` is a package, unless it also ends like a site.
    let package = matches!(first, "com" | "org" | "net" | "io" | "edu" | "gov") && labels > 2 && !common;
    // In `Foo.Bar.name`, members are capitalised; hosts are not.
    let member = !common
        && labels > 2
        && rest.len() > 3
        && part
            .text
            .split('.')
            .filter(|label| label.starts_with(|c: char| c.is_ascii_uppercase()))
            .count()
            > 1
        && part.text.chars().any(char::is_lowercase);
    NOT_A_HOST.contains(&lower)
        || (called && !common)
        || compared
        || in_directory
        || receiver
        || package
        || member
        || part.has(AT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_below_a_public_suffix_are_registrable() {
        for name in [
            "evil.com",
            "a.b.co.uk",
            "xn--bcher-kva.example",
            "bücher.de",
            "x.duckdns.org",
            "duckdns.org",
        ] {
            assert!(is_registrable(name), "{name}");
        }
        for name in [
            "co.uk",
            "com",
            "setup.exe",
            "a..com",
            "-a.com",
            "a_b.com",
            "1.2.3.4",
            "",
        ] {
            assert!(!is_registrable(name), "{name}");
        }
    }
}
