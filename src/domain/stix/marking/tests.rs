use serde_json::json;

use super::*;

const STRANGE: &str = "marking-definition--11111111-1111-4111-8111-111111111111";
const OTHER: &str = "marking-definition--22222222-2222-4222-8222-222222222222";
const WHITE: &str = "marking-definition--613f2e26-407d-48c7-9eca-b8e91df99dc9";
const GREEN: &str = "marking-definition--34098fce-860f-48ae-8e50-ebd3cc5e41da";
const AMBER: &str = "marking-definition--f88d31f6-486f-44da-b317-01333bde0b82";
const RED: &str = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn what_marks_a_level_reads_back_as_that_level() {
    for tlp in Tlp::ALL {
        let levels = refs_for(tlp)
            .iter()
            .map(|id| match level_of(&built_in_definition(id).unwrap()) {
                DefinitionLevel::Level(level) => level,
                DefinitionLevel::Statement | DefinitionLevel::Unreadable => panic!("{id} has no level"),
            });
        assert_eq!(levels.max(), Some(tlp));
    }
}

/// Where producers write a level: OpenCTI as connector and as export, MISP, and others by name or statement.
fn spelled(level: &str) -> Vec<Value> {
    let (prefixed, lower) = (format!("TLP:{level}"), level.to_lowercase());
    let lower_tag = format!("tlp:{lower}");
    vec![
        json!({"definition_type": "statement", "definition": {"statement": "custom"},
            "x_opencti_definition_type": "TLP", "x_opencti_definition": prefixed}),
        json!({"definition_type": "statement", "definition": {"statement": "custom"},
            "x_opencti_definition_type": "TLP", "x_opencti_definition": level}),
        json!({"x_opencti_definition": prefixed}),
        json!({"name": prefixed, "definition_type": "TLP", "definition": {"TLP": prefixed}}),
        json!({"definition_type": "TLP", "definition": {"TLP": lower}}),
        json!({"definition_type": "tlp", "definition": {"tlp": prefixed}}),
        json!({"definition_type": "tlp", "definition": {"tlp": {"level": lower}}}),
        json!({"definition_type": "tlp", "definition": lower}),
        json!({"definition_type": "statement", "definition": {"statement": prefixed}}),
        json!({"definition_type": "statement", "definition": {"statement": format!("tlp: {lower}")}}),
        json!({"definition_type": "statement", "definition": {"statement": "see name"}, "name": prefixed}),
        json!({"name": prefixed}),
        json!({"name": format!("TLP {level}")}),
        json!({"name": "Our rule", "extensions": {"extension-definition--60a3c5c5-0d10-413e-aab3-9e08dde9e88d":
            {"extension_type": "property-extension", "tlp_2_0": lower}}}),
        json!({"extensions": {"extension-definition--11111111-1111-4111-8111-111111111111":
            {"extension_type": "property-extension", "tlp": lower}}}),
        json!({"x_tlp": level, "definition_type": "statement", "definition": {"statement": "ours"}}),
        json!({"definition_type": "tlp", "definition": {"tlp": lower, "tlp_version": "2.0"}}),
        json!({"definition_type": "TLP", "definition": {"TLP": prefixed, "description": "as agreed"}}),
        json!({"definition_type": "tlp", "definition": {"tlp": {"level": lower, "version": 2}}}),
        json!({"definition_type": prefixed, "definition": {"statement": "ours"}}),
        json!({"labels": [lower_tag], "definition_type": "statement", "definition": {"statement": "ours"}}),
    ]
}

#[test]
fn every_sign_of_a_level_counts() {
    for (level, want) in [
        ("CLEAR", Tlp::White),
        ("WHITE", Tlp::White),
        ("GREEN", Tlp::Green),
        ("AMBER", Tlp::Amber),
        ("AMBER+STRICT", Tlp::AmberPk),
        ("RED", Tlp::Red),
    ] {
        for mut definition in spelled(level) {
            definition["id"] = STRANGE.into();
            assert_eq!(
                level_of(&definition),
                DefinitionLevel::Level(want),
                "{definition}"
            );
        }
    }
}

