//! Tells what changed, in the order of the commits.
//!
//! Rules:
//! - A change is told to whom it was visible when it was made and who may see now what it is of.
//! - The position to go on from is behind the last change that the reader may see, so hidden writes don't move it.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::core::GraphCore;
use crate::actors::audit_writer::Append;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::change::{ChangeKind, GraphChange};
use crate::domain::cursor_seal::CursorSeal;
use crate::domain::detail::NodeLink;
use crate::domain::error::DomainError;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::principal::Principal;
use crate::domain::tlp::Tlp;
use crate::store::{CLOCK_DIFFERENCE, ChangeAuthor, ChangePosition, EdgeOfChange, NodeOfChange};

/// Changes whose nodes and relationships are looked up at a time.
const AT_A_TIME: usize = 500;
/// Most changes that one request looks at.
const MOST_READ: usize = 20_000;

/// Where a list of changes begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeBound {
    Time(DateTime<Utc>),
    /// A position that an earlier answer gave.
    Cursor(String),
}

/// Lists what changed.
#[derive(Debug)]
pub struct ListChanges {
    pub by: Principal,
    pub asked: AskedChanges,
}

/// What of the list is asked for.
#[derive(Debug)]
pub struct AskedChanges {
    /// `None` is the beginning.
    pub since: Option<ChangeBound>,
    pub until: Option<ChangeBound>,
    /// Changes of these kinds; empty means all.
    pub kinds: Vec<ChangeKind>,
    /// Changes of nodes of these types; empty means all, and relationships.
    pub node_types: Vec<NodeType>,
    pub limit: usize,
}

/// The part of the list that a reader may see.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenChanges {
    pub(super) ws: Uuid,
    pub(super) highest: Tlp,
    pub(super) sees_rejected: bool,
}

/// What changed.
#[derive(Debug)]
pub struct ChangePage {
    /// In the order of the commits.
    pub changes: Vec<ChangeEntry>,
    /// Where to go on; `None` where the list began, if nothing was told.
    pub next: Option<String>,
    /// Whether the list was not read to its end.
    pub more: bool,
}

/// A node that changed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ChangedNode {
    pub id: Uuid,
    /// Its name now; missing where the reader may not see the node any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "APT28")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node_type: Option<NodeType>,
}

/// One change of a node or of a relationship.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = GraphChange)]
pub struct ChangeEntry {
    pub at: DateTime<Utc>,
    pub kind: ChangeKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node: Option<ChangedNode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub relationship: Option<NodeLink>,
    /// The node into which a merged one went, or was taken out of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub into: Option<ChangedNode>,
    /// The user who made it; null for a feed that is committed by itself.
    #[schema(required)]
    pub by: Option<Uuid>,
    /// The action, as the audit log names it.
    #[schema(example = "ingest.stix")]
    pub via: String,
    /// The feed that brought it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub feed_source_id: Option<Uuid>,
    /// The source of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "The MITRE Corporation")]
    pub source: Option<String>,
    /// The fields that changed, as they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>, example = json!({"confidence": 0.5}))]
    pub before: Option<Map<String, Value>>,
    /// The fields that changed, as they are since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>, example = json!({"confidence": 0.8}))]
    pub after: Option<Map<String, Value>>,
}

/// A change that was read and not told yet.
struct ReadChange {
    behind: ChangePosition,
    author: ChangeAuthor,
    change: GraphChange,
}

impl Work for ListChanges {
    type Core = GraphCore;
    type Reply = ChangePage;
    const NAME: &'static str = "read_changes";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let seen = SeenChanges {
            ws: self.by.workspace.id,
            highest: self.by.workspace.clearance().highest(),
            sees_rejected: self.by.may_see_rejected(),
        };
        let page = core.tell_changes(seen, &self.asked).await?;
        let entry = AuditEntry::by(&self.by, "changes.read", "change", Outcome::Success, clock::now())
            .with("changes", page.changes.len());
        core.graph.audit().call(Append(entry)).await?;
        Ok(page)
    }
}

