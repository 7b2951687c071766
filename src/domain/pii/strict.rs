//! A stricter search for a box that anyone may type into: there, overlooked personal data does more harm than a question
//! that is refused.
//!
//! The text is made plain first: escapes, invisible characters, and the many forms of digits, dashes and blanks. Lists of
//! addresses, ports and identifiers are what such a box is for, so a number still needs the form of what it may be.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use super::contact::{is_country_code, is_nanp};
use super::numbers::{is_assigned_ssn, is_payment_card, luhn};
use super::{PiiKind, find};

/// Digits of an international number after `00` (E.164 allows 15, but numbers so long are ids).
const DIALLED: RangeInclusive<usize> = 8..=13;
/// Digits of an international number after `+`.
const INTERNATIONAL: RangeInclusive<usize> = 8..=15;
/// Zeros of the decimal digits (general category Nd) of scripts in use; the other nine follow each.
const ZEROS: [char; 22] = [
    '٠', '۰', '߀', '०', '০', '੦', '૦', '୦', '௦', '౦', '೦', '൦', '෦', '๐', '໐', '༠', '၀', '႐', '០', '᠐', '᥆',
    '᧐',
];

static PATTERNS: LazyLock<Option<PiiPatterns>> = LazyLock::new(|| PiiPatterns::new().ok());

/// How personal data is written, in a plain text.
struct PiiPatterns {
    escape: Regex,
    email: Regex,
    ssn: Regex,
    labelled_ssn: Regex,
    international: Regex,
    american: Regex,
    card: Regex,
    quad: Regex,
    /// Hardware addresses.
    mac: Regex,
    /// Hashes and UUIDs.
    hash: Regex,
}

impl PiiPatterns {
    fn new() -> Result<Self, regex::Error> {
        let of = |pattern: &str| Regex::new(pattern);
        Ok(Self {
            escape: of("%([0-9A-Fa-f]{2})|&#([0-9]{1,5});|&#[xX]([0-9A-Fa-f]{1,4});")?,
            email: of(r#"[^\s@<>()\[\],;:"/]+(?:@ ?| @ )(?:[\p{L}0-9-]+\.)+[\p{L}0-9-]+"#)?,
            ssn: of(
                r"(?:^|[^0-9.-])([0-9]{3}) ?[-.] ?([0-9]{2}) ?[-.] ?([0-9]{4})(?:$|[^0-9.-]|[.-](?:$|[^0-9]))",
            )?,
            labelled_ssn: of(
                r"(?i)(?:\bssn?|social security)[^0-9]{0,20}([0-9]{3})[ .-]?([0-9]{2})[ .-]?([0-9]{4})(?:$|[^0-9])",
            )?,
            international: of(
                r"(\+|(?:^|[^0-9A-Za-z.:/_-])0 ?0|(?:^|[^0-9A-Za-z.:/_-])011)([ ._-]?\(?[1-9](?:[ ()._/-]{0,3}[0-9]){7,14})(?:$|[^0-9])",
            )?,
            american: of(
                r"(?:^|[^0-9.-])(?:1[ .-]?)?(?:\(([2-9][0-9]{2})\) ?[-.]? ?|([2-9][0-9]{2}) ?[-./] ?)([2-9][0-9]{2}) ?[-. ]? ?([0-9]{4})(?:$|[^0-9-])",
            )?,
            card: of(r"[0-9](?:[ ./-]{0,3}[0-9]){12,}")?,
            quad: of(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?\b")?,
            mac: of(
                r"\b[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2}\b|\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b",
            )?,
            hash: of(r"\b[0-9A-Fa-f]{32,}\b|\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")?,
        })
    }

    fn holds_phone(&self, text: &str) -> bool {
        let international = self.international.captures_iter(text).any(|found| {
            let (prefix, number) = (capture(&found, 1), capture(&found, 2));
            // A long first group is the whole number; what follows it belongs to something else.
            let first = number
                .trim_start_matches([' ', '.', '_', '-', '('])
                .split(|c: char| !c.is_ascii_digit())
                .next();
            let whole = first.filter(|group| group.len() >= *INTERNATIONAL.start());
            let digits: String = whole
                .unwrap_or(number)
                .chars()
                .filter(char::is_ascii_digit)
                .collect();
            let written = whole.is_none() || prefix == "+";
            let lengths = if prefix == "+" { INTERNATIONAL } else { DIALLED };
            let code = match digits.strip_prefix('1') {
                Some(rest) => is_nanp(rest),
                // Without a sign or a separator, 00 and a rare country code is more often the start of an identifier.
                None => is_country_code(&digits, written),
            };
            code && lengths.contains(&digits.len())
        });
        international
            || self.american.captures_iter(text).any(|found| {
                let area = found.get(1).or(found.get(2)).map_or("", |area| area.as_str());
                is_nanp(&[area, capture(&found, 3), capture(&found, 4)].concat())
            })
    }

    fn holds_ssn(&self, text: &str) -> bool {
        let number = |found: regex::Captures<'_>| {
            let of = |at: usize| capture(&found, at).parse::<u32>().unwrap_or_default();
            is_assigned_ssn(of(1), of(2), of(3))
        };
        self.ssn.captures_iter(text).any(number) || self.labelled_ssn.captures_iter(text).any(number)
    }

    /// Whether a run of digits is a card number: contiguous, or in one of the printed layouts and nothing beside it.
    fn holds_card(&self, text: &str) -> bool {
        self.card.find_iter(text).any(|run| {
            let groups: Vec<&str> = run
                .as_str()
                .split(|c: char| !c.is_ascii_digit())
                .filter(|group| !group.is_empty())
                .collect();
            let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
            let printed = matches!(
                lengths.as_slice(),
                [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4] | [4, 4, 4, 4, 3]
            );
            (printed && is_card(&groups.concat())) || groups.iter().any(|group| is_card(group))
        })
    }
}

fn capture<'t>(found: &regex::Captures<'t>, at: usize) -> &'t str {
    found.get(at).map_or("", |part| part.as_str())
}

