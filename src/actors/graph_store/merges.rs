//! Merges of nodes: what a caller sees of them, and their writes.
//!
//! The search index and the rows know each node as its sources stated it. What a caller is answered is mapped here: a merged
//! node to the one that stands for it, and that one to all for which it stands.

mod distinct;
mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use uuid::Uuid;

pub use self::distinct::MarkDistinct;
pub use self::write::{MergeNode, MergeOutcome, UnmergeNode};
use super::changes::Nodes;
use super::core::GraphCore;
use super::hits::StandingNodes;
use crate::domain::detail::{MergedNode, NodeRelationship, OtherEnd};
use crate::domain::error::DomainError;
use crate::domain::graph::merging::{Merges, unite};
use crate::domain::node::{KgNode, NodeStatus};
use crate::domain::tlp::Tlp;
use crate::search::{Filter, WorkspaceIndex};

/// The merges of each workspace, as they were read last.
#[derive(Default)]
pub(super) struct MergeCache(Mutex<HashMap<Uuid, CachedMerges>>);

#[derive(Default)]
struct CachedMerges {
    /// Counts how often they were forgotten, so that what was read before is not kept.
    generation: u64,
    merges: Option<Arc<Merges>>,
}

impl MergeCache {
    /// Has the merges of a workspace read again.
    pub(super) fn forget(&self, ws: Uuid) {
        let mut all = self.0.lock();
        let cached = all.entry(ws).or_default();
        cached.generation += 1;
        cached.merges = None;
    }

    fn get(&self, ws: Uuid) -> (u64, Option<Arc<Merges>>) {
        let mut all = self.0.lock();
        let cached = all.entry(ws).or_default();
        (cached.generation, cached.merges.clone())
    }

    fn put(&self, ws: Uuid, generation: u64, merges: &Arc<Merges>) {
        let mut all = self.0.lock();
        let cached = all.entry(ws).or_default();
        if cached.generation == generation {
            cached.merges = Some(Arc::clone(merges));
        }
    }
}

impl Nodes {
    /// The merges of a workspace.
    pub(super) async fn merges(&self, ws: Uuid) -> Result<Arc<Merges>, DomainError> {
        let (generation, known) = self.merges.get(ws);
        if let Some(known) = known {
            return Ok(known);
        }
        let merges = Merges::of(self.store.merges(ws).await?);
        let merges = Arc::new(merges.with_distinct(self.store.distinct_nodes(ws).await?));
        self.merges.put(ws, generation, &merges);
        Ok(merges)
    }
}

/// The merges of a workspace as a caller sees them.
#[derive(Clone)]
pub(super) struct SeenMerges {
    merges: Arc<Merges>,
    /// Knows who sees what; absent where nothing was ever merged.
    index: Option<Arc<WorkspaceIndex>>,
    /// What the caller sees.
    seen: Filter,
}

impl SeenMerges {
    pub(super) fn is_empty(&self) -> bool {
        self.merges.is_empty()
    }

    fn sees(&self, node: Uuid) -> bool {
        let index = self.index.as_ref();
        index.is_none_or(|index| index.sees(node, &self.seen))
    }

    /// The node that stands for this one.
    pub(super) fn standing(&self, node: Uuid) -> Uuid {
        self.merges.standing(node, |other| self.sees(other))
    }

    /// The nodes for which this one stands, without itself.
    pub(super) fn members(&self, node: Uuid) -> Vec<Uuid> {
        self.merges.members(node, |other| self.sees(other))
    }

    /// These nodes and those that stand for them, each once.
    pub(super) fn with_standing(&self, nodes: &[Uuid]) -> Vec<Uuid> {
        distinct(
            nodes
                .iter()
                .copied()
                .chain(nodes.iter().map(|node| self.standing(*node))),
        )
    }

    /// What stands for these nodes, each once.
    pub(super) fn all_standing(&self, nodes: impl IntoIterator<Item = Uuid>) -> Vec<Uuid> {
        distinct(nodes.into_iter().map(|node| self.standing(node)))
    }

    /// These nodes and all for which they stand, each once.
    pub(super) fn with_members(&self, nodes: &[Uuid]) -> Vec<Uuid> {
        if self.is_empty() {
            return nodes.to_vec();
        }
        let members = nodes.iter().flat_map(|node| self.members(*node));
        distinct(nodes.iter().copied().chain(members))
    }

