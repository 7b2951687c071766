//! Reads for someone who looks around in the graph: a picture of a part of it, one node with what is around it, the
//! domains.

mod details;
mod picture;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use super::graph::MemoryGraph;
use crate::actors::job::blocking;
use crate::actors::note_store::core::NoteCore;
use crate::actors::worker::{Access, Work};
use crate::domain::error::DomainError;
use crate::domain::memory::note::context;
use crate::domain::memory::view::{DomainCount, GraphView, NodeDetails, NoteSummary, Page};

/// Most domains in a list.
const MAX_DOMAINS: usize = 1000;
/// Notes read from the store at a time: a note may have 50,000 characters.
const NOTES_PER_READ: usize = 50;

/// Draws a connected picture of a part of the graph.
#[derive(Debug, Clone, Default)]
pub struct ViewGraph {
    /// Most nodes.
    pub limit: usize,
    /// Types of nodes to show; all, if empty. In canonical form.
    pub types: Vec<String>,
    /// Substring of a name of the nodes to show, case-insensitive.
    pub part: Option<String>,
    /// The node to start from, which is always shown; without one, the best connected nodes are shown.
    pub around: Option<String>,
    /// Most edges from the node to start from to any other.
    pub depth: usize,
    /// Whether to show notes.
    pub notes: bool,
}

impl Work for ViewGraph {
    type Core = NoteCore;
    type Reply = GraphView;
    const NAME: &'static str = "view_graph";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        let view = core.look(move |graph| graph.picture(&self)).await?;
        view.ok_or(DomainError::NotFound("node"))
    }
}

/// Reads one node, with a page of its notes and a page of its neighbours.
#[derive(Debug)]
pub struct ReadGraphNode {
    pub id: String,
    pub page: Page,
}

impl Work for ReadGraphNode {
    type Core = NoteCore;
    type Reply = NodeDetails;
    const NAME: &'static str = "read_graph_node";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.read_graph_node(self).await
    }
}

/// Lists the domains with most notes.
#[derive(Debug)]
pub struct ListDomains;

impl Work for ListDomains {
    type Core = NoteCore;
    type Reply = Vec<DomainCount>;
    const NAME: &'static str = "list_domains";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.look(|graph| graph.list_domains(MAX_DOMAINS)).await
    }
}

impl NoteCore {
    /// Runs a read that may visit the whole graph, off the async threads.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        read: impl FnOnce(&MemoryGraph) -> T + Send + 'static,
    ) -> Result<T, DomainError> {
        let graph = Arc::clone(&self.memory().await?.graph);
        blocking(move || Ok(read(&graph.read()))).await
    }

    async fn read_graph_node(&self, message: ReadGraphNode) -> Result<NodeDetails, DomainError> {
        let ReadGraphNode { id, page } = message;
        let details = self.look(move |graph| graph.details(&id, page)).await?;
        let mut details = details.ok_or(DomainError::NotFound("node"))?;
        for notes in details.notes.chunks_mut(NOTES_PER_READ) {
            self.put_contexts(notes).await?;
        }
        Ok(details)
    }

    /// Replaces the labels of notes, which the graph knows, by their contexts.
    async fn put_contexts(&self, notes: &mut [NoteSummary]) -> Result<(), DomainError> {
        let ids: Vec<Uuid> = notes.iter().map(|note| note.id).collect();
        let stored = self
            .notes
            .store
            .notes_by_id(self.memory().await?.workspace, &ids)
            .await?;
        let mut contexts: HashMap<Uuid, String> = stored
            .iter()
            .map(|note| (note.id, context(&note.content)))
            .collect();
        for note in notes {
            if let Some(context) = contexts.remove(&note.id) {
                note.context = context;
            }
        }
        Ok(())
    }
}
