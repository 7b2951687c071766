//! Owns the staging batches: which one is being committed, and every step of their state machine.
//!
//! Promises: commits of one batch are ordered, so two at a time are one commit and its result; a decision and
//! a commit that meet are settled by the database; whatever is undecided stays; nothing is shown above the
//! caller's clearance. Talks to the extractor, to the graph and to the audit writer.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, Weak};

use actix::{Actor, Context};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::audit_writer::{AuditHandle, Chain};
use super::extractor::{Extract, ExtractorHandle};
use super::graph_store::{CommitStaged, FindDuplicates, GraphHandle};
use super::handle::{Access, ActorHandle, Request};
use super::job;
use crate::capacity::Party;
use crate::clock;
use crate::config::ActorSettings;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::{DomainError, ErrorKind};
use crate::domain::extraction::{sensitivity, tlp_hint};
use crate::domain::principal::Principal;
use crate::domain::staging::{
    CommitResult, DuplicateCandidate, ExtractedEntity, Extraction, IngestMode, MatchKind, SENSITIVITY,
    SourceType, StagedEntity, StagedStatus, StagingBatch, Summary,
};
use crate::domain::tlp::Tlp;
use crate::store::{Decision, NewBatch, Store};

/// Most entities of one batch.
const MAX_ENTITIES: usize = 5000;
/// Marking of what neither the request nor the text marks.
const FALLBACK: Tlp = Tlp::Amber;

/// Way to the staging batches.
pub type StagingHandle = ActorHandle<StagingBatches>;

/// Extracts entities from a text into a new batch.
#[derive(Debug)]
pub struct Preview {
    pub by: Principal,
    pub text: String,
    pub source_type: SourceType,
    pub session_id: Option<String>,
    pub mode: IngestMode,
    pub default_tlp: Option<Tlp>,
    pub default_confidence: Option<f64>,
}

/// A batch with its entities.
#[derive(Debug)]
pub struct BatchView {
    pub batch: StagingBatch,
    pub entities: Vec<StagedEntity>,
}

/// Reads a batch.
#[derive(Debug)]
pub struct ReadBatch {
    pub by: Principal,
    pub batch: Uuid,
}

/// Records a decision about a staged entity.
#[derive(Debug)]
pub struct Decide {
    pub by: Principal,
    pub entity: Uuid,
    pub decision: Decision,
}

/// Asks for the decided entities of a batch to become nodes.
#[derive(Debug)]
pub struct CommitBatch {
    pub by: Principal,
    pub batch: Uuid,
}

macro_rules! request {
    ($message:ty, $reply:ty, $name:literal, $access:ident) => {
        impl Request for $message {
            type Reply = $reply;
            const NAME: &'static str = $name;
            const ACCESS: Access = Access::$access;

            fn party(&self) -> Party {
                Some(self.by.workspace.id)
            }
        }
    };
}
request!(Preview, BatchView, "preview", Write);
request!(ReadBatch, BatchView, "read_batch", Read);
request!(Decide, StagedEntity, "decide", Write);
request!(CommitBatch, CommitResult, "commit_batch", Write);

/// What all requests to the staging batches share.
pub struct StagingCore {
    store: Arc<Store>,
    extractor: ExtractorHandle,
    graph: GraphHandle,
    audit: AuditHandle,
    /// One lock per batch that is being worked on.
    batches: std::sync::Mutex<HashMap<Uuid, Weak<Mutex<()>>>>,
}

/// The actor.
pub struct StagingBatches {
    core: Arc<StagingCore>,
    runtime: Handle,
}

impl StagingBatches {
    /// Starts the actor.
    pub fn start(core: Arc<StagingCore>, runtime: Handle, settings: ActorSettings) -> StagingHandle {
        let arbiter = actix::Arbiter::current();
        ActorHandle::start(
            "staging_batches",
            settings,
            Box::new(move || {
                let (core, runtime) = (Arc::clone(&core), runtime.clone());
                Self::start_in_arbiter(&arbiter, move |ctx| {
                    ctx.set_mailbox_capacity(settings.mailbox.max(1));
                    Self { core, runtime }
                })
            }),
        )
    }
}

impl Actor for StagingBatches {
    type Context = Context<Self>;
}

job::delegate! {
    StagingBatches:
    Preview => preview,
    ReadBatch => read_batch,
    Decide => decide,
    CommitBatch => commit_batch,
}

