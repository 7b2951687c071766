//! Invalid markings, and bundles with inconsistent objects.

use serde_json::json;

use super::bad::{Drop, OTHER_ID, Set, damage};
use super::*;

const TLP2: &str = "extension-definition--60a3c5c5-0d10-413e-aab3-9e08dde9e88d";

#[test]
fn markings() {
    let cases = [
        ("/name", Set(json!("TLP:RED"))),
        ("/name", Drop),
        ("/definition/tlp", Set(json!("white"))),
        ("/created", Set(json!("2018-01-20T00:00:00.000Z"))),
        ("/created_by_ref", Set(json!(OTHER_ID))),
        (
            "/id",
            Set(json!("marking-definition--826578e1-0000-4000-8000-000000000000")),
        ),
        ("/definition_type", Set(json!("statement"))),
        ("/modified", Set(json!("2018-01-20T00:00:00.000Z"))),
        ("/definition", Drop),
        ("/spec_version", Set(json!("2.0"))),
    ];
    for (pointer, how) in cases {
        let mut object = sample("marking-definition");
        damage(&mut object, pointer, how);
        assert!(!StixValidator::shared().object(&object).is_empty(), "{object}");
    }
    let mut statement = samples()["objects"][3].clone();
    assert_eq!(StixValidator::shared().object(&statement), []);
    statement["object_marking_refs"] = json!([statement["id"]]);
    assert_eq!(
        StixValidator::shared().object(&statement)[0].path,
        "/object_marking_refs/0"
    );
    let bundle = samples();
    let strict = &bundle["objects"][1];
    assert_eq!(StixValidator::shared().object(strict), []);
    for level in ["clear", "amber", "purple"] {
        let mut object = strict.clone();
        object["extensions"][TLP2]["tlp_2_0"] = json!(level);
        assert!(!StixValidator::shared().object(&object).is_empty(), "{object}");
    }
    let mut renamed = strict.clone();
    renamed["id"] = json!("marking-definition--00000001-0000-4000-8000-000000000001");
    assert!(!StixValidator::shared().object(&renamed).is_empty());
}

#[test]
fn bundles() {
    let last = samples()["objects"].as_array().unwrap().len() - 1;
    let absent = |name: &str| json!(format!("{name}--5e57c739-391a-4eb3-b6be-7d15ca92d5ed"));
    let again = samples()["objects"][last].clone();
    let cases = [
        ("/type".to_owned(), Set(json!("envelope")), "/type"),
        ("/id".to_owned(), Drop, "/id"),
        ("/id".to_owned(), Set(json!(OTHER_ID)), "/id"),
        ("/spec_version".to_owned(), Drop, "/spec_version"),
        ("/spec_version".to_owned(), Set(json!("2.0")), "/spec_version"),
        ("/objects".to_owned(), Drop, "/objects"),
        ("/objects".to_owned(), Set(json!([])), "/objects"),
        ("/objects".to_owned(), Set(json!([1])), "/objects/0"),
        ("/more".to_owned(), Set(json!(false)), "more"),
        (
            format!("/objects/{last}/created_by_ref"),
            Set(absent("identity")),
            "/created_by_ref",
        ),
        (
            format!("/objects/{last}/object_marking_refs"),
            Set(json!([absent("marking-definition")])),
            "/object_marking_refs/0",
        ),
        (
            format!("/objects/{last}/granular_markings"),
            Set(json!([{"selectors": ["name"], "marking_ref": absent("marking-definition")}])),
            "/granular_markings/0/marking_ref",
        ),
        (
            format!("/objects/{last}/x_deep"),
            Set(json!([{"zone_ref": absent("location")}])),
            "/x_deep/0/zone_ref",
        ),
        (format!("/objects/{}", last - 1), Set(again), "/id"),
    ];
    for (pointer, how, expected) in cases {
        let mut bundle = samples();
        damage(&mut bundle, &pointer, how);
        let violations = StixValidator::shared().bundle(&bundle).unwrap_err();
        let named = violations
            .iter()
            .any(|violation| violation.path.contains(expected) || violation.rule.contains(expected));
        assert!(
            named,
            "{pointer}: expected {expected}, got:\n{}",
            lines(&violations)
        );
    }
}

#[test]
fn a_dangling_relationship_is_found_at_its_end() {
    let mut bundle = samples();
    let objects = bundle["objects"].as_array_mut().unwrap();
    objects.retain(|object| object["type"] != "intrusion-set" && object["type"] != "report");
    let violations = StixValidator::shared().bundle(&bundle).unwrap_err();
    assert_eq!(violations.len(), 1, "{}", lines(&violations));
    assert!(violations[0].object_id.starts_with("relationship--"));
    assert_eq!(violations[0].path, "/source_ref");
}

#[test]
fn numbered_references_stay_inside_their_observed_data() {
    let bundle = samples();
    let objects = bundle["objects"].as_array().unwrap();
    let mut observed = objects
        .iter()
        .find(|object| object.get("objects").is_some())
        .unwrap()
        .clone();
    assert_eq!(StixValidator::shared().object(&observed), []);
    observed["objects"]["1"]["resolves_to_refs"] = json!(["7"]);
    let violations = StixValidator::shared().object(&observed);
    assert_eq!(violations[0].path, "/objects/1/resolves_to_refs/0");
}
