//! What is no longer stated of a node.

use std::collections::HashSet;

use uuid::Uuid;

use super::{MergedNode, damaged};
use crate::domain::error::DomainError;
use crate::domain::graph::attributes::{AttributeEnd, are_all_ended, end_entry, events_of};
use crate::domain::node::NodeStatus;
use crate::domain::tlp::Tlp;

impl MergedNode {
    /// Whether nothing states it any more: a STIX object may be rejected by its own words, all else by nobody's.
    pub(super) fn is_retired(&self) -> bool {
        self.content.status == NodeStatus::Rejected && !self.content.is_stix
    }

    /// Ends an attribute that a node was made of. What no other source states is retired: it is rejected and keeps all that
    /// it says. Only records that a writer up to `highest` sees count as sources; `records_of` gives those of an event.
    /// Returns whether that changes the node.
    ///
    /// # Errors
    /// When its properties are damaged.
    pub fn end_attribute(
        &mut self,
        end: &AttributeEnd,
        highest: Tlp,
        records_of: impl Fn(&str) -> Vec<Uuid>,
    ) -> Result<bool, DomainError> {
        let properties = match &mut self.properties {
            Some(properties) => properties,
            none => none.insert(serde_json::from_str(&self.content.properties).map_err(damaged)?),
        };
        if !end_entry(properties, end) {
            return Ok(false);
        }
        let is_whole = are_all_ended(properties);
        let own: HashSet<Uuid> = events_of(properties)
            .iter()
            .flat_map(|event| records_of(event))
            .collect();
        let content = &mut self.content;
        let mut seen = content.evidence.iter().filter(|(_, tlp)| *tlp <= highest);
        if is_whole
            && content.source_type == "misp"
            && !content.is_stix
            && seen.all(|(record, _)| own.contains(record))
        {
            content.status = NodeStatus::Rejected;
        }
        self.is_changed = true;
        self.is_exported = true;
        Ok(true)
    }

    /// Replaces the words of a description that an earlier version of an attribute gave.
    pub(super) fn restate(&mut self, before: Option<&str>, description: &str) -> bool {
        let given = match before {
            Some(comment) => self.content.description.starts_with(comment),
            None => self.content.description.starts_with("MISP event: "),
        };
        let is_news = given && self.content.description != description && !description.is_empty();
        if is_news {
            self.content.description = description.to_owned();
        }
        is_news
    }
}
