//! Health check: needs no credentials and no database.

use actix_web::{HttpResponse, web};
use serde::Serialize;

use super::resource;

/// Version of the API (hosted specification, section Versioning).
const API_VERSION: &str = "1.0.0";

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

#[derive(Serialize)]
struct ApiHealth {
    status: &'static str,
    service: &'static str,
    version: &'static str,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/health").route(web::get().to(health)));
    cfg.service(resource("/api/health").route(web::get().to(api_health)));
}

async fn health() -> HttpResponse {
    HttpResponse::Ok().json(Health { status: "healthy" })
}

async fn api_health() -> HttpResponse {
    HttpResponse::Ok().json(ApiHealth {
        status: "ok",
        service: "threat-memory",
        version: API_VERSION,
    })
}
