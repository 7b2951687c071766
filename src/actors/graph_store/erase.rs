//! Erases nodes and evidence records: the request, and the work on it.
//!
//! Rule: an erasure is done once rows, index and files no longer hold anything of it. The work goes on in the background, after
//! a start too; with several processes on one database each rewrites its own index.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::core::GraphCore;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::erasure::{Erasure, ErasureKind};
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::domain::tlp::Tlp;
use crate::store::{ErasureJob, NewErasure};

/// How soon what failed is tried again, and other processes are looked after.
const AGAIN: Duration = Duration::from_secs(10);

/// What is to be erased.
#[derive(Debug, Clone)]
pub enum ErasureTargets {
    Nodes(Vec<Uuid>),
    Evidence(Vec<Uuid>),
    /// The nodes and records of this source.
    Source(String),
}

/// Begins an erasure.
#[derive(Debug)]
pub struct Erase {
    pub by: Principal,
    pub targets: ErasureTargets,
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
        let (by, ws) = (&self.by, self.by.workspace.id);
        let new = core.what_to_erase(by, &self.targets).await?;
        let receipt = new.receipt(by.user_id(), clock::now());
        let entry = AuditEntry::by(
            by,
            "erasure.request",
            "erasure",
            Outcome::Success,
            receipt.requested_at,
        );
        let entry = entry
            .on(receipt.id)
            .with("what", receipt.what.as_str())
            .with("asked", receipt.asked)
            .with("digest", receipt.digest.as_str());
        let store = &core.graph.store;
        store.begin_erasure(ws, (&new, &receipt), &entry).await?;
        core.graph.chain(entry).await;
        core.erasing.notify_one();
        Ok(receipt)
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
    /// What a request removes; all that it names must be seen by its administrator.
    async fn what_to_erase(
        &self,
        by: &Principal,
        targets: &ErasureTargets,
    ) -> Result<NewErasure, DomainError> {
        let (ws, store) = (by.workspace.id, &self.graph.store);
        let highest: Tlp = by.workspace.clearance().highest();
        let rejected = by.may_see_rejected();
        let distinct = |ids: &[Uuid]| -> Vec<Uuid> {
            let mut seen = HashSet::new();
            ids.iter().copied().filter(|id| seen.insert(*id)).collect()
        };
        let (what, nodes, evidence) = match targets {
            ErasureTargets::Nodes(ids) => {
                let ids = distinct(ids);
                let found = store.nodes_by_id(ws, &ids, highest, rejected).await?;
                if found.len() < ids.len() {
                    return Err(DomainError::NotFound("node_ids: node"));
                }
                (ErasureKind::Nodes, ids, Vec::new())
            }
            ErasureTargets::Evidence(ids) => {
                let ids = distinct(ids);
                let found = store.evidence_heads(ws, &ids, highest, rejected).await?;
                if found.len() < ids.len() {
                    return Err(DomainError::NotFound("evidence_ids: evidence record"));
                }
                (ErasureKind::Evidence, Vec::new(), ids)
            }
            ErasureTargets::Source(source) => {
                let (nodes, evidence) = store.things_of_source(ws, source, highest).await?;
                if nodes.is_empty() && evidence.is_empty() {
                    return Err(DomainError::NotFound("source: node or evidence record"));
                }
                (ErasureKind::Source, nodes, evidence)
            }
        };
        Ok(NewErasure {
            what,
            nodes,
            evidence,
            highest,
            email: by.email().to_owned(),
        })
    }

    /// Works on erasures as they come, for as long as the actor lives.
    pub(super) async fn run_erasures(&self) {
        let mut purged = chrono::DateTime::UNIX_EPOCH;
        loop {
            if let Err(error) = self.finish_erasures().await {
                tracing::error!(?error, "an erasure failed; trying again soon");
            }
            if self.graph.environment.shared_store {
                match self.purge_after_others(purged).await {
                    Ok(last) => purged = last,
                    Err(error) => {
                        tracing::error!(
                            ?error,
                            "rewriting an index after an erasure failed; trying again soon"
                        );
                    }
                }
            }
            tokio::time::timeout(AGAIN, self.erasing.notified()).await.ok();
        }
    }

