//! What an erasure leaves to do once the database no longer holds the note: index, copy of the graph, files of the engine.
//!
//! The transaction that deletes the note records that it is being erased. The record goes when nothing is left, so that a
//! start goes on where a process died.

use std::sync::Arc;

use uuid::Uuid;

use super::core::NoteCore;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;

impl NoteCore {
    /// Whether a note is gone from the database, while traces of it may be left in other files.
    pub(super) async fn is_unfinished(&self, note: Uuid) -> Result<bool, DomainError> {
        let ws = self.memory().await?.workspace;
        let unfinished = self.notes.store.unfinished_erasures(ws).await?;
        Ok(unfinished.contains(&note))
    }

    /// Removes from every file what the database no longer holds of erased notes.
    pub(super) async fn finish_erasures(&self) -> Result<(), DomainError> {
        let memory = self.memory().await?;
        let ws = memory.workspace;
        let unfinished = self.notes.store.unfinished_erasures(ws).await?;
        if unfinished.is_empty() {
            return Ok(());
        }
        // An index that has not taken the removal yet would keep the text.
        let state = self.notes.state(ws);
        state.wait_until_indexed().await?;
        let target = self.notes_index(memory).await?;
        let index = Arc::clone(&target);
        blocking(move || index.purge().map_err(index_error)).await?;
        {
            // No write may come between the graph and its copy.
            let turn = self.notes.turn(ws, &state).await?;
            let rewritten = memory.shorten_copy(turn.after());
            let what = "the copy of the graph can't be rewritten without what is erased";
            rewritten.map_err(|error| DomainError::internal(what, error))?;
        }
        self.notes.store.purge().await?;
        self.notes.store.finish_erasures(ws, &unfinished).await
    }
}
