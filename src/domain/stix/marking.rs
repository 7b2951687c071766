//! TLP and STIX marking-definitions: the level each states, and the objects to export.
//!
//! Sources: STIX 2.1 section 7.2.1.4 (the four TLP 1.x objects), OASIS extension-definition--60a3c5c5
//! (the TLP 2.0 objects).

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::object::{text, texts};
use crate::domain::tlp::Tlp;

/// Known marking-definitions and the level each states; `None` for statements.
pub type Markings = HashMap<String, Option<Tlp>>;

/// The marking that an object states for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnMarking {
    /// The stated level, if any.
    pub level: Option<Tlp>,
    /// Referenced but undefined markings, without duplicates.
    pub undefined: Vec<String>,
}

/// The marking of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMarking {
    pub tlp: Tlp,
    /// The level that the object itself states.
    pub stated: Option<Tlp>,
    /// Undefined markings; the object is withheld from export until they are defined.
    pub undefined: Vec<String>,
}

const TLP1: [(&str, Tlp, &str); 4] = [
    (
        "marking-definition--613f2e26-407d-48c7-9eca-b8e91df99dc9",
        Tlp::White,
        "white",
    ),
    (
        "marking-definition--34098fce-860f-48ae-8e50-ebd3cc5e41da",
        Tlp::Green,
        "green",
    ),
    (
        "marking-definition--f88d31f6-486f-44da-b317-01333bde0b82",
        Tlp::Amber,
        "amber",
    ),
    (
        "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed",
        Tlp::Red,
        "red",
    ),
];

const TLP2: [(&str, Tlp, &str); 5] = [
    (
        "marking-definition--94868c89-83c2-464b-929b-a1a8aa3c8487",
        Tlp::White,
        "clear",
    ),
    (
        "marking-definition--bab4a63c-aed9-4cf5-a766-dfca5abac2bb",
        Tlp::Green,
        "green",
    ),
    (
        "marking-definition--55d920b0-5e8b-4f79-9ee9-91f868d9b421",
        Tlp::Amber,
        "amber",
    ),
    (AMBER_STRICT_ID, Tlp::AmberPk, "amber+strict"),
    (
        "marking-definition--e828b379-4e03-4974-9ac4-e53a884c97c1",
        Tlp::Red,
        "red",
    ),
];

const TLP2_EXTENSION: &str = "extension-definition--60a3c5c5-0d10-413e-aab3-9e08dde9e88d";
const AMBER_STRICT_ID: &str = "marking-definition--939a9414-2ddd-4d32-a0cd-375ea402b003";
/// The statement that distinguishes AMBER+PK from AMBER+STRICT; a fixed id of this service.
const AMBER_PK_ID: &str = "marking-definition--6c1f4e0a-5b0d-4c7e-9a55-3f6d1e8b7a42";

/// The level of one of the well-known TLP 1.x or 2.0 marking-definition ids.
pub fn well_known_level(id: &str) -> Option<Tlp> {
    TLP1.iter()
        .chain(&TLP2)
        .find(|(known, ..)| *known == id)
        .map(|(_, tlp, _)| *tlp)
}

/// The level stated by a reference to this id, whatever object accompanies it. Covers the well-known ids and our own
/// statement, which must not fall back to the default if a sender dropped the rest.
pub fn level_of_id(id: &str) -> Option<Tlp> {
    well_known_level(id).or((id == AMBER_PK_ID).then_some(Tlp::AmberPk))
}

/// Whether this service can export the marking `id` without having received it.
pub fn is_built_in(id: &str) -> bool {
    id == AMBER_PK_ID || well_known_level(id).is_some()
}

/// The level stated by a marking-definition object; `None` for statements and the like.
///
/// # Errors
/// Names the property that states an undefined TLP level.
pub fn level_of(definition: &Value) -> Result<Option<Tlp>, String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    if let Some(id) = definition.get("id").and_then(Value::as_str)
        && let Some(tlp) = level_of_id(id)
    {
        return Ok(Some(tlp));
    }
    let extension = text(definition.pointer(&format!("/extensions/{TLP2_EXTENSION}/tlp_2_0")));
    let classic = (definition.get("definition_type").and_then(Value::as_str) == Some("tlp"))
        .then(|| text(definition.pointer("/definition/tlp")).unwrap_or_default());
    match classic.or(extension) {
        None => Ok(None),
        Some(level) => level
            .parse()
            .map(Some)
            .map_err(|rule| format!("definition.tlp: {rule}")),
    }
}

