//! Writing the nodes of a bundle.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::RecordId;
use uuid::Uuid;

use super::super::rows::{EvidenceRow, HeldRow, NodeRow, corrupt, key, record, unpack};
use super::carriers::{HeldRise, MarkedObject, RepeatedVersion};
use super::feeds::{UnrestrictedRows, unite_feeds};
use super::known::{ExistingNode, OriginalRow};
use super::targets::Target;
use super::{Ingest, NOT_NEWER, stix_type};
use crate::domain::graph::alias_sources::{aliases_of, note_sources};
use crate::domain::graph::correction::NodeCorrection;
use crate::domain::graph::later_than;
use crate::domain::graph::merge::silent_version;
use crate::domain::stix::ingest::StixNode;
use crate::domain::stix::marking::states_level;
use crate::domain::stix::properties::carry_over;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::size;
use crate::store::connection::tx::yield_regularly;
use crate::store::graph::write::NodeRise;

/// What the nodes of a chunk write.
#[derive(Default)]
pub(super) struct NodeWrites<'p> {
    created: Vec<NodeRow>,
    pub(super) updated: Vec<NodeRow>,
    pub(super) evidence: Vec<EvidenceRow>,
    held: Vec<HeldRow>,
    unrestricted: UnrestrictedRows,
    rises: Vec<NodeRise>,
    held_rises: Vec<HeldRise>,
    repeated: Vec<(RecordId, RepeatedVersion<'p>)>,
}

impl Ingest<'_> {
    pub(super) async fn nodes(&mut self, nodes: &[StixNode], default_tlp: Tlp) -> Result<(), StoreError> {
        let nodes = &*self.date_observables(nodes).await?;
        let targets = self.node_targets(nodes).await?;
        let mut writes = NodeWrites::default();
        for (place, (node, target)) in nodes.iter().zip(targets).enumerate() {
            yield_regularly(place).await;
            if let Target::Update { row, .. } | Target::Rise { row, .. } | Target::Known(row) = &target {
                self.placed.insert(self.first_id(&node.stix_id), row.key()?);
            }
            match target {
                Target::Nowhere => {
                    self.count_created(node);
                    if !node.held_by.is_empty() {
                        self.done.held.note(&node.stix_id, node.tlp, &node.held_by);
                    }
                    self.count_evidence(node);
                }
                Target::Create(id) => {
                    self.count_created(node);
                    let (mut row, source) = self.version(node, id, node.tlp, default_tlp, &mut writes)?;
                    row.link(source, node.tlp);
                    writes.created.push(row);
                }
                Target::Update {
                    row,
                    level,
                    is_unseen,
                } => {
                    // What another source made is no version of the object, so it decides nothing about its marking.
                    if row.stix_evidence.is_none() {
                        self.count_joined(node);
                        self.join_node(node, &row, default_tlp, &mut writes).await?;
                        continue;
                    }
                    if is_unseen {
                        self.count_created(node);
                    } else {
                        self.count_updated(node);
                        let is_silent = node.stated.is_none() && node.held_by.is_empty();
                        let version = silent_version(row.level()?, node.tlp, level, is_silent);
                        self.done.silent.note(&node.stix_id, version);
                    }
                    self.newer_node(node, row, level, default_tlp, &mut writes)?;
                }
                Target::Rise {
                    row,
                    level,
                    if_silent,
                } => {
                    note_repeated(node, &row, &mut writes);
                    let correction = row.correction()?;
                    match row.stix_evidence {
                        // An administrator has lowered what the source states.
                        Some(_) if correction.is_some_and(|correction| correction.keeps_below(level)) => {
                            self.skip_node(node, row, &mut writes);
                        }
                        Some(original) if !if_silent || self.is_silent(original).await? => {
                            self.raise_node(node, row, (original, level), &mut writes)?;
                        }
                        Some(_) | None => self.skip_node(node, row, &mut writes),
                    }
                }
                Target::Known(row) => {
                    note_repeated(node, &row, &mut writes);
                    self.skip_node(node, row, &mut writes);
                }
            }
        }
        self.write_nodes(writes).await
    }

    /// A version that is not newer than its row, and states a stricter marking than a row that has none of its own, or
    /// than another text of the same version: the row takes it.
    fn raise_node(
        &mut self,
        node: &StixNode,
        known: ExistingNode,
        (original, level): (Uuid, Tlp),
        writes: &mut NodeWrites<'_>,
    ) -> Result<(), StoreError> {
        self.count_updated(node);
        self.tx.charge(size::of_node(node))?;
        let (evidence, held_by) = (record("evidence", original), known.held_by.as_deref());
        let held = self.held_rises(&evidence, held_by, level)?;
        writes.held_rises.extend(held);
        writes.rises.push(self.rise_of(known, original, level));
        Ok(())
    }

    /// A version that is not newer than its row, and changes nothing but which feeds restrict the row.
    fn skip_node(&mut self, node: &StixNode, known: ExistingNode, writes: &mut NodeWrites<'_>) {
        match node.is_context() {
            true => self.done.skipped.keep(stix_type(&node.stix_id)),
            false => self.done.skipped.count(stix_type(&node.stix_id), NOT_NEWER),
        }
        // Further evidence may be an older version, or what another source added, so the feed still counts.
        if known.evidence.len() <= 1 {
            let row = (&known.id, node.modified, size::of_node(node));
            writes
                .unrestricted
                .note(self.rows.feed, (known.modified, known.feeds.as_ref()), row);
        }
    }

    /// Whether the original in this evidence record states no marking.
    async fn is_silent(&self, evidence: Uuid) -> Result<bool, StoreError> {
        let query = "SELECT id, raw FROM $ids WHERE ws = $ws";
        let ids = vec![record("evidence", evidence)];
        let found: Vec<OriginalRow> = self.tx.find(self.ws, query, ids).await?;
        is_silent(found)
    }

    fn rise_of(&self, known: ExistingNode, original: Uuid, level: Tlp) -> NodeRise {
        let tlp_rank = i64::from(level.rank());
        let mut evidence_tlp = known.evidence_tlp;
        let linked = known.evidence.iter().zip(&mut evidence_tlp);
        for (_, rank) in linked.filter(|(id, _)| **id == original) {
            *rank = tlp_rank;
        }
        let changed_at = later_than(known.changed_at.max(known.modified), self.rows.now);
        NodeRise {
            id: known.id,
            tlp_rank,
            evidence_tlp,
            original: record("evidence", original),
            rev: self.rows.rev,
            changed_at,
        }
    }

    fn newer_node(
        &mut self,
        node: &StixNode,
        known: ExistingNode,
        level: Tlp,
        default_tlp: Tlp,
        writes: &mut NodeWrites<'_>,
    ) -> Result<(), StoreError> {
        let correction = known.correction()?;
        let level = correction
            .as_ref()
            .map_or(level, |correction| correction.level(level));
        let (mut row, source) = self.version(node, known.key()?, level, default_tlp, writes)?;
        row.context = known.context;
        if node.is_context() && !node.undated {
            self.superseded.push(known.id.clone());
        }
        let left = known.changed_at.max(row.modified);
        keep_additions(&mut row, known, correction.as_ref(), self.rows.now)?;
        if correction.is_some() {
            // What leaves is not what the source says.
            row.changed_at = Some(later_than(left, self.rows.now));
        }
        row.link(source, level);
        writes.updated.push(row);
        Ok(())
    }

    /// The row of a version, and its evidence, which is not linked yet.
    pub(super) fn version(
        &mut self,
        node: &StixNode,
        id: Uuid,
        level: Tlp,
        default_tlp: Tlp,
        writes: &mut NodeWrites<'_>,
    ) -> Result<(NodeRow, Uuid), StoreError> {
        let usual = self.ids.node(&node.stix_id);
        let source = self.rows.evidence(node, (id != usual).then_some(id), level);
        let source_id = key(&source.id)?;
        let row = self.rows.node(id, node, source_id, level);
        let held = MarkedObject {
            stix_id: &node.stix_id,
            level,
            floor: node.stated.max(node.earlier),
            held_by: &node.held_by,
            carried: &node.carried,
        };
        self.hold(held, &source.id, default_tlp, &mut writes.held)?;
        self.placed.insert(self.first_id(&node.stix_id), id);
        self.count_evidence(node);
        writes.evidence.push(source);
        Ok((row, source_id))
    }

    async fn write_nodes(&mut self, writes: NodeWrites<'_>) -> Result<(), StoreError> {
        let NodeWrites {
            created,
            updated,
            evidence,
            held,
            unrestricted,
            rises,
            held_rises,
            repeated,
        } = writes;
        self.graph.note_unrestricted(unrestricted.rows())?;
        unrestricted.write(self.tx).await?;
        self.graph.insert_evidence(evidence).await?;
        self.graph.insert_nodes(created).await?;
        self.graph.replace_nodes(updated).await?;
        self.graph.raise_nodes(rises).await?;
        self.write_held(held).await?;
        self.raise_held(held_rises).await?;
        self.note_left_out(repeated).await
    }
}

