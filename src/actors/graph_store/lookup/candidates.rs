//! The nodes that the index knows by the keys of values, their parents and their networks.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use super::ReadRights;
use crate::actors::graph_store::core::GraphCore;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::kinds::EntityKind;
use crate::domain::lookup::{AskedValue, LookupMatch, MAX_HITS, Parent, parents_of};
use crate::domain::network::Network;
use crate::domain::node::NodeType;
use crate::search::{Filter, WorkspaceIndex};

/// Keys and networks that are looked up at a time, while writes wait.
const AT_A_TIME: usize = 500;
/// The types of nodes that have assigned identifiers.
const IDENTIFIED: [NodeType; 5] = [
    NodeType::Cve,
    NodeType::Vulnerability,
    NodeType::Attck,
    NodeType::Actor,
    NodeType::Tool,
];

/// What is looked up of one value.
pub(super) struct Wanted {
    keys: Vec<WantedKey>,
    network: Option<Network>,
}

/// A key, and what a node is that has it.
struct WantedKey {
    text: String,
    kind: Option<EntityKind>,
    /// Of which the key is a spelling.
    value: Arc<str>,
    matched: LookupMatch,
    distance: u32,
}

/// A node that may be an answer.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) node: Uuid,
    pub(super) matched: LookupMatch,
    /// How far it is from the value among those that matched alike.
    pub(super) distance: u32,
    pub(super) kind: Option<EntityKind>,
    /// What the node must have.
    pub(super) value: String,
    /// The network or address of the node, if that matched.
    pub(super) network: Option<Network>,
}

impl Wanted {
    pub(super) fn of(asked: &AskedValue) -> Self {
        let mut wanted = Self {
            keys: Vec::new(),
            network: None,
        };
        if asked.has_no_value() {
            return wanted;
        }
        wanted.add(LookupMatch::Value, asked.kind, &asked.value, 0);
        // As it came: a node may be known by a spelling whose key differs, such as that of an internationalised host.
        if !asked.sent.is_ascii() {
            let value = Arc::from(asked.value.as_str());
            wanted.keys.push(WantedKey {
                text: asked.sent.clone(),
                kind: asked.kind,
                value,
                matched: LookupMatch::Value,
                distance: 0,
            });
        }
        let Some(kind) = asked.kind else {
            return wanted;
        };
        let own = matches!(kind, EntityKind::Ipv4 | EntityKind::Ipv6 | EntityKind::Cidr);
        wanted.network = Network::read(&asked.value).filter(|_| own);
        for (distance, Parent { matched, kind, value }) in (0..).zip(parents_of(kind, &asked.value)) {
            wanted.add(matched, Some(kind), &value, distance);
            wanted.network = wanted.network.or_else(|| Network::read(&value));
        }
        wanted
    }

    /// Another hash of a file.
    pub(super) fn same_file(kind: EntityKind, digest: String) -> Self {
        let mut wanted = Self {
            keys: Vec::new(),
            network: None,
        };
        wanted.add(LookupMatch::SameFile, Some(kind), &digest, 0);
        wanted
    }

    fn add(&mut self, matched: LookupMatch, kind: Option<EntityKind>, value: &str, distance: u32) {
        let shared: Arc<str> = Arc::from(value);
        let mut texts = vec![value.to_owned()];
        if kind == Some(EntityKind::Url) {
            match value.split_once("://") {
                Some(("http" | "https", rest)) => texts.push(rest.to_owned()),
                Some(_) => {}
                None => texts.extend(["http://", "https://"].map(|scheme| format!("{scheme}{value}"))),
            }
        }
        self.keys.extend(texts.into_iter().map(|text| WantedKey {
            text,
            kind,
            value: Arc::clone(&shared),
            matched,
            distance,
        }));
    }
}

