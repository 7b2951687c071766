//! Preview, review and commit.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Guarded, RecallWrite};
use super::{body_of, id_of, resource};
use crate::actors::staging::{CommitBatch, Decide, Preview, ReadBatch};
use crate::domain::confidence::Confidence;
use crate::domain::error::DomainError;
use crate::domain::staging::{
    CommitResult, IngestMode, SourceType, StagedEntity, StagedStatus, StagingBatch, Summary,
};
use crate::domain::tlp::Tlp;
use crate::http::AppState;
use crate::http::body;
use crate::store::Decision;

const MIN_CHARS: usize = 10;
/// Longest text of a preview, in bytes.
const MAX_TEXT: usize = 1 << 20;
const MAX_SESSION: usize = 200;
/// Largest body of a decision, in bytes.
const DECISION_LIMIT: usize = 64 * 1024;

#[derive(Deserialize)]
struct PreviewBody {
    text: String,
    source_type: Option<SourceType>,
    session_id: Option<String>,
    ingest_mode: Option<IngestMode>,
    default_tlp: Option<Tlp>,
    default_confidence: Option<Confidence>,
}

#[derive(Deserialize)]
struct DecisionBody {
    status: StagedStatus,
    resolved_tlp: Option<Tlp>,
    merge_target_id: Option<Uuid>,
}

#[derive(Serialize)]
struct PreviewAnswer {
    success: bool,
    batch_id: Uuid,
    summary: Summary,
    entities: Vec<StagedEntity>,
    auto_ingest: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct BatchAnswer {
    batch: StagingBatch,
    entities: Vec<StagedEntity>,
}

#[derive(Serialize)]
struct CommitAnswer {
    success: bool,
    results: CommitResult,
}

#[derive(Serialize)]
struct EntityAnswer {
    success: bool,
    entity: StagedEntity,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/ingest/preview").route(web::post().to(preview)));
    cfg.service(resource("/api/ingest/batch/{id}").route(web::get().to(batch)));
    cfg.service(resource("/api/ingest/batch/{id}/commit").route(web::post().to(commit)));
    cfg.service(resource("/api/ingest/staging/{id}").route(web::patch().to(decide)));
}

/// Extracts entities from a text into a staging batch.
async fn preview(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let (body, load): (PreviewBody, _) =
        body_of(&caller.by, &state, payload, |body| body::parse(&body)).await?;
    check(&body)?;
    let mode = body.ingest_mode.unwrap_or(IngestMode::Review);
    let message = Preview {
        by: caller.by,
        text: body.text,
        source_type: body.source_type.unwrap_or(SourceType::ManualText),
        session_id: body.session_id,
        mode,
        default_tlp: body.default_tlp,
        default_confidence: body.default_confidence.map(Confidence::value),
    };
    let view = state.staging.call_with(message, load).await?;
    // When the commit was deferred, accepted entities have no node yet.
    let committed = view
        .entities
        .iter()
        .all(|entity| entity.status != StagedStatus::Accepted || entity.node_id.is_some());
    Ok(HttpResponse::Ok().json(PreviewAnswer {
        success: true,
        batch_id: view.batch.id,
        summary: view.batch.summary,
        entities: view.entities,
        auto_ingest: mode == IngestMode::Auto && committed,
        warnings: view.batch.warnings,
    }))
}

fn check(body: &PreviewBody) -> Result<(), DomainError> {
    if body.text.chars().count() < MIN_CHARS {
        return Err(DomainError::invalid(
            "text",
            format!("must have at least {MIN_CHARS} characters"),
        ));
    }
    if body.text.len() > MAX_TEXT {
        return Err(DomainError::invalid(
            "text",
            format!("must have at most {MAX_TEXT} bytes"),
        ));
    }
    if body.text.contains('\0') {
        return Err(DomainError::invalid("text", "must not hold a NUL character"));
    }
    let unfit = |id: &String| id.is_empty() || id.len() > MAX_SESSION || id.contains('\0');
    if body.session_id.as_ref().is_some_and(unfit) {
        return Err(DomainError::invalid(
            "session_id",
            format!("must have from 1 to {MAX_SESSION} bytes"),
        ));
    }
    Ok(())
}

/// A staging batch with its entities.
async fn batch(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let batch = id_of(&id, "batch")?;
    let view = state.staging.call(ReadBatch { by: caller.by, batch }).await?;
    Ok(HttpResponse::Ok().json(BatchAnswer {
        batch: view.batch,
        entities: view.entities,
    }))
}

/// Commits the decided entities of a batch.
async fn commit(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let batch = id_of(&id, "batch")?;
    let results = state.staging.call(CommitBatch { by: caller.by, batch }).await?;
    Ok(HttpResponse::Ok().json(CommitAnswer {
        success: true,
        results,
    }))
}

/// Records the decision on a staged entity.
async fn decide(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let entity = id_of(&id, "staging record")?;
    let body: DecisionBody = body::json(payload, DECISION_LIMIT).await?;
    let decision = Decision {
        status: body.status,
        resolved_tlp: body.resolved_tlp,
        merge_target: body.merge_target_id,
    };
    let entity = state
        .staging
        .call(Decide {
            by: caller.by,
            entity,
            decision,
        })
        .await?;
    Ok(HttpResponse::Ok().json(EntityAnswer {
        success: true,
        entity,
    }))
}