/// Notes another text of the version that stands in this row.
fn note_repeated<'p>(node: &'p StixNode, known: &ExistingNode, writes: &mut NodeWrites<'p>) {
    if let Some(original) = known.stix_evidence
        && known.modified == Some(node.modified)
        && !node.carried.is_empty()
    {
        let version = RepeatedVersion {
            stix_id: &node.stix_id,
            raw: &node.raw,
            carried: &node.carried,
        };
        writes.repeated.push((record("evidence", original), version));
    }
}

/// Whether the originals state no marking.
pub(super) fn is_silent(originals: Vec<OriginalRow>) -> Result<bool, StoreError> {
    for original in originals {
        if let Some(raw) = &original.raw
            && states_level(&unpack(raw)?)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Keeps what other sources added to a node when a newer version of its object replaces it.
fn keep_additions(
    row: &mut NodeRow,
    known: ExistingNode,
    correction: Option<&NodeCorrection>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    row.evidence = known.evidence;
    row.evidence_tlp = known.evidence_tlp;
    row.feeds = unite_feeds(known.feeds, row.feeds.take());
    // What left with the time of our own change must not leave again as older.
    let left = known.changed_at.filter(|changed| Some(*changed) >= row.modified);
    row.changed_at = left.map(|left| later_than(Some(left), now));
    // Additions were visible at the old marking, so they must not be exposed at a lower one.
    if row.evidence.len() > 1 && row.tlp_rank >= known.tlp_rank {
        let mut old: Map<String, Value> = serde_json::from_str(&known.properties).map_err(corrupt)?;
        if let Some(stated) = correction.and_then(NodeCorrection::stated_aliases) {
            old.insert("aliases".into(), stated.into());
        }
        let mut properties: Map<String, Value> = serde_json::from_str(&row.properties).map_err(corrupt)?;
        let own: Vec<String> = aliases_of(&properties).map(str::to_owned).collect();
        carry_over(&old, &mut properties);
        for alias in own {
            note_sources(&mut properties, &row.source, &alias, [row.source.as_str()]);
        }
        row.properties = Value::Object(properties).to_string();
    }
    Ok(())
}
