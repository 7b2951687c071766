//! Health, counts, version, edition, telemetry, history, logs.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};

use super::body::query_of;
use super::error::LocalError;
use super::{API_VERSION, EDITION, EDITION_NAME, LocalState, guarded};
use crate::config::{EmbeddingProvider, LlmProvider};
use crate::search::BUILTIN_MODEL;

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
    cfg.service(guarded("/api/health").route(web::get().to(health)));
    cfg.service(guarded("/api/stats").route(web::get().to(stats)));
    cfg.service(guarded("/api/storage").route(web::get().to(storage)));
    cfg.service(guarded("/api/version").route(web::get().to(version)));
    cfg.service(guarded("/api/edition").route(web::get().to(edition)));
    cfg.service(guarded("/api/telemetry").route(web::get().to(telemetry)));
    cfg.service(guarded("/api/history").route(web::get().to(history)));
    cfg.service(guarded("/api/logs").route(web::get().to(logs)));
    cfg.service(guarded("/api/sync").route(web::post().to(sync)));
}

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
    Ok(HttpResponse::Ok().json(json!({
        "status": if counts.is_writable { "ok" } else { "degraded" },
        "version": API_VERSION,
        "edition": EDITION,
        "edition_name": EDITION_NAME,
        "storage_backend": storage_backend,
        "embedding_provider": embedding_provider,
        "embedding_model": embedding_model,
        "llm_provider": llm_provider,
        "llm_model": settings.llm.model,
        "llm_local_backend": settings.llm_local_backend,
        "enrichment_queue_depth": queue.depth,
        "queue_status": queue.status,
        "governance_enabled": settings.governance.enabled,
        "pii_enabled": settings.governance.pii.enabled,
        "uptime_seconds": (state.started.elapsed().as_secs_f64() * 10.0).round() / 10.0,
        "data_dir": settings.data_dir().map(|dir| dir.display().to_string()).unwrap_or_default(),
        "graph_node_count": counts.graph_nodes,
        "graph_edge_count": counts.graph_edges,
    })))
}

async fn stats(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let counts = state.memory.counts().await?;
    Ok(HttpResponse::Ok().json(json!({
        "version": API_VERSION,
        "edition": EDITION,
        "edition_name": EDITION_NAME,
        "total_notes": counts.notes,
        "notes_created": counts.notes_created,
        "retrievals": state.memory.retrievals(),
        "entity_index": counts.by_type,
    })))
}

async fn storage(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let counts = state.memory.counts().await?;
    Ok(HttpResponse::Ok().json(json!({
        "total_notes": counts.notes,
        "entity_count": counts.entities,
        "graph_node_count": counts.graph_nodes,
        "graph_edge_count": counts.graph_edges,
    })))
}

async fn version(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let counts = state.memory.counts().await?;
    Ok(HttpResponse::Ok().json(json!({
        "version": API_VERSION, "notes": counts.notes, "edition": EDITION,
    })))
}

async fn edition() -> HttpResponse {
    let features: serde_json::Map<String, Value> = FEATURES
        .iter()
        .map(|(name, on)| ((*name).to_owned(), json!(on)))
        .collect();
    HttpResponse::Ok().json(json!({
        "edition": EDITION, "edition_name": EDITION_NAME, "version": API_VERSION, "features": features,
    }))
}

async fn telemetry(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    Ok(HttpResponse::Ok().json(state.memory.telemetry().await?))
}

async fn history(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let (limit, days) = query_of(&request, |fields| {
        (
            fields.number_or("limit", 100, 1, 500),
            fields.number_or("days", 5, 1, 30),
        )
    })?;
    let days = u32::try_from(days).unwrap_or(1);
    Ok(HttpResponse::Ok().json(state.memory.history(limit, days).await?))
}

async fn logs(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let (lines, level) = query_of(&request, |fields| {
        (
            fields.number_or("lines", 100, 1, 10_000),
            fields.optional_text("level", 20),
        )
    })?;
    Ok(HttpResponse::Ok().json(state.memory.logs(lines, level).await?))
}

/// Synchronisation with an external platform is not part of this edition.
async fn sync() -> HttpResponse {
    HttpResponse::build(StatusCode::NOT_IMPLEMENTED)
        .json(json!({"detail": "Synchronization is not available in this edition"}))
}