fn is_card(digits: &str) -> bool {
    let digits: Vec<u8> = digits.bytes().map(|digit| digit - b'0').collect();
    is_payment_card(&digits) && luhn(&digits)
}

/// The kinds of personal data in a text, in order and each once.
pub fn kinds(text: &str) -> Vec<PiiKind> {
    let kinds_in = |text: &str| find(text).iter().map(|hit| hit.kind).collect::<Vec<_>>();
    let mut kinds = match PATTERNS.as_ref() {
        Some(forms) => {
            let plain = plain(&forms.escape.replace_all(text, decode_escape));
            let numbers = forms.hash.replace_all(&plain, "#");
            let numbers = forms.quad.replace_all(&numbers, "#");
            let phones = forms.mac.replace_all(&numbers, "#");
            let mut kinds = kinds_in(&phones);
            for (held, kind) in [
                (forms.email.is_match(&plain), PiiKind::Email),
                (forms.holds_phone(&phones), PiiKind::Phone),
                (forms.holds_ssn(&numbers), PiiKind::Ssn),
                (forms.holds_card(&numbers), PiiKind::Card),
            ] {
                kinds.extend(held.then_some(kind));
            }
            kinds
        }
        None => kinds_in(text),
    };
    kinds.sort_unstable_by_key(|kind| kind.as_str());
    kinds.dedup();
    kinds
}

/// The character of an escape in a URL or in HTML; the escape itself if it has none.
fn decode_escape(found: &regex::Captures<'_>) -> String {
    let number = |at: usize, radix: u32| u32::from_str_radix(capture(found, at), radix).ok();
    let code = number(1, 16)
        .filter(|code| *code < 0x80)
        .or(number(2, 10))
        .or(number(3, 16));
    code.and_then(char::from_u32)
        .map_or_else(|| capture(found, 0).to_owned(), String::from)
}

/// The text in plain characters.
fn plain(text: &str) -> String {
    let one = |c: char| match c {
        // Default_Ignorable_Code_Point.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}' => None,
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2e3a}'..='\u{2e3b}' | '\u{2043}' => Some('-'),
        '\u{3002}' => Some('.'),
        c if c.is_whitespace() || c.is_control() => Some(' '),
        c => Some(digit(c).unwrap_or(c)),
    };
    let text: String = text.nfkc().filter_map(one).collect();
    // Several blanks are one.
    text.split(' ')
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The ASCII digit of a decimal digit of another script.
fn digit(c: char) -> Option<char> {
    let zero = ZEROS
        .iter()
        .find(|zero| (**zero..).take(10).any(|digit| digit == c))?;
    char::from_digit(u32::from(c) - u32::from(*zero), 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_compile_and_digits_of_every_script_are_known() {
        assert!(PATTERNS.is_some());
        for zero in ZEROS {
            assert!(zero.is_numeric(), "{zero}");
            let nine = char::from_u32(u32::from(zero) + 9).unwrap();
            assert_eq!((digit(zero), digit(nine)), (Some('0'), Some('9')));
        }
        assert_eq!(digit('x'), None);
    }
}