#[test]
fn signs_that_contradict_each_other_give_the_strictest_and_a_fixed_id_is_never_weakened() {
    for (definition, want) in [
        (
            json!({"name": "TLP:RED", "definition": {"statement": "TLP:CLEAR"}}),
            Tlp::Red,
        ),
        (
            json!({"name": "TLP:WHITE", "definition_type": "tlp", "definition": {"tlp": "pink"}}),
            Tlp::Amber,
        ),
        (
            json!({"definition_type": "tlp", "definition": {"tlp": "pink", "note": "white"}}),
            Tlp::Amber,
        ),
        (
            json!({"id": RED, "definition_type": "tlp", "definition": {"tlp": "white"}}),
            Tlp::Red,
        ),
        (
            json!({"id": WHITE, "name": "TLP:CLEAR", "definition_type": "tlp", "definition": {"tlp": "clear"}}),
            Tlp::White,
        ),
        (
            json!({"id": "marking-definition--826578e1-40ad-459f-bc73-ede076f81f37"}),
            Tlp::AmberPk,
        ),
    ] {
        assert_eq!(
            level_of(&definition),
            DefinitionLevel::Level(want),
            "{definition}"
        );
    }
}

#[test]
fn a_statement_is_no_level_and_an_unreadable_level_is_no_statement() {
    for statement in [
        json!({"definition_type": "statement", "definition": {"statement": "x"}}),
        json!({"name": "PAP:RED", "definition_type": "statement", "definition": {"statement": "PAP:RED"}}),
        json!({"x_opencti_definition_type": "PAP", "x_opencti_definition": "PAP:AMBER"}),
        json!({"definition_type": "statement", "definition": {"statement": "c"}, "x_mitre_tlp": "TLP:RED"}),
        json!({"definition_type": "statement", "definition": {"statement": "c"}, "object_marking_refs": [RED]}),
    ] {
        assert_eq!(level_of(&statement), DefinitionLevel::Statement, "{statement}");
    }
    for unreadable in [
        json!({"definition_type": "tlp", "definition": {"tlp": "pink"}}),
        json!({"definition_type": "tlp", "definition": {"tlp": 4}}),
        json!({"definition_type": "TLP"}),
        json!({"labels": ["tlp:pink"]}),
        json!({"name": "TLP:PINK"}),
        json!({"x_opencti_definition_type": "TLP", "x_opencti_definition": "see cover"}),
        json!({"definition_type": "statement", "definition": {"statement": "TLP as on the cover"}}),
    ] {
        assert_eq!(level_of(&unreadable), DefinitionLevel::Unreadable, "{unreadable}");
    }
}

#[test]
fn a_definition_that_is_restated_is_valid_and_reads_as_its_level() {
    for level in Tlp::ALL {
        for original in [
            json!({}),
            json!({"created": "2020-01-01T00:00:00Z", "name": "TLP:X", "definition_type": "TLP"}),
        ] {
            let restated = Value::Object(restate(STRANGE, &object(original), level));
            assert!(has_standard_type(&object(restated.clone())), "{restated}");
            let violations = crate::domain::stix::schema::StixValidator::shared().object(&restated);
            assert_eq!(violations, [], "{restated}");
        }
        let restated = Value::Object(restate(STRANGE, &Map::new(), level));
        assert_eq!(level_of(&restated), DefinitionLevel::Level(level));
    }
}