    async fn finish_erasures(&self) -> Result<(), DomainError> {
        let mut failed = Ok(());
        // One that fails holds up no other.
        for job in self.graph.store.running_erasures().await? {
            match self.finish_erasure(&job).await {
                Ok(()) => {
                    tracing::info!(workspace = %job.ws, erasure = %job.erasure.id, "an erasure is done");
                }
                Err(error) => failed = Err(error),
            }
        }
        failed
    }

    async fn finish_erasure(&self, job: &ErasureJob) -> Result<(), DomainError> {
        self.erase(job).await?;
        self.purge_index(job.ws).await?;
        self.graph.store.purge().await?;
        let (ws, id) = (job.ws, job.erasure.id);
        self.graph.store.end_erasure(ws, id, clock::now()).await
    }

    /// Removes from the database what an erasure names, part by part.
    async fn erase(&self, job: &ErasureJob) -> Result<(), DomainError> {
        let (ws, store) = (job.ws, &self.graph.store);
        self.graph.index_of(ws).await?;
        let state = self.graph.state(ws);
        while let Some(part) = store.next_erasure_part(job.erasure.id).await? {
            let entry = entry_of(job);
            let erased = {
                let mut turn = self.graph.turn(ws, &state).await?;
                let erased = loop {
                    let now = clock::now();
                    match store.erase_part(job, &part, (turn.after(), now), &entry).await {
                        Ok(erased) => break erased,
                        Err(error) => turn.plan_again(error).await?,
                    }
                };
                if let Some(erased) = &erased {
                    turn.record(erased.written.rev);
                }
                erased
            };
            self.graph.source.merges.forget(ws);
            if let Some(erased) = erased {
                let indexed = self.index_stored(ws, &state, &erased.written);
                tokio::join!(indexed, self.graph.chain(erased.entry));
            }
        }
        Ok(())
    }

    /// Removes from the files of an index what it no longer shows.
    async fn purge_index(&self, ws: Uuid) -> Result<(), DomainError> {
        let target = self.graph.index_of(ws).await?;
        // An index that has not taken the removal yet would keep the text.
        self.graph.state(ws).wait_until_indexed().await?;
        blocking(move || target.purge().map_err(index_error)).await
    }

    /// Rewrites the indexes of workspaces in which an erasure was done since then; returns when the last one was.
    async fn purge_after_others(
        &self,
        since: chrono::DateTime<chrono::Utc>,
    ) -> Result<chrono::DateTime<chrono::Utc>, DomainError> {
        let ended = self.graph.store.erasures_since(since).await?;
        let last = ended.iter().map(|(_, at)| *at).max().unwrap_or(since);
        let workspaces: HashSet<Uuid> = ended.into_iter().map(|(ws, _)| ws).collect();
        for ws in workspaces {
            self.graph.index_of(ws).await?;
            let state = self.graph.state(ws);
            self.graph.turn(ws, &state).await?.follow().await?;
            self.purge_index(ws).await?;
        }
        Ok(last)
    }
}

/// The entry of a part, without what it removed.
fn entry_of(job: &ErasureJob) -> AuditEntry {
    let nowhere = std::net::IpAddr::from([0, 0, 0, 0]);
    let now = clock::now();
    let mut entry = AuditEntry::anonymous(job.ws, nowhere, "erasure.erase", "erasure", Outcome::Success, now);
    entry.ip_address = None;
    entry.user_id = Some(job.erasure.requested_by);
    entry.user_email = Some(job.email.clone());
    entry
        .on(job.erasure.id)
        .with("digest", job.erasure.digest.as_str())
}
