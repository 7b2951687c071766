//! Remembering that two nodes are not the same.

use std::sync::Arc;

use uuid::Uuid;

use crate::actors::graph_store::core::GraphCore;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::store::DistinctPair;

/// Remembers that two nodes are not the same, or forgets it.
#[derive(Debug)]
pub struct MarkDistinct {
    pub by: Principal,
    pub node: Uuid,
    pub from: Uuid,
    /// Whether they are not the same.
    pub is_distinct: bool,
}

impl Work for MarkDistinct {
    type Core = GraphCore;
    type Reply = ();
    const NAME: &'static str = "mark_distinct";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let MarkDistinct {
            by,
            node,
            from,
            is_distinct,
        } = self;
        let ws = by.workspace.id;
        let shown = (by.workspace.clearance().highest(), by.may_see_rejected());
        let action = match is_distinct {
            true => "node.distinct",
            false => "node.not_distinct",
        };
        let entry = AuditEntry::by(&by, action, "node", Outcome::Success, clock::now())
            .on(node)
            .with("from", from.to_string());
        let state = core.graph.state(ws);
        let store = &core.graph.store;
        {
            let mut turn = core.graph.turn(ws, &state).await?;
            loop {
                let seen = store.nodes_by_id(ws, &[node, from], shown.0, shown.1).await?;
                let sees = |id: Uuid| seen.iter().any(|stored| stored.node.id == id);
                if !sees(node) {
                    return Err(DomainError::NotFound("node"));
                }
                if !sees(from) {
                    return Err(DomainError::NotFound("from: node"));
                }
                let merges = core.merges_seen(ws, shown).await?;
                if merges.standing(node) == merges.standing(from) {
                    let rule = "must be another node, and none that is merged with this one";
                    return Err(DomainError::invalid("from", rule));
                }
                if merges.all().are_distinct(node, from) == is_distinct {
                    return Ok(());
                }
                let pair = DistinctPair {
                    nodes: (node, from),
                    since: is_distinct.then(clock::now),
                };
                match store.write_distinct(ws, pair, turn.after(), &entry).await {
                    Ok(written) => {
                        core.graph.source.merges.forget(ws);
                        turn.record_unindexed(written.rev);
                        break;
                    }
                    Err(error) => turn.plan_again(error).await?,
                }
            }
        }
        core.graph.chain(entry).await;
        Ok(())
    }
}
