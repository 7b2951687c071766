//! What the history tells of a change to the memory. It holds no text of a note: that stands in the note and its versions.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::entity::{EntityDraft, EntityKey};
use super::note::Note;
use crate::domain::node::wire_enum;

wire_enum! {
    /// What happened to a note or an entity.
    ChangeKind, "created, changed, superseded, merged, unmerged, deleted" {
        Created = "created",
        Changed = "changed",
        Superseded = "superseded",
        Merged = "merged",
        Unmerged = "unmerged",
        Deleted = "deleted",
    }
}

/// One change of a note or of an entity, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryChange {
    #[serde(rename = "k")]
    pub kind: ChangeKind,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Uuid>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<Uuid>,
    /// The id of the entity that clients see; without one, it was erased.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The source type of a new note, or what else the change comes from.
    #[serde(rename = "s")]
    pub source: String,
    /// What was true before.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What is true since.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

impl MemoryChange {
    /// A change of a note.
    pub fn of_note(kind: ChangeKind, note: Uuid, source: &str) -> Self {
        Self {
            kind,
            note: Some(note),
            entity: None,
            name: None,
            source: source.to_owned(),
            before: None,
            after: None,
        }
    }

    /// A change of an entity.
    pub fn of_entity(kind: ChangeKind, id: Uuid, key: &EntityKey, source: &str) -> Self {
        Self {
            kind,
            note: None,
            entity: Some(id),
            name: Some(key.to_string()),
            source: source.to_owned(),
            before: None,
            after: None,
        }
    }

    /// The change with what was true before and what is since.
    #[must_use]
    pub fn from_to(self, before: Option<Value>, after: Option<Value>) -> Self {
        Self {
            before,
            after,
            ..self
        }
    }

    pub fn new_note(note: &Note) -> Self {
        Self::of_note(ChangeKind::Created, note.id, &note.source_type)
    }

    pub fn new_entity(id: Uuid, key: &EntityKey, source: &str) -> Self {
        Self::of_entity(ChangeKind::Created, id, key, source)
    }

    /// An entity that has further aliases.
    pub fn new_aliases(id: Uuid, draft: &EntityDraft, source: &str) -> Self {
        let after = json!({"aliases": draft.aliases});
        Self::of_entity(ChangeKind::Changed, id, &draft.key, source).from_to(None, Some(after))
    }

    /// A note in which further entities were found.
    pub fn more_mentions(note: Uuid, source: &str) -> Self {
        Self::of_note(ChangeKind::Changed, note, source)
    }

    /// A note whose text came again, from a better or another source.
    pub fn repeated(note: &Note) -> Self {
        let after = json!({"tier": note.tier, "sources": note.source_refs.len()});
        Self::of_note(ChangeKind::Changed, note.id, &note.source_type).from_to(None, Some(after))
    }

    pub fn superseded(old: Uuid, by: Uuid, source: &str) -> Self {
        let after = json!({"superseded_by": by});
        Self::of_note(ChangeKind::Superseded, old, source).from_to(None, Some(after))
    }

    /// Takes out of it what an erasure must not leave; whether that changed it.
    pub fn erase(&mut self, erased: &ErasedThings) -> bool {
        let of = |id: Option<Uuid>| id.is_some_and(|id| erased.ids.contains(&id));
        let names = |value: &Option<Value>| {
            let into = value.as_ref().and_then(|value| value.get("merged_into"));
            into.and_then(Value::as_str)
                .is_some_and(|into| erased.names.contains(into))
        };
        if !of(self.note) && !of(self.entity) && !names(&self.before) && !names(&self.after) {
            return false;
        }
        if !of(self.note) && !of(self.entity) {
            (self.before, self.after) = (None, None);
            return true;
        }
        let told = self.name.is_some() || self.before.is_some() || self.after.is_some();
        (self.name, self.before, self.after) = (None, None, None);
        told
    }
}

/// What an erasure takes out of the history.
#[derive(Debug, Clone, Default)]
pub struct ErasedThings {
    /// The notes and entities.
    pub ids: HashSet<Uuid>,
    /// The ids of the entities that clients see.
    pub names: HashSet<String>,
}

impl ErasedThings {
    /// Adds an entity.
    pub fn add_entity(&mut self, id: Uuid, key: &EntityKey) {
        self.ids.insert(id);
        self.names.insert(key.to_string());
    }
}

/// A place in the history: after this many changes of the write with this number, and all of those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangePlace {
    pub number: u64,
    pub entry: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erased_thing_leaves_the_kind_of_its_changes() {
        let key = EntityKey::new("actor", "APT28").unwrap();
        let (id, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut change = MemoryChange::new_entity(id, &key, "note");
        let mut erased = ErasedThings::default();
        erased.ids.insert(other);
        assert!(!change.erase(&erased));
        assert_eq!(change.name.as_deref(), Some("actor:apt28"));
        erased.add_entity(id, &key);
        let merged = MemoryChange::of_entity(ChangeKind::Merged, Uuid::from_u128(3), &key, "user");
        let mut merged = merged.from_to(None, Some(json!({"merged_into": "actor:apt28"})));
        merged.name = Some("actor:other".into());
        for change in [&mut change, &mut merged] {
            assert!(change.erase(&erased));
            assert!(!serde_json::to_string(change).unwrap().contains("apt28"));
            assert!(!change.erase(&erased));
        }
        assert_eq!(change.kind, ChangeKind::Created);
        assert_eq!(merged.name.as_deref(), Some("actor:other"));
    }
}
