//! Personal data in a text: e-mail addresses, telephone numbers, payment cards, bank accounts, social security numbers
//! and labelled dates of birth.
//!
//! Reports are full of digits, so a number counts only if its form, length and check digits fit and it is not part of
//! a longer token. A number without check digits or a distinctive form needs a label ("phone: …"). Hashes, addresses,
//! identifiers, versions, times and port lists are excluded. A defanged address (`a[at]b[.]com`) is an indicator and
//! is left alone. Names and postal addresses are not detected.
//!
//! Invariants: spans are byte ranges of the text on char boundaries, in order and without overlaps. The look-around
//! at each position is bounded, so time is linear.

mod contact;
mod numbers;
pub mod strict;
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::Serialize;

use crate::domain::cursor::Cursor;
use crate::domain::node::wire_enum;

wire_enum! {
    /// Kind of personal data.
    PiiKind, "email, phone, card, iban, ssn, birth_date" {
        Email = "email",
        Phone = "phone",
        Card = "card",
        Iban = "iban",
        Ssn = "ssn",
        BirthDate = "birth_date",
    }
}

impl PiiKind {
    /// The placeholder in a redacted text.
    pub fn mark(self) -> &'static str {
        match self {
            PiiKind::Email => "[EMAIL]",
            PiiKind::Phone => "[PHONE]",
            PiiKind::Card => "[CARD]",
            PiiKind::Iban => "[IBAN]",
            PiiKind::Ssn => "[SSN]",
            PiiKind::BirthDate => "[BIRTH_DATE]",
        }
    }
}

/// One span of personal data. It does not contain the data itself, so it may be logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PiiHit {
    pub kind: PiiKind,
    /// Byte range in the original text.
    pub span: Range<usize>,
}

/// All personal data in a text, in order.
pub fn find(text: &str) -> Vec<PiiHit> {
    let Some((plain, origin)) = fold_characters(text) else {
        return find_in(text);
    };
    let place = |at: usize| origin.get(at).copied().unwrap_or(text.len());
    let mut hits = find_in(&plain);
    for hit in &mut hits {
        hit.span = place(hit.span.start)..place(hit.span.end);
    }
    hits
}

/// If the text has zero-width or full-width characters, the text without them (full-width ones become plain), and the
/// original offset of each byte.
fn fold_characters(text: &str) -> Option<(String, Vec<usize>)> {
    let plain = |c: char| match c {
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => None,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        '\u{fe6b}' => Some('@'),
        _ => Some(c),
    };
    if text.chars().all(|c| plain(c) == Some(c)) {
        return None;
    }
    let (mut folded, mut origin) = (
        String::with_capacity(text.len()),
        Vec::with_capacity(text.len() + 1),
    );
    for (at, c) in text.char_indices() {
        folded.extend(plain(c));
        origin.resize(folded.len(), at);
    }
    origin.push(text.len());
    Some((folded, origin))
}

fn find_in(text: &str) -> Vec<PiiHit> {
    let mut hits: Vec<PiiHit> = Vec::new();
    let mut cursor = Cursor::new(text);
    loop {
        let at = cursor.at();
        let Some(c) = cursor.bump() else { return hits };
        let Some(hit) = hit_at(text, at, c) else {
            continue;
        };
        cursor.skip_to(hit.span.end);
        // An address is found at its `@`, after a number that may be part of it.
        while hits.last().is_some_and(|last| last.span.end > hit.span.start) {
            hits.pop();
        }
        hits.push(hit);
    }
}

/// The text with each hit replaced by a placeholder, and the hits (byte ranges of the original text).
pub fn redact(text: &str) -> (String, Vec<PiiHit>) {
    let hits = find(text);
    let mut plain = String::with_capacity(text.len());
    let mut end = 0;
    for hit in &hits {
        plain.push_str(text.get(end..hit.span.start).unwrap_or_default());
        plain.push_str(hit.kind.mark());
        end = hit.span.end;
    }
    plain.push_str(text.get(end..).unwrap_or_default());
    (plain, hits)
}

/// The hit that starts with this character; an e-mail address is found at its `@`.
fn hit_at(text: &str, at: usize, c: char) -> Option<PiiHit> {
    let hit = |kind, span| PiiHit { kind, span };
    let to = |kind, end: Option<usize>| end.map(|end| hit(kind, at..end));
    match c {
        '@' => contact::email(text, at).map(|span| hit(PiiKind::Email, span)),
        'A'..='Z' | 'a'..='z' | '0'..='9' | '+' | '(' if !may_start(text, at) => None,
        'A'..='Z' | 'a'..='z' => to(PiiKind::Iban, numbers::iban(text, at))
            .or_else(|| to(PiiKind::BirthDate, numbers::birth_date(text, at))),
        '0'..='9' => to(PiiKind::Card, numbers::card(text, at))
            .or_else(|| to(PiiKind::Ssn, numbers::ssn(text, at)))
            .or_else(|| to(PiiKind::Phone, contact::phone(text, at)))
            .or_else(|| to(PiiKind::BirthDate, numbers::birth_date(text, at))),
        '+' | '(' => to(PiiKind::Phone, contact::phone(text, at)),
        _ => None,
    }
}

/// Whether a number may start here, that is, not inside a longer token.
fn may_start(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '{' | '"' | '\'' | ':' | ';' | ',' | '=' | '<' | '>' | '|' | '“' | '„' | '*'))
        // `12:34`, `1,234`: part of a time or of a number.
        && !(at >= 2
            && matches!(before, Some(':' | ','))
            && text.as_bytes().get(at - 2).is_some_and(u8::is_ascii_digit))
}

/// Whether a number may end here.
fn may_end(text: &str, end: usize) -> bool {
    let mut after = text.get(end..).unwrap_or_default().chars();
    match after.next() {
        None => true,
        Some(c) if c.is_alphanumeric() => false,
        Some('_' | '@' | '%' | '=' | '/' | '\\' | '+' | '#') => false,
        Some('.' | '-' | ':' | ',') => !after.next().is_some_and(char::is_alphanumeric),
        Some(_) => true,
    }
}

/// The lower-cased text before a position, at most `most` bytes.
fn before(text: &str, at: usize, most: usize) -> String {
    let mut from = at.saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..at).unwrap_or_default().to_lowercase()
}

/// Whether one of the labels comes right before, separated at most by a few words such as "is".
fn is_labelled(text: &str, at: usize, labels: &str) -> bool {
    const BETWEEN: &[&str] = &[
        "number", "numbers", "no", "nr", "is", "at", "on", "was", "of", "in",
    ];
    let before = before(text, at, 40);
    let mut rest = before.trim_end_matches(|c: char| !c.is_alphanumeric());
    // A line break or longer punctuation separates a label from the value.
    if before.len() - rest.len() > 4 || before.get(rest.len()..).is_some_and(|gap| gap.contains('\n')) {
        return false;
    }
    for _ in 0..3 {
        let label = labels.split('|').any(|label| {
            let head = rest.strip_suffix(label);
            head.is_some_and(|head| !head.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        if label {
            return true;
        }
        let word = BETWEEN
            .iter()
            .find_map(|word| rest.strip_suffix(word).filter(|head| head.ends_with([' ', '.'])));
        let Some(head) = word else { return false };
        rest = head.trim_end_matches([' ', '.']);
    }
    false
}
