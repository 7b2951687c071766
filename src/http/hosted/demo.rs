//! The public demo: search and export without credentials.

use std::net::IpAddr;
use std::time::Instant;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{DemoLimits, Public};
use super::query::Params;
use super::recall::{DEFAULT_LIMIT, MAX_LIMIT, bundle_response};
use super::resource;
use crate::actors::graph_store::{DemoExport, DemoQuestion, DemoRecall, Visit};
use crate::domain::confidence::Confidence;
use crate::domain::demo::MAX_QUERY;
use crate::domain::node::{KgNode, NodeType};
use crate::domain::schema::{self, text_schema};
use crate::domain::stix::export::ExportedBundle;
use crate::domain::tlp::Tlp;
use crate::http::AppState;
use crate::http::body::{self, Body};

/// Largest body, in bytes: 300 characters fit however they are escaped.
const BODY_LIMIT: usize = 16 * 1024;

text_schema! {
    /// A question without personal data; white space around it is removed.
    DemoText, (1, MAX_QUERY), schema::NOT_BLANK, "ransomware"
}

#[derive(Deserialize, ToSchema)]
struct RecallBody {
    #[serde(deserialize_with = "text")]
    #[schema(value_type = DemoText, inline)]
    query: String,
}

/// Reads a text. The message about anything else does not repeat it: it may be a number that nobody should keep.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let Value::String(text) = Value::deserialize(from)? else {
        return Err(D::Error::custom("must be a string"));
    };
    Ok(text)
}

#[derive(Serialize, ToSchema)]
struct RecallAnswer {
    results: Vec<DemoResult>,
    /// Whether the demo data is loaded.
    #[schema(example = true)]
    seeded: bool,
    #[schema(example = "ransomware")]
    query: String,
    #[schema(example = 1)]
    result_count: usize,
    /// Time that the search took, in milliseconds.
    #[schema(example = 4)]
    latency_ms: u64,
}

/// A result of the demo: what a node shows to the public.
#[derive(Serialize, ToSchema)]
struct DemoResult {
    id: Uuid,
    node_type: NodeType,
    #[schema(example = "Clop")]
    name: String,
    #[schema(example = "Ransomware of a group that exploits file-transfer products.")]
    description: String,
    #[schema(example = "Public demo")]
    source: String,
    tlp: Tlp,
    #[schema(value_type = Confidence)]
    confidence: f64,
    #[schema(example = json!({"aliases": ["Cl0p"]}))]
    properties: Map<String, Value>,
    linked_evidence_ids: Vec<Uuid>,
}

impl From<KgNode> for DemoResult {
    fn from(node: KgNode) -> Self {
        Self {
            id: node.id,
            node_type: node.node_type,
            name: node.name,
            description: node.description,
            source: node.source,
            tlp: node.tlp,
            confidence: node.confidence,
            properties: node.properties,
            linked_evidence_ids: node.linked_evidence_ids,
        }
    }
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/public/demo-recall").route(web::post().to(recall)));
    cfg.service(resource("/api/public/demo-export.stix").route(web::get().to(export)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(recall, export))]
pub(super) struct Docs;

/// Searches the demo workspace by keyword.
#[utoipa::path(
    post, path = "/api/public/demo-recall", operation_id = "demo_recall", tag = "Public demo", security(()),
    request_body = RecallBody,
    responses(
        (status = 200, description = "The results, best first.", body = RecallAnswer),
        (status = 400, description = "The question breaks a rule, or contains personal data."),
        (status = 429, description = "More than 10 requests of this address within an hour, or 200 within a day."),
    )
)]
async fn recall(
    visitor: Public<DemoLimits>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let body: RecallBody = body::json(payload, BODY_LIMIT).await?;
    let since = Instant::now();
    let found = state
        .graph
        .call(DemoRecall(visit(&state, ("query", body.query), visitor.ip)))
        .await?;
    let results: Vec<DemoResult> = found.results.into_rows().map(|row| row.node.into()).collect();
    Ok(HttpResponse::Ok().json(RecallAnswer {
        result_count: results.len(),
        results,
        seeded: state.demo.seeded,
        query: found.query,
        latency_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
    }))
}

/// Exports what a search of the demo workspace finds as a STIX bundle.
#[utoipa::path(
    get, path = "/api/public/demo-export.stix", operation_id = "demo_export", tag = "Public demo", security(()),
    params(
        ("q" = inline(DemoText), Query, description = "The question, or words of it."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Most results; 20 if absent."),
    ),
    responses(
        (status = 200, description = "A valid STIX 2.1 bundle.", body = ExportedBundle, content_type = "application/stix+json;version=2.1"),
        (status = 400, description = "The question breaks a rule, or contains personal data."),
        (status = 404, description = "Nothing was found."),
        (status = 422, description = "The bundle would not be valid STIX 2.1."),
        (status = 429, description = "More than 10 requests of this address within an hour, or 200 within a day."),
    )
)]
async fn export(
    visitor: Public<DemoLimits>,
    state: web::Data<AppState>,
    request: HttpRequest,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = DemoExport {
        limit: params.number("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)? as usize,
        visit: visit(&state, ("q", params.required("q")?), visitor.ip),
    };
    Ok(bundle_response(state.graph.call(message).await?))
}

fn visit(state: &AppState, (field, text): (&'static str, String), ip: IpAddr) -> Visit {
    Visit {
        demo: state.demo.clone(),
        query: DemoQuestion { field, text },
        ip,
    }
}
