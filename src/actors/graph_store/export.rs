//! STIX export: every check is made again on the current rows.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use super::core::GraphCore;
use super::export_gate::{Gate, SortedObjects};
use super::export_merges::MergedObjects;
use super::export_references::MAX_HOPS;
use super::merges::SeenMerges;
use crate::actors::audit_writer::Append;
use crate::actors::job::{blocking, spawn_read};
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::principal::{Principal, Workspace};
use crate::domain::stix::corrected::write_correction;
use crate::domain::stix::export::{self, ExportObject, ExportParts};
use crate::domain::stix::object;
use crate::domain::stix::schema::Violation;
use crate::domain::stix::sco;
use crate::domain::stix::synthesize::{self, Origin};
use crate::domain::stix::versions::standing_versions;
use crate::domain::tlp::Tlp;
use crate::store::{BlockedFeed, EdgeRecord, StoredNode, WithheldNode, Withholding};

/// The nodes of a session, and those withheld.
type Nodes = Withholding<Vec<StoredNode>, Vec<WithheldNode>>;
/// The relationships among them, and the ends of those withheld.
type Edges = Withholding<Vec<EdgeRecord>, Vec<(Uuid, Uuid)>>;

/// Maximum number of sources that a denial names.
const MAX_NAMED: usize = 5;

/// Builds the STIX bundle of a session, as JSON text.
#[derive(Debug)]
pub struct ExportSession {
    pub by: Principal,
    pub session: Uuid,
}

/// The bundle of a session.
#[derive(Debug)]
pub struct ExportBundle {
    pub bundle: String,
    /// Objects withheld because one of their markings is not defined or their source forbids redistribution.
    pub held_back: u64,
}

/// What may be exported of relationships and supporting objects.
#[derive(Clone)]
pub(super) struct ExportLimits {
    /// The strictest marking.
    pub(super) highest: Tlp,
    /// Feeds that don't allow redistribution.
    pub(super) blocked: Vec<Uuid>,
    /// Whether what is revoked or deprecated leaves, too.
    pub(super) include_rejected: bool,
    /// Which nodes leave as others.
    pub(super) merges: SeenMerges,
}

/// The objects of an export, or why there is none.
pub(super) enum ExportContents {
    Refused(Refusal),
    /// This many nodes, all of which are withheld.
    AllHeld(u64),
    /// The objects, and how many others are withheld.
    Parts(Box<ExportParts>, u64),
}

/// Why nodes may not be exported.
pub(super) struct Refusal {
    pub(super) reason: String,
    /// The feeds that forbid it.
    feeds: Vec<Uuid>,
}

impl Refusal {
    fn red() -> Self {
        Self {
            reason: "the session holds TLP:RED nodes and the workspace has no red_export_grant".into(),
            feeds: Vec::new(),
        }
    }
}

impl<T> SortedObjects<T> {
    pub(super) fn into_objects(self) -> impl Iterator<Item = ExportObject> {
        self.leaving.into_iter().map(|(_, object)| object)
    }
}

impl Work for ExportSession {
    type Core = GraphCore;
    type Reply = ExportBundle;
    const NAME: &'static str = "export_session";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let ExportSession { by, session } = self;
        let found = core.graph.store.session(by.workspace.id, session).await?;
        let record = found.ok_or(DomainError::NotFound("session"))?;
        let include_rejected = record.include_rejected && by.may_see_rejected();
        let gathered = core
            .gather(&by.workspace, &record.session.node_ids, include_rejected)
            .await?;
        let (parts, held_back) = match gathered {
            ExportContents::Refused(refusal) => {
                // The denial must be in the log before the response is sent.
                core.log_denial(&by, session, &refusal).await?;
                return Err(DomainError::Forbidden(refusal.reason));
            }
            ExportContents::AllHeld(count) => {
                core.log_export(&by, session, Outcome::Failure, (0, count))
                    .await?;
                return Err(DomainError::HeldBack { count });
            }
            ExportContents::Parts(parts, held_back) => (parts, held_back),
        };
        let exported = parts.nodes.len() as u64;
        let built = build(*parts).await?;
        let log = core.log_export(&by, session, outcome_of(&built), (exported, held_back));
        let (logged, bundle) = tokio::join!(log, text_of(built));
        logged?;
        if exported == 0 && bundle.is_err() {
            return Err(DomainError::NothingToExport);
        }
        let bundle = bundle?;
        Ok(ExportBundle { bundle, held_back })
    }
}

