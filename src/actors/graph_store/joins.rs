//! The nodes that the objects of a bundle turn out to be, though other sources made them.
//!
//! Rules, which mirror those of `matching.rs` so that the order of two sources does not decide:
//! - An object is the node of its type that carries its name as a name, or one of its identifiers, and an indicator the one
//!   of a value in its pattern, if that node is the only one and no STIX object itself.
//! - Only nodes that the sender may see count, and only those that are marked no lower than the object: who sees the node
//!   must still see it.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::matching::{Disputes, equivalent_types, known_names, strings};
use super::merges::SeenMerges;
use crate::actors::indexed_store::index_error;
use crate::capacity::run_heavy;
use crate::domain::error::DomainError;
use crate::domain::graph::place::Place;
use crate::domain::ids::WorkspaceIds;
use crate::domain::naming::{value_identities, value_of_identity};
use crate::domain::node::NodeType;
use crate::domain::stix::ingest::{StixNode, StixPlan};
use crate::domain::tlp::Tlp;
use crate::search::{Filter, KeyKind, WorkspaceIndex};
use crate::store::{Store, StoredNode};

/// Objects looked up at a time.
const PIECE: usize = 500;
/// Maximum number of keys looked up per object.
const MAX_KEYS: usize = 20;

/// The rows of joined objects, by the id that the object's would have.
pub(super) type Joins = HashMap<Uuid, Uuid>;

/// What the index knows of some objects.
#[derive(Default)]
struct FoundNodes {
    /// Rows of an object whose usual row does not exist, by the object's id.
    by_id: Vec<(String, Vec<Uuid>)>,
    /// Nodes that carry a key of an object, by its position.
    by_key: HashMap<usize, Vec<(Uuid, KeyKind)>>,
    /// Those that carry its name, as name or alias.
    by_name: HashMap<usize, Vec<Uuid>>,
}

/// What the objects of a bundle turn out to be.
#[derive(Default)]
pub(super) struct FoundJoins {
    pub(super) joins: Joins,
    pub(super) disputes: Disputes,
}

/// Finds the nodes that objects turned out to be, earlier or now.
pub(super) async fn find_joins(
    store: &Arc<Store>,
    (ws, index): (Uuid, &Arc<WorkspaceIndex>),
    plan: &Arc<StixPlan>,
    (highest, merges): (Tlp, &SeenMerges),
) -> Result<FoundJoins, DomainError> {
    let ids = store.ids_of(ws);
    let FoundJoins {
        mut joins,
        mut disputes,
    } = FoundJoins::default();
    for first in (0..plan.nodes.len().max(1)).step_by(PIECE) {
        let (target, plan_) = (Arc::clone(index), Arc::clone(plan));
        let found = run_heavy(Some(ws), move || look_up(ids, &target, &plan_, first, highest)).await?;
        if found.by_id.is_empty() && found.by_key.is_empty() {
            continue;
        }
        let asked = found.by_id.iter().flat_map(|(_, rows)| rows);
        let keyed = found.by_key.values().flatten().map(|(id, _)| id);
        let asked: HashSet<Uuid> = asked.chain(keyed).copied().collect();
        let asked: Vec<Uuid> = asked.into_iter().collect();
        let nodes = store.nodes_by_id(ws, &asked, Tlp::Red, true).await?;
        let nodes: HashMap<Uuid, StoredNode> =
            nodes.into_iter().map(|stored| (stored.node.id, stored)).collect();
        joins.extend(earlier_joins(ids, &found, &nodes));
        add_new(&mut joins, ids, (plan, &found, &nodes), (highest, merges));
        add_disputes(&mut disputes, plan, &found, (&nodes, merges));
    }
    Ok(FoundJoins { joins, disputes })
}

