//! Text analysis shared by index and query: refanging, canonical keys, tokens.
//!
//! Words become lowercase tokens. Anything with digits or punctuation is treated as an identifier, kept whole and also
//! split into its parts, so `T1059` finds `T1059.001` and `example.com` finds `mail.example.com`. `analyzer` adds
//! stemming and stop words.

pub(super) mod analyzer;
pub(super) mod lexicon;
pub(super) mod starts;
pub(super) mod vocabulary;

use std::borrow::Cow;
use std::net::IpAddr;

use crate::domain::network::{self, Network};

/// Longest token or key in bytes, a limit of the text index.
const MAX_TOKEN: usize = 200;
/// Number of parent domains of one word that are indexed, and the longest suffix looked at, in bytes: folding makes text
/// at most a quarter as long, as one letter of Latin stands for up to four bytes.
const MAX_PARENTS: usize = 32;
const MAX_SUFFIX: usize = 4 * (MAX_TOKEN + 1);
/// Longest word, and number after it, that are joined into one name: `APT 28`, `FIN 7`, `Storm 0539`.
const MAX_NUMBERED_WORD: usize = 8;
const MAX_NUMBER: usize = 6;
/// Hexadecimal digits of MD5, SHA-1 and the kinds of SHA-2. Other strings of digits, such as machine code, may begin alike.
const HASH_LENGTHS: [usize; 6] = [32, 40, 56, 64, 96, 128];
/// Digits of a hash that become a word. They are enough to tell hashes apart, and each further digit of a word that occurs
/// once makes the text index larger.
const HASH_DIGITS: usize = 16;

/// Undoes the usual defanging: `hxxp`, `[.]`, `(dot)`, `[at]`, `[:]`. Combining marks are also removed, so that
/// decomposed accented letters match plain ones.
pub(super) fn refang(text: &str) -> Cow<'_, str> {
    let bracketed = text.bytes().any(|b| matches!(b, b'[' | b'(' | b'{'));
    let scheme = text
        .as_bytes()
        .windows(4)
        .any(|w| w.eq_ignore_ascii_case(b"hxxp"));
    let marked = !text.is_ascii() && text.chars().any(is_mark);
    if !bracketed && !scheme && !marked {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some((plain, len)) = match_defanged(rest) {
            out.push_str(plain);
            rest = rest.get(len..).unwrap_or("");
        } else {
            if !is_mark(c) {
                out.push(c);
            }
            rest = rest.get(c.len_utf8()..).unwrap_or("");
        }
    }
    Cow::Owned(out)
}

fn is_mark(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

/// The plain form of a defanged sequence at the start of the text, and the length that it replaces.
fn match_defanged(text: &str) -> Option<(&'static str, usize)> {
    let close = match text.as_bytes().first()? {
        b'[' => ']',
        b'(' => ')',
        b'{' => '}',
        b'h' | b'H' => return text.get(..4)?.eq_ignore_ascii_case("hxxp").then_some(("http", 4)),
        _ => return None,
    };
    let end = text.char_indices().take(6).find(|&(_, c)| c == close)?.0;
    let inner = text.get(1..end)?.trim();
    let plain = match inner.to_ascii_lowercase().as_str() {
        "." | "dot" => ".",
        "@" | "at" => "@",
        ":" => ":",
        "://" => "://",
        "/" => "/",
        _ => return None,
    };
    Some((plain, end + 1))
}

/// The form in which names and identifiers are compared: lowercase letters and digits, so that `APT-28`, `APT 28` and
/// `apt28` agree. A separator between two digits is kept (as a dot), and a value such as a domain, address or URL is
/// unchanged: `1.23.4.5` is not `12.3.4.5`.
pub fn canonical_key(text: &str) -> String {
    let text = refang(text.trim());
    let bare = text.trim_matches(|c: char| !c.is_alphanumeric());
    // An IPv6 address may begin or end with colons.
    if let Some(address) = [&*text, bare].into_iter().find_map(network::address) {
        return address.to_string();
    }
    if bare.contains('/')
        && let Some(network) = [&*text, bare].into_iter().find_map(Network::read)
    {
        // The network of one address is the address.
        let written = network.to_string();
        return match written.split_once('/') {
            Some((address, _)) if network.is_address() => address.to_owned(),
            Some(_) | None => written,
        };
    }
    let text = bare;
    let lower = fold(text);
    let verbatim = !lower.contains(char::is_whitespace) && lower.contains(['.', '/', '\\', '@', ':']);
    let key = if verbatim {
        lower
    } else {
        letters_and_digits(&lower)
    };
    shorten(key)
}

fn letters_and_digits(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    for c in text.chars() {
        if !c.is_alphanumeric() {
            gap = true;
            continue;
        }
        if gap && c.is_ascii_digit() && out.ends_with(|last: char| last.is_ascii_digit()) {
            out.push('.');
        }
        gap = false;
        out.push(c);
    }
    out
}

/// Shortens a key to the maximum term length while keeping different keys distinct.
fn shorten(key: String) -> String {
    if key.len() <= MAX_TOKEN {
        return key;
    }
    let cut = (0..=MAX_TOKEN - 20)
        .rev()
        .find(|&at| key.is_char_boundary(at))
        .unwrap_or(0);
    format!("{}#{:016x}", key.get(..cut).unwrap_or(""), fnv1a(key.bytes()))
}

/// FNV-1a: stable across builds, as required for values kept on disk.
pub(super) fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Converts to lowercase and removes accents from Latin letters.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    self::analyzer::fold_accents(&text.to_lowercase())
}

