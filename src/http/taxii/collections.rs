//! The collections of an API root (sections 5.1 and 5.2).

use actix_web::{HttpResponse, web};
use serde::Serialize;
use uuid::Uuid;

use super::caller::Caller;
use super::error::TaxiiError;
use super::{answer, resource};
use crate::actors::graph_store::{ListCollections, ReadCollection};
use crate::domain::taxii::view::CollectionView;
use crate::http::AppState;

/// The media type of the objects.
pub(super) const STIX: &str = "application/stix+json;version=2.1";

#[derive(Serialize)]
struct CollectionsAnswer {
    collections: Vec<CollectionAnswer>,
}

#[derive(Serialize)]
struct CollectionAnswer {
    id: Uuid,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    can_read: bool,
    can_write: bool,
    media_types: [&'static str; 1],
}

impl From<CollectionView> for CollectionAnswer {
    fn from(collection: CollectionView) -> Self {
        Self {
            id: collection.id,
            title: collection.title,
            description: collection.description,
            alias: collection.alias,
            can_read: collection.can_read,
            can_write: collection.can_write,
            media_types: [STIX],
        }
    }
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/taxii2/{root}/collections/").route(web::get().to(collections)));
    cfg.service(resource("/taxii2/{root}/collections/{collection}/").route(web::get().to(collection)));
}

async fn collections(caller: Caller, state: web::Data<AppState>) -> Result<HttpResponse, TaxiiError> {
    let found = state.graph.call(ListCollections { by: caller.by }).await?;
    let collections = found.into_iter().map(CollectionAnswer::from).collect();
    Ok(answer(HttpResponse::Ok(), &CollectionsAnswer { collections }))
}

async fn collection(
    caller: Caller,
    state: web::Data<AppState>,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, TaxiiError> {
    let (_, named) = path.into_inner();
    let found = state.graph.call(ReadCollection { by: caller.by, named }).await?;
    Ok(answer(HttpResponse::Ok(), &CollectionAnswer::from(found)))
}