#[test]
fn markings_of_the_standard_are_a_floor_and_a_difference_is_named() {
    let granular = json!([{"marking_ref": RED, "selectors": ["name"]}]);
    let (amber, statement) = (STRANGE, OTHER);
    for (json, want, conflict) in [
        (
            json!({"labels": ["tlp:white"], "object_marking_refs": [RED]}),
            Tlp::Red,
            true,
        ),
        (
            json!({"labels": ["tlp:clear"], "granular_markings": granular}),
            Tlp::Red,
            true,
        ),
        (
            json!({"x_mitre_tlp": "TLP:WHITE", "object_marking_refs": [RED]}),
            Tlp::Red,
            true,
        ),
        (
            json!({"x_mitre_tlp": "WHITE", "granular_markings": granular}),
            Tlp::Red,
            true,
        ),
        (
            json!({"x_mitre_tlp": "WHITE", "object_marking_refs": [amber]}),
            Tlp::Amber,
            true,
        ),
        (
            json!({"labels": ["tlp:red"], "object_marking_refs": [WHITE]}),
            Tlp::Red,
            true,
        ),
        (
            json!({"labels": ["tlp:amber"], "object_marking_refs": [AMBER]}),
            Tlp::Amber,
            false,
        ),
        (
            json!({"x_mitre_tlp": "WHITE", "labels": ["tlp:red"]}),
            Tlp::White,
            false,
        ),
        (json!({"labels": ["tlp:green", "TLP-AMBER"]}), Tlp::Amber, false),
        (json!({"object_marking_refs": [GREEN, AMBER]}), Tlp::Amber, false),
        // The default is AMBER+PK.
        (json!({"object_marking_refs": [WHITE]}), Tlp::White, false),
        (json!({"object_marking_refs": [statement]}), Tlp::AmberPk, false),
        (
            json!({"x_mitre_tlp": "clear", "object_marking_refs": [statement]}),
            Tlp::White,
            false,
        ),
        (json!({}), Tlp::AmberPk, false),
    ] {
        let known = Markings::from([(amber.to_owned(), Some(Tlp::Amber)), (statement.to_owned(), None)]);
        let marked = object_marking(&object(json.clone()), &known, Tlp::AmberPk).unwrap();
        assert_eq!(
            (marked.tlp, marked.conflict.is_some()),
            (want, conflict),
            "{json}"
        );
    }
    let both = object(json!({"x_mitre_tlp": "white", "object_marking_refs": [RED]}));
    let conflict = object_marking(&both, &Markings::new(), Tlp::Green)
        .unwrap()
        .conflict;
    assert_eq!(
        conflict.unwrap().to_string(),
        "x_mitre_tlp says TLP:WHITE, and its markings say TLP:RED: TLP:RED counts"
    );
}

#[test]
fn an_undefined_marking_makes_an_object_amber_at_least_and_never_weaker_than_its_others() {
    for (json, default, want) in [
        (json!({"object_marking_refs": [STRANGE]}), Tlp::White, Tlp::Amber),
        (
            json!({"object_marking_refs": [STRANGE, GREEN]}),
            Tlp::White,
            Tlp::Amber,
        ),
        (
            json!({"object_marking_refs": [STRANGE, RED]}),
            Tlp::White,
            Tlp::Red,
        ),
        (json!({"object_marking_refs": [STRANGE]}), Tlp::Red, Tlp::Red),
        (
            json!({"object_marking_refs": [STRANGE], "x_mitre_tlp": "white"}),
            Tlp::Red,
            Tlp::Amber,
        ),
        (
            json!({"granular_markings": [{"marking_ref": STRANGE, "selectors": ["name"]}]}),
            Tlp::Green,
            Tlp::Amber,
        ),
    ] {
        let marked = object_marking(&object(json.clone()), &Markings::new(), default).unwrap();
        assert_eq!(
            (marked.tlp, marked.undefined),
            (want, vec![STRANGE.to_owned()]),
            "{json}"
        );
    }
    let both = object(json!({"object_marking_refs": [STRANGE, OTHER, STRANGE]}));
    let known = Markings::from([(OTHER.to_owned(), None)]);
    assert_eq!(
        object_marking(&both, &known, Tlp::Green).unwrap().undefined,
        [STRANGE]
    );
    let known = Markings::from([(OTHER.to_owned(), None), (STRANGE.to_owned(), Some(Tlp::White))]);
    let defined = object_marking(&both, &known, Tlp::Green).unwrap();
    assert_eq!((defined.tlp, defined.undefined.len()), (Tlp::White, 0));
}

#[test]
fn a_marking_definition_is_never_held_back_itself() {
    let definition = object(json!({"type": "marking-definition", "object_marking_refs": [STRANGE]}));
    let marked = object_marking(&definition, &Markings::new(), Tlp::Green).unwrap();
    assert_eq!((marked.tlp, marked.undefined.len()), (Tlp::Green, 0));
}

