//! What the objects of an export refer to: nodes and relationships of the workspace, and objects that are kept only to be
//! referred to.

use std::collections::{BTreeSet, HashSet};

use uuid::Uuid;

use super::core::GraphCore;
use super::export::{ExportLimits, one_per_id, standing_objects};
use super::export_gate::Gate;
use super::export_merges::MergedObjects;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::graph::place::Place;
use crate::domain::stix::export::{ExportObject, ExportParts};
use crate::domain::stix::object;
use crate::domain::stix::versions::standing_versions;
use crate::domain::tlp::Tlp;
use crate::search::{Filter, KeyKind};
use crate::store::EdgeRecord;

/// How many steps references are followed, and up to how many objects. What lies beyond stays, and so do the references to
/// it.
pub(super) const MAX_HOPS: usize = 256;
const MAX_SUPPORTING: usize = 100_000;

impl GraphCore {
    /// Adds the objects that the parts refer to, transitively, as far as the caller may see and export them; returns
    /// how many are withheld. References are followed this many steps at most.
    pub(super) async fn add_supporting(
        &self,
        gate: &mut Gate<'_>,
        ws: Uuid,
        (parts, session, merged): (&mut ExportParts, &[Uuid], &mut MergedObjects),
        (may_leave, hops): (&ExportLimits, usize),
    ) -> Result<u64, DomainError> {
        // What of the session does not leave is counted already.
        let mut nodes: HashSet<Uuid> = session.iter().copied().collect();
        let mut asked: HashSet<String> = HashSet::new();
        let mut held = 0;
        for _ in 0..hops {
            let missing = parts.missing_refs();
            let wanted: Vec<String> = missing
                .iter()
                .filter(|id| !asked.contains(*id))
                .cloned()
                .collect();
            let mut found;
            if wanted.is_empty() {
                found = self
                    .relationships_between(ws, &missing, &nodes, may_leave)
                    .await?;
                if found.is_empty() {
                    break;
                }
            } else {
                asked.extend(wanted.iter().cloned());
                let is = |kind| move |id: &String| object::type_of_id(id) == Some(kind);
                let (markings, others): (Vec<_>, Vec<_>) =
                    wanted.into_iter().partition(is("marking-definition"));
                let (relationships, others): (Vec<_>, Vec<_>) =
                    others.into_iter().partition(is("relationship"));
                let definitions = gate.definitions(markings.into_iter().collect()).await?;
                let definitions = definitions.into_iter().map(ExportObject::of_definition);
                parts.supporting.extend(definitions);
                found = self.relationships_named(ws, &relationships, may_leave).await?;
                let (objects, withheld) = self
                    .referenced_objects(ws, (&others, merged), &mut nodes, may_leave)
                    .await?;
                found.extend(objects);
                held += withheld;
            }
            let sorted = gate
                .sort(found.into_iter().map(|object| ((), object)).collect())
                .await?;
            held += sorted.held;
            parts.supporting.extend(sorted.into_objects());
            merged.rename_in_all(parts);
            if parts.supporting.len() >= MAX_SUPPORTING {
                break;
            }
        }
        Ok(held)
    }

