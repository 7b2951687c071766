//! Nodes that are likely the same: those of one type that share a name, an identifier or a value.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::detail::OtherEnd;
use crate::domain::naming::{normal_value, pattern_keys};
use crate::domain::node::{KgNode, NodeType, wire_enum};
use crate::domain::session::HasTlp;
use crate::domain::tlp::Tlp;

wire_enum! {
    /// What two nodes share.
    SharedBy, "name, alias, external_id, value" {
        Name = "name",
        // One has it as an alias at most.
        Alias = "alias",
        ExternalId = "external_id",
        Value = "value",
    }
}

/// A text that two nodes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SharedKey {
    pub by: SharedBy,
    /// As the first of the nodes writes it.
    #[schema(example = "Fancy Bear")]
    pub text: String,
}

/// Two nodes that are likely the same.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LikelyDuplicate {
    pub first: OtherEnd,
    pub second: OtherEnd,
    /// What they share.
    pub reasons: Vec<SharedKey>,
}

impl HasTlp for LikelyDuplicate {
    fn tlp(&self) -> Tlp {
        self.first.tlp.max(self.second.tlp)
    }
}

/// The texts by which a node is known.
pub fn known_by(node: &KgNode) -> Vec<(SharedBy, String)> {
    let texts = |key: &str| {
        let all = node.properties.get(key).and_then(Value::as_array);
        let all = all.into_iter().flatten().filter_map(Value::as_str);
        all.map(str::to_owned).collect::<Vec<String>>()
    };
    let mut known = Vec::new();
    if node.node_type == NodeType::Ioc {
        // The name of an indicator is a title.
        let value = node.properties.get("value").and_then(Value::as_str);
        let values = value.map(str::to_owned).into_iter();
        let values = values.chain(normal_value(&node.properties));
        let values = values.chain(pattern_keys(&node.properties));
        known.extend(values.map(|value| (SharedBy::Value, value)));
    } else {
        known.push((SharedBy::Name, node.name.clone()));
    }
    known.extend(texts("aliases").into_iter().map(|alias| (SharedBy::Alias, alias)));
    known.extend(
        texts("external_ids")
            .into_iter()
            .map(|id| (SharedBy::ExternalId, id)),
    );
    known
}

/// What two nodes share, by the form in which texts are compared; each such form once, in order.
pub fn shared(one: &KgNode, other: &KgNode, form: impl Fn(&str) -> String) -> Vec<(String, SharedKey)> {
    let others: Vec<(SharedBy, String)> = known_by(other)
        .into_iter()
        .map(|(by, text)| (by, form(&text)))
        .collect();
    let mut shared: Vec<(String, SharedKey)> = Vec::new();
    for (by, text) in known_by(one) {
        let key = form(&text);
        let mut same = others
            .iter()
            .filter(|(_, known)| *known == key && !key.is_empty());
        let Some((also, _)) = same.next() else { continue };
        let by = match (by, also) {
            (SharedBy::Name, SharedBy::Alias) | (SharedBy::Alias, _) => SharedBy::Alias,
            (by, _) => by,
        };
        if !shared.iter().any(|(known, _)| *known == key) {
            shared.push((key, SharedKey { by, text }));
        }
    }
    shared.sort_by(|(one, _), (other, _)| one.cmp(other));
    shared
}
