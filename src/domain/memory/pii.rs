//! Personal data in a text: e-mail addresses, phone numbers, payment cards, bank accounts, US social security numbers.
//!
//! Threat reports are full of long numbers that are nobody's: hashes, addresses, identifiers, times. So a number counts
//! only where its own check digits, or the way it is written, say what it is. Time is linear in the text.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::domain::node::wire_enum;

wire_enum! {
    /// What kind of personal data it is.
    PiiKind, "email, phone, card, iban, ssn" {
        Email = "email",
        Phone = "phone",
        Card = "card",
        Iban = "iban",
        Ssn = "ssn",
    }
}

impl PiiKind {
    /// What stands in its place in a redacted text.
    fn blank(self) -> &'static str {
        match self {
            PiiKind::Email => "[EMAIL]",
            PiiKind::Phone => "[PHONE]",
            PiiKind::Card => "[CARD]",
            PiiKind::Iban => "[IBAN]",
            PiiKind::Ssn => "[SSN]",
        }
    }
}

/// One piece of personal data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PiiHit {
    pub kind: PiiKind,
    /// Bytes of the text.
    pub span: Range<usize>,
}

struct Rule {
    kind: PiiKind,
    pattern: &'static str,
    holds: fn(&str) -> bool,
}

/// The stronger a rule's own check, the earlier it has its say.
const RULES: [Rule; 5] = [
    Rule {
        kind: PiiKind::Email,
        pattern: r"[A-Za-z0-9._%+'-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}",
        holds: |_| true,
    },
    Rule {
        kind: PiiKind::Iban,
        pattern: r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?",
        holds: is_iban,
    },
    Rule {
        kind: PiiKind::Card,
        pattern: r"[0-9](?:[ -]?[0-9]){12,18}",
        holds: is_card,
    },
    Rule {
        kind: PiiKind::Ssn,
        pattern: r"[0-9]{3}-[0-9]{2}-[0-9]{4}",
        holds: is_ssn,
    },
    Rule {
        kind: PiiKind::Phone,
        pattern: r"\+[1-9][0-9]{0,2}(?:[ .-]?(?:\([0-9]{1,4}\)|[0-9]{1,4})){2,6}|\([2-9][0-9]{2}\) ?[0-9]{3}-[0-9]{4}|[2-9][0-9]{2}-[0-9]{3}-[0-9]{4}",
        holds: is_phone,
    },
];

static PATTERNS: LazyLock<Vec<Option<Regex>>> =
    LazyLock::new(|| RULES.iter().map(|rule| Regex::new(rule.pattern).ok()).collect());

/// The personal data in a text, in its order, without overlaps.
pub fn find(text: &str) -> Vec<PiiHit> {
    let mut hits: Vec<PiiHit> = Vec::new();
    for (rule, pattern) in RULES.iter().zip(PATTERNS.iter()) {
        for found in pattern.iter().flat_map(|pattern| pattern.find_iter(text)) {
            let span = found.range();
            let free = !hits
                .iter()
                .any(|hit| hit.span.start < span.end && span.start < hit.span.end);
            if free && stands_alone(text, &span) && (rule.holds)(found.as_str()) {
                hits.push(PiiHit {
                    kind: rule.kind,
                    span,
                });
            }
        }
    }
    hits.sort_by_key(|hit| hit.span.start);
    hits
}