impl StagingCore {
    /// The staging batches of a store.
    pub fn new(
        store: Arc<Store>,
        extractor: ExtractorHandle,
        graph: GraphHandle,
        audit: AuditHandle,
    ) -> Self {
        Self {
            store,
            extractor,
            graph,
            audit,
            batches: std::sync::Mutex::default(),
        }
    }

    async fn preview(&self, message: Preview) -> Result<BatchView, DomainError> {
        let Preview {
            by,
            text,
            source_type,
            session_id,
            mode,
            default_tlp,
            default_confidence,
        } = message;
        let ws = by.workspace.id;
        let extract = Extract {
            workspace: Some(ws),
            text: text.clone(),
            source_type,
        };
        let Extraction {
            entities,
            relations,
            warnings,
        } = self.extractor.call(extract).await?;
        if entities.len() > MAX_ENTITIES {
            let rule = format!("names more than {MAX_ENTITIES} entities; send it in parts");
            return Err(DomainError::invalid("text", rule));
        }
        let candidates = self
            .graph
            .call(FindDuplicates {
                by: by.clone(),
                entities: entities.clone(),
            })
            .await?;
        let hint = tlp_hint(&text);
        let marking = Marking {
            proposed: default_tlp.or(hint).unwrap_or(FALLBACK),
            missing: default_tlp.is_none() && hint.is_none(),
        };
        if !by.workspace.clearance().permits(marking.proposed) {
            let field = if default_tlp.is_some() {
                "default_tlp"
            } else {
                "text"
            };
            let rule = format!(
                "is marked {}, which nobody in this workspace could review",
                marking.proposed
            );
            return Err(DomainError::invalid(field, rule));
        }
        let batch_id = Uuid::new_v4();
        let text_warnings = sensitivity(&text, marking.proposed);
        let staged: Vec<(StagedEntity, ExtractedEntity)> = entities
            .into_iter()
            .zip(candidates)
            .map(|(found, duplicates)| {
                let entity = stage(
                    batch_id,
                    &found,
                    duplicates,
                    marking,
                    default_confidence,
                    &text_warnings,
                    mode,
                );
                (entity, found)
            })
            .collect();
        let now = clock::now();
        let batch = StagingBatch {
            id: batch_id,
            status: "open".into(),
            source_type,
            session_id,
            ingest_mode: mode,
            summary: summary(staged.iter().map(|(entity, _)| entity), marking.missing),
            warnings,
            created_at: now,
            committed_at: None,
        };
        let entry = AuditEntry::by(&by, "ingest.preview", "staging_batch", Outcome::Success, now)
            .on(batch_id)
            .with("entities", staged.len() as u64)
            .with("ingest_mode", mode.as_str());
        let new = NewBatch {
            batch: &batch,
            user: by.user_id(),
            text: &text,
            tlp: marking.proposed,
            relations: &relations,
            entities: &staged,
        };
        self.store.create_batch(ws, &new, &entry).await?;
        self.chain(entry).await;
        let mut late = None;
        if mode == IngestMode::Auto {
            let commit = CommitBatch {
                by: by.clone(),
                batch: batch_id,
            };
            match self.commit_batch(commit).await {
                Ok(_) => {}
                // The batch is there and must not be sent again: it is committed by its own route later.
                Err(error) if error.kind() == ErrorKind::Unavailable => late = Some(error),
                Err(error) => return Err(error),
            }
        }
        let mut view = self.read_batch(ReadBatch { by, batch: batch_id }).await?;
        view.batch
            .warnings
            .extend(late.map(|error| format!("not committed yet ({error}); commit the batch later")));
        Ok(view)
    }

    async fn read_batch(&self, message: ReadBatch) -> Result<BatchView, DomainError> {
        let ReadBatch { by, batch } = message;
        let (ws, highest) = (by.workspace.id, by.workspace.clearance().highest());
        let found = self.store.batch(ws, batch, highest).await?;
        let (mut batch, mut entities, hidden) = found.ok_or(DomainError::NotFound("batch"))?;
        if self.hide_candidates(&by, &mut entities).await? || hidden {
            // What is hidden leaves no trace in the figures either.
            batch.summary = summary(entities.iter(), batch.summary.missing_tlp > 0);
        }
        Ok(BatchView { batch, entities })
    }

    /// Takes out candidates whose nodes the caller may not see; whether there were any. They were looked up at the time
    /// of the preview.
    async fn hide_candidates(
        &self,
        by: &Principal,
        entities: &mut [StagedEntity],
    ) -> Result<bool, DomainError> {
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
        Ok(nodes.iter().any(|node| !visible.contains(node)))
    }

