//! Why results were found, put together from what the searches and the graph said.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::core::GraphCore;
use super::hits::LoadedHits;
use super::lead::put_leading_first;
use super::recall::{EXACT, Search, find_synonym_nodes, lead_with, put_related_first};
use crate::actors::indexed_store::index_error;
use crate::domain::error::DomainError;
use crate::domain::extraction::Gazetteer;
use crate::domain::principal::Workspace;
use crate::domain::question::QuestionAsked;
use crate::domain::session::{ScoredNode, Visible};
use crate::domain::why::{Evidence, Match, NamedBy, PathStep, Shares, Why};
use crate::search::{Hit, Mode, Reasons, SearchResults, StructuredQuery, WorkspaceIndex, canonical_key};
use crate::store::Link;

/// What the graph answers.
#[derive(Debug, Default)]
pub(super) struct GraphAnswer {
    /// Best first.
    pub(super) nodes: Vec<Uuid>,
    /// How the question was understood, and the path to each node, if the caller asks why.
    pub(super) question: Option<QuestionAsked>,
    pub(super) paths: HashMap<Uuid, Vec<PathStep>>,
    /// What comes first though it is no answer of the graph, best first.
    pub(super) leading: Vec<Uuid>,
    /// Whether nothing else that is related to what the question names may be added: it could be the opposite of what is
    /// asked for.
    pub(super) is_final: bool,
    /// What would be the opposite of an answer, however well its words fit.
    pub(super) barred: HashSet<Uuid>,
}

/// Results, best first, and why each was found if the caller asks.
#[derive(Debug, Default)]
pub(super) struct RankedResults {
    pub(super) hits: Vec<Hit>,
    pub(super) explanation: Option<Explanation>,
    /// See [`GraphAnswer::is_final`].
    pub(super) is_final: bool,
}

/// How a question was understood, and why its results were found.
#[derive(Debug, Default)]
pub(super) struct Explanation {
    question: Option<QuestionAsked>,
    results: HashMap<Uuid, ExplainedResult>,
}

impl Explanation {
    /// Adds the reasons of further results.
    pub(super) fn add(&mut self, others: Explanation) {
        for (node, explained) in others.results {
            self.results.entry(node).or_insert(explained);
        }
    }
}

/// Why a result was found; the texts of its passages are not read yet.
#[derive(Debug, Default)]
struct ExplainedResult {
    why: Why,
    /// The passages with their shares, strongest first.
    passages: Vec<(Uuid, f32)>,
}

impl Search {
    /// Searches by words, meaning or both.
    pub(super) fn run(
        &self,
        target: &WorkspaceIndex,
        vector: Option<&[i8]>,
        mode: Mode,
    ) -> Result<SearchResults, DomainError> {
        let (text, page) = (self.question.text(), (self.limit, self.explain));
        target
            .find(text, vector, mode, &self.filter, page)
            .map_err(index_error)
    }

    /// The nodes that have or hold the identifiers of the question, and those known under another name of what it names.
    pub(super) fn find_identifiers(
        &self,
        target: &WorkspaceIndex,
    ) -> Result<(SearchResults, Vec<Uuid>), DomainError> {
        let found = target.find_identifiers(self.question.identifiers(), &self.filter, self.limit);
        let named = find_synonym_nodes(target, self.question.text(), &self.filter)?;
        Ok((found.map_err(index_error)?, named))
    }

    /// Searches by what was found in the question.
    pub(super) fn run_structured(
        &self,
        target: &WorkspaceIndex,
        query: &StructuredQuery,
        vector: Option<&[i8]>,
    ) -> Result<SearchResults, DomainError> {
        if self.explain {
            let found = target.search_structured_explained(query, vector, &self.filter, self.limit);
            let mut found = found.map_err(index_error)?;
            as_in_question(self.question.text(), &query.keys, &mut found.reasons);
            return Ok(found);
        }
        let hits = target.search_structured(query, vector, &self.filter, self.limit);
        hits.map(SearchResults::from).map_err(index_error)
    }

