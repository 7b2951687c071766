//! Recall sessions, read back.

use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use crate::actors::worker::{Access, Work};
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::domain::session::{RecallSession, Visible};

/// Reads a recall session.
#[derive(Debug)]
pub struct ReadSession {
    pub by: Principal,
    pub session: Uuid,
}

impl Work for ReadSession {
    type Core = GraphCore;
    type Reply = RecallSession;
    const NAME: &'static str = "read_session";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let ReadSession { by, session } = self;
        let ws = by.workspace.id;
        let found = core.graph.store.session(ws, session).await?;
        let record = found.ok_or(DomainError::NotFound("session"))?;
        let include_rejected = record.include_rejected && by.may_see_rejected();
        let clearance = by.workspace.clearance();
        let stored = core
            .graph
            .store
            .nodes_by_id(
                ws,
                &record.session.node_ids,
                clearance.highest(),
                include_rejected,
            )
            .await?;
        let rows = stored.into_iter().map(|stored| stored.node).collect();
        Ok(record.session.limit_to(&Visible::filter(rows, clearance)))
    }
}