/// The words of a text as written, without surrounding punctuation.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| {
        c.is_whitespace()
            || matches!(
                c,
                ',' | ';' | '"' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '|' | '`'
            )
    })
    .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
    .map(|word| {
        word.strip_suffix("'s")
            .or_else(|| word.strip_suffix("’s"))
            .unwrap_or(word)
    })
    .filter(|word| !word.is_empty())
}

/// The host of a URL, of an address with a port, or of an e-mail address.
pub(super) fn host(word: &str) -> Option<&str> {
    let rest = word.split_once("://").map_or(word, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let rest = rest.rsplit('@').next().unwrap_or(rest);
    // More than one colon means an IPv6 address.
    let host = match rest.split_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => rest,
    };
    (host.len() < word.len() && host.contains('.')).then_some(host)
}

/// Passes each token of a text, before stemming, to `emit`.
pub(super) fn split(text: &str, emit: &mut dyn FnMut(&str)) {
    let refanged = refang(text);
    let mut before: Option<&str> = None;
    for word in words(&refanged) {
        if word.contains(lexicon::is_unspaced) {
            put_english(lexicon::english_in(word), emit);
        }
        if word.chars().all(char::is_alphabetic) {
            let folded = fold(word);
            match lexicon::english_of(&folded) {
                Some(english) => put_english([english], emit),
                None => put(&folded, emit),
            }
            before = Some(word).filter(|word| word.len() <= MAX_NUMBERED_WORD);
            continue;
        }
        let number = word.len() <= MAX_NUMBER && word.bytes().all(|b| b.is_ascii_digit());
        if let (true, Some(before)) = (number, before) {
            put(&fold(&format!("{before}{word}")), emit);
        }
        before = None;
        compound(word, emit);
    }
}

/// English words, in the place of one of another language.
fn put_english(english: impl IntoIterator<Item = &'static str>, emit: &mut dyn FnMut(&str)) {
    let words = english.into_iter().flat_map(str::split_whitespace);
    words.for_each(|word| put(word, emit));
}

/// A word with digits or punctuation: the whole and its parts.
fn compound(word: &str, emit: &mut dyn FnMut(&str)) {
    put(&canonical_key(word), emit);
    if word.parse::<IpAddr>().is_ok() {
        return;
    }
    let has_inner = |c: char| matches!(c, '/' | '\\' | '@' | ':' | '=' | '?' | '&');
    if word.contains(has_inner) {
        for part in word.split(has_inner).filter(|part| !part.is_empty()) {
            let part = part.trim_matches(|c: char| !c.is_alphanumeric());
            if part.chars().all(char::is_alphabetic) {
                put(&fold(part), emit)
            } else {
                compound(part, emit)
            }
        }
        return;
    }
    parent_domains(word, emit);
    pieces(word, emit);
}

/// Parent domains, such as `example.com` of `mail.example.com`; of very many, those nearest to the top. Only so many
/// suffixes of a bounded length are looked at, whatever the word: work is linear in its length.
fn parent_domains(word: &str, emit: &mut dyn FnMut(&str)) {
    let mut dots = word.rmatch_indices('.').map(|(at, _)| at + 1);
    let Some(top) = dots.next().and_then(|at| word.get(at..)) else {
        return;
    };
    // The characters of a longer top domain are not looked at.
    if !(2..=MAX_SUFFIX).contains(&top.len()) || !top.chars().all(char::is_alphabetic) {
        return;
    }
    let is_short = |parent: &&str| parent.len() <= MAX_SUFFIX;
    let parents = dots.filter_map(|at| word.get(at..));
    let parents: Vec<&str> = parents.take_while(is_short).take(MAX_PARENTS).collect();
    for parent in parents.into_iter().rev() {
        put(&fold(parent), emit);
    }
}

