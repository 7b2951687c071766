//! Recall: search modes, and the session that keeps the results for export.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::confidence::Confidence;
use super::node::{KgNode, wire_enum};
use super::tlp::{Clearance, Tlp};
use super::why::{MatchedBy, Why};

wire_enum! {
    /// How a recall searches.
    RecallMode, "blended, structured" {
        Blended = "blended",
        Structured = "structured",
    }
}

/// A recall session: the results, kept for export.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RecallSession {
    pub id: Uuid,
    #[schema(example = "Fancy Bear")]
    pub query: String,
    pub mode: RecallMode,
    #[schema(example = 1)]
    pub result_count: u64,
    /// The most restrictive marking of the results; WHITE if there are none.
    pub max_tlp: Tlp,
    #[schema(example = false)]
    pub has_red_node: bool,
    /// What an export holds.
    pub node_ids: Vec<Uuid>,
    pub created_at: DateTime<Utc>,
}

impl RecallSession {
    /// The session as the caller may see it now: its counts ignore rows hidden since the search, and rejected ones
    /// unless they are included.
    #[must_use]
    pub fn limit_to(mut self, rows: &Visible<NodeMarking>, include_rejected: bool) -> Self {
        let shown = rows.rows().iter();
        let shown = shown.filter(|node| node.is_active || include_rejected);
        let visible: HashMap<Uuid, Tlp> = shown.map(|node| (node.id, node.tlp)).collect();
        self.node_ids.retain(|id| visible.contains_key(id));
        self.result_count = self.node_ids.len() as u64;
        let levels = self.node_ids.iter().filter_map(|id| visible.get(id).copied());
        self.max_tlp = levels.max().unwrap_or(Tlp::White);
        self.has_red_node = self.max_tlp == Tlp::Red;
        self
    }
}

/// The marking of a node, and whether it is active or rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeMarking {
    pub id: Uuid,
    pub tlp: Tlp,
    pub is_active: bool,
}

/// A node with its rank in a result list.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ScoredNode {
    #[serde(flatten)]
    pub node: KgNode,
    /// 0 to 1, falling with rank.
    #[schema(value_type = Confidence)]
    pub score: f32,
    /// What made it a result, the strongest if there are several.
    pub matched: MatchedBy,
    /// Why it was found; only if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub why: Option<Why>,
}

/// Rows that passed the caller's clearance. Only [`Visible::filter`] creates one, and only a `Visible` is
/// serialized into a response.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Visible<T>(Vec<T>);

/// A row with a marking.
pub trait HasTlp {
    /// The marking that decides who may see the row.
    fn tlp(&self) -> Tlp;
}

impl HasTlp for ScoredNode {
    fn tlp(&self) -> Tlp {
        self.node.tlp
    }
}

impl HasTlp for NodeMarking {
    fn tlp(&self) -> Tlp {
        self.tlp
    }
}

impl HasTlp for KgNode {
    fn tlp(&self) -> Tlp {
        self.tlp
    }
}

impl<T: HasTlp> Visible<T> {
    /// Keeps the rows that `clearance` permits.
    pub fn filter(rows: Vec<T>, clearance: Clearance) -> Self {
        Self(
            rows.into_iter()
                .filter(|row| clearance.permits(row.tlp()))
                .collect(),
        )
    }

    /// Those of the rows for which `keeps` holds.
    #[must_use]
    pub fn only(mut self, keeps: impl FnMut(&T) -> bool) -> Self {
        self.0.retain(keeps);
        self
    }

    pub fn rows(&self) -> &[T] {
        &self.0
    }

    /// The rows.
    pub fn into_rows(self) -> impl Iterator<Item = T> {
        self.0.into_iter()
    }

    /// The first row, if any.
    pub fn into_first(self) -> Option<T> {
        self.0.into_iter().next()
    }

    /// Highest marking of the rows; WHITE if there are none.
    pub fn max_tlp(&self) -> Tlp {
        self.0.iter().map(HasTlp::tlp).max().unwrap_or(Tlp::White)
    }
}