    async fn decide(&self, message: Decide) -> Result<StagedEntity, DomainError> {
        let Decide { by, entity, decision } = message;
        let ws = by.workspace.id;
        let highest = by.workspace.clearance().highest();
        let mut target_type = None;
        if let Some(target) = decision.merge_target {
            let visible = self.store.nodes_by_id(ws, &[target], highest, false).await?;
            let Some(found) = visible.first() else {
                let rule = "must be an active node of this workspace";
                return Err(DomainError::invalid("merge_target_id", rule));
            };
            target_type = Some(found.node.node_type);
        }
        let mut entry = AuditEntry::by(
            &by,
            "ingest.staging_change",
            "staged_entity",
            Outcome::Success,
            clock::now(),
        )
        .on(entity)
        .with("status", decision.status.as_str());
        if let Some(level) = decision.resolved_tlp {
            entry = entry.with("resolved_tlp", level.as_str());
        }
        if let Some(target) = decision.merge_target {
            entry = entry.with("merge_target_id", target.to_string());
        }
        let mut changed = self
            .store
            .decide(ws, entity, decision, (highest, target_type), &entry)
            .await?;
        self.chain(entry).await;
        self.hide_candidates(&by, std::slice::from_mut(&mut changed))
            .await?;
        Ok(changed)
    }

    async fn commit_batch(&self, message: CommitBatch) -> Result<CommitResult, DomainError> {
        let lock = self.lock_of(message.batch);
        let _alone = lock.lock().await;
        self.graph
            .call(CommitStaged {
                by: message.by,
                batch: message.batch,
            })
            .await
    }

    fn lock_of(&self, batch: Uuid) -> Arc<Mutex<()>> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = batches.get(&batch).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::new(Mutex::new(()));
        batches.insert(batch, Arc::downgrade(&lock));
        lock
    }

    async fn chain(&self, entry: AuditEntry) {
        if let Err(error) = self.audit.call(Chain(entry)).await {
            // Not lost: entries without a link are linked at the next start.
            tracing::warn!(?error, "audit entry waits for its link");
        }
    }
}

/// The marking of everything in a batch, until somebody decides otherwise.
#[derive(Debug, Clone, Copy)]
struct Marking {
    proposed: Tlp,
    missing: bool,
}

/// Stages one extracted entity. In auto mode what carries no sensitivity warning is accepted at once.
fn stage(
    batch: Uuid,
    found: &ExtractedEntity,
    duplicates: Vec<DuplicateCandidate>,
    marking: Marking,
    default_confidence: Option<f64>,
    text_warnings: &[String],
    mode: IngestMode,
) -> StagedEntity {
    let mut warnings = found.warnings.clone();
    warnings.extend(text_warnings.iter().cloned());
    for warning in sensitivity(&found.description, marking.proposed) {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let sensitive = warnings.iter().any(|warning| warning.starts_with(SENSITIVITY));
    let status = if mode == IngestMode::Auto && !sensitive {
        StagedStatus::Accepted
    } else {
        StagedStatus::Pending
    };
    StagedEntity {
        id: Uuid::new_v4(),
        batch_id: batch,
        status,
        node_type: found.node_type,
        name: found.name.clone(),
        description: found.description.clone(),
        proposed_tlp: marking.proposed,
        proposed_confidence: default_confidence.unwrap_or(found.confidence),
        resolved_tlp: None,
        merge_target_id: None,
        duplicate_candidates: duplicates,
        warnings,
        extraction_reasoning: found.reasoning.clone(),
        node_id: None,
    }
}

fn summary<'e>(staged: impl Iterator<Item = &'e StagedEntity> + Clone, missing_tlp: bool) -> Summary {
    let count =
        |test: &dyn Fn(&StagedEntity) -> bool| staged.clone().filter(|entity| test(entity)).count() as u64;
    let total_parsed = count(&|_| true);
    let known = |entity: &StagedEntity| {
        entity
            .duplicate_candidates
            .iter()
            .any(|candidate| candidate.matched != MatchKind::Semantic)
    };
    let total_to_update = count(&known);
    Summary {
        total_parsed,
        total_to_add: total_parsed - total_to_update,
        total_to_update,
        duplicates: count(&|entity| !entity.duplicate_candidates.is_empty()),
        missing_tlp: if missing_tlp { total_parsed } else { 0 },
        sensitive_warns: count(&|entity| {
            entity
                .warnings
                .iter()
                .any(|warning| warning.starts_with(SENSITIVITY))
        }),
    }
}
