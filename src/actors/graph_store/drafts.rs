//! Ingest of drafts, which every source other than STIX produces, and the commit of staged drafts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::core::{GraphCore, NODES_PER_PAGE};
use super::corrections::{Compared, compare_versions};
use super::ingest::BULK;
use super::matching::{Matches, equivalent_types, find_matches, known_names, strings};
use super::merges::SeenMerges;
use crate::actors::indexed_store::WorkspaceState;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::actors::worker::{Access, Work};
use crate::capacity::run_heavy;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::draft::{Drafts, NodeDraft};
use crate::domain::error::DomainError;
use crate::domain::ingest_result::IngestResult;
use crate::domain::node::NodeType;
use crate::domain::principal::Principal;
use crate::domain::staging::{CommitResult, DuplicateCandidate, ExtractedEntity, MatchKind};
use crate::domain::tlp::Tlp;
use crate::domain::warninglists::Warninglists;
use crate::search::{Filter, Hit, KeyKind, Mode, SearchIndex, WorkspaceIndex, embedding_text};
use crate::store::{Change, DraftsWrite, GraphWritten};
use crate::warninglists::WarninglistsHandle;

/// Cosine similarity from which two nodes may mean the same.
const SAME_MEANING: f32 = 0.8;
/// Maximum number of candidates shown per entity.
const CANDIDATES: usize = 5;
/// Properties that name exactly one thing.
const IDENTIFIERS: [&str; 2] = ["value", "external_ids"];

/// Ingests drafts: all of them, or, on an error, none.
#[derive(Debug)]
pub struct IngestDrafts {
    pub by: Principal,
    pub drafts: Drafts,
    /// Name of the action in the audit log.
    pub action: &'static str,
}

/// Outcome of an ingest of drafts.
#[derive(Debug)]
pub struct DraftsOutcome {
    pub result: IngestResult,
    /// The node each draft became, in the order of the drafts.
    pub ids: Vec<Uuid>,
    /// Names in dispute.
    pub warnings: Vec<String>,
    /// Number of attributes of which a version that is no older is known.
    pub outdated: u64,
}

impl Work for IngestDrafts {
    type Core = GraphCore;
    type Reply = DraftsOutcome;
    const NAME: &'static str = "ingest_drafts";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    fn is_bulk(&self) -> bool {
        self.drafts.nodes.len() >= BULK
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.ingest_drafts(self).await
    }
}

/// Finds stored nodes that extracted entities may be duplicates of.
#[derive(Debug)]
pub struct FindDuplicates {
    pub by: Principal,
    pub entities: Vec<ExtractedEntity>,
}

impl Work for FindDuplicates {
    type Core = GraphCore;
    type Reply = Vec<Vec<DuplicateCandidate>>;
    const NAME: &'static str = "find_duplicates";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let FindDuplicates { by, entities } = self;
        let ws = by.workspace.id;
        let target = core.graph.index_of(ws).await?;
        let highest = by.workspace.clearance().highest();
        let index = Arc::clone(&core.graph.index);
        let merges = core.merges_seen(ws, (highest, false)).await?;
        let found = blocking(move || {
            entities
                .iter()
                .map(|entity| candidates(&index, (&target, &merges), entity, highest))
                .collect::<Result<Vec<_>, _>>()
        })
        .await?;
        let ids: Vec<Uuid> = found.iter().flatten().map(|(id, ..)| *id).collect();
        let stored = core.graph.store.nodes_by_id(ws, &ids, highest, false).await?;
        let by_id: HashMap<Uuid, _> = stored
            .into_iter()
            .map(|stored| (stored.node.id, stored.node))
            .collect();
        let shown = |(id, matched, score): (Uuid, MatchKind, f32)| {
            let node = by_id.get(&id)?;
            let (node_type, name) = (node.node_type, node.name.clone());
            Some(DuplicateCandidate {
                node_id: id,
                node_type,
                name,
                score,
                matched,
            })
        };
        Ok(found
            .into_iter()
            .map(|list| list.into_iter().filter_map(shown).collect())
            .collect())
    }
}

/// Commits the decided entities of one batch as nodes, all or nothing.
#[derive(Debug)]
pub struct CommitStaged {
    pub by: Principal,
    pub batch: Uuid,
}

