//! Sharing and confidence of an event: distribution, TLP tags and confidence tags.
//!
//! Invariant: a marking is the most restrictive of the distribution and the TLP tags that apply, including those of
//! the enclosing event and object. An undefined marking is refused, never replaced by a default.

use super::wire::{Distribution, Tag};
use crate::domain::tlp::{Tlp, level_of_tag};

/// The meaning of a set of tags.
#[derive(Debug, Clone, Default)]
pub(super) struct Tags {
    pub tlp: Option<Tlp>,
    pub confidence: Option<f64>,
    /// Tags that are neither a marking nor a galaxy cluster.
    pub labels: Vec<String>,
    /// Galaxy clusters named by tags.
    pub clusters: Vec<ClusterTag>,
}

/// `misp-galaxy:threat-actor="Sofacy"`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClusterTag {
    pub kind: String,
    pub value: String,
    pub tag: String,
}

/// A tag that starts with `tlp:` but names no TLP level.
#[derive(Debug, PartialEq)]
pub(super) struct UnknownMarking(pub String);

/// Reads tags.
///
/// # Errors
/// The first undefined TLP tag.
pub(super) fn read_tags<'t>(tags: impl IntoIterator<Item = &'t Tag>) -> Result<Tags, UnknownMarking> {
    let mut read = Tags::default();
    for Tag(name) in tags {
        if let Some(level) = tlp_of(name)? {
            read.tlp = read.tlp.max(Some(level));
        } else if let Some(cluster) = cluster_of(name) {
            read.clusters.push(cluster);
        } else {
            if let Some(confidence) = confidence_of(name) {
                read.confidence = Some(read.confidence.map_or(confidence, |known| known.max(confidence)));
            }
            if !read.labels.contains(name) {
                read.labels.push(name.clone());
            }
        }
    }
    Ok(read)
}

/// The level that a tag states; `None` for tags about something else.
fn tlp_of(tag: &str) -> Result<Option<Tlp>, UnknownMarking> {
    level_of_tag(tag).transpose().map_err(|_| {
        let shown: String = tag.chars().take(60).collect();
        UnknownMarking(shown)
    })
}

fn cluster_of(tag: &str) -> Option<ClusterTag> {
    let (kind, value) = tag.strip_prefix("misp-galaxy:")?.split_once('=')?;
    let value = value.trim().trim_matches('"').trim();
    (!kind.trim().is_empty() && !value.is_empty()).then(|| ClusterTag {
        kind: kind.trim().to_owned(),
        value: value.to_owned(),
        tag: tag.to_owned(),
    })
}

/// The numerical value of a `confidence-level` tag of the MISP taxonomy.
fn confidence_of(tag: &str) -> Option<f64> {
    let level = tag.trim().strip_prefix("misp:confidence-level=")?;
    match level.trim().trim_matches('"') {
        "completely-confident" => Some(1.0),
        "usually-confident" => Some(0.75),
        "fairly-confident" => Some(0.5),
        "rarely-confident" => Some(0.25),
        "unconfident" => Some(0.0),
        _ => None,
    }
}

/// The strictest level along a chain of distributions: attribute, object, event. 0 is RED, 1 is AMBER; 2, 3 and 4 are
/// the default. 5 and an absent distribution inherit; if nothing is stated, the default applies.
///
/// # Errors
/// An unreadable distribution.
pub(super) fn of_distribution(
    chain: impl IntoIterator<Item = Distribution>,
    default: Tlp,
) -> Result<Tlp, &'static str> {
    let mut strictest = None;
    for distribution in chain {
        let level = match distribution {
            Distribution::Absent | Distribution::Level(5) => None,
            Distribution::Level(0) => Some(Tlp::Red),
            Distribution::Level(1) => Some(Tlp::Amber),
            Distribution::Level(_) => Some(default),
            Distribution::Unreadable => return Err("must be a number from 0 to 5"),
        };
        strictest = strictest.max(level);
    }
    Ok(strictest.unwrap_or(default))
}
