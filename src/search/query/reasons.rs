//! Why a search found its results: the parts of each score, and the name that stands in the query.

use std::collections::HashMap;

use uuid::Uuid;

use super::phrases::{NameMatches, phrase_words};
use crate::domain::why::{Match, NamedBy, Shares};
use crate::search::document::{Hit, KeyHit, KeyKind};
use crate::search::text::refang;

/// Why a node is a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reason {
    pub shares: Shares,
    pub matched: Option<Match>,
}

/// The reasons of each result.
pub type Reasons = HashMap<Uuid, Reason>;

impl From<KeyKind> for NamedBy {
    fn from(kind: KeyKind) -> Self {
        match kind {
            KeyKind::Alias => NamedBy::Alias,
            KeyKind::Name => NamedBy::Name,
            KeyKind::Identifier => NamedBy::Identifier,
        }
    }
}

/// The reasons of results with these shares in a search that looked for names.
pub(super) fn of_named(
    hits: &[Hit],
    text: &str,
    named: &NameMatches,
    shares: impl Fn(Uuid) -> Shares,
) -> Reasons {
    let refanged = refang(text);
    let words = phrase_words(&refanged);
    let reason = |hit: &Hit| {
        let reason = Reason {
            shares: shares(hit.node_id),
            matched: match_of(text, &words, named, hit.node_id),
        };
        (hit.node_id, reason)
    };
    hits.iter().map(reason).collect()
}

/// The name or identifier of a node that stands in a text of these words.
fn match_of(text: &str, words: &[&str], named: &NameMatches, node: Uuid) -> Option<Match> {
    let exact = named.nodes.get(&node)?;
    if let Some(kind) = exact.whole {
        return Some(Match {
            kind: kind.into(),
            text: text.trim().to_owned(),
        });
    }
    let phrase = exact.phrase?;
    let words = words.get(phrase.start..phrase.start + phrase.length)?;
    Some(Match {
        kind: phrase.kind.into(),
        text: words.join(" "),
    })
}

/// The reasons of nodes that carry keys: of several keys the one that is carried in the strongest way.
pub(in crate::search) fn of_keys(found: &[KeyHit], keys: &[&str]) -> Reasons {
    let mut best: HashMap<Uuid, KeyHit> = HashMap::new();
    for hit in found {
        let known = best.entry(hit.node_id).or_insert(*hit);
        if hit.kind > known.kind {
            *known = *hit;
        }
    }
    let reason = |(node, hit): (Uuid, KeyHit)| {
        let matched = keys.get(hit.key).map(|key| Match {
            kind: hit.kind.into(),
            text: (*key).to_owned(),
        });
        let shares = Shares::WORDS;
        (node, Reason { shares, matched })
    };
    best.into_iter().map(reason).collect()
}

/// The reasons of results that are there by meaning alone.
pub(super) fn of_meaning(hits: &[Hit]) -> Reasons {
    let reason = || Reason {
        shares: Shares::MEANING,
        matched: None,
    };
    hits.iter().map(|hit| (hit.node_id, reason())).collect()
}
