//! The nodes of a page.

use std::collections::{HashMap, HashSet};

use chrono::DateTime;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Candidate, Reader, revoke, version_time};
use crate::actors::graph_store::export_merges::MergedObjects;
use crate::domain::error::DomainError;
use crate::domain::graph::correction::CorrectedField;
use crate::domain::node::{KgNode, NodeStatus};
use crate::domain::stix::export::ExportObject;
use crate::domain::stix::object;
use crate::domain::stix::versions::{standing_versions, stix_id};
use crate::domain::taxii::addition::AddedKind;
use crate::domain::taxii::asked::VersionPlace;
use crate::domain::taxii::filter::ObjectFacts;
use crate::store::{DatedAddition, StoredNode};

/// The nodes of a page as they leave.
pub(super) struct PageNodes {
    pub(super) candidates: Vec<Candidate>,
    pub(super) merged: MergedObjects,
    pub(super) ids: Vec<Uuid>,
}

/// Which version each entry gives.
#[derive(Default)]
struct ChosenVersions<'e> {
    /// The newest one, by node.
    newest: HashMap<Uuid, &'e DatedAddition>,
    /// Others, with the original.
    older: Vec<(&'e DatedAddition, Uuid)>,
}

impl Reader<'_> {
    /// The nodes of these entries: what stands for others has their names.
    pub(super) async fn nodes(
        &mut self,
        entries: &[DatedAddition],
        held: &mut u64,
    ) -> Result<PageNodes, DomainError> {
        let merges = &self.limits.merges;
        let named = entries
            .iter()
            .filter(|entry| entry.addition.kind == AddedKind::Node);
        let named: Vec<&DatedAddition> = named
            .filter(|entry| merges.standing(entry.addition.id) == entry.addition.id)
            .collect();
        let ids: Vec<Uuid> = named.iter().map(|entry| entry.addition.id).collect();
        let ids = merges.with_members(&ids);
        let stored = self.leaving_nodes(&named, &ids, held).await?;
        let chosen = self.choose(named, &stored).await?;
        let firsts = self.first_versions(&chosen.newest, &stored).await?;
        let mut candidates = self.older_versions(chosen.older, &stored).await?;
        let dates: HashMap<Uuid, i64> = chosen
            .newest
            .iter()
            .map(|(node, entry)| (*node, entry.date))
            .collect();
        let newest = self
            .newest_versions(&dates, (&ids, &firsts), stored, held)
            .await?;
        candidates.extend(newest.candidates);
        Ok(PageNodes { candidates, ..newest })
    }

    /// Those of these nodes that may leave; the entries of others are counted.
    async fn leaving_nodes(
        &self,
        named: &[&DatedAddition],
        ids: &[Uuid],
        held: &mut u64,
    ) -> Result<HashMap<Uuid, StoredNode>, DomainError> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let store = &self.core.graph.store;
        let found = store
            .nodes_to_export(self.workspace.id, ids, self.seen(), true)
            .await?;
        let (leaving, blocked): (Vec<_>, Vec<_>) = found
            .leaving
            .into_iter()
            .partition(|stored| stored.node.tlp <= self.limits.highest && !self.is_blocked(&stored.feeds));
        let blocked = blocked
            .iter()
            .filter(|stored| stored.node.status == NodeStatus::Active);
        let withheld = found.held.iter().filter(|withheld| withheld.is_active);
        let withheld: HashSet<(Uuid, u64)> = withheld
            .map(|withheld| (withheld.id, withheld.rev))
            .chain(blocked.map(|stored| (stored.node.id, stored.rev)))
            .collect();
        let is_withheld = |entry: &&&DatedAddition| {
            let rev = u64::try_from(entry.addition.rev).unwrap_or(0);
            withheld.contains(&(entry.addition.id, rev))
        };
        *held += named.iter().filter(is_withheld).count() as u64;
        Ok(leaving
            .into_iter()
            .map(|stored| (stored.node.id, stored))
            .collect())
    }

    async fn choose<'e>(
        &self,
        named: Vec<&'e DatedAddition>,
        stored: &HashMap<Uuid, StoredNode>,
    ) -> Result<ChosenVersions<'e>, DomainError> {
        let mut chosen = ChosenVersions::default();
        for entry in named {
            let Some(node) = stored.get(&entry.addition.id) else {
                continue;
            };
            match self.version_of_entry(entry, node).await? {
                Some(original) if Some(original) != node.stix_evidence => {
                    chosen.older.push((entry, original))
                }
                Some(_) => drop(chosen.newest.insert(node.node.id, entry)),
                None if node.stix_evidence.is_none() && self.is_current(entry, node) => {
                    chosen.newest.insert(node.node.id, entry);
                }
                None => {}
            }
        }
        Ok(chosen)
    }

    /// The objects of nodes that have a date, as they are now.
    async fn newest_versions(
        &mut self,
        dates: &HashMap<Uuid, i64>,
        (ids, firsts): (&[Uuid], &HashSet<Uuid>),
        mut stored: HashMap<Uuid, StoredNode>,
        held: &mut u64,
    ) -> Result<PageNodes, DomainError> {
        let merges = &self.limits.merges;
        stored.retain(|id, stored| {
            let is_active = stored.node.status == NodeStatus::Active;
            dates.contains_key(id) || is_active && dates.contains_key(&merges.standing(*id))
        });
        let shown: Vec<&KgNode> = stored.values().map(|stored| &stored.node).collect();
        let standing = self.standing(&shown).await?;
        let nodes: HashMap<Uuid, StoredNode> = stored.clone();
        let leaving = ids.iter().filter_map(|id| stored.remove(id)).collect();
        let objects = self
            .core
            .node_objects(
                (self.workspace.id, self.limits.highest),
                ids,
                leaving,
                &self.author_id,
            )
            .await?;
        let mut sorted = self.gate.sort(objects).await?;
        *held += sorted.held;
        let merged = MergedObjects::take_from(&mut sorted.leaving, &self.limits.merges);
        let (mut candidates, mut given) = (Vec::new(), Vec::new());
        for (id, mut object) in sorted.leaving {
            let (Some(date), Some(stored)) = (dates.get(&id), nodes.get(&id)) else {
                continue;
            };
            if standing.contains_key(&id) || !self.tells_status(stored, &mut object) {
                continue;
            }
            let place = VersionPlace {
                is_first: firsts.contains(&id),
                is_last: true,
                // What has no versions is told by its date.
                at: version_time(&object).or_else(|| DateTime::from_timestamp_micros(*date)),
            };
            if self.asked.versions.admits(place) && self.admits_node(stored, &object) {
                candidates.push(Candidate { date: *date, object });
                given.push(id);
            }
        }
        Ok(PageNodes {
            candidates,
            merged,
            ids: given,
        })
    }

    /// Those of these nodes whose newest version is the first one, too, if that matters.
    async fn first_versions(
        &self,
        newest: &HashMap<Uuid, &DatedAddition>,
        stored: &HashMap<Uuid, StoredNode>,
    ) -> Result<HashSet<Uuid>, DomainError> {
        let mut firsts = HashSet::new();
        if !self.asked.versions.first {
            return Ok(firsts);
        }
        let (store, ws) = (&self.core.graph.store, self.workspace.id);
        for node in newest.keys().filter_map(|id| stored.get(id)) {
            let evidence = &node.node.linked_evidence_ids;
            let versions = store.object_versions(ws, evidence, self.limits.highest).await?;
            let first = versions.first().map(|first| first.original);
            if first.is_none() || first == node.stix_evidence || node.stix_evidence.is_none() {
                firsts.insert(node.node.id);
            }
        }
        Ok(firsts)
    }

    /// Has the object of a rejected node say so, unless its source does; false where it can't, for those who may not see what
    /// is rejected.
    fn tells_status(&self, stored: &StoredNode, object: &mut ExportObject) -> bool {
        let is_set = stored
            .correction
            .as_ref()
            .is_some_and(|set| set.has(CorrectedField::Status));
        let is_stated = stored.stix_evidence.is_some() && !is_set;
        let is_active = stored.node.status == NodeStatus::Active;
        is_active || is_stated || revoke(object) || self.limits.include_rejected
    }

    fn admits_node(&self, stored: &StoredNode, object: &ExportObject) -> bool {
        let stix_type = object::text(&object.raw, "type").unwrap_or_default();
        let facts = ObjectFacts {
            stix_type,
            tlp: object.tlp,
            confidence: stored.node.confidence,
            feeds: &stored.feeds,
            nodes: &[(stored.node.id, &stored.node.source)],
        };
        stix_type == "identity" && self.asked.admits_type(stix_type) || self.admits(&facts)
    }

    /// Which of these nodes other versions of their objects stand for, that may leave to the reader, too.
    async fn standing(&self, nodes: &[&KgNode]) -> Result<HashMap<Uuid, Uuid>, DomainError> {
        let ws = self.workspace.id;
        let stix_ids: Vec<String> = nodes
            .iter()
            .copied()
            .filter_map(stix_id)
            .map(str::to_owned)
            .collect();
        let mut others = self
            .core
            .nodes_named(ws, stix_ids, (self.limits.highest, self.limits.include_rejected))
            .await?;
        let own: HashSet<Uuid> = nodes.iter().map(|node| node.id).collect();
        others.retain(|id| !own.contains(id));
        let store = &self.core.graph.store;
        let others = store
            .nodes_by_id(ws, &others, self.limits.highest, self.limits.include_rejected)
            .await?;
        let all = nodes
            .iter()
            .copied()
            .chain(others.iter().map(|stored| &stored.node));
        Ok(standing_versions(store.ids_of(ws), all))
    }

    /// The original of the version that an entry gives, if it is asked for.
    async fn version_of_entry(
        &self,
        entry: &DatedAddition,
        node: &StoredNode,
    ) -> Result<Option<Uuid>, DomainError> {
        let is_current = self.is_current(entry, node);
        let original = match is_current {
            true => node.stix_evidence,
            false => entry
                .addition
                .original
                .filter(|original| Some(*original) != node.stix_evidence),
        };
        let asked = &self.asked.versions;
        // The newest version is judged once its object is made (`newest_versions`): it may have been changed here.
        if is_current || asked.is_last_only() || original.is_none() {
            return Ok(original.filter(|_| is_current));
        }
        let evidence = &node.node.linked_evidence_ids;
        let store = &self.core.graph.store;
        let versions = store
            .object_versions(self.workspace.id, evidence, self.limits.highest)
            .await?;
        let this = versions.iter().find(|version| Some(version.original) == original);
        let place = VersionPlace {
            is_first: versions.first().map(|first| first.original) == original,
            is_last: false,
            // What has no versions is told by its date.
            at: this
                .and_then(|version| version.modified)
                .or_else(|| DateTime::from_timestamp_micros(entry.date)),
        };
        Ok(original.filter(|_| asked.admits(place)))
    }

    /// Versions that others have followed, as they were received.
    async fn older_versions(
        &mut self,
        older: Vec<(&DatedAddition, Uuid)>,
        stored: &HashMap<Uuid, StoredNode>,
    ) -> Result<Vec<Candidate>, DomainError> {
        let originals: Vec<Uuid> = older.iter().map(|(_, original)| *original).collect();
        let found = self
            .core
            .graph
            .store
            .originals(self.workspace.id, &originals, self.limits.highest)
            .await?;
        let mut found: HashMap<Uuid, Map<String, Value>> = found.into_iter().collect();
        let mut objects = Vec::new();
        for (entry, original) in older {
            let Some(stored) = stored.get(&entry.addition.id) else {
                continue;
            };
            let node = &stored.node;
            let is_valid = node.status == NodeStatus::Active || self.limits.include_rejected;
            // Evidence that was rejected by hand is none of its node's any more.
            if !is_valid || !node.linked_evidence_ids.contains(&original) {
                continue;
            }
            if let Some(raw) = found.remove(&original) {
                let object = ExportObject {
                    raw,
                    tlp: node.tlp,
                    confidence: None,
                    changed_at: None,
                };
                if self.admits_node(stored, &object) {
                    objects.push((entry.date, object));
                }
            }
        }
        let sorted = self.gate.sort(objects).await?;
        let leaving = sorted.leaving.into_iter();
        Ok(leaving.map(|(date, object)| Candidate { date, object }).collect())
    }

    /// Whether an entry gives its node as it is now. What is rejected is told to those who have seen it before, and otherwise
    /// given to those who may see what is rejected.
    fn is_current(&self, entry: &DatedAddition, node: &StoredNode) -> bool {
        let is_last = i64::try_from(node.rev) == Ok(entry.addition.rev);
        match node.node.status == NodeStatus::Active {
            true => is_last && !entry.addition.is_withdrawn,
            false => entry.addition.is_withdrawn || is_last && self.limits.include_rejected,
        }
    }
}
