//! How a new note relates to stored ones: exact duplicates by digest, near-duplicates by their words. Anything less
//! certain is left to a language model or to the reader: sharing an actor or a tool proves nothing.
//!
//! Stored notes are searched before the note's turn to be written, beside the writes of others. In its turn the note is
//! compared with what was written since.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use super::core::NoteCore;
use super::graph::{MemoryGraph, NoteState};
use super::prepare::PreparedNote;
use super::scope::Scope;
use super::state::Memory;
use super::tuning::Tuning;
use super::wording::cosine_or_one;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::memory::note::Note;
use crate::domain::memory::similarity;
use crate::domain::tlp::Tlp;
use crate::search::{Filter, Mode, SearchIndex, embedding_text};

/// Number of stored notes a new one is compared with, where the index finds them.
const CANDIDATES: usize = 5;
/// Most notes with the same entities that are compared word by word; among more, the index finds the nearest.
const MAX_SIMILAR: usize = 8;
/// Most notes of an entity that are examined for having the same entities.
const MAX_EXAMINED: usize = 1_000;

/// The stored notes that a new one repeats in nearly the same words, best first, and up to which revision all stored
/// notes were considered.
#[derive(Debug, Default)]
pub(super) struct DuplicateCandidates {
    pub(super) near: Vec<Uuid>,
    pub(super) seen: u64,
}

/// Near-duplicates of the notes of a group, by the new note's id.
#[derive(Debug, Default)]
pub(super) struct NearDuplicates {
    near: HashMap<Uuid, Uuid>,
}

impl NearDuplicates {
    /// What is known of the notes of a group; call under the write lock. A note of the group, or one written a moment
    /// ago, comes before one that was stored earlier.
    pub(super) fn of(memory: &Memory, notes: &[&PreparedNote], tuning: &Tuning) -> Self {
        let mut known = Self::default();
        let (recent, graph) = (memory.recent(), memory.graph());
        for (place, new) in notes.iter().enumerate().filter(|(_, new)| new.evolve) {
            let earlier = notes.iter().take(place).rev().map(|old| &old.wording);
            let beside = earlier.chain(recent.after(new.looked.seen));
            let repeated = beside
                .filter(|old| new.wording.repeats(old, tuning))
                .map(|old| old.id);
            let stored = new.looked.near.iter().copied().filter(|id| graph.is_active(*id));
            // One of the group is not in the graph yet.
            let stands = |id: &Uuid| graph.note(*id).is_none_or(NoteState::is_active);
            let old = repeated.filter(stands).chain(stored).next();
            known.near.extend(old.map(|old| (new.note.id, old)));
        }
        known
    }

    pub(super) fn near_duplicate(&self, new: Uuid) -> Option<Uuid> {
        self.near.get(&new).copied()
    }
}

impl MemoryGraph {
    /// The active notes of a domain that mention all of these entities, newest first. `None` if there may be many.
    ///
    /// A near-duplicate has the same facts, so it mentions the same entities.
    fn notes_with(&self, domain: &str, mentions: &[Uuid]) -> Option<Vec<Uuid>> {
        let mut slots = Vec::with_capacity(mentions.len());
        for mention in mentions {
            let Some(slot) = self.entity_slot(*mention) else {
                return Some(Vec::new());
            };
            slots.push(slot);
        }
        let entities = slots.iter().filter_map(|slot| self.entity_in(*slot));
        let rarest = entities.min_by_key(|entity| entity.notes.len())?;
        if rarest.notes.len() > MAX_EXAMINED {
            return None;
        }
        let notes = rarest.notes.iter().rev().filter_map(|slot| self.note_in(*slot));
        let same = notes.filter(|note| {
            note.is_active()
                && *note.domain == *domain
                && slots.iter().all(|slot| note.mentions.contains(slot))
        });
        let found: Vec<Uuid> = same.map(|note| note.id).take(MAX_SIMILAR + 1).collect();
        (found.len() <= MAX_SIMILAR).then_some(found)
    }
}

impl NoteCore {
    /// Finds the stored notes that these notes repeat.
    pub(super) async fn look_up(
        &self,
        memory: &Memory,
        notes: &mut [&mut PreparedNote],
        tuning: &Tuning,
    ) -> Result<(), DomainError> {
        if notes.is_empty() {
            return Ok(());
        }
        let seen = self.notes.state(memory.workspace).wait_until_visible().await?;
        let mut candidates: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
        let mut asked = Vec::new();
        for prepared in notes.iter_mut() {
            prepared.looked = DuplicateCandidates {
                near: Vec::new(),
                seen,
            };
            let note = &prepared.note;
            let graph = memory.graph();
            if graph.duplicate_of(&prepared.digest).is_some() {
                continue;
            }
            match graph.notes_with(&note.domain, &note.mentions) {
                Some(found) => drop(candidates.insert(note.id, found)),
                None => asked.push(SimilarNotesQuery::of(note, prepared.wording.vector.clone())),
            }
        }
        let found = self.candidates(memory, asked, tuning.near_cosine).await?;
        candidates.extend(found);
        candidates.retain(|_, found| !found.is_empty());
        if candidates.is_empty() {
            return Ok(());
        }
        self.compare(memory, notes, candidates, tuning).await
    }

