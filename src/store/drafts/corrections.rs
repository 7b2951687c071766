//! Attributes that their source states anew: with another value, or not at all.

use std::collections::HashMap;

use uuid::Uuid;

use super::DraftsTransaction;
use super::nodes::NodeRows;
use crate::domain::draft::identity;
use crate::domain::graph::attributes::AttributeEnd;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;

/// Nodes corrected at a time.
const AT_A_TIME: usize = 500;

/// What a write corrects.
#[derive(Debug, Default)]
pub struct Corrections {
    /// Drafts that say nothing newer, by position, with the node that stands for what they are about.
    pub stale: HashMap<usize, Uuid>,
    pub ended: Vec<EndedAttribute>,
}

/// An attribute that has ended where it was stated.
#[derive(Debug, Clone)]
pub struct EndedAttribute {
    pub end: AttributeEnd,
    /// The nodes that it was stated of, as far as the writer sees them.
    pub nodes: Vec<Uuid>,
    /// Positions of the drafts that state it now.
    pub drafts: Vec<usize>,
}

impl DraftsTransaction<'_> {
    /// Whether a draft says nothing newer.
    pub(super) fn is_stale(&self, place: usize) -> bool {
        self.write.corrections.stale.contains_key(&place)
    }

    /// Ends attributes at the nodes that they are no longer stated of; `ids` are the nodes of the drafts.
    pub(super) async fn correct(&mut self, ids: &[Uuid]) -> Result<(), StoreError> {
        let mut by_node: HashMap<Uuid, Vec<&AttributeEnd>> = HashMap::new();
        for ended in &self.write.corrections.ended {
            let now: Vec<Uuid> = ended
                .drafts
                .iter()
                .filter_map(|at| ids.get(*at).copied())
                .collect();
            for node in ended.nodes.iter().filter(|node| !now.contains(node)) {
                by_node.entry(*node).or_default().push(&ended.end);
            }
        }
        let nodes: Vec<Uuid> = by_node.keys().copied().collect();
        for chunk in nodes.chunks(AT_A_TIME) {
            let mut rows = NodeRows::new();
            self.look_up(&mut rows, chunk.to_vec()).await?;
            for (id, held) in &mut rows {
                let Some(held) = held
                    .as_mut()
                    .filter(|held| held.merged.content().tlp <= self.write.highest)
                else {
                    continue;
                };
                for end in by_node.get(id).into_iter().flatten() {
                    let records = |event: &str| self.records_of_event(event);
                    let changed = held.merged.end_attribute(end, self.write.highest, records)?;
                    if changed && !self.created.contains(id) {
                        self.report.updated.insert(*id);
                    }
                }
            }
            self.write_rows(rows).await?;
        }
        Ok(())
    }

    /// The records that a MISP event may have, one for each marking.
    fn records_of_event(&self, event: &str) -> Vec<Uuid> {
        let record = |level: Tlp| self.ids.evidence(&identity(["misp", event, level.as_str()]));
        Tlp::ALL.into_iter().map(record).collect()
    }
}
