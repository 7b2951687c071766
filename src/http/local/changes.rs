//! What happened to notes and entities, and when.

use actix_web::{HttpRequest, HttpResponse, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::body::query_of;
use super::error::LocalError;
use super::validate::Fields;
use super::{LocalState, guarded_resource};
use crate::domain::memory::change::{ChangeKind, ChangePlace, MemoryChange};
use crate::domain::moment::{DayBound, moment};
use crate::http::openapi::readable::DAY_OR_TIME;
use crate::local::ChangesSince;

const MAX_CHANGES: usize = 500;
const DEFAULT_CHANGES: usize = 100;
const RULE: &str =
    "Input should be 0, a date (YYYY-MM-DD), an RFC 3339 time or the `next` of an earlier answer";

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded_resource("/api/changes").route(web::get().to(changes)));
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(changes))]
pub(super) struct Docs;

/// Which changes are wanted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangesQuery {
    /// Where to begin: `0` for the beginning, a time (the first write at or after it), or the `next` of an earlier answer.
    #[param(value_type = Option<String>, example = "0")]
    since: ChangesSince,
    /// The last time: a day, to its end in UTC, or an RFC 3339 time.
    #[param(value_type = Option<String>)]
    until: Option<DateTime<Utc>>,
    /// Only changes of this kind.
    #[param(inline, example = "created")]
    kind: Option<ChangeKind>,
    /// Most changes in the answer.
    #[param(required = false)]
    limit: usize,
}

impl ChangesQuery {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        let pattern = format!("^$|^0$|^[A-Za-z0-9_-]{{16}}$|{DAY_OR_TIME}");
        let schema = || json!({"type": ["string", "null"], "pattern": pattern, "example": "0"});
        let given = fields.optional("since", schema);
        let since = match given.as_ref().map(|given| given.as_str().and_then(since_of)) {
            None => ChangesSince::Beginning,
            Some(Some(since)) => since,
            Some(None) => {
                fields.refuse("since", "value_error", RULE);
                ChangesSince::Beginning
            }
        };
        Self {
            since,
            until: fields.time("until", DayBound::Last),
            kind: fields.optional_choice("kind", ChangeKind::ALL),
            limit: fields.number_or("limit", DEFAULT_CHANGES, 1, MAX_CHANGES),
        }
    }
}

fn since_of(text: &str) -> Option<ChangesSince> {
    if ["", "0"].contains(&text) {
        return Some(ChangesSince::Beginning);
    }
    let time = moment(text, DayBound::First).map(ChangesSince::Time);
    time.or_else(|| place_of(text).map(ChangesSince::Place))
}

/// The opaque form of a place that clients get.
fn cursor_of(place: ChangePlace) -> String {
    let mut bytes = [0; 12];
    let parts = place
        .number
        .to_be_bytes()
        .into_iter()
        .chain(place.entry.to_be_bytes());
    bytes.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads the opaque form.
fn place_of(text: &str) -> Option<ChangePlace> {
    let bytes: [u8; 12] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
    let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
    Some(ChangePlace {
        number: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        entry: u32::from_be_bytes([i, j, k, l]),
    })
}

/// A page of the history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "changes": [
        {"at": "2026-01-02T03:04:05.678901Z", "kind": "created", "note": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10",
            "source": "report"},
        {"at": "2026-01-02T03:05:00.000000Z", "kind": "merged", "entity": "actor:sandworm-team", "source": "user",
            "after": {"merged_into": "actor:sandworm"}},
    ],
    "next": "AAAAAAAAAAIAAAAB",
}))]
struct ChangesAnswer {
    changes: Vec<ChangeView>,
    /// Where the next page begins, as `since`. If nothing has happened since, it is the same again.
    next: String,
}

/// What happened to a note or an entity.
#[derive(Debug, Serialize, ToSchema)]
struct ChangeView {
    /// The time of the write.
    #[schema(format = DateTime)]
    at: String,
    kind: ChangeKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    note: Option<Uuid>,
    /// Its type, a colon and its value. An entity that went with an erased note has neither this nor `note`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    entity: Option<String>,
    /// The source type of a new note; else what made the change: `note`, `model`, `relationship` or `user`.
    source: String,
    /// What was true before, where that is not kept elsewhere. What a corrected note said stands in its versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    before: Option<Value>,
    /// What is true since.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    after: Option<Value>,
}

impl From<(DateTime<Utc>, MemoryChange)> for ChangeView {
    fn from((at, change): (DateTime<Utc>, MemoryChange)) -> Self {
        Self {
            at: at.to_rfc3339_opts(SecondsFormat::Micros, true),
            kind: change.kind,
            note: change.note,
            entity: change.name,
            source: change.source,
            before: change.before,
            after: change.after,
        }
    }
}

/// What happened to notes and entities.
///
/// In the order of the writes, without gaps and doubles. Changes are recorded from the version on that first had this route.
#[utoipa::path(
    get, path = "/api/changes", tag = "Memory", operation_id = "list_changes", params(ChangesQuery),
    responses((status = 200, description = "A page of changes.", body = ChangesAnswer), (status = 422, description = "")),
)]
async fn changes(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let ChangesQuery {
        since,
        until,
        kind,
        limit,
    } = query_of(&request, ChangesQuery::read)?;
    let page = state.memory.changes(since, until, kind, limit).await?;
    Ok(HttpResponse::Ok().json(ChangesAnswer {
        changes: page.changes.into_iter().map(ChangeView::from).collect(),
        next: cursor_of(page.next),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_cursor_and_nothing_else_is_one() {
        for (number, entry) in [(0, 0), (1, 7), (u64::MAX, u32::MAX), (1 << 50, 200)] {
            let place = ChangePlace { number, entry };
            assert_eq!(place_of(&cursor_of(place)), Some(place));
        }
        for text in [
            "",
            "0",
            "2026-01-02",
            "AAAA",
            "AAAAAAAAAAAAAAA!",
            "2026-01-02T03:04:05Z",
        ] {
            assert_eq!(place_of(text), None, "{text}");
        }
    }
}
