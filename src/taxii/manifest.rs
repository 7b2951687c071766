//! The date of one object from the manifest (section 5.3), for servers that send no date headers.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::date::{AddedAt, latest_credible};
use super::envelope::{json_of, parse};
use crate::outbound::OutboundResponse;

/// The version of an object that was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectVersion {
    pub id: String,
    /// `modified`, else `created`; objects without versions have neither.
    version: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct ObjectHead {
    id: String,
    modified: Option<String>,
    created: Option<String>,
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    objects: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    date_added: String,
    version: Option<String>,
}

impl ObjectVersion {
    pub(super) fn of(object: &RawValue) -> Option<Self> {
        let head: ObjectHead = serde_json::from_str(object.get()).ok()?;
        let version = head.modified.or(head.created);
        let version = match version {
            Some(text) => Some(AddedAt::parse(&text)?.at),
            None => None,
        };
        Some(ObjectVersion { id: head.id, version })
    }

    /// The date at which exactly this version was added, if it is credible. Another version may have been added after
    /// the page was read, and its date would claim too much. `now` stands in for a missing `Date`.
    pub(super) fn date_in(&self, answer: &OutboundResponse, now: DateTime<Utc>) -> Option<AddedAt> {
        let body = json_of(&answer.headers, &answer.body).ok()?;
        let manifest: Manifest = parse(body).ok()?;
        let is_this = |entry: &Entry| {
            let version = entry.version.as_deref().and_then(AddedAt::parse);
            entry.id == self.id && (self.version.is_none() || self.version == version.map(|date| date.at))
        };
        let latest = latest_credible(&answer.headers, now);
        let dates = manifest
            .objects
            .into_iter()
            .filter(is_this)
            .filter_map(|entry| AddedAt::parse_credible(&entry.date_added, latest));
        dates.min_by_key(|date| date.at)
    }
}