    /// Compares notes with their candidates, word by word.
    async fn compare(
        &self,
        memory: &Memory,
        notes: &mut [&mut PreparedNote],
        mut candidates: HashMap<Uuid, Vec<Uuid>>,
        tuning: &Tuning,
    ) -> Result<(), DomainError> {
        let ids: Vec<Uuid> = candidates.values().flatten().copied().collect();
        let stored = self.notes.store.notes_by_id(memory.workspace, &ids).await?;
        let stored: HashMap<Uuid, Note> = stored.into_iter().map(|note| (note.id, note)).collect();
        let wordings = notes.iter().filter_map(|prepared| {
            let found = candidates.remove(&prepared.note.id)?;
            Some((
                Arc::clone(&prepared.wording),
                prepared.note.content.clone(),
                found,
            ))
        });
        let asked: Vec<_> = wordings.collect();
        let index = (!self.notes.remote_model()).then(|| Arc::clone(&self.notes.index));
        let tuning = tuning.clone();
        let mut near: HashMap<Uuid, Vec<Uuid>> = blocking(move || {
            let compared = asked.into_iter().map(|(wording, content, mut found)| {
                found.retain(|id| {
                    stored.get(id).is_some_and(|old| {
                        old.domain == wording.domain
                            && old.superseded_by.is_none()
                            && similarity::is_near_duplicate(&old.content, &content, tuning.near_overlap)
                            && cosine_or_one(
                                vector_of(index.as_deref(), old).as_deref(),
                                wording.vector.as_deref(),
                            ) >= tuning.near_cosine
                    })
                });
                (wording.id, found)
            });
            Ok(compared.collect())
        })
        .await?;
        for prepared in notes {
            prepared.looked.near = near.remove(&prepared.note.id).unwrap_or_default();
        }
        Ok(())
    }

    /// Stored notes whose text is repeated here with something new about it: a better tier or another source.
    pub(super) async fn find_repeated(
        &self,
        memory: &Memory,
        notes: &[&PreparedNote],
    ) -> Result<HashMap<Uuid, Note>, DomainError> {
        let ids: Vec<Uuid> = {
            let graph = memory.graph();
            let stored = |prepared: &&&PreparedNote| graph.note(graph.duplicate_of(&prepared.digest)?);
            let adds = |prepared: &&&PreparedNote| {
                let new = &prepared.note;
                let better = |known: &&NoteState| new.tier.as_str() < known.tier.as_str();
                stored(prepared).filter(|known| better(known) || !new.source_refs.is_empty())
            };
            let evolving = notes.iter().filter(|prepared| prepared.evolve);
            evolving
                .filter_map(|prepared| Some(adds(&prepared)?.id))
                .collect()
        };
        let stored = self.notes.store.notes_by_id(memory.workspace, &ids).await?;
        Ok(stored.into_iter().map(|note| (note.id, note)).collect())
    }

    /// For each note, the nearest stored notes of its domain: by meaning, or by words where it has no vector yet.
    pub(super) async fn candidates(
        &self,
        memory: &Memory,
        asked: Vec<SimilarNotesQuery>,
        near: f32,
    ) -> Result<Vec<(Uuid, Vec<Uuid>)>, DomainError> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let target = self.notes_index(memory).await?;
        let graph = Arc::clone(&memory.graph);
        blocking(move || {
            let look = |asked: SimilarNotesQuery| {
                let filter = Filter {
                    only: Scope::of_domain(&asked.domain).filter(&graph),
                    ..Filter::up_to(Tlp::White)
                };
                let mode = if asked.vector.is_some() {
                    Mode::Vector
                } else {
                    Mode::Keyword
                };
                let hits = target
                    .search(&asked.text, asked.vector.as_deref(), mode, &filter, CANDIDATES)
                    .map_err(index_error)?;
                let close = hits
                    .into_iter()
                    .filter(|hit| hit.node_id != asked.note && (mode == Mode::Keyword || hit.score >= near));
                Ok((asked.note, close.map(|hit| hit.node_id).collect()))
            };
            asked.into_iter().map(look).collect()
        })
        .await
    }
}

/// The vector of a stored note, made anew: only a note in nearly the same words gets this far.
fn vector_of(index: Option<&SearchIndex>, note: &Note) -> Option<Vec<i8>> {
    let text = embedding_text("", &[], &note.content);
    index?.embed_query(&text).ok()
}

/// A note whose neighbours are wanted.
pub(super) struct SimilarNotesQuery {
    note: Uuid,
    domain: String,
    text: String,
    vector: Option<Vec<i8>>,
}

impl SimilarNotesQuery {
    pub(super) fn of(note: &Note, vector: Option<Vec<i8>>) -> Self {
        Self {
            note: note.id,
            domain: note.domain.clone(),
            text: note.content.clone(),
            vector,
        }
    }
}
