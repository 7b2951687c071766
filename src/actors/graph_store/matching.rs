//! The stored nodes that drafts denote.
//!
//! Rules:
//! - Only nodes that the writer may see count, not even for a draft that is hidden from its writer.
//! - A name is matched by type. An identifier is stronger than a name. A name that several nodes carry, as name or alias, is
//!   in dispute, unless they are merged: the draft becomes a node of its own, and the answer names the others.
//! - A value is matched with the indicators whose pattern has it, in normal form, unless it has a node of its own. The
//!   indicator must be as open as the draft: who may see the value must still see it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::merges::SeenMerges;
use crate::actors::indexed_store::index_error;
use crate::capacity::run_heavy;
use crate::domain::draft::{Drafts, NodeDraft};
use crate::domain::error::DomainError;
use crate::domain::extraction::{Entry, Gazetteer};
use crate::domain::naming::{has_value, value_identities, value_of_identity};
use crate::domain::node::NodeType;
use crate::domain::tlp::Tlp;
use crate::search::{Filter, KeyHit, KeyKind, WorkspaceIndex};
use crate::store::{Store, StoredNode};

/// Maximum number of identifiers looked up per draft.
const MAX_KEYS: usize = 20;
/// Drafts looked up at a time, which takes some tens of milliseconds.
const DRAFTS_PER_PIECE: usize = 500;
/// Maximum number of disputes that an answer names, and of nodes that it names for each.
const MAX_DISPUTES: usize = 100;
const MAX_NAMED: usize = 10;

/// What the nodes of drafts are found to be.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// The stored nodes that drafts denote, by position.
    pub(super) merges: HashMap<usize, Uuid>,
    pub(super) disputes: Disputes,
}

/// Names in dispute, with the names of the nodes that carry them.
#[derive(Debug, Default)]
pub(super) struct Disputes(BTreeMap<String, Vec<String>>);

impl Disputes {
    /// Adds a name that nodes with these names carry.
    pub(super) fn add(&mut self, name: &str, mut nodes: Vec<String>) {
        nodes.sort_unstable();
        self.0.insert(name.to_owned(), nodes);
    }

    /// A sentence about each.
    pub(super) fn warnings(&self) -> Vec<String> {
        let shown = self.0.iter().take(MAX_DISPUTES);
        let mut warnings: Vec<String> = shown.map(|(name, nodes)| warning_of(name, nodes)).collect();
        let left = self.0.len().saturating_sub(MAX_DISPUTES);
        if left > 0 {
            warnings.push(format!(
                "{left} more names are carried by several nodes each, and stand for themselves"
            ));
        }
        warnings
    }
}

fn warning_of(name: &str, nodes: &[String]) -> String {
    let named: Vec<&str> = nodes.iter().take(MAX_NAMED).map(String::as_str).collect();
    let more = nodes.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(
        "the name {name:?} is carried by several nodes ({}{more}), so it is a node of its own",
        named.join(", ")
    )
}

/// What a piece of drafts is found to be, by position.
#[derive(Default)]
struct FoundKeys {
    merges: Vec<(usize, Uuid)>,
    disputes: Vec<(usize, Vec<Uuid>)>,
    /// Indicators that may have the value of a draft.
    values: Vec<(usize, Vec<Uuid>)>,
}

/// Looks the drafts up, piece by piece.
pub(super) async fn find_matches(
    store: &Arc<Store>,
    (ws, target): (Uuid, &Arc<WorkspaceIndex>),
    drafts: &Arc<Drafts>,
    (highest, merges): (Tlp, &SeenMerges),
) -> Result<Matches, DomainError> {
    let mut matches = Matches::default();
    for first in (0..drafts.nodes.len()).step_by(DRAFTS_PER_PIECE) {
        let place = (Arc::clone(store), ws, Arc::clone(target));
        let (piece, merged) = (Arc::clone(drafts), merges.clone());
        let found = run_heavy(Some(ws), move || {
            let (store, ws, target) = place;
            let own_ids = |identity: &str| store.ids_of_identity(ws, identity);
            let piece = piece.nodes.iter().enumerate().skip(first);
            find_keys((&target, &merged), piece.take(DRAFTS_PER_PIECE), highest, own_ids)
        });
        matches.add(store, ws, (drafts, found.await?), highest).await?;
    }
    Ok(matches)
}

