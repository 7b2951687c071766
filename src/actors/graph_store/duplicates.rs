//! Lists nodes that are likely the same.
//!
//! The index tells which keys several nodes share that the caller sees; the rows tell what the nodes share. Each pair is listed
//! once, with the first of the keys that it shares.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::matching::equivalent_types;
use super::merges::SeenMerges;
use crate::actors::audit_writer::Append;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::detail::OtherEnd;
use crate::domain::error::DomainError;
use crate::domain::graph::duplicates::{LikelyDuplicate, shared};
use crate::domain::node::{KgNode, NodeType};
use crate::domain::principal::Principal;
use crate::domain::session::Visible;
use crate::domain::stix::versions::stix_id;
use crate::search::{Filter, canonical_key};

/// Shared keys that are looked at together.
const KEYS_AT_A_TIME: usize = 200;

/// Finds pairs of nodes that are likely the same.
#[derive(Debug)]
pub struct FindLikelyDuplicates {
    pub by: Principal,
    /// Of this type alone.
    pub node_type: Option<NodeType>,
    pub limit: usize,
    /// Where the page before ended.
    pub after: Option<PlaceInPairs>,
}

/// A place in the list of pairs: so many pairs of this key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceInPairs {
    pub key: String,
    pub pairs: usize,
}

impl FromStr for PlaceInPairs {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let place = text.split_once(':').and_then(|(pairs, key)| {
            Some(Self {
                key: key.to_owned(),
                pairs: pairs.parse().ok()?,
            })
        });
        place.ok_or("must be the next_cursor of an answer")
    }
}

impl fmt::Display for PlaceInPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pairs, self.key)
    }
}

/// A page of pairs.
#[derive(Debug)]
pub struct DuplicatesPage {
    pub pairs: Visible<LikelyDuplicate>,
    /// Where it ends, if there are more.
    pub next: Option<PlaceInPairs>,
}

/// A key and the nodes that share it.
type SharedKey = (String, Vec<Uuid>);

impl Work for FindLikelyDuplicates {
    type Core = GraphCore;
    type Reply = DuplicatesPage;
    const NAME: &'static str = "find_likely_duplicates";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let FindLikelyDuplicates {
            by,
            node_type,
            limit,
            after,
        } = self;
        let clearance = by.workspace.clearance();
        let filter = Filter {
            node_types: node_type.map(equivalent_types),
            ..Filter::up_to(clearance.highest())
        };
        let merges = core
            .merges_seen(by.workspace.id, (clearance.highest(), false))
            .await?;
        let listed = core
            .list_pairs(by.workspace.id, (&filter, &merges), limit, after)
            .await?;
        let (pairs, next) = listed;
        let pairs = Visible::filter(pairs, clearance);
        let entry = AuditEntry::by(&by, "node.duplicates", "node", Outcome::Success, clock::now())
            .with("pairs", pairs.rows().len() as u64);
        core.graph.audit().call(Append(entry)).await?;
        Ok(DuplicatesPage { pairs, next })
    }
}

impl GraphCore {
    async fn list_pairs(
        &self,
        ws: Uuid,
        (filter, merges): (&Filter, &SeenMerges),
        limit: usize,
        after: Option<PlaceInPairs>,
    ) -> Result<(Vec<LikelyDuplicate>, Option<PlaceInPairs>), DomainError> {
        let (mut from, mut skip) = after.map_or_else(Default::default, |place| (place.key, place.pairs));
        let mut pairs: Vec<LikelyDuplicate> = Vec::new();
        let mut last: Option<PlaceInPairs> = None;
        loop {
            let keys = self.shared_keys(ws, filter, from.clone()).await?;
            let is_end = keys.len() < KEYS_AT_A_TIME;
            let ids: HashSet<Uuid> = keys.iter().flat_map(|(_, nodes)| nodes).copied().collect();
            let ids: Vec<Uuid> = ids.into_iter().collect();
            let stored = self
                .graph
                .store
                .nodes_by_id(ws, &merges.with_standing(&ids), filter.highest_tlp, false)
                .await?;
            let nodes: HashMap<Uuid, KgNode> = stored
                .into_iter()
                .map(|stored| (stored.node.id, stored.node))
                .collect();
            for (key, ids) in keys {
                let found = pairs_of(&key, &ids, &nodes, merges);
                let first = if key == from { skip } else { 0 };
                for (place, pair) in found.into_iter().enumerate().skip(first) {
                    if pairs.len() == limit {
                        return Ok((pairs, last));
                    }
                    pairs.push(pair);
                    last = Some(PlaceInPairs {
                        key: key.clone(),
                        pairs: place + 1,
                    });
                }
                from = key;
                skip = usize::MAX;
            }
            if is_end {
                return Ok((pairs, None));
            }
            // The next key in order.
            from.push('\0');
            skip = 0;
        }
    }

    async fn shared_keys(
        &self,
        ws: Uuid,
        filter: &Filter,
        from: String,
    ) -> Result<Vec<SharedKey>, DomainError> {
        let (target, filter) = (self.graph.index_of(ws).await?, filter.clone());
        blocking(move || {
            let mut keys: Vec<SharedKey> = Vec::new();
            target
                .shared_keys(&from, &filter, |key, nodes| {
                    keys.push((key.to_owned(), nodes));
                    keys.len() < KEYS_AT_A_TIME
                })
                .map_err(index_error)?;
            Ok(keys)
        })
        .await
    }
}

/// The pairs of the first of these nodes of each type with the others, if this is the first key that they share.
fn pairs_of(
    key: &str,
    ids: &[Uuid],
    nodes: &HashMap<Uuid, KgNode>,
    merges: &SeenMerges,
) -> Vec<LikelyDuplicate> {
    let mut firsts: Vec<&KgNode> = Vec::new();
    let (mut pairs, mut known) = (Vec::new(), HashSet::new());
    for node in ids.iter().filter_map(|id| nodes.get(id)) {
        let first = firsts
            .iter()
            .find(|first| equivalent_types(first.node_type).contains(&node.node_type));
        let Some(first) = first else {
            firsts.push(node);
            continue;
        };
        let standing = [first.id, node.id].map(|id| merges.standing(id));
        let [one, other] = standing;
        let are_versions = stix_id(first).is_some() && stix_id(first) == stix_id(node);
        if one == other || are_versions || merges.are_distinct(one, other) || !known.insert(standing) {
            continue;
        }
        let reasons = shared(first, node, canonical_key);
        if reasons.first().is_none_or(|(first, _)| first != key) {
            continue;
        }
        if let (Some(one), Some(other)) = (nodes.get(&one), nodes.get(&other)) {
            pairs.push(LikelyDuplicate {
                first: end_of(one, first),
                second: end_of(other, node),
                reasons: reasons.into_iter().map(|(_, reason)| reason).collect(),
            });
        }
    }
    pairs
}

/// A node, as strictly marked as the node merged into it for which it is told.
fn end_of(standing: &KgNode, node: &KgNode) -> OtherEnd {
    OtherEnd {
        id: standing.id,
        name: standing.name.clone(),
        node_type: standing.node_type,
        tlp: standing.tlp.max(node.tlp),
    }
}
