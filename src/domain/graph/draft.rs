//! A draft and the node that it is merged into.
//!
//! Invariant: merging never raises a node's text above the node's marking. If a source restates its own node at a
//! stricter marking, the node takes that marking. What another source says at a stricter marking stays in an evidence
//! record with that marking, and so does what a text said where a more open source comes after it. Each text is a source of
//! its own: each article, report and preview. So a node that texts have made is marked as the most open of them, whatever
//! the order in which they come.

mod ended;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::alias_sources::{ALIASES_FROM, aliases_of, note_sources};
use super::attributes::{ENTRIES, unite_entries};
use super::later_than;
use super::record::{RecordHead, WHOLE, evidence_of_rejected};
use crate::domain::draft::{EvidenceDraft, JsonText, NodeDraft};
use crate::domain::error::DomainError;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::passage::{passages_of, readable_part};
use crate::domain::tlp::Tlp;

/// Maximum length of a list produced by merging.
const MAX_UNITED: usize = 2000;
/// Properties whose lists are united when two nodes turn out to be the same.
const UNITED: [&str; 5] = ["aliases", "external_ids", "tags", "labels", "attribute_uuids"];
/// Sources of which each text stands for itself.
const TEXTS: [&str; 3] = ["osint", "report", "staged"];

/// What merging reads and changes of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeContent {
    pub node_type: NodeType,
    pub name: String,
    pub description: String,
    pub source: String,
    pub source_type: String,
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
    /// A JSON object as text.
    pub properties: String,
    /// Its evidence records with their markings.
    pub evidence: Vec<(Uuid, Tlp)>,
    /// Whether it came in as STIX, and so leaves with its own fields.
    pub is_stix: bool,
    pub status: NodeStatus,
    pub modified: Option<DateTime<Utc>>,
    pub changed_at: Option<DateTime<Utc>>,
    pub ingested_at: DateTime<Utc>,
}

/// The source of a draft, compared with the one that the words of its node come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftSource {
    /// The same one, which may mark its node more strictly.
    Same,
    Other,
    /// Another one, more open than the text that the words of the node come from: the node takes its words. What the node
    /// said before is in the record of that text if `has_record`.
    MoreOpen {
        has_record: bool,
    },
}

/// A text about a node that the node's description does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    pub tlp: Tlp,
    pub text: String,
}

/// What merging a draft leaves beside the node.
#[derive(Debug, Default)]
pub struct Merged {
    /// Whether it changed what the node says.
    pub is_news: bool,
    /// A record of what the node does not say.
    pub kept: Option<EvidenceDraft>,
    pub remarks: Vec<Remark>,
}

/// What a node accepted from a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absorption {
    Changed,
    /// Nothing: it is all there already.
    Known,
    /// Nothing: another source states it at a stricter marking.
    TooRestricted,
}

/// A node while drafts are merged into it.
#[derive(Debug)]
pub struct MergedNode {
    content: NodeContent,
    /// Parsed only once, however many drafts are merged.
    properties: Option<Map<String, Value>>,
    is_new: bool,
    is_changed: bool,
    /// Whether an export shows a change.
    is_exported: bool,
}

impl MergedNode {
    /// A node that does not exist yet, of one draft.
    pub fn of_draft(draft: &NodeDraft, evidence: Vec<(Uuid, Tlp)>, now: DateTime<Utc>) -> Self {
        let content = NodeContent {
            node_type: draft.node_type,
            name: draft.name.clone(),
            description: draft.description.clone(),
            source: draft.source.clone(),
            source_type: draft.source_type.into(),
            tlp: draft.tlp,
            confidence: draft.confidence,
            properties: properties_of(draft),
            evidence,
            is_stix: false,
            status: NodeStatus::Active,
            modified: None,
            changed_at: None,
            ingested_at: now,
        };
        Self {
            is_new: true,
            is_changed: true,
            ..Self::of_stored(content)
        }
    }

    /// A node as it is stored.
    pub fn of_stored(content: NodeContent) -> Self {
        Self {
            content,
            properties: None,
            is_new: false,
            is_changed: false,
            is_exported: false,
        }
    }

    /// What it says now; its properties may be out of date.
    pub fn content(&self) -> &NodeContent {
        &self.content
    }

    /// Whether it does not exist yet.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether there is anything to write.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// What is to be stored. Rule: a change that an export shows is later than any time under which the node has left, and
    /// nothing else changes that time.
    pub fn into_content(mut self, now: DateTime<Utc>) -> NodeContent {
        let content = &mut self.content;
        if self.is_exported {
            let left = content.changed_at.or(content.modified);
            content.changed_at = Some(later_than(left.max(Some(content.ingested_at)), now));
        }
        if let Some(properties) = self.properties {
            content.properties = Value::Object(properties).to_string();
        }
        self.content
    }