impl GraphCore {
    /// The nodes that the index has for each of these, as far as the caller may see them.
    pub(super) async fn candidates(
        &self,
        rights: &ReadRights<'_>,
        wanted: Vec<Wanted>,
    ) -> Result<Vec<Vec<Candidate>>, DomainError> {
        let target = self.graph.index_of(rights.workspace.id).await?;
        let (highest, include_rejected) = rights.limits();
        let filter = Filter {
            include_rejected,
            ..Filter::up_to(highest).of_all()
        };
        blocking(move || {
            let mut found: Vec<Vec<Candidate>> = Vec::new();
            found.resize_with(wanted.len(), Vec::new);
            let is_identifier = |key: &WantedKey| key.kind.is_some_and(EntityKind::is_identifier);
            for (types, identifiers) in [(&[NodeType::Ioc][..], false), (&IDENTIFIED[..], true)] {
                let filter = Filter {
                    node_types: Some(types.to_vec()),
                    ..filter.clone()
                };
                let is_asked = |key: &&WantedKey| is_identifier(key) == identifiers;
                add_by_key(&target, &wanted, is_asked, &filter, &mut found)?;
            }
            let filter = Filter {
                node_types: Some(vec![NodeType::Ioc]),
                ..filter
            };
            add_by_network(&target, &wanted, &filter, &mut found)?;
            Ok(found)
        })
        .await
    }
}

/// Adds the nodes that have one of the keys. Each distinct key is looked up once, in the order of the index.
fn add_by_key(
    target: &WorkspaceIndex,
    wanted: &[Wanted],
    is_asked: impl Fn(&&WantedKey) -> bool,
    filter: &Filter,
    found: &mut [Vec<Candidate>],
) -> Result<(), DomainError> {
    let mut askers: HashMap<&str, Vec<(usize, &WantedKey)>> = HashMap::new();
    for (place, wanted) in wanted.iter().enumerate() {
        for key in wanted.keys.iter().filter(&is_asked) {
            askers.entry(key.text.as_str()).or_default().push((place, key));
        }
    }
    let mut keys: Vec<&str> = askers.keys().copied().collect();
    keys.sort_unstable();
    for keys in keys.chunks(AT_A_TIME) {
        for hit in target.lookup(keys, filter).map_err(index_error)? {
            let asked_by = keys.get(hit.key).and_then(|key| askers.get(key));
            for (place, key) in asked_by.into_iter().flatten() {
                let candidate = Candidate {
                    node: hit.node_id,
                    matched: key.matched,
                    distance: key.distance,
                    kind: key.kind,
                    value: key.value.to_string(),
                    network: None,
                };
                found
                    .get_mut(*place)
                    .into_iter()
                    .for_each(|found| found.push(candidate.clone()));
            }
        }
    }
    Ok(())
}

/// Adds the nodes around and inside the networks that are asked for.
fn add_by_network(
    target: &WorkspaceIndex,
    wanted: &[Wanted],
    filter: &Filter,
    found: &mut [Vec<Candidate>],
) -> Result<(), DomainError> {
    let asked = wanted.iter().enumerate();
    let asked = asked.filter_map(|(place, wanted)| Some((wanted.network?, place)));
    let mut asked: Vec<(Network, usize)> = asked.collect();
    asked.sort_unstable();
    for asked in asked.chunks(AT_A_TIME) {
        let networks: Vec<Network> = asked.iter().map(|(network, _)| *network).collect();
        let hits = target.lookup_networks(&networks, filter, MAX_HITS + 1);
        for ((network, place), hits) in asked.iter().zip(hits.map_err(index_error)?) {
            let around = hits.around.into_iter().map(|(outer, node)| {
                let distance = u32::from(network.length() - outer.length());
                // The network of one address is the address.
                let matched = match outer == *network {
                    true => LookupMatch::Value,
                    false => LookupMatch::Network,
                };
                candidate(node, matched, distance, outer)
            });
            let inside = (0..).zip(hits.inside);
            let inside =
                inside.map(|(distance, (inner, node))| candidate(node, LookupMatch::Inside, distance, inner));
            let found = found.get_mut(*place);
            found
                .into_iter()
                .for_each(|found| found.extend(around.clone().chain(inside.clone())));
        }
    }
    Ok(())
}

fn candidate(node: Uuid, matched: LookupMatch, distance: u32, network: Network) -> Candidate {
    Candidate {
        node,
        matched,
        distance,
        kind: None,
        value: String::new(),
        network: Some(network),
    }
}
