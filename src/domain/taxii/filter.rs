//! Which objects a collection holds.
//!
//! Rule: each condition that is set must hold, and a condition that is a list holds if one of its entries does. A filter
//! narrows what a caller may see and never widens it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::confidence::Confidence;
use crate::domain::error::DomainError;
use crate::domain::narrowing::{SourceName, fold_source, is_stix_type};
use crate::domain::or_default;
use crate::domain::tlp::{Tlp, TlpInput};

/// Most entries of a list.
pub const MAX_ENTRIES: usize = 100;
/// Longest source, in characters.
const MAX_SOURCE: usize = 500;

/// The conditions of a collection; by default none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionFilter {
    /// Types of STIX objects; `relationship` is one of them.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schema(max_items = 100, example = json!(["indicator", "ipv4-addr"]))]
    pub types: Vec<String>,
    /// Sources as the nodes name them, in any case. A relationship is held if both its ends have one of them.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schema(value_type = Vec<SourceName>, max_items = 100)]
    pub sources: Vec<String>,
    /// Feeds that brought the object.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schema(max_items = 100)]
    pub feeds: Vec<Uuid>,
    /// Markings.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schema(value_type = Vec<TlpInput>, max_items = 100)]
    pub markings: Vec<Tlp>,
    /// Least confidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub min_confidence: Option<Confidence>,
    /// A recall session of the administrator: its results as they were when it was set, and the relationships between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session: Option<Uuid>,
    /// The results of the session.
    #[serde(skip)]
    pub session_nodes: Vec<Uuid>,
}

/// What a filter asks of an object.
#[derive(Debug, Clone, Copy)]
pub struct ObjectFacts<'a> {
    pub stix_type: &'a str,
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
    /// The feeds that brought it.
    pub feeds: &'a [Uuid],
    /// The node that it is, or the two that it joins, with their sources.
    pub nodes: &'a [(Uuid, &'a str)],
}

impl CollectionFilter {
    /// Checks what needs no look-up, and brings the lists into their normal form.
    ///
    /// # Errors
    /// Names the field and the rule that it breaks.
    pub fn check(mut self) -> Result<Self, DomainError> {
        let lists = [
            ("types", self.types.len()),
            ("sources", self.sources.len()),
            ("feeds", self.feeds.len()),
            ("markings", self.markings.len()),
        ];
        if let Some((name, _)) = lists.iter().find(|(_, entries)| *entries > MAX_ENTRIES) {
            let rule = format!("must have at most {MAX_ENTRIES} entries");
            return Err(DomainError::invalid(format!("filter.{name}"), rule));
        }
        if let Some(place) = self.types.iter().position(|name| !is_stix_type(name)) {
            let rule = "must be the name of a STIX type, such as report or ipv4-addr";
            return Err(DomainError::invalid(format!("filter.types[{place}]"), rule));
        }
        for (place, source) in self.sources.iter_mut().enumerate() {
            *source = source.trim().to_owned();
            if !(1..=MAX_SOURCE).contains(&source.chars().count()) || source.contains('\0') {
                let rule = format!("must have from 1 to {MAX_SOURCE} characters, none of them NUL");
                return Err(DomainError::invalid(format!("filter.sources[{place}]"), rule));
            }
        }
        self.markings.sort_unstable();
        self.markings.dedup();
        Ok(self)
    }

    /// Whether the collection may hold objects with this marking.
    pub fn allows_marking(&self, tlp: Tlp) -> bool {
        self.markings.is_empty() || self.markings.contains(&tlp)
    }

    /// Whether the collection may hold objects of this STIX type.
    pub fn allows_type(&self, stix_type: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|allowed| allowed == stix_type)
    }

    /// Whether the collection holds an object.
    pub fn admits(&self, object: &ObjectFacts<'_>) -> bool {
        let is_source = |source: &str| {
            let source = fold_source(source);
            self.sources.iter().any(|allowed| fold_source(allowed) == source)
        };
        let mut nodes = object.nodes.iter();
        self.allows_type(object.stix_type)
            && self.allows_marking(object.tlp)
            && (self.feeds.is_empty() || object.feeds.iter().any(|feed| self.feeds.contains(feed)))
            && self
                .min_confidence
                .is_none_or(|least| object.confidence >= least.value())
            && nodes.all(|(id, source)| {
                (self.sources.is_empty() || is_source(source))
                    && (self.session.is_none() || self.session_nodes.contains(id))
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NODE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);
    const FEED: Uuid = Uuid::from_u128(3);

    fn filter(value: Value) -> CollectionFilter {
        let read: CollectionFilter = serde_json::from_value(value).unwrap();
        let mut filter = read.check().unwrap();
        filter.session_nodes = filter.session.map(|_| NODE).into_iter().collect();
        filter
    }

    #[test]
    fn each_condition_that_is_set_must_hold() {
        let node = ObjectFacts {
            stix_type: "tool",
            tlp: Tlp::Green,
            confidence: 0.5,
            feeds: &[FEED],
            nodes: &[(NODE, "The Source")],
        };
        let edge = ObjectFacts {
            stix_type: "relationship",
            nodes: &[(NODE, "The Source"), (OTHER, "Another")],
            ..node
        };
        for (given, of_node, of_edge) in [
            (json!({}), true, true),
            (json!({"types": ["tool"]}), true, false),
            (json!({"types": ["tool", "relationship"]}), true, true),
            (json!({"types": ["report"]}), false, false),
            (json!({"sources": [" the SOURCE "]}), true, false),
            (json!({"sources": ["the source", "another"]}), true, true),
            (json!({"sources": ["another"]}), false, false),
            (json!({"feeds": [FEED]}), true, true),
            (json!({"feeds": [NODE]}), false, false),
            (json!({"markings": ["TLP:WHITE", "green"]}), true, true),
            (json!({"markings": ["TLP:RED"]}), false, false),
            (json!({"min_confidence": 0.5}), true, true),
            (json!({"min_confidence": 0.6}), false, false),
            (json!({"session": OTHER}), true, false),
            (json!({"types": ["tool"], "markings": ["TLP:RED"]}), false, false),
        ] {
            let filter = filter(given.clone());
            assert_eq!(filter.admits(&node), of_node, "node {given}");
            assert_eq!(filter.admits(&edge), of_edge, "relationship {given}");
        }
    }

    #[test]
    fn an_error_names_the_entry_and_the_rule() {
        let many: Vec<Uuid> = (0..=MAX_ENTRIES as u128).map(Uuid::from_u128).collect();
        for (given, field) in [
            (json!({"types": ["tool", "No Type"]}), "filter.types[1]"),
            (json!({"sources": [" "]}), "filter.sources[0]"),
            (json!({"sources": ["a\0"]}), "filter.sources[0]"),
            (json!({"feeds": many}), "filter.feeds"),
        ] {
            let read: CollectionFilter = serde_json::from_value(given.clone()).unwrap();
            let error = read.check().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: must ")), "{given}: {error}");
        }
        assert!(serde_json::from_value::<CollectionFilter>(json!({"type": ["tool"]})).is_err());
    }
}
