//! Notes out: words, meaning, the neighbourhood of what the question names, and recency where it is asked for.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::graph::MemoryGraph;
use super::{FoundNote, Memory, NotesFound, RecallNotes, Tuning};
use crate::actors::graph_store::core::{GraphCore, index_failed};
use crate::actors::job::blocking;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::extraction::question_filters;
use crate::domain::memory::intent::{Intent, intent_of};
use crate::domain::tlp::Tlp;
use crate::search::{Filter, Hit, Mode, Only};

/// Notes that words and meaning contribute.
const POOL: usize = 100;
/// Notes that each entity of the question, and each of its relations, contributes.
const PER_ENTITY: usize = 100;
const PER_RELATED: usize = 20;
/// Related entities that are looked at.
const RELATED: usize = 50;
/// What a note is worth that mentions only something related to what the question names.
const ONE_STEP: f32 = 0.4;
/// Words of a question in which names are looked for, and words of the longest name.
const WORDS: usize = 64;
const LONGEST_NAME: usize = 5;

impl GraphCore {
    /// Searches the notes.
    pub(super) async fn recall_notes(&self, message: RecallNotes) -> Result<NotesFound, DomainError> {
        let memory = self.memory().await?;
        let RecallNotes { query, k, domain } = message;
        let target = self.index_of(memory.workspace).await?;
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
                only: domain.clone().map(|domain| in_domain(Arc::clone(&graph), domain)),
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
            let graph = graph.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            let ranking = Ranking {
                graph: &graph,
                tuning: &tuning,
                intent,
                now,
            };
            let near = ranking.neighbourhood(&query, domain.as_deref());
            Ok((intent, ranking.fuse(found, near, k)))
        })
        .await?;
        Ok(NotesFound {
            notes: self.found_notes(memory, hits).await?,
            intent,
        })
    }

    async fn found_notes(&self, memory: &Memory, hits: Vec<Hit>) -> Result<Vec<FoundNote>, DomainError> {
        let ids: Vec<Uuid> = hits.iter().map(|hit| hit.node_id).collect();
        let stored = self.store.notes_by_id(memory.workspace, &ids).await?;
        let mut by_id: HashMap<Uuid, _> = stored.into_iter().map(|note| (note.id, note)).collect();
        let graph = memory.graph();
        let found = hits.into_iter().filter_map(|hit| {
            let note = by_id.remove(&hit.node_id)?;
            Some(FoundNote {
                entities: graph.values(&note.mentions),
                score: hit.score,
                note,
            })
        });
        // It may have lost its place since the index was asked.
        Ok(found.filter(|found| found.note.superseded_by.is_none()).collect())
    }
}

fn in_domain(graph: Arc<std::sync::RwLock<MemoryGraph>>, domain: String) -> Only {
    Only::new(move |note| {
        let graph = graph.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        graph.note(note).is_some_and(|head| head.domain == domain)
    })
}

/// One question's view of the graph.
struct Ranking<'a> {
    graph: &'a MemoryGraph,
    tuning: &'a Tuning,
    intent: Intent,
    now: DateTime<Utc>,
}

impl Ranking<'_> {
    /// The notes that mention what the question names, or what is related to it, from 0 to 1.
    fn neighbourhood(&self, query: &str, domain: Option<&str>) -> HashMap<Uuid, f32> {
        let asked = self.asked(query);
        let mut near: HashMap<Uuid, f32> = HashMap::new();
        let share = 1.0 / asked.len().max(1) as f32;
        let wanted = |note: &Uuid| {
            domain.is_none_or(|domain| self.graph.note(*note).is_some_and(|head| head.domain == domain))
        };
        for entity in &asked {
            for note in self
                .graph
                .notes_about(*entity, PER_ENTITY)
                .iter()
                .filter(|note| wanted(note))
            {
                *near.entry(*note).or_default() += share;
            }
        }
        for entity in &asked {
            for related in self
                .graph
                .related(*entity)
                .into_iter()
                .filter(|slot| !asked.contains(slot))
                .take(RELATED)
            {
                for note in self
                    .graph
                    .notes_about(related, PER_RELATED)
                    .iter()
                    .filter(|note| wanted(note))
                {
                    let worth = near.entry(*note).or_default();
                    *worth = worth.max(share * ONE_STEP);
                }
            }
        }
        near
    }

    /// The entities a question names: by the rules, or by a name that only this memory knows.
    fn asked(&self, query: &str) -> Vec<usize> {
        let filters = question_filters(query);
        let names = filters
            .names
            .iter()
            .chain(&filters.identifiers)
            .map(String::as_str);
        let mut asked = self.graph.named(names);
        let words: Vec<&str> = query.split_whitespace().take(WORDS).collect();
        for length in 1..=LONGEST_NAME.min(words.len()) {
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

    /// One list out of the search's and the graph's: each adds its part, and the sum is brought back to 0 to 1.
    fn fuse(&self, found: Vec<Hit>, near: HashMap<Uuid, f32>, k: usize) -> Vec<Hit> {
        let graph_weight = match self.intent {
            // Who asks for relations asks the graph.
            Intent::Relational | Intent::Causal => self.tuning.graph_weight * 1.5,
            Intent::Factual | Intent::Temporal | Intent::Exploratory => self.tuning.graph_weight,
        };
        let recency_weight = match self.intent {
            Intent::Temporal => self.tuning.recency_weight,
            Intent::Factual | Intent::Relational | Intent::Causal | Intent::Exploratory => 0.0,
        };
        let mut scores: HashMap<Uuid, f32> = found.iter().map(|hit| (hit.node_id, hit.score)).collect();
        for note in near.keys() {
            scores.entry(*note).or_insert(0.0);
        }
        let whole = 1.0 + graph_weight + recency_weight;
        let mut hits: Vec<Hit> = scores
            .into_iter()
            .filter(|(note, _)| self.graph.is_active(*note))
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

    /// 1 for a note of this moment, halved with every half-life.
    fn recency(&self, note: Uuid) -> f32 {
        let Some(head) = self.graph.note(note) else {
            return 0.0;
        };
        let age = self.now.signed_duration_since(head.created_at);
        let days = (age.num_seconds().max(0) as f64) / 86_400.0;
        0.5f64.powf(days / self.tuning.half_life_days.max(0.01)) as f32
    }
}
