//! What analysts have set by hand over what sources state of a node or a relationship.
//!
//! Rules:
//! - A field that was set stands, whatever sources send later; what they state is kept beside it, and stands again once the
//!   field is cleared.
//! - A marking that was raised is the least that the node has. One that was lowered stands as long as no source states a
//!   stricter one than that which was lowered.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::node::NodeStatus;
use crate::domain::node::wire_enum;
use crate::domain::tlp::Tlp;

wire_enum! {
    /// A field of a node that can be set by hand.
    CorrectedField, "name, description, aliases, confidence, tlp, status" {
        Name = "name",
        Description = "description",
        Aliases = "aliases",
        Confidence = "confidence",
        Tlp = "tlp",
        Status = "status",
    }
}

/// The fields of a node that can be set by hand.
#[derive(Debug, Clone, PartialEq)]
pub struct CorrectableFields {
    pub name: String,
    pub description: String,
    pub aliases: Vec<String>,
    /// 0 to 1.
    pub confidence: f64,
    pub tlp: Tlp,
    pub status: NodeStatus,
}

/// A value that was set, and what sources state instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SetValue<T> {
    set: T,
    stated: T,
    /// The evidence record that says who set it, when and why.
    evidence: Uuid,
}

/// Names that were added and taken out, and those that sources state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SetAliases {
    add: Vec<String>,
    remove: Vec<String>,
    stated: Vec<String>,
    evidence: Uuid,
}

/// A marking that was set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SetMarking {
    set: Tlp,
    stated: Tlp,
    /// What the sources stated when it was lowered; `None` if it was raised.
    lowered_from: Option<Tlp>,
    evidence: Uuid,
}

/// What was set by hand of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeCorrection {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<SetValue<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<SetValue<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aliases: Option<SetAliases>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<SetValue<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tlp: Option<SetMarking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<SetValue<NodeStatus>>,
    /// The evidence records of all corrections, oldest first, with their markings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<(Uuid, Tlp)>,
}

/// What is to be set of a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeChanges {
    pub name: Option<String>,
    pub description: Option<String>,
    pub add_aliases: Vec<String>,
    pub remove_aliases: Vec<String>,
    /// 0 to 1.
    pub confidence: Option<f64>,
    pub tlp: Option<Tlp>,
    pub status: Option<NodeStatus>,
    /// Fields of which sources have the word again.
    pub clear: Vec<CorrectedField>,
}

/// A field that was set by hand, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = NodeCorrection)]
pub struct FieldCorrection {
    pub field: CorrectedField,
    /// What was set; of aliases, which were added and removed.
    #[schema(example = "A threat group.")]
    pub set: serde_json::Value,
    /// What the sources state instead.
    #[schema(example = "A threat grup.")]
    pub stated: serde_json::Value,
    /// The evidence record that says who set it, when and why; missing where its marking hides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub evidence: Option<Uuid>,
}

/// Whether a relationship was rejected or restored by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCorrection {
    pub active: bool,
    /// What sources state.
    pub stated: bool,
    pub by: Option<Uuid>,
    pub at: DateTime<Utc>,
    pub reason: Option<String>,
    /// The evidence record that was rejected with it, or restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Uuid>,
}

impl NodeChanges {
    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// The fields that it sets.
    pub fn fields(&self) -> Vec<CorrectedField> {
        let has_aliases = !self.add_aliases.is_empty() || !self.remove_aliases.is_empty();
        let set = [
            (self.name.is_some(), CorrectedField::Name),
            (self.description.is_some(), CorrectedField::Description),
            (has_aliases, CorrectedField::Aliases),
            (self.confidence.is_some(), CorrectedField::Confidence),
            (self.tlp.is_some(), CorrectedField::Tlp),
            (self.status.is_some(), CorrectedField::Status),
        ];
        let set = set.into_iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, field)| field).collect()
    }
}

impl NodeCorrection {
    /// Whether no field is set.
    pub fn is_empty(&self) -> bool {
        self.shown().is_empty()
    }