/// The level that an object states: `x_mitre_tlp`, then TLP labels, then the most restrictive of its markings.
///
/// # Errors
/// Names the property that states an undefined level.
pub fn stated_marking(object: &Map<String, Value>, known: &Markings) -> Result<OwnMarking, String> {
    let (referenced, undefined) = level_of_references(object, known);
    let level = match own_level(object)? {
        Some(own) => Some(own),
        None => level_of_labels(object)?.or(referenced),
    };
    Ok(OwnMarking { level, undefined })
}

/// The marking of an object: the stated one, or else the default. The effect of an undefined marking is
/// unknown, so such an object is at least AMBER. A marking-definition itself is never withheld, because it
/// tells others the rules.
///
/// # Errors
/// As [`stated_marking`].
pub fn object_marking(
    object: &Map<String, Value>,
    known: &Markings,
    default: Tlp,
) -> Result<ObjectMarking, String> {
    let OwnMarking {
        level: stated,
        undefined,
    } = stated_marking(object, known)?;
    let level = stated.unwrap_or(default);
    let undefined = if text(object, "type") == Some("marking-definition") {
        Vec::new()
    } else {
        undefined
    };
    let tlp = if undefined.is_empty() {
        level
    } else {
        level.max(Tlp::Amber)
    };
    Ok(ObjectMarking {
        tlp,
        stated,
        undefined,
    })
}

fn own_level(object: &Map<String, Value>) -> Result<Option<Tlp>, String> {
    let Some(own) = object.get("x_mitre_tlp") else {
        return Ok(None);
    };
    let own = own.as_str().ok_or("x_mitre_tlp: must be a string")?;
    own.parse()
        .map(Some)
        .map_err(|rule| format!("x_mitre_tlp: {rule}"))
}

fn level_of_labels(object: &Map<String, Value>) -> Result<Option<Tlp>, String> {
    let mut level = None;
    for label in texts(object, "labels").filter(|label| is_tlp_label(label)) {
        let stated = label.parse::<Tlp>().map_err(|rule| format!("labels: {rule}"))?;
        level = level.max(Some(stated));
    }
    Ok(level)
}

/// The most restrictive level among the referenced markings, and the undefined ones.
fn level_of_references(object: &Map<String, Value>, known: &Markings) -> (Option<Tlp>, Vec<String>) {
    let mut level = None;
    let mut undefined: Vec<String> = Vec::new();
    for id in marking_refs(object) {
        match (level_of_id(id), known.get(id)) {
            (Some(tlp), _) => level = level.max(Some(tlp)),
            (None, Some(stated)) => level = level.max(*stated),
            (None, None) if undefined.iter().any(|seen| seen == id) => {}
            (None, None) => undefined.push(id.to_owned()),
        }
    }
    (level, undefined)
}

/// The markings that an object refers to, for the whole object or parts of it.
pub fn marking_refs(object: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let granular = object.get("granular_markings").and_then(Value::as_array);
    let granular = granular.into_iter().flatten();
    let granular = granular.filter_map(|marking| marking.get("marking_ref")?.as_str());
    texts(object, "object_marking_refs").chain(granular)
}

fn is_tlp_label(label: &str) -> bool {
    label
        .get(..4)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("tlp:"))
}

/// The marking ids for an object exported with level `tlp`.
pub fn refs_for(tlp: Tlp) -> &'static [&'static str] {
    match tlp {
        Tlp::White => &[TLP1[0].0],
        Tlp::Green => &[TLP1[1].0],
        Tlp::Amber => &[TLP1[2].0],
        // AMBER+STRICT keeps other receivers from treating it as weaker; the statement identifies it on re-import.
        Tlp::AmberPk => &[AMBER_STRICT_ID, AMBER_PK_ID],
        Tlp::Red => &[TLP1[3].0],
    }
}

