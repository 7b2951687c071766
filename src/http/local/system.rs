//! Health, counts, version, edition, telemetry, history, logs.

mod types;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};

use self::types::{Edition, Health, Stats, Storage, Version};
pub(super) use self::types::{HistoryQuery, LogsQuery};
use super::body::query_of;
use super::error::{ErrorBody, LocalError};
use super::{API_VERSION, EDITION, EDITION_NAME, LocalState, guarded_resource};
use crate::config::{EmbeddingProvider, LlmProvider};
use crate::local::{LogPage, TelemetryEntry, TelemetryMetrics};
use crate::search::BUILTIN_MODEL;

const NO_SYNC: &str = "Synchronization is not available in this edition";

/// The features of this edition, and whether each is available.
const FEATURES: [(&str, bool); 21] = [
    ("vector_search", true),
    ("blended_retrieval", true),
    ("intent_adaptive_routing", true),
    ("temporal_graph_queries", true),
    ("graph_traversal", true),
    ("graph_traversal_multihop", true),
    ("entity_extraction_rules", true),
    ("entity_extraction_llm", true),
    ("note_evolution", true),
    ("report_ingestion", true),
    ("direct_answer_synthesis", true),
    ("advanced_synthesis_formats", true),
    ("event_streams", true),
    ("audit_log", true),
    ("pii_detection", true),
    ("platform_integration", false),
    ("graphdb_stix_ontology", false),
    ("alias_resolution_graphdb", false),
    ("sigma_generation", false),
    ("context_injection", false),
    ("multi_tenant_auth", false),
];

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded_resource("/api/health").route(web::get().to(health)));
    cfg.service(guarded_resource("/api/stats").route(web::get().to(stats)));
    cfg.service(guarded_resource("/api/storage").route(web::get().to(storage)));
    cfg.service(guarded_resource("/api/version").route(web::get().to(version)));
    cfg.service(guarded_resource("/api/edition").route(web::get().to(edition)));
    cfg.service(guarded_resource("/api/telemetry").route(web::get().to(telemetry)));
    cfg.service(guarded_resource("/api/history").route(web::get().to(history)));
    cfg.service(guarded_resource("/api/logs").route(web::get().to(logs)));
    cfg.service(guarded_resource("/api/sync").route(web::post().to(sync)));
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(health, stats, storage, version, edition, telemetry, history, logs, sync))]
pub(super) struct Docs;

/// Reads the state of the service.
#[utoipa::path(
    get, path = "/api/health", tag = "System", operation_id = "read_health",
    responses((status = 200, description = "The state.", body = Health)),
)]
async fn health(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let settings = state.settings();
    let counts = state.memory.counts().await?;
    let queue = state.memory.enrichment_queue().await?;
    let (embedding_provider, embedding_model) = match settings.embedding.provider {
        EmbeddingProvider::Builtin => ("builtin", BUILTIN_MODEL),
        EmbeddingProvider::Openai => ("openai", settings.embedding.model.as_str()),
    };
    let llm_provider = match settings.llm.provider {
        LlmProvider::None => "none",
        LlmProvider::Openai => "openai",
    };
    let storage_backend = match settings.backend.as_str() {
        "surrealkv" => "surrealkv",
        "mem" => "mem",
        _ => "surrealdb",
    };
    Ok(HttpResponse::Ok().json(Health {
        status: if counts.is_writable { "ok" } else { "degraded" },
        version: API_VERSION,
        edition: EDITION,
        edition_name: EDITION_NAME,
        storage_backend,
        embedding_provider,
        embedding_model,
        llm_provider,
        llm_model: &settings.llm.model,
        llm_local_backend: &settings.llm_local_backend,
        enrichment_queue_depth: queue.depth,
        queue_status: queue.status,
        governance_enabled: settings.governance.enabled,
        pii_enabled: settings.governance.pii.enabled,
        uptime_seconds: (state.started.elapsed().as_secs_f64() * 10.0).round() / 10.0,
        data_dir: settings
            .data_dir()
            .map(|dir| dir.display().to_string())
            .unwrap_or_default(),
        graph_node_count: counts.graph_nodes,
        graph_edge_count: counts.graph_edges,
    }))
}

