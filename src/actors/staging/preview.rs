//! Preview: extracts entities from a text and stages them under a marking that is allowed here.

use std::sync::Arc;

use uuid::Uuid;

use super::{BatchView, CommitBatch, ReadBatch, StagingCore, check_reviewable};
use crate::actors::extractor::Extract;
use crate::actors::graph_store::{FindDuplicates, FindKnownNames};
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::{DomainError, ErrorKind};
use crate::domain::extraction::{sensitivity, tlp_hint};
use crate::domain::node::NodeType;
use crate::domain::principal::Principal;
use crate::domain::staging::{
    AMBIGUOUS, DuplicateCandidate, ExtractedEntity, Extraction, IngestMode, MAX_ENTITIES, MatchKind,
    SourceType, StagedEntity, StagedStatus, StagingBatch, Summary,
};
use crate::domain::tlp::{Clearance, Tlp};
use crate::domain::warninglists;
use crate::store::{NewBatch, StagedText};

/// Default marking when neither the request nor the text states one, capped at the caller's clearance.
const FALLBACK: Tlp = Tlp::Amber;

/// A text with the entities found in it.
struct Read {
    batch: StagingBatch,
    marking: Marking,
    sensitive: bool,
    found: Extraction,
    entities: Vec<(StagedEntity, ExtractedEntity)>,
}

/// Extracts entities from a text into the open batch of its session, or into a new one.
#[derive(Debug)]
pub struct Preview {
    pub by: Principal,
    pub text: String,
    pub source_type: SourceType,
    pub session_id: Option<String>,
    pub mode: IngestMode,
    pub default_tlp: Option<Tlp>,
    pub default_confidence: Option<f64>,
}

/// The batch that a text was staged in.
#[derive(Debug)]
pub struct PreviewOutcome {
    pub view: BatchView,
    /// Whether the automatic mode has written something, nodes or evidence.
    pub is_committed: bool,
}

impl Work for Preview {
    type Core = StagingCore;
    type Reply = PreviewOutcome;
    const NAME: &'static str = "preview";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<StagingCore>) -> Result<Self::Reply, DomainError> {
        let read = core.read(&self).await?;
        let batch = core.stage(&self, &read).await?;
        let Preview { by, mode, .. } = self;
        let mut late = None;
        let mut is_committed = false;
        if mode == IngestMode::Auto {
            let by = by.clone();
            match core.commit_batch(CommitBatch { by, batch }).await {
                Ok(result) => {
                    let written = result.nodes_created + result.nodes_updated + result.evidence_created;
                    is_committed = written > 0;
                }
                // The batch exists and must not be submitted again; it can be committed later by its own endpoint.
                Err(error) if error.kind() == ErrorKind::Unavailable => late = Some(error),
                Err(error) => return Err(error),
            }
        }
        let mut view = core.read_batch(ReadBatch { by, batch }).await?;
        view.batch
            .warnings
            .extend(late.map(|error| format!("not committed yet ({error}); commit the batch later")));
        Ok(PreviewOutcome { view, is_committed })
    }
}

impl StagingCore {
    /// Extracts the entities of the text and looks up those already known.
    async fn read(&self, message: &Preview) -> Result<Read, DomainError> {
        let clearance = message.by.workspace.clearance();
        let marking = Marking::of(&message.text, message.default_tlp, clearance)?;
        let find = FindKnownNames {
            by: message.by.clone(),
            text: message.text.clone(),
        };
        let known = self.graph.call(find).await?;
        let extract = Extract {
            workspace: Some(message.by.workspace.id),
            text: message.text.clone(),
            source_type: message.source_type,
            known,
        };
        let mut found = self.extractor.call(extract).await?;
        if found.entities.len() > MAX_ENTITIES {
            let rule = format!("names more than {MAX_ENTITIES} entities; send it in parts");
            return Err(DomainError::invalid("text", rule));
        }
        let find = FindDuplicates {
            by: message.by.clone(),
            entities: found.entities.clone(),
        };
        let candidates = self.graph.call(find).await?;
        let id = Uuid::new_v4();
        let text_warnings = sensitivity(&message.text, marking.proposed);
        let warninglists = self.warninglists.current();
        let entities: Vec<(StagedEntity, ExtractedEntity)> = std::mem::take(&mut found.entities)
            .into_iter()
            .zip(candidates)
            .map(|(found, duplicates)| {
                let mut entity = entity(id, &found, duplicates, marking, message, &text_warnings);
                let listed = warninglists.of_node(found.node_type, &found.name, &found.properties);
                entity.warnings.extend(warninglists::warning(&listed));
                let confidence = entity.proposed_confidence;
                entity.proposed_confidence = self.warninglists.confidence(confidence, |_| listed);
                (entity, found)
            })
            .collect();
        let batch = StagingBatch {
            id,
            status: "open".into(),
            source_type: message.source_type,
            session_id: message.session_id.clone(),
            ingest_mode: message.mode,
            summary: Summary::of(entities.iter().map(|(entity, _)| entity)),
            warnings: std::mem::take(&mut found.warnings),
            created_at: clock::now(),
            committed_at: None,
        };
        Ok(Read {
            batch,
            marking,
            sensitive: !text_warnings.is_empty(),
            found,
            entities,
        })
    }

