//! Recall: searches and the sessions that record their results.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::why::{GraphAnswer, RankedResults};
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::extraction::Gazetteer;
use crate::domain::narrowing::Narrowing;
use crate::domain::node::NodeType;
use crate::domain::principal::{Principal, Workspace};
use crate::domain::question::{Question, QuestionAsked};
use crate::domain::session::{RecallMode, RecallSession, ScoredNode, Visible};
use crate::domain::tlp::Tlp;
use crate::domain::why::MatchedBy;
use crate::search::{
    Filter, Hit, Mode, RowPredicate, SCORE_FLOOR, SearchResults, StructuredQuery, WorkspaceIndex,
};
use crate::store::{NeighbourQuery, Neighbours, SessionRecord};

/// From this score on, the query is the node's own name, identifier or alias (`search::fusion`).
pub(super) const EXACT: f32 = 0.9;

/// A set of nodes that may hold tens of thousands, so hashing must be fast.
pub(super) type NodeSet = hashbrown::HashSet<Uuid>;

/// Score of nodes related to one that the question names.
const RELATED: f32 = 0.8;

/// A query and the visibility limits of the caller.
#[derive(Debug, Clone)]
pub(super) struct Search {
    pub(super) ws: Uuid,
    pub(super) question: Arc<Question>,
    pub(super) filter: Filter,
    pub(super) limit: usize,
    /// Whether to say why each result was found.
    pub(super) explain: bool,
    /// The lowest score of a result; that of what is likely an answer if absent.
    pub(super) min_score: Option<f32>,
}

/// Searches and stores the result as a session.
#[derive(Debug)]
pub struct Recall {
    pub by: Principal,
    pub question: Arc<Question>,
    pub mode: RecallMode,
    pub limit: usize,
    pub include_rejected: bool,
    pub narrowing: Narrowing,
    /// Whether to say how the question was understood and why each result was found.
    pub explain: bool,
    /// The lowest score of a result; what is likely an answer if absent.
    pub min_score: Option<f32>,
}

/// Result of a recall.
#[derive(Debug)]
pub struct RecallOutcome {
    pub results: Visible<ScoredNode>,
    pub session: RecallSession,
    /// How a question about related things or a time was understood, if the caller asks.
    pub question: Option<QuestionAsked>,
}

impl Work for Recall {
    type Core = GraphCore;
    type Reply = RecallOutcome;
    const NAME: &'static str = "recall";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let Recall {
            by,
            question,
            mode,
            limit,
            include_rejected,
            narrowing,
            explain,
            min_score,
        } = self;
        let include_rejected = include_rejected && by.may_see_rejected();
        let search = Search {
            explain,
            min_score,
            ..Search::of(&by.workspace, &question, limit, include_rejected).with_narrowing(&narrowing)
        };
        let found = match mode {
            RecallMode::Blended => core.recall_blended(search.clone()).await?,
            RecallMode::Structured => core.recall_structured(search.clone()).await?,
        };
        let found = core.with_context(&search, found).await?;
        let (results, asked) = core.answer(&by.workspace, found, include_rejected).await?;
        let results = results.only(|row| narrowing.admits(&row.node));
        let now = clock::now();
        let session = RecallSession {
            id: Uuid::new_v4(),
            query: question.text().to_owned(),
            mode,
            result_count: results.rows().len() as u64,
            max_tlp: results.max_tlp(),
            has_red_node: results.max_tlp() == Tlp::Red,
            node_ids: results.rows().iter().map(|row| row.node.id).collect(),
            created_at: now,
        };
        let entry = AuditEntry::by(&by, "recall.search", "recall_session", Outcome::Success, now)
            .on(session.id)
            .with_text("query", &session.query)
            .with("mode", mode.as_str())
            .with("result_count", session.result_count)
            .with("max_tlp", session.max_tlp.as_str())
            .with("include_rejected", include_rejected)
            .with_all(narrowing.active_filters())
            .with_some_text("source", narrowing.source_filter());
        let record = SessionRecord {
            session,
            user: by.user_id(),
            include_rejected,
        };
        core.graph
            .store
            .save_session(by.workspace.id, &record, &entry)
            .await?;
        core.graph.chain(entry).await;
        Ok(RecallOutcome {
            results,
            session: record.session,
            question: asked,
        })
    }
}

impl Search {
    /// A search of the rows that a caller of this workspace may see.
    pub(super) fn of(
        workspace: &Workspace,
        question: &Arc<Question>,
        limit: usize,
        include_rejected: bool,
    ) -> Self {
        Self {
            ws: workspace.id,
            question: Arc::clone(question),
            filter: Filter {
                include_rejected,
                ..Filter::up_to(workspace.clearance().highest())
            },
            limit,
            explain: false,
            min_score: None,
        }
    }

    /// The same search with filters on its results.
    pub(super) fn with_narrowing(mut self, narrowing: &Narrowing) -> Self {
        self.filter.narrowing = narrowing.clone();
        self
    }
}

