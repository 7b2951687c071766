//! Who says that a node has an alias, so that a wrong one can be taken back with its source.
//!
//! Rule: the property `aliases_from` has the sources of each alias. An alias that only the node's own source states has no
//! entry: that source is the node's `source`.

use serde_json::{Map, Value};

/// The property.
pub const ALIASES_FROM: &str = "aliases_from";

/// Notes that these sources state an alias of a node whose own source is `own`; call before the alias is added. Says whether
/// that is news.
pub fn note_sources<'s>(
    properties: &mut Map<String, Value>,
    own: &str,
    alias: &str,
    sources: impl IntoIterator<Item = &'s str>,
) -> bool {
    let known = properties.get("aliases").and_then(Value::as_array);
    let is_known = known.is_some_and(|known| known.iter().any(|known| known == alias));
    let noted = properties.get(ALIASES_FROM).and_then(|from| from.get(alias));
    let noted = noted.and_then(Value::as_array).cloned();
    let has_none = noted.is_none();
    let mut all = noted.unwrap_or_default();
    if has_none && is_known {
        all.push(Value::from(own));
    }
    let before = all.len();
    for source in sources {
        if !source.is_empty() && !all.iter().any(|known| known == source) {
            all.push(Value::from(source));
        }
    }
    let is_own = has_none && all.iter().all(|source| source == own);
    if is_own || all.len() == before {
        return false;
    }
    let from = properties
        .entry(ALIASES_FROM)
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(from) = from {
        from.insert(alias.to_owned(), Value::Array(all));
    }
    true
}

/// The sources of an alias of a node whose own source is `own`.
pub fn sources_of<'p>(properties: &'p Map<String, Value>, own: &'p str, alias: &str) -> Vec<&'p str> {
    let noted = properties.get(ALIASES_FROM).and_then(|from| from.get(alias));
    match noted.and_then(Value::as_array) {
        Some(noted) => noted.iter().filter_map(Value::as_str).collect(),
        None => vec![own],
    }
}

/// The aliases of a node.
pub fn aliases_of(properties: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let aliases = properties.get("aliases").and_then(Value::as_array);
    aliases.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_alias_has_the_sources_that_state_it_unless_it_is_the_nodes_own_alone() {
        let mut properties = json!({"aliases": ["A"]}).as_object().unwrap().clone();
        let mut note = |alias: &str, source: &str| {
            let is_news = note_sources(&mut properties, "own", alias, [source]);
            (is_news, properties.get(ALIASES_FROM).cloned().unwrap_or_default())
        };
        for (alias, source, is_news, want) in [
            ("A", "own", false, json!(null)),
            ("B", "own", false, json!(null)),
            ("A", "", false, json!(null)),
            ("A", "x", true, json!({"A": ["own", "x"]})),
            ("A", "x", false, json!({"A": ["own", "x"]})),
            ("C", "x", true, json!({"A": ["own", "x"], "C": ["x"]})),
            ("C", "own", true, json!({"A": ["own", "x"], "C": ["x", "own"]})),
        ] {
            assert_eq!(note(alias, source), (is_news, want), "{alias} of {source}");
        }
        assert_eq!(sources_of(&properties, "own", "C"), ["x", "own"]);
        assert_eq!(sources_of(&properties, "own", "B"), ["own"]);
    }
}
