//! E-mail addresses and telephone numbers.

use std::ops::Range;

use super::{before, is_labelled, may_end};

/// RFC 5321: at most 64 bytes before the `@` and 255 after it.
const MAX_LOCAL: usize = 64;
const MAX_DOMAIN: usize = 255;
/// Digits of an international number (E.164); the minimum is the shortest in use, country code included.
const INTERNATIONAL: std::ops::RangeInclusive<usize> = 8..=15;
/// Digits of a number that is recognised only by its label.
const LABELLED: std::ops::RangeInclusive<usize> = 7..=15;
/// Maximum bytes of a number as written.
const MAX_WRITTEN: usize = 28;
/// How far before an address to look for the scheme of a URL.
const URL_WINDOW: usize = 200;

const PHONE_LABELS: &str = "\
    phone|phones|telephone|tel|mobile|fax|whatsapp|cellphone|telefon|handy|mobil|sms|hotline|téléphone|\
    teléfono";
/// Country codes of E.164 with one or two digits; all others have three and start with one of [`THREE`].
const SHORT_CODES: &str = "\
    7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 \
    82 84 86 90 91 92 93 94 95 98";
const THREE: &str = "21 22 23 24 25 26 29 35 37 38 42 50 59 67 68 69 85 87 88 96 97 99";

/// The address around the `@` at `at`.
pub(super) fn email(text: &str, at: usize) -> Option<Range<usize>> {
    let local = local_part(text, at)?;
    let domain = domain_after(text, at + 1)?;
    let start = at - local.len();
    // `https://user:pass@host` and `git@host:path` are not mail addresses. Those in the path or query of a URL are.
    let head = before(text, start, URL_WINDOW);
    let token = head.rsplit(char::is_whitespace).next().unwrap_or_default();
    let before_host = token
        .rsplit_once("://")
        .is_some_and(|(_, rest)| !rest.contains(['/', '?', '#']));
    let repository = local == "git" && text.as_bytes().get(at + 1 + domain.len()) == Some(&b':');
    (!before_host && !repository).then_some(start..at + 1 + domain.len())
}

fn local_part(text: &str, at: usize) -> Option<&str> {
    let mut from = at.saturating_sub(MAX_LOCAL + 1);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let head = text.get(from..at)?;
    let part =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-' | '\'' | '!' | '&' | '~');
    let local = head.rsplit(|c| !part(c)).next()?;
    let local = local.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let fits =
        !local.is_empty() && local.len() <= MAX_LOCAL && !local.ends_with('.') && !local.contains("..");
    fits.then_some(local)
}

/// The domain that starts here, if it has a known public suffix.
fn domain_after(text: &str, from: usize) -> Option<&str> {
    let rest = text.get(from..)?;
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-');
    let len = rest
        .char_indices()
        .find(|(at, c)| *at > MAX_DOMAIN || !part(*c))
        .map_or(rest.len(), |(at, _)| at);
    let domain = rest.get(..len)?.trim_end_matches(['.', '-']);
    let follows = rest.get(domain.len()..)?.chars().next();
    let lower = domain.to_lowercase();
    let known = psl::suffix(lower.as_bytes()).is_some_and(|suffix| suffix.is_known());
    let labels = lower
        .split('.')
        .all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-'));
    let fits = domain.len() <= MAX_DOMAIN && lower.contains('.') && labels && known;
    (fits && !matches!(follows, Some('@' | '_'))).then_some(domain)
}

/// The end of the telephone number that starts at `at`.
pub(super) fn phone(text: &str, at: usize) -> Option<usize> {
    let written = DigitGroups::new(text, at)?;
    let fits = written.is_international() || written.is_north_american() || written.is_labelled(text, at);
    (fits && may_end(text, written.end)).then_some(written.end)
}

/// A number as written: digits and separators.
struct DigitGroups<'t> {
    text: &'t str,
    digits: String,
    end: usize,
}

impl<'t> DigitGroups<'t> {
    /// Reads digits with at most two separators between them.
    fn new(text: &'t str, at: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let (mut digits, mut end, mut marks, mut open) = (String::new(), at, 0, 0i32);
        for (place, byte) in bytes.iter().enumerate().skip(at).take(MAX_WRITTEN + 1) {
            match byte {
                b'0'..=b'9' => {
                    digits.push(char::from(*byte));
                    (end, marks) = (place + 1, 0);
                }
                b'+' if place == at => {}
                b'(' | b')' | b' ' | b'-' | b'.' | b'/' if marks < 2 => {
                    marks += 1;
                    open += i32::from(*byte == b'(') - i32::from(*byte == b')');
                }
                _ => break,
            }
            if !(0..=1).contains(&open) {
                break;
            }
        }
        let text = text.get(at..end)?;
        let closed = text.matches('(').count() == text.matches(')').count();
        (closed && end - at <= MAX_WRITTEN).then_some(Self { text, digits, end })
    }

    /// Whether it starts with `+` and an E.164 country code.
    fn is_international(&self) -> bool {
        let coded = match self.digits.strip_prefix('1') {
            Some(rest) => is_nanp(rest),
            None => INTERNATIONAL.contains(&self.digits.len()) && is_country_code(&self.digits, true),
        };
        self.text.starts_with('+') && coded && !self.text.contains("  ")
    }

    /// Whether it is written like `(212) 555-0123`, `212-555-0123` or `1-212-555-0123`.
    fn is_north_american(&self) -> bool {
        let shape: String = self
            .text
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        let shape = shape.strip_prefix("0-").unwrap_or(&shape);
        let national = self
            .digits
            .strip_prefix('1')
            .filter(|_| self.digits.len() == 11)
            .unwrap_or(&self.digits);
        matches!(shape, "(000) 000-0000" | "(000)000-0000" | "000-000-0000") && is_nanp(national)
    }

    /// Whether a label marks it as a telephone number, and it is not a date or an address.
    fn is_labelled(&self, text: &str, at: usize) -> bool {
        let plain = self.text.strip_prefix('+').unwrap_or(self.text);
        let points = plain.matches('.').count();
        let version = points == 3 && plain.chars().all(|c| c.is_ascii_digit() || c == '.');
        let date = plain.len() == 10 && matches!(plain.as_bytes(), [_, _, _, _, b'-', _, _, b'-', _, _]);
        // `24/7`.
        let always = plain.find('/').is_some_and(|at| at < 3);
        let mut groups = plain
            .split(|c: char| !c.is_ascii_digit())
            .filter(|group| !group.is_empty());
        let years =
            groups.all(|group| group.len() == 4 && (group.starts_with("19") || group.starts_with("20")));
        LABELLED.contains(&self.digits.len())
            && !version
            && !date
            && !years
            && !always
            && is_labelled(text, at, PHONE_LABELS)
    }
}

/// Whether a number starts with a country code; codes of three digits count only if `rare`.
pub(super) fn is_country_code(digits: &str, rare: bool) -> bool {
    let starts = |codes: &str| codes.split(' ').any(|code| digits.starts_with(code));
    starts(SHORT_CODES) || (rare && starts(THREE))
}

/// Whether these are ten digits of the North American plan: area code and exchange start with 2 to 9 and
/// are not service codes.
pub(super) fn is_nanp(digits: &str) -> bool {
    let first = |at: usize| {
        digits
            .as_bytes()
            .get(at)
            .is_some_and(|digit| (b'2'..=b'9').contains(digit))
    };
    digits.len() == 10
        && first(0)
        && first(3)
        && digits.get(1..3) != Some("11")
        && digits.get(4..6) != Some("11")
}
