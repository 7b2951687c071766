//! The knowledge graph: nodes, edges, the entity index.

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::json;

use super::body::query_of;
use super::error::LocalError;
use super::validate::Fields;
use super::{LocalState, guarded};
use crate::domain::memory::view::Page;
use crate::local::EntityFilter;

/// Most nodes or edges in one response.
const MAX_PAGE: usize = 10_000;
const MAX_ENTITIES: usize = 500;
const DEFAULT_ENTITIES: usize = 50;
/// The API sets no limit on offsets; past the end the result is empty.
const MAX_OFFSET: usize = usize::MAX >> 1;
/// Longest filter, in characters.
const MAX_FILTER: usize = 500;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded("/api/graph/nodes").route(web::get().to(nodes)));
    cfg.service(guarded("/api/graph/edges").route(web::get().to(edges)));
    cfg.service(guarded("/api/entities").route(web::get().to(entities)));
}

fn page(fields: &mut Fields<'_>, default: usize, max: usize) -> Page {
    Page {
        offset: fields.number_or("offset", 0, 0, MAX_OFFSET),
        limit: fields.number_or("limit", default, 1, max),
    }
}

/// Lowercases a filter: types and tiers are stored in lower case.
fn lower(filter: Option<String>) -> Option<String> {
    filter.map(|filter| filter.to_lowercase())
}

async fn nodes(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let (page, node_type, part) = query_of(&request, |fields| {
        (
            page(fields, MAX_PAGE, MAX_PAGE),
            lower(fields.optional_text("type", MAX_FILTER)),
            fields.optional_text("q", MAX_FILTER),
        )
    })?;
    let nodes = state.memory.nodes(page, node_type, part).await?;
    Ok(HttpResponse::Ok().json(json!({"count": nodes.len(), "nodes": nodes})))
}

async fn edges(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let page = query_of(&request, |fields| page(fields, MAX_PAGE, MAX_PAGE))?;
    let edges = state.memory.edges(page).await?;
    Ok(HttpResponse::Ok().json(json!({"count": edges.len(), "edges": edges})))
}

async fn entities(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let (page, filter) = query_of(&request, |fields| {
        let page = page(fields, DEFAULT_ENTITIES, MAX_ENTITIES);
        let filter = EntityFilter {
            entity_type: lower(fields.optional_text("type", MAX_FILTER)),
            tier: lower(fields.optional_text("tier", MAX_FILTER)),
            part: fields.optional_text("q", MAX_FILTER),
        };
        (page, filter)
    })?;
    let (entities, total) = state.memory.entities(filter, page).await?;
    Ok(HttpResponse::Ok().json(json!({
        "entities": entities, "total": total, "offset": page.offset, "limit": page.limit,
    })))
}