/// The text with its personal data blanked out, and what was there.
pub fn redact(text: &str) -> (String, Vec<PiiHit>) {
    let hits = find(text);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for hit in &hits {
        out.push_str(text.get(from..hit.span.start).unwrap_or_default());
        out.push_str(hit.kind.blank());
        from = hit.span.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    (out, hits)
}

/// Not a part of a longer word, number, address or identifier.
fn stands_alone(text: &str, span: &Range<usize>) -> bool {
    let before = text
        .get(..span.start)
        .and_then(|before| before.chars().next_back());
    let mut after = text.get(span.end..).unwrap_or_default().chars();
    let joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | ':' | '@' | '=');
    let (next, then) = (after.next(), after.next());
    // A full stop ends a sentence unless something follows it.
    let goes_on = next.is_some_and(|c| joined(c) || (c == '.' && then.is_some_and(char::is_alphanumeric)));
    !before.is_some_and(|c| joined(c) || c == '.' || c == '+') && !goes_on
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

/// ISO/IEC 7812: a known issuer, a fitting length and the Luhn check digit.
fn is_card(text: &str) -> bool {
    let digits = digits(text);
    let first = |count: usize| {
        digits
            .iter()
            .take(count)
            .fold(0, |number, digit| number * 10 + digit)
    };
    let (one, two, four) = (first(1), first(2), first(4));
    let issued = match digits.len() {
        15 => two == 34 || two == 37,
        13 | 19 => one == 4,
        14 => two == 36 || two == 38 || (300..=305).contains(&first(3)),
        16 => {
            one == 4
                || (51..=55).contains(&two)
                || (2221..=2720).contains(&four)
                || four == 6011
                || two == 65
                || two == 35
        }
        _ => false,
    };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match place % 2 {
            0 => *digit,
            _ if *digit > 4 => digit * 2 - 9,
            _ => digit * 2,
        })
        .sum();
    issued && sum.is_multiple_of(10)
}

/// ISO 13616: the check digits modulo 97.
fn is_iban(text: &str) -> bool {
    let plain: Vec<char> = text.chars().filter(|c| *c != ' ').collect();
    if !(15..=34).contains(&plain.len()) {
        return false;
    }
    let turned = plain.iter().skip(4).chain(plain.iter().take(4));
    let rest = turned.fold(0u32, |rest, c| match c.to_digit(36) {
        Some(value) if value > 9 => (rest * 100 + value) % 97,
        Some(value) => (rest * 10 + value) % 97,
        None => rest,
    });
    rest == 1
}

/// The ranges that the US Social Security Administration gives out.
fn is_ssn(text: &str) -> bool {
    let mut parts = text.split('-').map(|part| part.parse::<u32>().unwrap_or(0));
    let (area, group, serial) = (parts.next(), parts.next(), parts.next());
    area.is_some_and(|area| area != 0 && area != 666 && area < 900) && group != Some(0) && serial != Some(0)
}

/// ITU-T E.164: 8 to 15 digits.
fn is_phone(text: &str) -> bool {
    (8..=15).contains(&digits(text).len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<&'static str> {
        find(text).iter().map(|hit| hit.kind.as_str()).collect()
    }

    #[test]
    fn personal_data_is_found() {
        for (text, kind) in [
            ("write to jane.doe@example.org today", "email"),
            ("Call +44 20 7946 0958.", "phone"),
            ("call (212) 555-0187 or leave it", "phone"),
            ("card 4111 1111 1111 1111,", "card"),
            ("Amex 378282246310005", "card"),
            ("IBAN DE89 3704 0044 0532 0130 00", "iban"),
            ("GB82WEST12345698765432", "iban"),
            ("SSN 123-45-6789.", "ssn"),
        ] {
            assert_eq!(kinds(text), [kind], "{text}");
        }
    }

    #[test]
    fn the_numbers_of_threat_reports_are_nobodys() {
        for text in [
            "SHA256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "md5 d41d8cd98f00b204e9800998ecf8427e, AS64500, port 8080-8090",
            "CVE-2024-3094 on 192.168.100.200 at 2024-03-29T12:00:00Z, epoch 1711713600000",
            "uuid 550e8400-e29b-41d4-a716-446655440000",
            "card number 4111 1111 1111 1112 has a wrong check digit",
            "666-45-6789 and 123-00-6789",
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "version 10.0.19041.1234 build 1234567890123456",
            "T1566.001, G0007, KB5034441",
            "2001:db8:85a3::8a2e:370:7334",
        ] {
            assert_eq!(kinds(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn redaction_blanks_out_what_was_found_and_nothing_else() {
        let (text, hits) = redact("Jane (jane@example.org, +44 20 7946 0958) of 10.0.0.1");
        assert_eq!(text, "Jane ([EMAIL], [PHONE]) of 10.0.0.1");
        assert_eq!(hits.len(), 2);
        assert_eq!(redact("nothing here").0, "nothing here");
    }
}
