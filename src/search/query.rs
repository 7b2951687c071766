//! One search in one workspace: named nodes, the two legs, and the final ranking.

pub(super) mod calibration;
pub(super) mod floor;
pub(super) mod fusion;
pub(super) mod identifiers;
pub(super) mod phrases;
pub(super) mod rare;
pub(super) mod reasons;
pub(super) mod votes;

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use self::floor::SCORE_FLOOR;
use self::phrases::find_named;
use self::reasons::Reasons;
use self::votes::{Voters, Votes};
use super::document::{CompiledFilter, Hit, KeyHit, KeyKind, Mode};
use super::error::SearchError;
use super::keyword::{Keywords, TextScope};
use super::vectors::rows::scale_of;
use super::vectors::table::Table;
use crate::capacity::search_pool;
use crate::domain::why::{MatchedBy, Shares};

/// Candidates that each leg contributes to a blended search.
const DEPTH: usize = 100;
/// Number of nodes from which the two legs run side by side: below, a thread costs more than it saves.
const MANY_NODES: usize = 300_000;

/// A search request.
pub(super) struct Query<'a> {
    pub(super) text: &'a str,
    pub(super) vector: Option<&'a [i8]>,
    pub(super) mode: Mode,
    pub(super) allowed: &'a CompiledFilter,
    pub(super) limit: usize,
    /// Whether to say why.
    pub(super) explain: bool,
    /// Whether the floor of scores was fitted to the cosines of the model.
    pub(super) has_floor: bool,
}

/// The results of a search, and why they are there.
#[derive(Debug)]
pub struct SearchResults {
    /// Sorted best first.
    pub hits: Vec<Hit>,
    /// What passages said for nodes, as far as they were asked.
    pub votes: Votes,
    /// Why each result was found, if that was asked for.
    pub reasons: Reasons,
    /// The lowest score of what is likely an answer.
    pub floor: f32,
}

impl Default for SearchResults {
    fn default() -> Self {
        SearchResults {
            hits: Vec::new(),
            votes: Votes::new(),
            reasons: Reasons::new(),
            floor: SCORE_FLOOR,
        }
    }
}

impl From<Vec<Hit>> for SearchResults {
    fn from(hits: Vec<Hit>) -> Self {
        SearchResults {
            hits,
            ..SearchResults::default()
        }
    }
}

/// Runs a search.
pub(super) fn answer(
    asked: &Query<'_>,
    keywords: &Keywords<'_>,
    table: &Table,
) -> Result<SearchResults, SearchError> {
    if asked.limit == 0 {
        return Ok(SearchResults::default());
    }
    let mut found = match (asked.mode, asked.vector) {
        (Mode::Vector, None) => return Err(SearchError::NoQueryVector),
        (Mode::Vector, Some(vector)) => by_vector(vector, asked, table),
        (Mode::Keyword, _) | (Mode::Blended, None) => by_words(asked, keywords)?,
        (Mode::Blended, Some(vector)) => by_both(vector, asked, keywords, table)?,
    };
    found.hits.truncate(asked.limit);
    Ok(found)
}

fn by_vector(vector: &[i8], asked: &Query<'_>, table: &Table) -> SearchResults {
    let near = table.nearest(vector, asked.allowed, asked.limit);
    let hit = |(node_id, cosine): (Uuid, f32)| Hit {
        node_id,
        score: cosine.clamp(0.0, 1.0),
        matched: MatchedBy::Meaning,
    };
    let mut found = SearchResults::from(near.into_iter().map(hit).collect::<Vec<_>>());
    if asked.explain {
        found.reasons = reasons::of_meaning(&found.hits);
    }
    // Whoever asks for meaning alone is given the cosines to judge by.
    found.floor = 0.0;
    found
}

