//! Numbers with a distinctive form: cards (ISO/IEC 7812), IBANs (ISO 13616), US social security numbers, and dates
//! labelled as birth dates.

use super::{is_labelled, may_end};

/// Maximum digits of a card; the rare ones with 19 cannot be told from ids.
const MAX_DIGITS: usize = 16;

/// Length of an IBAN by country, from the SWIFT registry of ISO 13616.
const IBAN_LENGTHS: &str = "\
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 \
    ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 \
    LB28 LC32 LI21 LT20 LU20 LV21 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 \
    RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20";
const SSN_LABELS: &str = "ssn|ssns|social security|social security number|social-security";
const BIRTH_LABELS: &str = "\
    date of birth|dob|d.o.b|born|birthdate|birth date|birthday|geburtsdatum|geboren|geboren am|né le|née le";
const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// The end of the card number that starts here: 14 to 16 digits, contiguous or in the groups printed on cards.
pub(super) fn card(text: &str, at: usize) -> Option<usize> {
    let (end, digits, groups) = groups(text, at)?;
    let grouped = matches!(groups.as_slice(), [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4]);
    // Longer contiguous digits are ids of posts and messages.
    let together = groups.len() == 1 && (14..=MAX_DIGITS).contains(&digits.len());
    // Another four digits next to it suggest a list or a dump.
    let fits = (grouped && !has_neighbour(text, at, end)) || together;
    let valid = fits && is_of_a_network(&digits) && luhn(&digits) && is_varied(&digits);
    (valid && may_end(text, end)).then_some(end)
}

/// Digits separated by single spaces or hyphens, not mixed: their end, the digits and the group lengths. `None` if
/// there are too many digits for a card.
fn groups(text: &str, at: usize) -> Option<(usize, Vec<u8>, Vec<usize>)> {
    let bytes = text.as_bytes();
    let (mut digits, mut groups, mut mark) = (Vec::new(), vec![0usize], None);
    let mut end = at;
    while let Some(byte) = bytes.get(end).copied() {
        let more = bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        match byte {
            b'0'..=b'9' if digits.len() == MAX_DIGITS => return None,
            b'0'..=b'9' => {
                digits.push(byte - b'0');
                *groups.last_mut()? += 1;
            }
            b' ' | b'-' if more && mark.is_none_or(|mark| mark == byte) && !is_whole(&groups) => {
                mark = Some(byte);
                groups.push(0);
            }
            _ => break,
        }
        end += 1;
    }
    Some((end, digits, groups))
}

/// Whether the card number is complete.
fn is_whole(groups: &[usize]) -> bool {
    matches!(groups, [4, 6, 5] | [4, 6, 4] | [4, 4, 4, 4])
}

fn has_neighbour(text: &str, at: usize, end: usize) -> bool {
    let four = |part: &str| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_digit());
    let before = at.checked_sub(5).and_then(|from| text.get(from..at));
    let after = text.get(end..end + 5);
    before
        .and_then(|part| part.strip_suffix([' ', '-']))
        .is_some_and(four)
        || after
            .and_then(|part| part.strip_prefix([' ', '-']))
            .is_some_and(four)
}

/// Whether prefix and length belong to one of the large networks.
fn is_of_a_network(digits: &[u8]) -> bool {
    let prefix = |len: usize| {
        digits
            .iter()
            .take(len)
            .fold(0u32, |sum, digit| sum * 10 + u32::from(*digit))
    };
    let (one, two, three, four) = (prefix(1), prefix(2), prefix(3), prefix(4));
    match digits.len() {
        14 => matches!(three, 300..=305) || matches!(two, 36 | 38 | 39),
        15 => matches!(two, 34 | 37),
        16 => {
            one == 4
                || matches!(two, 51..=55 | 62 | 65)
                || matches!(four, 2221..=2720 | 6011 | 3528..=3589)
                || matches!(three, 644..=649)
        }
        _ => false,
    }
}

