//! Whatever our schemas accept, those of OASIS accept too: tested by mutating every position, one and two at a time.
//!
//! Where the standard and the published schemas differ, ours take the stricter side of both. Known differences, all
//! of them cases that OASIS accepts and we reject:
//! - `spec_version` 2.0, custom SCOs at the top level, new object types without `x-`, empty names;
//! - version properties (`created`, `confidence`, …) on SCOs and `modified` or `confidence` on marking definitions;
//! - TLP 2.0 extensions on other ids than the five published ones, TLP 1.x objects with other members;
//! - references to the wrong type (section 6), `sample_refs` other than file and artifact, times out of order,
//!   selectors that select nothing, STIX patterns that do not parse, null inside custom properties;
//! - language tags that do not start with an ISO 639 code, character sets outside the common ones, e-mail addresses
//!   whose host has no dot, SCOs whose id is derived from nothing, marking definitions that mark themselves;
//! - host names beyond letters, digits and hyphens (RFC 5890), artifacts with trailing text after the MIME type.
//!
//! Granular markings with `lang` alone, which the standard asks for, are the one case that we accept and OASIS rejects;
//! the samples have none.
//!
//! Cases that the standard accepts but we reject because the published schemas do: an IPv6 address with a dotted
//! tail, a registry key with only `modified_time`, a process with only `created_time`, single-valued lists in
//! `additional_header_fields`, `lpReserved` in `startup_info`, RFC 5646 tags in the `languages` of software (the release the OASIS validator ships takes ISO 639-2 alone).

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, json};
use test_support::extent;

use super::oasis::Oasis;
use super::*;

/// Values that are invalid in most positions.
fn poisons() -> Vec<Value> {
    vec![
        Value::Null,
        json!([]),
        json!({}),
        json!(""),
        json!("x"),
        json!("identity--5e57c739-391a-4eb3-b6be-7d15ca92d5ed"),
        json!("2024-01-02T03:04:05Z"),
        json!("2024-13-02T03:04:05.000Z"),
        json!("0"),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(5_000_000_000_i64),
        json!(true),
        json!(false),
        json!(["x"]),
        json!([null]),
        json!([1, "a"]),
        json!({"abc": "x"}),
        json!({"abc": []}),
        json!({"ab c": null}),
        json!({"source_name": "cve"}),
    ]
}

/// Small changes to a value that keep its kind.
fn twists(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) => {
            let tail: String = text.chars().skip(1).collect();
            let head: String = text
                .chars()
                .take(text.chars().count().saturating_sub(1))
                .collect();
            vec![
                json!(format!("{text}X")),
                json!(format!("{text}\n")),
                json!(format!(" {text}")),
                json!(tail),
                json!(head),
                json!(text.to_uppercase()),
                json!(text.to_lowercase()),
                json!(text.replace('-', "--")),
                json!(text.replace('-', "_")),
                json!(text.replace("-4", "-7")),
                json!(text.replace('Z', "+00:00")),
                json!(text.replace('.', "")),
                json!(text.replace(':', "")),
                json!(format!("{text}{text}")),
                json!(text.replacen(char::is_alphanumeric, "é", 1)),
            ]
        }
        Value::Number(number) => {
            let float = number.as_f64().unwrap_or_default();
            vec![
                json!(float + 0.5),
                json!(-float),
                json!(number.as_i64().unwrap_or(1).saturating_mul(1_000_000)),
            ]
        }
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Array(items) => {
            let mut longer = items.clone();
            longer.push(Value::Null);
            let mut doubled = items.clone();
            doubled.extend(items.iter().cloned());
            vec![json!(longer), json!(doubled), json!([items])]
        }
        Value::Object(members) => vec![
            with_member(members, "ab", json!(1)),
            with_member(members, "severity", json!("x")),
            with_member(members, "Upper", json!("x")),
            with_member(members, "extra_bin", json!("?")),
            with_member(members, "extra-name", json!("x")),
            with_member(members, "x_null", Value::Null),
            with_member(members, "x_empty", json!([])),
        ],
        Value::Null => Vec::new(),
    }
}

fn with_member(members: &Map<String, Value>, name: &str, value: Value) -> Value {
    let mut members = members.clone();
    members.insert(name.to_owned(), value);
    Value::Object(members)
}

