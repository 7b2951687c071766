//! The metrics listener: for operators, on a separate address.

use std::fmt::Write;

use actix_web::{HttpResponse, web};
use metrics_exporter_prometheus::PrometheusHandle;

use super::hosted::HostedError;
use super::problem::no_route;
use crate::actors::handle::GateStatus;
use crate::actors::roster::ActorList;
use crate::capacity::TenantShare;
use crate::telemetry;

/// Registers the routes of the metrics listener.
pub fn configure(cfg: &mut web::ServiceConfig) {
    cfg.route("/metrics", web::get().to(metrics));
    cfg.default_service(web::route().to(no_route::<HostedError>));
}

async fn metrics(recorder: web::Data<PrometheusHandle>, actors: web::Data<ActorList>) -> HttpResponse {
    let mut text = telemetry::render(&recorder);
    gate_shares(&actors, &mut text);
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(text)
}

/// Writes what each workspace has of each gate at this moment. The recorder would keep every workspace that ever had a permit.
fn gate_shares(actors: &ActorList, text: &mut String) {
    let statuses = actors.statuses();
    let mut family = |name: &str, help: &str, count: fn(&TenantShare) -> usize| {
        // Writing to a text never fails.
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge").ok();
        for status in &statuses {
            for (gate, GateStatus { shares, .. }) in [("read", &status.reads), ("write", &status.writes)] {
                for share in shares {
                    let workspace = share
                        .tenant
                        .map_or_else(|| "none".to_owned(), |id| id.to_string());
                    let (actor, count) = (status.name, count(share));
                    writeln!(
                        text,
                        "{name}{{actor=\"{actor}\",gate=\"{gate}\",workspace=\"{workspace}\"}} {count}"
                    )
                    .ok();
                }
            }
        }
    };
    family(
        "actor_gate_held",
        "Permits of a gate that a workspace holds",
        |share| share.held,
    );
    family(
        "actor_gate_waiting",
        "Requests of a workspace that wait for a permit of a gate",
        |share| share.waiting,
    );
}
