//! STIX ingest.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use uuid::Uuid;

use super::changes::Nodes;
use super::core::GraphCore;
use super::joins::find_joins;
use crate::actors::indexed_store::{Turn, WorkspaceState};
use crate::actors::worker::{Access, Work};
use crate::capacity::run_heavy;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::ids::WorkspaceIds;
use crate::domain::ingest_result::IngestResult;
use crate::domain::node::NodeType;
use crate::domain::principal::Principal;
use crate::domain::stix::ingest::{self, Markings, SkipReport, StixDefaults, StixPlan, StixPlanning};
use crate::domain::stix::object;
use crate::domain::stix::objects::Objects;
use crate::domain::warninglists::Warninglists;
use crate::search::WorkspaceIndex;
use crate::store::{RemarkedObjects, ReviewOutcome, RiseProgress, StixIngestOutcome, StixOrigin};
use crate::warninglists::WarninglistsHandle;

/// The plan with lower confidence of what is on warninglists.
fn lower_listed(mut plan: StixPlan, warninglists: &WarninglistsHandle) -> StixPlan {
    let indicators = plan
        .nodes
        .iter_mut()
        .filter(|node| node.node_type == NodeType::Ioc);
    for node in indicators {
        let properties = serde_json::from_str(&node.properties).unwrap_or_default();
        let names = |lists: &Warninglists| lists.of_node(node.node_type, &node.name, &properties);
        node.confidence = warninglists.confidence(node.confidence, names);
    }
    plan
}

/// Audit action for re-marking objects that waited for a marking definition.
const REMARKED: &str = "ingest.stix_remarked";

/// Objects from which a bundle is bulk work.
pub(super) const BULK: usize = 100;

/// Objects planned at a time, which takes some tens of milliseconds.
const OBJECTS_PER_PIECE: usize = 200;

/// Ingests the objects of a STIX bundle: all usable ones, or, on an error, none.
#[derive(Debug)]
pub struct IngestStix {
    pub by: Principal,
    pub objects: Objects,
    pub defaults: StixDefaults,
    pub origin: StixOrigin,
}

/// Outcome of an ingest.
#[derive(Debug)]
pub struct IngestOutcome {
    pub result: IngestResult,
    pub skipped: SkipReport,
    /// One warning for each object that says another level than its markings, for each that was ingested but is withheld
    /// from export, and for each whose name several nodes carry.
    pub warnings: Vec<String>,
    /// Earlier objects that were re-marked because this bundle defines one of their markings.
    pub remarked: u64,
    /// Relationships that wait for an end.
    pub waiting: u64,
    /// What became of the items, if the objects were reviewed.
    pub reviewed: ReviewOutcome,
}

impl Work for IngestStix {
    type Core = GraphCore;
    type Reply = IngestOutcome;
    const NAME: &'static str = "ingest_stix";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    fn is_bulk(&self) -> bool {
        self.objects.count() >= BULK
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.ingest_stix(self).await
    }
}

