//! What gives context to the nodes found: reports, observables, identities, sightings and so on.
//!
//! Rule: they come behind every node that answers, so that they take nobody's place; only what the question as a whole names
//! stands with the nodes of that name.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::recall::{EXACT, Search};
use super::why::{GraphAnswer, RankedResults};
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::why::MatchedBy;
use crate::search::{Filter, Hit, KeyHit, Population, WorkspaceIndex};

impl GraphCore {
    /// Adds what gives context to results, as far as the limit leaves room.
    pub(super) async fn with_context(
        &self,
        search: &Search,
        found: RankedResults,
    ) -> Result<RankedResults, DomainError> {
        if found.is_final {
            return Ok(found);
        }
        let target = self.graph.index_of(search.ws).await?;
        let filter = Filter {
            population: Some(Population::Context),
            ..search.filter.clone()
        };
        if target.count(&filter.without_narrowing()) == 0 {
            return Ok(found);
        }
        let context = Search {
            filter,
            ..search.clone()
        };
        let is_full = found.hits.len() >= search.limit && !search.explain;
        let context = match is_full {
            true => named_context(context, target).await?,
            false => self.search_context(context, &target).await?,
        };
        Ok(found.followed_by(context, search.limit))
    }

    async fn search_context(
        &self,
        search: Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<RankedResults, DomainError> {
        if !search.question.identifiers().is_empty() {
            let target = Arc::clone(target);
            return blocking(move || {
                let (found, _) = search.find_identifiers(&target)?;
                Ok(search.rank_results(found, Vec::new(), GraphAnswer::default()))
            })
            .await;
        }
        let (found, _) = self.by_words_and_meaning(search.clone(), target).await?;
        Ok(search.rank_results(found, Vec::new(), GraphAnswer::default()))
    }
}

/// What the question as a whole names; there is no room for anything else.
async fn named_context(search: Search, target: Arc<WorkspaceIndex>) -> Result<RankedResults, DomainError> {
    blocking(move || {
        let found = target.lookup(&[search.question.text()], &search.filter);
        let mut found = found.map_err(index_error)?;
        found.sort_unstable_by_key(|found| (Reverse(found.kind), found.node_id));
        let hit = |found: KeyHit| Hit {
            node_id: found.node_id,
            score: EXACT,
            matched: found.kind.into(),
        };
        let hits = found.into_iter().map(hit).collect();
        Ok(RankedResults {
            hits,
            ..RankedResults::default()
        })
    })
    .await
}

impl RankedResults {
    /// These results and behind them the others, of which those that the question names as a whole come behind those of the
    /// same kind, and behind what is related to them if that is what the question asks for.
    fn followed_by(mut self, others: RankedResults, limit: usize) -> RankedResults {
        let mut known: HashSet<Uuid> = self.hits.iter().map(|hit| hit.node_id).collect();
        let new = others.hits.into_iter().filter(|hit| known.insert(hit.node_id));
        let (named, rest): (Vec<Hit>, Vec<Hit>) = new.partition(|hit| hit.score >= EXACT);
        let leads = |hit: &&Hit| hit.score >= EXACT || hit.matched == MatchedBy::Graph;
        let named_end = self.hits.iter().take_while(leads).count();
        let least = named_end.checked_sub(1).and_then(|at| self.hits.get(at));
        let named = capped(named, least.map(|hit| hit.score));
        self.hits.splice(named_end..named_end, named);
        let last = self.hits.last().map(|hit| hit.score);
        self.hits.extend(capped(rest, last));
        self.hits.truncate(limit);
        if let Some((own, others)) = self.explanation.as_mut().zip(others.explanation) {
            own.add(others);
        }
        self
    }
}

/// Hits with no score above this one.
fn capped(hits: Vec<Hit>, most: Option<f32>) -> Vec<Hit> {
    let cap = |hit: Hit| Hit {
        score: most.map_or(hit.score, |most| hit.score.min(most)),
        ..hit
    };
    hits.into_iter().map(cap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(scores: &[(u128, f32)]) -> RankedResults {
        let hit = |(id, score): &(u128, f32)| Hit {
            node_id: Uuid::from_u128(*id),
            score: *score,
            matched: MatchedBy::Words,
        };
        RankedResults {
            hits: scores.iter().map(hit).collect(),
            ..RankedResults::default()
        }
    }

    #[test]
    fn context_takes_no_place_but_that_of_its_own_name() {
        for (nodes, context, limit, want) in [
            (
                vec![(1, 0.7), (2, 0.4)],
                vec![(3, 0.8), (4, 0.3)],
                10,
                vec![1, 2, 3, 4],
            ),
            (
                vec![(1, 0.7), (2, 0.4)],
                vec![(3, 0.97), (4, 0.8)],
                10,
                vec![3, 1, 2, 4],
            ),
            (
                vec![(1, 0.97), (2, 0.4)],
                vec![(3, 0.99), (4, 0.8)],
                10,
                vec![1, 3, 2, 4],
            ),
            (vec![(1, 0.7), (2, 0.4)], vec![(2, 0.8), (3, 0.3)], 2, vec![1, 2]),
            (vec![], vec![(3, 0.8)], 10, vec![3]),
        ] {
            let found = results(&nodes).followed_by(results(&context), limit);
            let ids: Vec<u128> = found.hits.iter().map(|hit| hit.node_id.as_u128()).collect();
            assert_eq!(ids, want, "{nodes:?} {context:?}");
            assert!(
                found.hits.is_sorted_by(|a, b| a.score >= b.score),
                "{:?}",
                found.hits
            );
        }
    }
}