    /// Puts the answers of the graph first, then the nodes known under another name, then what the search found.
    pub(super) fn rank_results(
        &self,
        found: SearchResults,
        elsewhere: Vec<Uuid>,
        graph: GraphAnswer,
    ) -> RankedResults {
        let explained = self
            .explain
            .then(|| explain_results(self.question.text(), &found, &elsewhere, &graph));
        let mut hits = found.hits;
        hits.retain(|hit| !graph.barred.contains(&hit.node_id));
        if !elsewhere.is_empty() {
            hits = lead_with(elsewhere, hits, self.limit);
        }
        hits = put_related_first(graph.nodes, hits, self.limit);
        hits = put_leading_first(&graph.leading, hits, self.limit);
        let least = self.min_score.unwrap_or(found.floor);
        hits.retain(|hit| hit.score >= least);
        RankedResults {
            hits,
            is_final: graph.is_final,
            explanation: explained.map(|results| Explanation {
                question: graph.question,
                results,
            }),
        }
    }
}

/// Tells the matches by the words that the question has: the node may carry another name of the same thing.
fn as_in_question(question: &str, keys: &[String], reasons: &mut Reasons) {
    let question = canonical_key(question);
    let stands = |key: &str| question.contains(&canonical_key(key));
    for reason in reasons.values_mut() {
        let Some(known) = reason.matched.take_if(|known| !stands(&known.text)) else {
            continue;
        };
        let names_it = |key: &&String| {
            let entry = Gazetteer::shared().resolve(key);
            stands(key) && entry.is_some_and(|entry| entry.names().any(|name| name == known.text))
        };
        reason.matched = keys.iter().find(names_it).map(|key| Match {
            kind: NamedBy::Alias,
            text: key.clone(),
        });
    }
}

/// Why each node is a result: by the search, unless another name or the graph gave it its place.
fn explain_results(
    question: &str,
    found: &SearchResults,
    elsewhere: &[Uuid],
    graph: &GraphAnswer,
) -> HashMap<Uuid, ExplainedResult> {
    let mut results: HashMap<Uuid, ExplainedResult> = HashMap::new();
    for (node, reason) in &found.reasons {
        let why = Why {
            shares: reason.shares,
            matched: reason.matched.clone(),
            ..Why::default()
        };
        let passages = votes_for(found, *node, reason.shares.evidence);
        results.insert(*node, ExplainedResult { why, passages });
    }
    let is_exact = |node: &Uuid| {
        let mut leading = found.hits.iter().take_while(|hit| hit.score >= EXACT);
        leading.any(|hit| hit.node_id == *node)
    };
    for node in elsewhere.iter().filter(|node| !is_exact(node)) {
        let matched = Match {
            kind: NamedBy::Alias,
            text: question.trim().to_owned(),
        };
        let why = Why {
            shares: Shares::WORDS,
            matched: Some(matched),
            ..Why::default()
        };
        let passages = Vec::new();
        results.insert(*node, ExplainedResult { why, passages });
    }
    for node in &graph.leading {
        // Its text states what was asked for, whatever else was found.
        let explained = results.entry(*node).or_default();
        if explained.why == Why::default() {
            explained.why.shares = Shares::WORDS;
        }
    }
    for node in &graph.nodes {
        let explained = results.entry(*node).or_default();
        explained.why.shares = Shares::GRAPH;
        explained.why.path = graph.paths.get(node).cloned().unwrap_or_default();
        explained.passages.clear();
    }
    results
}

/// The passages that voted for a node, with their parts of the share of evidence.
fn votes_for(found: &SearchResults, node: Uuid, evidence: f32) -> Vec<(Uuid, f32)> {
    let Some(vote) = found.votes.get(&node) else {
        return Vec::new();
    };
    let share = |(passage, share): &(Uuid, f32)| (*passage, evidence * share);
    let shares = vote.passages.iter().map(share);
    shares.filter(|(_, share)| *share > 0.0).collect()
}

