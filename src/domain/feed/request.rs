//! Requests to register and change feeds, and their rules.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::IgnoredAny;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Feed, Redistribution};
use crate::domain::error::DomainError;
use crate::domain::or_default;
use crate::domain::schema::{self, at_least_one, text_schema};
use crate::domain::tlp::{Clearance, Tlp, TlpInput};

/// Longest name, and longest description, in characters.
const MAX_NAME: usize = 200;
const MAX_DESCRIPTION: usize = 2000;
/// Longest URL of a collection, in bytes.
const MAX_URL: usize = 2000;

text_schema! {
    /// Name of a feed.
    FeedName, (1, MAX_NAME), schema::LINE, "Sector feed"
}

text_schema! {
    /// What the feed is about.
    FeedDescription, (0, MAX_DESCRIPTION), schema::CONTROL_FREE, "Indicators of our sector's ISAC"
}

/// A feed to be registered. The marking and the redistribution state have no defaults: they are decisions.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct NewFeed {
    #[schema(value_type = FeedName)]
    pub name: String,
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<FeedDescription>)]
    pub description: String,
    /// The collection's objects URL, which the operator's rules for outgoing requests must permit.
    #[schema(
        format = "uri",
        max_length = 2000,
        example = "https://taxii.example.com/api1/collections/91a7b528-80eb-42ed-a74d-c6fbd5a26116/objects/"
    )]
    pub connector_config_ref: String,
    /// Marking of objects that state none; the workspace must be allowed to see it.
    #[schema(value_type = TlpInput)]
    pub default_tlp: Tlp,
    pub redistribution_state: Redistribution,
}

impl NewFeed {
    /// # Errors
    /// Names the field and the rule that it breaks.
    pub fn check(&self, clearance: Clearance) -> Result<(), DomainError> {
        check_text("name", &self.name, 1, MAX_NAME)?;
        check_text("description", &self.description, 0, MAX_DESCRIPTION)?;
        if self.connector_config_ref.len() > MAX_URL {
            let rule = format!("must have at most {MAX_URL} bytes");
            return Err(DomainError::invalid("connector_config_ref", rule));
        }
        check_default(self.default_tlp, clearance)
    }

    /// The feed, ready to be pulled for the first time.
    pub fn into_feed(self, id: Uuid, now: DateTime<Utc>) -> Feed {
        Feed {
            id,
            name: self.name,
            description: self.description,
            connector_config_ref: self.connector_config_ref,
            default_tlp: self.default_tlp,
            redistribution_state: self.redistribution_state,
            enabled: true,
            running_batch_id: None,
            created_at: now,
            updated_at: now,
            last_pull_at: None,
        }
    }
}

/// A change of a feed; what is absent stays.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct FeedChange {
    #[schema(value_type = Option<FeedName>)]
    pub name: Option<String>,
    #[schema(value_type = Option<FeedDescription>)]
    pub description: Option<String>,
    pub enabled: Option<bool>,
    #[schema(value_type = Option<TlpInput>)]
    pub default_tlp: Option<Tlp>,
    pub redistribution_state: Option<Redistribution>,
    /// Refused: the cursor belongs to the collection.
    #[schema(schema_with = schema::null, required = false)]
    pub connector_config_ref: Option<IgnoredAny>,
}

at_least_one! {
    /// A change of at least one field of a feed.
    FeedChangeBody, FeedChange
}

impl FeedChange {
    /// # Errors
    /// Names the field and the rule that it breaks.
    pub fn check(&self, clearance: Clearance) -> Result<(), DomainError> {
        if self.connector_config_ref.is_some() {
            let rule = "can't be changed; disable this feed and register another one";
            return Err(DomainError::invalid("connector_config_ref", rule));
        }
        if self.fields().is_empty() {
            let rule =
                "must change at least one of name, description, enabled, default_tlp, redistribution_state";
            return Err(DomainError::invalid("body", rule));
        }
        if let Some(name) = &self.name {
            check_text("name", name, 1, MAX_NAME)?;
        }
        if let Some(description) = &self.description {
            check_text("description", description, 0, MAX_DESCRIPTION)?;
        }
        self.default_tlp
            .map_or(Ok(()), |level| check_default(level, clearance))
    }

    /// The changed fields with their new values.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let fields = [
            ("name", self.name.clone()),
            ("description", self.description.clone()),
            ("enabled", self.enabled.map(|enabled| enabled.to_string())),
            ("default_tlp", self.default_tlp.map(|level| level.to_string())),
            (
                "redistribution_state",
                self.redistribution_state.map(|state| state.to_string()),
            ),
        ];
        let changed = fields.into_iter();
        changed
            .filter_map(|(field, value)| Some((field, value?)))
            .collect()
    }

    /// Applies the change.
    pub fn apply(&self, feed: &mut Feed, now: DateTime<Utc>) {
        if let Some(name) = &self.name {
            feed.name.clone_from(name);
        }
        if let Some(description) = &self.description {
            feed.description.clone_from(description);
        }
        feed.enabled = self.enabled.unwrap_or(feed.enabled);
        feed.default_tlp = self.default_tlp.unwrap_or(feed.default_tlp);
        feed.redistribution_state = self.redistribution_state.unwrap_or(feed.redistribution_state);
        feed.updated_at = now;
    }
}

fn check_text(field: &str, text: &str, least: usize, most: usize) -> Result<(), DomainError> {
    let length = text.trim().chars().count();
    if length < least || length > most || text.chars().any(char::is_control) {
        let rule = format!("must have from {least} to {most} characters, none of them a control character");
        return Err(DomainError::invalid(field, rule));
    }
    Ok(())
}

/// Checks a default marking: one above the clearance would hide everything unmarked from its own reviewers.
///
/// # Errors
/// Names the rule.
pub fn check_default(level: Tlp, clearance: Clearance) -> Result<(), DomainError> {
    if clearance.permits(level) {
        return Ok(());
    }
    let rule = format!(
        "must not be above {}, the highest marking that this workspace may see",
        clearance.highest()
    );
    Err(DomainError::invalid("default_tlp", rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_url_is_refused_by_name() {
        let change: FeedChange =
            serde_json::from_str(r#"{"name":"New","connector_config_ref":"https://x.example/"}"#).unwrap();
        let error = change.check(Clearance::PUBLIC).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("connector_config_ref: can't be changed"),
            "{error}"
        );
        let change: FeedChange = serde_json::from_str(r#"{"enabled":false}"#).unwrap();
        change.check(Clearance::PUBLIC).unwrap();
    }
}
