//! A graph that is read as a whole.

use super::{EntityState, MemoryGraph, NameIndex, Slot};
use crate::actors::note_store::changes::Changes;
use crate::actors::note_store::known_names::named_kind;
use crate::capacity::search_pool;
use crate::search::canonical_key;

/// Number of entities from which names and keys are worth a thread each.
const MANY: usize = 10_000;

/// A graph whose names and keys are indexed once at the end, which is faster than entity by entity.
#[derive(Debug, Default)]
pub(in crate::actors::note_store) struct Loading(MemoryGraph);

impl Loading {
    /// Applies the changes of a durable write.
    pub(in crate::actors::note_store) fn apply(&mut self, changes: Changes) {
        self.0.apply_unindexed(changes);
    }

    pub(in crate::actors::note_store) fn end(self) -> MemoryGraph {
        let Self(mut graph) = self;
        let threads = (graph.entities.len() >= MANY).then(search_pool).flatten();
        let (by_key, by_name) = match threads {
            Some(threads) => threads.join(|| graph.sort_all(), || graph.names()),
            None => (graph.sort_all(), graph.names()),
        };
        graph.by_key = by_key;
        graph.by_name = by_name;
        graph
    }
}

impl MemoryGraph {
    /// Indexes an entity by its names and its key.
    pub(in crate::actors::note_store) fn index_entity(&mut self, slot: Slot) {
        let Some(new) = self.entity_in(slot) else {
            return;
        };
        let names: Vec<String> = new.all_names().map(canonical_key).collect();
        let in_texts = is_called_by_name(new);
        names
            .iter()
            .for_each(|name| self.by_name.add(name, slot, in_texts));
        self.sort_in(slot);
    }

    /// The names of all entities.
    fn names(&self) -> NameIndex {
        let mut names = NameIndex::with_capacity(self.entities.len());
        for (slot, entity) in Slot::from(&self.entities, 0).zip(&self.entities) {
            if entity.is_removed() {
                continue;
            }
            let in_texts = is_called_by_name(entity);
            for name in entity.all_names() {
                names.add(&canonical_key(name), slot, in_texts);
            }
        }
        names
    }
}

/// Whether texts call an entity by name.
pub(super) fn is_called_by_name(entity: &EntityState) -> bool {
    named_kind(&entity.entity_type).is_some()
}
