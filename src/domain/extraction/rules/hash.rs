//! MD5, SHA-1, SHA-256 and SHA-512 in hexadecimal.
//!
//! Length alone is not enough: commits are as long as SHA-1, and keys, GUIDs and other fingerprints as long as MD5.
//! The words before decide.

use super::super::source::{Source, is_one_of};
use super::super::token::{DIGIT, HEX, Token};
use super::super::word_lists::{OTHER_WORDS, REVISION_WORDS};
use crate::domain::kinds::EntityKind;

/// Hashes of the empty string: MD5, SHA-1 and SHA-256.
const EMPTY: &[&str] = &[
    "d41d8cd98f00b204e9800998ecf8427e",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
];

/// Finds a hash that is the whole part, or all of it but the name of its algorithm.
pub(in crate::domain::extraction) fn find(source: &mut Source<'_>, part: &Token<'_>) -> bool {
    let part = &without_algorithm(part);
    if !part.is_only(HEX | DIGIT) {
        return false;
    }
    let (kind, rule) = match part.text.len() {
        32 => (EntityKind::Md5, "md5"),
        40 => (EntityKind::Sha1, "sha1"),
        64 => (EntityKind::Sha256, "sha256"),
        128 => (EntityKind::Sha512, "sha512"),
        _ => return false,
    };
    if !is_varied(part.text) || !is_one_case(part.text) || is_inside_code(source, part) {
        return false;
    }
    if is_something_else(source, part, kind) {
        return false;
    }
    let value = part.text.to_ascii_lowercase();
    let confidence = if EMPTY.contains(&value.as_str()) {
        0.3
    } else {
        0.95
    };
    source.push(kind, value, part.span(), rule, confidence);
    true
}

/// The digits behind the name of their algorithm: `md5-9e36…`.
fn without_algorithm<'t>(part: &Token<'t>) -> Token<'t> {
    const NAMES: &[&str] = &["md5", "sha1", "sha256", "sha512", "sha-1", "sha-256", "sha-512"];
    match part.text.rsplit_once(['-', '_']) {
        Some((name, digits)) if is_one_of(name, NAMES) => Token::new(digits, part.end() - digits.len()),
        _ => *part,
    }
}

fn is_something_else(source: &Source<'_>, part: &Token<'_>, kind: EntityKind) -> bool {
    let hash_named = source
        .previous_words(part.start)
        .any(|w| is_one_of(w, &["md5", "sha1", "sha256", "sha512", "hash", "sha"]));
    if hash_named {
        return false;
    }
    let mut words = source.previous_words(part.start);
    let revision = kind == EntityKind::Sha1 && words.any(|word| is_one_of(word, &REVISION_WORDS));
    let mut words = source.previous_words(part.start).take(2);
    revision || (kind != EntityKind::Sha512 && words.any(|word| is_one_of(word, &OTHER_WORDS)))
}

/// Random digits of this length include letters and at least six distinct ones.
fn is_varied(text: &str) -> bool {
    let seen = text
        .bytes()
        .fold(0u128, |seen, byte| seen | 1 << (byte.to_ascii_lowercase() & 0x7f));
    let sequence =
        text.starts_with("00010203") || text.starts_with("00112233") || text.starts_with("01234567");
    seen.count_ones() >= 6 && text.bytes().any(|byte| byte.is_ascii_alphabetic()) && !sequence
}

fn is_one_case(text: &str) -> bool {
    let upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
    let lower = text.bytes().any(|byte| byte.is_ascii_lowercase());
    !(upper && lower)
}

/// Whether it is part of a longer string: base64, an assignment in a URL, a repository path.
fn is_inside_code(source: &Source<'_>, part: &Token<'_>) -> bool {
    let before = source.before(part.start, 8);
    before.ends_with("hex!(\"")
        || before.ends_with("commit/")
        || before.ends_with("0x")
        || before.ends_with("tree/")
}
