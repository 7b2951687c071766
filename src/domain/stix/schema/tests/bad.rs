//! Objects that must be rejected: each is a sample with one defect, and the position that the report must name.

use serde_json::json;

use super::*;

pub(super) enum Damage {
    /// Removes the property.
    Drop,
    /// Sets the property.
    Set(Value),
}
pub(super) use Damage::{Drop, Set};

pub(super) const OTHER_ID: &str = "identity--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";

pub(super) fn damage(object: &mut Value, pointer: &str, damage: Damage) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = object
        .pointer_mut(parent)
        .unwrap_or_else(|| panic!("no {pointer}"));
    match (damage, parent) {
        (Drop, Value::Object(members)) => assert!(members.remove(name).is_some(), "no {pointer}"),
        (Set(value), Value::Object(members)) => {
            members.insert(name.to_owned(), value);
        }
        (Set(value), Value::Array(items)) => items[name.parse::<usize>().unwrap()] = value,
        _ => panic!("cannot damage {pointer}"),
    }
}

fn check(type_name: &str, pointer: &str, how: Damage, expected: &str) {
    let mut object = sample(type_name);
    assert_eq!(StixValidator::shared().object(&object), [], "the sample itself");
    damage(&mut object, pointer, how);
    let violations = StixValidator::shared().object(&object);
    let named = violations
        .iter()
        .any(|violation| violation.path.contains(expected) || violation.rule.contains(expected));
    assert!(
        named,
        "{type_name}{pointer}: expected {expected}, got:\n{}",
        lines(&violations)
    );
}

#[test]
fn common_properties() {
    let cases = [
        ("id", Drop, "/id"),
        ("id", Set(json!("campaign-2024")), "/id"),
        (
            "id",
            Set(json!("campaign--018f4f6e-0000-7000-8000-000000000000")),
            "/id",
        ),
        (
            "id",
            Set(json!("campaign--00000001-0000-4000-0000-000000000001")),
            "/id",
        ),
        ("id", Set(json!(OTHER_ID)), "/id"),
        ("type", Drop, "/type"),
        ("type", Set(json!("campaigns")), "/type"),
        ("type", Set(json!("Campaign")), "/type"),
        ("type", Set(json!(7)), "/type"),
        ("spec_version", Drop, "/spec_version"),
        ("spec_version", Set(json!("2.0")), "/spec_version"),
        ("created", Drop, "/created"),
        ("created", Set(json!("2024-01-02T03:04:05Z")), "/created"),
        ("created", Set(json!("2024-01-02T03:04:05.67Z")), "/created"),
        ("created", Set(json!("2024-01-02T03:04:05.678+00:00")), "/created"),
        ("created", Set(json!("2024-02-30T03:04:05.678Z")), "/created"),
        ("created", Set(json!(1_704_164_645)), "/created"),
        ("modified", Drop, "/modified"),
        ("modified", Set(json!("2023-12-31T03:04:05.678Z")), "/modified"),
        ("confidence", Set(json!(101)), "/confidence"),
        ("confidence", Set(json!(-1)), "/confidence"),
        ("confidence", Set(json!(70.5)), "/confidence"),
        ("confidence", Set(json!("70")), "/confidence"),
        ("labels", Set(json!([])), "/labels"),
        ("labels", Set(json!([1])), "/labels/0"),
        ("labels", Set(Value::Null), "/labels"),
        ("revoked", Set(json!("false")), "/revoked"),
        ("created_by_ref", Set(json!("acme")), "/created_by_ref"),
        ("object_marking_refs", Set(json!([])), "/object_marking_refs"),
        (
            "object_marking_refs",
            Set(json!([OTHER_ID])),
            "/object_marking_refs/0",
        ),
        (
            "granular_markings",
            Set(json!([{"selectors": ["name"]}])),
            "/marking_ref",
        ),
        ("severity", Set(json!("high")), "/severity"),
        ("action", Set(json!("block")), "/action"),
        ("username", Set(json!("u")), "/username"),
        ("phone_numbers", Set(json!(["1"])), "/phone_numbers"),
        ("ot", Set(json!("x")), "/ot"),
        ("Upper_case", Set(json!("x")), "/Upper_case"),
        ("with-hyphen", Set(json!("x")), "/with-hyphen"),
        ("x_null", Set(Value::Null), "/x_null"),
        ("x_nested", Set(json!({"inner": [null]})), "/x_nested"),
        ("x_empty", Set(json!([])), "/x_empty"),
        ("x_payload_bin", Set(json!("not base64!")), "/x_payload_bin"),
        ("x_magic_hex", Set(json!("abc")), "/x_magic_hex"),
        ("extensions", Set(json!({})), "/extensions"),
        (
            "extensions",
            Set(json!({"my-extension": {"abc": 1}})),
            "my-extension",
        ),
        ("first_seen", Set(json!("yesterday")), "/first_seen"),
        ("lang", Set(json!("English")), "/lang"),
        ("first_seen", Set(json!("2030-01-01T00:00:00Z")), "first_seen"),
        (
            "external_references",
            Set(json!([{"source_name": "x"}])),
            "external_id",
        ),
        (
            "external_references",
            Set(json!([{"url": "https://example.com"}])),
            "/source_name",
        ),
        (
            "external_references",
            Set(json!([{"source_name": "x", "url": "example.com"}])),
            "/external_references/0/url",
        ),
        (
            "external_references",
            Set(json!([{"source_name": "cve", "external_id": "2024-1"}])),
            "/external_id",
        ),
        (
            "external_references",
            Set(json!([{"source_name": "cve", "description": "d"}])),
            "/external_id",
        ),
        (
            "external_references",
            Set(json!([{"source_name": "nvd", "external_id": "CVE-2024-1234"}])),
            "/external_id",
        ),
        (
            "external_references",
            Set(json!([{"source_name": "capec", "external_id": "7"}])),
            "/external_id",
        ),
        (
            "external_references",
            Set(json!([{"source_name": "x", "url": "https://e.com", "hashes": {"SHA9": "0"}}])),
            "/hashes",
        ),
    ];
    for (name, how, expected) in cases {
        check("campaign", &format!("/{name}"), how, expected);
    }
}

