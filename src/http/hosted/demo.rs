//! The public demo: search and export without credentials.

use std::net::IpAddr;
use std::time::Instant;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{DemoLimits, Public};
use super::query::Params;
use super::recall::{DEFAULT_LIMIT, MAX_LIMIT, exported};
use super::resource;
use crate::actors::graph_store::{DemoExport, DemoQuestion, DemoRecall, Visit};
use crate::domain::node::{KgNode, NodeType};
use crate::domain::session::{ScoredNode, Visible};
use crate::domain::tlp::Tlp;
use crate::http::{AppState, body};

/// Largest body, in bytes: 300 characters fit however they are escaped.
const BODY_LIMIT: usize = 16 * 1024;

#[derive(Deserialize)]
struct RecallBody {
    query: String,
}

#[derive(Serialize)]
struct RecallAnswer {
    results: Vec<DemoResult>,
    /// Whether the demo data is loaded.
    seeded: bool,
    query: String,
    result_count: usize,
    latency_ms: u64,
}

/// A result of the demo: what a node shows to the public.
#[derive(Serialize)]
struct DemoResult {
    id: Uuid,
    node_type: NodeType,
    name: String,
    description: String,
    source: String,
    tlp: Tlp,
    confidence: f64,
    properties: Map<String, Value>,
    linked_evidence_ids: Vec<Uuid>,
}

impl From<&ScoredNode> for DemoResult {
    fn from(row: &ScoredNode) -> Self {
        let KgNode {
            id,
            node_type,
            name,
            description,
            source,
            tlp,
            confidence,
            properties,
            linked_evidence_ids,
            ..
        } = row.node.clone();
        Self {
            id,
            node_type,
            name,
            description,
            source,
            tlp,
            confidence,
            properties,
            linked_evidence_ids,
        }
    }
}

impl DemoResult {
    fn all(rows: &Visible<ScoredNode>) -> Vec<Self> {
        rows.rows().iter().map(Self::from).collect()
    }
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/public/demo-recall").route(web::post().to(recall)));
    cfg.service(resource("/api/public/demo-export.stix").route(web::get().to(export)));
}

/// Searches the demo workspace by keyword.
async fn recall(
    visitor: Public<DemoLimits>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let body: RecallBody = body::json(payload, BODY_LIMIT).await?;
    let since = Instant::now();
    let found = state
        .graph
        .call(DemoRecall(visit(&state, ("query", body.query), visitor.ip)))
        .await?;
    Ok(HttpResponse::Ok().json(RecallAnswer {
        results: DemoResult::all(&found.results),
        seeded: state.demo.seeded,
        query: found.query,
        result_count: found.results.rows().len(),
        latency_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
    }))
}

/// Exports what a search of the demo workspace finds as a STIX bundle.
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
    Ok(exported(state.graph.call(message).await?))
}

fn visit(state: &AppState, (field, text): (&'static str, String), ip: IpAddr) -> Visit {
    Visit {
        demo: state.demo.clone(),
        query: DemoQuestion { field, text },
        ip,
    }
}
