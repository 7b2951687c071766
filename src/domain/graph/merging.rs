//! Nodes that an analyst found to be one thing: which of them stand in which.
//!
//! Rules:
//! - A merge is a statement beside the nodes. They keep their rows, evidence and relationships, so that taking a merge back
//!   is to forget the statement, whatever was written in the meantime.
//! - A merge holds for those who see the node that stands for the others. To everybody else nothing was merged, so that it
//!   tells nothing of what is hidden and takes nothing away.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::alias_sources::{aliases_of, note_sources, sources_of};
use crate::domain::node::KgNode;

/// Lists of a node that are united with those of the nodes merged into it.
const UNITED: [&str; 5] = ["aliases", "external_ids", "tags", "labels", "attribute_uuids"];

/// A node that stands in another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    pub node: Uuid,
    pub into: Uuid,
    pub reason: Option<String>,
    pub at: DateTime<Utc>,
    /// When it was taken back.
    pub ended: Option<DateTime<Utc>>,
}

/// The merges of a workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Merges {
    by_node: HashMap<Uuid, Merge>,
    /// The nodes merged into each, in order.
    direct: HashMap<Uuid, BTreeSet<Uuid>>,
    /// The nodes that a node was merged with, also in merges that were taken back, and when that last changed.
    touched: HashMap<Uuid, Vec<(Uuid, DateTime<Utc>)>>,
    /// Pairs of nodes that are not the same, each in order.
    distinct: BTreeSet<(Uuid, Uuid)>,
}

impl Merges {
    /// Of all merges, those that were taken back included; one for each node.
    pub fn of(merges: impl IntoIterator<Item = Merge>) -> Self {
        let mut all = Self::default();
        for merge in merges {
            let at = merge.ended.unwrap_or(merge.at);
            for (node, other) in [(merge.node, merge.into), (merge.into, merge.node)] {
                all.touched.entry(node).or_default().push((other, at));
            }
            if merge.ended.is_none() {
                all.direct.entry(merge.into).or_default().insert(merge.node);
                all.by_node.insert(merge.node, merge);
            }
        }
        all
    }

    /// The same merges with the pairs of nodes that are not the same.
    #[must_use]
    pub fn with_distinct(mut self, pairs: impl IntoIterator<Item = (Uuid, Uuid)>) -> Self {
        self.distinct = pairs.into_iter().map(in_order).collect();
        self
    }

    /// Whether somebody found these nodes not to be the same.
    pub fn are_distinct(&self, one: Uuid, other: Uuid) -> bool {
        self.distinct.contains(&in_order((one, other)))
    }

    /// The pairs of nodes that are not the same.
    pub fn distinct(&self) -> impl Iterator<Item = (Uuid, Uuid)> {
        self.distinct.iter().copied()
    }

    /// Whether no node was ever merged.
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    /// The merge of a node, if it is merged.
    pub fn of_node(&self, node: Uuid) -> Option<&Merge> {
        self.by_node.get(&node)
    }

    /// When a merge or its end last changed what an export shows of a node to somebody who `sees` some of them.
    pub fn changed_at(&self, node: Uuid, sees: impl Fn(Uuid) -> bool) -> Option<DateTime<Utc>> {
        let touched = self.touched.get(&node).into_iter().flatten();
        touched.filter(|(other, _)| sees(*other)).map(|(_, at)| *at).max()
    }

    /// The node that stands for this one to somebody who `sees` some of them.
    pub fn standing(&self, node: Uuid, sees: impl Fn(Uuid) -> bool) -> Uuid {
        let mut stands = node;
        while let Some(merge) = self.by_node.get(&stands)
            && sees(merge.into)
        {
            stands = merge.into;
        }
        stands
    }

    /// The nodes for which this one stands to somebody who `sees` some of them, in order and without itself.
    pub fn members(&self, node: Uuid, sees: impl Fn(Uuid) -> bool) -> Vec<Uuid> {
        let mut members = BTreeSet::new();
        let mut open = vec![node];
        while let Some(next) = open.pop() {
            let direct = self.direct.get(&next).into_iter().flatten();
            for member in direct.copied().filter(|member| sees(*member)) {
                if members.insert(member) {
                    open.push(member);
                }
            }
        }
        members.into_iter().collect()
    }

    /// Whether a node stands in another one, directly or not, whoever sees it.
    pub fn stands_in(&self, node: Uuid, other: Uuid) -> bool {
        let mut stands = Some(node);
        while let Some(at) = stands {
            if at == other {
                return true;
            }
            stands = self.by_node.get(&at).map(|merge| merge.into);
        }
        false
    }
}

/// A pair of nodes in the order in which it is kept.
pub fn in_order((one, other): (Uuid, Uuid)) -> (Uuid, Uuid) {
    (one.min(other), one.max(other))
}

/// Gives a node what those merged into it say beside it: their names as aliases, their lists, their evidence, and their
/// marking where that is stricter.
pub fn unite(node: &mut KgNode, members: &[KgNode]) {
    for member in members {
        note_aliases(node, member);
        let mut names: Vec<Value> = Vec::new();
        if !member.name.eq_ignore_ascii_case(&node.name) {
            names.push(Value::from(member.name.as_str()));
        }
        add(node, "aliases", &names);
        for key in UNITED {
            if let Some(Value::Array(more)) = member.properties.get(key) {
                add(node, key, more);
            }
        }
        node.tlp = node.tlp.max(member.tlp);
        let linked: HashSet<Uuid> = node.linked_evidence_ids.iter().copied().collect();
        let more = member.linked_evidence_ids.iter().copied();
        node.linked_evidence_ids
            .extend(more.filter(|evidence| !linked.contains(evidence)));
    }
}

/// Notes who states the names of a node that is merged into this one.
fn note_aliases(node: &mut KgNode, member: &KgNode) {
    let names = std::iter::once(member.name.as_str()).chain(aliases_of(&member.properties));
    for alias in names.filter(|alias| *alias != node.name) {
        let sources = sources_of(&member.properties, &member.source, alias);
        note_sources(&mut node.properties, &node.source, alias, sources);
    }
}

fn add(node: &mut KgNode, key: &str, more: &[Value]) {
    if more.is_empty() {
        return;
    }
    let list = node
        .properties
        .entry(key)
        .or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(list) = list else { return };
    let mut known: HashSet<String> = list.iter().map(Value::to_string).collect();
    for item in more {
        let is_name = key == "aliases" && item.as_str().is_some_and(|item| item == node.name);
        if !is_name && known.insert(item.to_string()) {
            list.push(item.clone());
        }
    }
}

#[cfg(test)]
mod tests;