/// Every position in a value, as JSON pointers.
fn places(value: &Value, pointer: &str, found: &mut Vec<String>) {
    found.push(pointer.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{pointer}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                places(
                    member,
                    &format!("{pointer}/{}", report::pointer_segment(name)),
                    found,
                );
            }
        }
        _ => {}
    }
}

fn drop_at(object: &Value, pointer: &str) -> Option<Value> {
    let (parent, last) = pointer.rsplit_once('/')?;
    let name = last.replace("~1", "/").replace("~0", "~");
    let mut damaged = object.clone();
    match damaged.pointer_mut(parent)? {
        Value::Object(members) => members.remove(&name).map(|_| ())?,
        Value::Array(items) => items
            .remove(name.parse().ok()?)
            .is_null()
            .then_some(())
            .or(Some(()))?,
        _ => return None,
    }
    Some(damaged)
}

fn rename_at(object: &Value, pointer: &str) -> Vec<Value> {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return Vec::new();
    };
    let name = last.replace("~1", "/").replace("~0", "~");
    let names = [
        name.to_uppercase(),
        format!("{name}-x"),
        format!("{name}x"),
        "ab".to_owned(),
        format!("x{name}"),
        "hklm".to_owned(),
    ];
    let renamed = names.into_iter().filter_map(|new| {
        let mut damaged = object.clone();
        let members = damaged.pointer_mut(parent)?.as_object_mut()?;
        let value = members.remove(&name)?;
        members.insert(new, value);
        Some(damaged)
    });
    renamed.collect()
}

fn set_at(object: &Value, pointer: &str, value: Value) -> Value {
    let mut damaged = object.clone();
    if let Some(place) = damaged.pointer_mut(pointer) {
        *place = value;
    }
    damaged
}

/// Every mutation of one position.
fn damages(object: &Value, pointer: &str) -> Vec<Value> {
    let mut all: Vec<Value> = poisons()
        .into_iter()
        .map(|poison| set_at(object, pointer, poison))
        .collect();
    if let Some(value) = object.pointer(pointer) {
        all.extend(
            twists(value)
                .into_iter()
                .map(|twisted| set_at(object, pointer, twisted)),
        );
    }
    all.extend(drop_at(object, pointer));
    all.extend(rename_at(object, pointer));
    all
}

fn assert_agrees(oasis: &Oasis, object: &Value) -> bool {
    let ours = StixValidator::shared().object(object).is_empty();
    if ours {
        assert!(
            oasis.accepts(object),
            "we accept what OASIS refuses:\n{object:#}\n{}",
            oasis.why(object)
        );
    }
    ours
}

#[test]
fn whatever_we_accept_oasis_accepts_too() {
    let Some(oasis) = Oasis::load() else { return };
    let mut bases = samples()["objects"].as_array().unwrap().clone();
    // A few real objects per type are enough.
    let mut seen: HashMap<String, usize> = HashMap::new();
    for object in real_objects(&REAL) {
        let count = seen
            .entry(object["type"].as_str().unwrap().to_owned())
            .or_default();
        *count += 1;
        if *count <= 3 && object.to_string().len() < 20_000 {
            bases.push(object);
        }
    }
    let (mut tried, mut accepted) = (0_usize, 0_usize);
    for base in &bases {
        let mut all = Vec::new();
        places(base, "", &mut all);
        for pointer in all.iter().step_by(extent(13, 1)) {
            for damaged in damages(base, pointer) {
                tried += 1;
                accepted += usize::from(assert_agrees(&oasis, &damaged));
            }
        }
    }
    println!(
        "{} objects, {tried} damaged forms, {accepted} still accepted, all of them by OASIS too",
        bases.len()
    );
    assert!(
        accepted > extent(100, 1000),
        "the damage must not be so great that nothing is compared"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(300, 2000)))]

    #[test]
    fn two_damages_at_once_agree_as_well(which: Index, at: [Index; 2], how: [Index; 2]) {
        thread_local!(static OASIS: Option<Oasis> = Oasis::load());
        thread_local!(static SAMPLES: Value = samples());
        let mut object = SAMPLES.with(|bundle| which.get(bundle["objects"].as_array().unwrap()).clone());
        for (at, how) in at.iter().zip(&how) {
            let mut all = Vec::new();
            places(&object, "", &mut all);
            let place: &String = at.get(&all);
            object = how.get(&damages(&object, place)).clone();
        }
        OASIS.with(|oasis| oasis.as_ref().map(|oasis| assert_agrees(oasis, &object)));
    }
}