    /// These objects, which are neither relationships nor markings, and how many are withheld.
    async fn referenced_objects(
        &self,
        ws: Uuid,
        (stix_ids, merged): (&[String], &mut MergedObjects),
        nodes: &mut HashSet<Uuid>,
        may_leave: &ExportLimits,
    ) -> Result<(Vec<ExportObject>, u64), DomainError> {
        let (mut found, held) = self
            .referenced_nodes(ws, (stix_ids, merged), nodes, may_leave)
            .await?;
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
        (stix_ids, merged): (&[String], &mut MergedObjects),
        known: &mut HashSet<Uuid>,
        may_leave: &ExportLimits,
    ) -> Result<(Vec<ExportObject>, u64), DomainError> {
        let seen = (may_leave.highest, may_leave.include_rejected);
        let mut nodes = self.nodes_named(ws, stix_ids.to_vec(), seen).await?;
        nodes.retain(|node| !known.contains(node));
        let merges = &may_leave.merges;
        nodes = merges.with_members(&merges.all_standing(nodes));
        if nodes.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let store = &self.graph.store;
        let mut nodes = store
            .nodes_to_export(ws, &nodes, may_leave.highest, may_leave.include_rejected)
            .await?;
        let is_blocked = |feeds: &[Uuid]| feeds.iter().any(|feed| may_leave.blocked.contains(feed));
        let before = nodes.leaving.len();
        nodes.leaving.retain(|stored| !is_blocked(&stored.feeds));
        let held = nodes.held.len() + before - nodes.leaving.len();
        nodes.leaving.retain(|stored| stored.stix_evidence.is_some());
        let standing = standing_versions(store.ids_of(ws), nodes.leaving.iter().map(|stored| &stored.node));
        let order: Vec<Uuid> = nodes.leaving.iter().map(|stored| stored.node.id).collect();
        known.extend(order.iter().copied());
        let mut objects = self
            .node_objects((ws, may_leave.highest), &order, nodes.leaving, "")
            .await?;
        merged.extend(MergedObjects::take_from(&mut objects, merges));
        let mut parts = ExportParts::default();
        standing_objects(objects, &standing, &mut parts);
        Ok((parts.nodes, held as u64))
    }

    /// These relationships, whichever row the version stands in that the caller sees: mostly the first one, else one beside
    /// it.
    async fn relationships_named(
        &self,
        ws: Uuid,
        stix_ids: &[String],
        may_leave: &ExportLimits,
    ) -> Result<Vec<ExportObject>, DomainError> {
        let store = &self.graph.store;
        let ids = store.ids_of(ws);
        let (highest, blocked) = (may_leave.highest, &may_leave.blocked);
        let rows = stix_ids.iter().map(|id| ids.edge(id)).collect();
        let mut found = store.relationships_by_id(ws, rows, highest, blocked).await?;
        let known: HashSet<&str> = found.iter().filter_map(EdgeRecord::stix_id).collect();
        let others = stix_ids.iter().filter(|id| !known.contains(id.as_str()));
        let rows = others.flat_map(|id| Place::beside().map(|place| ids.edge(&place.name(id))));
        let beside = store
            .relationships_by_id(ws, rows.collect(), highest, blocked)
            .await?;
        found.extend(beside);
        Ok(one_per_id(found.into_iter().filter_map(exported)))
    }

    /// Those of these relationships that join two of the nodes. So those are found, too, whose nodes stand beside others.
    async fn relationships_between(
        &self,
        ws: Uuid,
        stix_ids: &BTreeSet<String>,
        nodes: &HashSet<Uuid>,
        may_leave: &ExportLimits,
    ) -> Result<Vec<ExportObject>, DomainError> {
        if !stix_ids
            .iter()
            .any(|id| object::type_of_id(id) == Some("relationship"))
        {
            return Ok(Vec::new());
        }
        let ends: Vec<Uuid> = nodes.iter().copied().collect();
        let store = &self.graph.store;
        let edges = store
            .relationships_among(ws, &ends, may_leave.highest, &may_leave.blocked)
            .await?;
        let is_named = |edge: &EdgeRecord| edge.stix_id().is_some_and(|id| stix_ids.contains(id));
        let named = edges.leaving.into_iter().filter(is_named);
        Ok(one_per_id(named.filter_map(exported)))
    }

    /// The nodes of these STIX objects, all versions.
    pub(super) async fn nodes_named(
        &self,
        ws: Uuid,
        stix_ids: Vec<String>,
        (highest, include_rejected): (Tlp, bool),
    ) -> Result<Vec<Uuid>, DomainError> {
        if stix_ids.is_empty() {
            return Ok(Vec::new());
        }
        let target = self.graph.index_of(ws).await?;
        let filter = Filter {
            include_rejected,
            ..Filter::up_to(highest).of_all()
        };
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

/// A relationship that came in as STIX.
fn exported(edge: EdgeRecord) -> Option<ExportObject> {
    Some(ExportObject {
        raw: edge.raw?,
        tlp: edge.tlp,
        confidence: Some(edge.confidence),
        changed_at: edge.changed_at,
    })
}