fn by_words(asked: &Query<'_>, keywords: &Keywords<'_>) -> Result<SearchResults, SearchError> {
    let named = find_named(asked.text, asked.allowed, keywords)?;
    let words = keywords.weigh_terms(asked.text, &named.mentions)?;
    let found = keywords.best(TextScope::Nodes, &words, asked.allowed, asked.limit)?;
    let weight = keywords.query_weight(&words, asked.allowed, None)?;
    let mut found = SearchResults::from(fusion::keyword_only(&found, &named, &weight));
    if asked.explain {
        found.reasons = reasons::of_named(&found.hits, asked.text, &named, |_| Shares::WORDS);
    }
    Ok(found)
}

fn by_both(
    vector: &[i8],
    asked: &Query<'_>,
    keywords: &Keywords<'_>,
    table: &Table,
) -> Result<SearchResults, SearchError> {
    let depth = DEPTH.max(asked.limit);
    let named = find_named(asked.text, asked.allowed, keywords)?;
    let vector = table.without(vector, named.mentions_only());
    let voters = Voters {
        allowed: asked.allowed,
        table,
    };
    let votes = table.count(&voters) > 0;
    let words = || {
        let words = keywords.weigh_terms(asked.text, &named.mentions)?;
        let query_weight = keywords.query_weight(&words, asked.allowed, votes.then_some(&voters))?;
        let leg = Leg {
            nodes: keywords.best(TextScope::Nodes, &words, asked.allowed, depth)?,
            passages: match votes {
                true => keywords.best(TextScope::Passages, &words, &voters, votes::DEPTH)?,
                false => Vec::new(),
            },
        };
        Ok::<_, SearchError>((leg, query_weight))
    };
    let meaning = || Leg {
        nodes: table.nearest(&vector, asked.allowed, depth),
        passages: match votes {
            true => table.nearest_passages(&vector, &voters, votes::DEPTH),
            false => Vec::new(),
        },
    };
    let threads = (table.len() >= MANY_NODES).then(search_pool).flatten();
    let (found, near) = match threads {
        None => (words(), meaning()),
        Some(threads) => threads.join(words, meaning),
    };
    let (found, query_weight) = found?;
    let mentioned = named.mentions_only().collect();
    let scale = scale_of(&vector);
    let cosine = |row| table.cosine(row, &vector, scale);
    let votes = votes::count(&found.passages, &near.passages, &voters, &mentioned, cosine);
    let legs = fusion::Legs {
        keyword: &found.nodes,
        vector: &near.nodes,
        votes: &votes,
        query_weight: &query_weight,
        has_floor: asked.has_floor,
    };
    let blend = fusion::blend(&legs, &named, depth, cosine);
    let shares = asked.explain.then(|| blend.shares(&legs));
    let mut found = SearchResults::from(blend.into_hits());
    if let Some(shares) = shares {
        let of = |node: Uuid| shares.get(&node).copied().unwrap_or_default();
        found.reasons = reasons::of_named(&found.hits, asked.text, &named, of);
    }
    found.votes = votes;
    Ok(found)
}

/// What one leg of a blended search found.
struct Leg {
    nodes: Vec<(Uuid, f32)>,
    passages: Vec<(Uuid, f32)>,
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
    let mut kinds: HashMap<Uuid, KeyKind> = HashMap::new();
    for hit in found {
        let strength = match hit.kind {
            KeyKind::Identifier | KeyKind::Name => 1.0,
            KeyKind::Alias => 0.9,
        };
        *scores.entry(hit.node_id).or_default() += strength / keys;
        let kind = kinds.entry(hit.node_id).or_insert(hit.kind);
        *kind = hit.kind.max(*kind);
    }
    let hit = |(node_id, score): (Uuid, f32)| Hit {
        node_id,
        score: score.min(1.0),
        matched: kinds.get(&node_id).copied().unwrap_or(KeyKind::Alias).into(),
    };
    let mut hits: Vec<Hit> = scores.into_iter().map(hit).collect();
    hits.sort_unstable_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.node_id.cmp(&b.node_id))
    });
    hits
}
