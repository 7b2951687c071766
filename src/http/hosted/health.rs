//! Health check: needs no credentials and no database.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::HostedError;
use super::guard::check_form;
use super::resource;
use crate::http::AppState;

/// Version of the API (hosted specification, section Versioning).
pub(super) const API_VERSION: &str = "1.0.0";

#[derive(Serialize, ToSchema)]
struct Health {
    #[schema(example = "healthy")]
    status: &'static str,
}

#[derive(Serialize, ToSchema)]
struct ApiHealth {
    /// `ok`, or `degraded` while the service can't write.
    #[schema(example = "ok")]
    status: &'static str,
    /// Why the service is degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
    #[schema(example = "threat-memory")]
    service: &'static str,
    #[schema(example = "1.0.0")]
    version: &'static str,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/health").route(web::get().to(health)));
    cfg.service(resource("/api/health").route(web::get().to(api_health)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(health, api_health))]
pub(super) struct Docs;

/// Whether the service runs.
#[utoipa::path(
    get, path = "/health", tag = "Health", security(()),
    responses(
        (status = 200, description = "The service runs.", body = Health),
        (status = 400, description = "The request is no HTTP request that can be read."),
    )
)]
async fn health(request: HttpRequest) -> Result<HttpResponse, HostedError> {
    check_form(&request)?;
    Ok(HttpResponse::Ok().json(Health { status: "healthy" }))
}

/// Whether the service runs and can write, and its version.
#[utoipa::path(
    get, path = "/api/health", tag = "Health", security(()),
    responses(
        (status = 200, description = "The service runs.", body = ApiHealth),
        (status = 400, description = "The request is no HTTP request that can be read."),
    )
)]
async fn api_health(request: HttpRequest, state: web::Data<AppState>) -> Result<HttpResponse, HostedError> {
    check_form(&request)?;
    let refusal = state.storage.write_refusal();
    Ok(HttpResponse::Ok().json(ApiHealth {
        status: if refusal.is_none() { "ok" } else { "degraded" },
        reason: refusal.map(|refusal| refusal.to_string()),
        service: "threat-memory",
        version: API_VERSION,
    }))
}
