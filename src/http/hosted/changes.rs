//! What changed.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::HostedError;
use super::guard::{Guarded, RecallRead};
use super::query::Params;
use super::resource;
use crate::actors::graph_store::{AskedChanges, ChangeBound, ChangeEntry, ListChanges};
use crate::domain::change::ChangeKind;
use crate::domain::error::DomainError;
use crate::domain::moment::{DayBound, moment};
use crate::domain::node::NodeType;
use crate::http::AppState;

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;
/// The beginning of the list.
const BEGINNING: &str = "0";

#[derive(Serialize, ToSchema)]
struct ChangesAnswer {
    /// In the order of the commits.
    changes: Vec<ChangeEntry>,
    /// Where to go on: the next `since`. It says nothing else.
    #[schema(example = "Zy4v5kUu0lq1nFZC1A1yWpN2vVdQk9m5qg")]
    next: String,
    /// Whether there may be more by now: go on at once. A page can have fewer changes than asked for, and even none, while
    /// there are.
    #[schema(example = false)]
    more: bool,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/changes").route(web::get().to(changes)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(changes))]
pub(super) struct Docs;

/// What was created, changed, merged, rejected or erased, in the order of the commits, without gaps and doubles. A list that
/// was read to its end gives the `since` of its request as `next`.
#[utoipa::path(
    get, path = "/api/changes", operation_id = "list_changes", tag = "Recall",
    params(
        (
            "since" = Option<String>, Query,
            description = "The `next` of an earlier answer, a date, an RFC 3339 date-time, or 0 for the beginning, as without it.",
            example = "2024-03-01",
        ),
        (
            "until" = Option<String>, Query,
            description = "The `next` of an earlier answer, a date, or an RFC 3339 date-time, up to and including which.",
        ),
        ("kind" = Option<Vec<ChangeKind>>, Query, description = "Only changes of these kinds."),
        ("node_type" = Option<Vec<NodeType>>, Query, description = "Only changes of nodes of these types."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Most changes; 100 if absent."),
    ),
    responses((status = 200, description = "The changes.", body = ChangesAnswer))
)]
async fn changes(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let since = params.raw_value("since").unwrap_or(BEGINNING).to_owned();
    let asked = AskedChanges {
        since: bound(Some(&since), DayBound::First).filter(|_| since != BEGINNING),
        until: bound(params.raw_value("until"), DayBound::Last),
        kinds: list(&params, "kind")?,
        node_types: list(&params, "node_type")?,
        limit: params.number("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)? as usize,
    };
    if let (Some(ChangeBound::Time(from)), Some(ChangeBound::Time(to))) = (&asked.since, &asked.until)
        && from > to
    {
        return Err(DomainError::invalid("since", "must not be after until").into());
    }
    let page = state.graph.call(ListChanges { by: caller.by, asked }).await?;
    Ok(HttpResponse::Ok().json(ChangesAnswer {
        changes: page.changes,
        next: page.next.unwrap_or(since),
        more: page.more,
    }))
}

fn bound(text: Option<&str>, day: DayBound) -> Option<ChangeBound> {
    let text = text?;
    // An unescaped `+` arrives as a space.
    Some(match moment(&text.replace(' ', "+"), day) {
        Some(time) => ChangeBound::Time(time),
        None => ChangeBound::Cursor(text.to_owned()),
    })
}

/// The values of a list, or none if it is absent.
fn list<T: std::str::FromStr<Err = &'static str>>(
    params: &Params,
    name: &str,
) -> Result<Vec<T>, DomainError> {
    let given = params.raw_value(name).unwrap_or_default();
    let items = given.split(',').map(str::trim).filter(|item| !item.is_empty());
    items
        .map(|item| item.parse().map_err(|rule| DomainError::invalid(name, rule)))
        .collect()
}
