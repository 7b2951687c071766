//! Compares the attributes of a MISP event with the versions that are stored, as far as the writer sees them.
//!
//! Rule: an attribute is its UUID, its newest version counts, and an older one that comes later changes nothing. One that an
//! event does not list is not deleted: MISP sends events in part, and says so of what it deletes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use crate::actors::indexed_store::index_error;
use crate::capacity::run_heavy;
use crate::domain::draft::Drafts;
use crate::domain::error::DomainError;
use crate::domain::graph::attributes::{
    AttributeEnd, AttributeVersion, ENTRIES, KnownAttribute, known_attributes, remove_entries,
};
use crate::domain::tlp::Tlp;
use crate::search::{Filter, WorkspaceIndex};
use crate::store::{Corrections, EndedAttribute, Store};

/// Nodes read at a time.
const NODES_PER_READ: usize = 500;

/// What the attributes of an event are, compared with those that are stored.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// The drafts without what says nothing newer, if that is not all of them.
    pub(super) drafts: Option<Arc<Drafts>>,
    pub(super) corrections: Corrections,
    /// Number of attributes of which a version that is no older is known.
    pub(super) outdated: u64,
}

/// An attribute of an event.
#[derive(Debug, Clone)]
struct StatedAttribute {
    version: AttributeVersion,
    /// Positions of the drafts that state it.
    drafts: Vec<usize>,
}

/// An attribute of a stored node.
#[derive(Debug, Clone)]
struct StoredAttribute {
    node: Uuid,
    known: KnownAttribute,
}

type Stated = HashMap<String, StatedAttribute>;
type Stored = HashMap<String, Vec<StoredAttribute>>;

/// Compares the attributes of drafts with the stored ones.
pub(super) async fn compare_versions(
    store: &Arc<Store>,
    (ws, target): (Uuid, &Arc<WorkspaceIndex>),
    drafts: &Arc<Drafts>,
    highest: Tlp,
) -> Result<Compared, DomainError> {
    if drafts.withdrawn.is_empty() && drafts.nodes.iter().all(|node| node.source_type != "misp") {
        return Ok(Compared::default());
    }
    let (index, all) = (Arc::clone(target), Arc::clone(drafts));
    let looked_up = run_heavy(Some(ws), move || {
        let stated = stated_attributes(&all);
        let withdrawn = all.withdrawn.iter().map(|end| &end.uuid);
        let nodes = nodes_of(&index, stated.keys().chain(withdrawn), highest)?;
        Ok((stated, nodes))
    });
    let (stated, nodes) = looked_up.await?;
    let mut stored = Stored::new();
    for ids in nodes.chunks(NODES_PER_READ) {
        for one in store.nodes_by_id(ws, ids, highest, true).await? {
            for known in known_attributes(&one.node.properties) {
                let node = one.node.id;
                let versions = stored.entry(known.uuid.clone()).or_default();
                versions.push(StoredAttribute { node, known });
            }
        }
    }
    if stored.is_empty() {
        return Ok(Compared::default());
    }
    let drafts = Arc::clone(drafts);
    run_heavy(Some(ws), move || Ok(compare(&drafts, &stated, &stored))).await
}

/// The attributes that drafts state, by UUID.
fn stated_attributes(drafts: &Drafts) -> Stated {
    let mut stated = Stated::new();
    for (place, draft) in drafts.nodes.iter().enumerate() {
        if draft.source_type != "misp" || !draft.properties.text().contains(ENTRIES) {
            continue;
        }
        for known in known_attributes(&draft.properties.map()) {
            let attribute = stated.entry(known.uuid).or_insert(StatedAttribute {
                version: known.version,
                drafts: Vec::new(),
            });
            attribute.version = attribute.version.max(known.version);
            attribute.drafts.push(place);
        }
    }
    stated
}

/// The nodes that were made of these attributes, in force or not.
fn nodes_of<'u>(
    index: &WorkspaceIndex,
    uuids: impl Iterator<Item = &'u String>,
    highest: Tlp,
) -> Result<Vec<Uuid>, DomainError> {
    let filter = Filter {
        include_rejected: true,
        ..Filter::up_to(highest)
    };
    let mut nodes = HashSet::new();
    for uuid in uuids {
        let hits = index.lookup(&[uuid.as_str()], &filter).map_err(index_error)?;
        nodes.extend(hits.into_iter().map(|hit| hit.node_id));
    }
    Ok(nodes.into_iter().collect())
}

fn compare(drafts: &Arc<Drafts>, stated: &Stated, stored: &Stored) -> Compared {
    let mut compared = Compared::default();
    let mut outdated: HashMap<&str, Uuid> = HashMap::new();
    for (uuid, attribute) in stated {
        let Some(versions) = stored.get(uuid) else {
            continue;
        };
        let newest = versions
            .iter()
            .max_by_key(|one| (one.known.version, !one.known.is_ended));
        let Some(newest) = newest else { continue };
        if newest.known.outdates(attribute.version) {
            outdated.insert(uuid, newest.node);
        } else if newest.known.version != attribute.version || attribute.version.is_unknown() {
            compared.corrections.ended.push(EndedAttribute {
                end: AttributeEnd {
                    uuid: uuid.clone(),
                    version: attribute.version,
                    is_deleted: false,
                },
                nodes: versions.iter().map(|one| one.node).collect(),
                drafts: attribute.drafts.clone(),
            });
        }
    }
    for end in &drafts.withdrawn {
        let Some(versions) = stored.get(&end.uuid) else {
            continue;
        };
        let newest = versions
            .iter()
            .map(|one| one.known.version)
            .max()
            .unwrap_or_default();
        if newest <= end.version || end.version.is_unknown() {
            compared.corrections.ended.push(EndedAttribute {
                end: end.clone(),
                nodes: versions.iter().map(|one| one.node).collect(),
                drafts: Vec::new(),
            });
        }
    }
    compared.outdated = outdated.len() as u64;
    if !outdated.is_empty() {
        leave_out(drafts, stated, &outdated, &mut compared);
    }
    compared
}

/// Leaves out the attributes of which no newer version has come.
fn leave_out(drafts: &Arc<Drafts>, stated: &Stated, outdated: &HashMap<&str, Uuid>, compared: &mut Compared) {
    let mut rest = Drafts::clone(drafts);
    let touched = outdated.keys().filter_map(|uuid| stated.get(*uuid));
    let touched: HashSet<usize> = touched
        .flat_map(|attribute| attribute.drafts.iter().copied())
        .collect();
    for place in touched {
        let Some(draft) = rest.nodes.get_mut(place) else {
            continue;
        };
        let mut properties = draft.properties.map();
        let stands = known_attributes(&properties);
        let stands = stands.iter().find_map(|known| outdated.get(known.uuid.as_str()));
        let (left, before) = remove_entries(&mut properties, |known| {
            outdated.contains_key(known.uuid.as_str())
        });
        if let (0, Some(node)) = (left, stands) {
            compared.corrections.stale.insert(place, *node);
        } else if left < before {
            draft.properties = properties.into();
        }
    }
    compared.drafts = Some(Arc::new(rest));
}

#[cfg(test)]
mod tests;
