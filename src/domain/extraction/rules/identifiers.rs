//! Assigned identifiers other than CVE: CWE, CAPEC, ATT&CK, autonomous systems, numbered actors.
//!
//! ATT&CK ids must be in the ranges that MITRE has assigned or reserved, which excludes product numbers such as
//! T5000. `TA` with four digits starting with 0 is a tactic, never an actor. Vendor designators (`UNC2452`, `TA505`,
//! `Storm-0558`) are actors even if no list has them.

use super::super::source::{Source, is_one_of};
use super::super::token::{DASH, DIGIT, DOT, Token};
use crate::domain::kinds::EntityKind;

/// Numbers that look like an autonomous system but are not: an IBM computer, standards, protocols.
const NOT_AN_ASN: &[u32] = &[400, 9100, 9120, 9001];

/// What tags of Sigma rules begin with: `attack.t1218.011`.
const TAG: &str = "attack.";

/// Finds an identifier that starts with letters.
pub(in crate::domain::extraction) fn find(source: &mut Source<'_>, part: &Token<'_>) -> bool {
    if let Some(tag) = part
        .text
        .get(..TAG.len())
        .filter(|head| head.eq_ignore_ascii_case(TAG))
    {
        let name = part.text.get(tag.len()..).unwrap_or_default();
        let upper = name.to_ascii_uppercase();
        let named = Token::new(&upper, part.start + tag.len());
        return prefixed(source, &named);
    }
    prefixed(source, part)
}

fn prefixed(source: &mut Source<'_>, part: &Token<'_>) -> bool {
    let letters = part.text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (Some(prefix), Some(rest)) = (part.text.get(..letters), part.text.get(letters..)) else {
        return false;
    };
    let dashed = rest.strip_prefix('-');
    match (prefix.to_ascii_uppercase().as_str(), dashed) {
        ("CWE", Some(number)) => weakness(source, part, number, EntityKind::Cwe, 1..=4),
        ("CAPEC", Some(number)) => weakness(source, part, number, EntityKind::Capec, 1..=3),
        ("T", None) => technique(source, part, prefix, rest),
        ("TA", None) if rest.len() == 4 && rest.starts_with('0') => {
            attack(source, part, prefix, rest, EntityKind::AttckTactic, 0..=199)
        }
        ("G", None) => attack(source, part, prefix, rest, EntityKind::AttckGroup, 1..=1199),
        ("S", None) => attack(source, part, prefix, rest, EntityKind::AttckSoftware, 1..=1399),
        ("M", None) => attack(
            source,
            part,
            prefix,
            rest,
            EntityKind::AttckMitigation,
            800..=1099,
        ),
        ("C", None) => attack(source, part, prefix, rest, EntityKind::AttckCampaign, 1..=99),
        ("AS" | "ASN", _) => asn(source, part, prefix, dashed.unwrap_or(rest)),
        _ => designator(source, part, prefix, rest),
    }
}

fn weakness(
    source: &mut Source<'_>,
    part: &Token<'_>,
    number: &str,
    kind: EntityKind,
    len: std::ops::RangeInclusive<usize>,
) -> bool {
    let Some(number) = digits(number, len).filter(|number| *number > 0) else {
        return false;
    };
    let (value, rule) = if kind == EntityKind::Cwe {
        (format!("CWE-{number}"), "cwe-id")
    } else {
        (format!("CAPEC-{number}"), "capec-id")
    };
    source.push(kind, value, part.span(), rule, 1.0);
    true
}

/// Enterprise and mobile techniques start at T1001; ICS techniques are T0800 to T0899.
fn technique(source: &mut Source<'_>, part: &Token<'_>, prefix: &str, rest: &str) -> bool {
    let (number, sub) = rest
        .split_once('.')
        .map_or((rest, None), |(n, sub)| (n, Some(sub)));
    let known = digits(number, 4..=4).is_some_and(|n| (800..=899).contains(&n) || (1001..=1799).contains(&n));
    if !known || sub.is_some_and(|sub| digits(sub, 3..=3).is_none()) {
        return false;
    }
    let slashed = sub.is_none().then(|| slashed_sub(source, part.end())).flatten();
    let small = prefix == "t";
    let introduced = source
        .previous_words(part.start)
        .any(|word| is_one_of(word, &["technique", "techniques", "ttp", "ttps", "id"]));
    if small && sub.is_none() && !introduced {
        return false;
    }
    let confidence = if small { 0.8 } else { 0.97 };
    let mut value = part.text.to_ascii_uppercase();
    let mut span = part.span();
    if let Some(sub) = slashed {
        value.push_str(&format!(".{sub}"));
        span.end += 1 + sub.len();
    }
    source.push(
        EntityKind::AttckTechnique,
        value,
        span,
        "attack-technique-id",
        confidence,
    );
    true
}

