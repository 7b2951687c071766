use serde_json::json;

use super::*;
use crate::domain::naming::indicator_of;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn an_indicator_stands_for_the_values_of_its_pattern_and_for_its_own() {
    let pattern = r"[ipv4-addr:value = '192.0.2.1' OR windows-registry-key:key = 'HKLM\\Software\\X']";
    let stix = map(json!({"stix_id": "indicator--1", "pattern": pattern, "pattern_type": "stix"}));
    let of = value_identities(&stix);
    for (kind, value) in [
        ("ipv4", "192[.]0[.]2[.]1"),
        ("registry-key", r"HKEY_LOCAL_MACHINE\software\x"),
    ] {
        assert!(has_value(&of, &indicator_identity(kind, value)), "{value}");
    }
    assert!(!has_value(&of, &indicator_identity("domain", "192.0.2.1")));
    // The key is found by its spelling and its normal form.
    let keys = pattern_keys(&stix);
    for key in [r"HKLM\Software\X", r"HKEY_LOCAL_MACHINE\Software\X", "192.0.2.1"] {
        assert!(keys.iter().any(|known| known == key), "{key} in {keys:?}");
    }
    // The pattern of a value's own node says no more than the value.
    let path = map(json!({"value": r"C:\x\a.exe", "ioc_type": "file-path",
        "pattern": r"[file:name = 'a.exe' AND file:parent_directory_ref.path = 'C:\\x']"}));
    assert_eq!(value_identities(&path).len(), 1);
    assert!(pattern_keys(&path).is_empty());
    // A rule in another language is none.
    let yara = map(
        json!({"stix_id": "indicator--1", "pattern": "[ipv4-addr:value = '192.0.2.1']", "pattern_type": "yara"}),
    );
    assert!(pattern_keys(&yara).is_empty());
}

#[test]
fn a_value_of_no_known_kind_is_that_of_any_kind() {
    let stix = map(json!({"stix_id": "indicator--1", "pattern": "[mutex:name = 'Heron-Mutex']"}));
    let of = value_identities(&stix);
    assert!(has_value(&of, &indicator_of("heron-mutex").identity()));
    assert!(!has_value(&of, &indicator_of("heron").identity()));
}

#[test]
fn only_indicators_have_a_value() {
    assert_eq!(
        value_of_identity(&identity(["ioc", "ipv4", "192.0.2.1"])),
        Some("192.0.2.1")
    );
    assert_eq!(value_of_identity(&identity(["actor", "apt28"])), None);
}
