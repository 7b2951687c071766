//! The hosted API: one file per resource.

mod actors;
mod admin;
mod audit;
mod auth;
mod backup;
mod changes;
mod collections;
mod corrections;
mod demo;
mod erasures;
mod error;
mod feeds;
pub(super) mod guard;
mod health;
mod ingest;
mod lookup;
mod mcp;
mod media_type;
mod merges;
mod nodes;
mod oauth;
mod openapi;
mod operator;
mod pilot;
pub(super) mod query;
mod recall;
mod staging;

use actix_web::middleware::from_fn;
use actix_web::{Resource, ResponseError, web};
use uuid::Uuid;

pub use self::error::refusal;
pub(super) use self::error::{HELD_BACK, HostedError};
use super::body::Body;
use super::pages::{self, Page};
use super::problem::{self, Endpoint, no_route};
use super::{AppState, body, head_as_get, taxii};
use crate::capacity::Load;
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;

/// Registers every route of the hosted API.
pub fn configure(cfg: &mut web::ServiceConfig) {
    health::configure(cfg);
    auth::configure(cfg);
    demo::configure(cfg);
    oauth::configure(cfg);
    admin::configure(cfg);
    operator::configure(cfg);
    backup::configure(cfg);
    actors::configure(cfg);
    collections::configure(cfg);
    erasures::configure(cfg);
    ingest::configure(cfg);
    staging::configure(cfg);
    feeds::configure(cfg);
    recall::configure(cfg);
    lookup::configure(cfg);
    // Before the ids of nodes: one of its paths would be read as an id.
    merges::configure(cfg);
    nodes::configure(cfg);
    audit::configure(cfg);
    changes::configure(cfg);
    openapi::configure(cfg);
    pilot::configure(cfg);
    taxii::configure(cfg);
    mcp::configure(cfg);
    cfg.default_service(web::route().to(no_route::<HostedError>));
}

/// Path of the console.
pub const CONSOLE: &str = "/console";

/// Registers the console and the paths that lead to it, or what says that it is off.
pub fn console(cfg: &mut web::ServiceConfig, is_on: bool) {
    if is_on {
        Page::Console.configure::<HostedError>(cfg, CONSOLE);
        for from in ["/", "/console/"] {
            pages::lead::<HostedError>(cfg, from, CONSOLE);
        }
    } else {
        for path in ["/", "/console/", CONSOLE] {
            pages::answer_at::<HostedError>(cfg, path, || HostedError::NO_CONSOLE.error_response());
        }
    }
}

/// Reads an ingest body. The message made from it must carry the returned load.
async fn body_of<T: Send + 'static>(
    by: &Principal,
    state: &AppState,
    payload: Body,
    parse: fn(Vec<u8>) -> Result<T, DomainError>,
) -> Result<(T, Load), DomainError> {
    let limit = state.settings.server.body_limit;
    body::read_counted(payload, limit, &state.bodies, Some(by.workspace.id), parse).await
}

/// Parses an id from a path. A malformed UUID is reported as not found, like an unknown id.
fn id_of(text: &str, what: &'static str) -> Result<Uuid, DomainError> {
    text.parse().map_err(|_| DomainError::NotFound(what))
}

/// A resource that answers HEAD wherever it answers GET.
fn resource(path: &'static str) -> Resource<impl Endpoint> {
    problem::resource::<HostedError>(path)
        .wrap(from_fn(guard::count_no_method))
        .wrap(from_fn(head_as_get))
}