impl GraphCore {
    async fn recall_blended(&self, ask: Search) -> Result<RankedResults, DomainError> {
        let target = self.graph.index_of(ask.ws).await?;
        let mut related = self.answer_question(&ask, &target).await?;
        if related.nodes.is_empty() && !related.is_final {
            related = self.leading_nodes(&ask, &target).await?;
        }
        if related.nodes.len() >= ask.limit && !ask.explain {
            // Nothing else has a place.
            return Ok(ask.rank_results(SearchResults::default(), Vec::new(), related));
        }
        if related.nodes.is_empty() && !ask.question.identifiers().is_empty() {
            return self.look_up_identifiers(ask, related).await;
        }
        let (found, named) = self.by_words_and_meaning(ask.clone(), &target).await?;
        Ok(ask.rank_results(found, named, related))
    }

    /// The nodes that have or hold the identifiers that a question consists of.
    pub(super) async fn look_up_identifiers(
        &self,
        ask: Search,
        graph: GraphAnswer,
    ) -> Result<RankedResults, DomainError> {
        let target = self.graph.index_of(ask.ws).await?;
        blocking(move || {
            let (found, named) = ask.find_identifiers(&target)?;
            Ok(ask.rank_results(found, named, graph))
        })
        .await
    }

    /// What a search by words and meaning finds, and the nodes known under another name of what the question names.
    pub(super) async fn by_words_and_meaning(
        &self,
        ask: Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<(SearchResults, Vec<Uuid>), DomainError> {
        let (index, target) = (Arc::clone(&self.graph.index), Arc::clone(target));
        blocking(move || {
            let vector = index.embed_query(ask.question.text());
            if let Err(error) = &vector {
                tracing::warn!(%error, "embedding the query failed; searching by words only");
            }
            let vector = vector.ok();
            let mode = if vector.is_some() {
                Mode::Blended
            } else {
                Mode::Keyword
            };
            let found = ask.run(&target, vector.as_deref(), mode)?;
            let named = find_synonym_nodes(&target, ask.question.text(), &ask.filter)?;
            Ok((found, named))
        })
        .await
    }

    /// Searches names, aliases, identifiers and words, without the embedding model.
    pub(super) async fn by_keyword(&self, ask: Search) -> Result<Vec<Hit>, DomainError> {
        let target = self.graph.index_of(ask.ws).await?;
        blocking(move || {
            if !ask.question.identifiers().is_empty() {
                let (found, named) = ask.find_identifiers(&target)?;
                return Ok(lead_with(named, found.hits, ask.limit));
            }
            let hits = target
                .search(ask.question.text(), None, Mode::Keyword, &ask.filter, ask.limit)
                .map_err(index_error)?;
            let named = find_synonym_nodes(&target, ask.question.text(), &ask.filter)?;
            let mut hits = lead_with(named, hits, ask.limit);
            hits.retain(|hit| hit.score >= SCORE_FLOOR);
            Ok(hits)
        })
        .await
    }

    /// Handles names, identifiers and types: "malware used by Sandworm Team" asks for nodes related to the one named.
    async fn recall_structured(&self, ask: Search) -> Result<RankedResults, DomainError> {
        let target = self.graph.index_of(ask.ws).await?;
        let mut graph = self.answer_question(&ask, &target).await?;
        if graph.nodes.is_empty()
            && !ask.question.asks_for_related()
            && !ask.question.identifiers().is_empty()
        {
            return self.look_up_identifiers(ask, graph).await;
        }
        let (index, search, asked) = (Arc::clone(&self.graph.index), ask.clone(), Arc::clone(&target));
        let (types, words, named, direct) = blocking(move || {
            let mut found = search.question.filters().clone();
            let (types, words) = (found.node_types.clone(), found.text.clone());
            if found.text.is_empty() && found.names.is_empty() && found.identifiers.is_empty() {
                // "malware" names a type and no search term: rank the nodes of that type by the word itself.
                found.text = search.question.text().to_owned();
            }
            let mut keys = found.identifiers;
            keys.extend(found.names);
            let named = find_named_of_other_types(&asked, &found.node_types, &keys, &search.filter)?;
            let vector = index.embed_query(&found.text).ok();
            let query = StructuredQuery {
                node_types: found.node_types,
                keys,
                text: found.text,
            };
            let direct = search.run_structured(&asked, &query, vector.as_deref())?;
            Ok((types, words, named, direct))
        })
        .await?;
        if !graph.nodes.is_empty() || graph.is_final {
            return Ok(ask.rank_results(direct, Vec::new(), graph));
        }
        let wanted = NeighbourQuery {
            highest: ask.filter.highest_tlp,
            include_rejected: ask.filter.include_rejected,
            types: &types,
            narrowing: &ask.filter.narrowing,
            best: ask.limit,
        };
        let near = self.neighbours(&ask, &named, wanted).await?;
        let (filter, limit) = (ask.filter.clone(), ask.limit);
        graph.nodes = blocking(move || rank_neighbours(&target, near, &words, filter, limit)).await?;
        if ask.explain {
            graph.paths = self.paths_between(&ask, &named, &graph.nodes).await?;
        }
        Ok(ask.rank_results(direct, Vec::new(), graph))
    }
}

impl GraphCore {
    /// The neighbours of these nodes and of those merged into them; what is merged is the node that stands for it.
    pub(super) async fn neighbours(
        &self,
        ask: &Search,
        nodes: &[Uuid],
        wanted: NeighbourQuery<'_>,
    ) -> Result<Neighbours, DomainError> {
        let shown = (wanted.highest, wanted.include_rejected);
        let merges = self.merges_seen(ask.ws, shown).await?;
        let store = &self.graph.store;
        if merges.is_empty() {
            return store.neighbours(ask.ws, nodes, wanted).await;
        }
        let own = merges.all_standing(nodes.iter().copied());
        let found = store
            .neighbours(ask.ws, &merges.with_members(&own), wanted)
            .await?;
        let others = |found: Vec<Uuid>| {
            let mut standing = merges.all_standing(found);
            standing.retain(|node| !own.contains(node));
            standing
        };
        Ok(Neighbours {
            best: others(found.best),
            all: others(found.all),
        })
    }
}

/// Neighbours, best first: those that contain other words of the question, then by confidence.
fn rank_neighbours(
    target: &WorkspaceIndex,
    near: Neighbours,
    words: &str,
    filter: Filter,
    limit: usize,
) -> Result<Vec<Uuid>, DomainError> {
    let mut best: Vec<Uuid> = Vec::new();
    if !words.is_empty() && near.all.len() > 1 {
        best = filter_containing(target, near.all.into_iter().collect(), words, filter, limit)?;
    }
    let known: HashSet<Uuid> = best.iter().copied().collect();
    best.extend(near.best.into_iter().filter(|node| !known.contains(node)));
    best.truncate(limit);
    Ok(best)
}

/// Those of these nodes that contain the words, best first.
pub(super) fn filter_containing(
    target: &WorkspaceIndex,
    among: NodeSet,
    words: &str,
    filter: Filter,
    limit: usize,
) -> Result<Vec<Uuid>, DomainError> {
    let filter = Filter {
        only: Some(RowPredicate::new(move |node| among.contains(&node))),
        ..filter
    };
    let hits = target.search(words, None, Mode::Keyword, &filter, limit);
    Ok(hits
        .map_err(index_error)?
        .into_iter()
        .map(|hit| hit.node_id)
        .collect())
}

/// Places nodes related to the named one before the direct hits.
pub(super) fn put_related_first(related: Vec<Uuid>, direct: Vec<Hit>, limit: usize) -> Vec<Hit> {
    if related.is_empty() {
        return direct;
    }
    let known: HashSet<Uuid> = related.iter().copied().collect();
    let mut hits: Vec<Hit> = related
        .into_iter()
        .map(|node_id| Hit {
            node_id,
            score: RELATED,
            matched: MatchedBy::Graph,
        })
        .collect();
    let others = direct.into_iter().filter(|hit| !known.contains(&hit.node_id));
    hits.extend(others.map(|hit| Hit {
        score: hit.score.min(RELATED),
        ..hit
    }));
    hits.truncate(limit);
    hits
}

/// Nodes that carry one of the keys, when the question asks for types other than theirs.
fn find_named_of_other_types(
    target: &WorkspaceIndex,
    types: &[NodeType],
    keys: &[String],
    filter: &Filter,
) -> Result<Vec<Uuid>, DomainError> {
    if types.is_empty() || keys.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let others = NodeType::ALL
        .iter()
        .copied()
        .filter(|kind| !types.contains(kind))
        .collect();
    let filter = Filter {
        node_types: Some(others),
        ..filter.without_narrowing()
    };
    let found = target.lookup(&keys, &filter).map_err(index_error)?;
    let mut named: Vec<Uuid> = found.into_iter().map(|hit| hit.node_id).collect();
    named.sort_unstable();
    named.dedup();
    Ok(named)
}

/// Nodes known under another name of what the whole question names: "Fancy Bear" finds APT28 even if nobody recorded
/// that alias.
pub(super) fn find_synonym_nodes(
    target: &WorkspaceIndex,
    question: &str,
    filter: &Filter,
) -> Result<Vec<Uuid>, DomainError> {
    let Some(entry) = Gazetteer::shared().resolve(question) else {
        return Ok(Vec::new());
    };
    let names: Vec<&str> = entry.names().collect();
    let found = target.lookup(&names, filter).map_err(index_error)?;
    Ok(found.into_iter().map(|hit| hit.node_id).collect())
}

/// Moves these nodes to the front, unless an exact match already leads.
pub(super) fn lead_with(named: Vec<Uuid>, hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
    let mut led: Vec<Hit> = hits
        .iter()
        .copied()
        .take_while(|hit| hit.score >= EXACT)
        .collect();
    for node_id in named {
        if !led.iter().any(|hit| hit.node_id == node_id) {
            led.push(Hit {
                node_id,
                score: EXACT,
                matched: MatchedBy::Alias,
            });
        }
    }
    for hit in hits {
        if !led.iter().any(|other| other.node_id == hit.node_id) {
            led.push(hit);
        }
    }
    led.truncate(limit);
    led
}
