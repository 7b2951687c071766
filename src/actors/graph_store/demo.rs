//! The public demo: keyword search and export for visitors without an account.
//!
//! Visitors belong to no workspace, so what they do is recorded in the audit log of the operator's workspace.

use std::net::IpAddr;
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::export::{ExportBundle, ExportContents, build, outcome_of, text_of};
use super::recall::Search;
use crate::actors::audit_writer::Append;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::demo::{DemoQuery, DemoQueryError, PublicDemo};
use crate::domain::error::DomainError;
use crate::domain::question::Question;
use crate::domain::session::{ScoredNode, Visible};

/// Results of a demo search; the specification has no parameter for it.
const RESULTS: usize = 20;

/// A question of a visitor.
#[derive(Debug)]
pub struct Visit {
    pub demo: PublicDemo,
    /// The question as sent; it is read only once it is known to contain no personal data.
    pub query: DemoQuestion,
    pub ip: IpAddr,
}

/// A question that has not been checked yet. Its debug output omits the text.
pub struct DemoQuestion {
    /// The field or parameter that holds it.
    pub field: &'static str,
    pub text: String,
}

impl std::fmt::Debug for DemoQuestion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DemoQuestion({})", self.field)
    }
}

/// Searches the demo workspace.
#[derive(Debug)]
pub struct DemoRecall(pub Visit);

/// Result of a demo search.
#[derive(Debug)]
pub struct DemoRecallOutcome {
    pub results: Visible<ScoredNode>,
    pub query: String,
}

impl Work for DemoRecall {
    type Core = GraphCore;
    type Reply = DemoRecallOutcome;
    const NAME: &'static str = "demo_recall";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.0.demo.workspace().id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let Visit { demo, query, ip } = self.0;
        let visitor = Visitor::new(&core, &demo, "demo.recall", ip);
        let query = visitor.check_question(query).await?;
        let results = core.find(&demo, &query, RESULTS).await?;
        let count = results.rows().len() as u64;
        visitor
            .log(Outcome::Success, &query, ("result_count", count))
            .await?;
        Ok(DemoRecallOutcome { results, query })
    }
}

/// Exports what a search of the demo workspace finds.
#[derive(Debug)]
pub struct DemoExport {
    pub visit: Visit,
    pub limit: usize,
}

impl Work for DemoExport {
    type Core = GraphCore;
    type Reply = ExportBundle;
    const NAME: &'static str = "demo_export";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.visit.demo.workspace().id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let Visit { demo, query, ip } = self.visit;
        let visitor = Visitor::new(&core, &demo, "demo.export", ip);
        let query = visitor.check_question(query).await?;
        let found = core.find(&demo, &query, self.limit).await?;
        let ids: Vec<_> = found.rows().iter().map(|row| row.node.id).collect();
        if ids.is_empty() {
            visitor.log(Outcome::Failure, &query, ("nodes", 0)).await?;
            return Err(DomainError::NotFound("a result for this query"));
        }
        let (parts, held_back) = match core.gather(demo.workspace(), &ids, false).await? {
            ExportContents::Refused(_) => {
                visitor.log(Outcome::Denied, &query, ("nodes", 0)).await?;
                // Names no source: those of the demo workspace are the operator's business.
                return Err(DomainError::Forbidden(
                    "these results may not be redistributed".into(),
                ));
            }
            ExportContents::AllHeld(count) => {
                visitor.log(Outcome::Failure, &query, ("nodes", 0)).await?;
                return Err(DomainError::HeldBack { count });
            }
            ExportContents::Parts(parts, held_back) => (parts, held_back),
        };
        let nodes = parts.nodes.len() as u64;
        let built = build(*parts).await?;
        visitor.log(outcome_of(&built), &query, ("nodes", nodes)).await?;
        let bundle = text_of(built).await?;
        Ok(ExportBundle { bundle, held_back })
    }
}

impl GraphCore {
    async fn find(
        &self,
        demo: &PublicDemo,
        query: &str,
        limit: usize,
    ) -> Result<Visible<ScoredNode>, DomainError> {
        let question = Arc::new(Question::read(query, clock::now()));
        let search = Search::of(demo.workspace(), &question, limit, false);
        let hits = self.by_keyword(search).await?;
        Ok(self.load(demo.workspace(), hits, false).await?.rows)
    }
}

/// A visitor, for the audit log.
struct Visitor<'a> {
    core: &'a GraphCore,
    operator: Uuid,
    action: &'static str,
    ip: IpAddr,
}

impl<'a> Visitor<'a> {
    fn new(core: &'a GraphCore, demo: &PublicDemo, action: &'static str, ip: IpAddr) -> Self {
        Self {
            core,
            operator: demo.operator,
            action,
            ip,
        }
    }

    /// The question, if it may be searched for. A refusal is recorded without the text.
    async fn check_question(&self, query: DemoQuestion) -> Result<String, DomainError> {
        let refused = match DemoQuery::try_from(query.text) {
            Ok(query) => return Ok(query.into()),
            Err(refused) => refused,
        };
        if let DemoQueryError::PersonalData(kinds) = &refused {
            let entry = self.entry(Outcome::Denied).with("personal_data", kinds.clone());
            self.core.graph.audit().call(Append(entry)).await?;
        }
        Err(DomainError::invalid(query.field, refused.rule()))
    }

    async fn log(&self, outcome: Outcome, query: &str, (key, count): (&str, u64)) -> Result<(), DomainError> {
        let entry = self.entry(outcome).with_text("query", query).with(key, count);
        self.core.graph.audit().call(Append(entry)).await.map(drop)
    }

    fn entry(&self, outcome: Outcome) -> AuditEntry {
        AuditEntry::anonymous(self.operator, self.ip, self.action, "demo", outcome, clock::now())
    }
}
