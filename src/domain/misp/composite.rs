//! Composite types: two values in one attribute, such as `filename|sha256` and `ip-dst|port`.
//!
//! A value with a meaning of its own (a file name, a digest, a domain, an address) becomes a separate node, and the
//! attribute states the relationship between the two. A port or a registry value means nothing alone, so it becomes a
//! property of the other value's node.

use serde_json::Value;

use super::value::{AttributeValue, attribute_value};

/// The split value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CompositeValue {
    /// At least one; the main part comes first.
    pub parts: Vec<AttributeValue>,
    /// The stated relationship from the first part to the second.
    pub relation: Option<&'static str>,
    /// A property that qualifies the first part: its key (the property is a list) and the value to add.
    pub detail: Option<(&'static str, Value)>,
}

enum Shape {
    /// Types of the two values, and the relationship from left to right.
    Two(&'static str, String, &'static str),
    /// Type of the first value, and the property that holds the second.
    Detail(&'static str, &'static str),
}

fn shape(misp_type: &str) -> Option<Shape> {
    Some(match misp_type {
        "malware-sample" => Shape::Two("filename", "md5".into(), "related-to"),
        "domain|ip" => Shape::Two("domain", "ip-dst".into(), "resolves-to"),
        "ip-dst|port" | "ip-src|port" => Shape::Detail("ip-dst", "ports"),
        "hostname|port" | "domain|port" => Shape::Detail("hostname", "ports"),
        "regkey|value" => Shape::Detail("regkey", "registry_values"),
        _ => {
            let digest = misp_type.strip_prefix("filename|")?;
            Shape::Two("filename", digest.to_owned(), "related-to")
        }
    })
}

/// Splits a value; one without a separator is the half that it looks like.
pub(super) fn split(misp_type: &str, value: &str) -> CompositeValue {
    let Some(shape) = shape(misp_type) else {
        return single_value(attribute_value(misp_type, value));
    };
    match shape {
        Shape::Two(left, right, relation) => two_values(left, &right, relation, value),
        Shape::Detail(main, key) => value_with_detail(main, key, value),
    }
}

fn single_value(part: AttributeValue) -> CompositeValue {
    CompositeValue {
        parts: vec![part],
        relation: None,
        detail: None,
    }
}

fn two_values(left: &str, right: &str, relation: &'static str, value: &str) -> CompositeValue {
    // A file name may contain the separator; a digest or an address cannot.
    let Some((first, second)) = value.rsplit_once('|') else {
        let digest = value.len() >= 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        let address = value.parse::<std::net::IpAddr>().is_ok();
        let second = if right == "ip-dst" { address } else { digest };
        return single_value(attribute_value(if second { right } else { left }, value));
    };
    match (first.trim().is_empty(), second.trim().is_empty()) {
        (false, true) => single_value(attribute_value(left, first)),
        (true, false) => single_value(attribute_value(right, second)),
        _ => CompositeValue {
            parts: vec![attribute_value(left, first), attribute_value(right, second)],
            relation: Some(relation),
            detail: None,
        },
    }
}

fn value_with_detail(main: &str, key: &'static str, value: &str) -> CompositeValue {
    let halves = if key == "ports" {
        with_port(value)
    } else {
        value.split_once('|')
    };
    let Some((first, second)) = halves.filter(|(first, _)| !first.trim().is_empty()) else {
        return single_value(attribute_value(main, value));
    };
    let second = second.trim();
    let added = match second.parse::<u16>() {
        Ok(port) if key == "ports" => Value::from(port),
        _ => Value::from(second),
    };
    CompositeValue {
        detail: (!second.is_empty()).then_some((key, added)),
        ..single_value(attribute_value(main, first))
    }
}

/// `host|port`, and `host:port` or `[address]:port` as some feeds write it.
fn with_port(value: &str) -> Option<(&str, &str)> {
    value.rsplit_once('|').or_else(|| {
        let (host, port) = value.rsplit_once(':')?;
        let bracketed = host.starts_with('[') && host.ends_with(']');
        ((bracketed || !host.contains(':')) && port.parse::<u16>().is_ok()).then_some((host, port))
    })
}
