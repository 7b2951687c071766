//! What one transaction writes of notes, entities and relationships, with its place in the history.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use surrealdb::IndexedResults;
use surrealdb::types::{SurrealValue, Value};
use uuid::Uuid;

use super::history::{NoteVersion, RewrittenChanges, change_rows, erasure_row, version_row};
use super::rows::{
    self, NoteRowBuilder, edge_update, mention_update, merge_update, repeat_row, restatement,
    supersession_update,
};
use super::{StoredEntity, StoredRelation};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::memory::change::MemoryChange;
use crate::domain::memory::digest::Digest;
use crate::domain::memory::note::Note;
use crate::store::audit::rows::audit_rows;
use crate::store::graph::journal;
use crate::store::graph::journal::WriteSet;
use crate::store::rows::record;
use crate::store::{Store, failed};

/// The ids of what is removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedIds {
    pub notes: Vec<Uuid>,
    pub relations: Vec<Uuid>,
    pub entities: Vec<Uuid>,
}

impl RemovedIds {
    /// Number of things that are removed.
    pub fn len(&self) -> usize {
        self.notes.len() + self.relations.len() + self.entities.len()
    }

    /// Whether nothing is removed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Everything one transaction writes.
#[derive(Debug, Default)]
pub struct NotesWrite {
    /// Notes with their digests.
    pub notes: Vec<(Note, Digest)>,
    pub entities: Vec<StoredEntity>,
    /// Existing entities with aliases that are new.
    pub renamed_entities: Vec<StoredEntity>,
    pub relations: Vec<StoredRelation>,
    /// Existing relationships whose properties change.
    pub changed_relations: Vec<StoredRelation>,
    /// Notes with their new list of mentions.
    pub mentions: Vec<(Uuid, Vec<Uuid>)>,
    /// Superseded notes with their successors.
    pub superseded: Vec<(Uuid, Uuid)>,
    /// Repeated notes, with their new trust and sources.
    pub repeated: Vec<Note>,
    /// Notes to queue for the language model.
    pub enrich: Vec<Uuid>,
    /// Notes to take off that queue.
    pub enriched: Vec<Uuid>,
    /// Existing notes with another text, origin or successor, and their digests.
    pub corrected: Vec<(Note, Digest)>,
    /// What corrected notes said before.
    pub versions: Vec<NoteVersion>,
    /// Existing relationships that are known from another note than before.
    pub restated: Vec<StoredRelation>,
    /// Existing entities that another stands for now, or none any more.
    pub merged: Vec<StoredEntity>,
    /// What else the removal of a relationship touches: the entities that it led from.
    pub touched: Vec<Uuid>,
    pub removed: RemovedIds,
    /// What the history tells beyond what follows from the fields above.
    pub history: Vec<MemoryChange>,
    /// Where new entities, further mentions and new aliases come from.
    pub source: WriteSource,
    /// Notes of which nothing may be left; what remains outside the database is erased next.
    pub erased: Vec<Uuid>,
    /// Entries of the history without what an erasure takes from them.
    pub rewritten: Vec<RewrittenChanges>,
    pub audit: Vec<AuditEntry>,
}

/// What a write comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WriteSource {
    #[default]
    Note,
    Model,
    Relationship,
    User,
}

impl WriteSource {
    fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Model => "model",
            Self::Relationship => "relationship",
            Self::User => "user",
        }
    }
}

