//! Ways in.

use actix_web::{HttpResponse, web};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt::Display;

use super::resource;
use crate::actors::graph_store::IngestStix;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::stix::ingest::{Defaults, SkippedObject, SkippedType};
use crate::domain::stix::objects::{self, Objects};
use crate::domain::tlp::Tlp;
use crate::http::error::HostedError;
use crate::http::guard::{Guarded, RecallWrite};
use crate::http::{AppState, body, weight};
use crate::store::IngestResult;

const DEFAULT_CONFIDENCE: f64 = 0.7;

/// Body of a successful ingest.
#[derive(Serialize)]
struct IngestAnswer {
    success: bool,
    results: StixResults,
}

#[derive(Serialize)]
struct StixResults {
    #[serde(flatten)]
    result: IngestResult,
    remarked: u64,
    warnings: Vec<String>,
    skipped: u64,
    skipped_by_type: BTreeMap<String, SkippedType>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped_objects: Vec<SkippedObject>,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/ingest/stix").route(web::post().to(stix)));
}

/// Takes a STIX 2.1 bundle, or a bare array of STIX objects.
async fn stix(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let limit = state.settings.server.body_limit;
    let ws = Some(caller.by.workspace.id);
    let (read, load) = body::counted(payload, limit, &state.bodies, ws, bundle_of).await?;
    let (objects, defaults) = read;
    let message = IngestStix {
        by: caller.by,
        objects,
        defaults,
    };
    let done = state.graph.call_with(message, load).await?;
    let results = StixResults {
        result: done.result,
        remarked: done.remarked,
        warnings: done.warnings,
        skipped: done.skipped.total(),
        skipped_by_type: done.skipped.by_type,
        skipped_objects: done.skipped.objects,
    };
    Ok(HttpResponse::Created().json(IngestAnswer {
        success: true,
        results,
    }))
}

/// An ingest body; unknown fields are ignored.
#[derive(Default, Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    bundle: Option<&'a RawValue>,
    default_tlp: Option<Value>,
    default_confidence: Option<Value>,
}

/// A bundle; the type is a value of any kind, so that a wrong one is refused by its name.
#[derive(Deserialize)]
struct Bundle<'a> {
    #[serde(rename = "type")]
    kind: Option<Value>,
    #[serde(borrow)]
    objects: Option<&'a RawValue>,
}

/// The objects and defaults of a request body.
fn bundle_of(body: Vec<u8>) -> Result<(Objects, Defaults), DomainError> {
    weight::check(&body)?;
    let text = String::from_utf8(body).map_err(not_json)?;
    let fields: Body<'_> = match shape(&text) {
        Shape::Object => serde_json::from_str(&text).map_err(not_json)?,
        // A bare array in place of the whole body: the defaults apply.
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
    let defaults = Defaults {
        tlp: default_tlp(fields.default_tlp.as_ref(), Tlp::Green)?,
        confidence: default_confidence(fields.default_confidence.as_ref(), DEFAULT_CONFIDENCE)?,
        now: clock::now(),
    };
    let bundle = fields
        .bundle
        .ok_or_else(|| DomainError::invalid("bundle", "is required"))?;
    let places = objects::places(&text, &objects_of(bundle.get())?);
    let objects = Objects::read(text, places).map_err(not_json)?;
    Ok((objects, defaults))
}

/// The objects of a bundle, or of an array in its place. A bundle may be empty (STIX 2.1 section 8).
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

/// What a JSON text begins as. To the derived reader an array would do for an object.
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

/// `default_tlp` of an ingest body.
fn default_tlp(value: Option<&Value>, otherwise: Tlp) -> Result<Tlp, DomainError> {
    match value {
        None | Some(Value::Null) => Ok(otherwise),
        Some(Value::String(text)) => text.parse().map_err(|rule: crate::domain::tlp::UnknownTlp| {
            DomainError::invalid("default_tlp", rule.to_string())
        }),
        Some(_) => Err(DomainError::invalid("default_tlp", "must be a string")),
    }
}

/// `default_confidence` of an ingest body.
fn default_confidence(value: Option<&Value>, otherwise: f64) -> Result<f64, DomainError> {
    match value {
        None | Some(Value::Null) => Ok(otherwise),
        Some(value) => {
            let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
            number.ok_or_else(|| DomainError::invalid("default_confidence", "must be a number from 0 to 1"))
        }
    }
}
