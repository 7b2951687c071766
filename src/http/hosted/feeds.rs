//! Threat feeds: pulls, review and commit.

mod answer;
pub(super) mod registry;
mod schema;

use std::time::Duration;

use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;
use uuid::Uuid;

use self::answer::{BatchAnswer, BatchesAnswer, CommitAnswer, ItemAnswer};
use self::schema::{BatchSchema, ItemDecisionBody};
use super::error::{HostedError, batch_path};
use super::guard::{Guarded, RecallWrite};
use super::query::Params;
use super::{body_of, id_of, resource};
use crate::actors::taxii_puller::{
    CommitFeedItems, DecideItem, ListFeedBatches, MAX_ITEMS, PullFrom, ReadFeedBatch, ReadItem, StageBundle,
};
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::feed::{BatchState, InputKind, ItemId, ItemStatus};
use crate::domain::principal::Principal;
use crate::domain::stix::bundle;
use crate::domain::stix::objects::Objects;
use crate::domain::tlp::{Tlp, TlpInput};
use crate::http::body::{self, Body};
use crate::http::{AppState, weight};
use crate::store::ItemDecision;

/// Largest body of a request about a feed or an item, in bytes.
const SMALL: usize = 64 * 1024;
/// Largest body of a commit, in bytes.
const COMMIT: usize = 1 << 20;
/// Items on a page by default, and at most.
const ITEMS: u32 = 100;
const MAX_PAGE: u32 = 1000;
const BATCHES: u32 = 50;

#[derive(Deserialize)]
struct BatchBody {
    input_kind: InputKind,
    feed_source_id: Option<Uuid>,
    default_tlp: Option<Tlp>,
}

/// A request for a batch.
enum NewBatch {
    Pull(Uuid),
    Bundle {
        feed: Option<Uuid>,
        default_tlp: Option<Tlp>,
        objects: Box<Objects>,
    },
}

/// A decision on an item; `committed` is for commits alone.
#[derive(Deserialize, ToSchema)]
#[schema(as = ItemDecisionFields)]
struct DecisionBody {
    #[schema(value_type = Option<String>, pattern = "^(?:pending|accepted|rejected)$", example = "accepted")]
    status: Option<ItemStatus>,
    /// The reviewer's marking; the workspace must be allowed to see it.
    #[schema(value_type = Option<TlpInput>)]
    resolved_tlp: Option<Tlp>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = FeedItemChoice)]
struct CommitBody {
    /// All accepted items if absent.
    #[serde(default, deserialize_with = "not_null")]
    #[schema(min_items = 1, max_items = 10000, nullable = false)]
    item_ids: Option<Vec<ItemId>>,
}

/// A list that may be absent, but not null: a variable that was not set is no request to commit everything.
fn not_null<'de, D: Deserializer<'de>>(list: D) -> Result<Option<Vec<ItemId>>, D::Error> {
    Vec::deserialize(list).map(Some)
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    registry::configure(cfg);
    let batches = resource("/api/threat-intel/batches");
    cfg.service(batches.route(web::post().to(start)).route(web::get().to(list)));
    cfg.service(resource("/api/threat-intel/batches/{id}").route(web::get().to(batch)));
    cfg.service(resource("/api/threat-intel/batches/{id}/resume").route(web::post().to(resume)));
    cfg.service(resource("/api/threat-intel/batches/{id}/commit").route(web::post().to(commit)));
    let item_path = resource("/api/threat-intel/batches/{id}/items/{item}");
    cfg.service(item_path.route(web::get().to(item)).route(web::post().to(decide)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(start, list, batch, resume, item, decide, commit))]
pub(super) struct Docs;

/// Pulls a feed into a new batch, or stages an uploaded bundle.
#[utoipa::path(
    post,
    path = "/api/threat-intel/batches",
    operation_id = "start_feed_batch",
    tag = "Threat feeds",
    request_body = BatchSchema,
    responses(
        (
            status = 201,
            description = "The batch with the first page of its items; a long pull goes on after the answer.",
            body = BatchAnswer,
            links(
                ("read" = (operation_id = "read_feed_batch", parameters(("id" = "$response.body#/batch/id")))),
                ("resume" = (operation_id = "resume_feed_batch", parameters(("id" = "$response.body#/batch/id")))),
                ("commit" = (operation_id = "commit_feed_items", parameters(("id" = "$response.body#/batch/id")))),
                (
                    "item" = (
                        operation_id = "read_feed_item",
                        parameters(("id" = "$response.body#/batch/id"), ("item" = "$response.body#/items/0/id"))
                    )
                ),
                (
                    "decide" = (
                        operation_id = "decide_feed_item",
                        parameters(("id" = "$response.body#/batch/id"), ("item" = "$response.body#/items/0/id"))
                    )
                )
            ),
            headers(("Location" = String, description = "Path of the batch."))
        ),
        (status = 404, description = "The workspace has no such feed."),
        (status = 409, description = "The feed is disabled, or another pull of it runs."),
        (
            status = 502,
            description = "The server of the feed failed, or broke a limit. `details` and Location name the batch that \
                           keeps what was staged.",
            headers(("Location" = String, description = "Path of the batch."))),
        (status = 504, description = "The server of the feed was too slow.",
            headers(("Location" = String, description = "Path of the batch."))),
    )
)]
async fn start(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let by = caller.by;
    let (new, load) = body_of(&by, &state, payload, read_batch).await?;
    let batch = match new {
        NewBatch::Pull(feed) => {
            drop(load);
            let from = PullFrom::Feed(feed);
            state.puller.pull(by.clone(), from, patience(&state)).await?
        }
        NewBatch::Bundle {
            feed,
            default_tlp,
            objects,
        } => {
            let message = StageBundle {
                by: by.clone(),
                objects: *objects,
                feed,
                default_tlp,
            };
            state.puller.call_with(message, load).await?
        }
    };
    created_response(by, &state, batch).await
}

