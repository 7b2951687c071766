//! Answers questions for what changed in a time from the list of changes.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::TimeDelta;
use uuid::Uuid;

use super::change_log::{AskedChanges, ChangeBound, ChangeEntry, SeenChanges};
use super::core::GraphCore;
use super::recall::Search;
use super::why::GraphAnswer;
use crate::domain::error::DomainError;
use crate::search::WorkspaceIndex;

impl GraphCore {
    /// The nodes that changed in the time that a question asks for, the newest change first; of a question about something,
    /// it and what it was newly related to. `None` if the question asks for something else, or nothing changed.
    pub(super) async fn answer_from_changes(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<Option<GraphAnswer>, DomainError> {
        let Some((period, is_about)) = ask.question.changes_asked() else {
            return Ok(None);
        };
        let named = match is_about {
            true => self.find_names(&ask.question, ask, target).await?,
            false => Vec::new(),
        };
        let about: HashSet<Uuid> = named.into_iter().flat_map(|(_, nodes)| nodes).collect();
        if is_about && about.is_empty() {
            return Ok(None);
        }
        let last = period.until.map(|until| until - TimeDelta::microseconds(1));
        let seen = SeenChanges {
            ws: ask.ws,
            highest: ask.filter.highest_tlp,
            sees_rejected: ask.filter.include_rejected,
        };
        let asked = AskedChanges {
            since: period.from.map(ChangeBound::Time),
            until: last.map(ChangeBound::Time),
            kinds: Vec::new(),
            node_types: Vec::new(),
            limit: usize::MAX,
        };
        let page = self.tell_changes(seen, &asked).await?;
        let mut known = HashSet::new();
        let of_all = page.changes.iter().rev();
        let ids = of_all.flat_map(|change| nodes_of(change, is_about.then_some(&about)));
        let ids: Vec<Uuid> = ids.filter(|id| known.insert(*id)).collect();
        let mut nodes = Vec::new();
        for some in ids.chunks(ask.limit.max(1)) {
            let shown = self.visible_nodes(ask, some).await?;
            nodes.extend(some.iter().filter(|id| shown.contains_key(id)));
            if nodes.len() >= ask.limit {
                break;
            }
        }
        nodes.truncate(ask.limit);
        Ok((!nodes.is_empty()).then(|| GraphAnswer {
            nodes,
            is_final: true,
            ..GraphAnswer::default()
        }))
    }
}

/// The nodes of a change; of those about something, its own change, or the new relationship's other end.
fn nodes_of(change: &ChangeEntry, about: Option<&HashSet<Uuid>>) -> Vec<Uuid> {
    let node = change.node.iter().map(|node| node.id);
    let ends = change
        .relationship
        .iter()
        .flat_map(|link| [link.source, link.target]);
    match about {
        None => node.collect(),
        Some(about) => {
            let ends: Vec<Uuid> = ends.collect();
            let is_related = ends.iter().any(|end| about.contains(end));
            let node = node.filter(|id| about.contains(id));
            node.chain(ends.into_iter().filter(|_| is_related)).collect()
        }
    }
}
