//! Field-by-field comparison of two responses.

use serde_json::{Map, Value, json};

/// One field that differs; `None` on a side where it is missing.
#[derive(Debug)]
pub struct Difference {
    /// `.name` for a field, `[]` for a list item, `.*` for a map entry, `body` for the whole body.
    pub field: String,
    pub theirs: Option<Value>,
    pub ours: Option<Value>,
}

impl Difference {
    pub fn of(field: &str, theirs: impl Into<Value>, ours: impl Into<Value>) -> Self {
        Self {
            field: field.to_owned(),
            theirs: Some(theirs.into()),
            ours: Some(ours.into()),
        }
    }
}

/// Objects whose keys are data.
const MAPS: [&str; 2] = ["entity_index", "top_intents"];

/// Every field in which the two bodies differ.
pub fn differences(theirs: &Value, ours: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    values("", theirs, ours, &mut found);
    found
}

fn values(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<Difference>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => objects(path, theirs, ours, found),
        (Value::Array(theirs), Value::Array(ours)) => lists(path, theirs, ours, found),
        // Clients treat 5 and 5.0 as the same number.
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
        _ if theirs == ours => {}
        _ => {
            let field = if path.is_empty() { "body" } else { path };
            found.push(Difference::of(field, theirs.clone(), ours.clone()));
        }
    }
}

fn objects(path: &str, theirs: &Map<String, Value>, ours: &Map<String, Value>, found: &mut Vec<Difference>) {
    let is_map = MAPS.iter().any(|name| path.ends_with(&format!(".{name}")));
    let place = |name: &str| format!("{path}.{}", if is_map { "*" } else { name });
    for (name, value) in theirs {
        match ours.get(name) {
            Some(own) => values(&place(name), value, own, found),
            None => found.push(Difference {
                field: place(name),
                theirs: Some(json!({name: value})),
                ours: None,
            }),
        }
    }
    for (name, value) in ours.iter().filter(|(name, _)| !theirs.contains_key(*name)) {
        found.push(Difference {
            field: place(name),
            theirs: None,
            ours: Some(json!({name: value})),
        });
    }
}

/// Identifies an item independently of its position: by the text itself, by a note's text, an entity's value or a
/// query's words.
fn identity(item: &Value) -> Option<String> {
    if let Value::String(text) = item {
        return Some(text.clone());
    }
    let fields: &[&str] = if item.get("content").is_some() {
        &["content", "domain"]
    } else if item.get("entity_value").is_some() {
        &["entity_value"]
    } else if item.get("query_id").is_some() {
        &["event_type", "query"]
    } else {
        return None;
    };
    Some(fields.iter().map(|field| item[*field].to_string()).collect())
}

fn lists(path: &str, theirs: &[Value], ours: &[Value], found: &mut Vec<Difference>) {
    let known = theirs.iter().chain(ours).all(|item| identity(item).is_some());
    if !known || theirs.is_empty() && ours.is_empty() {
        if theirs.len() != ours.len() {
            found.push(Difference::of(path, theirs.to_vec(), ours.to_vec()));
            return;
        }
        for (theirs, ours) in theirs.iter().zip(ours) {
            values(&format!("{path}[]"), theirs, ours, found);
        }
        return;
    }
    let mut left: Vec<&Value> = ours.iter().collect();
    let place = format!("{path}[]");
    for item in theirs {
        match left.iter().position(|own| identity(own) == identity(item)) {
            Some(at) => values(&place, item, left.remove(at), found),
            None => found.push(Difference {
                field: place.clone(),
                theirs: Some(item.clone()),
                ours: None,
            }),
        }
    }
    for own in left {
        found.push(Difference {
            field: place.clone(),
            theirs: None,
            ours: Some(own.clone()),
        });
    }
    let order = |items: &[Value], others: &[Value]| -> Vec<String> {
        let both = |item: &&Value| others.iter().any(|other| identity(other) == identity(item));
        items.iter().filter(both).filter_map(identity).collect()
    };
    let (there, here) = (order(theirs, ours), order(ours, theirs));
    if there != here {
        let field = if path.is_empty() { "body" } else { path };
        found.push(Difference::of(field, there, here));
    }
}
