//! The management page, and the configuration editor, which is the same page at another path.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{Accept, Header, HeaderValue, Quality, RETRY_AFTER, VARY, WWW_AUTHENTICATE};
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, HttpRequest, HttpResponse, web};

use super::error::LocalError;
use super::guarded_resource;
use crate::http::pages::Page;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    Page::Local.configure::<LocalError>(cfg, "/");
    cfg.service(
        guarded_resource("/config")
            .route(web::get().to(page))
            .wrap(from_fn(refused_with_page)),
    );
}

#[allow(clippy::unused_async)] // Handlers must be async.
async fn page(request: HttpRequest) -> HttpResponse {
    Page::Local.answer(&request)
}

/// Shows a browser the page with the status of the refusal. The page asks for the key and then loads the editor, or
/// says what is wrong.
async fn refused_with_page(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_browser = accepts_html(request.request());
    let answer = next.call(request).await?.map_into_boxed_body();
    let status = answer.status();
    let is_refused = [401, 403, 429, 503].contains(&status.as_u16());
    if !is_browser || !is_refused {
        return Ok(answer);
    }
    let mut page = Page::Local.refusal(status);
    let headers = page.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("accept"));
    for name in [RETRY_AFTER, WWW_AUTHENTICATE] {
        if let Some(value) = answer.headers().get(&name) {
            headers.insert(name, value.clone());
        }
    }
    Ok(answer.into_response(page))
}

/// Whether the caller names HTML among what it accepts (RFC 9110 section 12.5.1).
fn accepts_html(request: &HttpRequest) -> bool {
    let names_it = |accept: Accept| {
        let mut ranges = accept.iter();
        ranges.any(|range| range.item.essence_str() == "text/html" && range.quality > Quality::ZERO)
    };
    Accept::parse(request).is_ok_and(names_it)
}
