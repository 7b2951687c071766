//! Objects that clients hand in, and what became of them (sections 4.3 and 5.5).

use actix_web::{HttpRequest, HttpResponse, web};

use super::asked::asked_versions;
use super::caller::Caller;
use super::error::TaxiiError;
use super::{answer, resource};
use crate::actors::graph_store::RetractObject;
use crate::actors::taxii_puller::{ReadHandIn, TakeEnvelope};
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::taxii::hand_in::Envelope;
use crate::http::body::{self, Body};
use crate::http::{AppState, weight};

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/taxii2/{root}/status/{id}/").route(web::get().to(status)));
}

/// Takes in an envelope.
pub(super) async fn take(
    caller: Caller,
    state: web::Data<AppState>,
    path: web::Path<(String, String)>,
    payload: Body,
) -> Result<HttpResponse, TaxiiError> {
    let by = caller.by;
    state.disk.require()?;
    let limit = state.settings.server.body_limit;
    let read = |text: Vec<u8>| {
        weight::check(&text)?;
        Envelope::read(text, clock::now())
    };
    let tenant = Some(by.workspace.id);
    let (envelope, load) =
        body::read_counted::<_, DomainError>(payload, limit, &state.bodies, tenant, read).await?;
    let (_, collection) = path.into_inner();
    let message = TakeEnvelope {
        by,
        collection,
        envelope,
    };
    let status = state.puller.call_with(message, load).await?;
    Ok(answer(HttpResponse::Accepted(), &status))
}

/// Takes an object back, with all its versions.
pub(super) async fn retract(
    caller: Caller,
    state: web::Data<AppState>,
    path: web::Path<(String, String, String)>,
    request: HttpRequest,
) -> Result<HttpResponse, TaxiiError> {
    let (_, collection, stix_id) = path.into_inner();
    let asked = asked_versions(&request)?;
    if !asked.admits_spec_version() {
        return Err(DomainError::NotFound("object").into());
    }
    let versions = asked.versions;
    if versions.first || versions.last || !versions.at.is_empty() {
        let rule = "must be all: an object is taken back with all its versions";
        return Err(DomainError::invalid("match[version]", rule).into());
    }
    let message = RetractObject {
        by: caller.by,
        collection,
        stix_id,
    };
    state.graph.call(message).await?;
    Ok(answer(HttpResponse::Ok(), &serde_json::json!({})))
}

async fn status(
    caller: Caller,
    state: web::Data<AppState>,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, TaxiiError> {
    let (_, id) = path.into_inner();
    let id = id.parse().map_err(|_| DomainError::NotFound("status"))?;
    let status = state.puller.call(ReadHandIn { by: caller.by, id }).await?;
    Ok(answer(HttpResponse::Ok(), &status))
}
