//! The entity index, and the domains of the notes.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::{MAX_FILTER, lower, page};
use crate::domain::memory::view::{DomainCount, EntitySort, EntityView, Page, SortDirection};
use crate::http::local::body::query_of;
use crate::http::local::error::LocalError;
use crate::http::local::validate::Fields;
use crate::http::local::{LocalState, guarded_resource};
use crate::local::{EntityFilter, EntityOrder};

const MAX_ENTITIES: usize = 500;
const DEFAULT_ENTITIES: usize = 50;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded_resource("/api/entities").route(web::get().to(entities)));
    cfg.service(guarded_resource("/api/domains").route(web::get().to(domains)));
}

/// Which entities are wanted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::local) struct EntitiesQuery {
    /// Entities to pass over.
    #[param(required = false)]
    offset: usize,
    /// Most entities in the answer.
    #[param(required = false)]
    limit: usize,
    /// Type of the entities, in any case.
    #[param(rename = "type", example = "actor")]
    entity_type: Option<String>,
    /// Best tier of the notes that mention the entity, in any case: `a`, `b` or `c`.
    #[param(example = "a")]
    tier: Option<String>,
    /// Part of the entity's value, in any case.
    #[param(example = "apt")]
    q: Option<String>,
    /// What the entities are ordered by: name, type, number of notes, number of edges, best tier. Equal ones are
    /// ordered by type, then value.
    #[param(inline, required = false, example = "notes")]
    sort: EntitySort,
    /// Direction of the order.
    #[param(inline, required = false, example = "desc")]
    order: SortDirection,
}

impl EntitiesQuery {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        let Page { offset, limit } = page(fields, DEFAULT_ENTITIES, MAX_ENTITIES);
        let order = EntityOrder::default();
        Self {
            offset,
            limit,
            entity_type: lower(fields.optional_text("type", MAX_FILTER)),
            tier: lower(fields.optional_text("tier", MAX_FILTER)),
            q: fields.optional_text("q", MAX_FILTER),
            sort: fields.choice_or("sort", EntitySort::ALL, order.by),
            order: fields.choice_or("order", SortDirection::ALL, order.direction),
        }
    }
}

/// A page of the entity index.
#[derive(Debug, Serialize, ToSchema)]
struct Entities {
    entities: Vec<EntityView>,
    /// Number of entities that match.
    total: usize,
    offset: usize,
    limit: usize,
}

/// Lists the entities.
///
/// The entity index: everything that notes mention, with the number of notes.
#[utoipa::path(
    get, path = "/api/entities", tag = "Graph", operation_id = "list_entities", params(EntitiesQuery),
    responses((status = 200, description = "A page of entities.", body = Entities), (status = 422, description = "")),
)]
pub(super) async fn entities(
    request: HttpRequest,
    state: web::Data<LocalState>,
) -> Result<HttpResponse, LocalError> {
    let query = query_of(&request, EntitiesQuery::read)?;
    let (offset, limit) = (query.offset, query.limit);
    let filter = EntityFilter {
        entity_type: query.entity_type,
        tier: query.tier,
        part: query.q,
    };
    let order = EntityOrder {
        by: query.sort,
        direction: query.order,
    };
    let (entities, total) = state
        .memory
        .entities(filter, order, Page { offset, limit })
        .await?;
    Ok(HttpResponse::Ok().json(Entities {
        entities,
        total,
        offset,
        limit,
    }))
}

/// The domains of the notes.
#[derive(Debug, Serialize, ToSchema)]
struct Domains {
    /// The domain with most notes first; at most 1000.
    domains: Vec<DomainCount>,
}

/// Lists the domains of the notes.
///
/// Each with the number of its notes.
#[utoipa::path(
    get, path = "/api/domains", tag = "Graph", operation_id = "list_domains",
    responses((status = 200, description = "The domains.", body = Domains)),
)]
pub(super) async fn domains(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let domains = state.memory.domains().await?;
    Ok(HttpResponse::Ok().json(Domains { domains }))
}