/// The sub-technique behind a slash, as in the addresses of ATT&CK: `T1566/001`.
fn slashed_sub<'t>(source: &Source<'t>, at: usize) -> Option<&'t str> {
    let rest = source.after(at, 5).strip_prefix('/')?;
    let sub = rest.get(..3)?;
    let ends = !rest.get(3..)?.starts_with(|c: char| c.is_ascii_alphanumeric());
    (digits(sub, 3..=3).is_some() && ends).then_some(sub)
}

fn attack(
    source: &mut Source<'_>,
    part: &Token<'_>,
    prefix: &str,
    rest: &str,
    kind: EntityKind,
    assigned: std::ops::RangeInclusive<u32>,
) -> bool {
    let upper = prefix.bytes().all(|byte| byte.is_ascii_uppercase());
    let tactic = kind == EntityKind::AttckTactic;
    if !(upper || tactic) || !digits(rest, 4..=4).is_some_and(|n| assigned.contains(&n)) {
        return false;
    }
    let (rule, confidence) = match prefix {
        "G" => ("attack-group-id", 0.9),
        "S" => ("attack-software-id", 0.9),
        "M" => ("attack-mitigation-id", 0.9),
        "C" => ("attack-campaign-id", 0.9),
        _ => ("attack-tactic-id", 0.97),
    };
    // A round number after a manufacturer's name is a product (Garmin G1000).
    let product = rest.ends_with("000")
        && !is_one_of(
            source.previous_word(part.start),
            &["group", "software", "ATT&CK", "CK"],
        );
    if product {
        return false;
    }
    source.push(
        kind,
        part.text.to_ascii_uppercase(),
        part.span(),
        rule,
        confidence,
    );
    true
}

/// RFC 5396 asplain notation with the usual prefix.
fn asn(source: &mut Source<'_>, part: &Token<'_>, prefix: &str, number: &str) -> bool {
    let long = prefix == "ASN";
    let Some(number) = digits(number, 1..=10).filter(|n| *n > 0) else {
        return false;
    };
    let plausible = long || (prefix == "AS" && number >= 100 && !NOT_AN_ASN.contains(&number));
    if !plausible {
        return false;
    }
    source.push(EntityKind::Asn, format!("AS{number}"), part.span(), "asn", 0.9);
    true
}

/// Numbers identified by the preceding word: `ASN 12345`, `APT 41`.
pub(in crate::domain::extraction) fn numbers(source: &mut Source<'_>, part: &Token<'_>) -> bool {
    if !part.is_only(DIGIT | DASH) || part.has(DOT) || part.text.len() > 12 {
        return false;
    }
    let window = source.before(part.start, 24);
    let tail = window.trim_end_matches([' ', ':', '\u{a0}', '#']);
    let gap = window.len() - tail.len();
    let word = tail
        .rsplit(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    if gap == 0 || gap > 3 {
        return false;
    }
    let span = part.start - gap - word.len()..part.end();
    match word {
        "ASN" | "AS" => {
            let Some(number) = digits(part.text, 1..=10) else {
                return false;
            };
            if number == 0 || (word == "AS" && number < 1000) {
                return false;
            }
            source.push(EntityKind::Asn, format!("AS{number}"), span, "asn", 0.85);
        }
        "APT" | "FIN" | "UNC" => {
            let len = if word == "UNC" { 3..=4 } else { 1..=2 };
            let Some(number) = digits(part.text, len) else {
                return false;
            };
            source.push(
                EntityKind::Actor,
                format!("{word}{number}"),
                span,
                "actor-designator",
                0.85,
            );
        }
        _ => return false,
    }
    true
}

/// Numbered vendor names of activity clusters.
fn designator(source: &mut Source<'_>, part: &Token<'_>, prefix: &str, rest: &str) -> bool {
    let dashed = rest.starts_with('-');
    let number = rest.trim_start_matches('-');
    let (len, dash, join) = match prefix {
        "APT" => (1..=3, true, ""),
        "FIN" => (1..=2, true, ""),
        "UNC" => (3..=5, true, ""),
        "TA" => (3..=4, true, ""),
        "ITG" => (2..=2, true, ""),
        "Storm" | "DEV" => (4..=4, true, "-"),
        "UAC" => (4..=4, true, "-"),
        "TAG" => (2..=3, true, "-"),
        "UAT" => (4..=5, true, "-"),
        _ => return false,
    };
    if number.starts_with('0') && matches!(prefix, "TA" | "APT" | "FIN") {
        return false;
    }
    if digits(number, len).is_none() || (dashed && !dash) || (!dashed && join == "-") {
        return false;
    }
    let value = format!("{prefix}{join}{number}");
    source.push(EntityKind::Actor, value, part.span(), "actor-designator", 0.85);
    true
}

/// The number, if the text consists only of digits and has the required length.
fn digits(text: &str, len: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let fits = len.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}