#[test]
fn of_two_definitions_of_a_marking_the_stricter_one_counts() {
    for (first, second, want) in [
        (Some(Tlp::Red), Some(Tlp::White), Some(Tlp::Red)),
        (Some(Tlp::Red), None, Some(Tlp::Red)),
        (None, Some(Tlp::Amber), Some(Tlp::Amber)),
        (None, None, None),
    ] {
        let mut known = Markings::new();
        learn(&mut known, [(STRANGE.to_owned(), first)]);
        learn(&mut known, [(STRANGE.to_owned(), second)]);
        assert_eq!(known.get(STRANGE), Some(&want), "{first:?} {second:?}");
    }
}

#[test]
fn only_a_definition_with_a_level_lowers_a_row_and_not_below_where_it_is_known() {
    for (row, read_anew, states, known_from, want) in [
        (Tlp::Amber, Tlp::Green, Some(Tlp::Green), Tlp::Green, Tlp::Green),
        (Tlp::Amber, Tlp::Green, None, Tlp::Green, Tlp::Amber),
        (Tlp::Amber, Tlp::White, Some(Tlp::White), Tlp::Amber, Tlp::Amber),
        (Tlp::Amber, Tlp::Red, Some(Tlp::Red), Tlp::Green, Tlp::Red),
        (Tlp::Amber, Tlp::Red, None, Tlp::Green, Tlp::Red),
    ] {
        assert_eq!(level_by_definition(row, read_anew, states, known_from), want);
    }
}

#[test]
fn what_leaves_is_judged_by_the_strictest_marking_it_carries() {
    let known = Markings::from([(STRANGE.to_owned(), Some(Tlp::Red)), (OTHER.to_owned(), None)]);
    for (json, row, want) in [
        (json!({}), Tlp::Green, Departure::Leaves),
        (json!({}), Tlp::Red, Departure::Above(Tlp::Red)),
        (
            json!({"labels": ["tlp:red"], "x_mitre_tlp": "white"}),
            Tlp::White,
            Departure::Above(Tlp::Red),
        ),
        (
            json!({"object_marking_refs": [RED]}),
            Tlp::White,
            Departure::Above(Tlp::Red),
        ),
        (
            json!({"object_marking_refs": [STRANGE]}),
            Tlp::White,
            Departure::Above(Tlp::Red),
        ),
        (
            json!({"object_marking_refs": [OTHER, AMBER]}),
            Tlp::White,
            Departure::Leaves,
        ),
        (
            json!({"object_marking_refs": ["marking-definition--33333333-3333-4333-8333-333333333333"]}),
            Tlp::Green,
            Departure::Undefined,
        ),
    ] {
        assert_eq!(
            departure(&object(json.clone()), row, &known, Tlp::AmberPk),
            want,
            "{json}"
        );
    }
}

#[test]
fn a_fixed_id_is_known_in_upper_case_and_written_as_its_definition_writes_it() {
    let upper = |id: &str| {
        let uuid = id.trim_start_matches("marking-definition--").to_uppercase();
        format!("marking-definition--{uuid}")
    };
    for id in [WHITE, RED, refs_for(Tlp::AmberPk)[1]] {
        assert!(is_built_in(&upper(id)) && has_definition(&upper(id)), "{id}");
        assert_eq!(built_in_definition(&upper(id)).unwrap()["id"], id);
    }
    let mut sent = object(json!({"object_marking_refs": [upper(RED), STRANGE, RED],
        "granular_markings": [{"marking_ref": upper(RED)}, {"lang": "de"}]}));
    let unchanged = sent.clone();
    write_fixed_ids(&mut sent, |_| true);
    assert_eq!(sent, unchanged);
    write_fixed_ids(&mut sent, |_| false);
    let want = json!({"object_marking_refs": [RED, STRANGE],
        "granular_markings": [{"marking_ref": RED}, {"lang": "de"}]});
    assert_eq!(Value::Object(sent), want);
}