impl GraphCore {
    /// The results that a caller of this workspace may see, best first. If the caller asks, they say why they were found,
    /// and the question how it was understood.
    pub(super) async fn answer(
        &self,
        workspace: &Workspace,
        found: RankedResults,
        include_rejected: bool,
    ) -> Result<(Visible<ScoredNode>, Option<QuestionAsked>), DomainError> {
        let loaded = self.load(workspace, found.hits, include_rejected).await?;
        let Some(explanation) = found.explanation else {
            return Ok((loaded.rows, None));
        };
        let explained = self.explain_rows(workspace, loaded, explanation.results, include_rejected);
        Ok((explained.await?, explanation.question))
    }

    /// Adds to each result why it was found.
    async fn explain_rows(
        &self,
        workspace: &Workspace,
        loaded: LoadedHits,
        mut reasons: HashMap<Uuid, ExplainedResult>,
        include_rejected: bool,
    ) -> Result<Visible<ScoredNode>, DomainError> {
        let clearance = workspace.clearance();
        let mut rows: Vec<(ScoredNode, ExplainedResult)> = Vec::new();
        for row in loaded.rows.into_rows() {
            // A version that stands for another one is there for the other's reasons.
            let found = loaded.replaced.get(&row.node.id).unwrap_or(&row.node.id);
            let explained = reasons.remove(found).unwrap_or_default();
            rows.push((row, explained));
        }
        let passages = rows.iter().flat_map(|(_, explained)| &explained.passages);
        let mut passages: Vec<Uuid> = passages.map(|(passage, _)| *passage).collect();
        passages.sort_unstable();
        passages.dedup();
        let shown = (clearance.highest(), include_rejected);
        let texts = self
            .graph
            .store
            .texts_of_passages(workspace.id, &passages, shown)
            .await?;
        let explain = |(row, explained): (ScoredNode, ExplainedResult)| ScoredNode {
            why: Some(explained.into_why(&texts)),
            ..row
        };
        let rows = rows.into_iter().map(explain).collect();
        Ok(Visible::filter(rows, clearance))
    }

    /// The paths from what a question names to nodes that are one relationship away.
    pub(super) async fn paths_between(
        &self,
        ask: &Search,
        named: &[Uuid],
        found: &[Uuid],
    ) -> Result<HashMap<Uuid, Vec<PathStep>>, DomainError> {
        let (named, nodes) = (
            self.visible_nodes(ask, named).await?,
            self.visible_nodes(ask, found).await?,
        );
        let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
        let merges = self.merges_seen(ask.ws, shown).await?;
        let from: Vec<Uuid> = merges.with_members(&named.keys().copied().collect::<Vec<_>>());
        let to: Vec<Uuid> = merges.with_members(&nodes.keys().copied().collect::<Vec<_>>());
        let mut links = self
            .graph
            .store
            .links(ask.ws, ask.filter.highest_tlp, &from, &to)
            .await?;
        for link in &mut links {
            (link.from, link.to) = (merges.standing(link.from), merges.standing(link.to));
        }
        let mut best: HashMap<Uuid, Link> = HashMap::new();
        for link in links {
            let is_better = |known: &Link| {
                let by_confidence = link.confidence.total_cmp(&known.confidence);
                by_confidence.then_with(|| known.from.cmp(&link.from)).is_gt()
            };
            if best.get(&link.to).is_none_or(is_better) {
                best.insert(link.to, link);
            }
        }
        let path = |to: &Uuid| {
            let (link, from) = best
                .get(to)
                .and_then(|link| Some((link, named.get(&link.from)?)))?;
            let end = PathStep {
                relationship: Some(link.relationship.clone()),
                outgoing: Some(link.outgoing),
                ..PathStep::start(nodes.get(to)?)
            };
            Some((*to, vec![PathStep::start(from), end]))
        };
        Ok(found.iter().filter_map(path).collect())
    }
}

impl ExplainedResult {
    fn into_why(self, texts: &HashMap<Uuid, String>) -> Why {
        let evidence = |(id, share): (Uuid, f32)| {
            let text = texts.get(&id)?.clone();
            Some(Evidence { id, text, share })
        };
        Why {
            passages: self.passages.into_iter().filter_map(evidence).collect(),
            ..self.why
        }
    }
}
