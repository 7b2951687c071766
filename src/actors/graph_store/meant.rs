//! Answers from the graph to questions that a language model read.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use super::asked::kind_of_node;
use super::core::{GraphCore, index_failed};
use super::recall::Search;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::extraction::Gazetteer;
use crate::domain::question::{Kind, Meant};
use crate::search::WorkspaceIndex;

impl GraphCore {
    /// The nodes that a question asks for, best first. Empty if the graph does not know what it names or has no answer.
    pub(super) async fn meant_by(
        &self,
        ask: &Search,
        meant: &Meant,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<Vec<Uuid>, DomainError> {
        let ids = named(ask, meant.names.clone(), Arc::clone(target)).await?;
        let nodes = self.nodes_named(ask, &ids).await?;
        let mut kinds: Vec<Kind> = Vec::new();
        for kind in ids.iter().filter_map(|id| nodes.get(id)).filter_map(kind_of_node) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let Some(plan) = meant.plan(&kinds) else {
            return Ok(Vec::new());
        };
        let found = self.walk(ask, &plan, &nodes, target.len()).await?;
        let found = found.into_iter().map(|(node, _)| node);
        Ok(found
            .filter(|node| !nodes.contains_key(node))
            .take(ask.limit)
            .collect())
    }
}

/// The visible nodes that carry one of the names, or another name of the same thing.
async fn named(
    ask: &Search,
    names: Vec<String>,
    target: Arc<WorkspaceIndex>,
) -> Result<Vec<Uuid>, DomainError> {
    let filter = ask.filter.clone();
    blocking(move || {
        let entries = names.iter().filter_map(|name| Gazetteer::shared().resolve(name));
        let others = entries.flat_map(|entry| entry.names());
        let keys: Vec<&str> = names.iter().map(String::as_str).chain(others).collect();
        let hits = target.lookup(&keys, &filter).map_err(index_failed)?;
        let nodes: BTreeSet<Uuid> = hits.into_iter().map(|hit| hit.node_id).collect();
        Ok(nodes.into_iter().collect())
    })
    .await
}
