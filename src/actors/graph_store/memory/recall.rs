//! Recall of notes: by words, by meaning, by the graph around the entities in the question, and by recency if asked
//! for.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::graph::{MemoryGraph, NoteState, Slot};
use super::state::Memory;
use super::tuning::Tuning;
use super::{FoundNote, NotesFound, RecallNotes};
use crate::actors::graph_store::core::{GraphCore, index_failed};
use crate::actors::job::blocking;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::extraction::question_filters;
use crate::domain::memory::intent::{Intent, intent_of};
use crate::domain::memory::note::{Note, domain_of};
use crate::domain::tlp::Tlp;
use crate::search::{Filter, Hit, Mode, Only};

/// Maximum number of notes contributed by word and vector search.
const POOL: usize = 100;
/// Maximum number of notes contributed by each entity of the question, and by each related entity.
const PER_ENTITY: usize = 100;
const PER_RELATED: usize = 20;
/// Maximum number of related entities considered.
const RELATED: usize = 50;
/// Score of a note that mentions only something related to what the question names.
const ONE_STEP: f32 = 0.4;
/// Maximum number of successors followed while a note is read.
const MAX_SUCCESSIONS: usize = 16;
/// Words of a question that are searched for names, and words of the longest name.
const WORDS: usize = 64;
const MAX_NAME_LENGTH: usize = 5;

impl GraphCore {
    /// Searches the notes.
    pub(super) async fn recall_notes(&self, message: RecallNotes) -> Result<NotesFound, DomainError> {
        let memory = self.memory().await?;
        let RecallNotes { query, k, domain } = message;
        let domain = domain.map(|domain| domain_of(&domain).to_owned());
        let target = self.notes_index(memory).await?;
        let (index, graph) = (Arc::clone(&self.index), Arc::clone(&memory.graph));
        let tuning = (memory.tuning)();
        let now = clock::now();
        let (intent, hits) = blocking(move || {
            let intent = intent_of(&query);
            let vector = index.embed_query(&query);
            if let Err(error) = &vector {
                tracing::warn!(%error, "embedding the query failed; searching by words and graph only");
            }
            let filter = Filter {
                only: domain.as_deref().and_then(|domain| in_domain(&graph, domain)),
                ..Filter::up_to(Tlp::White)
            };
            let found = target
                .search(
                    &query,
                    vector.as_deref().ok(),
                    Mode::Blended,
                    &filter,
                    POOL.max(k),
                )
                .map_err(index_failed)?;
            let graph = locked(&graph);
            let ranking = Ranking {
                graph: &graph,
                tuning: &tuning,
                intent,
                now,
            };
            let near = ranking.neighbourhood(&query, domain.as_deref());
            // A note of another domain may have arrived since the filter was built.
            let found = found
                .into_iter()
                .filter(|hit| ranking.is_of(hit.node_id, domain.as_deref()));
            Ok((intent, ranking.fuse(found.collect(), near, k)))
        })
        .await?;
        Ok(NotesFound {
            notes: self.found_notes(memory, hits).await?,
            intent,
        })
    }

    /// The notes of these hits; a note superseded since the search is replaced by its successor.
    pub(super) async fn found_notes(
        &self,
        memory: &Memory,
        mut hits: Vec<Hit>,
    ) -> Result<Vec<FoundNote>, DomainError> {
        let mut stored: HashMap<Uuid, Note> = HashMap::new();
        for _ in 0..MAX_SUCCESSIONS {
            let ids = hits.iter().map(|hit| hit.node_id);
            let new: Vec<Uuid> = ids.filter(|id| !stored.contains_key(id)).collect();
            let notes = self.store.notes_by_id(memory.workspace, &new).await?;
            stored.extend(notes.into_iter().map(|note| (note.id, note)));
            let mut moved = false;
            for hit in &mut hits {
                let by = stored.get(&hit.node_id).and_then(|note| note.superseded_by);
                if let Some(by) = by {
                    hit.node_id = by;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let graph = memory.graph();
        let found = hits.into_iter().filter_map(|hit| {
            // Two hits may have the same successor.
            let note = stored
                .remove(&hit.node_id)
                .filter(|note| note.superseded_by.is_none())?;
            Some(FoundNote {
                entities: graph.values(&note.mentions),
                score: hit.score,
                note,
            })
        });
        Ok(found.collect())
    }
}

/// A filter that passes only notes of a domain; `None` when every note belongs to it.
pub(super) fn in_domain(graph: &Arc<RwLock<MemoryGraph>>, domain: &str) -> Option<Only> {
    if locked(graph).is_all_of(domain) {
        return None;
    }
    let (graph, domain) = (Arc::clone(graph), domain.to_owned());
    Some(Only::new(move |note| {
        locked(&graph)
            .note(note)
            .is_some_and(|head| *head.domain == *domain)
    }))
}

fn locked(graph: &RwLock<MemoryGraph>) -> RwLockReadGuard<'_, MemoryGraph> {
    graph.read().unwrap_or_else(PoisonError::into_inner)
}

/// A view of the graph for one question.
pub(super) struct Ranking<'a> {
    pub(super) graph: &'a MemoryGraph,
    pub(super) tuning: &'a Tuning,
    pub(super) intent: Intent,
    pub(super) now: DateTime<Utc>,
}

impl Ranking<'_> {
    /// Notes that mention what the question names, or something related to it, scored from 0 to 1.
    fn neighbourhood(&self, query: &str, domain: Option<&str>) -> HashMap<Uuid, f32> {
        let asked = self.asked(query);
        let mut near: HashMap<Uuid, f32> = HashMap::new();
        let share = 1.0 / asked.len().max(1) as f32;
        let wanted = |note: &&NoteState| domain.is_none_or(|domain| *note.domain == *domain);
        for entity in &asked {
            let notes = self.graph.notes_about(*entity, PER_ENTITY);
            for note in notes.filter(|note| wanted(note)) {
                *near.entry(note.id).or_default() += share;
            }
        }
        for entity in &asked {
            for related in self.graph.related(*entity, &asked, RELATED) {
                let notes = self.graph.notes_about(related, PER_RELATED);
                for note in notes.filter(|note| wanted(note)) {
                    let worth = near.entry(note.id).or_default();
                    *worth = worth.max(share * ONE_STEP);
                }
            }
        }
        near
    }

