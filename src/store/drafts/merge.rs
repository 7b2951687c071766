//! Merges a draft into an existing node.
//!
//! Invariant: merging never raises a node's text above the node's marking. If a source restates its own node at a
//! stricter marking, the node takes that marking. What another source says at a stricter marking stays in an evidence
//! record with that marking, and so does what a text said where a more open source comes after it.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::texts::DraftSource;
use crate::domain::draft::{EvidenceDraft, JsonText, NodeDraft, identity};
use crate::domain::error::DomainError;
use crate::domain::node::NodeType;
use crate::domain::tlp::Tlp;
use crate::store::rows::{NodeRow, corrupt, later_than, parse, tlp};

/// Maximum length of a list produced by merging.
const MAX_UNITED: usize = 2000;
/// Properties whose lists are united when two nodes turn out to be the same.
const UNITED: [&str; 4] = ["aliases", "external_ids", "tags", "labels"];
/// Evidence kinds that hold the whole text a draft was made from.
const WHOLE: [&str; 4] = ["analyst", "osint", "report", "staged"];

/// Whether evidence of this kind holds the whole text.
pub(super) fn holds_whole_text(kind: &str) -> bool {
    WHOLE.contains(&kind)
}

/// What a node accepted from a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absorption {
    Changed,
    /// Nothing: it is all there already.
    Known,
    /// Nothing: another source states it at a stricter marking.
    TooRestricted,
}

/// A node while drafts are merged into it.
#[derive(Debug)]
pub(super) struct MergedNode {
    pub row: NodeRow,
    /// Parsed only once, however many drafts are merged.
    properties: Option<Map<String, Value>>,
    new: bool,
    changed: bool,
    /// Whether an export shows a change.
    exported: bool,
}

impl MergedNode {
    pub(super) fn of_new_row(row: NodeRow) -> Self {
        Self {
            row,
            properties: None,
            new: true,
            changed: true,
            exported: false,
        }
    }

    pub(super) fn of_existing_row(row: NodeRow) -> Self {
        Self {
            row,
            properties: None,
            new: false,
            changed: false,
            exported: false,
        }
    }

    pub(super) fn is_new(&self) -> bool {
        self.new
    }

    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// The row. Rule: a change that an export shows is later than any time under which the node has left, and nothing
    /// else changes that time.
    pub(super) fn into_row(mut self, now: DateTime<Utc>) -> NodeRow {
        if self.exported {
            let left = self.row.changed_at.or(self.row.modified);
            self.row.changed_at = Some(later_than(left.max(Some(self.row.ingested_at)), now));
        }
        if let Some(properties) = self.properties {
            self.row.properties = Value::Object(properties).to_string();
        }
        self.row
    }

    /// Links an evidence record; returns the marking of an existing link.
    pub(super) fn link(&mut self, evidence: Uuid, tlp: Tlp) -> Option<i64> {
        let at = self.row.evidence.iter().position(|known| *known == evidence);
        match at {
            Some(at) => Some(self.row.evidence_tlp.get(at).copied().unwrap_or(i64::MAX)),
            None => {
                self.row.link(evidence, tlp);
                self.changed = true;
                None
            }
        }
    }

    /// Gives the node the words and the marking of a more open draft, and returns what it said before, as a draft.
    pub(super) fn give_way(
        &mut self,
        draft: &NodeDraft,
        now: DateTime<Utc>,
    ) -> Result<NodeDraft, DomainError> {
        let row = &mut self.row;
        let properties = self.properties.take().map(Value::Object);
        let properties = properties.map_or_else(|| row.properties.clone(), |all| all.to_string());
        let kinds = WHOLE.into_iter().find(|kind| *kind == row.source_type);
        let before = NodeDraft {
            identity: draft.identity.clone(),
            node_type: parse(&row.node_type)?,
            name: row.name.clone(),
            description: row.description.clone(),
            source: row.source.clone(),
            source_type: kinds.unwrap_or(draft.source_type),
            tlp: tlp(row.tlp_rank)?,
            confidence: row.confidence,
            properties: JsonText::from_text(properties),
            evidence: Vec::new(),
            merge_by_name: draft.merge_by_name,
        };
        row.node_type = draft.node_type.as_str().into();
        row.name.clone_from(&draft.name);
        row.description.clone_from(&draft.description);
        row.source.clone_from(&draft.source);
        row.source_type = draft.source_type.into();
        row.tlp_rank = i64::from(draft.tlp.rank());
        row.confidence = draft.confidence;
        row.properties = draft.properties.text().to_owned();
        // To those who see it from now on, the node begins with this draft.
        row.changed_at = None;
        row.ingested_at = now;
        self.exported = false;
        self.changed = true;
        Ok(before)
    }

