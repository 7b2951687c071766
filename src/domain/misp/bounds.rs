//! Upper bounds on the texts of an event that are copied to more than one node: their length, number and total size.

use serde_json::{Map, Value};

use super::{FieldError, error};

/// Maximum length of an identifier, an organisation or object name, or a title copied to nodes, in characters.
const MAX_NAME: usize = 500;
/// Maximum length of a tag, in characters.
const MAX_TAG: usize = 200;
/// Maximum number of tags, and of galaxies, per event, object or attribute.
const MAX_TAGS: usize = 100;
/// Maximum number of attributes, and of objects.
const MAX_ATTRIBUTES: usize = 100_000;

/// Whether a text is short enough to be copied to every node.
pub(super) fn is_short(text: &str) -> bool {
    text.chars().nth(MAX_NAME).is_none()
}

/// Checks all parts of an event that are copied.
///
/// # Errors
/// Names the first field that is too long or has too many entries.
pub(super) fn check(event: &Map<String, Value>) -> Result<(), FieldError> {
    name("event.uuid", event.get("uuid"))?;
    for key in ["Orgc", "Org"] {
        let organisation = event.get(key).and_then(|organisation| organisation.get("name"));
        name(&format!("event.{key}.name"), organisation)?;
    }
    check_tags("event", event)?;
    let objects = items(event.get("Object"));
    let inner: usize = objects
        .iter()
        .map(|object| items(object.get("Attribute")).len())
        .sum();
    let loose = items(event.get("Attribute"));
    if loose.len() + inner > MAX_ATTRIBUTES {
        return at_most("event.Attribute", MAX_ATTRIBUTES);
    }
    if objects.len() > MAX_ATTRIBUTES {
        return at_most("event.Object", MAX_ATTRIBUTES);
    }
    attributes("event", loose)?;
    for (at, object) in objects.iter().enumerate() {
        let Some(members) = object.as_object() else {
            continue;
        };
        let place = format!("event.Object[{at}]");
        for key in ["name", "uuid"] {
            name(&format!("{place}.{key}"), members.get(key))?;
        }
        check_tags(&place, members)?;
        attributes(&place, items(members.get("Attribute")))?;
    }
    Ok(())
}

/// Checks copied tags, whatever their source.
///
/// # Errors
/// Names `field` if there are too many tags or one is too long.
pub(super) fn tags(field: &str, tags: &[String]) -> Result<(), FieldError> {
    if tags.len() > MAX_TAGS {
        return at_most(field, MAX_TAGS);
    }
    match tags.iter().any(|tag| is_longer(tag, MAX_TAG)) {
        true => error(field, format!("each tag must have at most {MAX_TAG} characters")),
        false => Ok(()),
    }
}

/// Total size in bytes of all copies of an event's texts, for an event that passed [`check`].
pub(super) fn repeated_bytes(event: &Map<String, Value>) -> usize {
    let info = event.get("info").and_then(Value::as_str);
    let name_of = |key| text_len(event.get(key).and_then(|organisation| organisation.get("name")));
    let of_event = info.filter(|info| is_short(info)).map_or(0, str::len)
        + text_len(event.get("uuid"))
        + name_of("Orgc").max(name_of("Org"))
        + tag_bytes(event);
    let loose = items(event.get("Attribute")).iter().map(rows).sum::<usize>();
    let mut total = (loose + clusters(event)) * of_event;
    for object in items(event.get("Object")).iter().filter_map(Value::as_object) {
        let own = text_len(object.get("name")) + text_len(object.get("uuid")) + tag_bytes(object);
        let inside = items(object.get("Attribute")).iter().map(rows).sum::<usize>();
        total += inside * (of_event + own) + items(object.get("ObjectReference")).len() * own;
    }
    total
}

/// The number of rows that an attribute may become.
fn rows(attribute: &Value) -> usize {
    let kind = attribute.get("type").and_then(Value::as_str).unwrap_or_default();
    let values = if kind.contains('|') || kind == "malware-sample" {
        2
    } else {
        1
    };
    values + attribute.as_object().map_or(0, clusters)
}

fn clusters(carrier: &Map<String, Value>) -> usize {
    let named = items(carrier.get("Galaxy"))
        .iter()
        .map(|galaxy| items(galaxy.get("GalaxyCluster")).len())
        .sum::<usize>();
    let is_cluster = |tag: &&Value| tag_name(tag).is_some_and(|name| name.starts_with("misp-galaxy:"));
    named + all_tags(carrier).filter(is_cluster).count()
}

fn attributes(place: &str, list: &[Value]) -> Result<(), FieldError> {
    for (at, attribute) in list.iter().enumerate() {
        if let Some(members) = attribute.as_object() {
            check_tags(&format!("{place}.Attribute[{at}]"), members)?;
        }
    }
    Ok(())
}

/// The tags and galaxies of an event, object or attribute.
fn check_tags(place: &str, carrier: &Map<String, Value>) -> Result<(), FieldError> {
    for key in ["Tag", "EventTag", "AttributeTag"] {
        let list = carrier.get(key);
        if items(list).len() > MAX_TAGS {
            return at_most(&format!("{place}.{key}"), MAX_TAGS);
        }
        for (at, tag) in items(list).iter().enumerate() {
            if tag_name(tag).is_some_and(|name| is_longer(name, MAX_TAG)) {
                let field = format!("{place}.{key}[{at}].name");
                return error(&field, format!("must have at most {MAX_TAG} characters"));
            }
        }
    }
    match items(carrier.get("Galaxy")).len() > MAX_TAGS {
        true => at_most(&format!("{place}.Galaxy"), MAX_TAGS),
        false => Ok(()),
    }
}

fn name(field: &str, value: Option<&Value>) -> Result<(), FieldError> {
    match value.and_then(Value::as_str) {
        Some(text) if is_longer(text, MAX_NAME) => {
            error(field, format!("must have at most {MAX_NAME} characters"))
        }
        Some(_) | None => Ok(()),
    }
}

fn at_most(field: &str, most: usize) -> Result<(), FieldError> {
    error(field, format!("must hold at most {most} entries"))
}

fn is_longer(text: &str, most: usize) -> bool {
    text.len() > most && text.chars().nth(most).is_some()
}

/// The items of a list; a single value counts as a list of one.
fn items(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(items)) => items,
        Some(one @ (Value::Object(_) | Value::String(_))) => std::slice::from_ref(one),
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => &[],
    }
}

fn all_tags(carrier: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    ["Tag", "EventTag", "AttributeTag"]
        .into_iter()
        .flat_map(|key| items(carrier.get(key)))
}

fn tag_name(tag: &Value) -> Option<&str> {
    let name = tag.get("name").or_else(|| tag.pointer("/Tag/name"));
    name.unwrap_or(tag).as_str()
}

fn tag_bytes(carrier: &Map<String, Value>) -> usize {
    all_tags(carrier).filter_map(tag_name).map(str::len).sum()
}

fn text_len(value: Option<&Value>) -> usize {
    value.and_then(Value::as_str).map_or(0, str::len)
}