    /// Gives the fields back what sources state; the marking stays.
    pub fn lift(&self, fields: &mut CorrectableFields) {
        lift(self.name.as_ref(), &mut fields.name);
        lift(self.description.as_ref(), &mut fields.description);
        lift(self.confidence.as_ref(), &mut fields.confidence);
        lift(self.status.as_ref(), &mut fields.status);
        if let Some(aliases) = &self.aliases {
            fields.aliases.clone_from(&aliases.stated);
        }
    }

    /// Sets the fields over what sources state now, and remembers that.
    pub fn lay(&mut self, fields: &mut CorrectableFields) {
        lay(self.name.as_mut(), &mut fields.name);
        lay(self.description.as_mut(), &mut fields.description);
        lay(self.confidence.as_mut(), &mut fields.confidence);
        lay(self.status.as_mut(), &mut fields.status);
        if let Some(aliases) = &mut self.aliases {
            aliases.stated = std::mem::take(&mut fields.aliases);
            fields.aliases = aliases.apply();
        }
        let stated = fields.tlp;
        fields.tlp = self.level(stated);
        match &mut self.tlp {
            Some(SetMarking {
                lowered_from: Some(from),
                ..
            }) if stated > *from => self.tlp = None,
            // A row that no source has touched has the marking that was set.
            Some(tlp) if stated != tlp.set => tlp.stated = stated,
            Some(_) | None => {}
        }
    }

    /// The marking of a node for which sources state this one.
    pub fn level(&self, stated: Tlp) -> Tlp {
        match &self.tlp {
            Some(tlp) => match tlp.lowered_from {
                Some(from) if stated <= from => tlp.set,
                Some(_) => stated,
                None => stated.max(tlp.set),
            },
            None => stated,
        }
    }

    /// Whether a marking was lowered by hand that sources may state again without raising the node.
    pub fn keeps_below(&self, stated: Tlp) -> bool {
        self.level(stated) < stated
    }

    /// Sets fields by hand; `fields` has what the node shows now and gets what it shows then.
    pub fn correct(&mut self, fields: &mut CorrectableFields, changes: &NodeChanges, evidence: Uuid) {
        self.lift(fields);
        let marking = fields.tlp;
        if let Some(tlp) = &self.tlp {
            fields.tlp = tlp.stated;
        }
        for field in &changes.clear {
            match field {
                CorrectedField::Name => self.name = None,
                CorrectedField::Description => self.description = None,
                CorrectedField::Aliases => self.aliases = None,
                CorrectedField::Confidence => self.confidence = None,
                CorrectedField::Tlp => self.tlp = None,
                CorrectedField::Status => self.status = None,
            }
        }
        set(&mut self.name, changes.name.as_ref(), &fields.name, evidence);
        set(
            &mut self.description,
            changes.description.as_ref(),
            &fields.description,
            evidence,
        );
        set(
            &mut self.confidence,
            changes.confidence.as_ref(),
            &fields.confidence,
            evidence,
        );
        set(
            &mut self.status,
            changes.status.as_ref(),
            &fields.status,
            evidence,
        );
        if let Some(tlp) = changes.tlp {
            let stated = fields.tlp;
            self.tlp = Some(SetMarking {
                set: tlp,
                stated,
                lowered_from: (tlp < stated).then_some(stated),
                evidence,
            });
        }
        self.correct_aliases(fields, changes, evidence);
        // A marking that nobody changes here stays as it is.
        if changes.tlp.is_none() && !changes.clear.contains(&CorrectedField::Tlp) {
            fields.tlp = marking;
        }
        self.lay(fields);
    }

    /// Forgets what these records of corrections set, apart from marking and status, which hold no text; the fields get what
    /// sources state.
    pub fn forget(&mut self, fields: &mut CorrectableFields, evidence: &HashSet<Uuid>) {
        self.lift(fields);
        if let Some(tlp) = &self.tlp {
            fields.tlp = tlp.stated;
        }
        self.name.take_if(|set| evidence.contains(&set.evidence));
        self.description.take_if(|set| evidence.contains(&set.evidence));
        self.confidence.take_if(|set| evidence.contains(&set.evidence));
        self.aliases.take_if(|set| evidence.contains(&set.evidence));
        self.evidence.retain(|(id, _)| !evidence.contains(id));
        self.lay(fields);
    }

