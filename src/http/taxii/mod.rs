//! The TAXII 2.1 server (OASIS Standard, 10 June 2021) of the hosted service. Its description is the standard; what is
//! special to this server is in docs/taxii.md.

mod asked;
mod caller;
mod collections;
mod discovery;
mod error;
mod hand_in;
mod media_type;
mod objects;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, HttpResponse, HttpResponseBuilder, Resource, web};
use serde::Serialize;

use self::caller::read_credential;
use self::error::TaxiiError;
use self::media_type::MEDIA_TYPE;
use super::head_as_get;
use super::hosted::guard;
use super::problem::{self, Endpoint, no_route};

/// Registers the routes of the TAXII server.
pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    discovery::configure(cfg);
    collections::configure(cfg);
    hand_in::configure(cfg);
    objects::configure(cfg);
    cfg.service(web::resource("/taxii2/{tail:.*}").default_service(web::to(no_route::<TaxiiError>)));
}

/// A resource of the TAXII server, with the slash at its end or without.
fn resource(path: &'static str) -> Resource<impl Endpoint> {
    let resource = web::resource([path, path.trim_end_matches('/')]);
    problem::refuse_methods::<TaxiiError>(resource)
        .wrap(from_fn(count_no_method))
        .wrap(from_fn(head_as_get))
}

async fn count_no_method(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    guard::count_refused::<TaxiiError>(request, next, read_credential).await
}

/// An answer in the media type of TAXII.
fn answer(mut response: HttpResponseBuilder, body: &impl Serialize) -> HttpResponse {
    response.content_type(MEDIA_TYPE).json(body)
}