impl GraphCore {
    pub(super) async fn tell_changes(
        &self,
        seen: SeenChanges,
        asked: &AskedChanges,
    ) -> Result<ChangePage, DomainError> {
        let SeenChanges { ws, highest, .. } = seen;
        let seal = self.graph.store.cursor_seal(ws, "changes");
        let (from, since) = match &asked.since {
            None => (ChangePosition::START, None),
            Some(ChangeBound::Cursor(cursor)) => (position(&seal, "since", cursor)?, None),
            Some(ChangeBound::Time(time)) => {
                let rev = self.graph.store.first_change_since(ws, highest, *time).await?;
                let from = ChangePosition {
                    rev,
                    ..ChangePosition::START
                };
                (from, Some(*time))
            }
        };
        let end = Bound::of(&seal, asked.until.as_ref())?;
        let mut reader = self.graph.store.change_reader(ws, highest, from);
        let mut page = Told::new(asked, seen);
        let (mut waiting, mut read, mut more) = (Vec::new(), 0, false);
        while let Some(row) = reader.next().await? {
            if end.is_reached(row.first, row.author.at) {
                break;
            }
            if since.is_some_and(|since| row.author.at < since) || end.is_before(row.author.at) {
                continue;
            }
            let skipped = match row.first.is_in_row_of(from) {
                true => usize::try_from(from.place).unwrap_or(usize::MAX),
                false => 0,
            };
            for (place, change) in row.changes.into_iter().enumerate().skip(skipped) {
                read += 1;
                waiting.push(ReadChange {
                    behind: row.first.behind(place),
                    author: row.author.clone(),
                    change,
                });
                if waiting.len() == AT_A_TIME {
                    self.tell_page(ws, &mut page, std::mem::take(&mut waiting))
                        .await?;
                }
                if page.is_full() {
                    break;
                }
            }
            if page.is_full() || read >= MOST_READ {
                more = true;
                break;
            }
        }
        self.tell_page(ws, &mut page, waiting).await?;
        more |= page.is_full();
        let next = page.next.map(|next| seal.seal(&next.to_bytes()));
        Ok(ChangePage {
            changes: page.changes,
            next,
            more,
        })
    }

    /// Tells those of these changes that the reader may see.
    async fn tell_page(
        &self,
        ws: Uuid,
        page: &mut Told<'_>,
        read: Vec<ReadChange>,
    ) -> Result<(), DomainError> {
        if read.is_empty() || page.is_full() {
            return Ok(());
        }
        let store = &self.graph.store;
        let of_nodes = read.iter().flat_map(|one| [one.change.node, one.change.into]);
        let nodes: Vec<Uuid> = of_nodes.flatten().collect();
        let edges: Vec<Uuid> = read.iter().filter_map(|one| one.change.edge).collect();
        let nodes = store.nodes_of_changes(ws, &nodes, page.highest).await?;
        let edges = store.edges_of_changes(ws, &edges, page.highest).await?;
        for one in read {
            if page.is_full() {
                return Ok(());
            }
            page.tell(one, &nodes, &edges);
        }
        Ok(())
    }
}

/// Where a list ends.
enum Bound {
    None,
    Time(DateTime<Utc>),
    Position(ChangePosition),
}

impl Bound {
    fn of(seal: &CursorSeal, until: Option<&ChangeBound>) -> Result<Self, DomainError> {
        Ok(match until {
            None => Self::None,
            Some(ChangeBound::Time(time)) => Self::Time(*time),
            Some(ChangeBound::Cursor(cursor)) => Self::Position(position(seal, "until", cursor)?),
        })
    }

    /// Whether what was written at this time comes after the end.
    fn is_before(&self, at: DateTime<Utc>) -> bool {
        matches!(self, Self::Time(time) if at > *time)
    }

    fn is_reached(&self, row: ChangePosition, at: DateTime<Utc>) -> bool {
        match self {
            Self::None => false,
            // Another process may have written what follows by a slower clock.
            Self::Time(time) => at > *time + CLOCK_DIFFERENCE,
            Self::Position(end) => row >= *end,
        }
    }
}

fn position(seal: &CursorSeal, field: &str, cursor: &str) -> Result<ChangePosition, DomainError> {
    let opened = seal.open(cursor);
    let position = opened.and_then(|bytes| ChangePosition::from_bytes(&bytes));
    position.ok_or_else(|| {
        let rule =
            "must be 0, a date such as 2024-03-01, an RFC 3339 date-time, or the next of an earlier answer";
        DomainError::invalid(field, rule)
    })
}

