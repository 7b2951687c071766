//! Look-up of a list of values: one message for all of them.
//!
//! Rules:
//! - Workspace, marking and status are conditions of every step: of the keys, of the networks, of the rows, of the
//!   relationships and of what these lead to. What is hidden is not found, so its values are unknown.
//! - Work is linear in the values. A key that many of them share, such as the host of their URLs, is looked up once.

mod candidates;
mod indicated;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use self::candidates::{Candidate, Wanted};
use super::core::GraphCore;
use super::hits::StandingNodes;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::kinds::EntityKind;
use crate::domain::lookup::{
    AskedValue, LookupHit, LookupMatch, LookupResult, LookupSummary, MAX_HITS, Verdict, carries,
    other_digests,
};
use crate::domain::node::KgNode;
use crate::domain::principal::{Principal, Workspace};
use crate::domain::session::{HasTlp, RecallMode, RecallSession, Visible};
use crate::domain::tlp::Tlp;
use crate::store::SessionRecord;

/// Most nodes that a session keeps, the known ones first.
const MAX_RECORDED: usize = 10_000;

/// Looks values up and stores what is found as a session.
#[derive(Debug)]
pub struct LookUp {
    pub by: Principal,
    pub asked: Vec<AskedValue>,
    pub include_rejected: bool,
}

/// What a look-up found.
#[derive(Debug)]
pub struct LookUpOutcome {
    /// In the order of the values.
    pub results: Vec<LookupResult<LookupHit>>,
    pub summary: LookupSummary,
    pub recall_id: Uuid,
    /// Number of nodes found that the session has no room for.
    pub not_recorded: u64,
}

impl Work for LookUp {
    type Core = GraphCore;
    type Reply = LookUpOutcome;
    const NAME: &'static str = "look_up";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let LookUp {
            by,
            asked,
            include_rejected,
        } = self;
        let count: u64 = asked.iter().map(|asked| asked.count).sum();
        let search = ReadRights {
            workspace: &by.workspace,
            include_rejected: include_rejected && by.may_see_rejected(),
        };
        let found = core.find_values(&search, &asked).await?;
        let told = core.tell(&search, &found).await?;
        let warninglists = core.warninglists.current();
        let results: Vec<LookupResult<LookupHit>> = asked
            .into_iter()
            .zip(found.of_values)
            .map(|(asked, hits)| {
                let hits = hits
                    .iter()
                    .filter_map(|hit| Some(told.get(&hit.node)?.matched(hit)));
                let listed = warninglists.of(asked.kind, &asked.value);
                LookupResult::new(asked, listed, hits.collect(), |hit: &LookupHit| hit.matched)
            })
            .collect();
        let (session, not_recorded) = session_of(&results, count);
        let summary = LookupSummary::of(results.iter().map(|result| result.verdict));
        let entry = AuditEntry::by(
            &by,
            "recall.lookup",
            "recall_session",
            Outcome::Success,
            session.created_at,
        )
        .on(session.id)
        .with("values", count)
        .with("known", summary.known)
        .with("result_count", session.result_count)
        .with("max_tlp", session.max_tlp.as_str())
        .with("include_rejected", search.include_rejected);
        let record = SessionRecord {
            session,
            user: by.user_id(),
            include_rejected: search.include_rejected,
        };
        let store = &core.graph.store;
        store.save_session(by.workspace.id, &record, &entry).await?;
        core.graph.chain(entry).await;
        Ok(LookUpOutcome {
            results,
            summary,
            recall_id: record.session.id,
            not_recorded,
        })
    }
}

/// What a caller may see.
pub(super) struct ReadRights<'w> {
    workspace: &'w Workspace,
    include_rejected: bool,
}

impl ReadRights<'_> {
    fn limits(&self) -> (Tlp, bool) {
        (self.workspace.clearance().highest(), self.include_rejected)
    }
}

/// What is found of some values.
struct FoundValues {
    /// The closest first, each node once.
    of_values: Vec<Vec<Candidate>>,
    nodes: HashMap<Uuid, KgNode>,
}

