//! Owns the staging batches: which one is being committed, and every step of their state machine.
//!
//! Commits of one batch are serialised, so two concurrent commits amount to one commit and its result. The database
//! settles a race between a decision and a commit. Undecided entities stay staged, and nothing above the caller's
//! clearance is shown. Calls the extractor, the graph and the audit writer.

mod preview;

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

pub use self::preview::{Preview, PreviewOutcome};
use super::audit_writer::{AuditHandle, Chain};
use super::extractor::ExtractorHandle;
use super::graph_store::{CommitStaged, GraphHandle};
use super::keyed_locks::KeyedLocks;
use super::worker::{Access, ActorCore, Work, WorkerHandle};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::domain::staging::{
    CommitResult, StagedEntity, StagingBatch, StagingBatchHead, StagingState, Summary,
};
use crate::domain::tlp::{Clearance, Tlp};
use crate::store::{Chosen, Decided, Decision, Page, Store};
use crate::warninglists::WarninglistsHandle;

/// Handle to the staging batches.
pub type StagingHandle = WorkerHandle<StagingCore>;

/// A batch with its entities.
#[derive(Debug)]
pub struct BatchView {
    pub batch: StagingBatch,
    pub entities: Vec<StagedEntity>,
}

/// The batches that exist for the caller, newest first.
#[derive(Debug)]
pub struct ListBatches {
    pub by: Principal,
    pub status: Option<StagingState>,
    pub page: Page,
}

/// Reads a batch.
#[derive(Debug)]
pub struct ReadBatch {
    pub by: Principal,
    pub batch: Uuid,
}

/// Records a decision about a staged entity.
#[derive(Debug)]
pub struct DecideEntity {
    pub by: Principal,
    pub entity: Uuid,
    pub decision: Decision,
}

/// Records one decision about many staged entities.
#[derive(Debug)]
pub struct DecideEntities {
    pub by: Principal,
    pub chosen: Chosen,
    pub decision: Decision,
}

/// Commits the decided entities of a batch as nodes.
#[derive(Debug)]
pub struct CommitBatch {
    pub by: Principal,
    pub batch: Uuid,
}

impl Work for ListBatches {
    type Core = StagingCore;
    type Reply = Vec<StagingBatchHead>;
    const NAME: &'static str = "list_batches";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<StagingCore>) -> Result<Self::Reply, DomainError> {
        let workspace = &self.by.workspace;
        let highest = workspace.clearance().highest();
        core.store
            .staging_batches(workspace.id, self.status, self.page, highest)
            .await
    }
}
impl Work for ReadBatch {
    type Core = StagingCore;
    type Reply = BatchView;
    const NAME: &'static str = "read_batch";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<StagingCore>) -> Result<Self::Reply, DomainError> {
        core.read_batch(self).await
    }
}
impl Work for DecideEntity {
    type Core = StagingCore;
    type Reply = StagedEntity;
    const NAME: &'static str = "decide";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<StagingCore>) -> Result<Self::Reply, DomainError> {
        let DecideEntity { by, entity, decision } = self;
        let decided = core.decide(by, Chosen::Ids(vec![entity]), decision).await?;
        let first = decided.entities.into_iter().next();
        first.ok_or(DomainError::NotFound("staging record"))
    }
}
impl Work for DecideEntities {
    type Core = StagingCore;
    type Reply = Decided;
    const NAME: &'static str = "decide_all";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<StagingCore>) -> Result<Self::Reply, DomainError> {
        let DecideEntities { by, chosen, decision } = self;
        core.decide(by, chosen, decision).await
    }
}
impl Work for CommitBatch {
    type Core = StagingCore;
    type Reply = CommitResult;
    const NAME: &'static str = "commit_batch";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<StagingCore>) -> Result<Self::Reply, DomainError> {
        core.commit_batch(self).await
    }
}

/// The audit entry of a decision, still without the entities.
fn change_entry(by: &Principal, chosen: &Chosen, decision: &Decision) -> AuditEntry {
    let (action, now) = ("ingest.staging_change", clock::now());
    let mut entry = AuditEntry::by(by, action, "staged_entity", Outcome::Success, now)
        .with("status", decision.status.as_str());
    if let Chosen::Filter(filter) = chosen {
        entry = entry.with("batch", filter.batch.to_string());
    }
    if let Some(level) = decision.resolved_tlp {
        entry = entry.with("resolved_tlp", level.as_str());
    }
    if decision.accept_marking {
        entry = entry.with("accept_marking", true);
    }
    if let Some(target) = decision.merge_target {
        entry = entry.with("merge_target_id", target.to_string());
    }
    entry
}