    fn correct_aliases(&mut self, fields: &CorrectableFields, changes: &NodeChanges, evidence: Uuid) {
        if changes.add_aliases.is_empty() && changes.remove_aliases.is_empty() {
            return;
        }
        let aliases = self.aliases.get_or_insert_with(|| SetAliases {
            add: Vec::new(),
            remove: Vec::new(),
            stated: fields.aliases.clone(),
            evidence,
        });
        aliases.evidence = evidence;
        for alias in &changes.add_aliases {
            aliases.remove.retain(|known| known != alias);
            push_new(&mut aliases.add, alias);
        }
        for alias in &changes.remove_aliases {
            aliases.add.retain(|known| known != alias);
            push_new(&mut aliases.remove, alias);
        }
    }

    /// The aliases that sources state, if others were set.
    pub fn stated_aliases(&self) -> Option<Vec<String>> {
        self.aliases.as_ref().map(|aliases| aliases.stated.clone())
    }

    /// The fields that are set, as they are shown to a reader up to a marking.
    pub fn shown_to(&self, highest: Tlp) -> Vec<FieldCorrection> {
        let seen = |id: &Uuid| {
            self.evidence
                .iter()
                .any(|(known, tlp)| known == id && *tlp <= highest)
        };
        let mut shown = self.shown();
        for field in &mut shown {
            field.evidence = field.evidence.filter(seen);
        }
        shown
    }

    /// The fields that are set, as the API shows them.
    pub fn shown(&self) -> Vec<FieldCorrection> {
        let aliases = self.aliases.as_ref().map(|aliases| FieldCorrection {
            field: CorrectedField::Aliases,
            set: serde_json::json!({"add": aliases.add, "remove": aliases.remove}),
            stated: serde_json::json!(aliases.stated),
            evidence: Some(aliases.evidence),
        });
        let tlp = self.tlp.as_ref().map(|tlp| FieldCorrection {
            field: CorrectedField::Tlp,
            set: serde_json::json!(tlp.set),
            stated: serde_json::json!(tlp.stated),
            evidence: Some(tlp.evidence),
        });
        let all = [
            shown(CorrectedField::Name, self.name.as_ref()),
            shown(CorrectedField::Description, self.description.as_ref()),
            aliases,
            shown(CorrectedField::Confidence, self.confidence.as_ref()),
            tlp,
            shown(CorrectedField::Status, self.status.as_ref()),
        ];
        all.into_iter().flatten().collect()
    }

    /// Whether this field is set.
    pub fn has(&self, field: CorrectedField) -> bool {
        self.shown().iter().any(|shown| shown.field == field)
    }
}

impl SetAliases {
    /// What is stated, with those that were added and without those that were removed.
    fn apply(&self) -> Vec<String> {
        let stated = self.stated.iter().filter(|alias| !self.remove.contains(alias));
        let mut aliases: Vec<String> = stated.cloned().collect();
        self.add.iter().for_each(|alias| push_new(&mut aliases, alias));
        aliases
    }
}

fn push_new(names: &mut Vec<String>, name: &String) {
    if !names.contains(name) {
        names.push(name.clone());
    }
}

fn lift<T: Clone>(value: Option<&SetValue<T>>, field: &mut T) {
    if let Some(value) = value {
        field.clone_from(&value.stated);
    }
}

fn lay<T: Clone>(value: Option<&mut SetValue<T>>, field: &mut T) {
    if let Some(value) = value {
        value.stated = std::mem::replace(field, value.set.clone());
    }
}

fn set<T: Clone>(value: &mut Option<SetValue<T>>, new: Option<&T>, stated: &T, evidence: Uuid) {
    if let Some(new) = new {
        *value = Some(SetValue {
            set: new.clone(),
            stated: stated.clone(),
            evidence,
        });
    }
}

fn shown<T: Serialize>(field: CorrectedField, value: Option<&SetValue<T>>) -> Option<FieldCorrection> {
    let value = value?;
    Some(FieldCorrection {
        field,
        set: serde_json::json!(value.set),
        stated: serde_json::json!(value.stated),
        evidence: Some(value.evidence),
    })
}

#[cfg(test)]
mod tests;