/// A bundle, or the rules that it breaks.
type BundleResult = Result<Value, Vec<Violation>>;

/// Builds and validates the bundle.
pub(super) async fn build(parts: ExportParts) -> Result<BundleResult, DomainError> {
    blocking(move || Ok(export::bundle(parts, Uuid::new_v4()))).await
}

/// The outcome of an export for the audit log.
pub(super) fn outcome_of(built: &BundleResult) -> Outcome {
    match built {
        Ok(_) => Outcome::Success,
        Err(_) => Outcome::Failure,
    }
}

/// The bundle as JSON text.
pub(super) async fn text_of(built: BundleResult) -> Result<String, DomainError> {
    let text = blocking(move || Ok(built.map(|bundle| bundle.to_string()))).await?;
    text.map_err(|violations| DomainError::InvalidBundle {
        details: export::summary(&violations),
    })
}

impl GraphCore {
    async fn log_denial(&self, by: &Principal, session: Uuid, refusal: &Refusal) -> Result<(), DomainError> {
        let (action, outcome) = ("recall.export_denied", Outcome::Denied);
        let mut entry = AuditEntry::by(by, action, "recall_session", outcome, clock::now())
            .on(session)
            .with("reason", refusal.reason.as_str());
        if !refusal.feeds.is_empty() {
            let feeds: Vec<String> = refusal.feeds.iter().map(Uuid::to_string).collect();
            entry = entry.with("feeds", feeds);
        }
        self.graph.audit().call(Append(entry)).await.map(drop)
    }

    /// Audits an export: how many nodes were exported, and how many objects were withheld.
    async fn log_export(
        &self,
        by: &Principal,
        session: Uuid,
        outcome: Outcome,
        (nodes, held_back): (u64, u64),
    ) -> Result<(), DomainError> {
        let entry = AuditEntry::by(by, "recall.export", "recall_session", outcome, clock::now())
            .on(session)
            .with("nodes", nodes)
            .with("held_back", held_back);
        self.graph.audit().call(Append(entry)).await.map(drop)
    }

    /// Reads these nodes anew, with everything that belongs to their export.
    pub(super) async fn gather(
        &self,
        workspace: &Workspace,
        ids: &[Uuid],
        include_rejected: bool,
    ) -> Result<ExportContents, DomainError> {
        let ws = workspace.id;
        let highest = workspace.clearance().highest();
        let merges = self.merges_seen(ws, (highest, include_rejected)).await?;
        let ids = &*merges.with_members(&merges.all_standing(ids.iter().copied()));
        // Without the grant no RED object is exported, be it a result, a relationship or an author.
        let leaving = if workspace.red_export_grant {
            highest
        } else {
            highest.min(Tlp::AmberPk)
        };
        let blocked = self.graph.store.blocked_feeds(ws).await?;
        let may_leave = ExportLimits {
            highest: leaving,
            blocked: blocked.iter().map(|feed| feed.id).collect(),
            include_rejected,
            merges,
        };
        let edges = self.edges_among(ws, ids.to_vec(), may_leave.clone());
        let nodes = self
            .graph
            .store
            .nodes_to_export(ws, ids, highest, include_rejected)
            .await?;
        if let Some(refusal) = refusal(workspace, &nodes, &blocked) {
            return Ok(ExportContents::Refused(refusal));
        }
        let count = nodes.held.len() as u64;
        if nodes.leaving.is_empty() && count > 0 {
            return Ok(ExportContents::AllHeld(count));
        }
        self.parts(workspace, ids, nodes, edges, &may_leave).await
    }

    /// Starts reading the relationships among these nodes of the workspace, hidden ones included.
    fn edges_among(
        &self,
        ws: Uuid,
        nodes: Vec<Uuid>,
        may_leave: ExportLimits,
    ) -> impl Future<Output = Result<Edges, DomainError>> {
        let store = Arc::clone(&self.graph.store);
        spawn_read(async move {
            let ExportLimits { highest, blocked, .. } = may_leave;
            store.relationships_among(ws, &nodes, highest, &blocked).await
        })
    }

