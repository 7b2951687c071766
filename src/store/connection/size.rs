//! Estimates the memory of a transaction, in bytes of the engine's memtable, before the engine sees it.
//!
//! The engine holds several copies of a transaction in memory until it is on disk. So its size is limited
//! (`storage.transaction_mib`), and the estimate errs on the high side.

use std::collections::HashSet;

use surrealdb::types::{RecordId, RecordIdKey, Value, Variables};

use crate::domain::draft::Drafts;
use crate::domain::error::DomainError;
use crate::domain::stix::ingest::{StixNode, StixPlan, StixRelationship, StixSupport};

/// Overhead of an entry: the tower of its skip-list node, padding, and the engine's prefix of a value.
const ENTRY: u64 = 192 + 7 + 9;
/// Key of a row: namespace, database and table, and a UUID.
const ROW_KEY: u64 = 56;
/// An index entry; `GRAPH` is an entry that connects an edge to the graph.
const INDEX: u64 = 320;
const GRAPH: u64 = 285;
/// The three entries that map rows of an indexed table to numbers.
const NUMBERED: u64 = 750;
/// Overhead of a value: type, version and length.
const HEAD: u64 = 9;
/// Allowance for what the engine writes on its own.
const MARGIN: u64 = 64 << 10;
/// The engine's upper bound for a batch.
const MAX_BYTES: u64 = u32::MAX as u64;

/// Error text for a transaction that is too large; the limit in bytes follows.
const TOO_LARGE: &str = "the transaction is larger than this many bytes: ";

/// The size limit of a transaction.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct SizeLimit {
    limit: u64,
}

impl SizeLimit {
    pub(in crate::store) fn new(limit: usize) -> Self {
        let limit = u64::try_from(limit).unwrap_or(MAX_BYTES).min(MAX_BYTES);
        Self { limit }
    }

    /// Refuses a transaction of about this many bytes if it does not fit.
    pub(in crate::store) fn allow(self, bytes: u64) -> surrealdb::Result<()> {
        if self.fits(bytes) {
            return Ok(());
        }
        Err(self.too_large())
    }

    /// Refuses a bundle that can't fit, before anything is read or written.
    pub(in crate::store) fn allow_plan(self, plan: &StixPlan) -> Result<(), DomainError> {
        self.allow_estimate(of_plan(plan))
    }

    /// Refuses drafts that can't fit, before anything is read or written.
    pub(in crate::store) fn allow_drafts(self, drafts: &Drafts) -> Result<(), DomainError> {
        self.allow_estimate(of_drafts(drafts))
    }

    fn allow_estimate(self, bytes: u64) -> Result<(), DomainError> {
        if self.fits(bytes) {
            return Ok(());
        }
        Err(DomainError::TransactionTooLarge {
            needed_mib: Some(bytes.div_ceil(1 << 20)),
            limit_mib: self.limit >> 20,
        })
    }

    fn fits(self, bytes: u64) -> bool {
        bytes <= self.limit.saturating_sub(MARGIN)
    }

    fn too_large(self) -> surrealdb::Error {
        surrealdb::Error::internal(format!("{TOO_LARGE}{}", self.limit))
    }
}

/// The domain error for a transaction refused for its size.
pub(in crate::store) fn size_error(error: &surrealdb::Error) -> Option<DomainError> {
    let limit: u64 = error.message().split_once(TOO_LARGE)?.1.parse().ok()?;
    Some(DomainError::TransactionTooLarge {
        needed_mib: None,
        limit_mib: limit >> 20,
    })
}

/// Size of a statement that writes these values: each list holds rows, or ids of rows to be removed.
pub(super) fn of_variables(variables: &Variables) -> u64 {
    let rows = |(_, value): (&String, &Value)| {
        if let Value::Array(items) = value {
            items.iter().map(of_row).sum()
        } else {
            of_row(value)
        }
    };
    variables.iter().map(rows).sum()
}

/// Size of a row, or of what removing or rewriting the row of an id takes by itself.
pub(in crate::store) fn of_row(value: &Value) -> u64 {
    let id = if let Value::Object(fields) = value {
        fields.get("id").unwrap_or(value)
    } else {
        value
    };
    let beside = if let Value::RecordId(id) = id {
        index_bytes(id)
    } else {
        0
    };
    beside + ENTRY + ROW_KEY + content(value)
}

/// Size of the entries beside a row. Those of a row that is replaced or removed are no larger.
fn index_bytes(id: &RecordId) -> u64 {
    let indexes = match id.table.as_str() {
        "edge" => return 4 * GRAPH,
        "node" | "node_write" | "note" | "evidence" | "passage" | "stix_support" | "enrichment"
        | "audit_entry" | "audit_by_user" | "audit_link" | "workspace" | "lease" | "feed_item"
        | "feed_object" | "feed_support" | "feed_waiting" | "stix_carrier" | "stix_rise" | "stix_waiting"
        | "stix_awaited" | "stix_waiting_count" | "graph_change" | "taxii_added" | "taxii_dates"
        | "taxii_state" | "taxii_again" | "audit_text" => return 0,
        "staged_entity" | "staging_part" | "stix_held" | "recall_session" => 1,
        _ => 2,
    };
    indexes * INDEX + NUMBERED
}