    /// All nodes of the groups that these stand for, each with the place of its group.
    pub(super) fn groups(&self, nodes: impl Iterator<Item = Uuid>) -> (Vec<usize>, Vec<Uuid>) {
        let group = |(place, node): (usize, Uuid)| {
            let members = match self.is_empty() {
                true => Vec::new(),
                false => self.members(node),
            };
            std::iter::once(node)
                .chain(members)
                .map(move |node| (place, node))
        };
        nodes.enumerate().flat_map(group).unzip()
    }

    /// When a merge or its end last changed what an export shows of a node.
    pub(super) fn changed_at(&self, node: Uuid) -> Option<DateTime<Utc>> {
        self.merges.changed_at(node, |other| self.sees(other))
    }

    /// Whether somebody found what stands for these nodes not to be the same.
    pub(super) fn are_distinct(&self, one: Uuid, other: Uuid) -> bool {
        let group = |node| self.with_members(&[self.standing(node)]);
        let others = group(other);
        let is_distinct = |one: Uuid| others.iter().any(|other| self.merges.are_distinct(one, *other));
        group(one).into_iter().any(is_distinct)
    }

    /// All merges, whoever sees them.
    pub(super) fn all(&self) -> &Merges {
        &self.merges
    }

    /// How a merged node is told; `None` for one that stands for itself.
    pub(super) fn told(&self, node: &KgNode) -> Option<MergedNode> {
        let merge = self.merges.of_node(node.id)?;
        self.sees(merge.into).then(|| MergedNode {
            id: node.id,
            name: node.name.clone(),
            tlp: node.tlp,
            status: NodeStatus::Merged,
            merged_into: merge.into,
            merged_at: merge.at,
            reason: merge.reason.clone(),
        })
    }
}

/// A node with those that are merged into it, as far as a caller sees them.
pub(super) struct Group {
    pub(super) node: KgNode,
    /// By name.
    pub(super) members: Vec<KgNode>,
    pub(super) merges: SeenMerges,
}

/// Each of these once.
fn distinct(nodes: impl Iterator<Item = Uuid>) -> Vec<Uuid> {
    let mut known = HashSet::new();
    nodes.filter(|node| known.insert(*node)).collect()
}

impl GraphCore {
    /// The merges of a workspace as somebody sees them who may see up to this marking, and rejected nodes or not.
    pub(super) async fn merges_seen(
        &self,
        ws: Uuid,
        (highest, include_rejected): (Tlp, bool),
    ) -> Result<SeenMerges, DomainError> {
        let merges = self.graph.source.merges(ws).await?;
        let index = match merges.is_empty() {
            true => None,
            false => Some(self.graph.index_of(ws).await?),
        };
        Ok(SeenMerges {
            merges,
            index,
            seen: Filter {
                include_rejected,
                ..Filter::up_to(highest).of_all()
            },
        })
    }

    /// Lets those nodes stand for others that these are merged into.
    pub(super) async fn let_merged_stand(
        &self,
        ws: Uuid,
        merges: &SeenMerges,
        found: &mut StandingNodes,
    ) -> Result<(), DomainError> {
        let StandingNodes { nodes, standing } = found;
        let versions = standing.clone();
        for id in nodes.keys() {
            let (mut stands, mut steps) = (*id, HashSet::new());
            while steps.insert(stands) {
                let version = versions.get(&stands).copied().unwrap_or(stands);
                stands = merges.standing(version);
            }
            // A node that is merged into another version of itself leads round.
            let stands = versions.get(&stands).copied().unwrap_or(stands);
            if stands != *id {
                standing.insert(*id, stands);
            }
        }
        let shown = (merges.seen.highest_tlp, merges.seen.include_rejected);
        let missing: Vec<Uuid> = standing.values().copied().collect();
        let missing = distinct(missing.into_iter().filter(|id| !nodes.contains_key(id)));
        let store = &self.graph.store;
        let more = store.nodes_by_id(ws, &missing, shown.0, shown.1).await?;
        nodes.extend(more.into_iter().map(|stored| (stored.node.id, stored.node)));
        let mut members: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
        for id in nodes.keys() {
            let of = versions.get(id).copied().unwrap_or(*id);
            members.entry(of).or_default().extend(merges.members(*id));
        }
        self.unite_members(ws, shown, members, nodes.values_mut()).await
    }

