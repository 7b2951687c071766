//! Requests for erasures, and their receipts.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::erasure::{Erasure, ErasureKind};
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::domain::tlp::Tlp;
use crate::store::NewErasure;

/// What is to be erased.
#[derive(Debug, Clone)]
pub enum ErasureTargets {
    Nodes(Vec<Uuid>),
    Evidence(Vec<Uuid>),
    /// The nodes and records of this source.
    Source(String),
    /// This feed, and what no other source brought.
    Feed(Uuid),
    /// The account, questions and texts of this user, and the nodes and records of which the user is the source.
    User(Uuid),
}

/// Begins an erasure.
#[derive(Debug)]
pub struct Erase {
    pub by: Principal,
    pub targets: ErasureTargets,
}

/// Begins the erasure of another workspace than the operator's own, with all that is in it.
#[derive(Debug)]
pub struct EraseWorkspace {
    pub by: Principal,
    pub workspace: Uuid,
    /// Its name, typed again.
    pub name: String,
}

/// Reads the receipt of an erasure.
#[derive(Debug)]
pub struct ReadErasure {
    pub by: Principal,
    pub id: Uuid,
}

impl Work for Erase {
    type Core = GraphCore;
    type Reply = Erasure;
    const NAME: &'static str = "erase";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let new = core.what_to_erase(&self.by, &self.targets).await?;
        core.begin_erasure(&self.by, new).await
    }
}

impl Work for EraseWorkspace {
    type Core = GraphCore;
    type Reply = Erasure;
    const NAME: &'static str = "erase_workspace";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let by = &self.by;
        if !by.workspace.is_operator {
            let refused = "only the operator's administrators erase workspaces";
            return Err(DomainError::Forbidden(refused.into()));
        }
        let found = core.graph.store.overseen_workspace(self.workspace).await?;
        let found = found.ok_or(DomainError::NotFound("workspace"))?;
        if found.is_operator {
            let refused = "the operator's own workspace can't be erased";
            return Err(DomainError::Conflict(refused.into()));
        }
        if found.name != self.name {
            let rule = "must be the name of the workspace, to be sure that it is the one that is meant";
            return Err(DomainError::invalid("name", rule));
        }
        let new = NewErasure {
            owner: Some(found.id),
            ..core.nothing_yet(by, ErasureKind::Workspace)
        };
        core.begin_erasure(by, new).await
    }
}

impl Work for ReadErasure {
    type Core = GraphCore;
    type Reply = Erasure;
    const NAME: &'static str = "read_erasure";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let ws = &self.by.workspace;
        let highest = ws.clearance().highest();
        let found = core.graph.store.erasure(ws.id, self.id, highest).await?;
        found.ok_or(DomainError::NotFound("erasure"))
    }
}

impl GraphCore {
    async fn begin_erasure(&self, by: &Principal, new: NewErasure) -> Result<Erasure, DomainError> {
        let receipt = new.receipt(by.user_id(), clock::now());
        let (action, at) = ("erasure.request", receipt.requested_at);
        let mut entry = AuditEntry::by(by, action, "erasure", Outcome::Success, at)
            .on(receipt.id)
            .with("what", receipt.what.as_str())
            .with("asked", receipt.asked)
            .with("digest", receipt.digest.as_str());
        if let Some(owner) = new.owner {
            entry = entry.with(receipt.what.as_str(), owner.to_string());
        }
        let store = &self.graph.store;
        store
            .begin_erasure(by.workspace.id, (&new, &receipt), &entry)
            .await?;
        self.graph.chain(entry).await;
        self.erasing.notify_one();
        Ok(receipt)
    }

    fn nothing_yet(&self, by: &Principal, what: ErasureKind) -> NewErasure {
        NewErasure {
            what,
            nodes: Vec::new(),
            evidence: Vec::new(),
            edges: Vec::new(),
            owner: None,
            highest: by.workspace.clearance().highest(),
        }
    }

    /// What a request removes; all that it names must be seen by its administrator.
    async fn what_to_erase(
        &self,
        by: &Principal,
        targets: &ErasureTargets,
    ) -> Result<NewErasure, DomainError> {
        let (ws, store) = (by.workspace.id, &self.graph.store);
        let highest: Tlp = by.workspace.clearance().highest();
        let rejected = by.may_see_rejected();
        match targets {
            ErasureTargets::Nodes(ids) => {
                let nodes = distinct(ids);
                let found = store.nodes_by_id(ws, &nodes, highest, rejected).await?;
                if found.len() < nodes.len() {
                    return Err(DomainError::NotFound("node_ids: node"));
                }
                let nothing = self.nothing_yet(by, ErasureKind::Nodes);
                Ok(NewErasure { nodes, ..nothing })
            }
            ErasureTargets::Evidence(ids) => {
                let evidence = distinct(ids);
                let found = store.evidence_heads(ws, &evidence, highest, rejected).await?;
                if found.len() < evidence.len() {
                    return Err(DomainError::NotFound("evidence_ids: evidence record"));
                }
                let nothing = self.nothing_yet(by, ErasureKind::Evidence);
                Ok(NewErasure { evidence, ..nothing })
            }
            ErasureTargets::Source(source) => {
                let (nodes, evidence) = store.things_of_source(ws, source, highest).await?;
                if nodes.is_empty() && evidence.is_empty() {
                    return Err(DomainError::NotFound("source: node or evidence record"));
                }
                Ok(NewErasure {
                    nodes,
                    evidence,
                    ..self.nothing_yet(by, ErasureKind::Source)
                })
            }
            ErasureTargets::Feed(feed) => self.feed_to_erase(by, *feed).await,
            ErasureTargets::User(user) => self.user_to_erase(by, *user).await,
        }
    }

    /// A feed, which is deleted first, so that it brings nothing more.
    async fn feed_to_erase(&self, by: &Principal, feed: Uuid) -> Result<NewErasure, DomainError> {
        let (ws, store, now) = (by.workspace.id, &self.graph.store, clock::now());
        if !store.is_erasable_feed(ws, feed).await? {
            return Err(DomainError::NotFound("feed_id: feed"));
        }
        match store.delete_feed(ws, feed, by, now).await {
            Ok(entries) => {
                for entry in entries {
                    self.graph.chain(entry).await;
                }
            }
            Err(DomainError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        let highest = by.workspace.clearance().highest();
        let (nodes, edges) = store.things_of_feed(ws, feed, highest).await?;
        Ok(NewErasure {
            nodes,
            edges,
            owner: Some(feed),
            ..self.nothing_yet(by, ErasureKind::Feed)
        })
    }

    /// Another user than the one who asks, so that an administrator is left.
    async fn user_to_erase(&self, by: &Principal, user: Uuid) -> Result<NewErasure, DomainError> {
        let (ws, store) = (by.workspace.id, &self.graph.store);
        let found = store.user(user).await?.filter(|found| found.ws == ws);
        let found = found.ok_or(DomainError::NotFound("user_id: user"))?;
        if user == by.user_id() {
            let rule = "must be another user: the workspace keeps the administrator who asks";
            return Err(DomainError::invalid("user_id", rule));
        }
        let highest = by.workspace.clearance().highest();
        let (nodes, evidence) = store.things_of_source(ws, &found.email, highest).await?;
        Ok(NewErasure {
            nodes,
            evidence,
            owner: Some(user),
            ..self.nothing_yet(by, ErasureKind::User)
        })
    }
}

fn distinct(ids: &[Uuid]) -> Vec<Uuid> {
    let mut seen = HashSet::new();
    ids.iter().copied().filter(|id| seen.insert(*id)).collect()
}