impl Matches {
    async fn add(
        &mut self,
        store: &Store,
        ws: Uuid,
        (drafts, found): (&Drafts, FoundKeys),
        highest: Tlp,
    ) -> Result<(), DomainError> {
        self.merges.extend(found.merges);
        let asked = found.disputes.iter().chain(&found.values);
        let asked: HashSet<Uuid> = asked.flat_map(|(_, ids)| ids).copied().collect();
        let asked: Vec<Uuid> = asked.into_iter().collect();
        let nodes = store.nodes_by_id(ws, &asked, highest, false).await?;
        let nodes: HashMap<Uuid, StoredNode> =
            nodes.into_iter().map(|stored| (stored.node.id, stored)).collect();
        for (place, ids) in found.disputes {
            let Some(draft) = drafts.nodes.get(place) else {
                continue;
            };
            let name_of = |id: &Uuid| nodes.get(id).map(|stored| stored.node.name.clone());
            self.disputes
                .add(&draft.name, ids.iter().filter_map(name_of).collect());
        }
        let identities: HashMap<Uuid, HashSet<String>> = nodes
            .values()
            .filter(|stored| stored.node.node_type == NodeType::Ioc)
            .map(|stored| (stored.node.id, value_identities(&stored.node.properties)))
            .collect();
        for (place, ids) in found.values {
            let Some(draft) = drafts.nodes.get(place) else {
                continue;
            };
            let holder = ids.into_iter().filter_map(|id| {
                let (stored, known) = (nodes.get(&id)?, identities.get(&id)?);
                let fits = stored.node.tlp <= draft.tlp && has_value(known, &draft.identity);
                // The indicator of this value alone before one of several, and then always the same one.
                fits.then_some((known.len(), stored.node.tlp, stored.node.ingested_at, id))
            });
            if let Some((.., id)) = holder.min() {
                self.merges.insert(place, id);
            }
        }
        Ok(())
    }
}

fn find_keys<'d>(
    (target, merges): (&WorkspaceIndex, &SeenMerges),
    drafts: impl Iterator<Item = (usize, &'d NodeDraft)>,
    highest: Tlp,
    own_ids: impl Fn(&str) -> [Uuid; 2],
) -> Result<FoundKeys, DomainError> {
    let mut found = FoundKeys::default();
    for (place, draft) in drafts {
        if draft.merge_by_name {
            match node_of_name((target, merges), draft, highest, &own_ids)? {
                NamedNode::Known(id) => found.merges.push((place, id)),
                NamedNode::Disputed(ids) => found.disputes.push((place, ids)),
                NamedNode::New => {}
            }
        } else if draft.node_type == NodeType::Ioc
            && let Some(value) = value_of_identity(&draft.identity)
        {
            let filter = Filter {
                node_types: Some(vec![NodeType::Ioc]),
                ..Filter::up_to(highest).of_all()
            };
            let hits = target.lookup(&[value], &filter).map_err(index_error)?;
            let hits = hits.into_iter().filter(|hit| hit.kind == KeyKind::Identifier);
            let ids: Vec<Uuid> = hits.map(|hit| hit.node_id).collect();
            let own = own_ids(&draft.identity);
            if !ids.is_empty() && !ids.iter().any(|id| own.contains(id)) {
                found.values.push((place, ids));
            }
        }
    }
    Ok(found)
}

/// What a name denotes.
enum NamedNode {
    Known(Uuid),
    Disputed(Vec<Uuid>),
    New,
}

