//! The content of the public demo workspace, loaded at the first start and again when a release brings new content.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::actors::graph_store::{GraphHandle, IngestDrafts, IngestStix};
use crate::actors::identity::demo_workspace;
use crate::clock;
use crate::domain::demo::PublicDemo;
use crate::domain::draft::{Drafts, EdgeDraft, NodeDraft};
use crate::domain::error::DomainError;
use crate::domain::extraction::entities_of;
use crate::domain::items::{self, IngestBody, OsintItems};
use crate::domain::kinds::StixRow;
use crate::domain::naming::identity_of;
use crate::domain::node::NodeType;
use crate::domain::permission::Role;
use crate::domain::principal::{Credential, Principal, Workspace};
use crate::domain::stix::ingest::StixDefaults;
use crate::domain::tlp::Tlp;
use crate::store::{StixOrigin, Store};

/// STIX objects in our own wording, from public facts.
const BUNDLE: &str = include_str!("../../assets/demo/bundle.json");
/// Summaries of public advisories, as the body of `POST /api/ingest/osint`.
const OSINT: &str = include_str!("../../assets/demo/osint.json");

/// The demo workspace with its content. If the content can't be loaded, the service starts without it.
///
/// # Errors
/// When there is no demo workspace and none can be made.
pub(super) async fn load(store: &Store, graph: &GraphHandle) -> Result<PublicDemo, DomainError> {
    let operator = store.operator_workspace().await?;
    let no_operator = || DomainError::internal("the store is damaged", "no operator's workspace");
    let operator = operator.ok_or_else(no_operator)?;
    let workspace = demo_workspace(store).await?;
    let seeded = match seed(store, graph, &workspace).await {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(?error, "the public demo could not be loaded");
            false
        }
    };
    Ok(PublicDemo::new(workspace, operator, seeded))
}

/// Loads the content if the workspace does not have it.
async fn seed(store: &Store, graph: &GraphHandle, workspace: &Workspace) -> Result<(), DomainError> {
    let content = hex::encode(Sha256::new().chain_update(BUNDLE).chain_update(OSINT).finalize());
    if store.demo_content(workspace.id).await? == Some(content.clone()) {
        return Ok(());
    }
    let nodes = ingest(workspace, graph).await?;
    tracing::info!(nodes, "public demo workspace loaded");
    // Recorded last: an interrupted load is repeated, which creates nothing twice.
    store.set_demo_content(workspace.id, &content).await
}

/// Ingests the content; returns the number of new nodes.
async fn ingest(workspace: &Workspace, graph: &GraphHandle) -> Result<u64, DomainError> {
    let by = Principal {
        workspace: workspace.clone(),
        credential: Credential::User {
            id: Uuid::nil(),
            email: "threat-memory".into(),
            role: Role::Admin,
        },
        ip: Ipv4Addr::LOCALHOST.into(),
    };
    let damaged = |cause: String| DomainError::internal("the demo content is damaged", cause);
    let unread = |error: serde_json::Error| damaged(error.to_string());
    let mut bundle: Value = serde_json::from_str(BUNDLE).map_err(unread)?;
    let Some(Value::Array(objects)) = bundle.get_mut("objects").map(Value::take) else {
        return Err(damaged("no objects".into()));
    };
    let known = names(&objects);
    let stix = IngestStix {
        by: by.clone(),
        objects: objects.into(),
        defaults: StixDefaults {
            tlp: Tlp::White,
            confidence: 0.9,
            now: clock::now(),
        },
        origin: StixOrigin::default(),
    };
    let osint: OsintItems = serde_json::from_str(OSINT).map_err(unread)?;
    let mut drafts = items::plan(osint, by.email(), OSINT.len())?.drafts;
    relate(&mut drafts, &known);
    let osint = IngestDrafts {
        drafts,
        by,
        action: OsintItems::ACTION,
    };
    let from_stix = graph.call(stix).await?.result.nodes_created;
    let from_osint = graph.call(osint).await?.result.nodes_created;
    Ok(from_stix + from_osint)
}

/// What the bundle's objects become, by their names and aliases in lower case.
fn names(objects: &[Value]) -> HashMap<String, (NodeType, String)> {
    let mut known = HashMap::new();
    for object in objects {
        let (Some(kind), Some(name)) = (object["type"].as_str(), object["name"].as_str()) else {
            continue;
        };
        let of_type = StixRow::of(kind)
            .filter(|row| !row.is_context())
            .zip(object.as_object());
        let Some(node_type) = of_type.map(|(row, object)| row.node_type(object)) else {
            continue;
        };
        let aliases = object["aliases"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        for alias in aliases.chain([name]) {
            known.insert(alias.to_lowercase(), (node_type, name.to_owned()));
        }
    }
    known
}

/// Relates each advisory to the known entities that it names.
fn relate(drafts: &mut Drafts, known: &HashMap<String, (NodeType, String)>) {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (advisory, node) in drafts.nodes.clone().into_iter().enumerate() {
        let Some(evidence) = node.evidence.first().copied() else {
            continue;
        };
        for entity in entities_of(&format!("{}. {}", node.name, node.description)).entities {
            let Some((node_type, name)) = known.get(&entity.name.to_lowercase()) else {
                continue;
            };
            let (identity, merge_by_name) = identity_of(*node_type, name);
            let place = *places.entry(identity.clone()).or_insert_with(|| {
                drafts.nodes.push(NodeDraft {
                    identity,
                    node_type: *node_type,
                    name: name.clone(),
                    description: String::new(),
                    properties: Map::new().into(),
                    evidence: Vec::new(),
                    merge_by_name,
                    ..node.clone()
                });
                drafts.nodes.len() - 1
            });
            if let Some(named) = drafts.nodes.get_mut(place) {
                named.tlp = named.tlp.min(node.tlp);
                named.evidence.extend(&node.evidence);
            }
            drafts.edges.push(EdgeDraft {
                source: advisory,
                target: place,
                relationship: "related-to".into(),
                tlp: node.tlp,
                confidence: node.confidence,
                proof: node.name.clone(),
                evidence,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_advisory_is_related_to_something_in_the_bundle() {
        let bundle: Value = serde_json::from_str(BUNDLE).unwrap();
        let known = names(bundle["objects"].as_array().unwrap());
        let osint: OsintItems = serde_json::from_str(OSINT).unwrap();
        let mut drafts = items::plan(osint, "test", OSINT.len()).unwrap().drafts;
        let advisories = drafts.nodes.len();
        relate(&mut drafts, &known);
        let alone = (0..advisories).filter(|at| !drafts.edges.iter().any(|edge| edge.source == *at));
        let alone: Vec<&str> = alone.map(|at| drafts.nodes[at].name.as_str()).collect();
        assert_eq!(alone, Vec::<&str>::new());
        assert!(
            drafts.nodes[advisories..]
                .iter()
                .all(|node| !node.evidence.is_empty())
        );
    }
}