/// Whether the check digit fits (Luhn algorithm, ISO/IEC 7812-1 annex B).
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = u32::from(*digit);
            match (at % 2, digit) {
                (0, _) => digit,
                (_, 5..) => digit * 2 - 9,
                _ => digit * 2,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Whether prefix and length belong to any payment card, rare ones included.
pub(super) fn is_payment_card(digits: &[u8]) -> bool {
    let two = digits
        .iter()
        .take(2)
        .fold(0u32, |sum, digit| sum * 10 + u32::from(*digit));
    let long = matches!(digits.len(), 16 | 18 | 19);
    // Visa, and Maestro or UnionPay, also issue other lengths than those of `is_of_a_network`; 22 is Mir, 97 Troy.
    let rare = match two {
        40..=49 => matches!(digits.len(), 13 | 19),
        50 | 56..=69 => long,
        22 | 81 | 97 => digits.len() == 16,
        _ => false,
    };
    (rare || is_of_a_network(digits)) && is_varied(digits)
}

fn is_varied(digits: &[u8]) -> bool {
    digits.windows(2).any(|pair| pair.first() != pair.last())
}

/// The end of the IBAN that starts here, contiguous or in groups of four.
pub(super) fn iban(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let country = text.get(at..at + 2)?.to_ascii_uppercase();
    if !bytes.get(at + 2..at + 4)?.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut lengths = IBAN_LENGTHS
        .split(' ')
        .filter_map(|known| known.strip_prefix(country.as_str()));
    let length: usize = lengths.next()?.parse().ok()?;
    let (mut end, mut count, mut rest) = (at, 0, 0u32);
    let mut head = 0u32;
    while count < length {
        let byte = bytes.get(end)?.to_ascii_uppercase();
        let spaced =
            byte == b' ' && count > 0 && count % 4 == 0 && bytes.get(end.checked_sub(1)?) != Some(&b' ');
        if spaced {
            end += 1;
            continue;
        }
        let value = match byte {
            b'0'..=b'9' => u32::from(byte - b'0'),
            b'A'..=b'Z' => u32::from(byte - b'A') + 10,
            _ => return None,
        };
        let digit = byte.is_ascii_digit();
        if (2..4).contains(&count) && !digit {
            return None;
        }
        // ISO 7064 mod 97-10: the first four characters are moved to the end.
        let sum = if count < 4 { &mut head } else { &mut rest };
        *sum = if count < 4 {
            *sum * if digit { 10 } else { 100 } + value
        } else {
            (*sum * if digit { 10 } else { 100 } + value) % 97
        };
        count += 1;
        end += 1;
    }
    // The first four characters make six digits: two letters of two digits each, and two check digits.
    let right = (rest * (1_000_000 % 97) + head % 97) % 97 == 1;
    (right && may_end(text, end)).then_some(end)
}

/// The end of the US social security number that starts here; without hyphens it needs a label.
pub(super) fn ssn(text: &str, at: usize) -> Option<usize> {
    let part = |from: usize, to: usize| -> Option<u32> {
        let digits = text.get(at + from..at + to)?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| digits.parse().ok())?
    };
    let marks = (text.as_bytes().get(at + 3), text.as_bytes().get(at + 6));
    let (area, group, serial, end) = match marks {
        (Some(b'-'), Some(b'-')) => (part(0, 3)?, part(4, 6)?, part(7, 11)?, at + 11),
        (Some(b' '), Some(b' ')) if is_labelled(text, at, SSN_LABELS) => {
            (part(0, 3)?, part(4, 6)?, part(7, 11)?, at + 11)
        }
        _ if is_labelled(text, at, SSN_LABELS) => (part(0, 3)?, part(3, 5)?, part(5, 9)?, at + 9),
        _ => return None,
    };
    (is_assigned_ssn(area, group, serial) && may_end(text, end)).then_some(end)
}

/// Whether the Social Security Administration may have assigned the number.
pub(super) fn is_assigned_ssn(area: u32, group: u32, serial: u32) -> bool {
    !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0
}

/// The end of the date that starts here and is labelled as a birth date.
pub(super) fn birth_date(text: &str, at: usize) -> Option<usize> {
    if !is_labelled(text, at, BIRTH_LABELS) {
        return None;
    }
    let rest = text.get(at..)?;
    let mut parts = 0;
    let mut year = false;
    let mut end = 0;
    // Day, month and year in any order, with at most two separators between them.
    while parts < 3 {
        let gap = rest.get(end..)?;
        let skipped = if parts == 0 {
            0
        } else {
            gap.len() - gap.trim_start_matches([' ', '.', '/', '-', ',']).len()
        };
        if skipped > 2 || (parts > 0 && skipped == 0) {
            return None;
        }
        let gap = gap.get(skipped..)?;
        let len = gap.find(|c: char| !c.is_alphanumeric()).unwrap_or(gap.len());
        let word = gap.get(..len)?;
        year |= word.len() == 4 && word.parse().is_ok_and(|year: u16| (1900..2100).contains(&year));
        if !is_date_part(word) {
            return None;
        }
        end += skipped + len;
        parts += 1;
    }
    year.then_some(at + end).filter(|end| may_end(text, *end))
}

fn is_date_part(word: &str) -> bool {
    let month = || {
        let lower = word.to_lowercase();
        lower.len() >= 3 && MONTHS.iter().any(|month| lower.starts_with(month))
    };
    let number = word
        .trim_end_matches("th")
        .trim_end_matches("st")
        .trim_end_matches("nd")
        .trim_end_matches("rd");
    let day = number.len() <= 2 && number.parse().is_ok_and(|n: u8| (1..=31).contains(&n));
    let year = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    day || year || month()
}
