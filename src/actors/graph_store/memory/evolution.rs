//! How a new note relates to stored ones: exact duplicates by digest, near-duplicates by their words. Anything less
//! certain is left to a language model or to the reader: sharing an actor or a tool proves nothing.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use super::prepare::Prepared;
use super::recall::in_domain;
use super::state::Memory;
use super::tuning::Tuning;
use crate::actors::graph_store::core::{GraphCore, index_failed};
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::memory::note::Note;
use crate::domain::memory::similarity;
use crate::domain::tlp::Tlp;
use crate::search::{Filter, Mode};

/// Number of stored notes a new one is compared with.
const CANDIDATES: usize = 5;

/// Near-duplicates of the notes of a group, by the new note's id.
#[derive(Debug, Default)]
pub(super) struct Known {
    near: HashMap<Uuid, Uuid>,
}

impl Known {
    pub(super) fn near_duplicate(&self, new: Uuid) -> Option<Uuid> {
        self.near.get(&new).copied()
    }
}

impl GraphCore {
    /// Finds the stored notes that these notes repeat. Call under the write lock.
    pub(super) async fn known(
        &self,
        memory: &Memory,
        notes: &[&Prepared],
        tuning: &Tuning,
    ) -> Result<Known, DomainError> {
        if !notes.iter().any(|prepared| prepared.evolve) {
            return Ok(Known::default());
        }
        // Notes written a moment ago must be found too.
        self.state(memory.workspace).settled().await?;
        let asked: Vec<Asked> = notes
            .iter()
            .filter(|prepared| prepared.evolve)
            .filter(|prepared| memory.graph().duplicate_of(&prepared.digest).is_none())
            .map(|prepared| Asked::of(&prepared.note, prepared.vector.clone()))
            .collect();
        let candidates = self.candidates(memory, asked, tuning.near_cosine).await?;
        let ids: Vec<Uuid> = candidates.iter().flat_map(|(_, found)| found).copied().collect();
        let stored = self.store.notes_by_id(memory.workspace, &ids).await?;
        let stored: HashMap<Uuid, Note> = stored.into_iter().map(|note| (note.id, note)).collect();
        let mut known = within_group(notes, tuning);
        let by_id: HashMap<Uuid, &Note> = notes
            .iter()
            .map(|prepared| (prepared.note.id, &prepared.note))
            .collect();
        for (new, found) in candidates {
            let Some(note) = by_id.get(&new) else { continue };
            let same = found.into_iter().find(|id| {
                stored.get(id).is_some_and(|old| {
                    old.domain == note.domain
                        && old.superseded_by.is_none()
                        && similarity::near_duplicate(&old.content, &note.content, tuning.near_overlap)
                })
            });
            if let Some(old) = same {
                known.near.entry(new).or_insert(old);
            }
        }
        Ok(known)
    }

    /// Stored notes whose text is repeated here with something new about it: a better tier or another source.
    pub(super) async fn repeated(
        &self,
        memory: &Memory,
        notes: &[&Prepared],
    ) -> Result<HashMap<Uuid, Note>, DomainError> {
        let ids: Vec<Uuid> = {
            let graph = memory.graph();
            let stored = |prepared: &&&Prepared| graph.note(graph.duplicate_of(&prepared.digest)?);
            let adds = |prepared: &&&Prepared| {
                let new = &prepared.note;
                stored(prepared).filter(|head| new.tier < head.tier || !new.source_refs.is_empty())
            };
            let evolving = notes.iter().filter(|prepared| prepared.evolve);
            evolving
                .filter_map(|prepared| Some(adds(&prepared)?.id))
                .collect()
        };
        let stored = self.store.notes_by_id(memory.workspace, &ids).await?;
        Ok(stored.into_iter().map(|note| (note.id, note)).collect())
    }

    /// For each note, the nearest stored notes of its domain: by meaning, or by words where it has no vector yet.
    pub(super) async fn candidates(
        &self,
        memory: &Memory,
        asked: Vec<Asked>,
        near: f32,
    ) -> Result<Vec<(Uuid, Vec<Uuid>)>, DomainError> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let target = self.index_of(memory.workspace).await?;
        let graph = Arc::clone(&memory.graph);
        blocking(move || {
            let look = |asked: Asked| {
                let filter = Filter {
                    only: in_domain(&graph, &asked.domain),
                    ..Filter::up_to(Tlp::White)
                };
                let mode = if asked.vector.is_some() {
                    Mode::Vector
                } else {
                    Mode::Keyword
                };
                let hits = target
                    .search(&asked.text, asked.vector.as_deref(), mode, &filter, CANDIDATES)
                    .map_err(index_failed)?;
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

/// A note whose neighbours are wanted.
pub(super) struct Asked {
    note: Uuid,
    domain: String,
    text: String,
    vector: Option<Vec<i8>>,
}

impl Asked {
    pub(super) fn of(note: &Note, vector: Option<Vec<i8>>) -> Self {
        Self {
            note: note.id,
            domain: note.domain.clone(),
            text: note.content.clone(),
            vector,
        }
    }
}

/// Near-duplicates among notes that arrived together: a later one supersedes an earlier one.
fn within_group(notes: &[&Prepared], tuning: &Tuning) -> Known {
    let mut known = Known::default();
    for (place, new) in notes.iter().enumerate().filter(|(_, new)| new.evolve) {
        let earlier = notes.iter().take(place).rev();
        let same = earlier.filter(|old| old.digest != new.digest).find(|old| {
            old.note.domain == new.note.domain
                && alike(old, new) >= tuning.near_cosine
                && similarity::near_duplicate(&old.note.content, &new.note.content, tuning.near_overlap)
        });
        known.near.extend(same.map(|old| (new.note.id, old.note.id)));
    }
    known
}

/// Cosine similarity of two notes; 1 where a vector is missing, so that the words decide.
fn alike(a: &Prepared, b: &Prepared) -> f32 {
    let (Some(a), Some(b)) = (&a.vector, &b.vector) else {
        return 1.0;
    };
    let dot = |x: &[i8], y: &[i8]| -> f32 {
        x.iter()
            .zip(y)
            .map(|(x, y)| i32::from(*x) * i32::from(*y))
            .sum::<i32>() as f32
    };
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { dot(a, b) / lengths } else { 1.0 }
}
