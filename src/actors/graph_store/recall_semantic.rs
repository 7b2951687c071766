//! Recall by meaning alone, which makes no session.

use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::recall::Search;
use super::why::{GraphAnswer, RankedResults};
use crate::actors::audit_writer::Append;
use crate::actors::job::blocking;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::narrowing::Narrowing;
use crate::domain::principal::Principal;
use crate::domain::question::Question;
use crate::domain::session::{ScoredNode, Visible};
use crate::search::Mode;

/// Searches by meaning only.
#[derive(Debug)]
pub struct RecallSemantic {
    pub by: Principal,
    pub question: Arc<Question>,
    pub limit: usize,
    pub include_rejected: bool,
    pub narrowing: Narrowing,
    /// Whether to say why each result was found.
    pub explain: bool,
    /// The lowest score of a result; 0 if absent.
    pub min_score: Option<f32>,
}

impl Work for RecallSemantic {
    type Core = GraphCore;
    type Reply = Visible<ScoredNode>;
    const NAME: &'static str = "recall_semantic";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let RecallSemantic {
            by,
            question,
            limit,
            include_rejected,
            narrowing,
            explain,
            min_score,
        } = self;
        let include_rejected = include_rejected && by.may_see_rejected();
        let mut search = Search {
            explain,
            min_score,
            ..Search::of(&by.workspace, &question, limit, include_rejected).with_narrowing(&narrowing)
        };
        if narrowing.stix_types.is_some() {
            search.filter = search.filter.of_all();
        }
        let found = core.recall_semantic(search).await?;
        let (results, _) = core.answer(&by.workspace, found, include_rejected).await?;
        let results = results.only(|row| narrowing.admits(&row.node));
        let entry = AuditEntry::by(&by, "recall.semantic", "node", Outcome::Success, clock::now())
            .with_text("query", question.text())
            .with("result_count", results.rows().len() as u64)
            .with("max_tlp", results.max_tlp().as_str())
            .with_all(narrowing.active_filters())
            .with_some_text("source", narrowing.source_filter());
        core.graph.audit().call(Append(entry)).await?;
        Ok(results)
    }
}

impl GraphCore {
    async fn recall_semantic(&self, ask: Search) -> Result<RankedResults, DomainError> {
        if !ask.question.identifiers().is_empty() {
            return self.look_up_identifiers(ask, GraphAnswer::default()).await;
        }
        let (index, target) = (Arc::clone(&self.graph.index), self.graph.index_of(ask.ws).await?);
        blocking(move || {
            let vector = index.embed_query(ask.question.text()).map_err(|error| {
                tracing::warn!(%error, "embedding the query failed");
                DomainError::Busy {
                    actor: "embedding model",
                }
            })?;
            let found = ask.run(&target, Some(&vector), Mode::Vector)?;
            Ok(ask.rank_results(found, Vec::new(), GraphAnswer::default()))
        })
        .await
    }
}
