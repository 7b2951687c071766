//! Preview, review and commit.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Guarded, RecallWrite};
use super::{body_of, id_of, resource};
use crate::actors::staging::{BatchView, CommitBatch, Decide, Preview, ReadBatch};
use crate::domain::confidence::Confidence;
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::domain::staging::{
    CommitResult, IngestMode, PreviewText, SessionLabel, SourceType, StagedEntity, StagedStatus,
    StagingBatch, Summary,
};
use crate::domain::tlp::Tlp;
use crate::http::AppState;
use crate::http::body;
use crate::store::Decision;

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

impl PreviewBody {
    fn into_message(self, by: Principal, mode: IngestMode) -> Result<Preview, DomainError> {
        let text: PreviewText = body::field("text", self.text)?;
        let session: Option<SessionLabel> = body::optional("session_id", self.session_id)?;
        Ok(Preview {
            by,
            text: text.into(),
            source_type: self.source_type.unwrap_or(SourceType::ManualText),
            session_id: session.map(String::from),
            mode,
            default_tlp: self.default_tlp,
            default_confidence: self.default_confidence.map(Confidence::value),
        })
    }
}

#[derive(Deserialize)]
struct DecisionBody {
    status: StagedStatus,
    resolved_tlp: Option<Tlp>,
    merge_target_id: Option<Uuid>,
}

impl From<DecisionBody> for Decision {
    fn from(body: DecisionBody) -> Self {
        Self {
            status: body.status,
            resolved_tlp: body.resolved_tlp,
            merge_target: body.merge_target_id,
        }
    }
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

impl PreviewAnswer {
    fn of(view: BatchView, mode: IngestMode) -> Self {
        Self {
            success: true,
            batch_id: view.batch.id,
            summary: view.batch.summary,
            auto_ingest: mode == IngestMode::Auto && !view.entities.iter().any(StagedEntity::awaits_commit),
            entities: view.entities,
            warnings: view.batch.warnings,
        }
    }
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
    let mode = body.ingest_mode.unwrap_or(IngestMode::Review);
    let message = body.into_message(caller.by, mode)?;
    let view = state.staging.call_with(message, load).await?;
    Ok(HttpResponse::Ok().json(PreviewAnswer::of(view, mode)))
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
    let message = Decide {
        by: caller.by,
        entity,
        decision: body.into(),
    };
    let entity = state.staging.call(message).await?;
    Ok(HttpResponse::Ok().json(EntityAnswer {
        success: true,
        entity,
    }))
}
