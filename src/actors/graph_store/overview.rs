//! The best connected nodes of a workspace: where a picture of its graph begins.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::merges::SeenMerges;
use crate::actors::audit_writer::Append;
use crate::actors::job::blocking;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::detail::NodeLink;
use crate::domain::error::DomainError;
use crate::domain::node::{KgNode, NodeType};
use crate::domain::principal::Principal;
use crate::domain::session::Visible;
use crate::search::{Filter, StepFilter, WorkspaceIndex};

/// Most nodes among which the best connected ones are looked for.
const AMONG: usize = 20_000;
/// Most relationships that are counted.
const COUNTED: usize = 400_000;
/// Among which nodes they are looked for: the first of these types of which there are few enough.
const TYPES: [&[NodeType]; 3] = [
    NodeType::ALL,
    &[NodeType::Actor, NodeType::Tool, NodeType::Attck],
    &[NodeType::Actor],
];

/// Reads the best connected nodes that the caller may see, and the relationships among them.
#[derive(Debug)]
pub struct ReadOverview {
    pub by: Principal,
    pub limit: usize,
}

/// The best connected nodes, best first.
#[derive(Debug)]
pub struct Overview {
    pub nodes: Visible<KgNode>,
    pub relationships: Vec<NodeLink>,
}

impl Work for ReadOverview {
    type Core = GraphCore;
    type Reply = Overview;
    const NAME: &'static str = "read_overview";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let ReadOverview { by, limit } = self;
        let clearance = by.workspace.clearance();
        let (ws, shown) = (by.workspace.id, (clearance.highest(), false));
        let store = &core.graph.store;
        let index = core.graph.index_of(ws).await?;
        let all = Filter::up_to(clearance.highest());
        let merges = core.merges_seen(ws, shown).await?;
        let (seen, merges) = (merges.clone(), merges);
        let (best, links) = blocking(move || Ok(best_connected(&index, (&all, &seen), limit))).await?;
        let stored = store.nodes_by_id(ws, &best, shown.0, shown.1).await?;
        let mut stored: HashMap<Uuid, KgNode> = stored
            .into_iter()
            .map(|stored| (stored.node.id, stored.node))
            .collect();
        let mut nodes: Vec<KgNode> = best.iter().filter_map(|id| stored.remove(id)).collect();
        core.unite_merged(ws, shown, &mut nodes).await?;
        let warninglists = core.warninglists.current();
        for node in &mut nodes {
            warninglists.mark(node);
        }
        let mut relationships = store.node_links(ws, &links, shown).await?;
        for link in &mut relationships {
            (link.source, link.target) = (merges.standing(link.source), merges.standing(link.target));
        }
        let nodes = Visible::filter(nodes, clearance);
        let entry = AuditEntry::by(&by, "graph.read", "graph", Outcome::Success, clock::now())
            .with("nodes", nodes.rows().len() as u64);
        core.graph.audit().call(Append(entry)).await?;
        Ok(Overview { nodes, relationships })
    }
}

/// The best connected of the nodes that the filter accepts, and the relationships among them; none if there are too many to
/// compare.
fn best_connected(
    index: &WorkspaceIndex,
    (seen, merges): (&Filter, &SeenMerges),
    limit: usize,
) -> (Vec<Uuid>, Vec<Uuid>) {
    let of_types = |types: &[NodeType]| Filter {
        node_types: Some(types.to_vec()),
        ..seen.clone()
    };
    let mut filters = TYPES.into_iter().map(of_types);
    let few = filters.find(|filter| index.count(filter) <= AMONG);
    let nodes = few.map(|filter| index.nodes(&filter)).unwrap_or_default();
    let mut nodes = match merges.is_empty() {
        true => nodes,
        false => merges.all_standing(nodes),
    };
    let codes: Vec<u8> = (0..=u8::MAX).collect();
    let along = StepFilter {
        codes: &codes,
        filter: seen,
        most: COUNTED,
    };
    // By id first, so that equals come in the same order each time.
    nodes.sort_unstable();
    let mut degrees = vec![0u64; nodes.len()];
    let (places, group) = merges.groups(nodes.iter().copied());
    index.steps(&group, along, |step| {
        let place = places.get(step.from).copied();
        if let Some(degree) = place.and_then(|place| degrees.get_mut(place)) {
            *degree += 1;
        }
    });
    let mut ranked: Vec<(u64, Uuid)> = degrees.into_iter().zip(nodes).collect();
    ranked.sort_by_key(|(degree, _)| std::cmp::Reverse(*degree));
    let best: Vec<Uuid> = ranked.into_iter().take(limit).map(|(_, id)| id).collect();
    let among: HashSet<Uuid> = best.iter().copied().collect();
    let mut links = Vec::new();
    let (places, group) = merges.groups(best.iter().copied());
    index.steps(&group, along, |step| {
        let far = merges.standing(step.node);
        let near = places.get(step.from).and_then(|place| best.get(*place));
        let is_within = near == Some(&far) && group.get(step.from) != Some(&step.node);
        if step.outgoing && among.contains(&far) && !is_within {
            links.push(step.relationship);
        }
    });
    (best, links)
}
