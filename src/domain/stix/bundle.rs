//! The request body of a STIX ingest: the bundle's objects, wherever they are, and the defaults.

use std::fmt::Display;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::ingest::StixDefaults;
use super::objects::{self, Objects};
use crate::domain::confidence::Confidence;
use crate::domain::error::DomainError;
use crate::domain::tlp::{Tlp, TlpInput, UnknownTlp};

pub const DEFAULT_CONFIDENCE: f64 = 0.7;

/// The fields of a request; unknown ones are ignored.
#[derive(Default, Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    bundle: Option<&'a RawValue>,
    /// `bundle`, if the body is itself a bundle.
    #[serde(rename = "type")]
    kind: Option<Value>,
    default_tlp: Option<Value>,
    default_confidence: Option<Value>,
}

/// A bundle. `type` accepts any value, so that a wrong one is refused by name.
#[derive(Deserialize)]
struct Bundle<'a> {
    #[serde(rename = "type")]
    kind: Option<Value>,
    #[serde(borrow)]
    objects: Option<&'a RawValue>,
}

/// A bundle with defaults, a bundle alone, or a bare array of STIX objects.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StixIngest {
    Bundle(StixRequest),
    Alone(StixBundle),
    Objects(StixObjects),
}

/// A bundle with defaults for what its objects don't state.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
pub struct StixRequest {
    bundle: StixInput,
    /// TLP:GREEN if absent.
    #[schema(value_type = Option<TlpInput>)]
    default_tlp: Option<Tlp>,
    /// 0.7 if absent.
    default_confidence: Option<Confidence>,
}

/// A STIX 2.1 bundle, or a bare array of STIX objects.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StixInput {
    Bundle(StixBundle),
    Objects(StixObjects),
}

/// A STIX 2.1 bundle. Its other fields are ignored.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
pub struct StixBundle {
    #[schema(pattern = "^bundle$", example = "bundle")]
    r#type: String,
    objects: Option<StixObjects>,
}

/// STIX 2.1 objects. One that breaks a rule is skipped, and its reason is in the answer.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
#[schema(example = json!([{
    "type": "malware", "spec_version": "2.1", "id": "malware--c3f1c3f8-5a0d-4f4b-8c1a-2f5b6a7d8e9f",
    "created": "2024-01-01T00:00:00.000Z", "modified": "2024-01-01T00:00:00.000Z",
    "name": "Industroyer", "is_family": true
}]))]
pub struct StixObjects(Vec<Value>);

/// Reads the objects and defaults of a request body. Objects are parsed only when needed, one at a time.
///
/// # Errors
/// The invalid field, and the rule it breaks.
pub fn read(body: Vec<u8>, now: DateTime<Utc>) -> Result<(Objects, StixDefaults), DomainError> {
    let text = String::from_utf8(body).map_err(not_json)?;
    let fields: Body<'_> = match shape(&text) {
        Shape::Object => {
            let fields: Body<'_> = serde_json::from_str(&text).map_err(not_json)?;
            let is_bundle = fields.kind.as_ref().and_then(Value::as_str) == Some("bundle");
            let bundle = match fields.bundle {
                None if is_bundle => Some(serde_json::from_str(&text).map_err(not_json)?),
                bundle => bundle,
            };
            Body { bundle, ..fields }
        }
        // A bare array as the whole body; the defaults apply.
        Shape::Array => Body {
            bundle: Some(serde_json::from_str(&text).map_err(not_json)?),
            ..Body::default()
        },
        Shape::Other => {
            serde_json::from_str::<IgnoredAny>(&text).map_err(not_json)?;
            let rule = "must be an object with a bundle, or an array";
            return Err(DomainError::invalid("body", rule));
        }
    };
    let defaults = StixDefaults {
        tlp: default_tlp(fields.default_tlp.as_ref())?,
        confidence: default_confidence(fields.default_confidence.as_ref())?,
        now,
    };
    let given = fields.bundle.filter(|bundle| bundle.get() != "null");
    let bundle = given.ok_or_else(|| DomainError::invalid("bundle", "is required"))?;
    let places = objects::byte_ranges(&text, &objects_of(bundle.get())?);
    let objects = Objects::read(text, places).map_err(not_json)?;
    Ok((objects, defaults))
}

/// The objects of a bundle, or of a bare array. A bundle may be empty (STIX 2.1 section 8).
fn objects_of(bundle: &str) -> Result<Vec<&RawValue>, DomainError> {
    match shape(bundle) {
        Shape::Array => serde_json::from_str(bundle).map_err(not_json),
        Shape::Object => {
            let bundle: Bundle<'_> = serde_json::from_str(bundle).map_err(not_json)?;
            if bundle.kind.as_ref().and_then(Value::as_str) != Some("bundle") {
                return Err(DomainError::invalid("bundle.type", "must be \"bundle\""));
            }
            let Some(objects) = bundle.objects else {
                return Ok(Vec::new());
            };
            if shape(objects.get()) != Shape::Array {
                return Err(DomainError::invalid("bundle.objects", "must be an array"));
            }
            serde_json::from_str(objects.get()).map_err(not_json)
        }
        Shape::Other => Err(DomainError::invalid(
            "bundle",
            "must be a STIX bundle or an array of STIX objects",
        )),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Object,
    Array,
    Other,
}

/// The kind of value that a JSON text starts with. The derived reader would accept an array for an object.
fn shape(text: &str) -> Shape {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => Shape::Object,
        Some(b'[') => Shape::Array,
        Some(_) | None => Shape::Other,
    }
}

fn not_json(cause: impl Display) -> DomainError {
    DomainError::invalid("body", format!("is not valid JSON: {cause}"))
}

fn default_tlp(value: Option<&Value>) -> Result<Tlp, DomainError> {
    let wrong = |rule: &str| DomainError::invalid("default_tlp", rule);
    match value {
        None | Some(Value::Null) => Ok(Tlp::Green),
        Some(Value::String(text)) => text.parse().map_err(|rule: UnknownTlp| wrong(&rule.to_string())),
        Some(_) => Err(wrong("must be a string")),
    }
}

fn default_confidence(value: Option<&Value>) -> Result<f64, DomainError> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(DEFAULT_CONFIDENCE);
    };
    let confidence = Confidence::try_from(value.as_f64().unwrap_or(f64::NAN));
    confidence
        .map(Confidence::value)
        .map_err(|rule| DomainError::invalid("default_confidence", rule))
}
