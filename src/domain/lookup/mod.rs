//! Look-up of a list of values: which of them are known, and how.
//!
//! Rules:
//! - A value is answered once, under the spelling that came first, however often and in whatever spelling it comes.
//! - Whether a value is known is judged by its normal form, the same as on every way in.
//! - A value that no rule recognises is looked up as it is; if nothing carries it, it is no indicator, with the reason.

mod asked;
mod carried;
mod parents;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

pub use self::asked::{AskedList, AskedValue, MAX_TEXT, MAX_VALUE, MAX_VALUES, read_text, read_values};
pub use self::carried::{carries, other_digests};
pub use self::parents::{Parent, host_of, parents_of};
use super::confidence::Confidence;
use super::kinds::EntityKind;
use super::memory::view::{EntityView, NoteSummary};
use super::node::{NodeStatus, NodeType, wire_enum};
use super::tlp::Tlp;

/// Most nodes that a value is answered with; `more_hits` says whether there are more.
pub const MAX_HITS: usize = 10;
/// Most notes that an entity is told with.
pub const MAX_NOTES: usize = 10;
/// Most nodes that a hit indicates.
pub const MAX_INDICATED: usize = 10;

wire_enum! {
    /// What a look-up says of a value. `contained`: a known network contains it, or it is a network that contains what is
    /// known. `parent`: its host, or a domain above it, is known. `listed`: it is not known, and on a warninglist.
    Verdict, "known, contained, parent, listed, unknown, invalid" {
        Known = "known",
        Contained = "contained",
        Parent = "parent",
        Listed = "listed",
        Unknown = "unknown",
        Invalid = "invalid",
    }
}

wire_enum! {
    /// How a node has to do with a value. `value`: it is its own. `same_file`: another hash of the same file. `network`: a
    /// network that contains it. `inside`: what lies inside the network that was asked for. `host`: the host of the URL, or of
    /// the e-mail address. `parent_domain`: a domain above it, up to the registered one.
    LookupMatch, "value, same_file, network, inside, host, parent_domain" {
        Value = "value",
        SameFile = "same_file",
        Network = "network",
        Inside = "inside",
        Host = "host",
        ParentDomain = "parent_domain",
    }
}

impl LookupMatch {
    /// What a value is for which a node was found so.
    pub fn verdict(self) -> Verdict {
        match self {
            LookupMatch::Value | LookupMatch::SameFile => Verdict::Known,
            LookupMatch::Network | LookupMatch::Inside => Verdict::Contained,
            LookupMatch::Host | LookupMatch::ParentDomain => Verdict::Parent,
        }
    }
}

/// What is said of one value.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LookupResult<H> {
    /// As it came first.
    #[schema(example = "hxxp://evil[.]example/a")]
    pub sent: String,
    /// Its normal form; null if it is no indicator.
    #[schema(required, example = "http://evil.example/a")]
    pub value: Option<String>,
    /// Its kind; null if it is no indicator, or of a kind that no rule recognises.
    #[schema(required)]
    pub kind: Option<EntityKind>,
    /// How often it came, in whatever spelling.
    #[schema(example = 1)]
    pub count: u64,
    pub verdict: Verdict,
    /// Why it is no indicator.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// The warninglists that it is on: lists of what is harmless, or shared by many.
    pub warninglists: Vec<String>,
    /// The closest first.
    pub hits: Vec<H>,
    /// Whether there are more hits than these.
    #[schema(example = false)]
    pub more_hits: bool,
}