impl Work for CommitStaged {
    type Core = GraphCore;
    type Reply = CommitResult;
    const NAME: &'static str = "commit_staged";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let CommitStaged { by, batch } = self;
        let ws = by.workspace.id;
        let highest = by.workspace.clearance().highest();
        let target = core.graph.index_of(ws).await?;
        let entry = AuditEntry::by(
            &by,
            "ingest.batch_commit",
            "staging_batch",
            Outcome::Success,
            clock::now(),
        )
        .on(batch);
        let audit = |result: &CommitResult| {
            entry
                .clone()
                .with("nodes_created", result.nodes_created)
                .with("nodes_updated", result.nodes_updated)
                .with("merged", result.merged)
                .with("discarded", result.discarded)
                .with("remaining", result.remaining)
        };
        let state = core.graph.state(ws);
        let done = {
            let mut turn = core.graph.turn(ws, &state).await?;
            let done = loop {
                state.wait_until_indexed().await?;
                let known = core.known_entities(ws, batch, &target, highest).await?;
                let seen = (highest, turn.after());
                let store = &core.graph.store;
                match store
                    .commit_batch(ws, batch, &known, seen, clock::now(), audit)
                    .await
                {
                    Ok(done) => break done,
                    Err(error) => turn.plan_again(error).await?,
                }
            };
            turn.record(done.written.rev);
            done
        };
        let indexed = core.index_stored(ws, &state, &done.written);
        tokio::join!(indexed, core.graph.chain(audit(&done.result)));
        Ok(done.result)
    }
}

impl GraphCore {
    /// The nodes that the entities of a batch were found to be, by entity.
    async fn known_entities(
        &self,
        ws: Uuid,
        batch: Uuid,
        target: &Arc<WorkspaceIndex>,
        highest: Tlp,
    ) -> Result<HashMap<Uuid, Uuid>, DomainError> {
        let staged = self.graph.store.staged_drafts(ws, batch, highest).await?;
        let (ids, nodes): (Vec<Uuid>, Vec<NodeDraft>) = staged.into_iter().unzip();
        let drafts = Arc::new(Drafts {
            nodes,
            ..Drafts::default()
        });
        let merges = self.merges_seen(ws, (highest, false)).await?;
        let seen = (highest, &merges);
        let found = find_matches(&self.graph.store, (ws, target), &drafts, seen).await?;
        let known = found.merges.into_iter();
        Ok(known
            .filter_map(|(place, node)| Some((*ids.get(place)?, node)))
            .collect())
    }

    /// Writes and indexes drafts.
    pub(super) async fn ingest_drafts(&self, message: IngestDrafts) -> Result<DraftsOutcome, DomainError> {
        let IngestDrafts {
            by,
            mut drafts,
            action,
        } = message;
        let ws = by.workspace.id;
        if self.warninglists.lowers_confidence() {
            let warninglists = self.warninglists.clone();
            drafts = run_heavy(Some(ws), move || Ok(lower_listed(drafts, &warninglists))).await?;
        }
        let highest = by.workspace.clearance().highest();
        let drafts = Arc::new(drafts);
        let target = self.graph.index_of(ws).await?;
        let entry = AuditEntry::by(&by, action, "node", Outcome::Success, clock::now());
        let audit = |result: &IngestResult| {
            entry
                .clone()
                .with("nodes_created", result.nodes_created)
                .with("nodes_updated", result.nodes_updated)
                .with("evidence_created", result.evidence_created)
                .with("edges_created", result.edges_created)
        };
        let state = self.graph.state(ws);
        let (found, compared): (Matches, Compared);
        let done = {
            let mut turn = self.graph.turn(ws, &state).await?;
            let done = loop {
                // The names committed just before must be visible, or a node would be duplicated.
                state.wait_until_indexed().await?;
                let store = &self.graph.store;
                let now_compared = compare_versions(store, (ws, &target), &drafts, highest).await?;
                let drafts = now_compared.drafts.as_ref().unwrap_or(&drafts);
                let merges = self.merges_seen(ws, (highest, false)).await?;
                let seen = (highest, &merges);
                let now_found = find_matches(store, (ws, &target), drafts, seen).await?;
                let write = DraftsWrite {
                    ws,
                    drafts,
                    merges: &now_found.merges,
                    highest,
                    evidence_only: &HashSet::new(),
                    corrections: &now_compared.corrections,
                    after: turn.after(),
                    now: clock::now(),
                };
                match store.ingest_drafts(&write, audit).await {
                    Ok(done) => {
                        (found, compared) = (now_found, now_compared);
                        break done;
                    }
                    Err(error) => turn.plan_again(error).await?,
                }
            };
            turn.record(done.written.rev);
            done
        };
        // Nothing is retried from here on, so a large request releases its memory before the index needs some.
        drop(drafts);
        let indexed = self.index_stored(ws, &state, &done.written);
        tokio::join!(indexed, self.graph.chain(audit(&done.result)));
        Ok(DraftsOutcome {
            result: done.result,
            ids: done.ids,
            warnings: found.disputes.warnings(),
            outdated: compared.outdated,
        })
    }

