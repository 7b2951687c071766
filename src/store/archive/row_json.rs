//! A row of the database as JSON, without loss.
//!
//! Texts, booleans, whole numbers, numbers with a fraction, lists and objects are what they are in JSON. Everything else is an
//! object with one key: `$uuid`, `$time` (RFC 3339), `$bytes` (Base64), `$id` (table and key), `$decimal`, `$seconds` (with
//! nanoseconds), `$set`, `$float` (a number that JSON has not), `$none`. An object of the row's own whose key begins with `$`
//! stands in `$object`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value as Json, json};
use surrealdb::types::{
    Array, Bytes, Datetime, Decimal, Duration, Number, Object, RecordId, RecordIdKey, Set, Uuid, Value,
};

/// Depth beyond which a value is refused: an archive comes from elsewhere.
const DEEPEST: usize = 100;

/// Why a value can't be turned into the other form.
#[derive(Debug, thiserror::Error)]
#[error("a value of the kind {0} can't stand in an archive")]
pub struct Untranslatable(&'static str);

impl Untranslatable {
    /// For what is no row.
    pub(in crate::store) const ROW: Self = Self("row");
}

/// A value as JSON.
///
/// # Errors
/// For kinds of values that no table has: geometries, files, ranges, regular expressions, names of tables.
pub(in crate::store) fn to_json(value: &Value) -> Result<Json, Untranslatable> {
    Ok(match value {
        Value::None => json!({"$none": true}),
        Value::Null => Json::Null,
        Value::Bool(is_so) => Json::Bool(*is_so),
        Value::Number(number) => number_to_json(number),
        Value::String(text) => Json::String(text.clone()),
        Value::Bytes(bytes) => json!({"$bytes": STANDARD.encode(&***bytes)}),
        Value::Duration(lasts) => json!({"$seconds": [lasts.as_secs(), lasts.subsec_nanos()]}),
        Value::Datetime(time) => json!({"$time": time.to_rfc3339_opts(SecondsFormat::Nanos, true)}),
        Value::Uuid(id) => json!({"$uuid": id.to_string()}),
        Value::RecordId(id) => json!({"$id": [id.table.as_str(), key_to_json(&id.key)?]}),
        Value::Array(list) => Json::Array(list.iter().map(to_json).collect::<Result<_, _>>()?),
        Value::Set(set) => json!({"$set": set.iter().map(to_json).collect::<Result<Vec<_>, _>>()?}),
        Value::Object(object) => object_to_json(object)?,
        Value::Geometry(_) => return Err(Untranslatable("geometry")),
        Value::Table(_) => return Err(Untranslatable("table")),
        Value::File(_) => return Err(Untranslatable("file")),
        Value::Range(_) => return Err(Untranslatable("range")),
        Value::Regex(_) => return Err(Untranslatable("regex")),
    })
}

fn number_to_json(number: &Number) -> Json {
    match number {
        Number::Int(number) => Json::from(*number),
        Number::Float(number) => match serde_json::Number::from_f64(*number) {
            Some(number) => Json::Number(number),
            None => json!({"$float": number.to_string()}),
        },
        Number::Decimal(number) => json!({"$decimal": number.to_string()}),
    }
}

fn object_to_json(object: &BTreeMap<String, Value>) -> Result<Json, Untranslatable> {
    let mut fields = Map::new();
    for (name, value) in object {
        fields.insert(name.clone(), to_json(value)?);
    }
    let is_like_ours = fields.keys().any(|name| name.starts_with('$'));
    Ok(match is_like_ours {
        true => json!({"$object": fields}),
        false => Json::Object(fields),
    })
}

fn key_to_json(key: &RecordIdKey) -> Result<Json, Untranslatable> {
    Ok(match key {
        RecordIdKey::Number(number) => Json::from(*number),
        RecordIdKey::String(text) => Json::String(text.clone()),
        RecordIdKey::Uuid(id) => json!({"$uuid": id.to_string()}),
        RecordIdKey::Array(parts) => Json::Array(parts.iter().map(to_json).collect::<Result<_, _>>()?),
        RecordIdKey::Object(object) => object_to_json(object)?,
        RecordIdKey::Range(_) => return Err(Untranslatable("range")),
    })
}

/// The value that JSON stands for.
///
/// # Errors
/// When it is none that [`to_json`] makes.
pub(in crate::store) fn from_json(json: Json) -> Result<Value, Untranslatable> {
    value_of(json, DEEPEST)
}

fn value_of(json: Json, depth: usize) -> Result<Value, Untranslatable> {
    let depth = depth.checked_sub(1).ok_or(Untranslatable("nesting"))?;
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(is_so) => Value::Bool(is_so),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Number(Number::Int(number)),
            (None, Some(float)) if number.is_f64() => Value::Number(Number::Float(float)),
            _ => return Err(Untranslatable("number")),
        },
        Json::String(text) => Value::String(text),
        Json::Array(list) => Value::Array(Array::from(values_of(list, depth)?)),
        Json::Object(fields) => {
            let mut names = fields.keys();
            match (names.next(), names.next()) {
                (Some(name), None) if name.starts_with('$') => special(fields, depth)?,
                _ => Value::Object(object_of(fields, depth)?),
            }
        }
    })
}

