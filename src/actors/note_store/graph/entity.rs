//! An entity as the graph keeps it, in little memory: nearly every note may have one of its own.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{At, Slots};
use crate::domain::memory::entity::{EntityDraft, EntityKey};
use crate::domain::memory::tier::Tier;
use crate::store::StoredEntity;

/// An entity with its notes and relations.
#[derive(Debug)]
pub(in crate::actors::note_store) struct EntityState {
    pub(in crate::actors::note_store) id: Uuid,
    /// One text for all entities of a type.
    pub(in crate::actors::note_store) entity_type: Arc<str>,
    pub(in crate::actors::note_store) value: Box<str>,
    /// `None` if the value is its only name.
    names: Option<Box<OtherNames>>,
    /// 0 to 1.
    pub(in crate::actors::note_store) confidence: f64,
    pub(in crate::actors::note_store) created_at: DateTime<Utc>,
    /// The notes that mention it, oldest first, superseded ones included.
    pub(in crate::actors::note_store) notes: Slots,
    pub(in crate::actors::note_store) relations: Slots,
    /// Number of active notes that mention it, by tier, best tier first.
    active: [u32; Tier::ALL.len()],
}

#[derive(Debug)]
struct OtherNames {
    name: Box<str>,
    aliases: Box<[String]>,
}

impl OtherNames {
    /// `None` if the value is the only name.
    fn of(value: &str, name: String, aliases: Vec<String>) -> Option<Box<Self>> {
        let names = (name != value || !aliases.is_empty()).then(|| Self {
            name: name.into_boxed_str(),
            aliases: aliases.into_boxed_slice(),
        });
        names.map(Box::new)
    }
}

impl EntityState {
    /// An entity without notes and relations; `entity_type` is the text that its type shares.
    pub(super) fn new(entity: StoredEntity, entity_type: Arc<str>) -> Self {
        let EntityDraft {
            key,
            name,
            aliases,
            confidence,
        } = entity.draft;
        let names = OtherNames::of(&key.value, name, aliases);
        Self {
            id: entity.id,
            entity_type,
            value: key.value.into_boxed_str(),
            names,
            confidence,
            created_at: entity.created_at,
            notes: Slots::default(),
            relations: Slots::default(),
            active: Default::default(),
        }
    }

    /// Adds aliases that it does not have; returns these.
    pub(super) fn add_aliases(&mut self, aliases: Vec<String>) -> Vec<String> {
        let mut all = self.aliases().to_vec();
        let known = all.len();
        for alias in aliases {
            if alias != self.name() && !all.contains(&alias) {
                all.push(alias);
            }
        }
        let added = all.get(known..).unwrap_or_default().to_vec();
        if !added.is_empty() {
            self.names = Some(Box::new(OtherNames {
                name: self.name().into(),
                aliases: all.into_boxed_slice(),
            }));
        }
        added
    }

    /// Shows it under another name and with other aliases.
    pub(super) fn show_names(&mut self, name: &str, aliases: Vec<String>) {
        self.names = OtherNames::of(&self.value, name.to_owned(), aliases);
    }

    /// Without its notes and relations.
    pub(super) fn clear(&mut self) {
        self.notes = Slots::default();
        self.relations = Slots::default();
        self.active = Default::default();
    }

    /// Leaves nothing of it.
    pub(super) fn empty(&mut self) {
        self.id = Uuid::nil();
        self.value = Box::default();
        self.names = None;
        self.clear();
    }

    /// In the form in which it is stored, if no other is merged into it.
    pub(super) fn stored(&self) -> StoredEntity {
        StoredEntity {
            id: self.id,
            draft: EntityDraft {
                key: EntityKey {
                    entity_type: self.entity_type.to_string(),
                    value: self.value.to_string(),
                },
                name: self.name().to_owned(),
                aliases: self.aliases().to_vec(),
                confidence: self.confidence,
            },
            created_at: self.created_at,
            merged_into: None,
        }
    }

    /// The id that clients see.
    pub(in crate::actors::note_store) fn public_id(&self) -> String {
        format!("{}:{}", self.entity_type, self.value)
    }

    /// The display name.
    pub(in crate::actors::note_store) fn name(&self) -> &str {
        self.names.as_ref().map_or(&self.value, |names| &names.name)
    }

    pub(in crate::actors::note_store) fn aliases(&self) -> &[String] {
        self.names.as_ref().map_or(&[], |names| &names.aliases)
    }

    /// Its value, its name and its aliases; the same text may come twice.
    pub(in crate::actors::note_store) fn all_names(&self) -> impl Iterator<Item = &str> {
        let aliases = self.aliases().iter().map(String::as_str);
        [&*self.value, self.name()].into_iter().chain(aliases)
    }

    /// Number of notes that mention it, superseded ones excluded.
    pub(in crate::actors::note_store) fn note_count(&self) -> usize {
        self.active.iter().map(|notes| notes.at()).sum()
    }

    /// The best tier of those notes.
    pub(in crate::actors::note_store) fn tier(&self) -> Option<Tier> {
        let mut tiers = Tier::ALL.iter().zip(self.active);
        tiers.find(|(_, notes)| *notes > 0).map(|(tier, _)| *tier)
    }

    /// Number of edges that start or end here.
    pub(in crate::actors::note_store) fn degree(&self) -> usize {
        self.notes.len() + self.relations.len()
    }

    pub(super) fn active_of(&mut self, tier: Tier) -> Option<&mut u32> {
        let mut counts = Tier::ALL.iter().zip(&mut self.active);
        counts.find(|(known, _)| **known == tier).map(|(_, count)| count)
    }
}
