//! Lists of what is harmless, or shared by many, in the format of MISP: private networks, public resolvers, well-known
//! domains. A value on one is no reason to drop it, but one to look twice.
//!
//! Entries are kept by what they are compared with: networks as sorted stretches of addresses, texts and hosts as hashes, so
//! that millions of them take some tens of megabytes. A look-up takes a search in each, however many lists there are.

mod builder;
mod file;
mod hashed;
mod stretches;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aho_corasick::AhoCorasick;
use regex::RegexSet;
use serde_json::{Map, Value};

pub use self::builder::Builder;
pub use self::file::ListError;
use self::hashed::Hashed;
use self::stretches::Stretches;
use super::kinds::EntityKind;
use super::lookup::host_of;
use super::naming::{indicator_of, stated_indicators};
use super::network::{Network, Version};
use super::node::{KgNode, NodeType};

/// The property of a node that names the warninglists it is on.
pub const PROPERTY: &str = "warninglists";
/// Start of the warning of a staged entity that is on warninglists.
pub const WARNING: &str = "on a warninglist: ";

/// Place of a list.
type ListId = u16;
/// Place of a set of lists.
type SetId = u32;

/// The kinds that a list is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kinds(u64);

impl Kinds {
    const ALL: Kinds = Kinds(u64::MAX);
    const NONE: Kinds = Kinds(0);

    fn of(kind: Option<EntityKind>) -> Self {
        // There are fewer than 63 kinds; the last bit stands for values without one.
        Self(1 << kind.map_or(63, |kind| kind as u32))
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

#[derive(Debug)]
struct ListHead {
    name: Arc<str>,
    kinds: Kinds,
}

/// All warninglists of a service.
#[derive(Debug, Default)]
pub struct Warninglists {
    heads: Vec<ListHead>,
    /// The sets of lists that entries are on.
    sets: Vec<Box<[ListId]>>,
    stretches: [Stretches; 2],
    /// Whole values.
    values: Hashed,
    /// Hosts, which stand for all hosts below them, too.
    hosts: Hashed,
    /// Parts of values, and the list of each.
    parts: Option<(AhoCorasick, Vec<ListId>)>,
    patterns: Vec<(RegexSet, ListId)>,
    entries: usize,
}

impl Warninglists {
    /// Number of lists.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there is no list.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Number of entries of all lists.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The names of the lists that a value in normal form is on, in alphabetical order.
    pub fn of(&self, kind: Option<EntityKind>, value: &str) -> Vec<String> {
        if self.is_empty() || value.is_empty() {
            return Vec::new();
        }
        let mut on: Vec<ListId> = Vec::new();
        let own = Kinds::of(kind);
        self.add(own, value, Network::read(value), &mut on);
        let is_host = kind == Some(EntityKind::Domain);
        let mut host = is_host.then(|| (own, value.to_owned()));
        if let Some(kind) = kind.filter(|_| !is_host)
            && let Some(parent) = host_of(kind, value)
        {
            // A list of hosts is about the URLs on them.
            let kinds = if kind == EntityKind::Url {
                own.with(Kinds::of(Some(parent.kind)))
            } else {
                own
            };
            match Network::read(&parent.value) {
                Some(network) => self.add(kinds, &parent.value, Some(network), &mut on),
                None => host = Some((kinds, parent.value)),
            }
        }
        if let Some((kinds, host)) = host {
            let above = std::iter::once(0).chain(host.match_indices('.').map(|(at, _)| at + 1));
            for name in above.filter_map(|at| host.get(at..)) {
                self.add_set(kinds, self.hosts.get(name), &mut on);
            }
        }
        on.sort_unstable();
        on.dedup();
        let named = on
            .into_iter()
            .filter_map(|list| self.heads.get(usize::from(list)));
        let mut names: Vec<String> = named.map(|head| head.name.to_string()).collect();
        names.sort_unstable();
        names
    }

    /// The names of the lists that a node with these properties is on, by the values that it stands for. Only indicators
    /// are on lists.
    pub fn of_node(&self, node_type: NodeType, name: &str, properties: &Map<String, Value>) -> Vec<String> {
        if node_type != NodeType::Ioc || self.is_empty() {
            return Vec::new();
        }
        let indicators = stated_indicators(properties);
        if indicators.is_empty() {
            let value = properties.get("value").and_then(Value::as_str).unwrap_or(name);
            let indicator = indicator_of(value);
            return self.of(indicator.kind, &indicator.value);
        }
        let mut names: Vec<String> = indicators
            .iter()
            .flat_map(|(kind, value)| self.of(Some(*kind), value))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Names the lists that an indicator is on in its properties; whether it is on any.
    pub fn mark(&self, node: &mut KgNode) -> bool {
        let names = self.of_node(node.node_type, &node.name, &node.properties);
        let is_listed = !names.is_empty();
        if is_listed {
            node.properties.insert(PROPERTY.to_owned(), names.into());
        }
        is_listed
    }

    fn add(&self, kinds: Kinds, value: &str, network: Option<Network>, on: &mut Vec<ListId>) {
        if let Some(network) = network {
            let stretches = match network.version {
                Version::V4 => &self.stretches[0],
                Version::V6 => &self.stretches[1],
            };
            for list in stretches.lists_of(&network, &self.sets) {
                self.add_list(kinds, list, on);
            }
        }
        self.add_set(kinds, self.values.get(&builder::comparable(value)), on);
        if let Some((parts, lists)) = &self.parts {
            for part in parts.find_overlapping_iter(value) {
                let list = lists.get(part.pattern().as_usize());
                list.into_iter().for_each(|list| self.add_list(kinds, *list, on));
            }
        }
        for (patterns, list) in &self.patterns {
            if patterns.is_match(value) {
                self.add_list(kinds, *list, on);
            }
        }
    }

    fn add_set(&self, kinds: Kinds, set: Option<SetId>, on: &mut Vec<ListId>) {
        let lists = set.and_then(|set| self.sets.get(set as usize));
        for list in lists.into_iter().flat_map(|lists| lists.iter()) {
            self.add_list(kinds, *list, on);
        }
    }

    fn add_list(&self, kinds: Kinds, list: ListId, on: &mut Vec<ListId>) {
        let head = self.heads.get(usize::from(list));
        if head.is_some_and(|head| head.kinds.meets(kinds)) {
            on.push(list);
        }
    }
}

/// The warning about what is on these lists; `None` if there are none.
pub fn warning(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("{WARNING}{}", names.join("; ")))
}