fn read_batch(text: Vec<u8>) -> Result<NewBatch, DomainError> {
    let new: BatchBody = body::parse(&text)?;
    match new.input_kind {
        InputKind::TaxiiPull => {
            let feed = new.feed_source_id;
            let required = DomainError::invalid("feed_source_id", "is required");
            feed.map(NewBatch::Pull).ok_or(required)
        }
        InputKind::StixBundle => {
            weight::check(&text)?;
            let (objects, _) = bundle::read(text, clock::now())?;
            Ok(NewBatch::Bundle {
                feed: new.feed_source_id,
                default_tlp: new.default_tlp,
                objects: Box::new(objects),
            })
        }
    }
}

/// Resumes a pull that failed.
#[utoipa::path(
    post, path = "/api/threat-intel/batches/{id}/resume", operation_id = "resume_feed_batch", tag = "Threat feeds",
    params(("id" = Uuid, Path, description = "Id of the batch."),
    ),
    responses(
        (status = 200, description = "The batch with the first page of its items.", body = BatchAnswer),
        (status = 400, description = "The operator's rules for outgoing requests refuse the address of the feed."),
        (status = 409, description = "The batch is no failed pull, its feed is disabled, or another pull of it runs."),
        (
            status = 502,
            description = "The server of the feed failed, or broke a limit. `details` and Location name the batch that \
                           keeps what was staged.",
            headers(("Location" = String, description = "Path of the batch."))),
        (status = 504, description = "The server of the feed was too slow.",
            headers(("Location" = String, description = "Path of the batch."))),
    )
)]
async fn resume(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let (by, from) = (caller.by, PullFrom::Batch(id_of(&id, "batch")?));
    let batch = state.puller.pull(by.clone(), from, patience(&state)).await?;
    let view = state.puller.call(first_page(by, batch)).await?;
    Ok(HttpResponse::Ok().json(BatchAnswer::from(view)))
}

fn patience(state: &AppState) -> Duration {
    Duration::from_millis(state.settings.feeds.answer_ms)
}

fn first_page(by: Principal, batch: Uuid) -> ReadFeedBatch {
    ReadFeedBatch {
        by,
        batch,
        status: None,
        after: None,
        limit: ITEMS,
    }
}

async fn created_response(by: Principal, state: &AppState, batch: Uuid) -> Result<HttpResponse, HostedError> {
    let view = state.puller.call(first_page(by, batch)).await?;
    Ok(HttpResponse::Created()
        .insert_header((LOCATION, batch_path(batch)))
        .json(BatchAnswer::from(view)))
}

/// The newest batches.
#[utoipa::path(
    get, path = "/api/threat-intel/batches", operation_id = "list_feed_batches", tag = "Threat feeds",
    params(
        ("feed" = Option<Uuid>, Query, description = "Only batches of this feed."),
        ("status" = Option<BatchState>, Query, description = "Only batches in this state."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Most batches; 50 if absent."),
        ("offset" = Option<u32>, Query, minimum = 0, maximum = 1000000, description = "Batches to skip; 0 if absent."),
    ),
    responses((status = 200, description = "The batches.", body = BatchesAnswer))
)]
async fn list(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    request: HttpRequest,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = ListFeedBatches {
        by: caller.by,
        feed: params.uuid("feed")?,
        status: params.parse_value("status")?,
        limit: params.number("limit", BATCHES, 1, MAX_PAGE)?,
        offset: params.offset()?,
    };
    let batches = state.puller.call(message).await?;
    let count = batches.len();
    Ok(HttpResponse::Ok().json(BatchesAnswer { batches, count }))
}

