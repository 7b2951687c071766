//! What a STIX object is called that has no name, and the text that it holds: reports, sightings, observables and whatever
//! else is a node beside the contract's types.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::object::{text, texts, timestamp};
use crate::domain::extraction::EntityKind;
use crate::domain::naming::canonical_value;

/// Longest title made of a text, in characters.
const MAX_TITLE: usize = 120;
/// Properties that name an object, the best one first.
const NAMING: [&str; 14] = [
    "name",
    "value",
    "abstract",
    "subject",
    "path",
    "key",
    "display_name",
    "account_login",
    "user_id",
    "command_line",
    "result_name",
    "serial_number",
    "url",
    "x_misp_value",
];
/// Properties with the text of an object, the best one first.
const TEXTS: [&str; 6] = [
    "description",
    "content",
    "explanation",
    "body",
    "statement",
    "x_opencti_description",
];
/// Digests, the one that people exchange most first.
const DIGESTS: [(&str, EntityKind); 4] = [
    ("SHA-256", EntityKind::Sha256),
    ("SHA-1", EntityKind::Sha1),
    ("MD5", EntityKind::Md5),
    ("SHA-512", EntityKind::Sha512),
];

/// What an object is called.
pub fn title_of(object: &Map<String, Value>) -> String {
    let named = NAMING.iter().filter_map(|key| text(object, key));
    let named = named.map(str::trim).find(|name| !name.is_empty());
    if let Some(name) = named {
        return shorten(name);
    }
    let kind = text(object, "type").unwrap_or_default();
    let described = match kind {
        "autonomous-system" => object.get("number").map(|number| format!("AS{number}")),
        "location" => place(object),
        "network-traffic" => traffic(object),
        "observed-data" => {
            text(object, "first_observed").map(|time| format!("observed data of {}", day(time)))
        }
        "opinion" => text(object, "opinion").map(|opinion| format!("opinion: {opinion}")),
        "malware-analysis" => text(object, "product").map(|product| format!("analysis by {product}")),
        // By its words what it translates is found, so its name is not theirs.
        "language-content" => {
            let languages = object.get("contents").and_then(Value::as_object);
            let languages: Vec<&str> = languages
                .into_iter()
                .flatten()
                .map(|(code, _)| code.as_str())
                .collect();
            Some(shorten(&format!("translation: {}", languages.join(", "))))
        }
        "grouping" => text(object, "context").map(|context| format!("grouping: {context}")),
        "process" => object.get("pid").map(|pid| format!("process {pid}")),
        "sighting" => sighting(object),
        "x-misp-object" => misp_object(object),
        _ => None,
    };
    let described = described.or_else(|| digest(object).map(|(_, digest)| digest.to_owned()));
    let described = described.or_else(|| Some(first_line(&text_of(object))).filter(|line| !line.is_empty()));
    described.unwrap_or_else(|| text(object, "id").unwrap_or_default().to_owned())
}

/// The text that an object holds; empty if there is none. That of language content is all that it translates (STIX 2.1
/// section 7.1).
pub fn text_of(object: &Map<String, Value>) -> Cow<'_, str> {
    if text(object, "type") == Some("language-content") {
        let translated: Vec<&str> = translations(object).collect();
        return translated.join("\n").into();
    }
    let held = TEXTS.iter().filter_map(|key| text(object, key));
    held.into_iter()
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default()
        .into()
}

/// The texts of language content; those of a language stand together.
fn translations(object: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let languages = object.get("contents").and_then(Value::as_object);
    let languages = languages.into_iter().flat_map(Map::values);
    let properties = languages.filter_map(Value::as_object).flatten();
    properties.filter_map(|(_, text)| text.as_str())
}

/// The value of an observable as indicators of it have it, and its kind; `None` for objects that no indicator is of.
pub fn observed_value(object: &Map<String, Value>) -> Option<(EntityKind, String)> {
    let of = |kind: EntityKind, key: &str| {
        let value = text(object, key).filter(|value| !value.trim().is_empty())?;
        Some((kind, canonical_value(kind, value)))
    };
    match text(object, "type")? {
        "ipv4-addr" | "ipv6-addr" if text(object, "value")?.contains('/') => of(EntityKind::Cidr, "value"),
        "ipv4-addr" => of(EntityKind::Ipv4, "value"),
        "ipv6-addr" => of(EntityKind::Ipv6, "value"),
        "domain-name" => of(EntityKind::Domain, "value"),
        "url" => of(EntityKind::Url, "value"),
        "email-addr" => of(EntityKind::Email, "value"),
        "windows-registry-key" => of(EntityKind::RegistryKey, "key"),
        "autonomous-system" => Some((EntityKind::Asn, format!("AS{}", object.get("number")?))),
        "file" => digest(object)
            .map(|(kind, digest)| (kind, digest.to_lowercase()))
            .or_else(|| of(EntityKind::FileName, "name")),
        _ => None,
    }
}

/// All digests of an object.
pub fn digests(object: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let hashes = object.get("hashes").and_then(Value::as_object);
    hashes
        .into_iter()
        .flatten()
        .filter_map(|(_, digest)| digest.as_str())
}

fn digest(object: &Map<String, Value>) -> Option<(EntityKind, &str)> {
    let hashes = object.get("hashes")?.as_object()?;
    DIGESTS
        .iter()
        .find_map(|(name, kind)| Some((*kind, hashes.get(*name)?.as_str()?)))
}

/// Where a location is, the smallest part first.
fn place(object: &Map<String, Value>) -> Option<String> {
    let parts = ["city", "administrative_area", "country", "region"];
    let parts: Vec<&str> = parts.iter().filter_map(|key| text(object, key)).collect();
    if !parts.is_empty() {
        return Some(parts.join(", "));
    }
    let [latitude, longitude] = ["latitude", "longitude"].map(|key| object.get(key));
    Some(format!("{}, {}", latitude?, longitude?))
}

