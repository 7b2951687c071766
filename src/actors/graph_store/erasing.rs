//! The work on erasures.
//!
//! Rule: an erasure is done once rows, index and files no longer hold anything of it. The work goes on in the background, after
//! a start too; with several processes on one database each rewrites its own index.

use std::collections::HashSet;
use std::time::Duration;

use uuid::Uuid;

use super::core::GraphCore;
use crate::actors::audit_writer::Append;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::erasure::ErasureKind;
use crate::domain::error::DomainError;
use crate::store::ErasureJob;

/// How soon what failed is tried again, and other processes are looked after.
const AGAIN: Duration = Duration::from_secs(10);

impl GraphCore {
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
        let (ws, store) = (job.ws, &self.graph.store);
        let subjects = store.subjects_to_erase(job).await?;
        store.forget_texts(job, &subjects).await?;
        match (job.erasure.what, job.owner) {
            (ErasureKind::Workspace, Some(of)) => self.erase_workspace(job, of).await?,
            (what, owner) => {
                self.erase(job).await?;
                match (what, owner) {
                    (ErasureKind::Feed, Some(feed)) => store.sweep_feed(job, feed, clock::now()).await?,
                    (ErasureKind::User, Some(user)) => store.sweep_user(job, user, clock::now()).await?,
                    _ => {}
                }
                // Somebody may have asked for it meanwhile.
                store.forget_texts(job, &subjects).await?;
                self.purge_index(ws).await?;
            }
        }
        store.purge().await?;
        store.end_erasure(ws, job.erasure.id, clock::now()).await
    }

    /// Removes all of a workspace, which is refused everywhere already.
    async fn erase_workspace(&self, job: &ErasureJob, ws: Uuid) -> Result<(), DomainError> {
        let store = &self.graph.store;
        self.graph.close(ws).await;
        while store.sweep_workspace(job, ws).await? > 0 {}
        store.forget_workspace(ws).await?;
        self.forget_workspace(ws).await?;
        // What requests wrote that were let in before.
        while store.sweep_workspace(job, ws).await? > 0 {}
        let entry = entry_of(job).with("workspace_id", ws.to_string());
        self.graph.audit().call(Append(entry)).await.map(drop)
    }

    /// Removes what this process keeps of a workspace.
    async fn forget_workspace(&self, ws: Uuid) -> Result<(), DomainError> {
        self.graph.close(ws).await;
        self.graph.source.merges.forget(ws);
        self.graph.discard(ws).await
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
        let last = ended.iter().map(|(_, _, at)| *at).max().unwrap_or(since);
        let workspaces: HashSet<(Uuid, bool)> = ended.into_iter().map(|(ws, all, _)| (ws, all)).collect();
        for (ws, is_gone) in workspaces {
            if is_gone {
                self.forget_workspace(ws).await?;
                continue;
            }
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
    entry
        .on(job.erasure.id)
        .with("digest", job.erasure.digest.as_str())
}
