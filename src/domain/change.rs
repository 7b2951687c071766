//! What a write changed in the graph, as the list of changes tells it.
//!
//! Rule: a change is told from the marking upwards from which it is seen: that of what was said before and after, whichever
//! is stricter; a link to evidence that changes nothing else, from the marking of that evidence.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::node::{NodeStatus, wire_enum};
use super::tlp::Tlp;

wire_enum! {
    /// What became of a node or a relationship.
    ChangeKind, "created, changed, rejected, restored, merged, unmerged, erased" {
        Created = "created",
        Changed = "changed",
        Rejected = "rejected",
        Restored = "restored",
        Merged = "merged",
        Unmerged = "unmerged",
        Erased = "erased",
    }
}

/// One change of a node or of a relationship, as it is stored: what it is of is looked up when it is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphChange {
    #[serde(rename = "k")]
    pub kind: ChangeKind,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Uuid>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Uuid>,
    /// The node that stands for a merged one.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub into: Option<Uuid>,
    /// What it was before, of the fields that changed.
    #[serde(rename = "b", default, skip_serializing_if = "Map::is_empty")]
    pub before: Map<String, Value>,
    #[serde(rename = "a", default, skip_serializing_if = "Map::is_empty")]
    pub after: Map<String, Value>,
}

/// What the list of changes tells of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeFace {
    pub name: String,
    pub description: String,
    pub source: String,
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
    pub properties: Map<String, Value>,
    pub status: NodeStatus,
    /// Its evidence records with their markings.
    pub evidence: Vec<(Uuid, Tlp)>,
}

/// What the list of changes tells of a relationship.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeFace {
    pub relationship: String,
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
    pub active: bool,
}

impl GraphChange {
    /// A node or a relationship that is new.
    pub fn created(node: Option<Uuid>, edge: Option<Uuid>) -> Self {
        Self {
            kind: ChangeKind::Created,
            node,
            edge,
            into: None,
            before: Map::new(),
            after: Map::new(),
        }
    }

    /// A node that is merged into another one, or was.
    pub fn merged(node: Uuid, into: Uuid, is_over: bool) -> Self {
        Self {
            kind: match is_over {
                true => ChangeKind::Unmerged,
                false => ChangeKind::Merged,
            },
            into: Some(into),
            ..Self::created(Some(node), None)
        }
    }

    /// How a node changed, and the marking from which that is seen; `None` if it says the same.
    pub fn of_node(node: Uuid, before: &NodeFace, after: &NodeFace) -> Option<(Tlp, Self)> {
        let mut differences = Differences::default();
        differences.note("name", &before.name, &after.name);
        differences.note("description", &before.description, &after.description);
        differences.note("source", &before.source, &after.source);
        differences.note("tlp", &before.tlp, &after.tlp);
        differences.note("confidence", &before.confidence, &after.confidence);
        differences.note("status", &before.status, &after.status);
        differences.note_properties(&before.properties, &after.properties);
        let change = Self {
            node: Some(node),
            ..differences.into_change(kind_of(before.status, after.status))
        };
        if !change.after.is_empty() || !change.before.is_empty() {
            return Some((before.tlp.max(after.tlp), change));
        }
        let is_known = |id: &Uuid| before.evidence.iter().any(|(known, _)| known == id);
        let new = after.evidence.iter().filter(|(id, _)| !is_known(id));
        let new: Vec<(Uuid, Tlp)> = new.map(|(id, tlp)| (*id, (*tlp).max(after.tlp))).collect();
        let level = new.iter().map(|(_, tlp)| *tlp).min()?;
        let shown = new.iter().filter(|(_, tlp)| *tlp == level);
        let shown: Vec<String> = shown.map(|(id, _)| id.to_string()).collect();
        let mut change = change;
        change.after.insert("linked_evidence_ids".into(), shown.into());
        Some((level, change))
    }

    /// How a relationship changed, and the marking from which that is seen, apart from those of its ends.
    pub fn of_edge(edge: Uuid, before: &EdgeFace, after: &EdgeFace) -> Option<(Tlp, Self)> {
        let mut differences = Differences::default();
        differences.note("relationship_type", &before.relationship, &after.relationship);
        differences.note("tlp", &before.tlp, &after.tlp);
        differences.note("confidence", &before.confidence, &after.confidence);
        let kind = match (before.active, after.active) {
            (true, false) => ChangeKind::Rejected,
            (false, true) => ChangeKind::Restored,
            (true, true) | (false, false) => ChangeKind::Changed,
        };
        let change = Self {
            edge: Some(edge),
            ..differences.into_change(kind)
        };
        let is_same = kind == ChangeKind::Changed && change.after.is_empty();
        (!is_same).then(|| (before.tlp.max(after.tlp), change))
    }

