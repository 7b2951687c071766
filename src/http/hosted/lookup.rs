//! Look-up of a list of values, or of those in a text.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Guarded, RecallRead};
use super::query::Params;
use super::{body_of, resource};
use crate::actors::graph_store::{LookUp, LookUpOutcome};
use crate::capacity::run_heavy;
use crate::domain::lookup::{AskedList, LookupHit, LookupResult, LookupSummary, MAX_VALUE};
use crate::http::AppState;
use crate::http::body::{self, Body};

#[derive(Deserialize)]
struct LookupBody {
    values: Option<Vec<String>>,
    text: Option<String>,
    include_rejected: Option<bool>,
}

/// A list of values, or a text that holds them.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
#[schema(as = Lookup)]
#[serde(untagged)]
enum LookupSchema {
    Values(LookupOfValues),
    Text(LookupOfText),
}

#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
struct LookupOfValues {
    /// Addresses, networks, domains, URLs, e-mail addresses, hashes, files, registry keys and assigned identifiers, defanged
    /// or not. One that is none of these is answered as invalid.
    #[schema(max_items = 10000, example = json!(["203.0.113.77", "hxxp://evil[.]example/a"]))]
    values: Vec<String>,
    /// Whether to show what was rejected; only for administrators and analysts.
    include_rejected: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
struct LookupOfText {
    /// A mail, a table or a log of at most 1 MiB of UTF-8, with at most 10,000 values.
    #[schema(example = "Beacons to 203.0.113.77 and hxxp://evil[.]example/a.")]
    text: String,
    /// Whether to show what was rejected; only for administrators and analysts.
    include_rejected: Option<bool>,
}

#[derive(Serialize, ToSchema)]
struct LookupAnswer {
    /// In the order given, each value once.
    results: Vec<LookupResult<LookupHit>>,
    summary: LookupSummary,
    /// Id of the session, for its export.
    recall_id: Uuid,
    /// Number of nodes found that the session has no room for; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 1)]
    not_recorded: Option<u64>,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    let routes = resource("/api/recall/lookup");
    cfg.service(
        routes
            .route(web::get().to(lookup_one))
            .route(web::post().to(lookup)),
    );
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(lookup, lookup_one))]
pub(super) struct Docs;

/// Which of these values are known, up to 10,000 at once; creates a session.
///
/// Networks find what lies inside them and what is around them, URLs their hosts, hosts the domains above them up to the
/// registered one, hashes other hashes of the same file.
#[utoipa::path(
    post, path = "/api/recall/lookup", operation_id = "lookup", tag = "Recall", request_body = LookupSchema,
    responses(
        (
            status = 200,
            description = "What is known of each value.",
            body = LookupAnswer,
            links(
                ("session" = (operation_id = "session", parameters(("id" = "$response.body#/recall_id")))),
                ("export" = (operation_id = "export", parameters(("id" = "$response.body#/recall_id")))),
                ("node" = (operation_id = "node", parameters(("id" = "$response.body#/results/0/hits/0/id")))),
            ),
        ),
    )
)]
async fn lookup(
    caller: Guarded<RecallRead>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let by = caller.by;
    let (body, load): (LookupBody, _) = body_of(&by, &state, payload, |body| body::parse(&body)).await?;
    let include_rejected = body.include_rejected.unwrap_or(false);
    let list = AskedList::of(body.values, body.text)?;
    let reading = run_heavy(Some(by.workspace.id), move || Ok((list.read()?, load)));
    let (asked, load) = reading.await?;
    let message = LookUp {
        by,
        asked,
        include_rejected,
    };
    Ok(answer(state.graph.call_with(message, load).await?))
}

/// Whether one value is known; creates a session.
#[utoipa::path(
    get, path = "/api/recall/lookup", operation_id = "lookup_one", tag = "Recall",
    params(
        (
            "value" = String,
            Query,
            min_length = 1,
            max_length = 4000,
            description = "An indicator or an assigned identifier, defanged or not.",
            example = "203.0.113.77",
        ),
        (
            "include_rejected" = Option<bool>,
            Query,
            description = "Whether to show what was rejected; only for administrators and analysts.",
        ),
    ),
    responses(
        (
            status = 200,
            description = "What is known of the value.",
            body = LookupAnswer,
            links(
                ("session" = (operation_id = "session", parameters(("id" = "$response.body#/recall_id")))),
                ("export" = (operation_id = "export", parameters(("id" = "$response.body#/recall_id")))),
                ("node" = (operation_id = "node", parameters(("id" = "$response.body#/results/0/hits/0/id")))),
            ),
        ),
    )
)]
async fn lookup_one(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let value = params.text("value", MAX_VALUE)?;
    let message = LookUp {
        asked: AskedList::Values(vec![value]).read()?,
        include_rejected: params.flag("include_rejected", false)?,
        by: caller.by,
    };
    Ok(answer(state.graph.call(message).await?))
}

fn answer(found: LookUpOutcome) -> HttpResponse {
    HttpResponse::Ok().json(LookupAnswer {
        results: found.results,
        summary: found.summary,
        recall_id: found.recall_id,
        not_recorded: Some(found.not_recorded).filter(|count| *count > 0),
    })
}
