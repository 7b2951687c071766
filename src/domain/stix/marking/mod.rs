//! The markings of a STIX object: the level that they give it, and whether it may leave.
//!
//! Rules:
//! - An object says its level itself (`x_mitre_tlp`, or else a TLP label). The markings of the standard, for the whole
//!   object or parts of it, are a floor below which it never falls. The default counts only where neither states a
//!   level.
//! - A marking that is not defined, or whose level can't be read, may forbid anything: the object is AMBER at least and
//!   does not leave.
//! - What leaves is judged by the strictest marking that it carries, whatever its row says, and takes the definitions
//!   of all its markings along.

mod built_in;
mod definition;
mod report;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value};

pub use self::built_in::{
    built_in_definition, definitions_up_to, has_definition, is_built_in, refs_for, well_known_level,
};
use self::built_in::{fixed_id, level_of_id};
pub use self::definition::{DefinitionLevel, has_standard_type, level_of, restate};
pub use self::report::{ConflictReport, SilentReport, SilentVersion};
use super::object::{text, texts};
use crate::domain::tlp::{Tlp, level_of_tag};

/// Known marking-definitions and the level each states; `None` for statements.
pub type Markings = HashMap<String, Option<Tlp>>;

/// Adds definitions to those that are known. Of two definitions of a marking the stricter one counts, so none is
/// weakened by another one with its id.
pub fn learn(known: &mut Markings, definitions: impl IntoIterator<Item = (String, Option<Tlp>)>) {
    for (id, level) in definitions {
        let of_id = known.entry(id).or_default();
        *of_id = (*of_id).max(level);
    }
}

/// The marking of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMarking {
    pub tlp: Tlp,
    /// The level that the object itself states.
    pub stated: Option<Tlp>,
    /// Undefined markings, without duplicates; the object is withheld from export until they are defined.
    pub undefined: Vec<String>,
    /// What it says of itself and what its markings say, where these differ.
    pub conflict: Option<Conflict>,
}

/// An object that says another level than its markings of the standard do. The stricter one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// The property in which it says so.
    property: &'static str,
    own: Tlp,
    standard: Tlp,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            property,
            own,
            standard,
        } = self;
        let counts = own.max(standard);
        write!(
            f,
            "{property} says {own}, and its markings say {standard}: {counts} counts"
        )
    }
}

/// The marking of an object, with these markings known and this default.
///
/// # Errors
/// Names the property that states an undefined level.
pub fn object_marking(
    object: &Map<String, Value>,
    known: &Markings,
    default: Tlp,
) -> Result<ObjectMarking, String> {
    let own = own_level(object)?;
    let references = References::read(object, known);
    let stated = own.map(|(_, level)| level).max(references.level);
    let level = stated.unwrap_or(default);
    let conflict = own
        .zip(references.level)
        .filter(|((_, own), standard)| own != standard);
    Ok(ObjectMarking {
        tlp: if references.undefined.is_empty() {
            level
        } else {
            level.max(Tlp::Amber)
        },
        stated,
        undefined: references.undefined,
        conflict: conflict.map(|((property, own), standard)| Conflict {
            property,
            own,
            standard,
        }),
    })
}

/// Whether an object may state a level: itself, or by a marking. Any marking counts, as its definition may not be at
/// hand.
pub fn states_level(object: &Map<String, Value>) -> bool {
    own_level(object).map_or(true, |own| own.is_some()) || marking_refs(object).next().is_some()
}

/// The marking of a row after a definition that it waited for has become known. Only a definition that states a level
/// lowers a row, and not below the level from which that definition is known: who can't know it must not see an effect.
pub fn level_by_definition(row: Tlp, read_anew: Tlp, states: Option<Tlp>, known_from: Tlp) -> Tlp {
    match states {
        Some(_) => read_anew.max(known_from),
        None => read_anew.max(row),
    }
}

/// Whether an object may leave in an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    Leaves,
    /// It carries a marking, or is a row, of this level, which may not leave.
    Above(Tlp),
    /// The definition of one of its markings can't leave with it.
    Undefined,
}

