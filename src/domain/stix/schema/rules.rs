//! STIX 2.1 rules that JSON Schema cannot express, within one object and across a bundle.
//!
//! They run after the schemas and accept any input: values of the wrong shape are skipped, because the schema has
//! already reported them.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::super::{pattern, sco};
use super::references::{Path, for_each_reference};
use super::report::at;
use super::{References, Violation};

/// Two timestamps of one object with a required order.
struct Order {
    /// The type that the rule applies to; `None` for all types.
    only: Option<&'static str>,
    earlier: &'static str,
    later: &'static str,
    /// Whether equal times are allowed.
    or_equal: bool,
}

/// Sections 3.2, 4.2, 4.7, 4.14, 5.1, 5.2, 6.12 of the standard.
const ORDERS: [Order; 6] = [
    Order {
        only: None,
        earlier: "created",
        later: "modified",
        or_equal: true,
    },
    Order {
        only: None,
        earlier: "first_seen",
        later: "last_seen",
        or_equal: true,
    },
    Order {
        only: Some("indicator"),
        earlier: "valid_from",
        later: "valid_until",
        or_equal: false,
    },
    Order {
        only: Some("observed-data"),
        earlier: "first_observed",
        later: "last_observed",
        or_equal: true,
    },
    Order {
        only: Some("relationship"),
        earlier: "start_time",
        later: "stop_time",
        or_equal: false,
    },
    Order {
        only: Some("network-traffic"),
        earlier: "start",
        later: "end",
        or_equal: true,
    },
];

/// Standard timestamp properties: the schemas accept a 30th of February, this module does not.
const TIMES: [&str; 29] = [
    "created",
    "modified",
    "valid_from",
    "valid_until",
    "first_seen",
    "last_seen",
    "first_observed",
    "last_observed",
    "start_time",
    "stop_time",
    "published",
    "submitted",
    "analysis_started",
    "analysis_ended",
    "object_modified",
    "start",
    "end",
    "date",
    "ctime",
    "mtime",
    "atime",
    "created_time",
    "modified_time",
    "account_created",
    "account_expires",
    "account_first_login",
    "account_last_login",
    "validity_not_before",
    "validity_not_after",
];

/// All rules on a single object.
pub(super) fn object_rules(object: &Value, found: &mut Vec<Violation>) {
    let Some(members) = object.as_object() else { return };
    id_prefix(object, members, found);
    real_times(object, members, found);
    time_order(object, members, found);
    stix_pattern(object, members, found);
    selectors(object, members, found);
    own_marking(object, members, found);
    random_sco_id(object, members, found);
    for_each_reference(object, &mut |path, target| {
        if is_number(target) && !allows_numbered_reference(members, path, target) {
            found.push(at(
                object,
                path.to_pointer(),
                "a reference is the id of an object",
            ));
        }
    });
}

/// All rules across the objects of a bundle.
pub(super) fn bundle_rules(objects: &[Value], references: References<'_>, found: &mut Vec<Violation>) {
    unique_versions(objects, found);
    let present: HashSet<&str> = objects
        .iter()
        .filter_map(|object| text(object.as_object()?, "id"))
        .collect();
    let resolves = |target: &str| match references {
        References::InBundle => present.contains(target),
        References::InBundleOr(known) => present.contains(target) || known.contains(target),
        References::Anywhere => true,
    };
    for object in objects {
        for_each_reference(object, &mut |path, target| {
            if is_identifier(target) && !resolves(target) {
                found.push(at(
                    object,
                    path.to_pointer(),
                    "the reference does not resolve inside the bundle",
                ));
            }
        });
    }
}

/// Section 2.9: an identifier starts with its object's type.
fn id_prefix(object: &Value, members: &Map<String, Value>, found: &mut Vec<Violation>) {
    let (Some(type_name), Some(id)) = (text(members, "type"), text(members, "id")) else {
        return;
    };
    if id.split_once("--").map(|(prefix, _)| prefix) != Some(type_name) {
        found.push(at(
            object,
            "/id",
            "the id must start with the type of the object and two hyphens",
        ));
    }
}

fn real_times(object: &Value, members: &Map<String, Value>, found: &mut Vec<Violation>) {
    for name in TIMES {
        if text(members, name).is_some_and(is_timestamp) && time(members, name).is_none() {
            found.push(at(
                object,
                format!("/{name}"),
                format!("`{name}` is not a moment that exists"),
            ));
        }
    }
}

fn time_order(object: &Value, members: &Map<String, Value>, found: &mut Vec<Violation>) {
    for order in &ORDERS {
        if order.only.is_some_and(|only| text(members, "type") != Some(only)) {
            continue;
        }
        let (Some(earlier), Some(later)) = (time(members, order.earlier), time(members, order.later)) else {
            continue;
        };
        if later < earlier || (later == earlier && !order.or_equal) {
            let equal = if order.or_equal {
                "not be before"
            } else {
                "be after"
            };
            let rule = format!("`{}` must {equal} `{}`", order.later, order.earlier);
            found.push(at(object, format!("/{}", order.later), rule));
        }
    }
}

