//! Evidence records of what a node does not say itself.

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::domain::draft::{EvidenceDraft, JsonText, NodeDraft, identity};
use crate::domain::extraction::canonical_name;

/// Evidence kinds that hold the whole text a draft was made from.
pub(super) const WHOLE: [&str; 4] = ["analyst", "osint", "report", "staged"];

/// An evidence record without its original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHead {
    pub kind: String,
    pub ext_id: Option<String>,
    pub title: String,
    pub source: String,
}

impl RecordHead {
    /// Whether both are of one text: that of an address, or else of a title.
    pub(super) fn is_of_text(&self, other: &EvidenceDraft) -> bool {
        let is_same = match (&self.ext_id, &other.ext_id) {
            (Some(one), Some(other)) => one.trim_end_matches('/') == other.trim_end_matches('/'),
            (None, None) => canonical_name(&self.title) == canonical_name(&other.title),
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same && canonical_name(&self.source) == canonical_name(&other.source)
    }
}

/// An evidence record with the content of a draft that the node may not accept. `None` if the draft's own evidence
/// already holds the whole text at the same marking.
pub fn evidence_of_rejected(draft: &NodeDraft, evidence: &[EvidenceDraft]) -> Option<EvidenceDraft> {
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
