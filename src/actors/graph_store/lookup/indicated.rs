//! What nodes indicate: the actors, malware, tools and campaigns one relationship away.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use uuid::Uuid;

use super::ReadRights;
use crate::actors::graph_store::core::GraphCore;
use crate::actors::graph_store::merges::SeenMerges;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::lookup::{Indicated, MAX_INDICATED};
use crate::domain::node::{KgNode, NodeType};
use crate::domain::question::{Kind, relationship_code, relationship_of_code, relationships};
use crate::domain::session::Visible;
use crate::search::{Filter, Step, StepFilter};

/// Relationships of a node that are looked at.
const MAX_STEPS: usize = 200;

impl GraphCore {
    /// What each node indicates, the surest first, and whether there is more.
    pub(super) async fn indicated_by(
        &self,
        rights: &ReadRights<'_>,
        nodes: &[&KgNode],
    ) -> Result<HashMap<Uuid, (Vec<Indicated>, bool)>, DomainError> {
        let from: Vec<Uuid> = nodes
            .iter()
            .filter(|node| node.node_type == NodeType::Ioc)
            .map(|node| node.id)
            .collect();
        let merges = self.merges_seen(rights.workspace.id, rights.limits()).await?;
        let steps = self.steps_from(rights, from, &merges).await?;
        let relationships: Vec<Uuid> = steps.values().flatten().map(|step| step.relationship).collect();
        let (ws, (highest, include_rejected)) = (rights.workspace.id, rights.limits());
        let store = &self.graph.store;
        let standing = store
            .relationships_in_force(ws, &relationships, (highest, include_rejected))
            .await?;
        let ends: HashSet<Uuid> = steps.values().flatten().map(|step| step.node).collect();
        let ends: Vec<Uuid> = ends.into_iter().collect();
        let ends = store.nodes_by_id(ws, &ends, highest, include_rejected).await?;
        let ends = ends.into_iter().map(|stored| stored.node).collect();
        let ends = Visible::filter(ends, rights.workspace.clearance());
        let ends: HashMap<Uuid, &KgNode> = ends.rows().iter().map(|node| (node.id, node)).collect();
        let told = steps.into_iter().map(|(from, steps)| {
            let steps = steps.iter().filter(|step| standing.contains(&step.relationship));
            let mut told: Vec<Indicated> = Vec::new();
            for step in steps {
                let known = told.iter().any(|known| known.id == step.node);
                let node = ends.get(&step.node).filter(|_| !known);
                told.extend(node.and_then(|node| indicated(node, step)));
            }
            let more = told.len() > MAX_INDICATED;
            told.truncate(MAX_INDICATED);
            (from, (told, more))
        });
        Ok(told.collect())
    }

    /// The steps from each node to what it indicates, the surest first.
    async fn steps_from(
        &self,
        rights: &ReadRights<'_>,
        from: Vec<Uuid>,
        merges: &SeenMerges,
    ) -> Result<HashMap<Uuid, Vec<Step>>, DomainError> {
        let merges = merges.clone();
        let target = self.graph.index_of(rights.workspace.id).await?;
        let (highest, include_rejected) = rights.limits();
        let filter = Filter {
            include_rejected,
            node_types: Some(vec![NodeType::Actor, NodeType::Tool]),
            ..Filter::up_to(highest)
        };
        blocking(move || {
            let names = relationships(Kind::Indicator, Kind::Software);
            let codes: Vec<u8> = names.iter().map(|name| relationship_code(name)).collect();
            let mut all = HashMap::new();
            for node in from {
                let along = StepFilter {
                    codes: &codes,
                    filter: &filter,
                    most: MAX_STEPS,
                };
                let mut steps = Vec::new();
                target.steps(&merges.with_members(&[node]), along, |step| {
                    steps.push(Step {
                        node: merges.standing(step.node),
                        ..step
                    });
                });
                steps.sort_by(|one: &Step, other: &Step| {
                    let sure = other.confidence.total_cmp(&one.confidence);
                    sure.then_with(|| one.node.cmp(&other.node))
                        .then_with(|| one.relationship.cmp(&other.relationship))
                });
                if !steps.is_empty() {
                    all.insert(node, steps);
                }
            }
            Ok(all)
        })
        .await
    }
}

fn indicated(node: &KgNode, step: &Step) -> Option<Indicated> {
    let stix_type = node.properties.get("stix_type").and_then(Value::as_str);
    Some(Indicated {
        id: node.id,
        node_type: node.node_type,
        name: node.name.clone(),
        stix_type: stix_type.map(str::to_owned),
        relationship: relationship_of_code(step.code)?.to_owned(),
        tlp: node.tlp,
    })
}