    /// Collects everything the bundle consists of, in the order of the session, and counts what else is withheld.
    /// Refuses where a node carries a marking that its row does not have and that may not leave.
    async fn parts(
        &self,
        workspace: &Workspace,
        order: &[Uuid],
        nodes: Nodes,
        edges: impl Future<Output = Result<Edges, DomainError>>,
        may_leave: &ExportLimits,
    ) -> Result<ExportContents, DomainError> {
        let ws = workspace.id;
        let highest = workspace.clearance().highest();
        let mut gate = Gate::new(&self.graph.store, ws, highest, may_leave.highest);
        let author = synthesize::workspace_identity(ws, &workspace.name, workspace.created_at);
        let author_id = object::text(&author, "id").unwrap_or_default().to_owned();
        let leaving = nodes.leaving.iter().map(|stored| &stored.node);
        let standing = standing_versions(self.graph.store.ids_of(ws), leaving);
        let objects = self
            .node_objects((ws, may_leave.highest), order, nodes.leaving, &author_id)
            .await?;
        let mut sorted = gate.sort(objects).await?;
        if sorted.red && !workspace.red_export_grant {
            return Ok(ExportContents::Refused(Refusal::red()));
        }
        let held = nodes.held.len() as u64 + sorted.held;
        if sorted.leaving.is_empty() && held > 0 {
            return Ok(ExportContents::AllHeld(held));
        }
        let mut parts = ExportParts::default();
        let merges = &may_leave.merges;
        let mut merged = MergedObjects::take_from(&mut sorted.leaving, merges);
        let mut stix_ids = standing_objects(sorted.leaving, &standing, &mut parts);
        merged.add_ids(&mut stix_ids);
        let edges = edges.await?;
        let leaves = |end: &Uuid| stix_ids.contains_key(end);
        let held_edges = edges
            .held
            .iter()
            .filter(|(source, target)| leaves(source) && leaves(target));
        let held = held + held_edges.count() as u64;
        let leaving = edges.leaving.into_iter();
        let leaving = leaving.filter_map(|edge| {
            let ends = [edge.source, edge.target];
            let mut object = relationship(edge, &stix_ids, &author_id)?;
            merged.rename_in(&mut object.raw);
            let changed = ends.iter().filter_map(|end| merges.changed_at(*end)).max();
            object.changed_at = object.changed_at.max(changed);
            Some(((), object))
        });
        let sorted = gate.sort(leaving.collect()).await?;
        let held = held + sorted.held;
        parts.relationships.extend(one_per_id(sorted.into_objects()));
        merged.rename_in_all(&mut parts);
        if parts.missing_refs().contains(&author_id) {
            parts.supporting.push(ExportObject {
                raw: author,
                tlp: Tlp::White,
                confidence: None,
                changed_at: None,
            });
        }
        let held = held
            + self
                .add_supporting(
                    &mut gate,
                    ws,
                    (&mut parts, order, &mut merged),
                    (may_leave, MAX_HOPS),
                )
                .await?;
        let held = held + parts.drop_without_references();
        Ok(ExportContents::Parts(Box::new(parts), held))
    }

    /// The nodes as STIX objects, in the order of the session.
    pub(super) async fn node_objects(
        &self,
        (ws, highest): (Uuid, Tlp),
        order: &[Uuid],
        nodes: Vec<StoredNode>,
        author_id: &str,
    ) -> Result<Vec<(Uuid, ExportObject)>, DomainError> {
        let evidence: Vec<Uuid> = nodes.iter().filter_map(|stored| stored.stix_evidence).collect();
        let mut originals: HashMap<Uuid, _> = self
            .graph
            .store
            .originals(ws, &evidence, highest)
            .await?
            .into_iter()
            .collect();
        let mut by_id: HashMap<Uuid, StoredNode> =
            nodes.into_iter().map(|stored| (stored.node.id, stored)).collect();
        let mut objects = Vec::new();
        for id in order {
            let Some(stored) = by_id.remove(id) else { continue };
            let raw = match stored.stix_evidence {
                Some(evidence) => {
                    let original = originals.remove(&evidence);
                    let mut raw = original
                        .ok_or_else(|| DomainError::internal("the node's original is missing", id))?;
                    if let Some(correction) = &stored.correction {
                        write_correction(&mut raw, &stored.node, |field| correction.has(field));
                    }
                    raw
                }
                None => synthesize::object_of(&Origin {
                    id: *id,
                    node: &stored.node,
                    identity_id: author_id,
                }),
            };
            // Observables have neither a confidence nor a time (STIX 2.1 section 3.2).
            let is_dated = !object::text(&raw, "type").is_some_and(sco::is_observable);
            objects.push((
                *id,
                ExportObject {
                    raw,
                    tlp: stored.node.tlp,
                    confidence: Some(stored.node.confidence).filter(|_| is_dated),
                    changed_at: stored.changed_at.filter(|_| is_dated),
                },
            ));
        }
        Ok(objects)
    }
}

