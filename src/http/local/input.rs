//! Raw JSON input: checked once, and decoded only where a field needs it. No value tree is built.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The fields of all request bodies of the API; unknown fields are ignored.
const KNOWN: [&str; 22] = [
    "archives",
    "chunks",
    "passphrase",
    "query",
    "k",
    "domain",
    "since",
    "until",
    "explain",
    "min_score",
    "content",
    "source_type",
    "source_ref",
    "evolve",
    "items",
    "format",
    "values",
    "text",
    "by",
    "from",
    "into",
    "entity",
];
/// Longest input that an error echoes, in characters of JSON.
const SHOWN: usize = 200;
/// JSON longer than this, in bytes, is never echoed, even if it would be short without its whitespace.
const LOOKED_AT: usize = 4096;
/// Most bytes of JSON per character: two escapes of six bytes each.
pub(super) const BYTES_PER_CHAR: usize = 12;

/// A value as received.
#[derive(Debug, Clone, Copy)]
pub(super) enum Input<'a> {
    Json(&'a RawValue),
    /// A query parameter.
    Parameter(&'a Value),
}

impl<'a> Input<'a> {
    /// The value; lists and objects come back empty, as only their kind matters.
    pub(super) fn scalar(self) -> Value {
        match self {
            Self::Parameter(value) => value.clone(),
            Self::Json(raw) => match raw.get().as_bytes().first() {
                Some(b'[') => Value::Array(Vec::new()),
                Some(b'{') => Value::Object(serde_json::Map::new()),
                _ => serde_json::from_str(raw.get()).unwrap_or(Value::Null),
            },
        }
    }

    /// Whether this is a text that must be longer than `max` characters, judged by its size alone.
    pub(super) fn is_text_beyond(self, max: usize) -> bool {
        match self {
            Self::Parameter(_) => false,
            Self::Json(raw) => {
                let bytes = raw.get().len().saturating_sub(2);
                raw.get().starts_with('"') && bytes / BYTES_PER_CHAR > max
            }
        }
    }

    /// The input as an error shows it: the value if it is short, otherwise its size.
    pub(super) fn abridge(self) -> Value {
        match self {
            Self::Parameter(value) => abridge(value),
            Self::Json(raw) if raw.get().len() > LOOKED_AT => size(raw.get().len()),
            Self::Json(raw) => abridge(&serde_json::from_str(raw.get()).unwrap_or(Value::Null)),
        }
    }

    /// The first `most` entries of a list and its length; `None` if it is not a list.
    pub(super) fn entries(self, most: usize) -> Option<(Vec<&'a RawValue>, usize)> {
        let Self::Json(raw) = self else { return None };
        if !raw.get().starts_with('[') {
            return None;
        }
        let mut deserializer = serde_json::Deserializer::from_str(raw.get());
        let entries = deserializer.deserialize_seq(Entries { most });
        entries.ok()
    }
}

/// The value as an error shows it.
pub(super) fn abridge(value: &Value) -> Value {
    let length = match value {
        Value::String(text) => text.chars().count(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string().chars().count()
        }
    };
    if length > SHOWN {
        return size(value.to_string().len());
    }
    value.clone()
}

fn size(bytes: usize) -> Value {
    Value::from(format!("(not repeated: {bytes} bytes)"))
}

/// The known fields of an object.
#[derive(Debug)]
pub(super) struct Object<'a> {
    whole: &'a RawValue,
    fields: Vec<(&'static str, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// The fields of an object; `None` if it is not one.
    pub(super) fn of(whole: &'a RawValue) -> Option<Self> {
        if !whole.get().starts_with('{') {
            return None;
        }
        let mut deserializer = serde_json::Deserializer::from_str(whole.get());
        let fields = deserializer.deserialize_map(Fields).ok()?;
        Some(Self { whole, fields })
    }

    /// The value of a field. If it is repeated, the last one wins.
    pub(super) fn get(&self, name: &str) -> Option<Input<'a>> {
        debug_assert!(KNOWN.contains(&name), "{name} is not among the known fields");
        let found = self.fields.iter().rev().find(|(known, _)| *known == name);
        found.map(|(_, raw)| Input::Json(raw))
    }

    /// The object itself.
    pub(super) fn whole(&self) -> Input<'a> {
        Input::Json(self.whole)
    }
}

