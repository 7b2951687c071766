//! A small TAXII server: objects with the dates at which they were added, in several styles of paging.

use std::collections::HashMap;

use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use reqwest::Url;

use super::{OutboundError, OutboundResponse, RecordedRequest, Reply, answer, dated, envelope, page};
use crate::taxii::date::AddedAt;

const ABSURD: &str = "9999-12-31T23:59:59.999999Z";

/// How a server tells pages apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paging {
    /// `next` is a position.
    Offset,
    /// `next` is the number of the page at this size, as in ATT&CK Workbench.
    PageNumber,
    /// A position; each page begins with the last object of the one before.
    Overlap,
    /// One token for a snapshot of the rest; each use takes a page off it, as in medallion.
    Shared,
    /// No token.
    Date,
}

/// How a server tells dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dates {
    Headers,
    Manifest,
    /// The headers are far in the future, the manifest is right.
    AbsurdHeaders,
    Nowhere,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub paging: Paging,
    pub dates: Dates,
    /// The most objects of a page, whatever the client asks for.
    pub cap: usize,
    /// `added_after` includes the instant itself.
    pub inclusive: bool,
    /// Dates have no fraction of a second, so much is added at one instant.
    pub whole_seconds: bool,
}

#[derive(Debug)]
pub(super) struct Model {
    pub style: Style,
    clock: DateTime<Utc>,
    /// Names and dates, in the order in which they were added.
    objects: Vec<(String, DateTime<Utc>)>,
    shared: HashMap<String, RemainingPages>,
    tokens: usize,
}

/// The rest of a run of pages behind one token, and the parameters that it was asked with.
#[derive(Debug)]
struct RemainingPages {
    objects: Vec<(String, DateTime<Utc>)>,
    params: Vec<(String, String)>,
}

impl Model {
    pub(super) fn new(style: Style) -> Self {
        Model {
            style,
            clock: DateTime::default(),
            objects: Vec::new(),
            shared: HashMap::new(),
            tokens: 0,
        }
    }

