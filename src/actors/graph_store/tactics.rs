//! Which techniques serve which tactics. No relationship says so: a technique names the phase of a kill chain, and a tactic
//! has a short name.

use std::collections::HashMap;

use uuid::Uuid;

use super::core::GraphCore;
use super::recall::Search;
use crate::domain::error::DomainError;
use crate::domain::narrowing::Narrowing;
use crate::domain::node::NodeType;
use crate::domain::question::walk::{Edge, Goal, Hop, Start};
use crate::domain::question::{KILL_CHAIN_PHASE, Kind, relationship_code};
use crate::search::{Filter, Population, WorkspaceIndex};
use crate::store::NodeOfType;

/// Stands for a relationship where a technique leads to its tactic.
pub(super) const OF_TACTIC: Uuid = Uuid::nil();
/// Most nodes of ATT&CK that a caller may see for whom tactics are looked up.
const READ: usize = 20_000;

/// Techniques and tactics that a caller may see.
#[derive(Debug, Default)]
pub(super) struct Tactics {
    /// Of each technique and each tactic those at the other end.
    linked: HashMap<Uuid, Vec<(Uuid, f64)>>,
}

impl Tactics {
    fn of(techniques: &[NodeOfType], tactics: &[NodeOfType]) -> Self {
        let mut of_name: HashMap<&str, Vec<&NodeOfType>> = HashMap::new();
        for tactic in tactics {
            if let Some(name) = tactic.stix.field("x_mitre_shortname") {
                of_name.entry(name).or_default().push(tactic);
            }
        }
        let mut linked: HashMap<Uuid, Vec<(Uuid, f64)>> = HashMap::new();
        for technique in techniques {
            let served = technique.stix.tactics().filter_map(|name| of_name.get(name));
            let tactics = served
                .flatten()
                .filter(|tactic| tactic.stix.is_of_domain(&technique.stix));
            for tactic in tactics {
                let to_tactic = (tactic.id, tactic.confidence);
                linked.entry(technique.id).or_default().push(to_tactic);
                let back = (technique.id, technique.confidence);
                linked.entry(tactic.id).or_default().push(back);
            }
        }
        Tactics { linked }
    }

    /// Visits what leads from techniques to their tactics, and back.
    pub(super) fn visit(
        &self,
        from: &[Start<Uuid>],
        to: &Goal,
        visit: &mut impl FnMut(usize, Edge<Uuid, Uuid>),
    ) {
        for (place, start) in from.iter().enumerate() {
            let is_way = |near: Kind, far: Kind| start.kind == near && to.kinds.contains(&far);
            let kind = if is_way(Kind::Technique, Kind::Tactic) {
                Kind::Tactic
            } else if is_way(Kind::Tactic, Kind::Technique) {
                Kind::Technique
            } else {
                continue;
            };
            for (far, confidence) in self.linked.get(&start.thing).into_iter().flatten() {
                let hop = Hop {
                    relationship: OF_TACTIC,
                    label: relationship_code(KILL_CHAIN_PHASE),
                    outgoing: kind == Kind::Tactic,
                    confidence: *confidence,
                };
                let edge = Edge {
                    hop,
                    to: *far,
                    kind,
                    confidence: *confidence,
                    recorded_at: 0,
                };
                visit(place, edge);
            }
        }
    }
}

impl GraphCore {
    /// The techniques and tactics that the caller may see; none in a workspace with more of ATT&CK than can be read.
    pub(super) async fn tactics(
        &self,
        ask: &Search,
        target: &WorkspaceIndex,
    ) -> Result<Tactics, DomainError> {
        let types = [NodeType::Attck];
        let seen = |population| Filter {
            population: Some(population),
            node_types: Some(types.to_vec()),
            ..ask.filter.without_narrowing()
        };
        let counts = Population::ALL.map(|population| target.count(&seen(population)));
        if counts.iter().any(|count| *count > READ) {
            return Ok(Tactics::default());
        }
        let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
        let all = Narrowing::default();
        let store = &self.graph.store;
        let techniques = store.nodes_of_type(ask.ws, shown, (&types, &all), (false, READ));
        let context = store.nodes_of_type(ask.ws, shown, (&types, &all), (true, READ));
        let (mut techniques, mut context) = (techniques.await?, context.await?);
        let merges = self.merges_seen(ask.ws, shown).await?;
        for node in techniques.iter_mut().chain(&mut context) {
            node.id = merges.standing(node.id);
        }
        Ok(Tactics::of(&techniques, &context))
    }
}
