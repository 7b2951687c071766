//! How busy the actors are, for the operator.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Admin, Guarded};
use super::resource;
use crate::actors::handle::{ActorStatus, GateStatus};
use crate::domain::error::DomainError;
use crate::http::AppState;

/// Wait for a permit, in milliseconds, from which a gate is too narrow.
const LONG_WAIT: f64 = 100.0;

/// How busy an actor is.
#[derive(Serialize, ToSchema)]
#[schema(as = Actor)]
struct ActorBody {
    #[schema(example = "graph_store")]
    name: &'static str,
    reads: GateBody,
    writes: GateBody,
    /// Since the start of the process.
    restarts: u64,
    /// The settings that would help, if requests wait long or were refused.
    #[schema(example = json!(["raise actors.graph_store.gate (8): reads wait 140 ms for a permit"]))]
    advice: Vec<String>,
}

/// The permits of an actor for reads or for writes.
#[derive(Serialize, ToSchema)]
#[schema(as = ActorGate)]
struct GateBody {
    /// Requests that may be worked on at a time.
    permits: usize,
    /// Requests that are being worked on.
    in_flight: usize,
    /// Requests that wait for a permit.
    waiting: usize,
    /// Requests that were refused or timed out since the start of the process.
    refused: u64,
    /// The wait for a permit that 95 % of the last thousand requests did not exceed.
    wait_p95_ms: f64,
    /// The workspaces that hold permits or wait for one, those with the most first.
    workspaces: Vec<GateShare>,
}

/// What a workspace has of the permits.
#[derive(Serialize, ToSchema)]
struct GateShare {
    /// Absent for work that is of no workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    id: Option<Uuid>,
    held: usize,
    waiting: usize,
}

#[derive(Serialize, ToSchema)]
struct ActorsAnswer {
    actors: Vec<ActorBody>,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/admin/actors").route(web::get().to(actors)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(actors))]
pub(super) struct Docs;

impl GateBody {
    fn of(gate: GateStatus, permits: usize) -> Self {
        let shares = gate.shares.into_iter().map(|share| GateShare {
            id: share.tenant,
            held: share.held,
            waiting: share.waiting,
        });
        Self {
            permits,
            in_flight: gate.in_flight,
            waiting: gate.waiting,
            refused: gate.refused,
            wait_p95_ms: (gate.wait_p95.as_secs_f64() * 1e6).round() / 1e3,
            workspaces: shares.collect(),
        }
    }
}

impl From<ActorStatus> for ActorBody {
    fn from(status: ActorStatus) -> Self {
        let reads = GateBody::of(status.reads, status.settings.gate);
        let writes = GateBody::of(status.writes, status.settings.write_gate);
        Self {
            advice: advice(status.name, (&reads, &writes), status.settings.mailbox),
            name: status.name,
            reads,
            writes,
            restarts: status.restarts,
        }
    }
}

/// The settings that would help.
fn advice(name: &str, (reads, writes): (&GateBody, &GateBody), mailbox: usize) -> Vec<String> {
    let mut advice = Vec::new();
    let mut raise = |key: &str, value: usize, why: String| {
        advice.push(format!("raise actors.{name}.{key} ({value}): {why}"));
    };
    if reads.wait_p95_ms >= LONG_WAIT {
        let wait = reads.wait_p95_ms.round();
        raise(
            "gate",
            reads.permits,
            format!("reads wait {wait} ms for a permit"),
        );
    }
    if reads.refused > 0 {
        let refused = reads.refused;
        raise(
            "mailbox",
            mailbox,
            format!("{refused} reads were refused or timed out"),
        );
    }
    if writes.refused > 0 {
        let refused = writes.refused;
        let why = format!("{refused} writes were refused or timed out");
        raise("write_gate", writes.permits, why);
    }
    advice
}

/// How busy each actor is, and which settings would help.
///
/// Only administrators of the operator's workspace may do this. It tells of a workspace how many permits it holds, and nothing
/// of what it does with them.
#[utoipa::path(
    get, path = "/api/admin/actors", tag = "Administration", security(("bearer" = [])),
    responses((status = 200, description = "The actors, in the order in which they were started.", body = ActorsAnswer))
)]
async fn actors(caller: Guarded<Admin>, state: web::Data<AppState>) -> Result<HttpResponse, HostedError> {
    if !caller.by.workspace.is_operator {
        let why = "only the operator's administrators see how busy the service is";
        return Err(DomainError::Forbidden(why.into()).into());
    }
    let actors = state.actors.statuses().into_iter().map(ActorBody::from);
    Ok(HttpResponse::Ok().json(ActorsAnswer {
        actors: actors.collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(refused: u64, wait_p95_ms: f64) -> GateBody {
        GateBody {
            permits: 8,
            in_flight: 0,
            waiting: 0,
            refused,
            wait_p95_ms,
            workspaces: Vec::new(),
        }
    }

    #[test]
    fn advice_names_the_setting_and_why() {
        let calm = (&gate(0, 3.0), &gate(0, 500.0));
        assert_eq!(advice("graph_store", calm, 16), Vec::<String>::new());
        let busy = (&gate(2, 140.2), &gate(3, 0.0));
        assert_eq!(
            advice("graph_store", busy, 16),
            [
                "raise actors.graph_store.gate (8): reads wait 140 ms for a permit",
                "raise actors.graph_store.mailbox (16): 2 reads were refused or timed out",
                "raise actors.graph_store.write_gate (8): 3 writes were refused or timed out",
            ]
        );
    }
}
