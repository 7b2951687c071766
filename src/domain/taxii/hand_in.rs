//! Objects that a client hands in: an envelope, and what became of each of its objects.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::domain::feed::{BatchState, ItemStatus};
use crate::domain::stix::ingest::SkippedObject;
use crate::domain::stix::objects::{Objects, byte_ranges};

/// Most versions of one object that are taken in one after the other.
const MAX_VERSIONS: usize = 50;
/// Longest id that is told, in bytes.
const MAX_ID: usize = 300;

/// An envelope (TAXII 2.1 section 3.7): objects as JSON text.
#[derive(Debug)]
pub struct Envelope {
    text: String,
    places: Vec<Range<usize>>,
    /// One for each place.
    objects: Vec<HandedObject>,
    digest: String,
}

/// Objects of an envelope, one version of each.
#[derive(Debug)]
pub struct EnvelopePart {
    pub objects: Objects,
    /// Their ids and versions.
    pub versions: HashSet<(String, String)>,
}

/// An object of an envelope, and why it was not taken in, if it was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedObject {
    pub id: String,
    /// When it was modified, or else created, or else handed in.
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Objects that were handed in together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandIn {
    pub id: Uuid,
    /// The user who handed them in.
    pub user: Uuid,
    pub at: DateTime<Utc>,
    /// The batch in which they are reviewed; `None` if they were ingested.
    pub batch: Option<Uuid>,
    pub objects: Vec<HandedObject>,
    /// How many failed beside those that say why.
    pub unnamed_failures: u64,
}

/// The review of objects that were handed in.
#[derive(Debug, Clone)]
pub struct ReviewState {
    pub state: BatchState,
    /// Why staging them failed.
    pub error: Option<String>,
    /// The status of each object that is reviewed.
    pub items: HashMap<String, ItemStatus>,
}

/// A status resource (TAXII 2.1 section 4.3.1). A list is there if it is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandInStatus {
    pub id: Uuid,
    pub status: &'static str,
    pub request_timestamp: String,
    pub total_count: u64,
    pub success_count: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub successes: Vec<StatusDetail>,
    pub failure_count: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<StatusDetail>,
    pub pending_count: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pendings: Vec<StatusDetail>,
}

/// What a status says of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusDetail {
    pub id: String,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What an envelope has beside the objects is for pages that are read.
#[derive(Deserialize)]
struct EnvelopeBody<'a> {
    #[serde(borrow, default)]
    objects: Option<Vec<&'a RawValue>>,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

impl<'a> EnvelopeBody<'a> {
    /// The objects; none of an empty envelope. A body that has something else in their place is no envelope: what it has
    /// would be lost.
    fn objects(self) -> Result<Vec<&'a RawValue>, DomainError> {
        let of_a_page = |name: &String| ["more", "next"].contains(&name.as_str());
        match self.objects {
            Some(objects) => Ok(objects),
            None if self.others.keys().all(of_a_page) => Ok(Vec::new()),
            None => Err(DomainError::invalid(
                "objects",
                "is required: a list of STIX objects",
            )),
        }
    }
}

#[derive(Deserialize)]
struct Head {
    id: Option<String>,
    modified: Option<String>,
    created: Option<String>,
}

/// The versions of an object, oldest first: time, text and position in the envelope.
type Versions<'a> = BTreeMap<(Option<DateTime<Utc>>, &'a str), usize>;

/// A time as TAXII writes it.
pub fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

