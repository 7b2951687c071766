//! Writing the relationships of a bundle.

use surrealdb::types::RecordId;
use uuid::Uuid;

use super::super::rows::{EdgeRow, HeldRow, key, record};
use super::carriers::{HeldRise, MarkedObject, RepeatedVersion};
use super::feeds::{UnrestrictedRows, unite_feeds};
use super::known::{End, ExistingEdge, OriginalRow};
use super::nodes::is_silent;
use super::targets::Target;
use super::{Ingest, NOT_NEWER};
use crate::domain::graph::later_than;
use crate::domain::graph::merge::silent_version;
use crate::domain::stix::ingest::StixRelationship;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::size;
use crate::store::connection::tx::yield_regularly;
use crate::store::graph::write::EdgeRise;

/// What the relationships of a chunk write.
#[derive(Default)]
struct EdgeWrites<'p> {
    rows: Vec<EdgeRow>,
    /// Rows that give way to newer ones.
    replaced: Vec<RecordId>,
    held: Vec<HeldRow>,
    unrestricted: UnrestrictedRows,
    rises: Vec<EdgeRise>,
    held_rises: Vec<HeldRise>,
    repeated: Vec<(RecordId, RepeatedVersion<'p>)>,
}

impl Ingest<'_> {
    pub(super) async fn edges(
        &mut self,
        edges: &[StixRelationship],
        default_tlp: Tlp,
    ) -> Result<(), StoreError> {
        let ends = self.ends(edges).await?;
        self.graph
            .tell_ranks(ends.values().map(|end| (end.node, end.rank)));
        let targets = self.edge_targets(edges, &ends).await?;
        let mut writes = EdgeWrites::default();
        let mut absent = Vec::new();
        for (place, (edge, target)) in edges.iter().zip(targets).enumerate() {
            yield_regularly(place).await;
            let joined = ends
                .get(edge.source_ref.as_str())
                .zip(ends.get(edge.target_ref.as_str()));
            let are_known = joined.is_some_and(|(source, target)| source.is_known && target.is_known);
            if !are_known {
                let (reason, waits) = self.reason_to_wait(edge).await?;
                if !edge.is_reference() {
                    let report = &mut self.done.skipped;
                    report.add_invalid("relationship", &edge.stix_id, reason.into());
                    self.done.unjoined.insert(edge.stix_id.clone());
                    self.done.waiting += u64::from(waits);
                }
                // Of an object that the writer does not see, a version that it sees may come.
                absent.extend(waits.then_some(edge));
            }
            let (Some((source, end)), Some(target)) = (joined, target) else {
                continue;
            };
            let created = u64::from(are_known);
            match target {
                Target::Nowhere => {
                    self.count_edge(edge, created);
                    if !edge.held_by.is_empty() {
                        self.done.held.note(&edge.stix_id, edge.tlp, &edge.held_by);
                    }
                }
                Target::Create(id) => {
                    self.count_edge(edge, created);
                    let row = self.relation(edge, id, (source, end), edge.tlp, default_tlp, &mut writes)?;
                    writes.rows.push(row);
                }
                Target::Update {
                    row,
                    level,
                    is_unseen,
                } => {
                    if is_unseen {
                        self.count_edge(edge, created);
                    } else {
                        self.count_newer_edge(edge, created);
                    }
                    if are_known && !is_unseen {
                        let is_silent = edge.stated.is_none() && edge.held_by.is_empty();
                        let version = silent_version(row.level()?, edge.tlp, level, is_silent);
                        self.done.silent.note(&edge.stix_id, version);
                    }
                    self.newer_edge(edge, row, (source, end), level, default_tlp, &mut writes)?;
                }
                Target::Rise {
                    row,
                    level,
                    if_silent,
                } => {
                    note_repeated(edge, &row, are_known, &mut writes);
                    if !if_silent || self.is_edge_silent(&row.id).await? {
                        self.raise_edge(edge, row, (level, created), &mut writes)?;
                    } else {
                        self.skip_edge(edge, row, are_known, &mut writes);
                    }
                }
                Target::Known(row) => {
                    note_repeated(edge, &row, are_known, &mut writes);
                    self.skip_edge(edge, row, are_known, &mut writes);
                }
            }
        }
        self.write_edges(writes).await?;
        self.wait(absent, &ends, default_tlp).await
    }

    /// See `raise_node`.
    fn raise_edge(
        &mut self,
        edge: &StixRelationship,
        known: ExistingEdge,
        (level, updated): (Tlp, u64),
        writes: &mut EdgeWrites<'_>,
    ) -> Result<(), StoreError> {
        self.count_newer_edge(edge, updated);
        self.tx.charge(size::of_edge(edge))?;
        let left = known.changed_at.max(known.modified);
        let held = self.held_rises(&known.id, known.held_by.as_deref(), level)?;
        writes.held_rises.extend(held);
        writes.rises.push(EdgeRise {
            id: known.id,
            tlp_rank: i64::from(level.rank()),
            changed_at: later_than(left, self.rows.now),
            rev: self.rows.rev,
        });
        Ok(())
    }

    /// See `skip_node`.
    fn skip_edge(
        &mut self,
        edge: &StixRelationship,
        known: ExistingEdge,
        are_known: bool,
        writes: &mut EdgeWrites<'_>,
    ) {
        if are_known && !edge.is_reference() {
            match edge.is_context() {
                true => self.done.skipped.keep("relationship"),
                false => self.done.skipped.count("relationship", NOT_NEWER),
            }
        }
        let row = (&known.id, edge.modified, size::of_edge(edge));
        writes
            .unrestricted
            .note(self.rows.feed, (known.modified, known.feeds.as_ref()), row);
    }

    async fn is_edge_silent(&self, edge: &RecordId) -> Result<bool, StoreError> {
        let query = "SELECT id, raw FROM $ids WHERE ws = $ws";
        let found: Vec<OriginalRow> = self.tx.find(self.ws, query, vec![edge.clone()]).await?;
        is_silent(found)
    }

    fn newer_edge(
        &mut self,
        edge: &StixRelationship,
        known: ExistingEdge,
        ends: (&End, &End),
        level: Tlp,
        default_tlp: Tlp,
        writes: &mut EdgeWrites<'_>,
    ) -> Result<(), StoreError> {
        let mut row = self.relation(edge, key(&known.id)?, ends, level, default_tlp, writes)?;
        row.feeds = unite_feeds(known.feeds, row.feeds);
        let left = known.changed_at.filter(|changed| Some(*changed) >= row.modified);
        row.changed_at = left.map(|left| later_than(Some(left), self.rows.now));
        writes.replaced.push(known.id);
        writes.rows.push(row);
        Ok(())
    }

    /// The row of a version.
    fn relation(
        &mut self,
        edge: &StixRelationship,
        id: Uuid,
        (source, target): (&End, &End),
        level: Tlp,
        default_tlp: Tlp,
        writes: &mut EdgeWrites<'_>,
    ) -> Result<EdgeRow, StoreError> {
        let row = record("edge", id);
        let held = MarkedObject {
            stix_id: &edge.stix_id,
            level,
            floor: edge.stated.max(edge.earlier),
            held_by: &edge.held_by,
            carried: &edge.carried,
        };
        self.hold(held, &row, default_tlp, &mut writes.held)?;
        Ok(self.rows.edge(edge, row, (source.node, target.node), level))
    }

    async fn write_edges(&mut self, writes: EdgeWrites<'_>) -> Result<(), StoreError> {
        let EdgeWrites {
            rows,
            replaced,
            held,
            unrestricted,
            rises,
            held_rises,
            repeated,
        } = writes;
        self.graph.note_unrestricted(unrestricted.rows())?;
        unrestricted.write(self.tx).await?;
        self.graph.replace_edges(replaced, rows).await?;
        self.graph.raise_edges(rises).await?;
        self.write_held(held).await?;
        self.raise_held(held_rises).await?;
        self.note_left_out(repeated).await
    }
}

/// Notes another text of the version that stands in this row.
fn note_repeated<'p>(
    edge: &'p StixRelationship,
    known: &ExistingEdge,
    are_known: bool,
    writes: &mut EdgeWrites<'p>,
) {
    if are_known && known.modified == Some(edge.modified) && !edge.carried.is_empty() {
        let version = RepeatedVersion {
            stix_id: &edge.stix_id,
            raw: &edge.raw,
            carried: &edge.carried,
        };
        writes.repeated.push((known.id.clone(), version));
    }
}
