//! Two static pages that load no external resources.

use std::sync::LazyLock;

use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, web};

use super::error::LocalError;
use super::{guarded, head_as_get};
use crate::http::document::Document;
use crate::http::problem;

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>threat-memory</title>\
    <style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}\
    code{background:#8882;padding:.1em .3em;border-radius:.2em}</style></head>\n<body>";
const HOME: &str = "<h1>threat-memory</h1><p>The memory is running. Its API answers under <code>/api/</code>:</p>\
    <ul><li><code>POST /api/remember</code>, <code>/api/recall</code>, <code>/api/ingest</code>, \
    <code>/api/synthesize</code></li><li><code>GET /api/graph/nodes</code>, <code>/api/graph/edges</code>, \
    <code>/api/entities</code></li><li><code>GET /api/health</code>, <code>/api/stats</code>, \
    <code>/api/telemetry</code>, <code>/api/history</code>, <code>/api/logs</code></li></ul></body></html>";
const CONFIG: &str = "<h1>Settings</h1><p><code>GET /api/config</code> shows them, <code>PUT /api/config</code> changes \
    them, and <code>GET /api/config/meta</code> lists those that need a restart.</p></body></html>";

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(
        problem::resource::<LocalError>("/")
            .route(web::get().to(home))
            .wrap(from_fn(head_as_get)),
    );
    cfg.service(guarded("/config").route(web::get().to(config)));
}

#[allow(clippy::unused_async)] // Handlers must be async.
async fn home(request: HttpRequest) -> HttpResponse {
    static PAGE: LazyLock<Document> = LazyLock::new(|| page(HOME));
    answer(&PAGE, &request)
}

#[allow(clippy::unused_async)]
async fn config(request: HttpRequest) -> HttpResponse {
    static PAGE: LazyLock<Document> = LazyLock::new(|| page(CONFIG));
    answer(&PAGE, &request)
}

fn page(body: &str) -> Document {
    Document::new(format!("{HEAD}{body}"), "text/html; charset=utf-8")
}

fn answer(page: &Document, request: &HttpRequest) -> HttpResponse {
    let mut answer = page.answer(request);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    answer
        .headers_mut()
        .insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    answer
}