    /// Adds objects at one instant, `later` after the ones before.
    pub(super) fn add(&mut self, count: usize, later: TimeDelta) {
        self.clock += later;
        let date = match self.style.whole_seconds {
            true => self.clock.trunc_subsecs(0),
            false => self.clock,
        };
        for _ in 0..count {
            self.objects.push((format!("n{}", self.objects.len()), date));
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.objects.iter().map(|(name, _)| name)
    }

    /// The names of the objects that were added up to a date.
    pub(super) fn up_to(&self, date: &str) -> Vec<&String> {
        let date = AddedAt::parse(date).unwrap().at;
        let before = self.objects.iter().filter(|(_, added)| *added <= date);
        before.map(|(name, _)| name).collect()
    }

    /// The date of the latest objects, and the smallest step that a server with dates like this can tell apart.
    pub(super) fn last_instant(&self) -> (DateTime<Utc>, TimeDelta) {
        let (_, date) = self.objects.last().unwrap();
        let step = match date.timestamp_subsec_micros() {
            0 => TimeDelta::seconds(1),
            micros if micros % 1_000 == 0 => TimeDelta::milliseconds(1),
            _ => TimeDelta::microseconds(1),
        };
        (*date, step)
    }

    /// A restart.
    pub(super) fn forget_tokens(&mut self) {
        self.shared.clear();
    }

    pub(super) fn reply(&mut self, asked: &RecordedRequest) -> Reply {
        if asked.is_manifest() {
            return self.manifest(asked);
        }
        let limit: usize = asked.param("limit").unwrap().parse().unwrap();
        let size = limit.min(self.style.cap);
        if self.style.paging == Paging::Shared {
            return self.shared_page(asked, size);
        }
        let all = self.after(asked.param("added_after").as_deref());
        let at = asked.param("next").map(|next| next.parse::<usize>().unwrap());
        let from = match (self.style.paging, at) {
            (_, None) => 0,
            (Paging::PageNumber, Some(number)) => number * size,
            (Paging::Overlap, Some(at)) => at.saturating_sub(1),
            (_, Some(at)) => at,
        };
        let to = (from + size).min(all.len());
        let more = to < all.len();
        let next = match self.style.paging {
            Paging::Date => None,
            // A page of one object would only repeat the last one.
            Paging::Overlap if size == 1 => Some(to + 1),
            Paging::PageNumber => Some(from / size + 1),
            Paging::Offset | Paging::Overlap | Paging::Shared => Some(to),
        };
        let next = next.filter(|_| more).map(|next| next.to_string());
        self.page(all.get(from..to).unwrap_or_default(), more, next.as_deref())
    }

    pub(super) fn after(&self, added_after: Option<&str>) -> Vec<(String, DateTime<Utc>)> {
        let after = added_after.map(|text| AddedAt::parse(text).unwrap().at);
        let shown = |date: DateTime<Utc>| match after {
            None => true,
            Some(after) => date > after || (self.style.inclusive && date == after),
        };
        let all = self.objects.iter().filter(|(_, date)| shown(*date));
        all.cloned().collect()
    }

    fn shared_page(&mut self, asked: &RecordedRequest, size: usize) -> Reply {
        let params = params(&asked.url);
        let (token, mut rest) = match asked.param("next") {
            None => {
                self.tokens += 1;
                let objects = self.after(asked.param("added_after").as_deref());
                (
                    format!("token-{}", self.tokens),
                    RemainingPages { objects, params },
                )
            }
            Some(token) => match self.shared.remove(&token) {
                Some(rest) if rest.params == params => (token, rest),
                _ => return answer(400, &[], r#"{"title":"ProcessingError"}"#),
            },
        };
        let later = rest.objects.split_off(size.min(rest.objects.len()));
        let shown = std::mem::replace(&mut rest.objects, later);
        let more = !rest.objects.is_empty();
        let reply = self.page(&shown, more, Some(&token).filter(|_| more).map(String::as_str));
        if more {
            self.shared.insert(token, rest);
        }
        reply
    }

    fn page(&self, shown: &[(String, DateTime<Utc>)], more: bool, next: Option<&str>) -> Reply {
        let (Some(first), Some(last)) = (shown.first(), shown.last()) else {
            return page("{}");
        };
        let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
        let next = next.map_or_else(String::new, |next| format!(r#","next":"{next}""#));
        let body = envelope(&names, &format!(r#","more":{more}{next}"#));
        match self.style.dates {
            Dates::Headers => dated(&body, &self.text(first.1), &self.text(last.1)),
            Dates::AbsurdHeaders => dated(&body, ABSURD, ABSURD),
            Dates::Manifest | Dates::Nowhere => page(&body),
        }
    }

    fn manifest(&self, asked: &RecordedRequest) -> Result<OutboundResponse, OutboundError> {
        let id = asked.param("match[id]").unwrap();
        let name = id.trim_start_matches("indicator--");
        let found = self.objects.iter().find(|(known, _)| known == name);
        let (Dates::Manifest | Dates::AbsurdHeaders, Some((_, date))) = (self.style.dates, found) else {
            return answer(404, &[], "");
        };
        let version = "2024-01-01T00:00:00.000Z";
        page(&format!(
            r#"{{"objects":[{{"id":"{id}","version":"{version}","date_added":"{}"}}]}}"#,
            self.text(*date)
        ))
    }

    fn text(&self, date: DateTime<Utc>) -> String {
        let form = match self.style.whole_seconds {
            true => SecondsFormat::Secs,
            false => SecondsFormat::Micros,
        };
        date.to_rfc3339_opts(form, true)
    }
}

/// The parameters that must stay the same, as medallion compares them.
fn params(url: &Url) -> Vec<(String, String)> {
    let pairs = url.query_pairs().into_owned();
    pairs
        .filter(|(name, _)| name != "next" && name != "limit")
        .collect()
}