impl NotesWrite {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.touched_notes().is_empty() && self.touched_entities().is_empty()
    }

    /// Adds those of the aliases to a stored entity that it does not have.
    pub fn rename(&mut self, mut entity: StoredEntity, aliases: &[String]) {
        if let Some(known) = self
            .renamed_entities
            .iter_mut()
            .find(|known| known.id == entity.id)
        {
            known.draft.add_aliases(aliases);
        } else if entity.draft.add_aliases(aliases) {
            self.renamed_entities.push(entity);
        }
    }

    /// The entities that are new or renamed, and those with an edge that is new or changed: edges have no revision of their own.
    fn touched_entities(&self) -> Vec<Uuid> {
        let edges = self.relations.iter().chain(&self.changed_relations);
        let edges = edges.chain(&self.restated).map(|relation| relation.source);
        let entities = self.entities.iter().chain(&self.renamed_entities);
        let entities = entities.chain(&self.merged).map(|entity| entity.id);
        let gone = self.removed.entities.iter().chain(&self.touched).copied();
        let mut touched: Vec<Uuid> = entities.chain(edges).chain(gone).collect();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// The notes that are new or changed.
    fn touched_notes(&self) -> Vec<Uuid> {
        let new = self.notes.iter().chain(&self.corrected).map(|(note, _)| note.id);
        let new = new.chain(self.removed.notes.iter().copied());
        let mentions = self.mentions.iter().map(|(note, _)| *note);
        let superseded = self.superseded.iter().map(|(note, _)| *note);
        let repeated = self.repeated.iter().map(|note| note.id);
        let mut touched: Vec<Uuid> = new.chain(mentions).chain(superseded).chain(repeated).collect();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// What the history tells of this write.
    fn changes(&self) -> Vec<MemoryChange> {
        let source = self.source.as_str();
        let notes = self.notes.iter().map(|(note, _)| MemoryChange::new_note(note));
        let entities = self.entities.iter();
        let entities = entities.map(|entity| MemoryChange::new_entity(entity.id, &entity.draft.key, source));
        let renamed = self.renamed_entities.iter();
        let renamed = renamed.map(|entity| MemoryChange::new_aliases(entity.id, &entity.draft, source));
        let mentions = self.mentions.iter();
        let mentions = mentions.map(|(note, _)| MemoryChange::more_mentions(*note, source));
        let repeated = self.repeated.iter().map(MemoryChange::repeated);
        let superseded = self.superseded.iter();
        let superseded = superseded.map(|(old, by)| MemoryChange::superseded(*old, *by, source));
        let all = notes
            .chain(entities)
            .chain(renamed)
            .chain(mentions)
            .chain(repeated);
        all.chain(superseded)
            .chain(self.history.iter().cloned())
            .collect()
    }

    /// Stamps everything new in the graph with the time of the write, in the order in which a restart reads it.
    pub fn stamp(&mut self, now: DateTime<Utc>) {
        self.entities
            .iter_mut()
            .for_each(|entity| entity.created_at = now);
        self.relations
            .iter_mut()
            .for_each(|relation| relation.created_at = now);
        self.entities.sort_unstable_by_key(|entity| entity.id);
        self.relations.sort_unstable_by_key(|relation| relation.id);
    }
}

fn values<T: SurrealValue>(rows: impl IntoIterator<Item = T>) -> Vec<Value> {
    rows.into_iter().map(SurrealValue::into_value).collect()
}

impl Store {
    /// Writes everything as the write with this number or, on an error, nothing.
    ///
    /// # Errors
    /// [`DomainError::Overtaken`] when another process has taken the number.
    pub async fn write_notes(
        &self,
        ws: Uuid,
        write: &NotesWrite,
        rev: u64,
        now: DateTime<Utc>,
    ) -> Result<(), DomainError> {
        let stamp = i64::try_from(rev).unwrap_or(i64::MAX);
        let written = WriteSet {
            nodes: &write.touched_entities(),
            notes: &write.touched_notes(),
            ..WriteSet::default()
        };
        let rows = NoteRowBuilder { ws, now, stamp };
        // The ids of new rows name their tables, so one statement inserts them all. Each costs some 0.1 ms of CPU time.
        let mut new = values(write.notes.iter().map(|(note, digest)| rows.note(note, digest)));
        new.extend(values(write.enrich.iter().map(|id| rows.waiting_row(*id))));
        new.extend(values(journal::rows_of(ws, rev, written)));
        new.extend(values(change_rows((ws, rev), now, &write.changes())));
        new.extend(values(
            write.versions.iter().map(|version| version_row(ws, version, now)),
        ));
        new.extend(values(
            write.erased.iter().map(|note| erasure_row(ws, *note, now)),
        ));
        new.extend(audit_rows(&write.audit));
        // One block is one transaction.
        let mut block = String::from("{ ");
        let mut parameters = vec![("new", new)];
        block.push_str("INSERT $new RETURN NONE; ");
        for (name, rows, statement) in additions(write, &rows).into_iter().chain(removals(write)) {
            if !rows.is_empty() {
                block.push_str(statement);
                parameters.push((name, rows));
            }
        }
        block.push('}');
        let mut query = self.db.query(block).bind(("ws", ws)).bind(("now", now));
        query = query.bind(("rev", stamp)).bind(("end", i64::MAX));
        for parameter in parameters {
            query = query.bind(parameter);
        }
        match query.await.and_then(IndexedResults::check) {
            Ok(_) => Ok(()),
            Err(error) if journal::is_taken(&error) => Err(DomainError::Overtaken),
            Err(error) => Err(failed("writing to the memory failed")(error)),
        }
    }
}

/// A parameter, its rows, and the statement that takes them.
type Part = (&'static str, Vec<Value>, &'static str);

/// What a write adds to entities, relationships and notes that exist.
fn additions(write: &NotesWrite, rows: &NoteRowBuilder) -> Vec<Part> {
    vec![
        // Another process may have just written the same entity or statement.
        (
            "entities",
            values(write.entities.iter().map(|entity| rows.entity(entity))),
            "INSERT IGNORE INTO node $entities RETURN NONE; ",
        ),
        (
            "renamed",
            values(write.renamed_entities.iter().map(rows::alias_update)),
            "FOR $row IN $renamed { UPDATE $row.id SET properties = $row.properties, rev = $rev \
             WHERE ws = $ws RETURN NONE }; ",
        ),
        (
            "relations",
            values(write.relations.iter().map(|relation| rows.edge(relation))),
            "INSERT RELATION IGNORE INTO edge $relations RETURN NONE; ",
        ),
        (
            "changed",
            values(write.changed_relations.iter().map(edge_update)),
            "FOR $row IN $changed { UPDATE $row.id SET properties = $row.properties, \
             confidence = $row.confidence WHERE ws = $ws RETURN NONE }; ",
        ),
        (
            "mentions",
            values(write.mentions.iter().map(mention_update)),
            "FOR $row IN $mentions { UPDATE $row.id SET mentions = $row.mentions, rev = $rev \
             WHERE ws = $ws RETURN NONE }; ",
        ),
        (
            "superseded",
            values(write.superseded.iter().map(supersession_update)),
            "FOR $row IN $superseded { UPDATE $row.id SET superseded_by = $row.by, superseded_at = $now, \
             rev = $rev WHERE ws = $ws RETURN NONE }; ",
        ),
        (
            "repeated",
            values(write.repeated.iter().map(repeat_row)),
            "FOR $row IN $repeated { UPDATE $row.id SET tier = $row.tier, confidence = $row.confidence, \
             source_refs = $row.source_refs, rev = $rev WHERE ws = $ws RETURN NONE }; ",
        ),
        (
            "corrected",
            values(
                write
                    .corrected
                    .iter()
                    .map(|(note, digest)| rows.note(note, digest)),
            ),
            "FOR $row IN $corrected { UPDATE $row.id SET content = $row.content, label = $row.label, \
             domain = $row.domain, source_type = $row.source_type, source_ref = $row.source_ref, \
             source_refs = $row.source_refs, tier = $row.tier, confidence = $row.confidence, \
             flags = $row.flags, digest = $row.digest, mentions = $row.mentions, \
             superseded_by = $row.superseded_by, rev = $rev WHERE ws = $ws RETURN NONE }; ",
        ),
        (
            "restated",
            values(write.restated.iter().map(restatement)),
            "FOR $row IN $restated { UPDATE $row.id SET proof = $row.proof, evidence = $row.note \
             WHERE ws = $ws RETURN NONE }; ",
        ),
        (
            "merged",
            values(write.merged.iter().map(merge_update)),
            "FOR $row IN $merged { UPDATE $row.id SET merged_into = $row.by, rev = $rev \
             WHERE ws = $ws RETURN NONE }; ",
        ),
    ]
}

/// What a write takes away.
fn removals(write: &NotesWrite) -> [Part; 6] {
    let records = |table, ids: &[Uuid]| values(ids.iter().map(|id| record(table, *id)));
    let removed = &write.removed;
    [
        (
            "enriched",
            records("enrichment", &write.enriched),
            "DELETE $enriched WHERE ws = $ws RETURN NONE; ",
        ),
        (
            "removed_notes",
            records("note", &removed.notes),
            "DELETE $removed_notes WHERE ws = $ws RETURN NONE; ",
        ),
        (
            "without_versions",
            values(removed.notes.iter().copied()),
            "FOR $note IN $without_versions { DELETE note_version:[$note, 0]..[$note, $end] \
             WHERE ws = $ws RETURN NONE }; ",
        ),
        (
            "removed_relations",
            records("edge", &removed.relations),
            "DELETE $removed_relations WHERE ws = $ws RETURN NONE; ",
        ),
        (
            "removed_entities",
            records("node", &removed.entities),
            "DELETE $removed_entities WHERE ws = $ws RETURN NONE; ",
        ),
        (
            "rewritten",
            values(write.rewritten.iter().cloned()),
            "FOR $row IN $rewritten { UPDATE $row.id SET entries = $row.entries RETURN NONE }; ",
        ),
    ]
}
