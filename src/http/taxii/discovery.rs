//! Discovery and API roots (sections 4.1 and 4.2).

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;

use super::caller::Caller;
use super::error::TaxiiError;
use super::media_type::MEDIA_TYPE;
use super::{answer, resource};
use crate::http::AppState;
use crate::http::client_ip::is_trusted;

#[derive(Serialize)]
struct Discovery {
    title: &'static str,
    description: &'static str,
    default: String,
    api_roots: [String; 1],
}

#[derive(Serialize)]
struct ApiRoot {
    title: String,
    versions: [&'static str; 1],
    /// Bytes.
    max_content_length: usize,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/taxii2/").route(web::get().to(discovery)));
    cfg.service(resource("/taxii2/{root}/").route(web::get().to(api_root)));
}

/// The one API root that the caller has.
async fn discovery(
    caller: Caller,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, TaxiiError> {
    let base = base_url(&request, &state);
    let root = format!("{base}/taxii2/{}/", caller.by.workspace.id);
    let found = Discovery {
        title: "Threat-Intelligence Memory",
        description: "TAXII 2.1: one API root for each workspace",
        default: root.clone(),
        api_roots: [root],
    };
    Ok(answer(HttpResponse::Ok(), &found))
}

async fn api_root(caller: Caller, state: web::Data<AppState>) -> Result<HttpResponse, TaxiiError> {
    let root = ApiRoot {
        title: caller.by.workspace.name,
        versions: [MEDIA_TYPE],
        max_content_length: state.settings.server.body_limit,
    };
    Ok(answer(HttpResponse::Ok(), &root))
}

/// Scheme and host under which the client has reached this service: some clients take no relative URLs. Headers of a proxy
/// count if it is a trusted one.
fn base_url(request: &HttpRequest, state: &AppState) -> String {
    let info = request.connection_info();
    if is_trusted(request, &state.settings.server.trusted_proxies) {
        return format!("{}://{}", info.scheme(), info.host());
    }
    let host = request.headers().get(actix_web::http::header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    format!(
        "{}://{}",
        state.settings.server.scheme(),
        host.unwrap_or_else(|| info.host())
    )
}
