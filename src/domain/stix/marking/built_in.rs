//! Marking-definitions with fixed ids.
//!
//! Sources: STIX 2.1 section 7.2.1.4 (the four TLP 1.x objects), OASIS extension-definition--60a3c5c5
//! (the TLP 2.0 objects), OpenCTI (its own AMBER+STRICT).

use serde_json::{Value, json};

use crate::domain::tlp::Tlp;

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
/// The id that every OpenCTI gives to its TLP:AMBER+STRICT.
const OPENCTI_STRICT_ID: &str = "marking-definition--826578e1-40ad-459f-bc73-ede076f81f37";

/// The level of one of the standard's TLP 1.x or 2.0 marking-definition ids.
pub fn well_known_level(id: &str) -> Option<Tlp> {
    TLP1.iter()
        .chain(&TLP2)
        .find(|(known, ..)| known.eq_ignore_ascii_case(id))
        .map(|(_, tlp, _)| *tlp)
}

/// The level stated by a reference to this id, whatever object accompanies it. Covers the well-known ids and those of
/// AMBER+STRICT, which must not fall back to the default if a sender dropped the rest.
pub fn level_of_id(id: &str) -> Option<Tlp> {
    let strict = [AMBER_PK_ID, OPENCTI_STRICT_ID];
    let strict = strict.iter().any(|known| known.eq_ignore_ascii_case(id));
    well_known_level(id).or(strict.then_some(Tlp::AmberPk))
}

/// Whether the marking `id` has one definition only, which this service has: what a sender says of it is not asked.
pub fn is_built_in(id: &str) -> bool {
    fixed_id(id).is_some_and(|id| id != OPENCTI_STRICT_ID)
}

/// Whether this service can export the marking `id` without having received it.
pub fn has_definition(id: &str) -> bool {
    fixed_id(id).is_some()
}

/// The id of [`has_definition`] as its definition writes it. Senders may write it in upper case.
pub fn fixed_id(id: &str) -> Option<&'static str> {
    let standard = TLP1.iter().chain(&TLP2).map(|(known, ..)| *known);
    let mut fixed = standard.chain([AMBER_PK_ID, OPENCTI_STRICT_ID]);
    fixed.find(|known| known.eq_ignore_ascii_case(id))
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

/// The definitions of all levels up to this one.
pub fn definitions_up_to(highest: Tlp) -> Vec<Value> {
    let standard = TLP1.iter().chain(&TLP2).map(|(id, ..)| *id);
    let ids = standard.chain([AMBER_PK_ID, OPENCTI_STRICT_ID]);
    let ids = ids.filter(|id| level_of_id(id).is_some_and(|level| level <= highest));
    ids.filter_map(built_in_definition).collect()
}

/// The marking-definition object of an id of [`has_definition`].
pub fn built_in_definition(id: &str) -> Option<Value> {
    match fixed_id(id)? {
        AMBER_PK_ID => Some(statement(
            AMBER_PK_ID,
            "TLP:AMBER+PK",
            "TLP:AMBER+PK: as TLP:AMBER+STRICT, for holders of elevated clearance only",
        )),
        OPENCTI_STRICT_ID => Some(statement(
            OPENCTI_STRICT_ID,
            "TLP:AMBER+STRICT",
            "TLP:AMBER+STRICT",
        )),
        id => standard(id),
    }
}

fn statement(id: &str, name: &str, statement: &str) -> Value {
    json!({
        "type": "marking-definition", "spec_version": "2.1", "id": id,
        "created": "2026-01-01T00:00:00.000Z", "name": name,
        "definition_type": "statement", "definition": {"statement": statement},
    })
}

fn standard(id: &str) -> Option<Value> {
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