    /// Puts an evidence record first: the text that the node's words come from.
    pub(super) fn lead_with(&mut self, evidence: Uuid) {
        let row = &mut self.row;
        let at = row.evidence.iter().position(|known| *known == evidence);
        let Some(at) = at else { return };
        let markings = row.evidence_tlp.get_mut(..=at);
        if let (Some(records), Some(markings)) = (row.evidence.get_mut(..=at), markings) {
            records.rotate_right(1);
            markings.rotate_right(1);
        }
    }

    /// Merges the content of a draft.
    pub(super) fn absorb(
        &mut self,
        draft: &NodeDraft,
        source: DraftSource,
    ) -> Result<Absorption, DomainError> {
        let stricter = draft.tlp > tlp(self.row.tlp_rank)?;
        if stricter && source != DraftSource::Same {
            return Ok(Absorption::TooRestricted);
        }
        let mut changed = stricter;
        let row = &mut self.row;
        // An object that came in as STIX leaves with its own fields; its confidence is the row's.
        let is_stix = row.stix_evidence.is_some();
        self.exported |= is_stix && draft.confidence > row.confidence;
        if stricter {
            // A source that restricts its own earlier statement restricts the node.
            row.tlp_rank = i64::from(draft.tlp.rank());
        }
        if draft.confidence > row.confidence {
            row.confidence = draft.confidence;
            changed = true;
        }
        let speaks = stricter || row.description.is_empty();
        if speaks && !draft.description.is_empty() && row.description != draft.description {
            row.description.clone_from(&draft.description);
            changed = true;
        }
        changed |= self.unite(draft, stricter)?;
        self.changed |= changed;
        self.exported |= changed && !is_stix && !self.new;
        Ok(if changed {
            Absorption::Changed
        } else {
            Absorption::Known
        })
    }

    /// Adds the draft's properties that the node lacks, and unites the lists of names and tags. Where the draft
    /// `speaks` for the node, its values replace the others. A new name becomes an alias.
    fn unite(&mut self, draft: &NodeDraft, speaks: bool) -> Result<bool, DomainError> {
        let names = draft.merge_by_name || draft.node_type == NodeType::Osint;
        let renamed = names && !draft.name.eq_ignore_ascii_case(&self.row.name);
        if draft.properties.is_empty() && !renamed {
            return Ok(false);
        }
        let mut changed = false;
        let properties = match &mut self.properties {
            Some(properties) => properties,
            none => none.insert(serde_json::from_str(&self.row.properties).map_err(corrupt)?),
        };
        for (key, value) in draft.properties.map() {
            match (properties.get_mut(&key), value) {
                (Some(Value::Array(have)), Value::Array(more)) if UNITED.contains(&key.as_str()) => {
                    changed |= add(have, &more);
                }
                (Some(known), value) => {
                    if speaks && *known != value {
                        *known = value;
                        changed = true;
                    }
                }
                (None, value) => {
                    properties.insert(key, value);
                    changed = true;
                }
            }
        }
        if renamed {
            let aliases = properties
                .entry("aliases")
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(aliases) = aliases {
                changed |= add(aliases, &[Value::from(draft.name.as_str())]);
            }
        }
        Ok(changed)
    }
}

/// Adds the items that are missing, as far as there is room.
fn add(have: &mut Vec<Value>, more: &[Value]) -> bool {
    let room = MAX_UNITED.saturating_sub(have.len());
    if room == 0 || more.is_empty() {
        return false;
    }
    let known: HashSet<String> = have.iter().map(Value::to_string).collect();
    let new = more.iter().filter(|item| !known.contains(&item.to_string()));
    let new: Vec<Value> = new.take(room).cloned().collect();
    let added = !new.is_empty();
    have.extend(new);
    added
}

/// An evidence record with the content of a draft that the node may not accept. `None` if the draft's own evidence
/// already holds the whole text at the same marking.
pub(super) fn evidence_of_rejected(draft: &NodeDraft, evidence: &[EvidenceDraft]) -> Option<EvidenceDraft> {
    let mut own = draft.evidence.iter().filter_map(|&i| evidence.get(i));
    if own
        .clone()
        .any(|record| record.tlp == draft.tlp && WHOLE.contains(&record.kind))
    {
        return None;
    }
    let raw = json!({
        "name": draft.name, "node_type": draft.node_type, "description": draft.description,
        "properties": draft.properties.map(), "confidence": draft.confidence, "tlp": draft.tlp,
    });
    let raw = raw.to_string();
    let digest = hex::encode(Sha256::digest(&raw));
    Some(EvidenceDraft {
        identity: identity([
            "said",
            draft.source_type,
            &draft.identity,
            &draft.source,
            draft.tlp.as_str(),
            &digest,
        ]),
        kind: draft.source_type,
        // The event or report may be more restricted than this draft.
        ext_id: own
            .find(|record| record.tlp <= draft.tlp)
            .and_then(|record| record.ext_id.clone()),
        title: draft.name.clone(),
        source: draft.source.clone(),
        tlp: draft.tlp,
        raw: JsonText::from_text(raw),
    })
}

#[cfg(test)]
mod tests;
