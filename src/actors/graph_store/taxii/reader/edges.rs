//! The relationships of a page.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::{Candidate, Reader, revoke, version_time};
use crate::actors::graph_store::export::{relationship, standing_objects};
use crate::actors::graph_store::export_merges::MergedObjects;
use crate::domain::error::DomainError;
use crate::domain::stix::export::{ExportObject, ExportParts};
use crate::domain::stix::versions::standing_versions;
use crate::domain::taxii::addition::AddedKind;
use crate::domain::taxii::filter::ObjectFacts;
use crate::domain::taxii::view::Contents;
use crate::store::{DatedAddition, ExportableEdge};

impl Reader<'_> {
    /// The relationships of these entries, and the objects that they join where those are not STIX.
    pub(super) async fn edges(
        &mut self,
        entries: &[DatedAddition],
        held: &mut u64,
    ) -> Result<(Vec<Candidate>, Vec<ExportObject>), DomainError> {
        let ws = self.workspace.id;
        let named = entries
            .iter()
            .filter(|entry| entry.addition.kind == AddedKind::Edge);
        let named: HashMap<Uuid, &DatedAddition> = named.map(|entry| (entry.addition.id, entry)).collect();
        let ids: Vec<Uuid> = named.keys().copied().collect();
        let store = &self.core.graph.store;
        let mut found = store.edges_to_export(ws, &ids, self.seen()).await?;
        found.retain(|found| {
            named
                .get(&found.edge.id)
                .is_some_and(|entry| match entry.addition.is_withdrawn {
                    true => !found.is_active,
                    false => found.is_active && found.rev == entry.addition.rev,
                })
        });
        let (found, withheld): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| {
            !found.is_held && found.edge.tlp <= self.limits.highest && !self.is_blocked(&found.feeds)
        });
        *held += self.between_seen(&withheld).await?;
        let ends: Vec<Uuid> = found
            .iter()
            .flat_map(|found| [found.edge.source, found.edge.target])
            .collect();
        let made_here = found.iter().filter(|found| found.edge.raw.is_none());
        let joined: Vec<Uuid> = made_here
            .flat_map(|found| [found.edge.source, found.edge.target])
            .collect();
        let (stix_ids, joined) = self.joined_objects(&joined).await?;
        let sources = self.sources_of(&ends).await?;
        let mut objects = Vec::new();
        for found in found {
            let Some(entry) = named.get(&found.edge.id) else {
                continue;
            };
            if self.admits_edge(&found, &sources) {
                let object = self.edge_object(found, &stix_ids);
                let object = object.filter(|object| self.asked.versions.admits_only(version_time(object)));
                objects.extend(object.map(|object| (entry.date, object)));
            }
        }
        let sorted = self.gate.sort(objects).await?;
        *held += sorted.held;
        let leaving = sorted.leaving.into_iter();
        let candidates = leaving.map(|(date, object)| Candidate { date, object }).collect();
        Ok((candidates, joined))
    }

    /// How many of these join nodes that the reader sees.
    async fn between_seen(&self, edges: &[ExportableEdge]) -> Result<u64, DomainError> {
        let ends = edges
            .iter()
            .flat_map(|found| [found.edge.source, found.edge.target]);
        let ends: Vec<Uuid> = ends.collect();
        let store = &self.core.graph.store;
        let seen = store.node_markings(self.workspace.id, &ends, self.seen()).await?;
        let seen = seen.iter().filter(|node| node.is_active).map(|node| node.id);
        let seen: HashSet<Uuid> = seen.collect();
        let is_seen =
            |found: &&ExportableEdge| seen.contains(&found.edge.source) && seen.contains(&found.edge.target);
        Ok(edges.iter().filter(is_seen).count() as u64)
    }

    fn admits_edge(&self, found: &ExportableEdge, sources: &HashMap<Uuid, String>) -> bool {
        let ends = [found.edge.source, found.edge.target];
        let facts = ObjectFacts {
            stix_type: "relationship",
            tlp: found.edge.tlp,
            confidence: found.edge.confidence,
            feeds: &found.feeds,
            nodes: &ends.map(|end| (end, sources.get(&end).map_or("", String::as_str))),
        };
        self.admits(&facts)
    }

    /// The object of a relationship: its original, or one that is made of what is stored.
    fn edge_object(&self, found: ExportableEdge, stix_ids: &HashMap<Uuid, String>) -> Option<ExportObject> {
        let ExportableEdge {
            mut edge, is_active, ..
        } = found;
        let merges = &self.limits.merges;
        let merged = [edge.source, edge.target].map(|end| merges.changed_at(end));
        let merged = merged.into_iter().flatten().max();
        let mut object = match edge.raw.take() {
            Some(raw) => ExportObject {
                raw,
                tlp: edge.tlp,
                confidence: Some(edge.confidence),
                changed_at: edge.changed_at,
            },
            None => relationship(edge, stix_ids, &self.author_id)?,
        };
        object.changed_at = object.changed_at.max(merged);
        (is_active || revoke(&mut object)).then_some(object)
    }

    /// The objects of nodes that relationships join, as far as they leave, and the ids of those objects.
    async fn joined_objects(
        &mut self,
        nodes: &[Uuid],
    ) -> Result<(HashMap<Uuid, String>, Vec<ExportObject>), DomainError> {
        let ws = self.workspace.id;
        let merges = &self.limits.merges;
        let ids = merges.with_members(&merges.all_standing(nodes.iter().copied()));
        if ids.is_empty() {
            return Ok((HashMap::new(), Vec::new()));
        }
        let store = &self.core.graph.store;
        let found = store
            .nodes_to_export(ws, &ids, self.limits.highest, self.limits.include_rejected)
            .await?;
        let mut leaving = found.leaving;
        leaving.retain(|stored| !self.is_blocked(&stored.feeds));
        let standing = standing_versions(store.ids_of(ws), leaving.iter().map(|stored| &stored.node));
        let objects = self
            .core
            .node_objects((ws, self.limits.highest), &ids, leaving, &self.author_id)
            .await?;
        let mut sorted = self.gate.sort(objects).await?;
        let merged = MergedObjects::take_from(&mut sorted.leaving, &self.limits.merges);
        let mut parts = ExportParts::default();
        let mut stix_ids = standing_objects(sorted.leaving, &standing, &mut parts);
        merged.add_ids(&mut stix_ids);
        Ok((stix_ids, parts.nodes))
    }

    /// The sources of nodes, if the collection asks for them.
    async fn sources_of(&self, nodes: &[Uuid]) -> Result<HashMap<Uuid, String>, DomainError> {
        let is_asked = matches!(self.contents, Contents::Filtered(filter) if !filter.sources.is_empty());
        if !is_asked {
            return Ok(HashMap::new());
        }
        let store = &self.core.graph.store;
        let found = store
            .nodes_by_id(
                self.workspace.id,
                nodes,
                self.seen(),
                self.limits.include_rejected,
            )
            .await?;
        Ok(found
            .into_iter()
            .map(|stored| (stored.node.id, stored.node.source))
            .collect())
    }
}