    /// Whether a note belongs to the requested domain.
    fn is_of(&self, note: Uuid, domain: Option<&str>) -> bool {
        domain.is_none_or(|domain| self.graph.note(note).is_some_and(|head| *head.domain == *domain))
    }

    /// The entities a question names: found by the rules, or by a name that only this memory knows.
    fn asked(&self, query: &str) -> Vec<Slot> {
        let filters = question_filters(query);
        let names = filters
            .names
            .iter()
            .chain(&filters.identifiers)
            .map(String::as_str);
        let mut asked = self.graph.named(names);
        let words: Vec<&str> = query.split_whitespace().take(WORDS).collect();
        for length in 1..=MAX_NAME_LENGTH.min(words.len()) {
            for phrase in words.windows(length) {
                for slot in self.graph.named([phrase.join(" ").as_str()]) {
                    if !asked.contains(&slot) {
                        asked.push(slot);
                    }
                }
            }
        }
        asked
    }

    /// Fuses the results of search and graph: the weighted scores are added and scaled back to 0 to 1.
    pub(super) fn fuse(&self, found: Vec<Hit>, near: HashMap<Uuid, f32>, k: usize) -> Vec<Hit> {
        let graph_weight = match self.intent {
            // A question about relations weighs the graph more.
            Intent::Relational | Intent::Causal => self.tuning.graph_weight * 1.5,
            Intent::Factual | Intent::Temporal | Intent::Exploratory => self.tuning.graph_weight,
        };
        let recency_weight = match self.intent {
            Intent::Temporal => self.tuning.recency_weight,
            Intent::Factual | Intent::Relational | Intent::Causal | Intent::Exploratory => 0.0,
        };
        let mut scores: HashMap<Uuid, f32> = near.keys().map(|note| (*note, 0.0)).collect();
        for hit in &found {
            // A note superseded a moment ago may still be in the index, and its successor not yet.
            let Some(note) = self.graph.current(hit.node_id) else {
                continue;
            };
            let score = scores.entry(note).or_default();
            *score = score.max(hit.score);
        }
        let whole = 1.0 + graph_weight + recency_weight;
        let mut hits: Vec<Hit> = scores
            .into_iter()
            .map(|(node_id, score)| {
                let near = near.get(&node_id).copied().unwrap_or(0.0);
                let recent = if recency_weight > 0.0 {
                    self.recency(node_id)
                } else {
                    0.0
                };
                Hit {
                    node_id,
                    score: (score + graph_weight * near + recency_weight * recent) / whole,
                }
            })
            .collect();
        hits.sort_unstable_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| b.node_id.cmp(&a.node_id))
        });
        hits.truncate(k);
        hits
    }

    /// 1 for a note written now, halved with every half-life.
    fn recency(&self, note: Uuid) -> f32 {
        let Some(head) = self.graph.note(note) else {
            return 0.0;
        };
        let age = self.now.signed_duration_since(head.created_at);
        let days = (age.num_seconds().max(0) as f64) / 86_400.0;
        0.5f64.powf(days / self.tuning.half_life_days.max(0.01)) as f32
    }
}