/// Upper bound of a value's stored size.
fn content(value: &Value) -> u64 {
    let length = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    HEAD + match value {
        Value::None | Value::Null | Value::Bool(_) => 0,
        Value::Number(_) | Value::Duration(_) | Value::Datetime(_) | Value::Uuid(_) => 16,
        Value::String(text) => length(text.len()),
        Value::Bytes(bytes) => length(bytes.len()),
        Value::Table(table) => length(table.len()),
        Value::RecordId(id) => length(id.table.len()) + key(&id.key),
        Value::Array(items) => items.iter().map(content).sum(),
        Value::Set(items) => items.iter().map(content).sum(),
        // NONE values are not stored.
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !matches!(value, Value::None))
            .map(|(name, value)| HEAD + length(name.len()) + content(value))
            .sum(),
        // The program stores none of these types.
        Value::Geometry(_) | Value::File(_) | Value::Range(_) | Value::Regex(_) => 256,
    }
}

fn key(key: &RecordIdKey) -> u64 {
    match key {
        RecordIdKey::String(text) => HEAD + text.len() as u64,
        RecordIdKey::Number(_) | RecordIdKey::Uuid(_) => HEAD + 16,
        RecordIdKey::Array(_) | RecordIdKey::Object(_) | RecordIdKey::Range(_) => 256,
    }
}

/// Row sizes without their texts: field names, ids, a feed, numbers and times, room for a few more evidence records of
/// a replaced node, and the entries beside the row. A test compares them with real rows.
const NODE: u64 = 1130;
const EVIDENCE: u64 = 570;
const EDGE: u64 = 1910;
const SUPPORT: u64 = 590;
/// A row that records what one undefined marking withholds.
const HELD: u64 = 1600;
/// The place of a row in the record of those that carry a marking, with its share of the record.
const CARRIED: u64 = 80;
/// The entry of a row in the list of what was added to the collections.
const LISTED: u64 = 150;
/// The note of when an edge was entered there again, such as when a feed no longer restricts it.
const LISTED_AGAIN: u64 = 350;
const AUDIT: u64 = 3000;

fn sum(parts: &[usize]) -> u64 {
    parts.iter().sum::<usize>() as u64
}

/// Size of a node's row, without its evidence.
pub(in crate::store) fn of_node(node: &StixNode) -> u64 {
    let texts = [
        node.name.len(),
        node.description.len(),
        node.source.len(),
        node.properties.len(),
    ];
    NODE + sum(&texts)
}

/// Size of an edge's row and its graph entries.
pub(in crate::store) fn of_edge(edge: &StixRelationship) -> u64 {
    EDGE + sum(&[edge.relationship.len(), edge.raw.len()])
}

/// Size of a supporting object's row.
pub(in crate::store) fn of_support(object: &StixSupport) -> u64 {
    SUPPORT + sum(&[object.stix_id.len(), object.raw.len()])
}

/// Size of a bundle when all of it is new.
pub(super) fn of_plan(plan: &StixPlan) -> u64 {
    let held = |by: &[String], carried: &[String]| {
        let held = by.iter().map(|id| HELD + 2 * id.len() as u64).sum::<u64>();
        held + CARRIED * carried.len() as u64
    };
    let nodes = plan.nodes.iter().map(|node| {
        let evidence = [
            node.name.len(),
            node.source.len(),
            node.stix_id.len(),
            node.raw.len(),
        ];
        of_node(node) + EVIDENCE + LISTED + sum(&evidence) + held(&node.held_by, &node.carried)
    });
    let edges = plan
        .relationships
        .iter()
        .map(|edge| of_edge(edge) + LISTED + LISTED_AGAIN + held(&edge.held_by, &edge.carried));
    let supporting = plan
        .supporting
        .iter()
        .map(|object| of_support(object) + LISTED + held(&object.held_by, &object.carried));
    AUDIT + nodes.chain(edges).chain(supporting).sum::<u64>()
}

/// Lower bound for drafts when all of them are new. Properties and originals are left to the transaction's own check:
/// their length is known only once the rows are built.
fn of_drafts(drafts: &Drafts) -> u64 {
    let mut seen = HashSet::new();
    let mut new = |identity| seen.insert(identity);
    let nodes = drafts
        .nodes
        .iter()
        .filter(|node| new(("node", node.identity.as_str())));
    let nodes: u64 = nodes
        .map(|node| NODE + sum(&[node.name.len(), node.description.len(), node.source.len()]))
        .sum();
    let evidence = drafts
        .evidence
        .iter()
        .filter(|record| new(("evidence", record.identity.as_str())));
    let evidence: u64 = evidence
        .map(|record| EVIDENCE + sum(&[record.title.len(), record.source.len()]))
        .sum();
    AUDIT + nodes + evidence
}

#[cfg(test)]
mod tests;
