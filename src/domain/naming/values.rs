//! The values that a stored indicator stands for: those in its STIX pattern, or the one value it was made of.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{OTHER_KIND, canonical_value, indicator_identity};
use crate::domain::draft::identity;
use crate::domain::kinds::EntityKind;
use crate::domain::node::NodeType;
use crate::domain::stix::pattern::{ObservedValue, observed_values};

/// Kind of an attribute that is a pattern itself.
const PATTERN_KIND: &str = "stix2-pattern";

/// The texts by which an indicator is looked up, as its pattern spells them and in normal form, without the value that
/// its properties state.
pub fn pattern_keys(properties: &Map<String, Value>) -> Vec<String> {
    let Some(pattern) = pattern_of(properties) else {
        return Vec::new();
    };
    let (mut keys, mut known) = (Vec::new(), HashSet::new());
    for observed in observed_values(pattern) {
        let normal = normal_form_of(&observed);
        for key in [normal, observed.value.into_owned()] {
            if known.insert(key.clone()) {
                keys.push(key);
            }
        }
    }
    keys
}

/// The values of known kinds that an indicator stands for, in normal form: the one that its properties state, and those of
/// its pattern.
pub fn stated_indicators(properties: &Map<String, Value>) -> Vec<(EntityKind, String)> {
    let text = |key: &str| properties.get(key).and_then(Value::as_str);
    let own = text("value").zip(text("ioc_type").and_then(|kind| kind.parse::<EntityKind>().ok()));
    let own = own.map(|(value, kind)| (kind, canonical_value(kind, value)));
    let observed = pattern_of(properties).map(observed_values).unwrap_or_default();
    let exact = observed.into_iter().filter(|observed| observed.is_exact);
    let exact = exact.filter_map(|observed| {
        let kind = observed.kind.parse::<EntityKind>().ok()?;
        Some((kind, canonical_value(kind, &observed.value)))
    });
    own.into_iter().chain(exact).collect()
}

/// The normal form of the value that an indicator's properties state, if they spell it otherwise.
pub fn normal_value(properties: &Map<String, Value>) -> Option<String> {
    let text = |key: &str| properties.get(key).and_then(Value::as_str);
    let (value, kind) = (text("value")?, text("ioc_type")?.parse::<EntityKind>().ok()?);
    Some(canonical_value(kind, value)).filter(|normal| normal != value)
}

/// The values in the pattern of an indicator, as it spells them, without those that it only resembles.
pub fn exact_values(properties: &Map<String, Value>) -> Vec<String> {
    let observed = pattern_of(properties).map(observed_values).unwrap_or_default();
    let exact = observed.into_iter().filter(|observed| observed.is_exact);
    exact.map(|observed| observed.value.into_owned()).collect()
}

/// The identities of the values that an indicator stands for; see [`indicator_identity`].
pub fn value_identities(properties: &Map<String, Value>) -> HashSet<String> {
    let text = |key: &str| properties.get(key).and_then(Value::as_str);
    let own = text("value").zip(text("ioc_type"));
    let own = own.map(|(value, kind)| indicator_identity(kind, value));
    let observed = pattern_of(properties).map(observed_values).unwrap_or_default();
    let exact = observed.into_iter().filter(|observed| observed.is_exact);
    exact
        .map(|observed| indicator_identity(&observed.kind, &observed.value))
        .chain(own)
        .collect()
}

/// Whether the identity of an indicator is among these. A value of no known kind is that of any kind.
pub fn has_value(identities: &HashSet<String>, wanted: &str) -> bool {
    if identities.contains(wanted) {
        return true;
    }
    let bare = |identity: &str| identity.rsplit('\0').next().unwrap_or_default().to_lowercase();
    let untyped = identity([NodeType::Ioc.as_str(), OTHER_KIND, ""]);
    wanted.starts_with(&untyped) && identities.iter().any(|known| bare(known) == bare(wanted))
}

/// The value of an indicator's identity; `None` of any other identity.
pub fn value_of_identity(identity: &str) -> Option<&str> {
    let mut parts = identity.splitn(3, '\0');
    (parts.next() == Some(NodeType::Ioc.as_str())).then_some(())?;
    parts.nth(1)
}

/// The pattern that says what an indicator stands for: its own one if it is STIX, or its value is one.
fn pattern_of(properties: &Map<String, Value>) -> Option<&str> {
    let text = |key: &str| properties.get(key).and_then(Value::as_str);
    let is_own = properties.contains_key("stix_id") || text("ioc_type") == Some(PATTERN_KIND);
    let is_stix = text("pattern_type").is_none_or(|language| language == "stix");
    text("pattern").filter(|_| is_own && is_stix)
}

fn normal_form_of(observed: &ObservedValue<'_>) -> String {
    match observed.kind.parse::<EntityKind>() {
        Ok(kind) if observed.is_exact => canonical_value(kind, &observed.value),
        _ => observed.value.to_string(),
    }
}

#[cfg(test)]
mod tests;