impl Envelope {
    /// Reads a body that came at `now`.
    ///
    /// # Errors
    /// It is no JSON object with a list of objects.
    pub fn read(body: Vec<u8>, now: DateTime<Utc>) -> Result<Self, DomainError> {
        let wrong =
            |cause: String| DomainError::invalid("body", format!("must be a TAXII envelope: {cause}"));
        let digest = hex::encode(Sha256::digest(&body));
        let text = String::from_utf8(body).map_err(|_| wrong("it is not UTF-8".into()))?;
        if !is_object(&text) {
            return Err(wrong("it is no JSON object".into()));
        }
        let read: EnvelopeBody<'_> = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("line {}, column {}", error.line(), error.column())))?;
        let given = read.objects()?;
        let objects = given.iter().enumerate();
        let objects = objects.map(|(place, object)| HandedObject::read(place, object.get(), now));
        let objects = objects.collect();
        let places = byte_ranges(&text, &given);
        Ok(Self {
            text,
            places,
            objects,
            digest,
        })
    }

    /// The same for the same bytes.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The newest version of each object, and what is told of all objects.
    pub fn newest(self) -> (EnvelopePart, Vec<HandedObject>) {
        let newest = self.layers().pop().unwrap_or_default();
        let part = EnvelopePart::of(self.text, &self.places, &self.objects, &newest);
        let mut handed = self.objects;
        for object in handed.iter_mut().filter(|object| object.failure.is_none()) {
            if !part.versions.contains(&object.key()) {
                object.failure = Some("a newer version is in the same envelope".into());
            }
        }
        (part, handed)
    }

    /// The objects in parts that are taken in one after the other, so that each has one version of an object at most and
    /// older ones come first; and what is told of all objects.
    pub fn by_version(self) -> (Vec<EnvelopePart>, Vec<HandedObject>) {
        let layers = self.layers();
        let mut parts = Vec::with_capacity(layers.len());
        let mut layers = layers.into_iter();
        let newest = layers.next_back();
        // Older versions are copied, so that all parts together hold no more than twice the text.
        for layer in layers {
            let (mut part, mut places) = (String::new(), vec![Range::default(); self.places.len()]);
            for at in &layer {
                if let (Some(place), Some(range)) = (places.get_mut(*at), self.places.get(*at)) {
                    let start = part.len();
                    part.push_str(self.text.get(range.clone()).unwrap_or_default());
                    *place = start..part.len();
                }
            }
            parts.push(EnvelopePart::of(part, &places, &self.objects, &layer));
        }
        if let Some(newest) = newest {
            parts.push(EnvelopePart::of(self.text, &self.places, &self.objects, &newest));
        }
        let mut handed = self.objects;
        for object in handed.iter_mut().filter(|object| object.failure.is_none()) {
            if !parts.iter().any(|part| part.versions.contains(&object.key())) {
                object.failure = Some(format!("the envelope has {MAX_VERSIONS} newer versions of it"));
            }
        }
        (parts, handed)
    }

    /// Positions of the objects, oldest version first; each version once, and the newest of all objects in the last part.
    fn layers(&self) -> Vec<Vec<usize>> {
        let mut versions: BTreeMap<&str, Versions<'_>> = BTreeMap::new();
        for (place, object) in self.objects.iter().enumerate() {
            if object.failure.is_none() {
                let time = object.version.parse().ok();
                let of_object = versions.entry(&object.id).or_default();
                of_object.entry((time, &object.version)).or_insert(place);
            }
        }
        let most = versions.values().map(BTreeMap::len).max().unwrap_or(0);
        let mut layers = vec![Vec::new(); most.min(MAX_VERSIONS)];
        for of_object in versions.into_values() {
            for (place, layer) in of_object.into_values().rev().zip(layers.iter_mut().rev()) {
                layer.push(place);
            }
        }
        for layer in &mut layers {
            layer.sort_unstable();
        }
        layers
    }
}

/// Whether a JSON text may be an object: a list is read as the fields of one otherwise.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

impl EnvelopePart {
    fn of(text: String, places: &[Range<usize>], objects: &[HandedObject], chosen: &[usize]) -> Self {
        let versions = chosen.iter().filter_map(|place| objects.get(*place));
        let places = chosen.iter().filter_map(|place| places.get(*place).cloned());
        Self {
            versions: versions.map(HandedObject::key).collect(),
            objects: Objects::read_leniently(text, places.collect()),
        }
    }
}

