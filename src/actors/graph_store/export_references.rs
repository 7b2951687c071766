//! What the objects of an export refer to: nodes and relationships of the workspace, and objects that are kept only to be
//! referred to.

use std::collections::HashSet;

use uuid::Uuid;

use super::core::GraphCore;
use super::export::{ExportLimits, one_per_id, standing_objects};
use super::export_gate::Gate;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::stix::export::{ExportObject, ExportParts};
use crate::domain::stix::object;
use crate::domain::stix::versions::standing_versions;
use crate::search::{Filter, KeyKind};

/// Maximum depth to which references are followed; no real bundle goes deeper.
const MAX_HOPS: usize = 32;
const MAX_SUPPORTING: usize = 10_000;

impl GraphCore {
    /// Adds the objects that the parts refer to, transitively, as far as the caller may see and export them; returns
    /// how many are withheld.
    pub(super) async fn add_supporting(
        &self,
        gate: &mut Gate<'_>,
        ws: Uuid,
        (parts, session): (&mut ExportParts, &[Uuid]),
        may_leave: &ExportLimits,
    ) -> Result<u64, DomainError> {
        // What of the session does not leave is counted already.
        let mut nodes: HashSet<Uuid> = session.iter().copied().collect();
        let mut asked: HashSet<String> = HashSet::new();
        let mut held = 0;
        for _ in 0..MAX_HOPS {
            let missing = parts.missing_refs();
            let is_relationship = |id: &&String| object::type_of_id(id) == Some("relationship");
            let (relationships, others): (Vec<&String>, Vec<&String>) =
                missing.iter().partition(is_relationship);
            let wanted: Vec<String> = others
                .into_iter()
                .filter(|id| !asked.contains(*id))
                .cloned()
                .collect();
            asked.extend(wanted.iter().cloned());
            let is_done = wanted.is_empty();
            let (markings, others): (Vec<String>, Vec<String>) = wanted
                .into_iter()
                .partition(|id| object::type_of_id(id) == Some("marking-definition"));
            let definitions = gate.definitions(markings.into_iter().collect()).await?;
            let definitions = definitions.into_iter().map(ExportObject::of_definition);
            parts.supporting.extend(definitions);
            let (mut found, held_objects) = self
                .referenced_objects(ws, &others, &mut nodes, may_leave)
                .await?;
            held += held_objects;
            if !relationships.is_empty() {
                found.extend(
                    self.relationships_named(ws, &relationships, &nodes, may_leave)
                        .await?,
                );
            }
            if is_done && found.is_empty() {
                return Ok(held);
            }
            let sorted = gate
                .sort(found.into_iter().map(|object| ((), object)).collect())
                .await?;
            held += sorted.held;
            parts.supporting.extend(sorted.into_objects());
            if parts.supporting.len() > MAX_SUPPORTING {
                break;
            }
        }
        let details = format!("references reach further than {MAX_HOPS} steps or {MAX_SUPPORTING} objects");
        Err(DomainError::InvalidBundle { details })
    }

    /// These objects, which are neither relationships nor markings, and how many are withheld.
    async fn referenced_objects(
        &self,
        ws: Uuid,
        stix_ids: &[String],
        nodes: &mut HashSet<Uuid>,
        may_leave: &ExportLimits,
    ) -> Result<(Vec<ExportObject>, u64), DomainError> {
        let (mut found, held) = self.referenced_nodes(ws, stix_ids, nodes, may_leave).await?;
        let known: HashSet<&str> = found
            .iter()
            .filter_map(|found| object::text(&found.raw, "id"))
            .collect();
        let others = stix_ids
            .iter()
            .map(String::as_str)
            .filter(|id| !known.contains(id));
        let supporting = self
            .graph
            .store
            .supporting_objects(ws, others, may_leave.highest, &may_leave.blocked)
            .await?;
        found.extend(supporting.leaving);
        Ok((found, held + supporting.held))
    }

    /// The nodes of these objects beside those that are known, to which they are added, and how many are withheld.
    async fn referenced_nodes(
        &self,
        ws: Uuid,
        stix_ids: &[String],
        known: &mut HashSet<Uuid>,
        may_leave: &ExportLimits,
    ) -> Result<(Vec<ExportObject>, u64), DomainError> {
        let mut nodes = self.nodes_of_objects(ws, stix_ids.to_vec(), may_leave).await?;
        nodes.retain(|node| !known.contains(node));
        if nodes.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let store = &self.graph.store;
        let mut nodes = store
            .nodes_to_export(ws, &nodes, may_leave.highest, false)
            .await?;
        let is_blocked = |feeds: &[Uuid]| feeds.iter().any(|feed| may_leave.blocked.contains(feed));
        let before = nodes.leaving.len();
        nodes.leaving.retain(|stored| !is_blocked(&stored.feeds));
        let held = nodes.held.len() + before - nodes.leaving.len();
        nodes.leaving.retain(|stored| stored.stix_evidence.is_some());
        let standing = standing_versions(store.ids_of(ws), nodes.leaving.iter().map(|stored| &stored.node));
        let order: Vec<Uuid> = nodes.leaving.iter().map(|stored| stored.node.id).collect();
        known.extend(order.iter().copied());
        let objects = self
            .node_objects((ws, may_leave.highest), &order, nodes.leaving, "")
            .await?;
        let mut parts = ExportParts::default();
        standing_objects(objects, &standing, &mut parts);
        Ok((parts.nodes, held as u64))
    }

    /// Those of these relationships that join two of the nodes. They are looked for from their ends, so that it does not
    /// matter in which row the version stands that the caller sees.
    async fn relationships_named(
        &self,
        ws: Uuid,
        stix_ids: &[&String],
        nodes: &HashSet<Uuid>,
        may_leave: &ExportLimits,
    ) -> Result<Vec<ExportObject>, DomainError> {
        let ends: Vec<Uuid> = nodes.iter().copied().collect();
        let edges = self
            .graph
            .store
            .relationships_among(ws, &ends, may_leave.highest, &may_leave.blocked)
            .await?;
        let named = edges.leaving.into_iter().filter_map(|edge| {
            let raw = edge.raw?;
            let is_named =
                object::text(&raw, "id").is_some_and(|id| stix_ids.iter().any(|known| *known == id));
            is_named.then_some(ExportObject {
                raw,
                tlp: edge.tlp,
                confidence: Some(edge.confidence),
                changed_at: edge.changed_at,
            })
        });
        Ok(one_per_id(named))
    }

    /// The nodes of these STIX objects, all versions.
    async fn nodes_of_objects(
        &self,
        ws: Uuid,
        stix_ids: Vec<String>,
        may_leave: &ExportLimits,
    ) -> Result<Vec<Uuid>, DomainError> {
        if stix_ids.is_empty() {
            return Ok(Vec::new());
        }
        let target = self.graph.index_of(ws).await?;
        let filter = Filter::up_to(may_leave.highest).of_all();
        let found = blocking(move || {
            let keys: Vec<&str> = stix_ids.iter().map(String::as_str).collect();
            target.lookup(&keys, &filter).map_err(index_error)
        })
        .await?;
        let named = found.into_iter().filter(|hit| hit.kind == KeyKind::Identifier);
        let mut nodes: Vec<Uuid> = named.map(|hit| hit.node_id).collect();
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }
}
