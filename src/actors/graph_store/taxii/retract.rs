//! Objects that clients take back: they are rejected by hand, as any correction does it, and stay for whoever wants to know.

use std::sync::Arc;

use uuid::Uuid;

use crate::actors::graph_store::core::GraphCore;
use crate::actors::graph_store::{CorrectEdge, CorrectNode, ExpectedTags};
use crate::actors::worker::{Access, Work};
use crate::domain::error::DomainError;
use crate::domain::graph::correction::NodeChanges;
use crate::domain::node::NodeStatus;
use crate::domain::principal::Principal;
use crate::domain::stix::object::type_of_id;
use crate::domain::taxii::view::{CollectionView, Contents};
use crate::store::StoredFacts;

/// Why the object was rejected.
const REASON: &str = "deleted over TAXII";

/// Takes an object of a collection back.
#[derive(Debug)]
pub struct RetractObject {
    pub by: Principal,
    /// The id or the alias of the collection.
    pub collection: String,
    pub stix_id: String,
}

impl Work for RetractObject {
    type Core = GraphCore;
    type Reply = ();
    const NAME: &'static str = "retract_object";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let Self {
            by,
            collection,
            stix_id,
        } = self;
        let collection = core.collection_named(&by, &collection).await?;
        if !collection.can_write {
            let rule = "the collection takes nothing from this caller, so it gives nothing up";
            return Err(DomainError::Forbidden(rule.into()));
        }
        let missing = || DomainError::NotFound("object");
        let kind = type_of_id(&stix_id).ok_or_else(missing)?.to_owned();
        let (ws, highest) = (by.workspace.id, by.workspace.clearance().highest());
        let rows = core.rows_of_objects(ws, &[stix_id], highest).await?;
        let store = &core.graph.store;
        for edge in rows.edges {
            let facts = store.edge_facts(ws, edge, highest).await?;
            if facts.is_some_and(|facts| holds(&collection, &kind, &facts)) {
                return core.reject_edge(by, edge).await;
            }
        }
        for node in rows.nodes {
            let facts = store.node_facts(ws, node, highest).await?;
            if facts.is_some_and(|facts| holds(&collection, &kind, &facts)) {
                return core.reject_node(by, node).await;
            }
        }
        Err(missing())
    }
}

impl GraphCore {
    async fn reject_edge(self: Arc<Self>, by: Principal, edge: Uuid) -> Result<(), DomainError> {
        let reason = Some(REASON.to_owned());
        let message = CorrectEdge {
            by,
            edge,
            active: false,
            reason,
        };
        message.run(self).await.map(drop)
    }

    async fn reject_node(self: Arc<Self>, by: Principal, node: Uuid) -> Result<(), DomainError> {
        let message = CorrectNode {
            by,
            node,
            changes: NodeChanges {
                status: Some(NodeStatus::Rejected),
                ..NodeChanges::default()
            },
            reason: Some(REASON.to_owned()),
            expected: ExpectedTags(None),
        };
        message.run(self).await.map(drop)
    }
}

/// Whether a collection holds an object.
fn holds(collection: &CollectionView, kind: &str, facts: &StoredFacts) -> bool {
    let mut nodes = Vec::new();
    let facts = facts.of_type(kind, &mut nodes);
    match &collection.contents {
        Contents::All => true,
        Contents::Level(level) => facts.tlp == *level,
        Contents::Filtered(filter) => filter.admits(&facts),
    }
}