/// Section 4.7: a pattern of type `stix` follows the grammar of section 9.
fn stix_pattern(object: &Value, members: &Map<String, Value>, found: &mut Vec<Violation>) {
    if text(members, "type") != Some("indicator") || text(members, "pattern_type") != Some("stix") {
        return;
    }
    if text(members, "pattern").is_some_and(|source| !pattern::is_well_formed(source)) {
        found.push(at(
            object,
            "/pattern",
            "`pattern` does not follow the STIX pattern grammar",
        ));
    }
}

/// Section 7.2.3.1: a selector must match something, or its target would go unmarked.
fn selectors(object: &Value, members: &Map<String, Value>, found: &mut Vec<Violation>) {
    let markings = members.get("granular_markings").and_then(Value::as_array);
    for (index, marking) in markings.into_iter().flatten().enumerate() {
        let list = marking.get("selectors").and_then(Value::as_array);
        for (position, selector) in list.into_iter().flatten().enumerate() {
            if selector
                .as_str()
                .is_some_and(|selector| !selects(object, selector))
            {
                let path = format!("/granular_markings/{index}/selectors/{position}");
                found.push(at(object, path, "the selector selects nothing in this object"));
            }
        }
    }
}

fn selects(object: &Value, selector: &str) -> bool {
    selector.split('.').try_fold(object, child).is_some()
}

fn child<'a>(value: &'a Value, part: &str) -> Option<&'a Value> {
    match part.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(index) => value.as_array()?.get(index.parse::<usize>().ok()?),
        None => value.as_object()?.get(part),
    }
}

/// Section 7.2.1: a marking definition does not mark itself.
fn own_marking(object: &Value, members: &Map<String, Value>, found: &mut Vec<Violation>) {
    let (Some("marking-definition"), Some(id)) = (text(members, "type"), text(members, "id")) else {
        return;
    };
    for_each_reference(object, &mut |path, target| {
        if target == id {
            found.push(at(
                object,
                path.to_pointer(),
                "a marking definition must not mark itself",
            ));
        }
    });
}

/// Section 2.9: an SCO without id contributing properties, and every process, has a random id (UUIDv4).
fn random_sco_id(object: &Value, members: &Map<String, Value>, found: &mut Vec<Violation>) {
    let (Some(type_name), Some(id)) = (text(members, "type"), text(members, "id")) else {
        return;
    };
    let Some(contributing) = sco::contributing_properties(type_name) else {
        return;
    };
    let uuid = id
        .split_once("--")
        .and_then(|(_, uuid)| uuid::Uuid::try_parse(uuid).ok());
    let random = uuid.is_some_and(|uuid| uuid.get_version_num() == 4);
    if !random && !contributing.iter().any(|name| members.contains_key(*name)) {
        found.push(at(
            object,
            "/id",
            "without id contributing properties the id must be a UUIDv4",
        ));
    }
}

/// Section 3.4: id and `modified` identify a version of an object, which appears once.
fn unique_versions(objects: &[Value], found: &mut Vec<Violation>) {
    let mut seen = HashSet::with_capacity(objects.len());
    for object in objects {
        let Some(members) = object.as_object() else {
            continue;
        };
        let Some(id) = text(members, "id") else { continue };
        // Compares the instant, not its spelling: .0Z and .000Z are the same version.
        if !seen.insert((id, time(members, "modified"))) {
            found.push(at(
                object,
                "/id",
                "the same version of this object is in the bundle twice",
            ));
        }
    }
}

/// The deprecated `objects` of section 4.14 use numbers as references; custom properties may use any reference.
fn allows_numbered_reference(members: &Map<String, Value>, path: &Path<'_>, target: &str) -> bool {
    let observed = text(members, "type") == Some("observed-data") && path.starts_with("objects");
    let numbered = || {
        members
            .get("objects")
            .is_some_and(|objects| objects.get(target).is_some())
    };
    (observed && numbered()) || path.property().starts_with("x_")
}

fn is_number(target: &str) -> bool {
    !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the text looks like an identifier; the schemas check standard properties that must be one.
fn is_identifier(target: &str) -> bool {
    target
        .split_once("--")
        .is_some_and(|(_, uuid)| uuid::Uuid::try_parse(uuid).is_ok())
}

/// Whether the text looks like a timestamp (section 2.16): custom objects may use these property names differently.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 20 && bytes[4] == b'-' && bytes[10] == b'T' && text.ends_with('Z')
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name)?.as_str()
}

fn time(members: &Map<String, Value>, name: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text(members, name)?)
        .ok()
        .map(|moment| moment.to_utc())
}
