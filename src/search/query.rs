//! One search in one workspace: named nodes, the two legs, and the final ranking.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::thread;

use uuid::Uuid;

use super::document::{Allowed, Hit, KeyHit, KeyKind, Mode};
use super::error::SearchError;
use super::fusion;
use super::keyword::Keywords;
use super::phrases::named;
use super::rows::scale_of;
use super::table::Table;

/// Candidates that each leg contributes to a blended search.
const DEPTH: usize = 100;
/// Number of nodes from which the two legs run side by side: below, a thread costs more than it saves.
const SIDE_BY_SIDE: usize = 100_000;

/// A search request.
pub(super) struct Query<'a> {
    pub(super) text: &'a str,
    pub(super) vector: Option<&'a [i8]>,
    pub(super) mode: Mode,
    pub(super) allowed: &'a Allowed,
    pub(super) limit: usize,
}

/// Runs a search; results are sorted best first.
pub(super) fn answer(
    asked: &Query<'_>,
    keywords: &Keywords<'_>,
    table: &RwLock<Table>,
) -> Result<Vec<Hit>, SearchError> {
    if asked.limit == 0 {
        return Ok(Vec::new());
    }
    let mut hits = match (asked.mode, asked.vector) {
        (Mode::Vector, None) => return Err(SearchError::NoQueryVector),
        (Mode::Vector, Some(vector)) => by_vector(vector, asked, &reading(table)),
        (Mode::Keyword, _) | (Mode::Blended, None) => by_words(asked, keywords)?,
        (Mode::Blended, Some(vector)) => by_both(vector, asked, keywords, table)?,
    };
    hits.truncate(asked.limit);
    Ok(hits)
}

fn reading(table: &RwLock<Table>) -> RwLockReadGuard<'_, Table> {
    table.read().unwrap_or_else(PoisonError::into_inner)
}

fn by_vector(vector: &[i8], asked: &Query<'_>, table: &Table) -> Vec<Hit> {
    let near = table.nearest(vector, asked.allowed, asked.limit);
    near.into_iter()
        .map(|(node_id, cosine)| Hit {
            node_id,
            score: cosine.clamp(0.0, 1.0),
        })
        .collect()
}

fn by_words(asked: &Query<'_>, keywords: &Keywords<'_>) -> Result<Vec<Hit>, SearchError> {
    let named = named(asked.text, asked.allowed, keywords)?;
    let found = keywords.best(asked.text, &named.mentions, asked.allowed, asked.limit)?;
    Ok(fusion::keyword_only(&found, &named))
}

fn by_both(
    vector: &[i8],
    asked: &Query<'_>,
    keywords: &Keywords<'_>,
    table: &RwLock<Table>,
) -> Result<Vec<Hit>, SearchError> {
    let depth = DEPTH.max(asked.limit);
    let named = named(asked.text, asked.allowed, keywords)?;
    let table = reading(table);
    let mentioned = named
        .nodes
        .iter()
        .filter(|(_, exact)| exact.mention)
        .map(|(node, _)| *node);
    let vector = table.without(vector, mentioned);
    let words = || keywords.best(asked.text, &named.mentions, asked.allowed, depth);
    let meaning = || table.nearest(&vector, asked.allowed, depth);
    let (found, near) = if table.len() < SIDE_BY_SIDE {
        (words()?, meaning())
    } else {
        thread::scope(|scope| {
            let words = scope.spawn(words);
            let near = meaning();
            let found = words.join();
            let failed = |_| SearchError::Index("the search by words panicked".into());
            Ok::<_, SearchError>((found.map_err(failed)??, near))
        })?
    };
    let scale = scale_of(&vector);
    Ok(fusion::blend(&found, &near, &named, depth, |node| {
        table.cosine(node, &vector, scale)
    }))
}

/// Nodes found by key: those with more of the keys, and stronger kinds, come first.
pub(super) fn by_keys(found: Vec<KeyHit>) -> Vec<Hit> {
    let keys = found
        .iter()
        .map(|hit| hit.key)
        .collect::<HashSet<_>>()
        .len()
        .max(1) as f32;
    let mut scores: HashMap<Uuid, f32> = HashMap::new();
    for hit in found {
        let strength = match hit.kind {
            KeyKind::Identifier | KeyKind::Name => 1.0,
            KeyKind::Alias => 0.9,
        };
        *scores.entry(hit.node_id).or_default() += strength / keys;
    }
    let hit = |(node_id, score): (Uuid, f32)| Hit {
        node_id,
        score: score.min(1.0),
    };
    let mut hits: Vec<Hit> = scores.into_iter().map(hit).collect();
    hits.sort_unstable_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.node_id.cmp(&b.node_id))
    });
    hits
}
