//! Answers from the graph to questions that a language model read.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::question::kind_of_node;
use super::recall::Search;
use super::why::GraphAnswer;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::extraction::Gazetteer;
use crate::domain::node::KgNode;
use crate::domain::question::{Kind, ModelReading, NameAsked, QuestionAsked};
use crate::search::WorkspaceIndex;

impl GraphCore {
    /// The nodes that a question asks for. None if the graph does not know what it names or has no answer.
    pub(super) async fn answer_model_question(
        &self,
        ask: &Search,
        meant: &ModelReading,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<GraphAnswer, DomainError> {
        let mut names = find_named_nodes(ask, meant.names.clone(), Arc::clone(target)).await?;
        let ids: Vec<Uuid> = names.iter().flat_map(|name| &name.nodes).copied().collect();
        let nodes = self.visible_nodes(ask, &ids).await?;
        let kinds = kinds_of(&nodes, &ids);
        let Some(plan) = meant.plan(&kinds) else {
            return Ok(GraphAnswer::default());
        };
        let walked = self.walk((ask, ask.limit), &plan, &nodes, target).await?;
        let mut answer = self.confirm_paths(ask, walked, &nodes).await?;
        if ask.explain {
            let is_meant = |id: &Uuid| nodes.get(id).and_then(kind_of_node).is_some();
            names.iter_mut().for_each(|name| name.nodes.retain(is_meant));
            names.retain(|name| !name.nodes.is_empty());
            answer.question = Some(QuestionAsked::of(&plan, names));
        }
        Ok(answer)
    }
}

/// The kinds of these nodes, each once.
fn kinds_of(nodes: &HashMap<Uuid, KgNode>, ids: &[Uuid]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for kind in ids.iter().filter_map(|id| nodes.get(id)).filter_map(kind_of_node) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// The visible nodes that carry each of the names, or another name of the same thing.
async fn find_named_nodes(
    ask: &Search,
    names: Vec<String>,
    target: Arc<WorkspaceIndex>,
) -> Result<Vec<NameAsked>, DomainError> {
    let filter = ask.filter.without_narrowing();
    blocking(move || {
        let mut named = Vec::with_capacity(names.len());
        for text in names {
            let entry = Gazetteer::shared().resolve(&text);
            let others = entry.into_iter().flat_map(|entry| entry.names());
            let keys: Vec<&str> = std::iter::once(text.as_str()).chain(others).collect();
            let hits = target.lookup(&keys, &filter).map_err(index_error)?;
            let mut nodes: Vec<Uuid> = hits.into_iter().map(|hit| hit.node_id).collect();
            nodes.sort_unstable();
            nodes.dedup();
            named.push(NameAsked { text, nodes });
        }
        Ok(named)
    })
    .await
}
