//! Ways in.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use super::{body_of, resource};
use crate::actors::graph_store::IngestStix;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::stix::ingest::{Defaults, SkippedObject, SkippedType};
use crate::domain::tlp::Tlp;
use crate::http::AppState;
use crate::http::error::HostedError;
use crate::http::guard::{Guarded, RecallWrite};
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
    let (body, load): (Value, _) = body_of(&caller.by, &state, payload).await?;
    let (objects, defaults) = bundle_of(body)?;
    let message = IngestStix {
        by: caller.by,
        objects,
        defaults,
    };
    let done = state.graph.call_with(message, load).await?;
    let results = StixResults {
        result: done.result,
        skipped: done.skipped.total(),
        skipped_by_type: done.skipped.by_type,
        skipped_objects: done.skipped.objects,
    };
    Ok(HttpResponse::Created().json(IngestAnswer {
        success: true,
        results,
    }))
}

/// The objects and defaults of a request body.
fn bundle_of(body: Value) -> Result<(Vec<Value>, Defaults), DomainError> {
    let mut fields = match body {
        Value::Object(fields) => fields,
        // A bare array in place of the whole body: the defaults apply.
        Value::Array(_) => Map::from_iter([("bundle".to_owned(), body)]),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(DomainError::invalid(
                "body",
                "must be an object with a bundle, or an array",
            ));
        }
    };
    let defaults = Defaults {
        tlp: default_tlp(&fields, Tlp::Green)?,
        confidence: default_confidence(&fields, DEFAULT_CONFIDENCE)?,
        now: clock::now(),
    };
    let objects = match fields.remove("bundle") {
        None | Some(Value::Null) => return Err(DomainError::invalid("bundle", "is required")),
        Some(Value::Array(objects)) => ("bundle", objects),
        Some(Value::Object(mut bundle)) => {
            if bundle.get("type").and_then(Value::as_str) != Some("bundle") {
                return Err(DomainError::invalid("bundle.type", "must be \"bundle\""));
            }
            match bundle.remove("objects") {
                Some(Value::Array(objects)) => ("bundle.objects", objects),
                None => return Err(DomainError::invalid("bundle.objects", "is required")),
                Some(_) => return Err(DomainError::invalid("bundle.objects", "must be an array")),
            }
        }
        Some(_) => {
            return Err(DomainError::invalid(
                "bundle",
                "must be a STIX bundle or an array of STIX objects",
            ));
        }
    };
    match objects {
        (field, objects) if objects.is_empty() => {
            Err(DomainError::invalid(field, "must hold at least 1 object"))
        }
        (_, objects) => Ok((objects, defaults)),
    }
}

/// `default_tlp` of an ingest body.
fn default_tlp(fields: &Map<String, Value>, otherwise: Tlp) -> Result<Tlp, DomainError> {
    match fields.get("default_tlp") {
        None | Some(Value::Null) => Ok(otherwise),
        Some(Value::String(text)) => text.parse().map_err(|rule: crate::domain::tlp::UnknownTlp| {
            DomainError::invalid("default_tlp", rule.to_string())
        }),
        Some(_) => Err(DomainError::invalid("default_tlp", "must be a string")),
    }
}

/// `default_confidence` of an ingest body.
fn default_confidence(fields: &Map<String, Value>, otherwise: f64) -> Result<f64, DomainError> {
    match fields.get("default_confidence") {
        None | Some(Value::Null) => Ok(otherwise),
        Some(value) => {
            let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
            number.ok_or_else(|| DomainError::invalid("default_confidence", "must be a number from 0 to 1"))
        }
    }
}
