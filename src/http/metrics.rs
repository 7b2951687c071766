//! The metrics listener: for operators, on a separate address.

use actix_web::{HttpResponse, web};
use metrics_exporter_prometheus::PrometheusHandle;

use super::hosted::HostedError;
use super::problem::no_route;
use crate::telemetry;

/// Registers the routes of the metrics listener.
pub fn configure(cfg: &mut web::ServiceConfig) {
    cfg.route("/metrics", web::get().to(metrics));
    cfg.default_service(web::route().to(no_route::<HostedError>));
}

async fn metrics(recorder: web::Data<PrometheusHandle>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(telemetry::render(&recorder))
}
