//! The dates at which a collection added its objects.

use chrono::{DateTime, NaiveDateTime, SecondsFormat, TimeDelta, Utc};
use reqwest::header::{DATE, HeaderMap};

/// Longest date that is read, in bytes.
const MAX_DATE_BYTES: usize = 100;
/// How far ahead of its server's clock a date is credible. A date without an offset may be the local time of a server,
/// up to 14 hours ahead.
const MAX_AHEAD: TimeDelta = TimeDelta::days(1);
/// The form of JavaScript's `Date.toString`, which servers have been seen to send.
const SCRIPT_DATE: &str = "%a %b %d %Y %H:%M:%S GMT%z";

/// An instant, and the text in which the server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AddedAt {
    /// As the server wrote it, if it has the form of a TAXII timestamp; it goes back to the server like that.
    pub text: String,
    pub at: DateTime<Utc>,
    /// Without an offset. It is sent back without one, so that the server reads it as it wrote it.
    local: bool,
}

impl AddedAt {
    /// Reads a TAXII timestamp (RFC 3339), also without an offset, and the two date formats of HTTP and JavaScript.
    pub(super) fn parse(text: &str) -> Option<AddedAt> {
        let text = text.trim();
        if text.len() > MAX_DATE_BYTES {
            return None;
        }
        let of = |at: DateTime<Utc>, local| AddedAt {
            text: text.to_owned(),
            at,
            local,
        };
        if let Ok(at) = DateTime::parse_from_rfc3339(text) {
            return Some(of(at.to_utc(), false));
        }
        let naive = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f")
            .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f"));
        if let Ok(at) = naive {
            return Some(of(at.and_utc(), true));
        }
        let script = text.split(" (").next().unwrap_or(text);
        let at = DateTime::parse_from_str(script, SCRIPT_DATE)
            .or_else(|_| DateTime::parse_from_rfc2822(text))
            .ok()?
            .to_utc();
        let text = at.to_rfc3339_opts(SecondsFormat::Secs, true);
        Some(AddedAt {
            text,
            at,
            local: false,
        })
    }

    /// Reads a date from an answer. `None` also for one after `latest`: as an `added_after`, it would end the feed.
    pub(super) fn parse_credible(text: &str, latest: DateTime<Utc>) -> Option<AddedAt> {
        AddedAt::parse(text).filter(|date| date.at <= latest)
    }

    /// One step earlier, as an `added_after` that does not exclude objects of this instant.
    ///
    /// The step is a unit that a server with this precision can represent: a server that stores milliseconds but
    /// writes six digits would round a microsecond away.
    pub(super) fn step_back(&self) -> String {
        let fraction = self
            .text
            .split_once('.')
            .map(|(_, rest)| rest)
            .unwrap_or_default();
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let fraction = fraction.get(..digits).unwrap_or_default();
        let step = match fraction.trim_end_matches('0').len() {
            0 => TimeDelta::seconds(1),
            1..=3 => TimeDelta::milliseconds(1),
            _ => TimeDelta::microseconds(1),
        };
        let form = match digits {
            0 => SecondsFormat::Secs,
            1..=3 => SecondsFormat::Millis,
            4..=6 => SecondsFormat::Micros,
            _ => SecondsFormat::Nanos,
        };
        let earlier = self.at.checked_sub_signed(step).unwrap_or(self.at);
        let mut text = earlier.to_rfc3339_opts(form, true);
        if self.local {
            text.pop();
        }
        text
    }
}

/// The latest date that an answer can tell: a day after its `Date`, or after `now` if it has no readable `Date`.
pub(super) fn latest_credible(headers: &HeaderMap, now: DateTime<Utc>) -> DateTime<Utc> {
    let now = response_date(headers).unwrap_or(now);
    now.checked_add_signed(MAX_AHEAD).unwrap_or(now)
}

/// The server's clock: the `Date` of an answer (RFC 9110 section 6.6.1).
pub(super) fn response_date(headers: &HeaderMap) -> Option<DateTime<Utc>> {
    let text = headers.get(DATE)?.to_str().ok()?;
    Some(DateTime::parse_from_rfc2822(text).ok()?.to_utc())
}

/// The later of two dates; the first if they are the same instant.
pub(super) fn later(one: Option<AddedAt>, other: Option<AddedAt>) -> Option<AddedAt> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.at > one.at { other } else { one }),
        (one, other) => one.or(other),
    }
}
