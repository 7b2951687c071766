//! Notes as documents of the search index.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use crate::actors::indexed_store::{DocumentPage, Source};
use crate::domain::error::DomainError;
use crate::domain::memory::note::Note;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::tlp::Tlp;
use crate::search::{Facts, IndexDoc, Population, WorkspaceIndex};
use crate::store::{Change, Store};

/// Notes read and indexed at a time.
const PAGE: usize = 2000;

/// The notes of a store.
pub(super) struct Notes {
    pub(super) store: Arc<Store>,
}

impl Source for Notes {
    async fn documents(
        &self,
        ws: Uuid,
        after: u64,
        _: &WorkspaceIndex,
        known: impl Fn(&Change) -> bool + Send + Sync,
    ) -> Result<Option<DocumentPage>, DomainError> {
        let changes = self.store.changes(ws, after, PAGE).await?;
        let Some(last) = changes.last else {
            return Ok(None);
        };
        let ids = changes.notes.iter().filter(|change| !known(change));
        let ids: Vec<Uuid> = ids.map(|change| change.id).collect();
        let notes = self.store.notes_to_index(ws, &ids).await?;
        let found: HashSet<Uuid> = notes.iter().map(|stored| stored.note.id).collect();
        let mut docs: Vec<IndexDoc> = notes
            .iter()
            .map(|stored| of_note(&stored.note, stored.rev))
            .collect();
        // What was written and is no longer there was deleted.
        let gone = changes
            .notes
            .iter()
            .filter(|change| !found.contains(&change.id) && !known(change));
        docs.extend(gone.map(|change| IndexDoc::removal(change.id, change.rev)));
        Ok(Some(DocumentPage { docs, last }))
    }
}

/// The document of a note; a superseded note is not searchable.
pub(super) fn of_note(note: &Note, rev: u64) -> IndexDoc {
    if note.superseded_by.is_some() {
        return IndexDoc::removal(note.id, rev);
    }
    IndexDoc {
        population: Population::Main,
        node_id: note.id,
        rev,
        // Notes have an index of their own; this type is the one for texts.
        node_type: NodeType::Osint,
        status: NodeStatus::Active,
        tlp: Tlp::White,
        name: String::new(),
        aliases: Vec::new(),
        identifiers: Vec::new(),
        body: note.content.clone(),
        facts: Facts::default(),
        vector: None,
        ends: None,
        relation: None,
    }
}