    /// Whether a draft that matches it by a name is another thing: a stricter text gives it that name only as an alias.
    /// `has_identity` says whether it has the id of the draft's identity.
    pub fn is_another(&self, draft: &NodeDraft, has_identity: bool) -> bool {
        self.is_of_stricter_text(draft)
            && !self.content.name.eq_ignore_ascii_case(&draft.name)
            && !has_identity
    }

    /// Whether its words come from a text that is stricter than the draft.
    pub fn is_of_stricter_text(&self, draft: &NodeDraft) -> bool {
        self.content.tlp > draft.tlp && TEXTS.contains(&self.content.source_type.as_str())
    }

    /// The evidence records of which [`Self::source_of`] needs the heads.
    pub fn records_needed(&self, draft: &NodeDraft) -> Vec<Uuid> {
        let content = &self.content;
        if content.tlp == draft.tlp {
            return Vec::new();
        }
        let all = content.evidence.iter().map(|(id, _)| *id);
        match (
            self.is_of_stricter_text(draft),
            TEXTS.contains(&draft.source_type),
        ) {
            (true, _) => all.collect(),
            (false, true) if content.source_type == draft.source_type => all.take(1).collect(),
            (false, _) => Vec::new(),
        }
    }

    /// Compares the source of a draft by a writer up to `highest` with its own. `own` is the draft's own record, `records`
    /// has the heads of the records needed.
    pub fn source_of(
        &self,
        draft: &NodeDraft,
        own: Option<&EvidenceDraft>,
        records: &HashMap<Uuid, RecordHead>,
        highest: Tlp,
    ) -> DraftSource {
        let content = &self.content;
        if content.tlp == draft.tlp {
            return DraftSource::Other;
        }
        if content.source_type == draft.source_type && self.is_of_own_text(draft, own, records) {
            return DraftSource::Same;
        }
        if !self.is_of_stricter_text(draft) || content.tlp > highest {
            return DraftSource::Other;
        }
        let is_whole = records
            .values()
            .all(|record| WHOLE.contains(&record.kind.as_str()));
        let first = content.evidence.first();
        let has_record = is_whole && first.is_some_and(|(_, tlp)| *tlp == content.tlp);
        DraftSource::MoreOpen { has_record }
    }

    fn is_of_own_text(
        &self,
        draft: &NodeDraft,
        own: Option<&EvidenceDraft>,
        records: &HashMap<Uuid, RecordHead>,
    ) -> bool {
        if !TEXTS.contains(&draft.source_type) {
            return self.content.source == draft.source;
        }
        // The first record of a node is that of the text that its words come from.
        let first = self.content.evidence.first().and_then(|(id, _)| records.get(id));
        own.zip(first).is_some_and(|(own, first)| first.is_of_text(own))
    }

    /// Merges a draft of this source; `own` is the id of the draft's first record, and `evidence` has the records of the
    /// whole write.
    ///
    /// # Errors
    /// When its properties are damaged.
    pub fn merge(
        &mut self,
        draft: &NodeDraft,
        source: DraftSource,
        (own, evidence): (Option<Uuid>, &[EvidenceDraft]),
        now: DateTime<Utc>,
    ) -> Result<Merged, DomainError> {
        let mut merged = Merged::default();
        if let DraftSource::MoreOpen { has_record } = source {
            let before = self.give_way(draft, now);
            own.into_iter().for_each(|own| self.lead_with(own));
            if !has_record {
                merged.kept = evidence_of_rejected(&before, &[]);
            }
            merged.remarks.extend(self.remarks_of(&before));
            merged.is_news = true;
        } else {
            let before = (source == DraftSource::Same).then(|| self.content.description.clone());
            let absorbed = self.absorb(draft, source)?;
            // What it said before is still found, with the marking that its source gives it now.
            let before = before.map(|text| self.remarks_on(&text, self.content.tlp));
            merged.remarks.extend(before.into_iter().flatten());
            match absorbed {
                Absorption::Changed => merged.is_news = true,
                Absorption::Known => {}
                Absorption::TooRestricted => merged.kept = evidence_of_rejected(draft, evidence),
            }
        }
        merged.remarks.extend(self.remarks_of(draft));
        Ok(merged)
    }

    /// What a draft says of the node, and the description does not.
    pub fn remarks_of(&self, draft: &NodeDraft) -> Vec<Remark> {
        self.remarks_on(&draft.description, draft.tlp)
    }

    fn remarks_on(&self, text: &str, tlp: Tlp) -> Vec<Remark> {
        let description = &self.content.description;
        let known = readable_part(description);
        if text == description || known.contains(text.trim()) {
            return Vec::new();
        }
        let remark = |text: String| Remark { tlp, text };
        passages_of(text).into_iter().map(remark).collect()
    }

    /// Links an evidence record; returns the marking of an existing link.
    pub fn link(&mut self, evidence: Uuid, tlp: Tlp) -> Option<Tlp> {
        let linked = self.content.evidence.iter().find(|(known, _)| *known == evidence);
        if let Some((_, tlp)) = linked {
            return Some(*tlp);
        }
        self.content.evidence.push((evidence, tlp));
        self.is_changed = true;
        None
    }