impl HandedObject {
    fn key(&self) -> (String, String) {
        (self.id.clone(), self.version.clone())
    }

    fn read(place: usize, text: &str, now: DateTime<Utc>) -> Self {
        let unnamed = |failure: &str| Self {
            id: format!("objects[{place}]"),
            version: timestamp(now),
            failure: Some(failure.into()),
        };
        let head = is_object(text).then(|| serde_json::from_str::<Head>(text));
        let Some(Ok(head)) = head else {
            return unnamed("must be a STIX object whose id and times are texts");
        };
        match head.id.filter(|id| !id.is_empty() && id.len() <= MAX_ID) {
            None => unnamed("id: is required"),
            Some(id) => Self {
                id: id.to_ascii_lowercase(),
                version: head.modified.or(head.created).unwrap_or_else(|| timestamp(now)),
                failure: None,
            },
        }
    }

    fn detail(&self, message: Option<&str>) -> StatusDetail {
        StatusDetail {
            id: self.id.clone(),
            version: self.version.clone(),
            message: message.or(self.failure.as_deref()).map(str::to_owned),
        }
    }
}

impl ReviewState {
    /// Whether nothing more becomes of it.
    pub fn has_failed(&self) -> bool {
        self.state == BatchState::Failed
    }
}

impl HandIn {
    /// Notes which of these versions were skipped; `total` is how many were.
    pub fn note_skipped(
        &mut self,
        versions: &HashSet<(String, String)>,
        skipped: &[SkippedObject],
        total: u64,
    ) {
        let reasons: HashMap<&str, &str> = skipped
            .iter()
            .map(|object| (object.id.as_str(), object.reason.as_str()))
            .collect();
        let mut named = HashSet::new();
        for object in self.objects.iter_mut().filter(|object| object.failure.is_none()) {
            if let Some(reason) = reasons.get(object.id.as_str())
                && versions.contains(&object.key())
            {
                object.failure = Some((*reason).to_owned());
                named.insert(object.id.clone());
            }
        }
        self.unnamed_failures += total.saturating_sub(named.len() as u64);
    }

    /// What became of the objects by now; `review` is `None` if they were ingested.
    pub fn status(&self, review: Option<&ReviewState>) -> HandInStatus {
        let (mut successes, mut failures, mut pendings) = (Vec::new(), Vec::new(), Vec::new());
        for object in &self.objects {
            let item = review.and_then(|review| review.items.get(&object.id));
            match (&object.failure, item, review.map(|review| review.state)) {
                (Some(_), _, _) => failures.push(object.detail(None)),
                (None, Some(ItemStatus::Rejected), _) => {
                    failures.push(object.detail(Some("rejected in review")));
                }
                (None, Some(ItemStatus::Pending | ItemStatus::Accepted), _)
                | (None, None, Some(BatchState::Pulling)) => pendings.push(object.detail(None)),
                (None, None, Some(BatchState::Failed)) => {
                    let error = review.and_then(|review| review.error.as_deref());
                    failures.push(object.detail(error.or(Some("staging it failed"))));
                }
                (None, Some(ItemStatus::Committed), _) | (None, None, _) => {
                    successes.push(object.detail(None));
                }
            }
        }
        let (total, pending) = (self.objects.len() as u64, pendings.len() as u64);
        let unnamed = self.unnamed_failures.min(successes.len() as u64);
        let failure_count = failures.len() as u64 + unnamed;
        if unnamed > 0 {
            (successes, failures) = (Vec::new(), Vec::new());
        }
        HandInStatus {
            id: self.id,
            status: if pending == 0 { "complete" } else { "pending" },
            request_timestamp: timestamp(self.at),
            total_count: total,
            success_count: total - pending - failure_count,
            successes,
            failure_count,
            failures,
            pending_count: pending,
            pendings,
        }
    }
}

#[cfg(test)]
mod tests;