/// Protocols and ports: "ipv4 tcp 443".
fn traffic(object: &Map<String, Value>) -> Option<String> {
    let mut parts: Vec<String> = texts(object, "protocols").map(str::to_owned).collect();
    parts.extend(object.get("dst_port").map(Value::to_string));
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// A MISP object that the converter misp-stix has no STIX type for: its name, and the first of its values that is a word.
fn misp_object(object: &Map<String, Value>) -> Option<String> {
    let name = text(object, "x_misp_name")?;
    let attributes = object.get("x_misp_attributes").and_then(Value::as_array);
    let values = attributes
        .into_iter()
        .flatten()
        .filter_map(|one| one.get("value")?.as_str());
    let mut words = values.filter(|value| value.chars().any(char::is_alphabetic));
    Some(match words.next() {
        Some(word) => shorten(&format!("{name}: {word}")),
        None => name.to_owned(),
    })
}

/// "sighting of a malware, 3 times, 2026-01-02".
fn sighting(object: &Map<String, Value>) -> Option<String> {
    let (kind, _) = text(object, "sighting_of_ref")?.split_once("--")?;
    let mut title = format!("sighting of {}", kind.replace('-', " "));
    match object.get("count").and_then(Value::as_u64) {
        Some(1) => title.push_str(", once"),
        Some(count) => title.push_str(&format!(", {count} times")),
        None => {}
    }
    let seen = ["first_seen", "last_seen"];
    if let Some(time) = seen.iter().find_map(|key| text(object, key)) {
        title.push_str(&format!(", {}", day(time)));
    }
    Some(title)
}

/// The day of a time, in UTC.
fn day(time: &str) -> String {
    timestamp(time).map_or_else(|| time.to_owned(), |time| time.format("%Y-%m-%d").to_string())
}

fn first_line(text: &str) -> String {
    shorten(text.trim().lines().next().unwrap_or_default().trim())
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_called_what_it_says_of_itself() {
        for (object, title) in [
            (json!({"type": "report", "name": "A report"}), "A report"),
            (
                json!({"type": "note", "abstract": "Short", "content": "long"}),
                "Short",
            ),
            (
                json!({"type": "note", "content": "First line\nsecond"}),
                "First line",
            ),
            (json!({"type": "opinion", "opinion": "agree"}), "opinion: agree"),
            (
                json!({"type": "x-misp-attribute", "x_misp_value": "Python/Machete.A"}),
                "Python/Machete.A",
            ),
            (
                json!({"type": "x-misp-object", "x_misp_name": "elf",
                    "x_misp_attributes": [{"value": "51984"}, {"value": "DYNAMIC"}]}),
                "elf: DYNAMIC",
            ),
            (
                json!({"type": "x-misp-object", "x_misp_name": "elf", "x_misp_attributes": [{"value": "51984"}]}),
                "elf",
            ),
            (
                json!({"type": "ipv4-addr", "value": "198.51.100.7"}),
                "198.51.100.7",
            ),
            (json!({"type": "autonomous-system", "number": 64500}), "AS64500"),
            (json!({"type": "location", "country": "UA"}), "UA"),
            (
                json!({"type": "location", "city": "Kyiv", "country": "UA"}),
                "Kyiv, UA",
            ),
            (
                json!({"type": "location", "latitude": 1.5, "longitude": 2}),
                "1.5, 2",
            ),
            (
                json!({"type": "file", "hashes": {"MD5": "aa", "SHA-256": "bb"}}),
                "bb",
            ),
            (
                json!({"type": "file", "name": "a.exe", "hashes": {"MD5": "aa"}}),
                "a.exe",
            ),
            (
                json!({"type": "sighting", "sighting_of_ref": "malware--1", "count": 3, "first_seen": "2026-01-02T00:00:00Z"}),
                "sighting of malware, 3 times, 2026-01-02",
            ),
            (
                json!({"type": "network-traffic", "protocols": ["ipv4", "tcp"], "dst_port": 443}),
                "ipv4 tcp 443",
            ),
            (
                json!({"type": "observed-data", "first_observed": "2026-01-02T03:04:05Z"}),
                "observed data of 2026-01-02",
            ),
            (json!({"type": "x-other", "id": "x-other--1"}), "x-other--1"),
        ] {
            assert_eq!(title_of(object.as_object().unwrap()), title, "{object}");
        }
        let long = json!({"type": "note", "content": "word ".repeat(100)});
        assert_eq!(title_of(long.as_object().unwrap()).chars().count(), MAX_TITLE + 1);
    }

    #[test]
    fn an_observable_has_the_value_of_its_indicators() {
        for (object, value) in [
            (
                json!({"type": "ipv6-addr", "value": "2001:DB8::1"}),
                Some((EntityKind::Ipv6, "2001:db8::1")),
            ),
            (
                json!({"type": "ipv4-addr", "value": "198.51.100.0/24"}),
                Some((EntityKind::Cidr, "198.51.100.0/24")),
            ),
            (
                json!({"type": "domain-name", "value": "Example.COM"}),
                Some((EntityKind::Domain, "example.com")),
            ),
            (
                json!({"type": "file", "name": "a", "hashes": {"SHA-1": "AB"}}),
                Some((EntityKind::Sha1, "ab")),
            ),
            (json!({"type": "mutex", "name": "m"}), None),
            (json!({"type": "report", "name": "r"}), None),
        ] {
            let found = observed_value(object.as_object().unwrap());
            let found = found.as_ref().map(|(kind, value)| (*kind, value.as_str()));
            assert_eq!(found, value, "{object}");
        }
    }
}
