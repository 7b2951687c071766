//! Requests to define and change collections, and their rules.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::collection::{Collection, CollectionUsers, HandInMode};
use super::filter::CollectionFilter;
use crate::domain::error::DomainError;
use crate::domain::or_default;
use crate::domain::schema::{self, at_least_one, text_schema};

/// Longest title, description and alias, in characters.
const MAX_TITLE: usize = 200;
const MAX_DESCRIPTION: usize = 2000;
const MAX_ALIAS: usize = 64;

text_schema! {
    /// Title of a collection.
    CollectionTitle, (1, MAX_TITLE), schema::LINE, "Indicators for the firewalls"
}

text_schema! {
    /// What a collection is for; empty for none.
    CollectionDescription, (0, MAX_DESCRIPTION), schema::CONTROL_FREE, "Addresses and domains, GREEN and below"
}

text_schema! {
    /// A name that stands for the id in URLs, unlike those of the collections that every workspace has (`all`, `tlp-…`);
    /// empty for none.
    CollectionAlias, (0, MAX_ALIAS), Some("^(?:[a-z0-9][a-z0-9._-]*)?$"), "firewalls"
}

/// A collection to be defined.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct NewCollection {
    #[schema(value_type = CollectionTitle)]
    pub title: String,
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<CollectionDescription>)]
    pub description: String,
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<CollectionAlias>)]
    pub alias: String,
    /// Everything if absent.
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<CollectionFilter>)]
    pub filter: CollectionFilter,
    /// `everyone` if absent.
    pub readable_by: Option<CollectionUsers>,
    /// Nobody if absent.
    pub writable_by: Option<CollectionUsers>,
    /// `review` if absent.
    pub hand_in: Option<HandInMode>,
}

impl NewCollection {
    /// # Errors
    /// Names the field and the rule that it breaks.
    pub fn into_collection(self, id: Uuid, now: DateTime<Utc>) -> Result<Collection, DomainError> {
        Ok(Collection {
            id,
            title: title(&self.title)?,
            description: description(&self.description)?,
            alias: alias(&self.alias)?,
            filter: self.filter.check()?,
            readable_by: self.readable_by.unwrap_or(CollectionUsers::Everyone),
            writable_by: self.writable_by.unwrap_or(CollectionUsers::Keys(Vec::new())),
            hand_in: self.hand_in.unwrap_or(HandInMode::Review),
            created_at: now,
            updated_at: now,
        })
    }
}

/// A change of a collection; what is absent stays.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct CollectionChange {
    #[schema(value_type = Option<CollectionTitle>)]
    pub title: Option<String>,
    #[schema(value_type = Option<CollectionDescription>)]
    pub description: Option<String>,
    #[schema(value_type = Option<CollectionAlias>)]
    pub alias: Option<String>,
    /// Takes the place of the whole filter.
    pub filter: Option<CollectionFilter>,
    pub readable_by: Option<CollectionUsers>,
    pub writable_by: Option<CollectionUsers>,
    pub hand_in: Option<HandInMode>,
}

at_least_one! {
    /// A change of at least one field of a collection.
    CollectionChangeBody, CollectionChange
}

impl CollectionChange {
    /// Applies the change; returns the changed fields with their new values.
    ///
    /// # Errors
    /// Names the field and the rule that it breaks.
    pub fn apply(
        self,
        collection: &mut Collection,
        now: DateTime<Utc>,
    ) -> Result<Vec<(&'static str, Value)>, DomainError> {
        let mut fields = Vec::new();
        if let Some(text) = self.title {
            collection.title = title(&text)?;
            fields.push(("title", Value::from(collection.title.clone())));
        }
        if let Some(text) = self.description {
            collection.description = description(&text)?;
            fields.push(("description", text.into()));
        }
        if let Some(text) = self.alias {
            collection.alias = alias(&text)?;
            fields.push(("alias", text.into()));
        }
        if let Some(filter) = self.filter {
            collection.filter = filter.check()?;
            fields.push(("filter", json_of(&collection.filter)?));
        }
        if let Some(users) = self.readable_by {
            fields.push(("readable_by", json_of(&users)?));
            collection.readable_by = users;
        }
        if let Some(users) = self.writable_by {
            fields.push(("writable_by", json_of(&users)?));
            collection.writable_by = users;
        }
        if let Some(hand_in) = self.hand_in {
            collection.hand_in = hand_in;
            fields.push(("hand_in", hand_in.as_str().into()));
        }
        if fields.is_empty() {
            let rule = "must change at least one of title, description, alias, filter, readable_by, writable_by, hand_in";
            return Err(DomainError::invalid("body", rule));
        }
        collection.updated_at = now;
        Ok(fields)
    }
}

