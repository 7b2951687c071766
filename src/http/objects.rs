//! Requires JSON objects for structs: serde's derived types would also accept an array of the fields in order.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The error message for a value that must be an object.
const MUST_BE_AN_OBJECT: &str = "must be an object";

/// A JSON deserializer that refuses an array in place of a struct, at every depth. Self-describing types (`Value`) and
/// structs inside enum variants, which no body has, are not affected.
pub(super) struct Objects<D>(pub(super) D);

/// Applies the same rule to nested values.
struct Inside<V>(V);

/// The visitor of a struct.
struct Struct<V>(V);

macro_rules! plain {
    ($($method:ident)+) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(visitor)
        }
    )+ };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    plain! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_unit deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Inside(visitor))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Inside(visitor))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_seq(Inside(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, Inside(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, len, Inside(visitor))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Inside(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Struct(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Struct<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<V::Value, A::Error> {
        Err(A::Error::custom(MUST_BE_AN_OBJECT))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Inside(map))
    }
}

/// The JSON deserializer calls no other methods for the types read with this.
impl<'de, V: Visitor<'de>> Visitor<'de> for Inside<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Inside(seq))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Inside(map))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Inside<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Inside(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Inside<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Inside(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Inside<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(inner))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::{Map, Value};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Leaf {
        n: u8,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Newtype(Leaf);

    #[derive(Debug, PartialEq, Deserialize)]
    enum Kind {
        A,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Tree {
        one: Leaf,
        maybe: Option<Leaf>,
        many: Vec<Leaf>,
        named: BTreeMap<String, Leaf>,
        pair: (u8, Leaf),
        new: Newtype,
        kind: Kind,
        free: Map<String, Value>,
        any: Value,
    }

    fn read(text: &str) -> Result<Tree, String> {
        let mut json = serde_json::Deserializer::from_str(text);
        let tree = serde_path_to_error::deserialize(Objects(&mut json));
        tree.map_err(|error| format!("{}: {}", error.path(), error.inner()))
    }

    const GOOD: &str = r#"{"one":{"n":1},"maybe":{"n":2},"many":[{"n":3}],"named":{"a":{"n":4}},
        "pair":[5,{"n":6}],"new":{"n":7},"kind":"A","free":{"x":[1]},"any":[[1],{"y":[2]}]}"#;

    #[test]
    fn objects_and_arrays_that_are_wanted_are_read_as_ever() {
        let plain: Tree = serde_json::from_str(GOOD).unwrap();
        assert_eq!(read(GOOD).unwrap(), plain);
        let null = GOOD.replace(r#""maybe":{"n":2}"#, r#""maybe":null"#);
        assert_eq!(read(&null).unwrap().maybe, None);
    }

    #[test]
    fn an_array_in_place_of_a_struct_is_refused_at_every_depth_and_named() {
        for (object, path) in [
            (r#"{"n":1}"#, "one"),
            (r#"{"n":2}"#, "maybe"),
            (r#"{"n":3}"#, "many[0]"),
            (r#"{"n":4}"#, "named.a"),
            (r#"{"n":6}"#, "pair[1]"),
            (r#"{"n":7}"#, "new"),
            (r#"{"x":[1]}"#, "free"),
        ] {
            let text = GOOD.replace(object, "[9]");
            let error = read(&text).unwrap_err();
            let named = error.starts_with(&format!("{path}: "));
            assert!(named, "{text} gave {error}");
            assert!(path == "free" || error.contains(MUST_BE_AN_OBJECT), "{error}");
        }
        assert!(read("[]").unwrap_err().contains(MUST_BE_AN_OBJECT));
    }
}