fn values_of(list: Vec<Json>, depth: usize) -> Result<Vec<Value>, Untranslatable> {
    list.into_iter().map(|json| value_of(json, depth)).collect()
}

fn object_of(fields: Map<String, Json>, depth: usize) -> Result<Object, Untranslatable> {
    let mut object = Object::new();
    for (name, json) in fields {
        object.insert(name, value_of(json, depth)?);
    }
    Ok(object)
}

/// The value of an object with one key that begins with `$`.
fn special(fields: Map<String, Json>, depth: usize) -> Result<Value, Untranslatable> {
    let (kind, inner) = fields.into_iter().next().ok_or(Untranslatable("object"))?;
    let text = || inner.as_str().unwrap_or_default();
    Ok(match kind.as_str() {
        "$none" => Value::None,
        "$uuid" => Value::Uuid(uuid_of(text())?),
        "$time" => {
            let time = DateTime::parse_from_rfc3339(text()).map_err(|_| Untranslatable("time"))?;
            Value::Datetime(Datetime::from(time.with_timezone(&Utc)))
        }
        "$bytes" => {
            let bytes = STANDARD.decode(text()).map_err(|_| Untranslatable("bytes"))?;
            Value::Bytes(Bytes::from(bytes))
        }
        "$decimal" => {
            let number: Decimal = text().parse().map_err(|_| Untranslatable("decimal"))?;
            Value::Number(Number::Decimal(number))
        }
        "$float" => {
            let number = text().parse().map_err(|_| Untranslatable("float"))?;
            Value::Number(Number::Float(number))
        }
        "$seconds" => {
            let parts: [u64; 2] = serde_json::from_value(inner).map_err(|_| Untranslatable("duration"))?;
            let nanos = u32::try_from(parts[1]).map_err(|_| Untranslatable("duration"))?;
            Value::Duration(Duration::new(parts[0], nanos))
        }
        "$set" => {
            let list = serde_json::from_value(inner).map_err(|_| Untranslatable("set"))?;
            Value::Set(Set::from(values_of(list, depth)?))
        }
        "$object" => {
            let fields = serde_json::from_value(inner).map_err(|_| Untranslatable("object"))?;
            Value::Object(object_of(fields, depth)?)
        }
        "$id" => {
            let (table, key): (String, Json) =
                serde_json::from_value(inner).map_err(|_| Untranslatable("id"))?;
            Value::RecordId(RecordId::new(table, key_of(key, depth)?))
        }
        _ => return Err(Untranslatable("object")),
    })
}