/// Any JSON value: its grammar is checked and nothing is kept.
pub(super) struct ValidJson;

impl<'de> Deserialize<'de> for ValidJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for ValidJson {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

struct Entries {
    most: usize,
}

impl<'de> Visitor<'de> for Entries {
    type Value = (Vec<&'de RawValue>, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut first, mut count) = (Vec::new(), 0);
        while first.len() < self.most {
            match list.next_element()? {
                Some(entry) => first.push(entry),
                None => return Ok((first, count)),
            }
            count += 1;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok((first, count))
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(&'static str, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found: Self::Value = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            let Some(name) = name else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value()?;
            match found.iter_mut().find(|(known, _)| *known == name) {
                Some((_, earlier)) => *earlier = value,
                None => found.push((name, value)),
            }
        }
        Ok(found)
    }
}

/// A known field name, or `None`.
struct Name(Option<&'static str>);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Name, E> {
        Ok(Name(KNOWN.into_iter().find(|known| *known == name)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_last_of_two_values_counts_and_unknown_names_are_passed_over() {
        let body = raw(r#"{"k": 1, "other": [[[{}]]], "\u006b": "2", "kk": 3}"#);
        let object = Object::of(&body).unwrap();
        assert_eq!(object.get("k").unwrap().scalar(), json!("2"));
        assert!(object.get("query").is_none());
        assert_eq!(object.fields.len(), 1);
        assert!(Object::of(&raw("[1]")).is_none());
    }

    #[test]
    fn entries_beyond_the_most_are_counted_and_not_kept() {
        let list = raw(&format!("[{}0]", "{\"a\": 1}, ".repeat(500)));
        let (first, count) = Input::Json(&list).entries(100).unwrap();
        assert_eq!((first.len(), count), (100, 501));
        assert_eq!(Input::Json(&raw("[]")).entries(5).unwrap().1, 0);
        assert!(Input::Json(&raw("{}")).entries(5).is_none());
    }

    #[test]
    fn an_input_is_shown_whole_or_not_at_all() {
        for (text, want) in [
            ("\"short\"".to_owned(), json!("short")),
            ("[1,   2]".to_owned(), json!([1, 2])),
            (format!("\"{}\"", "é".repeat(200)), json!("é".repeat(200))),
            (
                format!("\"{}\"", "x".repeat(201)),
                json!("(not repeated: 203 bytes)"),
            ),
            (
                format!("[{}1]", "0,".repeat(50_000)),
                json!("(not repeated: 100003 bytes)"),
            ),
        ] {
            assert_eq!(Input::Json(&raw(&text)).abridge(), want);
        }
    }

    #[test]
    fn a_text_is_known_to_be_too_long_without_being_read() {
        let long = raw(&format!("\"{}\"", "\\ud83d\\ude00".repeat(11)));
        assert!(Input::Json(&long).is_text_beyond(10));
        assert!(!Input::Json(&long).is_text_beyond(11));
        assert!(
            !Input::Json(&raw(&format!("[{}]", "1,".repeat(500).trim_end_matches(',')))).is_text_beyond(1)
        );
    }

    #[test]
    fn the_check_finds_what_a_reader_of_trees_finds() {
        for text in [
            "{",
            "{\"a\"",
            "{\"a\":1",
            "[1,",
            "nul",
            "1e999",
            "\"\\ud800\"",
            "\"\\x\"",
            "{} x",
            "{1:2}",
            "[1 2]",
            "\"\u{1}\"",
        ] {
            let tree = serde_json::from_str::<Value>(text).unwrap_err();
            let check = serde_json::from_str::<ValidJson>(text).err().unwrap();
            assert_eq!(check.to_string(), tree.to_string(), "{text}");
        }
        let deep = "[".repeat(200);
        let check = serde_json::from_str::<ValidJson>(&deep).err().unwrap();
        assert!(check.to_string().contains("recursion limit"));
    }
}
