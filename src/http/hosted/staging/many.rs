//! One decision on many staged entities.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::DECISION_LIMIT;
use crate::actors::staging::DecideEntities;
use crate::domain::confidence::Confidence;
use crate::domain::error::DomainError;
use crate::domain::node::NodeType;
use crate::domain::staging::{StagedEntity, StagedStatus};
use crate::domain::tlp::{Tlp, TlpInput};
use crate::http::AppState;
use crate::http::body::{self, Body};
use crate::http::hosted::error::HostedError;
use crate::http::hosted::guard::{Guarded, RecallWrite};
use crate::store::{Chosen, Decision, EntityFilter, MAX_DECIDED};

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(decide_many))]
pub(in crate::http::hosted) struct Docs;

#[derive(Deserialize)]
struct ManyBody {
    entity_ids: Option<Vec<Uuid>>,
    filter: Option<FilterBody>,
    status: StagedStatus,
    resolved_tlp: Option<Tlp>,
    accept_marking: Option<bool>,
}

/// Entities of a batch that are not committed and would be changed. What is absent fits all.
#[derive(Deserialize, ToSchema)]
#[schema(as = StagedEntityFilter)]
struct FilterBody {
    batch_id: Uuid,
    status: Option<StagedStatus>,
    node_type: Option<NodeType>,
    /// The least proposed confidence.
    min_confidence: Option<Confidence>,
    /// Whether the entity has a TLP sensitivity warning.
    #[schema(example = false)]
    sensitive: Option<bool>,
}

/// One decision on the staged entities of a list, or on those that a filter chooses.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
#[schema(as = EntitiesDecision)]
#[serde(untagged)]
enum ManySchema {
    Listed(ListedDecision),
    Filtered(FilteredDecision),
}

#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
struct ListedDecision {
    #[schema(min_items = 1, max_items = 1000)]
    entity_ids: Vec<Uuid>,
    #[schema(pattern = "^(?:pending|accepted|rejected|uncertain)$", example = "accepted")]
    status: String,
    /// At most what the workspace may see.
    #[schema(value_type = Option<TlpInput>)]
    resolved_tlp: Option<Tlp>,
    /// Entities with a TLP sensitivity warning are accepted only with `resolved_tlp` or with `true` here.
    accept_marking: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
struct FilteredDecision {
    filter: FilterBody,
    #[schema(pattern = "^(?:pending|accepted|rejected|uncertain)$", example = "accepted")]
    status: String,
    /// At most what the workspace may see.
    #[schema(value_type = Option<TlpInput>)]
    resolved_tlp: Option<Tlp>,
    /// Entities with a TLP sensitivity warning are accepted only with `resolved_tlp` or with `true` here.
    accept_marking: Option<bool>,
}

#[derive(Serialize, ToSchema)]
struct EntitiesAnswer {
    success: bool,
    /// Number of entities that the decision has changed.
    count: usize,
    /// Entities that the filter chooses too, beyond the thousand of one request.
    #[schema(example = 0)]
    remaining: usize,
    entities: Vec<StagedEntity>,
}

/// The entities that a request is about.
fn chosen(ids: Option<Vec<Uuid>>, filter: Option<FilterBody>) -> Result<Chosen, DomainError> {
    match (ids, filter) {
        (Some(mut ids), None) => {
            ids.sort_unstable();
            ids.dedup();
            if ids.is_empty() || ids.len() > MAX_DECIDED {
                let rule = format!("must name from 1 to {MAX_DECIDED} entities");
                return Err(DomainError::invalid("entity_ids", rule));
            }
            Ok(Chosen::Ids(ids))
        }
        (None, Some(filter)) => Ok(Chosen::Filter(EntityFilter {
            batch: filter.batch_id,
            status: filter.status,
            node_type: filter.node_type,
            min_confidence: filter.min_confidence.map(Confidence::value),
            sensitive: filter.sensitive,
        })),
        (None, None) => Err(DomainError::invalid("entity_ids", "is required, or filter is")),
        (Some(_), Some(_)) => Err(DomainError::invalid(
            "filter",
            "must not be given beside entity_ids",
        )),
    }
}

/// Records one decision on many staged entities: on all of them or, if one breaks a rule, on none.
///
/// They are listed, or chosen by a filter: at most 1,000 in one request. A merge is decided entity by entity.
#[utoipa::path(
    patch, path = "/api/ingest/staging", operation_id = "decide_staged_entities", tag = "Staging",
    request_body = ManySchema,
    responses(
        (status = 200, description = "The changed entities.", body = EntitiesAnswer),
        (status = 404, description = "A listed entity, or the batch, is not there, or the caller may not see it."),
        (status = 409, description = "A listed entity is committed already."),
    )
)]
pub(super) async fn decide_many(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let body: ManyBody = body::json(payload, DECISION_LIMIT).await?;
    if body.status == StagedStatus::Merged {
        let rule =
            "must be one of pending, accepted, rejected, uncertain: a merge is decided entity by entity";
        return Err(DomainError::invalid("status", rule).into());
    }
    let message = DecideEntities {
        by: caller.by,
        chosen: chosen(body.entity_ids, body.filter)?,
        decision: Decision {
            status: body.status,
            resolved_tlp: body.resolved_tlp,
            accept_marking: body.accept_marking.unwrap_or(false),
            merge_target: None,
        },
    };
    let decided = state.staging.call(message).await?;
    Ok(HttpResponse::Ok().json(EntitiesAnswer {
        success: true,
        count: decided.entities.len(),
        remaining: decided.remaining,
        entities: decided.entities,
    }))
}
