//! The body of a page: a TAXII envelope (section 3.7), read leniently.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::date::{AddedAt, latest_credible};
use super::error::{PullError, quote};
use crate::outbound::OutboundResponse;

/// Longest page token, in bytes. It is stored, and sent in a URL.
const MAX_TOKEN_BYTES: usize = 8 * 1024;
/// Media types that carry an envelope or a bundle in practice, besides the one that the standard asks for.
const MEDIA_TYPES: [&str; 5] = [
    "application/taxii+json",
    "application/vnd.oasis.taxii+json",
    "application/stix+json",
    "application/vnd.oasis.stix+json",
    "application/json",
];

/// A page as the server sent it.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    /// `None` if the server does not say.
    pub more: Option<bool>,
    pub next: Option<String>,
    pub objects: Vec<Box<RawValue>>,
    /// Entries of `objects` that are not JSON objects.
    pub unreadable: usize,
    /// The extension headers (section 3.2), as sent.
    pub first_added: Option<String>,
    pub last_added: Option<String>,
    /// `last_added`, if it is a credible date.
    credible: Option<AddedAt>,
}

impl Envelope {
    /// Reads a successful response. `now` stands in for a missing `Date`.
    ///
    /// # Errors
    /// [`PullError::NotTaxii`] and [`PullError::InvalidJson`].
    pub(super) fn read(answer: &OutboundResponse, now: DateTime<Utc>) -> Result<Self, PullError> {
        let header = |name: &str| {
            let value = answer.headers.get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let last_added = header("x-taxii-date-added-last");
        let latest = latest_credible(&answer.headers, now);
        let mut envelope = Envelope {
            first_added: header("x-taxii-date-added-first"),
            credible: last_added
                .as_deref()
                .and_then(|text| AddedAt::parse_credible(text, latest)),
            last_added,
            ..Envelope::default()
        };
        if answer.status.as_u16() == 204 {
            return Ok(envelope);
        }
        let body = json_of(&answer.headers, &answer.body)?;
        let wire: Wire<'_> = parse(body)?;
        envelope.more = wire.more.map(flag).transpose()?.flatten();
        envelope.next = wire.next.map(token).transpose()?.flatten();
        match wire.objects.or(wire.items) {
            Some(entries) => {
                envelope.objects = entries.objects;
                envelope.unreadable = entries.unreadable;
            }
            None if wire.more.is_none() && wire.next.is_none() => check_empty(body)?,
            None => {}
        }
        Ok(envelope)
    }

    /// Whether the server says that there are further pages.
    pub(super) fn has_more(&self) -> bool {
        self.more.unwrap_or(self.next.is_some())
    }

    /// The date of the latest object, if the page has objects and the server tells a credible date.
    pub(super) fn last_added_at(&self) -> Option<AddedAt> {
        let delivers = !self.objects.is_empty() || self.unreadable > 0;
        self.credible.clone().filter(|_| delivers)
    }
}

/// The body, if it can be JSON by its media type.
pub(super) fn json_of<'b>(headers: &HeaderMap, body: &'b [u8]) -> Result<&'b [u8], PullError> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return match body.trim_ascii_start().first() {
            Some(b'{') => Ok(body),
            _ => Err(PullError::NotTaxii(
                "it has no Content-Type and is not a JSON object".to_owned(),
            )),
        };
    };
    let text = String::from_utf8_lossy(value.as_bytes());
    let media_type = text.split(';').next().unwrap_or_default().trim();
    if MEDIA_TYPES
        .iter()
        .any(|known| known.eq_ignore_ascii_case(media_type))
    {
        return Ok(body);
    }
    Err(PullError::NotTaxii(format!(
        "its Content-Type is \"{}\"",
        quote(media_type)
    )))
}

/// Parses JSON; errors name the position and never repeat the text.
pub(super) fn parse<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, PullError> {
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        if error.is_data() {
            let place = format!("line {line}, column {column}");
            return PullError::NotTaxii(format!("{place} is not what an envelope has there"));
        }
        PullError::InvalidJson { line, column }
    })
}

#[derive(Deserialize)]
struct Wire<'b> {
    #[serde(borrow)]
    more: Option<&'b RawValue>,
    #[serde(borrow)]
    next: Option<&'b RawValue>,
    objects: Option<Entries>,
    /// What early releases of the ATT&CK Workbench server call `objects`.
    items: Option<Entries>,
}

/// `more`; `None` for null.
fn flag(value: &RawValue) -> Result<Option<bool>, PullError> {
    match value.get().trim_matches('"').to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(Some(true)),
        "false" | "0" => Ok(Some(false)),
        "null" => Ok(None),
        _ => Err(PullError::NotTaxii("`more` is neither true nor false".to_owned())),
    }
}

/// `next` as text; `None` for null and the empty text.
fn token(value: &RawValue) -> Result<Option<String>, PullError> {
    let json = value.get();
    let fail = |rule: &str| Err(PullError::NotTaxii(format!("`next` {rule}")));
    let text = match json.as_bytes().first() {
        Some(b'"') => match serde_json::from_str(json) {
            Ok(text) => text,
            Err(_) => return fail("is not valid text"),
        },
        Some(b'-' | b'0'..=b'9') => json.to_owned(),
        Some(b'n' | b'f') => String::new(),
        _ => return fail("is neither text nor a number"),
    };
    if text.len() > MAX_TOKEN_BYTES {
        return fail(&format!("is longer than {MAX_TOKEN_BYTES} bytes"));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Tells an empty envelope or bundle from another JSON object, such as the description of a collection.
fn check_empty(body: &[u8]) -> Result<(), PullError> {
    let members: BTreeMap<String, IgnoredAny> = parse(body)?;
    let known = ["objects", "items", "more", "next", "type"];
    if members.is_empty() || known.iter().any(|name| members.contains_key(*name)) {
        return Ok(());
    }
    let text = "it has neither `objects` nor `more`; the feed's URL must be that of a collection's objects";
    Err(PullError::NotTaxii(text.to_owned()))
}

/// The entries of `objects`, each as text.
#[derive(Default)]
struct Entries {
    objects: Vec<Box<RawValue>>,
    unreadable: usize,
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of STIX objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entries, A::Error> {
        let mut entries = Entries::default();
        while let Some(entry) = list.next_element::<&RawValue>()? {
            if entry.get().starts_with('{') {
                entries.objects.push(entry.to_owned());
            } else {
                entries.unreadable += 1;
            }
        }
        Ok(entries)
    }
}