/// Adds the objects of the nodes, without those that other versions stand for. Returns the ids of the objects that leave,
/// for every node of which any version leaves.
pub(super) fn standing_objects(
    objects: Vec<(Uuid, ExportObject)>,
    standing: &HashMap<Uuid, Uuid>,
    parts: &mut ExportParts,
) -> HashMap<Uuid, String> {
    let id_of = |object: &ExportObject| object::text(&object.raw, "id").unwrap_or_default().to_owned();
    let (others, leaving): (Vec<_>, Vec<_>) =
        objects.into_iter().partition(|(id, _)| standing.contains_key(id));
    let mut stix_ids: HashMap<Uuid, String> = HashMap::new();
    for (id, object) in leaving {
        stix_ids.insert(id, id_of(&object));
        parts.nodes.push(object);
    }
    let left: HashSet<String> = stix_ids.values().cloned().collect();
    let others = others.iter().map(|(id, object)| (*id, id_of(object)));
    stix_ids.extend(others.filter(|(_, stix_id)| left.contains(stix_id)));
    stix_ids
}

/// Of several versions of a relationship the strictest, and the newest of those.
pub(super) fn one_per_id(objects: impl Iterator<Item = ExportObject>) -> Vec<ExportObject> {
    let mut left: Vec<ExportObject> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for object in objects {
        let id = object::text(&object.raw, "id").unwrap_or_default().to_owned();
        let order = |object: &ExportObject| (object.tlp, object::modified_of(&object.raw));
        match places.get(&id).and_then(|place| left.get_mut(*place)) {
            Some(known) if order(known) < order(&object) => *known = object,
            Some(_) => {}
            None => {
                places.insert(id, left.len());
                left.push(object);
            }
        }
    }
    left
}

/// Why these rows may not be exported, if they may not. Withheld nodes count too: they are part of the session.
fn refusal(workspace: &Workspace, nodes: &Nodes, blocked: &[BlockedFeed]) -> Option<Refusal> {
    let leaving = nodes
        .leaving
        .iter()
        .map(|stored| (stored.node.tlp, &stored.feeds));
    let held = nodes.held.iter().map(|withheld| (withheld.tlp, &withheld.feeds));
    let (mut red, mut feeds) = (false, HashSet::<Uuid>::new());
    for (tlp, of_node) in leaving.chain(held) {
        red |= tlp == Tlp::Red;
        feeds.extend(of_node);
    }
    if red && !workspace.red_export_grant {
        return Some(Refusal::red());
    }
    let blocking: Vec<&BlockedFeed> = blocked.iter().filter(|feed| feeds.contains(&feed.id)).collect();
    (!blocking.is_empty()).then(|| Refusal {
        reason: forbidden_by(&blocking),
        feeds: blocking.iter().map(|feed| feed.id).collect(),
    })
}

/// Names the sources that forbid redistribution, and nothing of what they brought.
fn forbidden_by(feeds: &[&BlockedFeed]) -> String {
    let sources = match feeds.len() {
        1 => "a source that does not allow redistribution",
        _ => "sources that do not allow redistribution",
    };
    let named = feeds.iter().take(MAX_NAMED);
    let named: Vec<String> = named
        .map(|feed| format!("{:?} ({})", feed.name, feed.redistribution))
        .collect();
    let more = match feeds.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the session holds nodes of {sources}: {}{more}", named.join(", "))
}

/// An edge as a STIX relationship: its original, or one built from what is stored. `None` when an end is not
/// exported.
pub(super) fn relationship(
    edge: EdgeRecord,
    stix_ids: &HashMap<Uuid, String>,
    author: &str,
) -> Option<ExportObject> {
    let (source, target) = (stix_ids.get(&edge.source)?, stix_ids.get(&edge.target)?);
    // Between nodes that are one by now there is nothing to tell.
    if source == target && edge.source != edge.target {
        return None;
    }
    let raw = match edge.raw {
        Some(raw) => raw,
        None => synthesize::relationship_of(
            edge.id,
            source,
            target,
            &edge.relationship,
            edge.proof.as_deref().unwrap_or_default(),
            author,
            edge.created_at,
        ),
    };
    Some(ExportObject {
        raw,
        tlp: edge.tlp,
        confidence: Some(edge.confidence),
        changed_at: edge.changed_at,
    })
}
