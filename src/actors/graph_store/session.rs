//! Recall sessions, read back and listed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use crate::actors::worker::{Access, Work};
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::domain::session::{NodeMarking, RecallSession, Visible};
use crate::domain::tlp::Tlp;
use crate::store::{Page, SessionRecord};

/// Reads a recall session.
#[derive(Debug)]
pub struct ReadSession {
    pub by: Principal,
    pub session: Uuid,
}

/// The caller's own recall sessions, newest first.
#[derive(Debug)]
pub struct ListSessions {
    pub by: Principal,
    pub page: Page,
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
        let found = core.graph.store.session(by.workspace.id, session).await?;
        let record = found.ok_or(DomainError::NotFound("session"))?;
        let rows = markings(&core, &by, &record.session.node_ids).await?;
        Ok(as_seen_by(&by, record, &rows))
    }
}

impl Work for ListSessions {
    type Core = GraphCore;
    type Reply = Vec<RecallSession>;
    const NAME: &'static str = "list_sessions";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let ListSessions { by, page } = self;
        let store = &core.graph.store;
        let records = store.sessions(by.workspace.id, by.user_id(), page).await?;
        let nodes = records.iter().flat_map(|record| &record.session.node_ids);
        let nodes: HashSet<Uuid> = nodes.copied().collect();
        let nodes: Vec<Uuid> = nodes.into_iter().collect();
        let rows = markings(&core, &by, &nodes).await?;
        let shown = records.into_iter();
        Ok(shown.map(|record| as_seen_by(&by, record, &rows)).collect())
    }
}

/// The markings of those of these nodes that the caller may see.
async fn markings(
    core: &GraphCore,
    by: &Principal,
    nodes: &[Uuid],
) -> Result<Visible<NodeMarking>, DomainError> {
    let clearance = by.workspace.clearance();
    let (ws, highest) = (by.workspace.id, clearance.highest());
    let merges = core.merges_seen(ws, (highest, false)).await?;
    let store = &core.graph.store;
    let mut rows = store
        .node_markings(ws, &merges.with_members(nodes), highest)
        .await?;
    if !merges.is_empty() {
        // A node is marked as strictly as what is merged into it.
        let level: HashMap<Uuid, Tlp> = rows.iter().map(|row| (row.id, row.tlp)).collect();
        for row in &mut rows {
            let members = merges.members(row.id);
            let members = members.iter().filter_map(|member| level.get(member));
            row.tlp = members.copied().fold(row.tlp, Tlp::max);
        }
    }
    Ok(Visible::filter(rows, clearance))
}

fn as_seen_by(by: &Principal, record: SessionRecord, rows: &Visible<NodeMarking>) -> RecallSession {
    let include_rejected = record.include_rejected && by.may_see_rejected();
    record.session.limit_to(rows, include_rejected)
}
