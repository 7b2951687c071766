//! The schemas against real data, a table of objects that must be rejected, and the schemas of OASIS.

#![allow(clippy::wildcard_enum_match_arm)] // The mutations match on arbitrary JSON.

mod bad;
mod bad_bundles;
mod differential;
mod oasis;

use serde_json::json;

use super::*;
pub(super) use test_support::shared;

/// One object of every type with as many properties as possible; self-contained.
pub(super) fn samples() -> Value {
    serde_json::from_str(include_str!("tests/samples.json")).unwrap()
}

/// The first sample of a type.
pub(super) fn sample(type_name: &str) -> Value {
    let bundle = samples();
    let objects = bundle["objects"].as_array().unwrap();
    objects
        .iter()
        .find(|object| object["type"] == type_name)
        .unwrap_or_else(|| panic!("no {type_name}"))
        .clone()
}

/// The objects of each file's bundle, or the single object.
pub(super) fn real_objects(paths: &[&str]) -> Vec<Value> {
    let mut files = Vec::new();
    for path in paths.iter().filter_map(|path| shared(path)) {
        match path.is_dir() {
            true => files.extend(
                std::fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            ),
            false => files.push(path),
        }
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let parsed = files
        .iter()
        .map(|file| serde_json::from_slice::<Value>(&std::fs::read(file).unwrap()).unwrap());
    let objects = |document: Value| match document {
        Value::Object(mut bundle) if bundle.get("type") == Some(&json!("bundle")) => {
            match bundle.remove("objects") {
                Some(Value::Array(objects)) => objects,
                _ => Vec::new(),
            }
        }
        single => vec![single],
    };
    parsed.flat_map(objects).collect()
}

pub(super) const REAL: [&str; 4] = [
    "data/attack/ics-attack.json",
    "data/attack/ics-attack-17.1.json",
    "data/stix",
    "data/golden/export_golden.json",
];

fn lines(violations: &[Violation]) -> String {
    violations
        .iter()
        .map(|violation| format!("{violation}\n"))
        .collect()
}

#[test]
fn every_schema_compiles_and_every_type_has_one() {
    let validator = StixValidator::compile().unwrap();
    assert_eq!(validator.by_type.len(), 19 + 2 + 3 + 18);
    let covered: HashSet<String> = samples()["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| object["type"].as_str().unwrap().to_owned())
        .collect();
    for type_name in validator.by_type.keys() {
        assert!(covered.contains(*type_name), "no sample of {type_name}");
    }
}

#[test]
fn the_samples_are_a_valid_bundle() {
    let result = StixValidator::shared().bundle(&samples());
    assert!(result.is_ok(), "{}", lines(&result.unwrap_err()));
}

#[test]
fn real_objects_are_valid_unless_oasis_refuses_them_too() {
    let objects = real_objects(&REAL);
    let oasis = oasis::Oasis::load();
    let (mut refused, mut excused) = (String::new(), 0);
    for object in &objects {
        let violations = StixValidator::shared().object(object);
        if violations.is_empty() {
            continue;
        }
        match oasis.as_ref().is_some_and(|oasis| !oasis.accepts(object)) {
            true => excused += 1,
            false => refused.push_str(&lines(&violations)),
        }
    }
    println!("{} real objects, {excused} refused by both", objects.len());
    assert!(refused.is_empty(), "{refused}");
}

#[test]
fn the_golden_export_may_leave() {
    let Some(path) = shared("data/golden/export_golden.json") else {
        return;
    };
    let bundle: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let result = StixValidator::shared().bundle(&bundle);
    assert!(result.is_ok(), "{}", lines(&result.unwrap_err()));
}

#[test]
fn every_real_stix_pattern_parses() {
    for object in real_objects(&REAL) {
        if object["type"] == "indicator" && object["pattern_type"] == "stix" {
            let pattern = object["pattern"].as_str().unwrap();
            assert!(super::super::pattern::is_well_formed(pattern), "{pattern}");
        }
    }
}

#[test]
fn custom_properties_and_custom_types_pass() {
    let mut pattern = sample("attack-pattern");
    pattern["x_mitre_platforms"] = json!(["Safety Controller"]);
    pattern["x_mitre_version"] = json!("1.0");
    pattern["x_any"] = json!({"deep": [1, {"empty": []}]});
    assert_eq!(StixValidator::shared().object(&pattern), []);
    let mut tactic = sample("x-example-zone");
    tactic["type"] = json!("x-mitre-tactic");
    tactic["id"] = json!("x-mitre-tactic--69da72d2-f550-41c5-ab9e-e8255707f28a");
    assert_eq!(StixValidator::shared().object(&tactic), []);
}

#[test]
fn references_follow_the_chosen_rule() {
    let mut bundle = samples();
    let missing = "identity--5e57c739-391a-4eb3-b6be-7d15ca92d5ed".to_owned();
    let last = bundle["objects"].as_array().unwrap().len() - 1;
    bundle["objects"][last]["x_owner_refs"] = json!([missing]);
    let validator = StixValidator::shared();
    let violations = validator.bundle(&bundle).unwrap_err();
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].path, "/x_owner_refs/0");
    assert!(violations[0].rule.contains("does not resolve"));
    let known = HashSet::from([missing]);
    assert!(
        validator
            .bundle_with(&bundle, References::InBundleOr(&known))
            .is_ok()
    );
    assert!(validator.bundle_with(&bundle, References::Anywhere).is_ok());
}

#[test]
fn a_report_names_the_place_and_not_the_value() {
    let mut object = sample("indicator");
    object["confidence"] = json!("a secret that must not be logged");
    let violations = StixValidator::shared().object(&object);
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].path, "/confidence");
    assert_eq!(violations[0].object_id, object["id"].as_str().unwrap());
    assert!(!violations[0].to_string().contains("secret"), "{}", violations[0]);
    assert_eq!(
        serde_json::to_value(&violations[0]).unwrap()["path"],
        "/confidence"
    );
}

#[test]
fn a_hostile_bundle_gets_a_short_report() {
    let objects = vec![json!({"type": "indicator", "a": null, "b": []}); 2000];
    let bundle = json!({"type": "bundle", "id": "x", "objects": objects});
    assert!(StixValidator::shared().bundle(&bundle).unwrap_err().len() <= MAX_VIOLATIONS);
    for odd in [
        json!(null),
        json!([]),
        json!("x"),
        json!(1),
        json!({}),
        json!({"objects": {}}),
    ] {
        assert!(StixValidator::shared().bundle(&odd).is_err());
        assert!(!StixValidator::shared().object(&odd).is_empty());
    }
}

/// Not a benchmark: guards against schemas that are an order of magnitude too slow.
#[test]
fn a_hundred_objects_validate_quickly() {
    let mut bundle = samples();
    let objects = bundle["objects"].as_array().unwrap().clone();
    let mut copies = objects.clone();
    for object in objects
        .into_iter()
        .filter(|object| object["type"] != "marking-definition")
        .take(48)
    {
        let mut copy = object;
        let id = copy["id"].as_str().unwrap().to_owned();
        copy["id"] = json!(format!("{}ee", &id[..id.len() - 2]));
        copies.push(copy);
    }
    let count = copies.len();
    bundle["objects"] = json!(copies);
    let validator = StixValidator::shared();
    let rounds = 20;
    let start = std::time::Instant::now();
    for _ in 0..rounds {
        assert!(validator.bundle(&bundle).is_ok());
    }
    let each = start.elapsed() / rounds;
    println!("{count} objects in {each:?}");
    assert!(each.as_millis() < 200, "{each:?}");
}