    /// Takes in a later change of the same thing by the same write.
    pub fn absorb(&mut self, later: GraphChange) {
        if self.kind == ChangeKind::Created {
            return;
        }
        if later.kind != ChangeKind::Changed {
            self.kind = later.kind;
        }
        for (key, value) in later.before {
            self.before.entry(key).or_insert(value);
        }
        self.after.extend(later.after);
    }
}

fn kind_of(before: NodeStatus, after: NodeStatus) -> ChangeKind {
    match (before, after) {
        (one, other) if one == other => ChangeKind::Changed,
        (_, NodeStatus::Merged) => ChangeKind::Merged,
        (NodeStatus::Merged, _) => ChangeKind::Unmerged,
        (_, NodeStatus::Rejected) => ChangeKind::Rejected,
        (_, NodeStatus::Active) => ChangeKind::Restored,
    }
}

/// The fields that differ.
#[derive(Default)]
struct Differences {
    before: Map<String, Value>,
    after: Map<String, Value>,
}

impl Differences {
    fn note<T: Serialize + PartialEq>(&mut self, field: &str, before: &T, after: &T) {
        if before != after {
            self.before.insert(field.into(), serde_json::json!(before));
            self.after.insert(field.into(), serde_json::json!(after));
        }
    }

    /// Of properties only those that differ are told.
    fn note_properties(&mut self, before: &Map<String, Value>, after: &Map<String, Value>) {
        let differing = |one: &Map<String, Value>, other: &Map<String, Value>| -> Map<String, Value> {
            let of = one.iter().filter(|(key, value)| other.get(*key) != Some(value));
            of.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let (old, new) = (differing(before, after), differing(after, before));
        if !old.is_empty() || !new.is_empty() {
            self.before.insert("properties".into(), Value::Object(old));
            self.after.insert("properties".into(), Value::Object(new));
        }
    }

    fn into_change(self, kind: ChangeKind) -> GraphChange {
        GraphChange {
            kind,
            node: None,
            edge: None,
            into: None,
            before: self.before,
            after: self.after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn face() -> NodeFace {
        NodeFace {
            name: "APT28".into(),
            description: String::new(),
            source: "MITRE".into(),
            tlp: Tlp::Green,
            confidence: 0.5,
            properties: Map::new(),
            status: NodeStatus::Active,
            evidence: vec![(Uuid::from_u128(1), Tlp::Green)],
        }
    }

    #[test]
    fn a_change_is_told_from_the_marking_from_which_it_is_seen() {
        let id = Uuid::nil();
        let linked = |tlp| NodeFace {
            evidence: vec![(Uuid::from_u128(1), Tlp::Green), (Uuid::from_u128(2), tlp)],
            ..face()
        };
        for (after, want) in [
            (face(), None),
            (linked(Tlp::Red), Some(Tlp::Red)),
            (linked(Tlp::White), Some(Tlp::Green)),
            (
                NodeFace {
                    name: "Sofacy".into(),
                    ..linked(Tlp::Red)
                },
                Some(Tlp::Green),
            ),
            (
                NodeFace {
                    tlp: Tlp::Amber,
                    ..face()
                },
                Some(Tlp::Amber),
            ),
            (
                NodeFace {
                    tlp: Tlp::White,
                    ..face()
                },
                Some(Tlp::Green),
            ),
        ] {
            let told = GraphChange::of_node(id, &face(), &after);
            assert_eq!(told.map(|(level, _)| level), want, "{after:?}");
        }
    }

    #[test]
    fn only_the_properties_that_differ_are_told() {
        let with = |value: Value| NodeFace {
            properties: value.as_object().unwrap().clone(),
            ..face()
        };
        let before = with(serde_json::json!({"aliases": ["A"], "labels": ["x"]}));
        let after = with(serde_json::json!({"aliases": ["B"], "labels": ["x"]}));
        let (_, change) = GraphChange::of_node(Uuid::nil(), &before, &after).unwrap();
        assert_eq!(
            serde_json::json!(change.before),
            serde_json::json!({"properties": {"aliases": ["A"]}})
        );
        assert_eq!(
            serde_json::json!(change.after),
            serde_json::json!({"properties": {"aliases": ["B"]}})
        );
        let stored = serde_json::to_string(&change).unwrap();
        assert_eq!(serde_json::from_str::<GraphChange>(&stored).unwrap(), change);
    }
}