fn key_of(json: Json, depth: usize) -> Result<RecordIdKey, Untranslatable> {
    let key = match value_of(json, depth)? {
        Value::Number(Number::Int(number)) => Some(RecordIdKey::Number(number)),
        Value::String(text) => Some(RecordIdKey::String(text)),
        Value::Uuid(id) => Some(RecordIdKey::Uuid(id)),
        Value::Array(parts) => Some(RecordIdKey::Array(parts)),
        Value::Object(object) => Some(RecordIdKey::Object(object)),
        Value::None
        | Value::Null
        | Value::Bool(_)
        | Value::Number(Number::Float(_) | Number::Decimal(_))
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Datetime(_)
        | Value::Geometry(_)
        | Value::Table(_)
        | Value::RecordId(_)
        | Value::File(_)
        | Value::Range(_)
        | Value::Regex(_)
        | Value::Set(_) => None,
    };
    key.ok_or(Untranslatable("id"))
}

fn uuid_of(text: &str) -> Result<Uuid, Untranslatable> {
    let id: uuid::Uuid = text.parse().map_err(|_| Untranslatable("uuid"))?;
    Ok(Uuid::from(id))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn leaf() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::None),
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|number| Value::Number(Number::Int(number))),
            // NaN equals nothing, and has a test of its own.
            any::<f64>()
                .prop_filter("a number", |number| !number.is_nan())
                .prop_map(|number| Value::Number(Number::Float(number))),
            (any::<i64>(), 0u32..20)
                .prop_map(|(number, scale)| Value::Number(Number::Decimal(Decimal::new(number, scale)))),
            "\\PC{0,12}".prop_map(Value::String),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Value::Bytes(Bytes::from(bytes))),
            (any::<u64>(), 0u32..1_000_000_000)
                .prop_map(|(seconds, nanos)| Value::Duration(Duration::new(seconds, nanos))),
            (-60_000_000_000i64..200_000_000_000, 0u32..1_000_000_000).prop_map(|(seconds, nanos)| {
                Value::Datetime(Datetime::from_timestamp(seconds, nanos).unwrap_or(Datetime::MIN_UTC))
            }),
            any::<u128>().prop_map(|id| Value::Uuid(Uuid::from(uuid::Uuid::from_u128(id)))),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        leaf().prop_recursive(4, 40, 6, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..5);
            let object = prop::collection::btree_map("[$a-z]{1,6}", inner, 0..5);
            prop_oneof![
                list.clone().prop_map(|list| Value::Array(Array::from(list))),
                list.clone().prop_map(|list| Value::Set(Set::from(list))),
                list.prop_map(|parts| Value::RecordId(RecordId::new(
                    "t",
                    RecordIdKey::Array(Array::from(parts))
                ))),
                object.prop_map(|fields| {
                    let mut object = Object::new();
                    for (name, value) in fields {
                        object.insert(name, value);
                    }
                    Value::Object(object)
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_comes_back_as_it_was(value in value()) {
            let text = to_json(&value).unwrap().to_string();
            prop_assert!(!text.contains('\n'), "a row is a line");
            let back = from_json(serde_json::from_str(&text).unwrap()).unwrap();
            prop_assert_eq!(back, value);
        }

        #[test]
        fn any_json_is_read_or_refused(text in "[\\[\\]{}$:,\"a-z0-9]{0,60}") {
            if let Ok(json) = serde_json::from_str(&text) {
                from_json(json).ok();
            }
        }
    }

    #[test]
    fn no_number_and_a_negative_zero_come_back() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1.0] {
            let json = to_json(&Value::Number(Number::Float(number))).unwrap();
            let back = from_json(serde_json::from_str(&json.to_string()).unwrap()).unwrap();
            let Value::Number(Number::Float(back)) = back else {
                panic!("{back:?} is no float")
            };
            assert_eq!(back.to_bits(), number.to_bits());
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let deep = (0..DEEPEST + 1).fold(json!(1), |inner, _| json!([inner]));
        assert!(from_json(deep).is_err());
    }
}