/// Adds the names of objects that several nodes carry.
fn add_disputes(
    disputes: &mut Disputes,
    plan: &StixPlan,
    found: &FoundNodes,
    (nodes, merges): (&HashMap<Uuid, StoredNode>, &SeenMerges),
) {
    for (place, carriers) in &found.by_name {
        let Some(object) = plan.nodes.get(*place) else {
            continue;
        };
        let types = equivalent_types(object.node_type);
        let node_of = |id: &Uuid| nodes.get(id).map(|stored| &stored.node);
        let of_type = |id: &&Uuid| node_of(id).is_some_and(|node| types.contains(&node.node_type));
        let carriers = merges.all_standing(carriers.iter().filter(of_type).copied());
        // Objects of one name are each their own; an alias is that of one thing.
        let names: Vec<&str> = carriers
            .iter()
            .filter_map(|id| Some(node_of(id)?.name.as_str()))
            .collect();
        let is_alias = names.iter().any(|name| !name.eq_ignore_ascii_case(&object.name));
        if names.len() > 1 && is_alias {
            disputes.add(&object.name, names.into_iter().map(str::to_owned).collect());
        }
    }
}

fn look_up(
    ids: WorkspaceIds,
    index: &WorkspaceIndex,
    plan: &StixPlan,
    first: usize,
    highest: Tlp,
) -> Result<FoundNodes, DomainError> {
    let mut found = FoundNodes::default();
    let is_new = |stix_id: &str| !index.contains(ids.node(stix_id), 0);
    let piece = plan.nodes.iter().enumerate().skip(first).take(PIECE);
    let new: Vec<(usize, &StixNode)> = piece.filter(|(_, node)| is_new(&node.stix_id)).collect();
    let mut objects: Vec<&str> = new.iter().map(|(_, node)| node.stix_id.as_str()).collect();
    if first == 0 {
        let ends = plan
            .relationships
            .iter()
            .flat_map(|edge| [&edge.source_ref, &edge.target_ref]);
        let ends: HashSet<&str> = ends.map(String::as_str).filter(|end| is_new(end)).collect();
        objects.extend(ends);
    }
    let every = Filter {
        include_rejected: true,
        ..Filter::up_to(Tlp::Red).of_all()
    };
    let mut by_id: HashMap<usize, Vec<Uuid>> = HashMap::new();
    for hit in index.lookup(&objects, &every).map_err(index_error)? {
        if hit.kind == KeyKind::Identifier {
            by_id.entry(hit.key).or_default().push(hit.node_id);
        }
    }
    let named: HashSet<&str> = by_id.keys().filter_map(|at| objects.get(*at).copied()).collect();
    let new = new
        .into_iter()
        .filter(|(_, node)| !named.contains(node.stix_id.as_str()));
    let keys: Vec<(usize, String)> = new
        .flat_map(|(place, node)| keys_of(node).into_iter().map(move |key| (place, key)))
        .collect();
    let texts: Vec<&str> = keys.iter().map(|(_, key)| key.as_str()).collect();
    for hit in index
        .lookup(&texts, &Filter::up_to(highest))
        .map_err(index_error)?
    {
        if let Some((place, key)) = keys.get(hit.key) {
            let object = plan.nodes.get(*place);
            let is_name = object.is_some_and(|node| node.node_type != NodeType::Ioc && node.name == *key);
            if is_name && hit.kind != KeyKind::Identifier {
                found.by_name.entry(*place).or_default().push(hit.node_id);
            }
            found
                .by_key
                .entry(*place)
                .or_default()
                .push((hit.node_id, hit.kind));
        }
    }
    let by_id = by_id.into_iter();
    found.by_id = by_id
        .filter_map(|(at, rows)| Some(((*objects.get(at)?).to_owned(), rows)))
        .collect();
    Ok(found)
}

fn properties_of(node: &StixNode) -> Map<String, Value> {
    serde_json::from_str(&node.properties).unwrap_or_default()
}

/// The texts by which another source may have named an object.
fn keys_of(node: &StixNode) -> Vec<String> {
    let is_value = node.node_type == NodeType::Ioc;
    if node.node_type == NodeType::Osint || (node.is_context() && !is_value) {
        return Vec::new();
    }
    let properties = properties_of(node);
    if is_value {
        let identities = value_identities(&properties);
        let values = identities
            .iter()
            .filter_map(|identity| value_of_identity(identity));
        return values.take(MAX_KEYS).map(str::to_owned).collect();
    }
    let mut keys = vec![node.name.clone()];
    keys.extend(
        strings(properties.get("external_ids"))
            .take(MAX_KEYS)
            .map(str::to_owned),
    );
    keys.extend(
        known_names(node.node_type, &node.name)
            .into_iter()
            .map(str::to_owned),
    );
    keys
}

