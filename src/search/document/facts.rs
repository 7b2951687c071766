//! What a row says about its node besides its class, and the bounds that the results of a search may be given.

use chrono::{DateTime, Utc};

use crate::domain::narrowing::{Narrowing, fold_source};
use crate::search::text::fnv1a;

/// Size of the facts on disk.
pub(in crate::search) const FACTS_BYTES: usize = 29;

/// Facts about a node that results can be narrowed by. Of the source there is only a hash, so who shows results must
/// compare the source itself.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Facts {
    /// Microseconds since 1970.
    pub(in crate::search) ingested_at: i64,
    /// 0 to 1.
    pub(in crate::search) confidence: f64,
    source: u64,
    /// A hash of its STIX type; 0 if it is no STIX object.
    pub(in crate::search) stix_type: u32,
    /// What kind of node it is, or of relationship, in the codes of whoever applies the documents.
    pub(in crate::search) code: u8,
}

impl Facts {
    pub fn of(source: &str, confidence: f64, ingested_at: DateTime<Utc>) -> Self {
        Facts {
            ingested_at: ingested_at.timestamp_micros(),
            confidence,
            source: hash_of(&fold_source(source)),
            stix_type: 0,
            code: 0,
        }
    }

    /// These facts about a node of this kind.
    pub fn with_code(self, code: u8) -> Self {
        Facts { code, ..self }
    }

    /// These facts about a STIX object of this type.
    pub fn with_stix_type(self, stix_type: Option<&str>) -> Self {
        Facts {
            stix_type: stix_type.map_or(0, hash_of_type),
            ..self
        }
    }

    /// The facts about a relationship of this kind.
    pub(in crate::search) fn of_relation(code: u8, confidence: f64) -> Self {
        Facts {
            confidence,
            code,
            ..Facts::default()
        }
    }

    pub(in crate::search) fn to_bytes(self) -> [u8; FACTS_BYTES] {
        let mut bytes = [0; FACTS_BYTES];
        let own = self.ingested_at.to_le_bytes().into_iter();
        let own = own.chain(self.confidence.to_le_bytes());
        let own = own.chain(self.source.to_le_bytes());
        let own = own.chain(self.stix_type.to_le_bytes()).chain([self.code]);
        bytes.iter_mut().zip(own).for_each(|(byte, part)| *byte = part);
        bytes
    }

    pub(in crate::search) fn from_bytes(bytes: &[u8; FACTS_BYTES]) -> Option<Self> {
        let (ingested_at, rest) = bytes.split_first_chunk()?;
        let (confidence, rest) = rest.split_first_chunk()?;
        let (source, rest) = rest.split_first_chunk()?;
        let (stix_type, rest) = rest.split_first_chunk()?;
        Some(Facts {
            ingested_at: i64::from_le_bytes(*ingested_at),
            confidence: f64::from_le_bytes(*confidence),
            source: u64::from_le_bytes(*source),
            stix_type: u32::from_le_bytes(*stix_type),
            code: *rest.first()?,
        })
    }
}

fn hash_of(folded: &str) -> u64 {
    fnv1a(folded.bytes())
}

/// The hash by which rows tell a STIX type.
pub fn hash_of_type(stix_type: &str) -> u32 {
    u32::try_from(hash_of(stix_type) >> 32).unwrap_or(u32::MAX).max(1)
}

/// Bounds on the facts of a row.
#[derive(Debug, Clone)]
pub(super) struct FactBounds {
    since: i64,
    until: i64,
    confidence: f64,
    source: Option<u64>,
    /// Hashes of STIX types, one of which it has.
    stix_types: Option<Vec<u32>>,
}

impl FactBounds {
    /// The bounds that a narrowing sets, if any.
    pub(in crate::search) fn of(narrowing: &Narrowing) -> Option<Self> {
        let Narrowing {
            node_types: _,
            stix_types,
            source,
            since,
            until,
            min_confidence,
        } = narrowing;
        let is_set = stix_types.is_some()
            || source.is_some()
            || since.is_some()
            || until.is_some()
            || min_confidence.is_some();
        is_set.then(|| FactBounds {
            since: since.map_or(i64::MIN, first_microsecond),
            until: until.map_or(i64::MAX, |until| until.timestamp_micros()),
            confidence: min_confidence.unwrap_or(f64::NEG_INFINITY),
            source: source.as_ref().map(|source| hash_of(source.folded())),
            stix_types: stix_types
                .as_ref()
                .map(|types| types.iter().map(|name| hash_of_type(name)).collect()),
        })
    }

    #[inline]
    pub(in crate::search) fn admit(&self, facts: &Facts) -> bool {
        (self.since..=self.until).contains(&facts.ingested_at)
            && facts.confidence >= self.confidence
            && self.source.is_none_or(|source| source == facts.source)
            && self
                .stix_types
                .as_ref()
                .is_none_or(|types| types.contains(&facts.stix_type))
    }
}

/// The first full microsecond that is not before a time.
fn first_microsecond(time: DateTime<Utc>) -> i64 {
    let part = i64::from(!time.timestamp_subsec_nanos().is_multiple_of(1000));
    time.timestamp_micros().saturating_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowing(name: &str, text: &str) -> Narrowing {
        Narrowing::read(|other| (other == name).then_some(text)).unwrap()
    }

    fn facts(source: &str, confidence: f64, time: &str) -> Facts {
        Facts::of(source, confidence, time.parse().unwrap())
    }

    #[test]
    fn facts_survive_their_bytes() {
        let facts = facts("CERT Example", 0.35, "2024-03-01T10:20:30.123456Z")
            .with_stix_type(Some("tool"))
            .with_code(7);
        assert_eq!(Facts::from_bytes(&facts.to_bytes()), Some(facts));
    }

    #[test]
    fn bounds_are_inclusive_and_sources_have_no_case() {
        let known = facts(" CERT Ünited ", 0.5, "2024-03-01T23:59:59.999999Z");
        for (name, text, admitted) in [
            ("source", "cert ünited", true),
            ("source", "cert", false),
            ("min_confidence", "0.5", true),
            ("min_confidence", "0.500001", false),
            ("since", "2024-03-01T23:59:59.999999Z", true),
            ("since", "2024-03-01T23:59:59.9999991Z", false),
            ("since", "2024-03-02", false),
            ("since", "0001-01-01", true),
            ("until", "2024-03-01", true),
            ("until", "2024-03-01T23:59:59.999999Z", true),
            ("until", "2024-03-01T23:59:59.999998Z", false),
            ("until", "9999-12-31", true),
        ] {
            let bounds = FactBounds::of(&narrowing(name, text)).unwrap();
            assert_eq!(bounds.admit(&known), admitted, "{name}={text}");
        }
        assert!(FactBounds::of(&narrowing("node_type", "tool")).is_none());
    }
}