impl GraphCore {
    async fn find_values(
        &self,
        rights: &ReadRights<'_>,
        asked: &[AskedValue],
    ) -> Result<FoundValues, DomainError> {
        let wanted = asked.iter().map(Wanted::of).collect();
        let mut of_values = self.candidates(rights, wanted).await?;
        let mut loaded = StandingNodes::default();
        self.confirm(rights, &mut of_values, &mut loaded).await?;
        let files: Vec<(usize, Wanted)> = of_values
            .iter()
            .enumerate()
            .flat_map(|(place, hits)| {
                let own = hits
                    .iter()
                    .filter(|hit| hit.matched == LookupMatch::Value && hit.is_digest());
                let nodes = &loaded.nodes;
                let others = own.flat_map(move |hit| {
                    let node = nodes.get(&hit.node);
                    node.map(|node| other_digests(node, &hit.value))
                        .unwrap_or_default()
                });
                others.map(move |(kind, digest)| (place, Wanted::same_file(kind, digest)))
            })
            .collect();
        if !files.is_empty() {
            let (places, wanted): (Vec<usize>, Vec<Wanted>) = files.into_iter().unzip();
            let mut same = self.candidates(rights, wanted).await?;
            self.confirm(rights, &mut same, &mut loaded).await?;
            for (place, hits) in places.into_iter().zip(same) {
                let all = of_values.get_mut(place);
                all.into_iter().for_each(|all| all.extend(hits.iter().cloned()));
            }
        }
        let nodes = loaded.nodes;
        for hits in &mut of_values {
            let order = |hit: &Candidate| (hit.matched, hit.distance);
            hits.sort_by(|one, other| {
                let confidence = |hit: &Candidate| nodes.get(&hit.node).map_or(0.0, |node| node.confidence);
                order(one)
                    .cmp(&order(other))
                    .then_with(|| confidence(other).total_cmp(&confidence(one)))
                    .then_with(|| one.node.cmp(&other.node))
            });
            let mut known = HashSet::new();
            hits.retain(|hit| known.insert(hit.node));
            hits.truncate(MAX_HITS + 1);
        }
        Ok(FoundValues { of_values, nodes })
    }

    /// Loads the nodes of candidates, and drops those that the caller may not see or that lack the value. A version that
    /// another one stands for leaves its place to that one.
    async fn confirm(
        &self,
        rights: &ReadRights<'_>,
        of_values: &mut [Vec<Candidate>],
        loaded: &mut StandingNodes,
    ) -> Result<(), DomainError> {
        let ids: HashSet<Uuid> = of_values.iter().flatten().map(|hit| hit.node).collect();
        let ids: Vec<Uuid> = ids
            .into_iter()
            .filter(|id| !loaded.nodes.contains_key(id))
            .collect();
        let found = self
            .standing_nodes(rights.workspace, &ids, rights.include_rejected)
            .await?;
        let visible = Visible::filter(found.nodes.into_values().collect(), rights.workspace.clearance());
        loaded
            .nodes
            .extend(visible.into_rows().map(|node| (node.id, node)));
        loaded.standing.extend(found.standing);
        let StandingNodes { nodes, standing } = loaded;
        for hits in of_values {
            hits.retain_mut(|hit| {
                let carried = |node: &KgNode| hit.network.is_some() || carries(node, hit.kind, &hit.value);
                let is_carried = nodes.get(&hit.node).is_some_and(carried);
                hit.node = standing.get(&hit.node).copied().unwrap_or(hit.node);
                is_carried && nodes.contains_key(&hit.node)
            });
        }
        Ok(())
    }

    /// What the hits are told as, by their nodes.
    async fn tell(
        &self,
        rights: &ReadRights<'_>,
        found: &FoundValues,
    ) -> Result<HashMap<Uuid, NodeHit>, DomainError> {
        let ids: HashSet<Uuid> = found.of_values.iter().flatten().map(|hit| hit.node).collect();
        let nodes: Vec<&KgNode> = ids.iter().filter_map(|id| found.nodes.get(id)).collect();
        let mut sources = self.sources_of(rights, &nodes).await?;
        let mut indicated = self.indicated_by(rights, &nodes).await?;
        let told = nodes.into_iter().map(|node| {
            let (indicates, more_indicated) = indicated.remove(&node.id).unwrap_or_default();
            let time = |key: &str| {
                node.properties
                    .get(key)
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            };
            let hit = LookupHit {
                id: node.id,
                node_type: node.node_type,
                name: node.name.clone(),
                matched: LookupMatch::Value,
                value: String::new(),
                tlp: node.tlp,
                status: node.status,
                confidence: node.confidence,
                first_seen: time("first_seen").or_else(|| time("first_observed")),
                last_seen: time("last_seen").or_else(|| time("last_observed")),
                ingested_at: node.ingested_at,
                sources: sources.remove(&node.id).unwrap_or_default(),
                indicates,
                more_indicated,
            };
            (node.id, NodeHit(hit))
        });
        Ok(told.collect())
    }