#[test]
fn domain_and_relationship_objects() {
    let cases = [
        (
            "attack-pattern",
            "/kill_chain_phases/0/phase_name",
            Drop,
            "/phase_name",
        ),
        (
            "attack-pattern",
            "/granular_markings/0/selectors/0",
            Set(json!("no_such_property")),
            "/selectors/0",
        ),
        (
            "attack-pattern",
            "/granular_markings/0/selectors/0",
            Set(json!("aliases.[7]")),
            "/selectors/0",
        ),
        (
            "attack-pattern",
            "/granular_markings/0/selectors/0",
            Set(json!("Name")),
            "/selectors/0",
        ),
        (
            "attack-pattern",
            "/granular_markings/0/lang",
            Set(json!("en")),
            "/granular_markings/0/marking_ref",
        ),
        ("grouping", "/context", Drop, "/context"),
        ("grouping", "/object_refs", Set(json!([])), "/object_refs"),
        ("identity", "/name", Drop, "/name"),
        ("identity", "/sectors", Set(json!("energy")), "/sectors"),
        ("incident", "/name", Set(json!("")), "/name"),
        ("indicator", "/pattern", Drop, "/pattern"),
        ("indicator", "/pattern", Set(json!("198.51.100.3")), "/pattern"),
        (
            "indicator",
            "/pattern",
            Set(json!("[ipv4-addr:value = 'it's']")),
            "/pattern",
        ),
        ("indicator", "/pattern_type", Drop, "/pattern_type"),
        ("indicator", "/valid_from", Drop, "/valid_from"),
        (
            "indicator",
            "/valid_until",
            Set(json!("2024-01-02T03:04:05.678Z")),
            "/valid_until",
        ),
        ("location", "/longitude", Drop, "longitude"),
        ("location", "/latitude", Set(json!(91)), "/latitude"),
        ("malware", "/is_family", Drop, "/is_family"),
        ("malware", "/name", Drop, "/name"),
        (
            "malware",
            "/sample_refs/0",
            Set(json!(OTHER_ID)),
            "/sample_refs/0",
        ),
        ("malware-analysis", "/product", Drop, "/product"),
        ("note", "/content", Drop, "/content"),
        ("note", "/object_refs", Drop, "/object_refs"),
        (
            "observed-data",
            "/number_observed",
            Set(json!(0)),
            "/number_observed",
        ),
        (
            "observed-data",
            "/object_refs/0",
            Set(json!(OTHER_ID)),
            "/object_refs/0",
        ),
        (
            "observed-data",
            "/last_observed",
            Set(json!("2020-01-01T00:00:00Z")),
            "/last_observed",
        ),
        ("opinion", "/opinion", Set(json!("maybe")), "/opinion"),
        ("report", "/published", Drop, "/published"),
        ("report", "/object_refs", Set(json!([])), "/object_refs"),
        ("threat-actor", "/aliases", Set(json!([])), "/aliases"),
        ("tool", "/name", Drop, "/name"),
        (
            "vulnerability",
            "/external_references/0/external_id",
            Set(json!("CVE-15-1")),
            "/external_id",
        ),
        ("relationship", "/source_ref", Drop, "/source_ref"),
        (
            "relationship",
            "/target_ref",
            Set(json!("relationship--5e57c739-391a-4eb3-b6be-7d15ca92d5ed")),
            "/target_ref",
        ),
        (
            "relationship",
            "/relationship_type",
            Set(json!("Uses It")),
            "/relationship_type",
        ),
        (
            "relationship",
            "/stop_time",
            Set(json!("2024-01-02T03:04:05.678Z")),
            "/stop_time",
        ),
        ("sighting", "/sighting_of_ref", Drop, "/sighting_of_ref"),
        ("sighting", "/count", Set(json!(1_000_000_000)), "/count"),
        (
            "sighting",
            "/where_sighted_refs/0",
            Set(json!("tool--5e57c739-391a-4eb3-b6be-7d15ca92d5ed")),
            "/where_sighted_refs/0",
        ),
        ("language-content", "/contents", Drop, "/contents"),
        ("language-content", "/contents/de/K-1", Set(json!("x")), "K-1"),
        ("extension-definition", "/created_by_ref", Drop, "/created_by_ref"),
        (
            "extension-definition",
            "/extension_types",
            Set(json!(["property-extension"])),
            "/extension_types",
        ),
        ("x-example-zone", "/created", Drop, "/created"),
    ];
    for (type_name, pointer, how, expected) in cases {
        check(type_name, pointer, how, expected);
    }
}