/// The node of the same type that carries the draft's name or external id, as far as the writer may see it.
fn node_of_name(
    (target, merges): (&WorkspaceIndex, &SeenMerges),
    draft: &NodeDraft,
    highest: Tlp,
    own_ids: impl Fn(&str) -> [Uuid; 2],
) -> Result<NamedNode, DomainError> {
    let mut keys = vec![draft.name.as_str()];
    let properties = draft.properties.map();
    keys.extend(strings(properties.get("external_ids")).take(MAX_KEYS));
    let filter = Filter {
        node_types: Some(equivalent_types(draft.node_type)),
        // Nodes hidden from the writer must not influence the match, not even for a draft that is hidden too.
        ..Filter::up_to(highest)
    };
    let mut found = target.lookup(&keys, &filter).map_err(index_error)?;
    if found.is_empty() {
        let others = known_names(draft.node_type, &draft.name);
        found = target.lookup(&others, &filter).map_err(index_error)?;
    }
    if found.len() > 1 && draft.tlp < highest {
        found = as_open_as(target, draft, &keys, found)?;
    }
    // An identifier is stronger evidence than a name.
    let identified = found.iter().filter(|hit| hit.kind == KeyKind::Identifier);
    if let Some(id) = identified.map(|hit| hit.node_id).min() {
        return Ok(NamedNode::Known(id));
    }
    let mut carriers: Vec<Uuid> = found.iter().map(|hit| hit.node_id).collect();
    carriers.sort_unstable();
    carriers.dedup();
    let own = own_ids(&draft.identity);
    Ok(match carriers.as_slice() {
        [] => NamedNode::New,
        [only] => NamedNode::Known(*only),
        // It stands for itself already.
        several => match several.iter().find(|id| own.contains(id)) {
            Some(own) => NamedNode::Known(*own),
            None => match one_thing(merges, &found) {
                Some(named) => NamedNode::Known(named),
                None => NamedNode::Disputed(merges.all_standing(carriers)),
            },
        },
    })
}

/// The one of these nodes that is named, if all of them are merged into one: the one that has the name as its own rather than as
/// an alias, since what is written to it stays with it.
fn one_thing(merges: &SeenMerges, found: &[KeyHit]) -> Option<Uuid> {
    let standing = merges.all_standing(found.iter().map(|hit| hit.node_id));
    let [stands] = standing.as_slice() else {
        return None;
    };
    let named = found
        .iter()
        .max_by_key(|hit| (hit.kind, hit.node_id == *stands, Reverse(hit.node_id)));
    named.map(|hit| hit.node_id)
}

/// Those of the nodes found that are as open as the draft, if there are any: those who see it see them too.
fn as_open_as(
    target: &WorkspaceIndex,
    draft: &NodeDraft,
    keys: &[&str],
    found: Vec<KeyHit>,
) -> Result<Vec<KeyHit>, DomainError> {
    let filter = Filter {
        node_types: Some(equivalent_types(draft.node_type)),
        ..Filter::up_to(draft.tlp)
    };
    let open = target.lookup(keys, &filter).map_err(index_error)?;
    Ok(if open.is_empty() { found } else { open })
}

/// Well-known synonyms of a name, such as Fancy Bear for APT28.
pub(super) fn known_names(node_type: NodeType, name: &str) -> Vec<&'static str> {
    let entry = Gazetteer::shared().resolve(name);
    let entry = entry.filter(|entry| entry.kind.node_type() == node_type);
    entry.into_iter().flat_map(Entry::names).collect()
}

/// Types that count as equal: a CVE is a vulnerability under another name.
pub(super) fn equivalent_types(node_type: NodeType) -> Vec<NodeType> {
    match node_type {
        NodeType::Cve | NodeType::Vulnerability => vec![NodeType::Cve, NodeType::Vulnerability],
        NodeType::Actor | NodeType::Ioc | NodeType::Attck | NodeType::Osint | NodeType::Tool => {
            vec![node_type]
        }
    }
}

/// The texts of a property.
pub(super) fn strings(value: Option<&serde_json::Value>) -> impl Iterator<Item = &str> {
    use serde_json::Value;
    let (one, many) = match value {
        Some(Value::String(text)) => (Some(text.as_str()), None),
        Some(Value::Array(items)) => (None, Some(items.iter().filter_map(Value::as_str))),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => (None, None),
    };
    one.into_iter().chain(many.into_iter().flatten())
}
