//! Preparation of a note: everything that can be derived from the note alone.

use std::sync::Arc;

use uuid::Uuid;

use super::evolution::DuplicateCandidates;
use super::known_names::NoteNames;
use super::tuning::{PiiAction, Tuning};
use super::wording::Wording;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::ids::WorkspaceIds;
use crate::domain::memory::digest::{self, Digest};
use crate::domain::memory::entity::{Mentions, mentions_with};
use crate::domain::memory::note::{self, NewNote, Note};
use crate::domain::memory::{injection, tier};
use crate::domain::pii;
use crate::search::{SearchIndex, embedding_text};

/// A note with everything derived from it before its turn to be written.
pub(super) struct PreparedNote {
    pub(super) note: Note,
    pub(super) digest: Digest,
    pub(super) evolve: bool,
    pub(super) mentions: Mentions,
    pub(super) wording: Arc<Wording>,
    /// The stored notes that it repeats, as far as they have been looked up.
    pub(super) looked: DuplicateCandidates,
}

/// Derives what can be known about a note without looking at any other; `names` are those that the memory knows already, and
/// learn those of this note.
pub(super) fn prepare(
    ids: WorkspaceIds,
    new: NewNote,
    tuning: &Tuning,
    index: Option<&SearchIndex>,
    names: &mut NoteNames<'_>,
) -> Result<PreparedNote, DomainError> {
    let NewNote {
        mut content,
        mut domain,
        mut source_type,
        mut source_ref,
        evolve,
    } = new;
    domain = note::domain_of(&domain).to_owned();
    let mut flags = Vec::new();
    if let Some(action) = tuning.pii {
        for (field, text) in [
            ("content", &mut content),
            ("domain", &mut domain),
            ("source_type", &mut source_type),
            ("source_ref", &mut source_ref),
        ] {
            let given = std::mem::take(text);
            *text = without_personal_data(field, given, action, &mut flags)?;
        }
    }
    if let Some(rule) = injection::prompt_injection(&content) {
        flags.push(format!("prompt-injection:{rule}"));
    }
    let mentions = mentions_with(&content, &names.in_text(&content));
    names.learn(&mentions);
    let vector = index.and_then(|index| {
        let text = embedding_text("", &[], &content);
        index.embed_query(&text).ok()
    });
    let tier = tier::tier_of(&source_type);
    let note = Note {
        id: Uuid::now_v7(),
        mentions: mentions
            .entities
            .iter()
            .map(|entity| ids.entity(&entity.key))
            .collect(),
        confidence: tier::confidence_of(tier),
        tier: tier.as_str().to_owned(),
        domain,
        source_type,
        source_refs: Some(source_ref.clone())
            .filter(|source| !source.is_empty())
            .into_iter()
            .collect(),
        source_ref,
        flags,
        superseded_by: None,
        created_at: clock::now(),
        content,
    };
    let digest = digest::digest(&note.domain, &note.content);
    Ok(PreparedNote {
        wording: Arc::new(Wording::of(&note, digest, vector)),
        digest,
        note,
        evolve,
        mentions,
        looked: DuplicateCandidates::default(),
    })
}

fn without_personal_data(
    field: &str,
    content: String,
    action: PiiAction,
    flags: &mut Vec<String>,
) -> Result<String, DomainError> {
    let mut kinds: Vec<&str> = pii::find(&content).iter().map(|hit| hit.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        return Ok(content);
    }
    if action == PiiAction::Block {
        let rule = format!(
            "holds personal data ({}), which governance.pii.action blocks",
            kinds.join(", ")
        );
        return Err(DomainError::invalid(field, rule));
    }
    tracing::warn!(kinds = kinds.join(","), "a note holds personal data");
    for flag in kinds.iter().map(|kind| format!("pii:{kind}")) {
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    Ok(match action {
        PiiAction::Redact => pii::redact(&content).0,
        PiiAction::Log | PiiAction::Block => content,
    })
}