/// Reads statistics of the memory.
#[utoipa::path(
    get, path = "/api/stats", tag = "System", operation_id = "read_stats",
    responses((status = 200, description = "The statistics.", body = Stats)),
)]
async fn stats(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let counts = state.memory.counts().await?;
    Ok(HttpResponse::Ok().json(Stats {
        version: API_VERSION,
        edition: EDITION,
        edition_name: EDITION_NAME,
        total_notes: counts.notes,
        notes_created: counts.notes_created,
        retrievals: state.memory.retrievals(),
        entity_index: counts.by_type,
    }))
}

/// Counts what is stored.
#[utoipa::path(
    get, path = "/api/storage", tag = "System", operation_id = "read_storage",
    responses((status = 200, description = "The counts.", body = Storage)),
)]
async fn storage(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let counts = state.memory.counts().await?;
    Ok(HttpResponse::Ok().json(Storage {
        total_notes: counts.notes,
        entity_count: counts.entities,
        graph_node_count: counts.graph_nodes,
        graph_edge_count: counts.graph_edges,
    }))
}

/// Reads the version of the API.
#[utoipa::path(
    get, path = "/api/version", tag = "System", operation_id = "read_version",
    responses((status = 200, description = "The version.", body = Version)),
)]
async fn version(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let counts = state.memory.counts().await?;
    Ok(HttpResponse::Ok().json(Version {
        version: API_VERSION,
        notes: counts.notes,
        edition: EDITION,
    }))
}

/// Lists the features of this edition.
#[utoipa::path(
    get, path = "/api/edition", tag = "System", operation_id = "read_edition",
    responses((status = 200, description = "The edition.", body = Edition)),
)]
async fn edition() -> HttpResponse {
    HttpResponse::Ok().json(Edition {
        edition: EDITION,
        edition_name: EDITION_NAME,
        version: API_VERSION,
        features: FEATURES.into_iter().collect(),
    })
}

/// Reads today's totals.
///
/// All are zero if nothing was asked today, or if telemetry is off.
#[utoipa::path(
    get, path = "/api/telemetry", tag = "System", operation_id = "read_telemetry",
    responses((status = 200, description = "The totals.", body = TelemetryMetrics)),
)]
async fn telemetry(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    Ok(HttpResponse::Ok().json(state.memory.telemetry().await?))
}

/// Lists the last queries.
///
/// Recalls and syntheses, the newest first.
#[utoipa::path(
    get, path = "/api/history", tag = "System", operation_id = "read_history", params(HistoryQuery),
    responses(
        (status = 200, description = "The queries.", body = Vec<TelemetryEntry>),
        (status = 422, description = ""),
    ),
)]
async fn history(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let HistoryQuery { limit, days } = query_of(&request, HistoryQuery::read)?;
    let days = u32::try_from(days).unwrap_or(1);
    Ok(HttpResponse::Ok().json(state.memory.history(limit, days).await?))
}

/// Reads the last lines of the log.
///
/// The oldest of them first.
#[utoipa::path(
    get, path = "/api/logs", tag = "System", operation_id = "read_logs", params(LogsQuery),
    responses((status = 200, description = "The lines.", body = LogPage), (status = 422, description = "")),
)]
async fn logs(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let LogsQuery { lines, level } = query_of(&request, LogsQuery::read)?;
    Ok(HttpResponse::Ok().json(state.memory.logs(lines, level).await?))
}

/// Synchronises with an external platform.
///
/// Not part of this edition. Any body is ignored.
#[utoipa::path(
    post, path = "/api/sync", tag = "System", operation_id = "sync",
    responses(
        (status = 200, description = "Synchronised. This edition never answers so."),
        (status = 501, description = "Not available in this edition.", body = ErrorBody,
            example = json!({"detail": NO_SYNC})),
    ),
)]
async fn sync() -> HttpResponse {
    HttpResponse::build(StatusCode::NOT_IMPLEMENTED).json(ErrorBody::new(NO_SYNC))
}