/// The rows of objects that were joined earlier: those whose id follows from nothing about the object.
fn earlier_joins(ids: WorkspaceIds, found: &FoundNodes, nodes: &HashMap<Uuid, StoredNode>) -> Joins {
    let mut joins = Joins::new();
    for (object, rows) in &found.by_id {
        let beside: HashSet<Uuid> = Place::beside()
            .map(|place| ids.node(&place.name(object)))
            .collect();
        let is_joined = |id: &&Uuid| {
            let stored = nodes.get(*id).map(|stored| &stored.node.properties);
            let stix_id = stored.and_then(|properties| properties.get("stix_id")?.as_str());
            !beside.contains(*id) && stix_id == Some(object)
        };
        // Beside a joined row there may be others that have risen since; the joined one came first.
        let came = |id: &&Uuid| nodes.get(*id).map(|stored| (stored.node.ingested_at, **id));
        if let Some(row) = rows.iter().filter(is_joined).min_by_key(came) {
            joins.insert(ids.node(object), *row);
        }
    }
    joins
}

/// Adds the nodes that objects turn out to be now; one that several objects might be is none of them.
fn add_new(
    joins: &mut Joins,
    ids: WorkspaceIds,
    (plan, found, nodes): (&StixPlan, &FoundNodes, &HashMap<Uuid, StoredNode>),
    seen: (Tlp, &SeenMerges),
) {
    let mut wanted: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
    for (place, hits) in &found.by_key {
        let Some(object) = plan.nodes.get(*place) else {
            continue;
        };
        if let Some(row) = node_of(object, hits, nodes, seen) {
            wanted.entry(row).or_default().push(ids.node(&object.stix_id));
        }
    }
    let taken: HashSet<Uuid> = joins.values().copied().collect();
    for (row, objects) in wanted {
        if let ([only], false) = (objects.as_slice(), taken.contains(&row)) {
            joins.insert(*only, row);
        }
    }
}

fn node_of(
    object: &StixNode,
    hits: &[(Uuid, KeyKind)],
    nodes: &HashMap<Uuid, StoredNode>,
    (highest, merges): (Tlp, &SeenMerges),
) -> Option<Uuid> {
    let types = equivalent_types(object.node_type);
    let mut carriers: Vec<(Uuid, KeyKind)> = Vec::new();
    for (id, kind) in hits {
        let Some(stored) = nodes.get(id) else { continue };
        if !types.contains(&stored.node.node_type) || stored.node.tlp > highest {
            continue;
        }
        match carriers.iter_mut().find(|(known, _)| known == id) {
            Some(known) => known.1 = known.1.max(*kind),
            None => carriers.push((*id, *kind)),
        }
    }
    let is_stix = |id: &Uuid| {
        nodes.get(id).is_none_or(|stored| {
            stored.stix_evidence.is_some() || stored.node.properties.contains_key("stix_id")
        })
    };
    if object.node_type == NodeType::Ioc {
        // Indicators of one value are about the same thing, so those of other objects are in nobody's way.
        let wanted = value_identities(&properties_of(object));
        carriers.retain(|(id, _)| {
            let known = nodes
                .get(id)
                .map(|stored| value_identities(&stored.node.properties));
            !is_stix(id) && known.is_some_and(|known| !known.is_disjoint(&wanted))
        });
    }
    // Of nodes that are merged into one, the one that has the name as its own is meant.
    if carriers.len() > 1 && merges.all_standing(carriers.iter().map(|(id, _)| *id)).len() == 1 {
        let named = carriers
            .iter()
            .copied()
            .max_by_key(|(id, kind)| (*kind, Reverse(*id)));
        carriers = named.into_iter().collect();
    }
    let [(id, kind)] = carriers.as_slice() else {
        return None;
    };
    let stored = nodes.get(id)?;
    let fits = !is_stix(id) && *kind > KeyKind::Alias && stored.node.tlp >= object.tlp;
    fits.then_some(*id)
}
