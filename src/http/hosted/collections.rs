//! The collections of the TAXII server that administrators define.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::HostedError;
use super::guard::{Admin, Guarded};
use super::{id_of, resource};
use crate::actors::identity::{
    ChangeCollection, DefineCollection, DeleteCollection, ListCollections, ReadCollection,
};
use crate::domain::taxii::collection::Collection;
use crate::domain::taxii::request::{CollectionChange, CollectionChangeBody, NewCollection};
use crate::http::AppState;
use crate::http::body::{self, Body};

const BODY_LIMIT: usize = 256 * 1024;

#[derive(Serialize, ToSchema)]
struct CollectionAnswer {
    collection: Collection,
    /// What clients that read the collection before have to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize, ToSchema)]
struct CollectionsAnswer {
    collections: Vec<Collection>,
    count: usize,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(
        resource("/api/admin/collections")
            .route(web::get().to(list))
            .route(web::post().to(define)),
    );
    cfg.service(
        resource("/api/admin/collections/{id}")
            .route(web::get().to(read))
            .route(web::patch().to(change))
            .route(web::delete().to(delete)),
    );
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(list, define, read, change, delete))]
pub(super) struct Docs;

/// The collections of the TAXII server that administrators of the workspace defined.
#[utoipa::path(
    get, path = "/api/admin/collections", operation_id = "list_collections", tag = "Administration",
    security(("bearer" = [])),
    responses((status = 200, description = "The collections, oldest first.", body = CollectionsAnswer))
)]
async fn list(caller: Guarded<Admin>, state: web::Data<AppState>) -> Result<HttpResponse, HostedError> {
    let collections = state.identity.call(ListCollections { by: caller.by }).await?;
    let count = collections.len();
    Ok(HttpResponse::Ok().json(CollectionsAnswer { collections, count }))
}

/// Defines a collection of the TAXII server.
#[utoipa::path(
    post, path = "/api/admin/collections", operation_id = "define_collection", tag = "Administration",
    security(("bearer" = [])), request_body = NewCollection,
    responses(
        (status = 201, description = "The collection.", body = CollectionAnswer, links(
            ("read" = (operation_id = "read_collection", parameters(("id" = "$response.body#/collection/id")))),
            ("change" = (operation_id = "change_collection", parameters(("id" = "$response.body#/collection/id")))),
            ("delete" = (operation_id = "delete_collection", parameters(("id" = "$response.body#/collection/id")))),
        )),
        (status = 409, description = "Another collection has this alias, or there are 100 already."),
    )
)]
async fn define(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let collection: NewCollection = body::json(payload, BODY_LIMIT).await?;
    let message = DefineCollection {
        by: caller.by,
        collection,
    };
    let collection = state.identity.call(message).await?;
    let warnings = Vec::new();
    Ok(HttpResponse::Created().json(CollectionAnswer { collection, warnings }))
}

/// One collection.
#[utoipa::path(
    get, path = "/api/admin/collections/{id}", operation_id = "read_collection", tag = "Administration",
    security(("bearer" = [])), params(("id" = Uuid, Path, description = "Id of the collection.")),
    responses((status = 200, description = "The collection.", body = CollectionAnswer))
)]
async fn read(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let collection = id_of(&id, "collection")?;
    let message = ReadCollection {
        by: caller.by,
        collection,
    };
    let collection = state.identity.call(message).await?;
    let warnings = Vec::new();
    Ok(HttpResponse::Ok().json(CollectionAnswer { collection, warnings }))
}

/// Changes a collection.
///
/// A new filter takes the place of the old one as a whole. Clients that have read the collection before go on from where
/// they are: they get what the new filter adds only if they read from the start.
#[utoipa::path(
    patch, path = "/api/admin/collections/{id}", operation_id = "change_collection", tag = "Administration",
    security(("bearer" = [])), request_body = CollectionChangeBody,
    params(("id" = Uuid, Path, description = "Id of the collection.")),
    responses(
        (status = 200, description = "The collection.", body = CollectionAnswer),
        (status = 409, description = "Another collection has this alias, or the collection was changed meanwhile."),
    )
)]
async fn change(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let collection = id_of(&id, "collection")?;
    let change: CollectionChange = body::json(payload, BODY_LIMIT).await?;
    let mut warnings = Vec::new();
    if change.filter.is_some() {
        let what = "filter: clients that have read the collection before get what it adds only if they read from the start";
        warnings.push(what.to_owned());
    }
    let message = ChangeCollection {
        by: caller.by,
        collection,
        change,
    };
    let collection = state.identity.call(message).await?;
    Ok(HttpResponse::Ok().json(CollectionAnswer { collection, warnings }))
}

/// Deletes a collection; the objects that it held stay in the workspace.
#[utoipa::path(
    delete, path = "/api/admin/collections/{id}", operation_id = "delete_collection", tag = "Administration",
    security(("bearer" = [])), params(("id" = Uuid, Path, description = "Id of the collection.")),
    responses((status = 204, description = "The collection is deleted."))
)]
async fn delete(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let collection = id_of(&id, "collection")?;
    let message = DeleteCollection {
        by: caller.by,
        collection,
    };
    state.identity.call(message).await?;
    Ok(HttpResponse::NoContent().finish())
}