    /// Gives nodes what those say that are merged into them, as far as a caller sees it.
    pub(super) async fn unite_merged<'n>(
        &self,
        ws: Uuid,
        shown: (Tlp, bool),
        nodes: impl IntoIterator<Item = &'n mut KgNode>,
    ) -> Result<(), DomainError> {
        let merges = self.merges_seen(ws, shown).await?;
        if merges.is_empty() {
            return Ok(());
        }
        let nodes: Vec<&mut KgNode> = nodes.into_iter().collect();
        let members = nodes.iter().map(|node| (node.id, merges.members(node.id)));
        let members = members.collect();
        self.unite_members(ws, shown, members, nodes).await
    }

    /// A node with those that are merged into it, or the one that stands for it.
    pub(super) async fn group_of(
        &self,
        ws: Uuid,
        node: KgNode,
        (highest, include_rejected): (Tlp, bool),
    ) -> Result<Group, DomainError> {
        let merges = self.merges_seen(ws, (highest, include_rejected)).await?;
        let stands = merges.standing(node.id);
        let mut wanted = merges.members(stands);
        wanted.push(stands);
        wanted.retain(|id| *id != node.id);
        let stored = self
            .graph
            .store
            .nodes_by_id(ws, &wanted, highest, include_rejected)
            .await?;
        let mut members: Vec<KgNode> = stored.into_iter().map(|stored| stored.node).collect();
        members.push(node);
        let at = members.iter().position(|member| member.id == stands);
        let node = at.map(|at| members.swap_remove(at));
        let node = node.ok_or(DomainError::NotFound("node"))?;
        // In the order in which they are listed.
        members.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
        Ok(Group {
            node,
            members,
            merges,
        })
    }

    /// Lets the nodes at the other ends of relationships stand for those that are merged into them.
    pub(super) async fn let_ends_stand(
        &self,
        ws: Uuid,
        merges: &SeenMerges,
        relationships: &mut [NodeRelationship],
        (highest, include_rejected): (Tlp, bool),
    ) -> Result<(), DomainError> {
        let ends = relationships.iter().map(|one| one.node.id);
        let merged = ends.filter(|end| merges.standing(*end) != *end);
        let wanted = merges.all_standing(merged);
        let store = &self.graph.store;
        let stored = store.nodes_by_id(ws, &wanted, highest, include_rejected).await?;
        let stored: HashMap<Uuid, KgNode> = stored
            .into_iter()
            .map(|stored| (stored.node.id, stored.node))
            .collect();
        for relationship in relationships {
            let end = &mut relationship.node;
            if let Some(node) = stored
                .get(&merges.standing(end.id))
                .filter(|node| node.id != end.id)
            {
                *end = OtherEnd {
                    id: node.id,
                    name: node.name.clone(),
                    node_type: node.node_type,
                    tlp: node.tlp.max(end.tlp),
                };
            }
        }
        Ok(())
    }

    async fn unite_members<'n>(
        &self,
        ws: Uuid,
        (highest, include_rejected): (Tlp, bool),
        mut members: HashMap<Uuid, Vec<Uuid>>,
        nodes: impl IntoIterator<Item = &'n mut KgNode>,
    ) -> Result<(), DomainError> {
        members.retain(|_, members| !members.is_empty());
        if members.is_empty() {
            return Ok(());
        }
        let ids = distinct(members.values().flatten().copied());
        let store = &self.graph.store;
        let stored = store.nodes_by_id(ws, &ids, highest, include_rejected).await?;
        let stored: HashMap<Uuid, KgNode> = stored
            .into_iter()
            .map(|stored| (stored.node.id, stored.node))
            .collect();
        for node in nodes {
            let ids = members.get(&node.id).into_iter().flatten();
            let own: Vec<KgNode> = ids
                .filter(|id| **id != node.id)
                .filter_map(|id| stored.get(id).cloned())
                .collect();
            unite(node, &own);
        }
        Ok(())
    }
}