#[test]
fn observables() {
    let cases = [
        ("artifact", "/payload_bin", Set(json!("***")), "/payload_bin"),
        ("artifact", "/encryption_algorithm", Drop, "encryption_algorithm"),
        ("autonomous-system", "/number", Set(json!("15139")), "/number"),
        ("directory", "/path", Drop, "/path"),
        (
            "domain-name",
            "/value",
            Set(json!("https://example.com/")),
            "/value",
        ),
        (
            "domain-name",
            "/resolves_to_refs/0",
            Set(json!("0")),
            "/resolves_to_refs/0",
        ),
        (
            "email-addr",
            "/value",
            Set(json!("John <john@example.com>")),
            "/value",
        ),
        ("email-message", "/body", Set(json!("text")), "/body"),
        ("file", "/hashes/MD5", Set(json!("d41d8")), "/hashes/MD5"),
        ("file", "/hashes", Set(json!({})), "/hashes"),
        (
            "file",
            "/extensions/windows-pebinary-ext/pe_type",
            Drop,
            "/pe_type",
        ),
        ("ipv4-addr", "/value", Set(json!("256.1.1.1")), "/value"),
        (
            "ipv4-addr",
            "/created",
            Set(json!("2024-01-02T03:04:05.678Z")),
            "/created",
        ),
        ("ipv4-addr", "/confidence", Set(json!(5)), "/confidence"),
        ("ipv6-addr", "/value", Set(json!("2001:db8:::1")), "/value"),
        ("mac-addr", "/value", Set(json!("D2-FB-49-24-37-18")), "/value"),
        ("mutex", "/name", Drop, "/name"),
        ("network-traffic", "/protocols", Set(json!([])), "/protocols"),
        ("network-traffic", "/dst_port", Set(json!(65_536)), "/dst_port"),
        ("network-traffic", "/is_active", Set(json!(true)), "/end"),
        ("process", "/pid", Set(json!("4")), "/pid"),
        (
            "process",
            "/id",
            Set(json!("process--00000001-0000-5000-8000-000000000001")),
            "UUIDv4",
        ),
        ("software", "/languages/0", Set(json!("English")), "/languages/0"),
        ("file", "/name_enc", Set(json!("utf-8")), "/name_enc"),
        ("software", "/cpe", Set(json!("cpe:/a:microsoft:word")), "/cpe"),
        ("url", "/value", Set(json!("example.com")), "/value"),
        ("url", "/value", Set(json!("https://example.com/a b")), "/value"),
        (
            "user-account",
            "/extensions/unix-account-ext/groups",
            Set(json!([])),
            "/groups",
        ),
        ("windows-registry-key", "/key", Set(json!("HKLM\\System")), "/key"),
        (
            "windows-registry-key",
            "/values/0/data_type",
            Set(json!("REG_TEXT")),
            "/data_type",
        ),
        (
            "x509-certificate",
            "/validity_not_after",
            Set(json!("2025-01-01")),
            "/validity_not_after",
        ),
    ];
    for (type_name, pointer, how, expected) in cases {
        check(type_name, pointer, how, expected);
    }
}
