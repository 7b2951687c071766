//! Preview, review and commit.

pub(super) mod many;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Guarded, RecallWrite};
use super::query::Params;
use super::{body_of, id_of, resource};
use crate::actors::staging::{CommitBatch, DecideEntity, ListBatches, Preview, PreviewOutcome, ReadBatch};
use crate::domain::confidence::Confidence;
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::domain::staging::{
    CommitResult, IngestMode, PreviewText, SessionLabel, SourceType, StagedEntity, StagedStatus,
    StagingBatch, StagingBatchHead, StagingState, Summary,
};
use crate::domain::tlp::{Tlp, TlpInput};
use crate::http::AppState;
use crate::http::body::{self, Body};
use crate::store::Decision;

/// Largest body of a decision or commit, in bytes.
const DECISION_LIMIT: usize = 64 * 1024;
/// Batches on a page by default, and at most.
const BATCHES: u32 = 50;
const MAX_BATCHES: u32 = 200;

#[derive(Deserialize, ToSchema)]
#[schema(as = Preview)]
struct PreviewBody {
    #[schema(value_type = PreviewText)]
    text: String,
    /// manual_text if absent.
    source_type: Option<SourceType>,
    #[schema(value_type = Option<SessionLabel>)]
    session_id: Option<String>,
    /// review if absent.
    ingest_mode: Option<IngestMode>,
    /// Marking of what the text does not mark; the workspace must be allowed to see it.
    #[schema(value_type = Option<TlpInput>)]
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
    accept_marking: Option<bool>,
    merge_target_id: Option<Uuid>,
}

/// A decision on a staged entity. A merge names the node that the entity is, unless an earlier one did.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
#[schema(as = EntityDecision)]
#[serde(untagged)]
enum DecisionSchema {
    Merge(Merge),
    Other(Verdict),
}

#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
struct Merge {
    #[schema(pattern = "^merged$", example = "merged")]
    status: String,
    /// At most what the workspace may see.
    #[schema(value_type = Option<TlpInput>)]
    resolved_tlp: Option<Tlp>,
    /// An entity with a TLP sensitivity warning is merged only with `resolved_tlp` or with `true` here.
    accept_marking: Option<bool>,
    merge_target_id: Uuid,
}

#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
struct Verdict {
    #[schema(pattern = "^(?:pending|accepted|rejected|uncertain)$", example = "accepted")]
    status: String,
    /// At most what the workspace may see.
    #[schema(value_type = Option<TlpInput>)]
    resolved_tlp: Option<Tlp>,
    /// An entity with a TLP sensitivity warning is accepted only with `resolved_tlp` or with `true` here.
    accept_marking: Option<bool>,
}

impl From<DecisionBody> for Decision {
    fn from(body: DecisionBody) -> Self {
        Self {
            status: body.status,
            resolved_tlp: body.resolved_tlp,
            accept_marking: body.accept_marking.unwrap_or(false),
            merge_target: body.merge_target_id,
        }
    }
}

#[derive(Serialize, ToSchema)]
struct PreviewAnswer {
    success: bool,
    batch_id: Uuid,
    summary: Summary,
    entities: Vec<StagedEntity>,
    /// Whether the automatic mode has written something at once; false if all of it waits for a review.
    #[schema(example = false)]
    auto_ingest: bool,
    /// About the whole text, such as an unreachable language model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!([]))]
    warnings: Vec<String>,
}

impl PreviewAnswer {
    fn of(outcome: PreviewOutcome) -> Self {
        let view = outcome.view;
        Self {
            success: true,
            batch_id: view.batch.id,
            summary: view.batch.summary,
            auto_ingest: outcome.is_committed,
            entities: view.entities,
            warnings: view.batch.warnings,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = StagingBatchesAnswer)]
struct BatchesAnswer {
    batches: Vec<StagingBatchHead>,
    /// Number of batches on this page.
    #[schema(example = 1)]
    count: usize,
}

#[derive(Serialize, ToSchema)]
#[schema(as = StagingBatchAnswer)]
struct BatchAnswer {
    batch: StagingBatch,
    entities: Vec<StagedEntity>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = StagingCommitAnswer)]
struct CommitAnswer {
    success: bool,
    results: CommitResult,
}