    /// Indexes the nodes, edges and passages that a write changed, page by page.
    pub(super) async fn index_stored(&self, ws: Uuid, state: &WorkspaceState, written: &GraphWritten) {
        let GraphWritten { rev, rows } = written;
        let rev = *rev;
        let of_nodes = rows
            .nodes
            .chunks(NODES_PER_PAGE)
            .map(|page| (page, [].as_slice()));
        let of_edges = rows
            .edges
            .chunks(NODES_PER_PAGE)
            .map(|page| ([].as_slice(), page));
        let pages: Vec<(&[Uuid], &[Uuid])> = of_nodes.chain(of_edges).collect();
        let pages = pages.into_iter().map(|(nodes, edges)| async move {
            let target = self.graph.open_index(ws).await?;
            let changes = |ids: &[Uuid]| ids.iter().map(|id| Change { id: *id, rev }).collect();
            let changes = (changes(nodes), changes(edges));
            self.graph.source.docs_of(ws, changes, &target).await
        });
        self.graph.index_revision(ws, state, rev, pages).await;
    }
}

/// The drafts with lower confidence of what is on warninglists.
fn lower_listed(mut drafts: Drafts, warninglists: &WarninglistsHandle) -> Drafts {
    let indicators = drafts
        .nodes
        .iter_mut()
        .filter(|node| node.node_type == NodeType::Ioc);
    for node in indicators {
        let names = |lists: &Warninglists| lists.of_node(node.node_type, &node.name, &node.properties.map());
        node.confidence = warninglists.confidence(node.confidence, names);
    }
    drafts
}

type Candidate = (Uuid, MatchKind, f32);

fn candidates(
    index: &SearchIndex,
    (target, merges): (&WorkspaceIndex, &SeenMerges),
    entity: &ExtractedEntity,
    highest: Tlp,
) -> Result<Vec<Candidate>, DomainError> {
    let filter = Filter {
        node_types: Some(equivalent_types(entity.node_type)),
        ..Filter::up_to(highest)
    };
    let mut keys = vec![entity.name.as_str()];
    for key in IDENTIFIERS {
        keys.extend(strings(entity.properties.get(key)));
    }
    let own = keys.len();
    keys.extend(known_names(entity.node_type, &entity.name));
    let mut found: Vec<Candidate> = Vec::new();
    for hit in target.lookup(&keys, &filter).map_err(index_error)? {
        let (matched, score) = match hit.kind {
            _ if hit.key >= own => (MatchKind::Alias, 0.9),
            KeyKind::Identifier => (MatchKind::Id, 1.0),
            KeyKind::Name => (MatchKind::Name, 0.95),
            KeyKind::Alias => (MatchKind::Alias, 0.9),
        };
        let stands = merges.standing(hit.node_id);
        match found.iter_mut().find(|(id, ..)| *id == stands) {
            Some(known) if known.1 > matched => *known = (stands, matched, score),
            Some(_) => {}
            None => found.push((stands, matched, score)),
        }
    }
    // Indicators that look alike are still different indicators.
    if entity.node_type != NodeType::Ioc {
        for hit in find_similar_in_meaning(index, target, entity, &filter)? {
            let stands = merges.standing(hit.node_id);
            if !found.iter().any(|(id, ..)| *id == stands) {
                found.push((stands, MatchKind::Semantic, hit.score));
            }
        }
    }
    found.sort_by(|a, b| a.1.cmp(&b.1).then(b.2.total_cmp(&a.2)));
    // What is not the same as the node that fits best is none of this name.
    if let Some((best, ..)) = found.first().copied() {
        found.retain(|(id, ..)| *id == best || !merges.are_distinct(best, *id));
    }
    found.truncate(CANDIDATES);
    Ok(found)
}

fn find_similar_in_meaning(
    index: &SearchIndex,
    target: &WorkspaceIndex,
    entity: &ExtractedEntity,
    filter: &Filter,
) -> Result<Vec<Hit>, DomainError> {
    let aliases: Vec<String> = strings(entity.properties.get("aliases"))
        .map(str::to_owned)
        .collect();
    let text = embedding_text(&entity.name, &aliases, &entity.description);
    // Without the model there are no candidates by meaning, only those by name.
    let Ok(vector) = index.embed_query(&text) else {
        return Ok(Vec::new());
    };
    let hits = target
        .search(&text, Some(&vector), Mode::Vector, filter, CANDIDATES)
        .map_err(index_error)?;
    Ok(hits.into_iter().filter(|hit| hit.score >= SAME_MEANING).collect())
}
