//! The list of what was added to the collections of a workspace.
//!
//! Rule: an entry names a thing and the write that added it. A thing that was written again since then has a later entry,
//! which stands for it; the earlier one may still be that of an older version.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::tlp::Tlp;

/// What an entry is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AddedKind {
    /// An object that others refer to and that is no node; `rev` is the time of its version in microseconds.
    #[serde(rename = "s")]
    Support,
    #[serde(rename = "n")]
    Node,
    #[serde(rename = "e")]
    Edge,
}

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addition {
    #[serde(rename = "k")]
    pub kind: AddedKind,
    /// The id of the row.
    #[serde(rename = "i")]
    pub id: Uuid,
    /// The number of the write that wrote the row; 0 for a relationship that is older than the list.
    #[serde(rename = "r", default, skip_serializing_if = "is_zero")]
    pub rev: i64,
    /// The evidence record with the original of a node.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Uuid>,
    /// The type of the STIX object, where it is known without reading the row.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub stix_type: Option<String>,
    /// The marking of a relationship, where that of the entry is the stricter one of an end.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Tlp>,
    /// The ends of a relationship, while it is entered.
    #[serde(skip)]
    pub ends: Option<[Uuid; 2]>,
    /// Whether it was rejected by a write that those who read this entry have seen it before: they are told.
    #[serde(rename = "w", default, skip_serializing_if = "is_false")]
    pub is_withdrawn: bool,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Addition {
    /// Where it stands among what one write adds: what others refer to comes before them.
    pub fn class(&self) -> u8 {
        match (self.kind, self.stix_type.as_deref()) {
            (AddedKind::Support, _) => 0,
            (AddedKind::Node, Some("identity")) => 1,
            (AddedKind::Node, _) => 2,
            (AddedKind::Edge, _) => 3,
        }
    }
}