    /// Stages the text; texts of one session, and the same texts without one, are serialised, so that the second finds the batch
    /// of the first.
    async fn stage(&self, message: &Preview, read: &Read) -> Result<Uuid, DomainError> {
        let by = &message.by;
        let ws = by.workspace.id;
        let new = NewBatch {
            batch: &read.batch,
            user: by.user_id(),
            text: &message.text,
            tlp: read.marking.proposed,
            sensitive: read.sensitive,
            relations: &read.found.relations,
            entities: &read.entities,
        };
        let (resource, now) = ("staging_batch", read.batch.created_at);
        let entry = AuditEntry::by(by, "ingest.preview", resource, Outcome::Success, now);
        let audit = |staged: &StagedText| {
            entry
                .clone()
                .on(staged.batch)
                .with("part", staged.part)
                .with("entities", read.entities.len() as u64)
                .with("entities_added", staged.added)
                .with("ingest_mode", message.mode.as_str())
        };
        let of = message.session_id.as_ref().unwrap_or(&message.text);
        let highest = by.workspace.clearance().highest();
        let staged = {
            let _turn = self.turns.take(Uuid::new_v5(&ws, of.trim().as_bytes())).await;
            self.store.stage(ws, &new, highest, audit).await?
        };
        self.chain(audit(&staged)).await;
        Ok(staged.batch)
    }
}

/// The marking of everything in a text until a reviewer decides otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Marking {
    proposed: Tlp,
    /// Whether neither the request nor the text states a marking.
    missing: bool,
}

impl Marking {
    /// The marking requested, else the one the text states, else the default; the latter two are capped at the
    /// caller's clearance. If the text states a stricter one, every entity carries a warning.
    fn of(text: &str, asked: Option<Tlp>, clearance: Clearance) -> Result<Self, DomainError> {
        if let Some(asked) = asked {
            check_reviewable("default_tlp", asked, clearance)?;
        }
        let stated = asked.or_else(|| tlp_hint(text));
        Ok(Self {
            proposed: stated.unwrap_or(FALLBACK).min(clearance.highest()),
            missing: stated.is_none(),
        })
    }
}

/// The warning about an entity whose name or identifier several nodes have. Which of them is meant, a reviewer decides.
fn ambiguity(duplicates: &[DuplicateCandidate]) -> Option<String> {
    let mut named: Vec<String> = duplicates
        .iter()
        .filter(|candidate| candidate.matched != MatchKind::Semantic)
        .map(|candidate| format!("{} ({})", candidate.name, candidate.node_id))
        .collect();
    named.dedup();
    let last = named.pop().filter(|_| !named.is_empty())?;
    Some(format!("{AMBIGUOUS}may be {} or {last}", named.join(", ")))
}

/// One extracted entity, to be staged. In auto mode an entity without a sensitivity warning is accepted at once, unless
/// only a reviewer can tell whether the text states it, or which node it is.
fn entity(
    batch: Uuid,
    found: &ExtractedEntity,
    duplicates: Vec<DuplicateCandidate>,
    marking: Marking,
    message: &Preview,
    text_warnings: &[String],
) -> StagedEntity {
    let mut warnings = found.warnings.clone();
    warnings.extend(text_warnings.iter().cloned());
    for warning in sensitivity(&found.description, marking.proposed) {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    // Indicators of one value are about the same thing.
    let is_named = found.node_type != NodeType::Ioc;
    let ambiguity = is_named.then(|| ambiguity(&duplicates)).flatten();
    let is_ambiguous = ambiguity.is_some();
    warnings.extend(ambiguity);
    let mut entity = StagedEntity {
        id: Uuid::new_v4(),
        batch_id: batch,
        status: StagedStatus::Pending,
        node_type: found.node_type,
        name: found.name.clone(),
        description: found.description.clone(),
        proposed_tlp: marking.proposed,
        proposed_confidence: found.confidence_or(message.default_confidence),
        resolved_tlp: None,
        merge_target_id: None,
        duplicate_candidates: duplicates,
        warnings,
        extraction_reasoning: found.reasoning.clone(),
        node_id: None,
        unmarked: marking.missing,
    };
    let waits = entity.is_sensitive() || found.needs_reviewer() || is_ambiguous;
    if message.mode == IngestMode::Auto && !waits {
        entity.status = StagedStatus::Accepted;
    }
    entity
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_the_marking_it_states_as_far_as_the_caller_may_see_it() {
        for (text, ceiling, want) in [
            ("no marking", Tlp::White, (Tlp::White, true)),
            ("no marking", Tlp::Green, (Tlp::Green, true)),
            ("no marking", Tlp::Red, (Tlp::Amber, true)),
            ("TLP:GREEN it says", Tlp::Red, (Tlp::Green, false)),
            ("TLP:RED it says", Tlp::Green, (Tlp::Green, false)),
            ("TLP:RED it says", Tlp::Red, (Tlp::Red, false)),
        ] {
            let clearance = Clearance {
                ceiling,
                elevated: true,
            };
            let marking = Marking::of(text, None, clearance).unwrap();
            assert_eq!((marking.proposed, marking.missing), want, "{text} in {ceiling}");
        }
    }

    #[test]
    fn what_the_request_asks_for_is_never_lowered_in_silence() {
        let clearance = Clearance {
            ceiling: Tlp::Red,
            elevated: false,
        };
        let marking = Marking::of("TLP:RED", Some(Tlp::Green), clearance).unwrap();
        assert_eq!(marking.proposed, Tlp::Green);
        let error = Marking::of("TLP:RED", Some(Tlp::Red), clearance).unwrap_err();
        assert!(error.to_string().starts_with("default_tlp: is marked TLP:RED"));
    }
}