/// Rule: a marking above what the workspace may see is refused, since nobody there could review what carries it.
fn check_reviewable(field: &str, level: Tlp, clearance: Clearance) -> Result<(), DomainError> {
    if clearance.permits(level) {
        return Ok(());
    }
    let rule = format!("is marked {level}, which nobody in this workspace could review");
    Err(DomainError::invalid(field, rule))
}

/// State shared by all requests to the staging batches.
pub struct StagingCore {
    store: Arc<Store>,
    extractor: ExtractorHandle,
    graph: GraphHandle,
    audit: AuditHandle,
    /// Turns at batches, and at sessions to which texts are added.
    turns: KeyedLocks,
    warninglists: WarninglistsHandle,
}

impl ActorCore for StagingCore {
    type Tenant = Uuid;

    const NAME: &'static str = "staging_batches";
}

impl StagingCore {
    /// The staging batches of a store.
    pub fn new(
        store: Arc<Store>,
        extractor: ExtractorHandle,
        graph: GraphHandle,
        audit: AuditHandle,
        warninglists: WarninglistsHandle,
    ) -> Self {
        Self {
            store,
            extractor,
            graph,
            audit,
            turns: KeyedLocks::default(),
            warninglists,
        }
    }

    async fn read_batch(&self, message: ReadBatch) -> Result<BatchView, DomainError> {
        let ReadBatch { by, batch } = message;
        let (ws, highest) = (by.workspace.id, by.workspace.clearance().highest());
        let found = self.store.batch(ws, batch, highest).await?;
        let (mut batch, mut entities) = found.ok_or(DomainError::NotFound("batch"))?;
        self.hide_candidates(&by, &mut entities).await?;
        // The counts must not reveal hidden nodes either.
        batch.summary = Summary::of(entities.iter());
        Ok(BatchView { batch, entities })
    }

    /// Removes candidates whose nodes the caller may not see. The candidates were looked up at preview time.
    async fn hide_candidates(
        &self,
        by: &Principal,
        entities: &mut [StagedEntity],
    ) -> Result<(), DomainError> {
        let (ws, highest) = (by.workspace.id, by.workspace.clearance().highest());
        let nodes: Vec<Uuid> = entities
            .iter()
            .flat_map(|e| &e.duplicate_candidates)
            .map(|c| c.node_id)
            .collect();
        let visible = self.store.nodes_by_id(ws, &nodes, highest, false).await?;
        let visible: HashSet<Uuid> = visible.into_iter().map(|stored| stored.node.id).collect();
        for entity in entities {
            entity
                .duplicate_candidates
                .retain(|candidate| visible.contains(&candidate.node_id));
        }
        Ok(())
    }

    /// Records a decision with one audit entry: on its entity, or with the ids of several.
    async fn decide(
        &self,
        by: Principal,
        chosen: Chosen,
        decision: Decision,
    ) -> Result<Decided, DomainError> {
        let (ws, clearance) = (by.workspace.id, by.workspace.clearance());
        let highest = clearance.highest();
        if let Some(level) = decision.resolved_tlp {
            check_reviewable("resolved_tlp", level, clearance)?;
        }
        let mut target_type = None;
        if let Some(target) = decision.merge_target {
            let visible = self.store.nodes_by_id(ws, &[target], highest, false).await?;
            let Some(found) = visible.first() else {
                let rule = "must be an active node of this workspace";
                return Err(DomainError::invalid("merge_target_id", rule));
            };
            target_type = Some(found.node.node_type);
        }
        let entry = change_entry(&by, &chosen, &decision);
        let of_ids = |ids: &[Uuid]| match ids {
            [one] => entry.clone().on(*one),
            several => {
                let several: Vec<String> = several.iter().map(Uuid::to_string).collect();
                entry.clone().with("entities", several)
            }
        };
        let seen = (highest, target_type);
        let mut decided = self.store.decide_all(ws, &chosen, decision, seen, of_ids).await?;
        let ids: Vec<Uuid> = decided.entities.iter().map(|entity| entity.id).collect();
        if ids.is_empty() {
            return Ok(decided);
        }
        self.chain(of_ids(&ids)).await;
        self.hide_candidates(&by, &mut decided.entities).await?;
        Ok(decided)
    }

    async fn commit_batch(&self, message: CommitBatch) -> Result<CommitResult, DomainError> {
        let _turn = self.turns.take(message.batch).await;
        self.graph
            .call(CommitStaged {
                by: message.by,
                batch: message.batch,
            })
            .await
    }

    async fn chain(&self, entry: AuditEntry) {
        if let Err(error) = self.audit.call(Chain(entry)).await {
            // Not lost: unlinked entries are linked at the next start.
            tracing::warn!(?error, "audit entry waits for its link");
        }
    }
}
