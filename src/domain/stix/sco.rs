//! Deterministic identifiers of STIX cyber-observable objects (SCOs; STIX 2.1 section 2.9).
//!
//! Two producers that see the same address give it the same id: UUIDv5 in the namespace of the standard, over the
//! canonical JSON (RFC 8785) of the id contributing properties. An object without any of them, and every `process`,
//! has no deterministic id. The caller assigns a random one, since this module uses no randomness.

use serde_json::{Map, Number, Value, json};
use uuid::Uuid;

/// The namespace for SCO ids; not allowed for other objects.
pub const SCO_NAMESPACE: Uuid = Uuid::from_u128(0x00ab_edb4_aa42_466c_9c01_fed2_3315_a9b7);

/// Order of preference for the one digest that contributes to the id.
const HASH_PREFERENCE: [&str; 4] = ["MD5", "SHA-1", "SHA-256", "SHA-512"];

/// The id contributing properties of an SCO type (section 6, each type's second table); `None` for other types.
pub fn contributing_properties(sco_type: &str) -> Option<&'static [&'static str]> {
    Some(match sco_type {
        "artifact" => &["hashes", "payload_bin"],
        "autonomous-system" => &["number"],
        "directory" => &["path"],
        "domain-name" | "email-addr" | "ipv4-addr" | "ipv6-addr" | "mac-addr" | "url" => &["value"],
        "email-message" => &["from_ref", "subject", "body"],
        "file" => &["hashes", "name", "parent_directory_ref", "extensions"],
        "mutex" => &["name"],
        "network-traffic" => &[
            "start",
            "end",
            "src_ref",
            "dst_ref",
            "src_port",
            "dst_port",
            "protocols",
            "extensions",
        ],
        "process" => &[],
        "software" => &["name", "cpe", "swid", "vendor", "version"],
        "user-account" => &["account_type", "user_id", "account_login"],
        "windows-registry-key" => &["key", "values"],
        "x509-certificate" => &["hashes", "serial_number"],
        _ => return None,
    })
}

/// Whether a type is one of the cyber-observable objects of section 6.
pub fn is_observable(object_type: &str) -> bool {
    contributing_properties(object_type).is_some()
}

/// The deterministic id of an SCO with these properties; `None` if it has none.
pub fn deterministic_id(sco_type: &str, properties: &Map<String, Value>) -> Option<String> {
    let mut contributing = Map::new();
    for name in contributing_properties(sco_type)? {
        let Some(value) = properties.get(*name) else {
            continue;
        };
        let value = if *name == "hashes" {
            preferred_hash(value)
        } else {
            Some(value.clone())
        };
        if let Some(value) = value {
            contributing.insert((*name).to_owned(), value);
        }
    }
    if contributing.is_empty() {
        return None;
    }
    let canonical = canonical_json(&Value::Object(contributing));
    Some(format!(
        "{sco_type}--{}",
        Uuid::new_v5(&SCO_NAMESPACE, canonical.as_bytes())
    ))
}

/// A complete SCO: type, spec_version and deterministic id, plus the given properties. `None` as in
/// [`deterministic_id`].
pub fn object(sco_type: &str, properties: Map<String, Value>) -> Option<Value> {
    let id = deterministic_id(sco_type, &properties)?;
    let mut object = properties;
    object.insert("type".to_owned(), json!(sco_type));
    object.insert("spec_version".to_owned(), json!("2.1"));
    object.insert("id".to_owned(), json!(id));
    Some(Value::Object(object))
}

/// Only one digest contributes: the first in order of preference, or else the first by name.
fn preferred_hash(hashes: &Value) -> Option<Value> {
    let hashes = hashes.as_object()?;
    let preferred = HASH_PREFERENCE
        .iter()
        .find_map(|name| hashes.get_key_value(*name));
    // By name, since the member order of a JSON object means nothing.
    let (name, digest) = preferred.or_else(|| hashes.iter().min_by_key(|(name, _)| name.as_str()))?;
    Some(json!({ name.as_str(): digest }))
}

/// JSON in the canonical form of RFC 8785: no white space, members sorted by UTF-16 code units, numbers as in
/// ECMAScript, shortest escapes.
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&canonical_number(number)),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => write_members(members, out),
    }
}

fn write_members(members: &Map<String, Value>, out: &mut String) {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    // RFC 8785 section 3.2.3; outside the basic plane this differs from UTF-8 byte order.
    sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    out.push('{');
    for (index, (name, member)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(name, out);
        out.push(':');
        write_canonical(member, out);
    }
    out.push('}');
}

/// RFC 8785 section 3.2.2.2: escapes only what must be escaped, in the short form where one exists.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// RFC 8785 section 3.2.2.3. Integers keep all digits, as the reference implementation hashes ports and AS numbers;
/// none of them comes near 2^53.
fn canonical_number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => ecmascript_float(float),
        _ => number.to_string(),
    }
}

