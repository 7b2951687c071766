//! The hosted API: one file per resource.

mod audit;
mod auth;
mod bounds;
mod health;
mod ingest;
mod items;
mod manage;
mod nodes;
mod recall;
mod staging;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{Error, Resource, web};
use serde::de::DeserializeOwned;

use super::error::{no_method, no_route};
use super::{AppState, body};
use crate::capacity::Load;
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;

/// Media type of an exported bundle.
pub const STIX_JSON: &str = "application/stix+json;version=2.1";

/// Registers every route of the hosted API.
pub fn configure(cfg: &mut web::ServiceConfig) {
    health::configure(cfg);
    auth::configure(cfg);
    manage::configure(cfg);
    ingest::configure(cfg);
    items::configure(cfg);
    staging::configure(cfg);
    recall::configure(cfg);
    nodes::configure(cfg);
    audit::configure(cfg);
    cfg.default_service(web::route().to(no_route));
}

/// The body of a way in, with its load: the message that is made of it must carry it.
async fn body_of<T: DeserializeOwned + Send + 'static>(
    by: &Principal,
    state: &AppState,
    payload: web::Payload,
) -> Result<(T, Load), DomainError> {
    let limit = state.settings.server.body_limit;
    body::json_counted(payload, limit, &state.bodies, Some(by.workspace.id)).await
}

/// A resource that answers 405 in JSON, with the methods it has (RFC 9110 section 15.5.6), to those it does not have.
fn resource(
    path: &str,
) -> Resource<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = Error,
        InitError = (),
    >,
> {
    web::resource(path).wrap(from_fn(no_method))
}
