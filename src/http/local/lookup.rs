//! Look-up of a list of values, or of those in a text, among the entities.

use actix_web::{HttpResponse, web};
use utoipa::ToSchema;

use super::body::fields_of;
use super::error::LocalError;
use super::validate::Fields;
use super::{LocalState, guarded_resource};
use crate::capacity::run_heavy;
use crate::domain::lookup::{AskedList, LookupOfEntities, MAX_TEXT, MAX_VALUES};
use crate::http::body::Body;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded_resource("/api/lookup").route(web::post().to(lookup)));
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(lookup))]
pub(super) struct Docs;

/// Values to look up: a list, or a text that holds them.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"values": ["203.0.113.77", "hxxp://evil[.]example/a"]}))]
pub(super) struct LookupBody {
    /// Addresses, networks, domains, URLs, e-mail addresses, hashes, files, registry keys and assigned identifiers, defanged
    /// or not. One that is none of these is answered as invalid.
    pub values: Option<Vec<String>>,
    /// A mail, a table or a log of at most 1 MiB, with at most 10,000 values; not together with `values`.
    pub text: Option<String>,
}

impl LookupBody {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        let values = fields.optional_texts("values", MAX_VALUES);
        let text = fields.optional_text("text", MAX_TEXT);
        if values.is_some() == text.is_some() && !fields.has_issues() {
            fields.refuse_body("value_error", "Send either `values` or `text`");
        }
        Self { values, text }
    }
}

/// Which of these values are known, up to 10,000 at once.
///
/// Networks find what lies inside them and what is around them, URLs their hosts, hosts the domains above them up to the
/// registered one. Each entity comes with the newest notes that mention it.
#[utoipa::path(
    post, path = "/api/lookup", tag = "Graph", operation_id = "lookup", request_body = LookupBody,
    responses((status = 200, description = "What is known of each value.", body = LookupOfEntities)),
)]
async fn lookup(state: web::Data<LocalState>, payload: Body) -> Result<HttpResponse, LocalError> {
    let limit = state.settings().web.body_limit;
    let (body, load) = fields_of(&state, payload, limit, LookupBody::read).await?;
    let list = AskedList::of(body.values, body.text)?;
    let reading = run_heavy(None, move || Ok((list.read()?, load)));
    let (asked, _load) = reading.await?;
    let found: LookupOfEntities = state.memory.lookup(asked).await?;
    Ok(HttpResponse::Ok().json(found))
}