#[derive(Serialize, ToSchema)]
struct EntityAnswer {
    success: bool,
    entity: StagedEntity,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/ingest/preview").route(web::post().to(preview)));
    cfg.service(resource("/api/ingest/batch").route(web::get().to(list)));
    cfg.service(resource("/api/ingest/batch/{id}").route(web::get().to(batch)));
    cfg.service(resource("/api/ingest/batch/{id}/commit").route(web::post().to(commit)));
    cfg.service(resource("/api/ingest/staging").route(web::patch().to(many::decide_many)));
    cfg.service(resource("/api/ingest/staging/{id}").route(web::patch().to(decide)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(preview, list, batch, commit, decide))]
pub(super) struct Docs;

/// Extracts entities from a text into a staging batch.
#[utoipa::path(
    post, path = "/api/ingest/preview", tag = "Staging", request_body = PreviewBody,
    responses(
        (
            status = 200,
            description = "The entities that the text names.",
            body = PreviewAnswer,
            links(
                ("batch" = (operation_id = "read_staging_batch", parameters(("id" = "$response.body#/batch_id")))),
                (
                    "decide" = (
                        operation_id = "decide_staged_entity",
                        parameters(("id" = "$response.body#/entities/0/id")),
                    )
                ),
                ("commit" = (operation_id = "commit_staging_batch", parameters(("id" = "$response.body#/batch_id")))),
            ),
        ),
    )
)]
async fn preview(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let (body, load): (PreviewBody, _) =
        body_of(&caller.by, &state, payload, |body| body::parse(&body)).await?;
    let mode = body.ingest_mode.unwrap_or(IngestMode::Review);
    let message = body.into_message(caller.by, mode)?;
    let outcome = state.staging.call_with(message, load).await?;
    Ok(HttpResponse::Ok().json(PreviewAnswer::of(outcome)))
}

/// The newest staging batches that exist for the caller.
#[utoipa::path(
    get, path = "/api/ingest/batch", operation_id = "list_staging_batches", tag = "Staging",
    params(
        ("status" = Option<StagingState>, Query, description = "Only batches in this state."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "Most batches; 50 if absent."),
        ("offset" = Option<u32>, Query, minimum = 0, maximum = 1000000, description = "Batches to skip; 0 if absent."),
    ),
    responses(
        (
            status = 200,
            description = "The batches.",
            body = BatchesAnswer,
            links(("batch" = (operation_id = "read_staging_batch", parameters(("id" = "$response.body#/batches/0/id"))))),
        ),
    )
)]
async fn list(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    request: HttpRequest,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = ListBatches {
        by: caller.by,
        status: params.parse_value("status")?,
        page: params.page(BATCHES, MAX_BATCHES)?,
    };
    let batches = state.staging.call(message).await?;
    let count = batches.len();
    Ok(HttpResponse::Ok().json(BatchesAnswer { batches, count }))
}

/// A staging batch with its entities.
#[utoipa::path(
    get, path = "/api/ingest/batch/{id}", operation_id = "read_staging_batch", tag = "Staging",
    params(("id" = Uuid, Path, description = "Id of the batch.")),
    responses((status = 200, description = "The batch.", body = BatchAnswer))
)]
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

/// Commits the decided entities of a batch. There is nothing to choose, so a body with a field is refused.
#[utoipa::path(
    post, path = "/api/ingest/batch/{id}/commit", operation_id = "commit_staging_batch", tag = "Staging",
    params(("id" = Uuid, Path, description = "Id of the batch.")),
    responses(
        (
            status = 200,
            description = "What became of the entities. A second commit changes nothing.",
            body = CommitAnswer,
        ),
        (status = 409, description = "A node that an entity is to be merged with is gone."),
        (status = 413, description = "The batch is larger than one transaction may be."),
    )
)]
async fn commit(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let batch = id_of(&id, "batch")?;
    body::none(payload, DECISION_LIMIT).await?;
    let results = state.staging.call(CommitBatch { by: caller.by, batch }).await?;
    Ok(HttpResponse::Ok().json(CommitAnswer {
        success: true,
        results,
    }))
}

/// Records the decision on a staged entity. One with a TLP sensitivity warning is accepted or merged only with
/// `resolved_tlp` or `accept_marking`.
#[utoipa::path(
    patch,
    path = "/api/ingest/staging/{id}",
    operation_id = "decide_staged_entity",
    tag = "Staging",
    request_body = DecisionSchema,
    params(("id" = Uuid, Path, description = "Id of the entity.")),
    responses(
        (status = 200, description = "The entity.", body = EntityAnswer),
        (status = 409, description = "The entity is committed already."),
    )
)]
async fn decide(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let entity = id_of(&id, "staging record")?;
    let body: DecisionBody = body::json(payload, DECISION_LIMIT).await?;
    let message = DecideEntity {
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