/// What has been told so far.
struct Told<'a> {
    asked: &'a AskedChanges,
    highest: Tlp,
    sees_rejected: bool,
    changes: Vec<ChangeEntry>,
    /// Behind the last change that the reader may see.
    next: Option<ChangePosition>,
}

impl<'a> Told<'a> {
    fn new(asked: &'a AskedChanges, seen: SeenChanges) -> Self {
        Self {
            asked,
            highest: seen.highest,
            sees_rejected: seen.sees_rejected,
            changes: Vec::new(),
            next: None,
        }
    }

    fn is_full(&self) -> bool {
        self.changes.len() >= self.asked.limit
    }

    fn tell(
        &mut self,
        read: ReadChange,
        nodes: &HashMap<Uuid, NodeOfChange>,
        edges: &HashMap<Uuid, EdgeOfChange>,
    ) {
        let ReadChange {
            behind,
            author,
            change,
        } = read;
        let entry = match (change.node, change.edge) {
            (Some(id), _) => {
                let into = change.into.map(|into| (into, nodes.get(&into)));
                self.entry_of_node((id, nodes.get(&id)), into, (author, change))
            }
            (None, Some(id)) => self.entry_of_edge(id, edges.get(&id), (author, change)),
            (None, None) => None,
        };
        let Some(entry) = entry else { return };
        self.next = Some(behind);
        let AskedChanges {
            kinds, node_types, ..
        } = self.asked;
        let of_type = |node: &ChangedNode| node.node_type.is_some_and(|kind| node_types.contains(&kind));
        let is_wanted = (kinds.is_empty() || kinds.contains(&entry.kind))
            && (node_types.is_empty() || entry.node.as_ref().is_some_and(of_type));
        if is_wanted {
            self.changes.push(entry);
        }
    }

    /// Of a node that the reader may not see any more only its end is told.
    fn entry_of_node(
        &self,
        (id, node): (Uuid, Option<&NodeOfChange>),
        into: Option<(Uuid, Option<&NodeOfChange>)>,
        (author, change): (ChangeAuthor, GraphChange),
    ) -> Option<ChangeEntry> {
        let is_shown = |node: &&NodeOfChange| node.status != NodeStatus::Rejected || self.sees_rejected;
        let shown = node.filter(is_shown);
        let is_end = match change.kind {
            ChangeKind::Erased => node.is_none(),
            ChangeKind::Rejected => node.is_some(),
            ChangeKind::Created
            | ChangeKind::Changed
            | ChangeKind::Restored
            | ChangeKind::Merged
            | ChangeKind::Unmerged => false,
        };
        let into = into.map(|(id, node)| node.filter(is_shown).map(|node| changed_node(id, Some(node))));
        if shown.is_none() && !is_end || into == Some(None) {
            return None;
        }
        let told = |fields: Map<String, Value>| (shown.is_some() && !fields.is_empty()).then_some(fields);
        Some(ChangeEntry {
            node: Some(changed_node(id, shown)),
            into: into.flatten(),
            source: shown.map(|node| node.source.clone()),
            before: told(change.before),
            after: told(change.after),
            ..entry_by(author, change.kind)
        })
    }

    fn entry_of_edge(
        &self,
        id: Uuid,
        edge: Option<&EdgeOfChange>,
        (author, change): (ChangeAuthor, GraphChange),
    ) -> Option<ChangeEntry> {
        let edge = edge.filter(|edge| !edge.of_rejected || self.sees_rejected)?;
        let told = |fields: Map<String, Value>| (!fields.is_empty()).then_some(fields);
        Some(ChangeEntry {
            relationship: Some(NodeLink {
                id,
                relationship_type: edge.relationship.clone(),
                source: edge.source,
                target: edge.target,
            }),
            before: told(change.before),
            after: told(change.after),
            ..entry_by(author, change.kind)
        })
    }
}

fn changed_node(id: Uuid, shown: Option<&NodeOfChange>) -> ChangedNode {
    ChangedNode {
        id,
        name: shown.map(|node| node.name.clone()),
        node_type: shown.map(|node| node.node_type),
    }
}

fn entry_by(author: ChangeAuthor, kind: ChangeKind) -> ChangeEntry {
    ChangeEntry {
        at: author.at,
        kind,
        node: None,
        relationship: None,
        into: None,
        by: author.by,
        via: author.via,
        feed_source_id: author.feed,
        source: None,
        before: None,
        after: None,
    }
}
