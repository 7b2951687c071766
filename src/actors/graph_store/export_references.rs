//! What the objects of an export refer to: nodes and relationships of the workspace, and objects that are kept only to be
//! referred to.

use std::collections::HashSet;

use uuid::Uuid;

use super::core::GraphCore;
use super::export::{ExportLimits, standing_objects};
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
        let session: HashSet<Uuid> = session.iter().copied().collect();
        let mut asked: HashSet<String> = HashSet::new();
        let mut held = 0;
        for _ in 0..MAX_HOPS {
            let missing = parts.missing_refs();
            let wanted: Vec<String> = missing
                .iter()
                .filter(|id| !asked.contains(*id))
                .cloned()
                .collect();
            if wanted.is_empty() {
                return Ok(held);
            }
            asked.extend(missing);
            let (markings, others): (Vec<String>, Vec<String>) = wanted
                .into_iter()
                .partition(|id| object::type_of_id(id) == Some("marking-definition"));
            let definitions = gate.definitions(markings.into_iter().collect()).await?;
            parts
                .supporting
                .extend(definitions.into_iter().map(ExportObject::of_definition));
            let (mut found, held_nodes) = self.referenced_nodes(ws, &others, &session, may_leave).await?;
            held += held_nodes;
            let known: HashSet<&str> = found
                .iter()
                .filter_map(|found| object::text(&found.raw, "id"))
                .collect();
            let others = others.iter().map(String::as_str).filter(|id| !known.contains(id));
            let supporting = self
                .graph
                .store
                .supporting_objects(ws, others, may_leave.highest, &may_leave.blocked)
                .await?;
            held += supporting.held;
            found.extend(supporting.leaving);
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

    /// The nodes and relationships among these objects, and how many are withheld.
    async fn referenced_nodes(
        &self,
        ws: Uuid,
        stix_ids: &[String],
        session: &HashSet<Uuid>,
        may_leave: &ExportLimits,
    ) -> Result<(Vec<ExportObject>, u64), DomainError> {
        let (relationships, objects): (Vec<&String>, Vec<&String>) = stix_ids
            .iter()
            .partition(|id| object::type_of_id(id) == Some("relationship"));
        let ids = self.graph.store.ids_of(ws);
        let edges = relationships.into_iter().map(|id| ids.edge(id)).collect();
        let mut found = self
            .graph
            .store
            .relationships_by_id(ws, edges, may_leave.highest, &may_leave.blocked)
            .await?;
        let objects: Vec<String> = objects.into_iter().cloned().collect();
        let mut nodes = self.nodes_of_objects(ws, objects, may_leave).await?;
        nodes.retain(|node| !session.contains(node));
        if nodes.is_empty() {
            return Ok((found, 0));
        }
        let store = &self.graph.store;
        let mut nodes = store
            .nodes_to_export(ws, &nodes, may_leave.highest, false)
            .await?;
        let is_blocked = |feeds: &[Uuid]| feeds.iter().any(|feed| may_leave.blocked.contains(feed));
        let before = nodes.leaving.len();
        nodes.leaving.retain(|stored| !is_blocked(&stored.feeds));
        let held = nodes.held.len() + before - nodes.leaving.len();
        let standing = standing_versions(ids, nodes.leaving.iter().map(|stored| &stored.node));
        let order: Vec<Uuid> = nodes.leaving.iter().map(|stored| stored.node.id).collect();
        let leaving = nodes
            .leaving
            .into_iter()
            .filter(|stored| stored.stix_evidence.is_some());
        let objects = self
            .node_objects((ws, may_leave.highest), &order, leaving.collect(), "")
            .await?;
        let mut parts = ExportParts::default();
        standing_objects(objects, &standing, &mut parts);
        found.extend(parts.nodes);
        Ok((found, held as u64))
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
