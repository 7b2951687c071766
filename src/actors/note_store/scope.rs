//! Which notes a recall may return.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::RwLock;

use super::graph::{MemoryGraph, NoteState};
use crate::domain::memory::note::{Note, domain_of};
use crate::search::RowPredicate;

/// Limits to a recall; a missing one excludes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    pub domain: Option<String>,
    /// The first and the last instant at which a note may have been created.
    pub since: Option<DateTime<Utc>>,
    pub until: Option<DateTime<Utc>>,
}

impl Scope {
    /// The notes of one domain.
    pub(super) fn of_domain(domain: &str) -> Self {
        Self {
            domain: Some(domain.to_owned()),
            ..Self::default()
        }
    }

    /// With the domain in the form in which notes have it.
    pub(super) fn normal(self) -> Self {
        let domain = self.domain.map(|domain| domain_of(&domain).to_owned());
        Self { domain, ..self }
    }

    pub(super) fn admits(&self, note: &NoteState) -> bool {
        self.is_of(&note.domain, note.created_at)
    }

    pub(super) fn admits_stored(&self, note: &Note) -> bool {
        self.is_of(&note.domain, note.created_at)
    }

    fn is_of(&self, domain: &str, created_at: DateTime<Utc>) -> bool {
        self.domain.as_ref().is_none_or(|only| only == domain)
            && self.since.is_none_or(|since| created_at >= since)
            && self.until.is_none_or(|until| created_at <= until)
    }

    /// A filter that passes only these notes; `None` when every note passes.
    pub(super) fn filter(&self, graph: &Arc<RwLock<MemoryGraph>>) -> Option<RowPredicate> {
        let any_time = self.since.is_none() && self.until.is_none();
        let any_domain = self
            .domain
            .as_ref()
            .is_none_or(|domain| graph.read().is_all_of(domain));
        if any_time && any_domain {
            return None;
        }
        let (graph, scope) = (Arc::clone(graph), self.clone());
        Some(RowPredicate::new(move |note| {
            graph.read().note(note).is_some_and(|head| scope.admits(head))
        }))
    }
}
