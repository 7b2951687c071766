//! The names in a note that the memory knows already.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::RwLock;

use super::graph::MemoryGraph;
use crate::domain::extraction::{EntityKind, KnownNames, KnownThing, each_phrase_of};
use crate::domain::memory::entity::{EntityDraft, Mentions};
use crate::search::{KeyStarts, canonical_key};

/// The names of the graph, and those that earlier notes of the same request introduce.
pub(super) struct NoteNames<'g> {
    graph: &'g RwLock<MemoryGraph>,
    earlier: HashMap<String, Vec<Arc<KnownThing>>>,
    /// How the keys of the earlier names begin.
    starts: KeyStarts,
}

impl<'g> NoteNames<'g> {
    pub(super) fn of(graph: &'g RwLock<MemoryGraph>) -> Self {
        Self {
            graph,
            earlier: HashMap::new(),
            starts: KeyStarts::default(),
        }
    }

    /// The names that stand in a text.
    pub(super) fn in_text(&self, text: &str) -> KnownNames {
        let mut known = KnownNames::default();
        let graph = self.graph.read();
        let mut seen = HashSet::new();
        let begins = |text: &str| graph.may_begin_name(text) || self.starts.may_begin(text);
        each_phrase_of(text, begins, |phrase| {
            if seen.contains(phrase) {
                return;
            }
            seen.insert(phrase.to_owned());
            let key = canonical_key(phrase);
            // A text means what it names, whatever stands for that at the moment.
            for entity in graph.own_entities_named(&key) {
                if let Some(thing) = thing_of_draft(&entity.draft) {
                    known.add(phrase, &Arc::new(thing));
                }
            }
            for thing in self.earlier.get(&key).into_iter().flatten() {
                known.add(phrase, thing);
            }
        });
        known
    }

    /// Lets the notes that follow know the names of this one.
    pub(super) fn learn(&mut self, mentions: &Mentions) {
        for draft in &mentions.entities {
            let Some(thing) = thing_of_draft(draft).map(Arc::new) else {
                continue;
            };
            let names = std::iter::once(&draft.name).chain(&draft.aliases);
            for name in names {
                let key = canonical_key(name);
                self.starts.add(&key);
                let same = self.earlier.entry(key).or_default();
                // What a later note says of it counts.
                same.retain(|known| known.kind != thing.kind || known.value != thing.value);
                same.push(Arc::clone(&thing));
            }
        }
    }
}

fn thing_of_draft(draft: &EntityDraft) -> Option<KnownThing> {
    Some(KnownThing {
        kind: named_kind(&draft.key.entity_type)?,
        name: draft.name.clone(),
        value: draft.key.value.clone(),
        aliases: draft.aliases.clone(),
        external_ids: Vec::new(),
    })
}

/// The kind of an entity type whose entities texts call by name.
pub(super) fn named_kind(entity_type: &str) -> Option<EntityKind> {
    let kind = EntityKind::of_local(entity_type)?;
    (kind.has_names() || kind == EntityKind::AttckTechnique).then_some(kind)
}