    /// Gives the node the words and the marking of a more open draft, and returns what it said before, as a draft.
    fn give_way(&mut self, draft: &NodeDraft, now: DateTime<Utc>) -> NodeDraft {
        let content = &mut self.content;
        let properties = self.properties.take().map(Value::Object);
        let properties = properties.map_or_else(|| content.properties.clone(), |all| all.to_string());
        let kind = WHOLE.into_iter().find(|kind| *kind == content.source_type);
        let before = NodeDraft {
            identity: draft.identity.clone(),
            node_type: content.node_type,
            name: std::mem::replace(&mut content.name, draft.name.clone()),
            description: std::mem::replace(&mut content.description, draft.description.clone()),
            source: std::mem::replace(&mut content.source, draft.source.clone()),
            source_type: kind.unwrap_or(draft.source_type),
            tlp: content.tlp,
            confidence: content.confidence,
            properties: JsonText::from_text(properties),
            evidence: Vec::new(),
            merge_by_name: draft.merge_by_name,
        };
        content.node_type = draft.node_type;
        content.source_type = draft.source_type.into();
        content.tlp = draft.tlp;
        content.confidence = draft.confidence;
        content.properties = properties_of(draft);
        // To those who see it from now on, the node begins with this draft.
        content.changed_at = None;
        content.ingested_at = now;
        self.is_exported = false;
        self.is_changed = true;
        before
    }

    /// Puts an evidence record first: the text that the node's words come from.
    fn lead_with(&mut self, evidence: Uuid) {
        let records = &mut self.content.evidence;
        let at = records.iter().position(|(known, _)| *known == evidence);
        if let Some(records) = at.and_then(|at| records.get_mut(..=at)) {
            records.rotate_right(1);
        }
    }

    /// Merges the content of a draft.
    fn absorb(&mut self, draft: &NodeDraft, source: DraftSource) -> Result<Absorption, DomainError> {
        let stricter = draft.tlp > self.content.tlp;
        let is_retired = self.is_retired();
        // Of a node that nobody states any more there is nothing to protect.
        if stricter && source != DraftSource::Same && !is_retired {
            return Ok(Absorption::TooRestricted);
        }
        let mut changed = stricter || is_retired;
        if is_retired {
            self.content.status = NodeStatus::Active;
        }
        let content = &mut self.content;
        // An object that came in as STIX leaves with its own fields; its confidence is the row's.
        let is_stix = content.is_stix;
        self.is_exported |= is_stix && draft.confidence > content.confidence;
        if stricter {
            // A source that restricts its own earlier statement restricts the node.
            content.tlp = draft.tlp;
        }
        if draft.confidence > content.confidence {
            content.confidence = draft.confidence;
            changed = true;
        }
        let speaks = stricter || content.description.is_empty();
        if speaks && !draft.description.is_empty() && content.description != draft.description {
            content.description.clone_from(&draft.description);
            changed = true;
        }
        changed |= self.unite(draft, stricter)?;
        self.is_changed |= changed;
        self.is_exported |= changed && !is_stix && !self.is_new;
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
        let renamed = names && !draft.name.eq_ignore_ascii_case(&self.content.name);
        if draft.properties.is_empty() && !renamed {
            return Ok(false);
        }
        let (mut changed, mut restated) = (false, None);
        let properties = match &mut self.properties {
            Some(properties) => properties,
            none => none.insert(serde_json::from_str(&self.content.properties).map_err(damaged)?),
        };
        let stated = draft.properties.map();
        let own = self.content.source.clone();
        let names = renamed.then_some(draft.name.as_str()).into_iter();
        for alias in names.chain(aliases_of(&stated)) {
            // Who states an alias is in no export, and no news of the node.
            self.is_changed |= note_sources(properties, &own, alias, [draft.source.as_str()]);
        }
        for (key, value) in stated {
            match (properties.get_mut(&key), value) {
                _ if key == ALIASES_FROM => {}
                (Some(_), Value::Array(more)) if key == ENTRIES => {
                    let before = comment_of(properties);
                    changed |= unite_entries(properties, more);
                    restated = (comment_of(properties) != before).then_some(before);
                }
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
        if let Some(before) = restated {
            changed |= self.restate(before.as_deref(), &draft.description);
        }
        Ok(changed)
    }
}

/// What a draft says. Who states an alias is for the graph to say.
fn properties_of(draft: &NodeDraft) -> String {
    let said = draft.properties.text();
    if !said.contains(ALIASES_FROM) {
        return said.to_owned();
    }
    let mut said = draft.properties.map();
    said.remove(ALIASES_FROM);
    Value::Object(said).to_string()
}

fn comment_of(properties: &Map<String, Value>) -> Option<String> {
    properties.get("comment")?.as_str().map(str::to_owned)
}

fn damaged(cause: serde_json::Error) -> DomainError {
    DomainError::internal("a stored row is damaged", cause)
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

#[cfg(test)]
mod tests;