/// A node that has to do with a value.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LookupHit {
    pub id: Uuid,
    pub node_type: NodeType,
    #[schema(example = "evil.example")]
    pub name: String,
    #[serde(rename = "match")]
    pub matched: LookupMatch,
    /// What of the node matched: its value, its network, its domain.
    #[schema(example = "evil.example")]
    pub value: String,
    pub tlp: Tlp,
    pub status: NodeStatus,
    /// 0 to 1.
    #[schema(value_type = Confidence)]
    pub confidence: f64,
    /// As the source states it; null if it does not.
    #[schema(required, example = "2026-01-02T03:04:05Z")]
    pub first_seen: Option<String>,
    /// As the source states it; null if it does not.
    #[schema(required, example = "2026-02-03T04:05:06Z")]
    pub last_seen: Option<String>,
    pub ingested_at: DateTime<Utc>,
    /// The sources of the node and of its evidence.
    #[schema(example = json!(["Example Feed"]))]
    pub sources: Vec<String>,
    /// The actors, malware, tools and campaigns that it indicates, one relationship away, the surest first.
    pub indicates: Vec<Indicated>,
    /// Whether it indicates more than these.
    #[schema(example = false)]
    pub more_indicated: bool,
}

/// An entity that has to do with a value.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EntityHit {
    #[serde(flatten)]
    pub entity: EntityView,
    #[serde(rename = "match")]
    pub matched: LookupMatch,
    /// What of the entity matched: its value, its network, its domain.
    #[schema(example = "evil.example")]
    pub value: String,
    /// The newest notes that mention it, at most 10, superseded ones excluded. The context of each is its beginning.
    pub notes: Vec<NoteSummary>,
}

/// What a look-up among entities found.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LookupOfEntities {
    /// In the order given, each value once.
    pub results: Vec<LookupResult<EntityHit>>,
    pub summary: LookupSummary,
}

/// What a node indicates.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Indicated {
    pub id: Uuid,
    pub node_type: NodeType,
    #[schema(example = "APT28")]
    pub name: String,
    /// The type of the STIX object, if the node came as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "intrusion-set")]
    pub stix_type: Option<String>,
    #[schema(example = "indicates")]
    pub relationship: String,
    pub tlp: Tlp,
}

/// How many of the values, each counted once, have which verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct LookupSummary {
    #[schema(example = 1)]
    pub known: u64,
    #[schema(example = 0)]
    pub contained: u64,
    #[schema(example = 0)]
    pub parent: u64,
    #[schema(example = 0)]
    pub listed: u64,
    #[schema(example = 0)]
    pub unknown: u64,
    #[schema(example = 0)]
    pub invalid: u64,
}

impl LookupSummary {
    /// Counts these verdicts.
    pub fn of(verdicts: impl Iterator<Item = Verdict>) -> Self {
        let mut summary = Self::default();
        for verdict in verdicts {
            *match verdict {
                Verdict::Known => &mut summary.known,
                Verdict::Contained => &mut summary.contained,
                Verdict::Parent => &mut summary.parent,
                Verdict::Listed => &mut summary.listed,
                Verdict::Unknown => &mut summary.unknown,
                Verdict::Invalid => &mut summary.invalid,
            } += 1;
        }
        summary
    }
}

impl<H> LookupResult<H> {
    /// What is said of a value with these hits, the closest first.
    pub fn new(
        asked: AskedValue,
        warninglists: Vec<String>,
        mut hits: Vec<H>,
        matched: impl Fn(&H) -> LookupMatch,
    ) -> Self {
        let closest = hits.iter().map(|hit| matched(hit).verdict()).min();
        let (value, reason) = match asked.reason {
            Some(reason) if closest.is_none() && warninglists.is_empty() => (None, Some(reason)),
            _ => (Some(asked.value), None),
        };
        let verdict = match closest {
            Some(verdict) => verdict,
            None if value.is_none() => Verdict::Invalid,
            None if warninglists.is_empty() => Verdict::Unknown,
            None => Verdict::Listed,
        };
        let more_hits = hits.len() > MAX_HITS;
        hits.truncate(MAX_HITS);
        Self {
            sent: asked.sent,
            value,
            kind: asked.kind,
            count: asked.count,
            verdict,
            reason,
            warninglists,
            hits,
            more_hits,
        }
    }
}