/// ECMAScript `Number::toString`: plain digits from 1e-6 up to 1e21, an exponent outside that range.
fn ecmascript_float(float: f64) -> String {
    if float == 0.0 {
        return "0".to_owned();
    }
    if (1e-6..1e21).contains(&float.abs()) {
        return float.to_string();
    }
    // Rust and ECMAScript give the same shortest digits, but ECMAScript writes a plus before a positive exponent.
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generated with the OASIS reference implementation (stix2 3.0.2).
    const VECTORS: [(&str, &str, &str); 12] = [
        (
            "ipv4-addr",
            r#"{"value": "198.51.100.3"}"#,
            "ipv4-addr--28bb3599-77cd-5a82-a950-b5bc3caf07c4",
        ),
        (
            "ipv6-addr",
            r#"{"value": "2001:db8::1"}"#,
            "ipv6-addr--6469e3a9-b053-5e34-a025-9396ae051d26",
        ),
        (
            "domain-name",
            r#"{"value": "example.com"}"#,
            "domain-name--bedb4899-d24b-5401-bc86-8f6b4cc18ec7",
        ),
        (
            "url",
            r#"{"value": "https://example.com/research/index.html"}"#,
            "url--47c3cf9a-5027-5bf0-997a-017c7edc7c55",
        ),
        (
            "email-addr",
            r#"{"value": "john@example.com"}"#,
            "email-addr--7165e2a9-671f-585d-b1e1-ca59c671d934",
        ),
        (
            "file",
            r#"{"hashes": {"SHA-256": "fe90a7e910cb3a4739bed9180e807e93fa70c90f25a8915476f5e4bfbac681db"}}"#,
            "file--b91bcf06-0d11-5a89-9c3a-8d4279aefe56",
        ),
        (
            "file",
            r#"{"hashes": {"MD5": "d41d8cd98f00b204e9800998ecf8427e"}, "name": "foo.exe"}"#,
            "file--51d0535d-dfbb-5909-b066-8ee329783353",
        ),
        (
            "mutex",
            r#"{"name": "__CLEANSWEEP__"}"#,
            "mutex--f93fe911-e545-5239-b9b0-597840d0c871",
        ),
        (
            "mac-addr",
            r#"{"value": "d2:fb:49:24:37:18"}"#,
            "mac-addr--757b1725-9903-54f5-a855-1240691d7659",
        ),
        (
            "autonomous-system",
            r#"{"number": 15139}"#,
            "autonomous-system--3aa27478-50b5-5ab8-9da9-cdc12b657fff",
        ),
        (
            "windows-registry-key",
            r#"{"key": "hkey_local_machine\\system\\bar\\foo"}"#,
            "windows-registry-key--67c068a7-2c94-526b-8e90-d0f8d96c630f",
        ),
        (
            "domain-name",
            r#"{"value": "bücher.example"}"#,
            "domain-name--dbf3aff2-b3cd-57d2-9616-0ddfde9d01ad",
        ),
    ];

    fn properties(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn ids_agree_with_the_reference_implementation() {
        for (sco_type, text, id) in VECTORS {
            assert_eq!(
                deterministic_id(sco_type, &properties(text)).as_deref(),
                Some(id),
                "{sco_type} {text}"
            );
        }
    }

    #[test]
    fn properties_that_do_not_contribute_change_nothing() {
        let plain = properties(r#"{"value": "198.51.100.3"}"#);
        let marked =
            properties(r#"{"defanged": true, "value": "198.51.100.3", "object_marking_refs": ["x"]}"#);
        assert_eq!(
            deterministic_id("ipv4-addr", &plain),
            deterministic_id("ipv4-addr", &marked)
        );
    }

    #[test]
    fn one_digest_stands_for_all() {
        let md5 = properties(r#"{"hashes": {"MD5": "d41d8cd98f00b204e9800998ecf8427e"}}"#);
        let both = properties(r#"{"hashes": {"SHA-256": "00", "MD5": "d41d8cd98f00b204e9800998ecf8427e"}}"#);
        assert_eq!(deterministic_id("file", &md5), deterministic_id("file", &both));
    }

    #[test]
    fn nothing_to_hash_means_no_deterministic_id() {
        assert_eq!(deterministic_id("process", &properties(r#"{"pid": 4}"#)), None);
        assert_eq!(deterministic_id("file", &properties(r#"{"size": 4}"#)), None);
        assert_eq!(deterministic_id("file", &properties(r#"{"hashes": {}}"#)), None);
        assert_eq!(
            deterministic_id("indicator", &properties(r#"{"name": "x"}"#)),
            None
        );
    }

    #[test]
    fn a_whole_object_carries_its_id() {
        let made = object("domain-name", properties(r#"{"value": "example.com"}"#)).unwrap();
        assert_eq!(
            made,
            json!({"type": "domain-name", "spec_version": "2.1", "value": "example.com",
                   "id": "domain-name--bedb4899-d24b-5401-bc86-8f6b4cc18ec7"})
        );
    }

    #[test]
    fn canonical_form_follows_rfc_8785() {
        let value = json!({"b": [1, 2.0, 1e21, 1.5e-7, 0.000001, -0.0, 333_333_333.333_333_3], "a": "\u{1}\u{7f}\t\"\\/é"});
        let expected =
            "{\"a\":\"\\u0001\u{7f}\\t\\\"\\\\/é\",\"b\":[1,2,1e+21,1.5e-7,0.000001,0,333333333.3333333]}";
        assert_eq!(canonical_json(&value), expected);
        // U+1F600 is a surrogate pair (D83D …), so it sorts before U+FB33, contrary to code-point order.
        let keys = json!({"\u{fb33}": 1, "\u{1f600}": 2});
        assert_eq!(canonical_json(&keys), "{\"\u{1f600}\":2,\"\u{fb33}\":1}");
    }
}
