//! Optional parts of an object: texts, lists, times, references. Values that do not conform to the
//! standard are omitted.

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use serde_json::{Map, Value, json};

use crate::domain::node::KgNode;
use crate::domain::stix::object::{format_timestamp, timestamp};
use crate::domain::tlp::level_of_tag;

/// Maximum number of list items, to bound the size of an object.
const MAX_ITEMS: usize = 200;
/// Node properties that hold a URL, or a list of them.
const URL_KEYS: [&str; 4] = ["url", "source_url", "urls", "references"];
/// Paths of ATT&CK pages, by the letters of the id.
const ATTACK_PAGES: [(&str, &str); 6] = [
    ("TA", "tactics"),
    ("T", "techniques"),
    ("G", "groups"),
    ("S", "software"),
    ("M", "mitigations"),
    ("C", "campaigns"),
];

/// The text for export: trimmed and without NUL, which no database stores.
fn clean(text: &str) -> String {
    text.replace('\0', "").trim().to_owned()
}

/// The name, or the fallback if it is empty: STIX allows no empty names.
pub(super) fn name_or(name: &str, fallback: &str) -> String {
    Some(clean(name))
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| fallback.to_owned())
}

/// Sets a text, unless it is empty.
pub(super) fn put(object: &mut Map<String, Value>, key: &str, text: &str) {
    let text = clean(text);
    if !text.is_empty() {
        object.insert(key.to_owned(), text.into());
    }
}

/// Sets a list, unless it is empty.
pub(super) fn put_list(object: &mut Map<String, Value>, key: &str, list: Vec<String>) {
    if !list.is_empty() {
        object.insert(key.to_owned(), list.into());
    }
}

/// The distinct strings of a list property (or of a single string).
pub(super) fn strings(properties: &Map<String, Value>, key: &str) -> Vec<String> {
    let items = match properties.get(key) {
        Some(Value::Array(items)) => items.as_slice(),
        Some(one @ Value::String(_)) => std::slice::from_ref(one),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => &[],
    };
    let mut texts: Vec<String> = Vec::new();
    for text in items.iter().filter_map(Value::as_str).map(clean) {
        if !text.is_empty() && !texts.contains(&text) && texts.len() < MAX_ITEMS {
            texts.push(text);
        }
    }
    texts
}

/// The tags as labels, except for markings.
pub(super) fn labels(properties: &Map<String, Value>) -> Vec<String> {
    let mut labels = strings(properties, "tags");
    labels.retain(|label| level_of_tag(label).is_none());
    labels
}

/// A time in STIX format; `None` for years that the format cannot represent.
pub(super) fn time_text(time: DateTime<Utc>) -> Option<String> {
    (1..=9999).contains(&time.year()).then(|| format_timestamp(time))
}

/// The time of a property: RFC 3339, or a date.
pub(super) fn time_of(properties: &Map<String, Value>, key: &str) -> Option<DateTime<Utc>> {
    let text = properties.get(key)?.as_str()?.trim();
    let day = || {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        Some(date.and_hms_opt(0, 0, 0)?.and_utc())
    };
    timestamp(text)
        .or_else(day)
        .filter(|time| (1..=9999).contains(&time.year()))
}

/// When a report was published.
pub(super) fn publication_time(properties: &Map<String, Value>) -> Option<String> {
    time_of(properties, "published").and_then(time_text)
}

/// Sets `first_seen` and `last_seen`, if they are valid times in order.
pub(super) fn fill_times(object: &mut Map<String, Value>, properties: &Map<String, Value>) {
    let first = time_of(properties, "first_seen");
    let last = time_of(properties, "last_seen").filter(|last| first.is_none_or(|first| first <= *last));
    for (key, time) in [("first_seen", first), ("last_seen", last)] {
        if let Some(text) = time.and_then(time_text) {
            object.insert(key.to_owned(), text.into());
        }
    }
}

