//! Loads the graph at a start: from its copy and what the database has beyond it, or else from the database alone.

use std::collections::HashSet;
use std::io;

use uuid::Uuid;

use super::changes::{Changes, without_proof};
use super::copy::GraphCopy;
use super::graph::MemoryGraph;
use super::journal::{GraphJournal, RecoveredGraph};
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::store::Store;

/// A graph with its copy, and the revision up to which it is complete.
pub(super) struct LoadedGraph {
    pub(super) graph: MemoryGraph,
    pub(super) rev: u64,
    pub(super) journal: Option<GraphJournal>,
}

/// Loads the graph of a workspace, from its copy if it has one.
pub(super) async fn load(
    store: &Store,
    ws: Uuid,
    copy: Option<&GraphCopy>,
) -> Result<LoadedGraph, DomainError> {
    let Some(copy) = copy else {
        let (graph, rev) = whole(store, ws).await?;
        let journal = None;
        return Ok(LoadedGraph { graph, rev, journal });
    };
    if let Some(replayed) = copy.recover().await?
        && let Some(loaded) = catch_up_copy(store, ws, replayed).await?
    {
        return Ok(loaded);
    }
    let (graph, rev) = whole(store, ws).await?;
    let path = copy.path().to_owned();
    blocking(move || {
        let journal = log_failure(GraphJournal::create(&path, ws, &graph, rev));
        Ok(LoadedGraph { graph, rev, journal })
    })
    .await
}

fn log_failure(journal: io::Result<GraphJournal>) -> Option<GraphJournal> {
    let failed = |error: &io::Error| {
        tracing::warn!(%error, "the copy of the graph can't be written; the next start will take longer");
    };
    journal.inspect_err(failed).ok()
}

/// Adds what the database has beyond the copy. `None` if the copy does not belong to it.
async fn catch_up_copy(
    store: &Store,
    ws: Uuid,
    replayed: RecoveredGraph,
) -> Result<Option<LoadedGraph>, DomainError> {
    let RecoveredGraph {
        mut graph,
        rev,
        mut journal,
    } = replayed;
    let (known, heads, (entities, relations)) = tokio::try_join!(
        store.has_revision(ws, rev),
        store.note_heads_after(ws, rev),
        store.entities_after(ws, rev),
    )?;
    let newest = rev.max(heads.rev).max(entities.rev);
    let changes = Changes {
        rev: newest,
        ..Changes::since(&graph, heads, entities, relations)
    };
    if !known || !is_complete(&graph, &changes) {
        tracing::info!("the copy of the graph does not belong to the database; reading the database instead");
        return Ok(None);
    }
    let missed = changes.len();
    if missed > 0 {
        tracing::info!(changes = missed, "the graph caught up with the database");
    }
    blocking(move || {
        let appended = match missed {
            0 => Ok(()),
            _ => journal.append(&changes),
        };
        graph.apply(changes);
        let written = appended.and_then(|()| match journal.is_long() {
            true => journal.shorten(&graph, newest),
            false => Ok(()),
        });
        Ok(Some(LoadedGraph {
            graph,
            rev: newest,
            journal: log_failure(written.map(|()| journal)),
        }))
    })
    .await
}

/// Whether every entity that the changed notes mention is known: an older version of this program recorded no entities.
fn is_complete(graph: &MemoryGraph, changes: &Changes) -> bool {
    let new: HashSet<Uuid> = changes.entities.iter().map(|entity| entity.id).collect();
    let of_notes = changes.notes.iter().flat_map(|note| &note.mentions);
    let mut mentions = of_notes.chain(changes.mentions.iter().flat_map(|(_, mentions)| mentions));
    mentions.all(|id| new.contains(id) || graph.has_entity(*id))
}

/// The whole graph, and its highest revision.
async fn whole(store: &Store, ws: Uuid) -> Result<(MemoryGraph, u64), DomainError> {
    let (heads, entities, relations) =
        tokio::try_join!(store.note_heads(ws), store.entities(ws), store.relations(ws))?;
    let rev = heads.rev.max(entities.rev);
    // A write that only changed edges has a revision, too.
    let later = store.node_changes(ws, rev, usize::MAX).await?;
    let rev = later.iter().map(|change| change.rev).fold(rev, u64::max);
    let relations = relations.into_iter().map(without_proof).collect();
    let build = move || Ok(MemoryGraph::of(heads.rows, entities.rows, relations));
    Ok((blocking(build).await?, rev))
}
