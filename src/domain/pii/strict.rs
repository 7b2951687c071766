//! A stricter search for a box that anyone may type into: there a number that only looks like personal data does no
//! harm when it is refused, and one that is overlooked does.

use std::sync::LazyLock;

use regex::Regex;

use super::numbers::{is_payment_card, luhn};
use super::{PiiKind, find, folded};
use crate::domain::with_ascii_edges;

/// Digits of a payment card (ISO/IEC 7812).
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;
/// Characters that people put between the groups of a card number, and how many of them.
const MARKS: [u8; 3] = [b' ', b'-', b'.'];
const MAX_MARKS: usize = 2;

/// International numbers with `+`, `00` or `011` before the country code (ITU-T E.123, E.164), and numbers of the North
/// American plan.
static PHONES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let international = r"(?:\+|\b00|\b011[ .-]?)[1-9](?:[ ()./-]{0,3}[0-9]){7,14}\b";
    let american = r"(?:\b1[ .-]?)?(?:\(|\b)[2-9][0-9]{2}\)?[ .-]{1,2}[2-9][0-9]{2}[ .-][0-9]{4}\b";
    let pattern = format!(r"(?:^|[^0-9A-Za-z_.+/-])(?:{international}|{american})(?:$|[^0-9A-Za-z_]|\.$)");
    Regex::new(&with_ascii_edges(&pattern)).ok()
});

/// The kinds of personal data in a text, in order and each once.
pub fn kinds(text: &str) -> Vec<PiiKind> {
    let mut kinds: Vec<PiiKind> = find(text).iter().map(|hit| hit.kind).collect();
    let plain = folded(text).map_or_else(|| text.to_owned(), |(plain, _)| plain);
    if PHONES.as_ref().is_some_and(|phones| phones.is_match(&plain)) {
        kinds.push(PiiKind::Phone);
    }
    if holds_card(plain.as_bytes()) {
        kinds.push(PiiKind::Card);
    }
    kinds.sort_unstable_by_key(|kind| kind.as_str());
    kinds.dedup();
    kinds
}

/// Whether some groups of digits form the number of a payment card.
fn holds_card(text: &[u8]) -> bool {
    let begins = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        text.get(at).is_some_and(u8::is_ascii_digit)
            && before.is_none_or(|byte| !byte.is_ascii_alphanumeric())
    };
    (0..text.len()).any(|at| begins(at) && card_from(text, at))
}

/// Whether a card number starts here and ends with a group of digits.
fn card_from(text: &[u8], from: usize) -> bool {
    let (mut digits, mut marks) = (Vec::new(), 0);
    for (place, byte) in text.iter().enumerate().skip(from) {
        if byte.is_ascii_digit() {
            digits.push(byte - b'0');
            marks = 0;
        } else if MARKS.contains(byte) && marks < MAX_MARKS {
            marks += 1;
        } else {
            return false;
        }
        if digits.len() > *CARD_DIGITS.end() {
            return false;
        }
        let ends = marks == 0
            && text
                .get(place + 1)
                .is_none_or(|next| !next.is_ascii_alphanumeric());
        if ends && CARD_DIGITS.contains(&digits.len()) && is_payment_card(&digits) && luhn(&digits) {
            return true;
        }
    }
    false
}