/// Kill-chain phases from tags like `mitre-attack:discovery` (MISP puts a platform in between).
pub(super) fn kill_chain_phases(properties: &Map<String, Value>) -> Vec<Value> {
    strings(properties, "kill_chain")
        .iter()
        .filter_map(|phase| {
            let chain = phase.split(':').next()?.trim();
            let name = phase.rsplit_once(':')?.1.trim();
            (!chain.is_empty() && !name.is_empty())
                .then(|| json!({"kill_chain_name": chain, "phase_name": name}))
        })
        .collect()
}

/// ATT&CK references for the ids that start with one of these letters.
pub(super) fn known_references(node: &KgNode, letters: &[&str]) -> Vec<Value> {
    let mut ids = strings(&node.properties, "external_ids");
    ids.push(clean(&node.name));
    ids.dedup();
    let mut references: Vec<Value> = ids
        .iter()
        .filter_map(|id| attack_reference(id, letters))
        .chain(
            ids.iter()
                .filter(|id| is_numbered(id, "CAPEC-"))
                .map(|id| json!({"source_name": "capec", "external_id": id})),
        )
        .collect();
    references.dedup();
    references
}

fn attack_reference(id: &str, letters: &[&str]) -> Option<Value> {
    let (prefix, page) = ATTACK_PAGES.iter().find(|(prefix, _)| id.starts_with(prefix))?;
    let number = id.strip_prefix(prefix)?;
    let (main, sub) = match number.split_once('.') {
        Some((main, sub)) => (main, Some(sub)),
        None => (number, None),
    };
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    let fits = digits(main, 4) && sub.is_none_or(|sub| *prefix == "T" && digits(sub, 3));
    if !fits || !letters.contains(prefix) {
        return None;
    }
    let tail = sub.map(|sub| format!("{sub}/")).unwrap_or_default();
    let url = format!("https://attack.mitre.org/{page}/{prefix}{main}/{tail}");
    Some(json!({"source_name": "mitre-attack", "external_id": id, "url": url}))
}

/// References for the CVE and CWE ids of a vulnerability.
pub(super) fn cve_references(node: &KgNode) -> Vec<Value> {
    let mut ids = strings(&node.properties, "external_ids");
    ids.insert(0, clean(&node.name));
    let mut references: Vec<Value> = Vec::new();
    for id in ids.iter().map(|id| id.to_ascii_uppercase()) {
        let source = match id.as_str() {
            cve if is_cve_id(cve) => "cve",
            cwe if is_numbered(cwe, "CWE-") => "cwe",
            _ => continue,
        };
        let reference = json!({"source_name": source, "external_id": id});
        if !references.contains(&reference) {
            references.push(reference);
        }
    }
    references
}

/// `CVE-YYYY-NNNN`; with more than four digits the number has no leading zero.
fn is_cve_id(id: &str) -> bool {
    let Some((year, number)) = id.strip_prefix("CVE-").and_then(|rest| rest.split_once('-')) else {
        return false;
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = number.len() == 4 || (number.len() > 4 && !number.starts_with('0'));
    year.len() == 4 && digits(year) && digits(number) && plain
}

fn is_numbered(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix)
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The node's URLs as external references.
pub(super) fn url_references(properties: &Map<String, Value>) -> Vec<Value> {
    let mut seen: Vec<String> = Vec::new();
    let mut references = Vec::new();
    for url in URL_KEYS.iter().flat_map(|key| strings(properties, key)) {
        let Some(host) = web_host(&url).filter(|_| !seen.contains(&url)) else {
            continue;
        };
        // These two source names require an id (section 2.5).
        let source = if matches!(host, "cve" | "capec") {
            "web"
        } else {
            host
        };
        references.push(json!({"source_name": source, "url": url}));
        seen.push(url);
    }
    references.truncate(MAX_ITEMS);
    references
}

/// The host of a URL that is certainly a valid URI (a subset of RFC 3986); other URLs are not exported.
fn web_host(url: &str) -> Option<&str> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&'()*+,;=%".contains(&byte);
    let encoded = url
        .split('%')
        .skip(1)
        .all(|part| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()));
    if !url.bytes().all(allowed) || !encoded || url.matches('#').count() > 1 {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok() && !port.starts_with('+'));
    (!host.is_empty() && host.bytes().all(plain) && port_fits).then_some(host)
}