/// The marking-definition object of a built-in id.
pub fn built_in_definition(id: &str) -> Option<Value> {
    if id == AMBER_PK_ID {
        return Some(json!({
            "type": "marking-definition", "spec_version": "2.1", "id": AMBER_PK_ID,
            "created": "2026-01-01T00:00:00.000Z", "name": "TLP:AMBER+PK",
            "definition_type": "statement",
            "definition": {"statement": "TLP:AMBER+PK: as TLP:AMBER+STRICT, for holders of elevated clearance only"},
        }));
    }
    if let Some((id, tlp, level)) = TLP1.iter().find(|(known, ..)| *known == id) {
        return Some(json!({
            "type": "marking-definition", "spec_version": "2.1", "id": id,
            "created": "2017-01-20T00:00:00.000Z", "name": tlp.as_str(),
            "definition_type": "tlp", "definition": {"tlp": level},
        }));
    }
    TLP2.iter()
        .find(|(known, ..)| *known == id)
        .map(|(id, _, level)| {
            json!({
                "type": "marking-definition", "spec_version": "2.1", "id": id,
                "created": "2022-10-01T00:00:00.000Z", "name": format!("TLP:{}", level.to_uppercase()),
                "extensions": {TLP2_EXTENSION: {"extension_type": "property-extension", "tlp_2_0": level}},
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_marks_a_level_reads_back_as_that_level() {
        for tlp in Tlp::ALL {
            let levels = refs_for(tlp)
                .iter()
                .filter_map(|id| level_of(&built_in_definition(id).unwrap()).unwrap());
            assert_eq!(levels.max(), Some(tlp));
        }
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn an_undefined_marking_makes_an_object_amber_at_least_and_never_weaker_than_its_others() {
        let strange = "marking-definition--11111111-1111-4111-8111-111111111111";
        let other = "marking-definition--22222222-2222-4222-8222-222222222222";
        let (green, red) = (TLP1[1].0, TLP1[3].0);
        for (json, default, want) in [
            (json!({"object_marking_refs": [strange]}), Tlp::White, Tlp::Amber),
            (
                json!({"object_marking_refs": [strange, green]}),
                Tlp::White,
                Tlp::Amber,
            ),
            (
                json!({"object_marking_refs": [strange, red]}),
                Tlp::White,
                Tlp::Red,
            ),
            (json!({"object_marking_refs": [strange]}), Tlp::Red, Tlp::Red),
            (
                json!({"object_marking_refs": [strange], "x_mitre_tlp": "white"}),
                Tlp::Red,
                Tlp::Amber,
            ),
            (
                json!({"granular_markings": [{"marking_ref": strange, "selectors": ["name"]}]}),
                Tlp::Green,
                Tlp::Amber,
            ),
        ] {
            let marked = object_marking(&object(json.clone()), &Markings::new(), default).unwrap();
            assert_eq!(
                (marked.tlp, marked.undefined),
                (want, vec![strange.to_owned()]),
                "{json}"
            );
        }
        let both = object(json!({"object_marking_refs": [strange, other, strange]}));
        let known = Markings::from([(other.to_owned(), None)]);
        assert_eq!(
            object_marking(&both, &known, Tlp::Green).unwrap().undefined,
            [strange]
        );
        let known = Markings::from([(other.to_owned(), None), (strange.to_owned(), Some(Tlp::White))]);
        let defined = object_marking(&both, &known, Tlp::Green).unwrap();
        assert_eq!((defined.tlp, defined.undefined.len()), (Tlp::White, 0));
    }

    #[test]
    fn a_marking_definition_is_never_held_back_itself() {
        let definition = object(json!({"type": "marking-definition",
            "object_marking_refs": ["marking-definition--11111111-1111-4111-8111-111111111111"]}));
        let marked = object_marking(&definition, &Markings::new(), Tlp::Green).unwrap();
        assert_eq!((marked.tlp, marked.undefined.len()), (Tlp::Green, 0));
    }

    #[test]
    fn a_definition_with_its_own_id_is_read_by_its_content() {
        let own = json!({"id": "marking-definition--11111111-1111-4111-8111-111111111111",
            "definition_type": "tlp", "definition": {"tlp": "amber"}});
        assert_eq!(level_of(&own), Ok(Some(Tlp::Amber)));
        let statement = json!({"definition_type": "statement", "definition": {"statement": "x"}});
        assert_eq!(level_of(&statement), Ok(None));
        let unknown = json!({"definition_type": "tlp", "definition": {"tlp": "pink"}});
        assert!(
            level_of(&unknown)
                .unwrap_err()
                .starts_with("definition.tlp: must be one of")
        );
    }
}