impl GraphCore {
    /// Plans, writes and indexes a bundle.
    pub(super) async fn ingest_stix(&self, message: IngestStix) -> Result<IngestOutcome, DomainError> {
        let IngestStix {
            by,
            objects,
            defaults,
            mut origin,
        } = message;
        origin.highest = Some(by.workspace.clearance().highest());
        let ws = by.workspace.id;
        // The index must be complete before a write moves its checkpoint.
        let index = self.graph.index_of(ws).await?;
        let highest = by.workspace.clearance().highest();
        let markings = self
            .graph
            .store
            .markings(ws, &objects.referenced_markings(), highest)
            .await?;
        let mut plan = plan_objects(ws, objects, defaults, markings).await?;
        if self.warninglists.lowers_confidence() {
            let warninglists = self.warninglists.clone();
            plan = run_heavy(Some(ws), move || Ok(lower_listed(plan, &warninglists))).await?;
        }
        if let Some(review) = &origin.review {
            review.mark(&mut plan);
        }
        plan.settle_definitions(highest);

        // One id for all attempts: a retry after an unknown outcome must not write the entry twice.
        let entry = entry_of(&by, &origin);
        let audit = |result: &IngestResult, skipped: &ingest::SkipReport| {
            entry
                .clone()
                .with("nodes_created", result.nodes_created)
                .with("nodes_updated", result.nodes_updated)
                .with("edges_created", result.edges_created)
                .with("edges_updated", result.edges_updated)
                .with("kept", result.kept.objects_created + result.kept.objects_updated)
                .with("held_back", result.held_back)
                .with("skipped", skipped.total())
        };
        let state = self.graph.state(ws);
        let (plan, now) = (Arc::new(plan), clock::now());
        let ids = self.graph.store.ids_of(ws);
        let merges = self.merges_seen(ws, (highest, false)).await?;
        let seen = (highest, &merges);
        let mut found = find_joins(&self.graph.store, (ws, &index), &plan, seen).await?;
        origin.joins = std::mem::take(&mut found.joins);
        let joined: Vec<Uuid> = origin.joins.values().copied().collect();
        let mut known = find_known((ws, ids), Arc::clone(&index), Arc::clone(&plan)).await?;
        known.extend(joined);
        origin.known = Some(known);
        let (done, remarked) = {
            let mut turn = self.graph.turn(ws, &state).await?;
            let done = loop {
                origin.after = turn.after();
                let store = &self.graph.store;
                match store.ingest_stix(ws, &plan, &origin, now, audit).await {
                    Ok(done) => break done,
                    Err(error) => turn.plan_again(error).await?,
                }
                // Any of its rows may have been written by the other process.
                origin.known = None;
                let merges = self.merges_seen(ws, (highest, false)).await?;
                let seen = (highest, &merges);
                found = find_joins(&self.graph.store, (ws, &index), &plan, seen).await?;
                origin.joins = std::mem::take(&mut found.joins);
            };
            turn.record(done.written.rev);
            let entry = || AuditEntry::by(&by, REMARKED, "node", Outcome::Success, clock::now());
            (done, self.release(ws, &mut turn, markings_of(&plan), entry).await)
        };
        let StixIngestOutcome {
            result,
            skipped,
            held,
            silent,
            left_out,
            written,
            waiting,
            reviewed,
        } = done;
        let conflicts = plan.conflicts.warnings();
        // Nothing is retried from here on, so a large request releases its memory before the index needs some.
        drop(plan);
        let indexed = self.index_stored(ws, &state, &written);
        tokio::join!(indexed, self.graph.chain(audit(&result, &skipped)));
        Ok(IngestOutcome {
            result,
            skipped,
            warnings: conflicts
                .into_iter()
                .chain(silent.into_warnings())
                .chain(held.into_warnings())
                .chain(left_out.into_warnings())
                .chain(found.disputes.warnings())
                .collect(),
            remarked: self.index_remarked(ws, &state, remarked).await?,
            waiting,
            reviewed,
        })
    }

    /// Re-marks the objects that wait for these markings, where the markings are defined, and those whose markings state
    /// a stricter level than before.
    async fn release(
        &self,
        ws: Uuid,
        turn: &mut Turn<'_, Nodes>,
        markings: BTreeSet<String>,
        entry_of: impl Fn() -> AuditEntry,
    ) -> ReleaseOutcome {
        let mut released = ReleaseOutcome::default();
        let done = self
            .release_held(ws, turn, markings, &entry_of, &mut released)
            .await;
        let done = match done {
            Ok(()) => self.raise_carriers(ws, turn, &entry_of, &mut released).await,
            failed => failed,
        };
        released.failure = done.err();
        released
    }

    async fn release_held(
        &self,
        ws: Uuid,
        turn: &mut Turn<'_, Nodes>,
        markings: BTreeSet<String>,
        entry_of: &impl Fn() -> AuditEntry,
        released: &mut ReleaseOutcome,
    ) -> Result<(), DomainError> {
        if !self.graph.store.has_held_objects(ws).await? {
            return Ok(());
        }
        for marking in markings {
            loop {
                let entry = entry_of();
                let audit = |objects: u64| of_marking(&entry, &marking, objects);
                let after = turn.after();
                let page = match self.graph.store.release_held(ws, &marking, after, audit).await {
                    Ok(Some(page)) => page,
                    Ok(None) => break,
                    Err(error) => {
                        turn.plan_again(error).await?;
                        continue;
                    }
                };
                turn.record(page.written.rev);
                released.entries.push(audit(page.objects));
                released.pages.push(page);
            }
        }
        Ok(())
    }

    async fn raise_carriers(
        &self,
        ws: Uuid,
        turn: &mut Turn<'_, Nodes>,
        entry_of: &impl Fn() -> AuditEntry,
        released: &mut ReleaseOutcome,
    ) -> Result<(), DomainError> {
        loop {
            let rises = self.graph.store.rises(ws).await?;
            if rises.is_empty() {
                return Ok(());
            }
            for marking in rises {
                let mut progress = RiseProgress::default();
                loop {
                    let entry = entry_of();
                    let audit = |objects: u64| of_marking(&entry, &marking, objects);
                    let after = turn.after();
                    let store = &self.graph.store;
                    match store
                        .raise_carriers(ws, &marking, &mut progress, after, audit)
                        .await
                    {
                        Ok(Some(page)) => {
                            turn.record(page.written.rev);
                            if page.objects > 0 {
                                released.entries.push(audit(page.objects));
                            }
                            released.pages.push(page);
                        }
                        Ok(None) => break,
                        Err(error) => turn.plan_again(error).await?,
                    }
                }
            }
        }
    }