/// Decides whether an object of a row with this level may leave where `highest` is the strictest level that may.
pub fn departure(object: &Map<String, Value>, row: Tlp, known: &Markings, highest: Tlp) -> Departure {
    let carried = carried_level(object, known).max(row);
    if carried > highest {
        return Departure::Above(carried);
    }
    let defined = |id: &str| has_definition(id) || known.contains_key(id);
    if marking_refs(object).all(defined) {
        Departure::Leaves
    } else {
        Departure::Undefined
    }
}

/// The strictest level among all that an object carries. One that can't be read is RED.
fn carried_level(object: &Map<String, Value>, known: &Markings) -> Tlp {
    let Ok(own) = own_level(object) else {
        return Tlp::Red;
    };
    let labels = level_of_labels(object).unwrap_or(Some(Tlp::Red));
    let level = own.map(|(_, level)| level).max(labels);
    level
        .max(References::read(object, known).level)
        .unwrap_or(Tlp::White)
}

/// What an object says of itself, and where: `x_mitre_tlp`, or else its TLP labels.
fn own_level(object: &Map<String, Value>) -> Result<Option<(&'static str, Tlp)>, String> {
    match object.get("x_mitre_tlp") {
        Some(own) => {
            let own = own.as_str().ok_or("x_mitre_tlp: must be a string")?;
            let level = Tlp::from_spelling(own).map_err(|rule| format!("x_mitre_tlp: {rule}"))?;
            Ok(Some(("x_mitre_tlp", level)))
        }
        None => Ok(level_of_labels(object)?.map(|level| ("labels", level))),
    }
}

fn level_of_labels(object: &Map<String, Value>) -> Result<Option<Tlp>, String> {
    let mut level = None;
    for stated in texts(object, "labels").filter_map(level_of_tag) {
        let stated = stated.map_err(|rule| format!("labels: {rule}"))?;
        level = level.max(Some(stated));
    }
    Ok(level)
}

/// What the markings say that an object refers to.
#[derive(Default)]
struct References {
    /// The most restrictive level.
    level: Option<Tlp>,
    undefined: Vec<String>,
}

impl References {
    fn read(object: &Map<String, Value>, known: &Markings) -> Self {
        let mut read = Self::default();
        for id in marking_refs(object) {
            let (of_id, of_definition) = (level_of_id(id), known.get(id));
            read.level = read.level.max(of_id).max(of_definition.copied().flatten());
            let is_undefined = of_id.is_none() && of_definition.is_none();
            if is_undefined && !read.undefined.iter().any(|seen| seen == id) {
                read.undefined.push(id.to_owned());
            }
        }
        // A marking-definition is never withheld, because it tells others the rules.
        if text(object, "type") == Some("marking-definition") {
            read.undefined.clear();
        }
        read
    }
}

/// The markings that an object refers to and that others define, without duplicates.
pub fn custom_refs(object: &Map<String, Value>) -> Vec<String> {
    let mut custom: Vec<String> = Vec::new();
    for id in marking_refs(object).filter(|id| !is_built_in(id)) {
        if !custom.iter().any(|seen| seen == id) {
            custom.push(id.to_owned());
        }
    }
    custom
}

/// Writes the references to markings with fixed ids as their definitions write the ids, each once. The definitions that
/// came with ids of their own spelling are `kept`, and so are the references to them.
pub fn write_fixed_ids(object: &mut Map<String, Value>, kept: impl Fn(&str) -> bool) {
    let fix = |reference: &mut Value| {
        let id = reference.as_str().filter(|id| !kept(id)).and_then(fixed_id);
        if let Some(id) = id {
            *reference = id.into();
        }
    };
    if let Some(Value::Array(refs)) = object.get_mut("object_marking_refs") {
        let mut written: Vec<Value> = Vec::new();
        refs.iter_mut().for_each(fix);
        refs.retain(|reference| {
            let is_new = !written.contains(reference);
            written.push(reference.clone());
            is_new
        });
    }
    let granular = object.get_mut("granular_markings").and_then(Value::as_array_mut);
    let granular = granular.into_iter().flatten();
    granular
        .filter_map(|marking| marking.get_mut("marking_ref"))
        .for_each(fix);
}

/// The markings that an object refers to, for the whole object or parts of it.
pub fn marking_refs(object: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let granular = object.get("granular_markings").and_then(Value::as_array);
    let granular = granular.into_iter().flatten();
    let granular = granular.filter_map(|marking| marking.get("marking_ref")?.as_str());
    texts(object, "object_marking_refs").chain(granular)
}