/// A batch with a page of its items.
#[utoipa::path(
    get, path = "/api/threat-intel/batches/{id}", operation_id = "read_feed_batch", tag = "Threat feeds",
    params(
        ("id" = Uuid, Path, description = "Id of the batch."),
        ("status" = Option<ItemStatus>, Query, description = "Only items with this status."),
        ("after" = Option<ItemId>, Query, description = "The `next` of the page before."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Most items; 100 if absent."),
    ),
    responses((status = 200, description = "The batch.", body = BatchAnswer))
)]
async fn batch(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = ReadFeedBatch {
        by: caller.by,
        batch: id_of(&id, "batch")?,
        status: params.parse_value("status")?,
        after: params.parse_value("after")?,
        limit: params.number("limit", ITEMS, 1, MAX_PAGE)?,
    };
    let view = state.puller.call(message).await?;
    Ok(HttpResponse::Ok().json(BatchAnswer::from(view)))
}

/// One item with its object.
#[utoipa::path(
    get, path = "/api/threat-intel/batches/{id}/items/{item}", operation_id = "read_feed_item", tag = "Threat feeds",
    params(
        ("id" = Uuid, Path, description = "Id of the batch."),
        ("item" = ItemId, Path, description = "Id of the item."),
    ),
    responses((status = 200, description = "The item.", body = ItemAnswer))
)]
async fn item(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, HostedError> {
    let (batch, item) = ids(&path)?;
    let by = caller.by;
    let item = state.puller.call(ReadItem { by, batch, item }).await?;
    Ok(HttpResponse::Ok().json(ItemAnswer { item }))
}

/// Accepts, rejects or marks an item.
#[utoipa::path(
    post,
    path = "/api/threat-intel/batches/{id}/items/{item}",
    operation_id = "decide_feed_item",
    tag = "Threat feeds",
    request_body = ItemDecisionBody,
    params(
        ("id" = Uuid, Path, description = "Id of the batch."),
        ("item" = ItemId, Path, description = "Id of the item."),
    ),
    responses(
        (status = 200, description = "The item.", body = ItemAnswer),
        (status = 409, description = "The item is committed already."),
    )
)]
async fn decide(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    path: web::Path<(String, String)>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let (batch, item) = ids(&path)?;
    let body: DecisionBody = body::json(payload, SMALL).await?;
    let message = DecideItem {
        by: caller.by,
        batch,
        item,
        decision: ItemDecision::of(body.status, body.resolved_tlp)?,
    };
    let item = state.puller.call(message).await?;
    Ok(HttpResponse::Ok().json(ItemAnswer { item }))
}

fn ids((batch, item): &(String, String)) -> Result<(Uuid, ItemId), DomainError> {
    let item = item.parse().map_err(|_| DomainError::NotFound("item"))?;
    Ok((id_of(batch, "batch")?, item))
}

/// Commits items as nodes and edges.
#[utoipa::path(
    post, path = "/api/threat-intel/batches/{id}/commit", operation_id = "commit_feed_items", tag = "Threat feeds",
    request_body(content = Option<CommitBody>, description = "May be left out: then all accepted items are committed."),
    params(("id" = Uuid, Path, description = "Id of the batch."),
    ),
    responses(
        (status = 200, description = "What became of the items.", body = CommitAnswer),
        (status = 400, description = "An item can't be committed, or the body has fields but not `item_ids`."),
        (status = 409, description = "An item was changed meanwhile."),
    )
)]
async fn commit(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let batch = id_of(&id, "batch")?;
    let body: CommitBody = body::json_or_empty(payload, COMMIT, &["item_ids"]).await?;
    let message = CommitFeedItems {
        by: caller.by,
        batch,
        items: check_items(body.item_ids)?,
    };
    let results = state.puller.call(message).await?;
    Ok(HttpResponse::Ok().json(CommitAnswer {
        success: true,
        results,
    }))
}

fn check_items(items: Option<Vec<ItemId>>) -> Result<Option<Vec<ItemId>>, DomainError> {
    let most = usize::try_from(MAX_ITEMS).unwrap_or(usize::MAX);
    match &items {
        Some(items) if items.is_empty() || items.len() > most => {
            let rule = format!("must name from 1 to {MAX_ITEMS} items");
            Err(DomainError::invalid("item_ids", rule))
        }
        Some(_) | None => Ok(items),
    }
}
