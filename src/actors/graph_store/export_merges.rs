//! Merged nodes in an export.
//!
//! Rule: what is merged leaves as the node that stands for it. No object of its own leaves, its names are aliases of that
//! node, and what refers to it refers to that one. What it says at a stricter marking than that node leaves nowhere.

use std::collections::HashMap;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::merges::SeenMerges;
use crate::domain::stix::export::{ExportObject, ExportParts};
use crate::domain::stix::object::{self, rename_refs};

/// Types of objects that may have aliases (STIX 2.1).
const WITH_ALIASES: [&str; 7] = [
    "attack-pattern",
    "campaign",
    "infrastructure",
    "intrusion-set",
    "malware",
    "threat-actor",
    "tool",
];

/// The objects of merged nodes, and what stands for them.
#[derive(Default)]
pub(super) struct MergedObjects {
    /// Nodes, and those that stand for them.
    standing: HashMap<Uuid, Uuid>,
    /// The STIX ids of merged nodes, and those of what stands for them.
    renamed: HashMap<String, String>,
}

impl MergedObjects {
    /// Takes the objects of merged nodes out of these, and has those that stand for them say what they may.
    pub(super) fn take_from(objects: &mut Vec<(Uuid, ExportObject)>, merges: &SeenMerges) -> Self {
        let mut taken = Self::default();
        if merges.is_empty() {
            return taken;
        }
        let all = std::mem::take(objects);
        let (mut own, merged): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|(node, _)| merges.standing(*node) == *node);
        let places: HashMap<Uuid, usize> = own.iter().map(|(node, _)| *node).zip(0..).collect();
        for (node, object) in merged {
            let stands = merges.standing(node);
            let Some((_, standing)) = places.get(&stands).and_then(|place| own.get_mut(*place)) else {
                continue;
            };
            taken.standing.insert(node, stands);
            let ids = [&object, &*standing].map(|object| object::text(&object.raw, "id"));
            if let [Some(from), Some(to)] = ids
                && from != to
            {
                taken.renamed.insert(from.to_owned(), to.to_owned());
            }
            if object.tlp <= standing.tlp {
                add_names(&mut standing.raw, &object.raw);
            }
        }
        for (node, object) in &mut own {
            let group = merges.with_members(&[*node]);
            let changed = group.iter().filter_map(|node| merges.changed_at(*node)).max();
            let is_dated = object.confidence.is_some();
            object.changed_at = object.changed_at.max(changed.filter(|_| is_dated));
        }
        *objects = own;
        taken
    }

    /// Gives merged nodes the STIX ids of those that stand for them.
    pub(super) fn add_ids(&self, stix_ids: &mut HashMap<Uuid, String>) {
        for (node, stands) in &self.standing {
            if let Some(id) = stix_ids.get(stands).cloned() {
                stix_ids.insert(*node, id);
            }
        }
    }

    /// Adds the objects of other merged nodes.
    pub(super) fn extend(&mut self, others: Self) {
        self.standing.extend(others.standing);
        self.renamed.extend(others.renamed);
    }

    /// Has an object refer to what stands for merged nodes; whether that changes anything.
    pub(super) fn rename_in(&self, raw: &mut Map<String, Value>) -> bool {
        !self.renamed.is_empty() && rename_refs(raw, &|id| self.renamed.get(id).map(String::as_str))
    }

    /// Has all objects refer to what stands for merged nodes.
    pub(super) fn rename_in_all(&self, parts: &mut ExportParts) {
        let lists = [&mut parts.nodes, &mut parts.relationships, &mut parts.supporting];
        for object in lists.into_iter().flatten() {
            self.rename_in(&mut object.raw);
        }
    }
}

/// Adds the names of an object to the aliases of another one, if its type has any.
fn add_names(standing: &mut Map<String, Value>, merged: &Map<String, Value>) {
    let has_aliases = object::text(standing, "type").is_some_and(|kind| WITH_ALIASES.contains(&kind));
    if !has_aliases {
        return;
    }
    let own = object::text(standing, "name").unwrap_or_default().to_owned();
    let names = object::text(merged, "name").into_iter();
    let names = names.chain(object::texts(merged, "aliases"));
    let names: Vec<Value> = names.filter(|name| *name != own).map(Value::from).collect();
    if names.is_empty() {
        return;
    }
    let aliases = standing
        .entry("aliases")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(aliases) = aliases {
        for name in names {
            if !aliases.contains(&name) {
                aliases.push(name);
            }
        }
    }
}
