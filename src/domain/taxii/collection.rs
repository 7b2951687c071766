//! A TAXII collection that an administrator defines: what it holds, who may read it, and who may hand objects in.

use chrono::{DateTime, Utc};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use super::filter::CollectionFilter;
use crate::domain::node::wire_enum;

/// Most keys that a collection names.
pub const MAX_KEYS: usize = 100;
const EVERYONE: &str = "everyone";

wire_enum! {
    /// What becomes of objects that are handed in.
    HandInMode, "review, ingest" {
        Review = "review",
        Ingest = "ingest",
    }
}

/// Who may use a collection, among the callers who have the permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CollectionUsers {
    Everyone,
    /// The API keys with these ids, and nobody else.
    Keys(Vec<Uuid>),
}

/// A collection of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Collection {
    pub id: Uuid,
    #[schema(example = "Indicators for the firewalls")]
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Addresses and domains, GREEN and below")]
    pub description: Option<String>,
    /// A name that stands for the id in URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "firewalls")]
    pub alias: Option<String>,
    pub filter: CollectionFilter,
    pub readable_by: CollectionUsers,
    pub writable_by: CollectionUsers,
    pub hand_in: HandInMode,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl CollectionUsers {
    /// Whether a caller is among them; `key` is the API key that the caller presents, if it is one.
    pub fn include(&self, key: Option<Uuid>) -> bool {
        match self {
            Self::Everyone => true,
            Self::Keys(keys) => key.is_some_and(|key| keys.contains(&key)),
        }
    }

    /// The keys that are named.
    pub fn keys(&self) -> &[Uuid] {
        match self {
            Self::Everyone => &[],
            Self::Keys(keys) => keys,
        }
    }
}

impl Serialize for CollectionUsers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Everyone => serializer.serialize_str(EVERYONE),
            Self::Keys(keys) => keys.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CollectionUsers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = CollectionUsers;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"everyone\" or a list of ids of API keys")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                match text {
                    EVERYONE => Ok(CollectionUsers::Everyone),
                    _ => Err(E::custom("must be \"everyone\" or a list of ids of API keys")),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut ids: A) -> Result<Self::Value, A::Error> {
                let mut keys = Vec::new();
                while let Some(key) = ids.next_element()? {
                    if !keys.contains(&key) {
                        keys.push(key);
                    }
                    if keys.len() > MAX_KEYS {
                        return Err(A::Error::custom(format!("must name at most {MAX_KEYS} API keys")));
                    }
                }
                Ok(CollectionUsers::Keys(keys))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl PartialSchema for CollectionUsers {
    fn schema() -> RefOr<Schema> {
        let everyone = ObjectBuilder::new().schema_type(Type::String);
        let everyone = everyone.enum_values(Some([EVERYONE]));
        let id = ObjectBuilder::new().schema_type(Type::String);
        let id = id.format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
        let keys = ArrayBuilder::new().items(id).max_items(Some(MAX_KEYS));
        let about = "`everyone` who has the permission, or the API keys with these ids and nobody else.";
        let either = AnyOfBuilder::new().item(everyone).item(keys);
        either.description(Some(about)).into()
    }
}

impl ToSchema for CollectionUsers {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn users_are_everyone_or_keys() {
        let read = |value| serde_json::from_value::<CollectionUsers>(value);
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let everyone = read(json!("everyone")).unwrap();
        let keys = read(json!([one, one])).unwrap();
        let nobody = read(json!([])).unwrap();
        for (users, key, want) in [
            (&everyone, None, true),
            (&everyone, Some(one), true),
            (&keys, Some(one), true),
            (&keys, Some(other), false),
            (&keys, None, false),
            (&nobody, Some(one), false),
            (&nobody, None, false),
        ] {
            assert_eq!(users.include(key), want, "{users:?} {key:?}");
        }
        assert_eq!(serde_json::to_value(&keys).unwrap(), json!([one]));
        assert_eq!(serde_json::to_value(&everyone).unwrap(), json!("everyone"));
        let many: Vec<Uuid> = (0..=MAX_KEYS as u128).map(Uuid::from_u128).collect();
        for bad in [json!("nobody"), json!(["x"]), json!(1), json!(many)] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
