//! The feeds of a workspace: registered, listed, read, changed, deleted.

use actix_web::{HttpResponse, web};

use super::SMALL;
use super::answer::{FeedAnswer, FeedsAnswer};
use crate::actors::taxii_puller::{ChangeFeed, DeleteFeed, ListFeeds, ReadFeed, RegisterFeed};
use crate::domain::feed::{FeedChange, FeedChangeBody, NewFeed};
use crate::http::AppState;
use crate::http::body::{self, Body};
use crate::http::hosted::error::HostedError;
use crate::http::hosted::guard::{Guarded, RecallWrite};
use crate::http::hosted::{id_of, resource};

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    let feeds = resource("/api/threat-intel/feeds");
    cfg.service(
        feeds
            .route(web::post().to(register))
            .route(web::get().to(feeds_of)),
    );
    let one = resource("/api/threat-intel/feeds/{id}");
    cfg.service(
        one.route(web::get().to(feed))
            .route(web::patch().to(change))
            .route(web::delete().to(delete)),
    );
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(register, feeds_of, feed, change, delete))]
pub(in crate::http::hosted) struct Docs;

/// Registers a feed.
#[utoipa::path(
    post,
    path = "/api/threat-intel/feeds",
    operation_id = "register_feed",
    tag = "Threat feeds",
    request_body = NewFeed,
    responses(
        (
            status = 201,
            description = "The feed.",
            body = FeedAnswer,
            links(
                ("read" = (operation_id = "read_feed", parameters(("id" = "$response.body#/feed/id")))),
                ("change" = (operation_id = "change_feed", parameters(("id" = "$response.body#/feed/id")))),
            ),
        ),
    )
)]
async fn register(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let feed: NewFeed = body::json(payload, SMALL).await?;
    let feed = state.puller.call(RegisterFeed { by: caller.by, feed }).await?;
    Ok(HttpResponse::Created().json(FeedAnswer { feed }))
}

/// All feeds of the workspace.
#[utoipa::path(
    get, path = "/api/threat-intel/feeds", operation_id = "list_feeds", tag = "Threat feeds",
    responses((status = 200, description = "The feeds.", body = FeedsAnswer))
)]
async fn feeds_of(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let feeds = state.puller.call(ListFeeds { by: caller.by }).await?;
    let count = feeds.len();
    Ok(HttpResponse::Ok().json(FeedsAnswer { feeds, count }))
}

/// One feed.
#[utoipa::path(
    get, path = "/api/threat-intel/feeds/{id}", operation_id = "read_feed", tag = "Threat feeds",
    params(("id" = Uuid, Path, description = "Id of the feed.")),
    responses((status = 200, description = "The feed.", body = FeedAnswer))
)]
async fn feed(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let feed = id_of(&id, "feed")?;
    let feed = state.puller.call(ReadFeed { by: caller.by, feed }).await?;
    Ok(HttpResponse::Ok().json(FeedAnswer { feed }))
}

/// Changes a feed.
#[utoipa::path(
    patch,
    path = "/api/threat-intel/feeds/{id}",
    operation_id = "change_feed",
    tag = "Threat feeds",
    request_body = FeedChangeBody,
    params(("id" = Uuid, Path, description = "Id of the feed.")),
    responses((status = 200, description = "The feed.", body = FeedAnswer))
)]
async fn change(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let feed = id_of(&id, "feed")?;
    let change: FeedChange = body::json(payload, SMALL).await?;
    let by = caller.by;
    let feed = state.puller.call(ChangeFeed { by, feed, change }).await?;
    Ok(HttpResponse::Ok().json(FeedAnswer { feed }))
}

/// Deletes a feed with its address and its place in the collection; a pull that runs ends.
///
/// What it brought stays, under the redistribution state that the feed had. So do its batches: those in review can be
/// reviewed and committed, a failed pull can't be resumed.
#[utoipa::path(
    delete, path = "/api/threat-intel/feeds/{id}", operation_id = "delete_feed", tag = "Threat feeds",
    params(("id" = Uuid, Path, description = "Id of the feed.")),
    responses((status = 204, description = "The feed is deleted."))
)]
async fn delete(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let feed = id_of(&id, "feed")?;
    state.puller.call(DeleteFeed { by: caller.by, feed }).await?;
    Ok(HttpResponse::NoContent().finish())
}