    /// The sources of nodes, that of the node itself first. A single evidence record is that of the node.
    async fn sources_of(
        &self,
        rights: &ReadRights<'_>,
        nodes: &[&KgNode],
    ) -> Result<HashMap<Uuid, Vec<String>>, DomainError> {
        let several = nodes.iter().filter(|node| node.linked_evidence_ids.len() > 1);
        let evidence: HashSet<Uuid> = several
            .flat_map(|node| &node.linked_evidence_ids)
            .copied()
            .collect();
        let evidence: Vec<Uuid> = evidence.into_iter().collect();
        let (ws, clearance) = (rights.workspace.id, rights.workspace.clearance());
        let heads = self
            .graph
            .store
            .evidence_heads(ws, &evidence, clearance.highest(), false);
        let heads = Visible::filter(heads.await?, clearance);
        let of: HashMap<Uuid, &str> = heads
            .rows()
            .iter()
            .map(|head| (head.id, head.source.as_str()))
            .collect();
        let sources = nodes.iter().map(|node| {
            let mut others: Vec<&str> = node
                .linked_evidence_ids
                .iter()
                .filter_map(|id| of.get(id).copied())
                .collect();
            others.sort_unstable();
            others.dedup();
            let others = others.into_iter().filter(|other| *other != node.source);
            let all = std::iter::once(node.source.as_str()).chain(others);
            (
                node.id,
                all.filter(|source| !source.is_empty())
                    .map(str::to_owned)
                    .collect(),
            )
        });
        Ok(sources.collect())
    }
}

/// A node as it is told, whatever it matched.
struct NodeHit(LookupHit);

impl NodeHit {
    fn matched(&self, candidate: &Candidate) -> LookupHit {
        let value = candidate.network.map_or_else(
            || candidate.value.clone(),
            |network| match network.is_address() {
                true => network
                    .to_string()
                    .split('/')
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
                false => network.to_string(),
            },
        );
        LookupHit {
            matched: candidate.matched,
            value,
            ..self.0.clone()
        }
    }
}

impl HasTlp for LookupHit {
    fn tlp(&self) -> Tlp {
        self.tlp
    }
}

/// The session of a look-up, and the number of nodes that it has no room for. The nodes of known values come first.
fn session_of(results: &[LookupResult<LookupHit>], count: u64) -> (RecallSession, u64) {
    let mut recorded: Vec<(Verdict, usize, &LookupHit)> = results
        .iter()
        .flat_map(|result| &result.hits)
        .enumerate()
        .map(|(place, hit)| (hit.matched.verdict(), place, hit))
        .collect();
    recorded.sort_unstable_by_key(|(verdict, place, _)| (*verdict, *place));
    let mut known = HashSet::new();
    recorded.retain(|(.., hit)| known.insert(hit.id));
    let not_recorded = recorded.len().saturating_sub(MAX_RECORDED);
    recorded.truncate(MAX_RECORDED);
    let max_tlp = recorded
        .iter()
        .map(|(.., hit)| hit.tlp)
        .max()
        .unwrap_or(Tlp::White);
    let session = RecallSession {
        id: Uuid::new_v4(),
        query: format!(
            "look-up of {count} {}",
            if count == 1 { "value" } else { "values" }
        ),
        mode: RecallMode::Structured,
        result_count: recorded.len() as u64,
        max_tlp,
        has_red_node: max_tlp == Tlp::Red,
        node_ids: recorded.iter().map(|(.., hit)| hit.id).collect(),
        created_at: clock::now(),
    };
    (session, not_recorded as u64)
}

impl Candidate {
    fn is_digest(&self) -> bool {
        let digests = [
            EntityKind::Md5,
            EntityKind::Sha1,
            EntityKind::Sha256,
            EntityKind::Sha512,
        ];
        self.kind.is_some_and(|kind| digests.contains(&kind))
    }
}
