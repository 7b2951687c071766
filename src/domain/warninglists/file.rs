//! The file of a warninglist (github.com/MISP/misp-warninglists, schema.json). Its entries are read one by one, since the
//! longest lists have a million.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Why a file is no warninglist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ListError(pub(super) String);

/// What the entries of a list are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ListType {
    String,
    Substring,
    Hostname,
    Cidr,
    Regex,
}

/// A list without its entries.
#[derive(Debug, Deserialize)]
pub(super) struct Head {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) list_type: ListType,
    #[serde(default)]
    pub(super) matching_attributes: Vec<String>,
    #[serde(rename = "list")]
    _list: IgnoredAny,
}

/// Reads a list without its entries.
pub(super) fn head(json: &[u8]) -> Result<Head, ListError> {
    if !json.trim_ascii_start().starts_with(b"{") {
        return Err(ListError("must be an object".to_owned()));
    }
    let head: Head = serde_json::from_slice(json).map_err(|error| ListError(error.to_string()))?;
    if head.name.trim().is_empty() {
        return Err(ListError("name: must not be empty".to_owned()));
    }
    Ok(head)
}

/// Passes each entry of a list to `take`.
pub(super) fn each_entry(json: &[u8], take: impl FnMut(&str)) -> Result<(), ListError> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let read = deserializer.deserialize_map(Whole(take));
    read.map_err(|error| ListError(error.to_string()))
}

struct Whole<F>(F);

impl<'de, F: FnMut(&str)> Visitor<'de> for Whole<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a warninglist")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "list" {
                map.next_value_seed(Entries(&mut self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Entries<'f, F>(&'f mut F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for Entries<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&str)> Visitor<'de> for Entries<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of texts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Entry(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

struct Entry<'f, F>(&'f mut F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for Entry<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<F: FnMut(&str)> Visitor<'_> for Entry<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        (self.0)(text);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        (self.0)(&number.to_string());
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