/// The alphanumeric runs of a word, and the letters before a number (`apt` of `APT29`).
fn pieces(word: &str, emit: &mut dyn FnMut(&str)) {
    let single = word.chars().all(char::is_alphanumeric);
    for piece in word.split(|c: char| !c.is_alphanumeric()) {
        let digits = piece.bytes().all(|b| b.is_ascii_digit());
        if !single && piece.len() >= if digits { 3 } else { 2 } {
            put(&fold(piece), emit);
        }
        let letters = piece.trim_end_matches(|c: char| c.is_ascii_digit());
        if letters.len() >= 2 && letters.len() < piece.len() && letters.chars().all(char::is_alphabetic) {
            put(&fold(letters), emit);
        }
    }
}

fn put(token: &str, emit: &mut dyn FnMut(&str)) {
    let is_hash = HASH_LENGTHS.contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let token = if is_hash {
        token.get(..HASH_DIGITS).unwrap_or(token)
    } else {
        token
    };
    if !token.is_empty() && token.len() <= MAX_TOKEN + 1 {
        emit(token);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        split(text, &mut |token| out.push(token.to_owned()));
        out
    }

    #[test]
    fn spellings_of_one_name_agree() {
        for (one, other) in [
            ("Fancy Bear", "fancybear"),
            ("APT 28", "apt28"),
            ("APT-28", "APT28"),
            ("CVE-2024-3094", "cve 2024 3094"),
            ("T1059.001", " t1059.001."),
            ("evil[.]example(dot)com", "EVIL.example.com"),
            ("hxxps[://]evil[.]example/x", "https://evil.example/x"),
            ("2001:DB8::0001", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:0::", "2001:db8::"),
            ("192.0.2.77/24", "192.0.2.0/24"),
            ("192.0.2.77/32", "192.0.2.77"),
            ("2001:DB8::/32", "2001:db8:0::/32"),
            ("Café Müller", "cafe muller"),
        ] {
            assert_eq!(canonical_key(one), canonical_key(other), "{one} / {other}");
        }
    }

    #[test]
    fn different_values_stay_different() {
        for (one, other) in [
            ("1.23.4.5", "12.3.4.5"),
            ("ex-ample.com", "example.com"),
            ("CVE-2024-3094", "CVE-2024-30940"),
            ("CVE-2024-1111", "CVE-202-41111"),
        ] {
            assert_ne!(canonical_key(one), canonical_key(other), "{one} / {other}");
        }
        let long = "a".repeat(500);
        assert_ne!(
            canonical_key(&format!("{long}b")),
            canonical_key(&format!("{long}c"))
        );
    }

    #[test]
    fn identifiers_stay_whole_and_are_cut() {
        for (text, wanted) in [
            ("T1059.001", vec!["t1059.001", "t1059"]),
            ("CVE-2024-3094", vec!["cve2024.3094", "cve", "2024", "3094"]),
            ("APT29", vec!["apt29", "apt"]),
            ("APT 29", vec!["apt29"]),
            ("APT-29,", vec!["apt29"]),
            (
                "hxxp://mail.evil[.]example.com/a.php",
                vec!["mail.evil.example.com", "example.com", "a.php", "php"],
            ),
            ("at 10.1.2.3:443", vec!["10.1.2.3"]),
            ("spear-phishing", vec!["spearphishing", "spear", "phishing"]),
            ("C:\\Windows\\cmd.exe", vec!["windows", "cmd.exe", "cmd"]),
            ("the group's tools", vec!["group", "tools"]),
            (
                "MD5 D41D8CD98F00B204E9800998ECF8427E",
                vec!["md5", "d41d8cd98f00b204"],
            ),
        ] {
            let found = tokens(text);
            for token in wanted {
                assert!(
                    found.iter().any(|t| t == token),
                    "{text}: {token} not in {found:?}"
                );
            }
        }
    }

    #[test]
    fn the_host_of_a_url_is_found() {
        for (word, want) in [
            ("https://evil.example/a?b", Some("evil.example")),
            ("evil.example:8443", Some("evil.example")),
            ("http://10.1.2.3:80/x", Some("10.1.2.3")),
            ("user@mail.example.com", Some("mail.example.com")),
            ("evil.example", None),
            ("2001:db8::1", None),
            ("and/or", None),
        ] {
            assert_eq!(host(word), want, "{word}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,80}") {
            for token in tokens(&text) {
                prop_assert!(!token.is_empty() && token.len() <= MAX_TOKEN + 1);
            }
            let key = canonical_key(&text);
            prop_assert!(key.len() <= MAX_TOKEN + 1);
        }
    }
}
