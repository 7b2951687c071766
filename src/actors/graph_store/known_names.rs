//! The names of stored nodes that stand in a text.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::core::{GraphCore, NODES_PER_PAGE};
use super::matching::strings;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::actors::worker::{Access, Work};
use crate::domain::error::DomainError;
use crate::domain::extraction::{EntityKind, KnownNames, KnownThing, each_phrase_of};
use crate::domain::naming::identifier_in;
use crate::domain::node::{KgNode, NodeType};
use crate::domain::principal::Principal;
use crate::search::{Filter, WorkspaceIndex};

/// Types of nodes that a text calls by name.
const NAMED: [NodeType; 5] = [
    NodeType::Actor,
    NodeType::Tool,
    NodeType::Attck,
    NodeType::Vulnerability,
    NodeType::Cve,
];
/// Phrases that are looked up at a time.
const PHRASES: usize = 1_000;
/// Maximum number of nodes that a text may name.
const MAX_NODES: usize = 10_000;

/// Finds the names and aliases in a text of the nodes that the caller may see.
#[derive(Debug)]
pub struct FindKnownNames {
    pub by: Principal,
    pub text: String,
}

impl Work for FindKnownNames {
    type Core = GraphCore;
    type Reply = KnownNames;
    const NAME: &'static str = "find_known_names";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let FindKnownNames { by, text } = self;
        let ws = by.workspace.id;
        let target = core.graph.index_of(ws).await?;
        let highest = by.workspace.clearance().highest();
        let filter = Filter {
            node_types: Some(NAMED.to_vec()),
            ..Filter::up_to(highest)
        };
        let found = blocking(move || look_up(&target, &text, &filter)).await?;
        let ids: HashSet<Uuid> = found.iter().map(|(_, id)| *id).collect();
        let mut ids: Vec<Uuid> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.truncate(MAX_NODES);
        let mut things = HashMap::new();
        for page in ids.chunks(NODES_PER_PAGE) {
            for stored in core.graph.store.nodes_by_id(ws, page, highest, false).await? {
                let thing = thing_of(&stored.node).map(Arc::new);
                things.extend(thing.map(|thing| (stored.node.id, thing)));
            }
        }
        let merges = core.merges_seen(ws, (highest, false)).await?;
        let mut known = KnownNames::default();
        // Of nodes that are merged, the one is meant that has the phrase as its own name.
        let mut meant: BTreeMap<(&str, Uuid), (bool, &Arc<KnownThing>)> = BTreeMap::new();
        for (phrase, id) in &found {
            let Some(thing) = things.get(id) else { continue };
            let is_own = thing.name.eq_ignore_ascii_case(phrase);
            let group = (phrase.as_str(), merges.standing(*id));
            let best = meant.entry(group).or_insert((is_own, thing));
            if is_own && !best.0 {
                *best = (is_own, thing);
            }
        }
        for ((phrase, _), (_, thing)) in meant {
            known.add(phrase, thing);
        }
        Ok(known)
    }
}

/// The phrases of a text that are names of nodes, with these.
fn look_up(target: &WorkspaceIndex, text: &str, filter: &Filter) -> Result<Vec<(String, Uuid)>, DomainError> {
    let mut found: Vec<(String, Uuid)> = Vec::new();
    let mut phrases = Vec::with_capacity(PHRASES);
    let mut failed = None;
    let mut look = |phrases: &mut Vec<String>| {
        let keys: Vec<&str> = phrases.iter().map(String::as_str).collect();
        match target.lookup(&keys, filter).map_err(index_error) {
            Ok(hits) => found.extend(
                hits.into_iter()
                    .filter_map(|hit| Some((phrases.get(hit.key)?.clone(), hit.node_id))),
            ),
            Err(error) => failed = Some(error),
        }
        phrases.clear();
    };
    let mut seen = HashSet::new();
    each_phrase_of(
        text,
        |_| true,
        |phrase| {
            if !seen.contains(phrase) {
                if seen.len() < PHRASES * PHRASES {
                    seen.insert(phrase.to_owned());
                }
                phrases.push(phrase.to_owned());
            }
            if phrases.len() == PHRASES {
                look(&mut phrases);
            }
        },
    );
    look(&mut phrases);
    failed.map_or(Ok(found), Err)
}

/// What the reader of a text needs of a node; `None` for one that texts do not call by name.
fn thing_of(node: &KgNode) -> Option<KnownThing> {
    let stix_type = node.properties.get("stix_type").and_then(|value| value.as_str());
    let kind = match (node.node_type, stix_type) {
        (NodeType::Actor, Some("campaign")) => EntityKind::AttckCampaign,
        (NodeType::Actor, _) => EntityKind::Actor,
        (NodeType::Tool, Some("malware")) => EntityKind::Malware,
        (NodeType::Tool, _) => EntityKind::Tool,
        (NodeType::Attck, None | Some("attack-pattern")) => EntityKind::AttckTechnique,
        (NodeType::Vulnerability, _) => EntityKind::Vulnerability,
        (NodeType::Cve, _) => EntityKind::Cve,
        (NodeType::Attck | NodeType::Ioc | NodeType::Osint, _) => return None,
    };
    let texts = |key: &str| -> Vec<String> { strings(node.properties.get(key)).map(str::to_owned).collect() };
    let external_ids = texts("external_ids");
    let id = || {
        let names = external_ids.iter().chain([&node.name]);
        names
            .filter_map(|name| identifier_in(node.node_type, name))
            .next()
    };
    let value = if kind == EntityKind::AttckTechnique || kind == EntityKind::Cve {
        id()
    } else {
        None
    };
    Some(KnownThing {
        kind,
        value: value.unwrap_or_else(|| node.name.clone()),
        name: node.name.clone(),
        aliases: texts("aliases"),
        external_ids,
    })
}