fn json_of(value: &impl serde::Serialize) -> Result<Value, DomainError> {
    serde_json::to_value(value).map_err(|error| DomainError::internal("describing a change failed", error))
}

fn title(text: &str) -> Result<String, DomainError> {
    line("title", text, 1, MAX_TITLE)
}

fn description(text: &str) -> Result<Option<String>, DomainError> {
    let text = line("description", text, 0, MAX_DESCRIPTION)?;
    Ok((!text.is_empty()).then_some(text))
}

fn line(field: &str, text: &str, least: usize, most: usize) -> Result<String, DomainError> {
    let text = text.trim();
    let length = text.chars().count();
    if !(least..=most).contains(&length) || text.chars().any(char::is_control) {
        let rule = format!("must have from {least} to {most} characters, none of them a control character");
        return Err(DomainError::invalid(field, rule));
    }
    Ok(text.to_owned())
}

/// An alias, or none.
fn alias(text: &str) -> Result<Option<String>, DomainError> {
    let wrong = |rule: String| DomainError::invalid("alias", rule);
    if text.is_empty() {
        return Ok(None);
    }
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_name = text.len() <= MAX_ALIAS
        && text.bytes().next().is_some_and(fits)
        && text.bytes().all(|byte| fits(byte) || b"._-".contains(&byte));
    if !is_name {
        return Err(wrong(format!(
            "must have at most {MAX_ALIAS} characters, each a small letter, a digit, a dot, a hyphen or an underscore, and \
             begin with a letter or a digit"
        )));
    }
    if text == "all" || text.starts_with("tlp-") || text.parse::<Uuid>().is_ok() {
        return Err(wrong(
            "must be none of those that every workspace has (all, tlp-…), and no id".into(),
        ));
    }
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn defined(value: Value) -> Result<Collection, String> {
        let new: NewCollection = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let made = new.into_collection(Uuid::nil(), DateTime::UNIX_EPOCH);
        made.map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_absent_is_read_by_everyone_and_written_by_nobody() {
        let made = defined(json!({"title": " Firewalls ", "description": "", "alias": null})).unwrap();
        assert_eq!(made.title, "Firewalls");
        assert_eq!((made.description, made.alias), (None, None));
        assert_eq!(made.filter, CollectionFilter::default());
        assert_eq!(made.readable_by, CollectionUsers::Everyone);
        assert_eq!(made.writable_by, CollectionUsers::Keys(vec![]));
        assert_eq!(made.hand_in, HandInMode::Review);
    }

    #[test]
    fn an_error_names_the_field() {
        let long = "x".repeat(MAX_ALIAS + 1);
        for (value, field) in [
            (json!({"title": " "}), "title"),
            (json!({"title": "a\nb"}), "title"),
            (json!({"title": "A", "alias": "All"}), "alias"),
            (json!({"title": "A", "alias": "all"}), "alias"),
            (json!({"title": "A", "alias": "tlp-red"}), "alias"),
            (json!({"title": "A", "alias": Uuid::nil()}), "alias"),
            (json!({"title": "A", "alias": long}), "alias"),
            (
                json!({"title": "A", "filter": {"types": ["X"]}}),
                "filter.types[0]",
            ),
        ] {
            let error = defined(value.clone()).unwrap_err();
            assert!(error.starts_with(&format!("{field}: ")), "{value}: {error}");
        }
    }

    #[test]
    fn a_change_leaves_what_it_does_not_name() {
        let given = json!({"title": "A", "alias": "a", "description": "B", "filter": {"types": ["tool"]}});
        let mut made = defined(given).unwrap();
        let before = made.clone();
        let read = |value| serde_json::from_value::<CollectionChange>(value).unwrap();
        let error = read(json!({}))
            .apply(&mut made, DateTime::UNIX_EPOCH)
            .unwrap_err();
        assert!(error.to_string().starts_with("body: must change"), "{error}");
        let change = read(json!({"alias": "", "hand_in": "ingest", "filter": {}}));
        let fields = change.apply(&mut made, DateTime::UNIX_EPOCH).unwrap();
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["alias", "filter", "hand_in"]);
        let want = Collection {
            alias: None,
            filter: CollectionFilter::default(),
            hand_in: HandInMode::Ingest,
            ..before
        };
        assert_eq!(made, want);
    }
}