    /// Re-marks objects left by an interrupted run, or ingested by another process just as their definition arrived.
    pub(super) async fn release_waiting(&self, ws: Uuid) -> Result<(), DomainError> {
        let here = IpAddr::from([127, 0, 0, 1]);
        let entry = || AuditEntry::anonymous(ws, here, REMARKED, "node", Outcome::Success, clock::now());
        let state = self.graph.state(ws);
        let released = {
            let mut turn = self.graph.turn(ws, &state).await?;
            let markings = self.graph.store.markings_to_release(ws).await?;
            self.release(ws, &mut turn, markings.into_iter().collect(), entry)
                .await
        };
        self.index_remarked(ws, &state, released).await.map(drop)
    }

    /// Indexes the re-marked nodes; returns the number of re-marked objects.
    async fn index_remarked(
        &self,
        ws: Uuid,
        state: &WorkspaceState,
        released: ReleaseOutcome,
    ) -> Result<u64, DomainError> {
        let mut objects = 0;
        for page in released.pages {
            objects += page.objects;
            self.index_stored(ws, state, &page.written).await;
        }
        for entry in released.entries {
            self.graph.chain(entry).await;
        }
        // The rest waits for the next bundle that names the marking, or for the next start.
        released.failure.map_or(Ok(objects), Err)
    }
}

/// The nodes and edges of a plan that the index knows.
async fn find_known(
    (ws, ids): (Uuid, WorkspaceIds),
    index: Arc<WorkspaceIndex>,
    plan: Arc<StixPlan>,
) -> Result<HashSet<Uuid>, DomainError> {
    run_heavy(Some(ws), move || {
        let nodes = plan.nodes.iter().map(|node| ids.node(&node.stix_id));
        let edges = plan.relationships.iter().map(|edge| ids.edge(&edge.stix_id));
        Ok(nodes.chain(edges).filter(|id| index.contains(*id, 0)).collect())
    })
    .await
}

/// The audit entry of an ingest, or of a commit after review.
fn entry_of(by: &Principal, origin: &StixOrigin) -> AuditEntry {
    let now = clock::now();
    let mut entry = match &origin.review {
        None => AuditEntry::by(by, "ingest.stix", "node", Outcome::Success, now),
        Some(review) => AuditEntry::by(by, "feed.commit", "feed_batch", Outcome::Success, now)
            .on(review.batch)
            .with("items", review.items.len()),
    };
    if let Some(feed) = origin.feed {
        entry = entry.with("feed_source_id", feed.to_string());
    }
    entry
}

/// The audit entry for objects that were re-marked because of a marking.
fn of_marking(entry: &AuditEntry, marking: &str, objects: u64) -> AuditEntry {
    let entry = entry.clone().with("marking", marking);
    entry.with("objects", objects)
}

/// What was re-marked, and the error that stopped it, if any.
#[derive(Default)]
struct ReleaseOutcome {
    pages: Vec<RemarkedObjects>,
    entries: Vec<AuditEntry>,
    failure: Option<DomainError>,
}

/// The markings that a bundle defines, and those it lacks: another bundle may have defined them in the meantime.
fn markings_of(plan: &StixPlan) -> BTreeSet<String> {
    let defined = plan.supporting.iter().map(|support| &support.stix_id);
    let defined = defined.filter(|id| object::type_of_id(id) == Some("marking-definition"));
    let missed = plan.nodes.iter().flat_map(|node| &node.held_by);
    let missed = missed.chain(plan.relationships.iter().flat_map(|edge| &edge.held_by));
    let missed = missed.chain(plan.supporting.iter().flat_map(|support| &support.held_by));
    defined.chain(missed).cloned().collect()
}

/// Plans a bundle piece by piece, yielding between the pieces of a large one.
pub(in crate::actors) async fn plan_objects(
    ws: Uuid,
    objects: Objects,
    defaults: StixDefaults,
    known: Markings,
) -> Result<StixPlan, DomainError> {
    let mut planning = run_heavy(Some(ws), move || {
        Ok(StixPlanning::begin(objects, defaults, known))
    })
    .await?;
    loop {
        let (next, more) = run_heavy(Some(ws), move || {
            let more = planning.step(OBJECTS_PER_PIECE);
            Ok((planning, more))
        })
        .await?;
        planning = next;
        if !more {
            return Ok(planning.finish());
        }
    }
}
