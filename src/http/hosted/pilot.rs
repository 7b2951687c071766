//! Pilot requests: taken in from anybody, read by the operator.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::HostedError;
use super::guard::{Admin, Guarded, PilotLimits, Public};
use super::query::Params;
use super::resource;
use crate::actors::notifier::{ListPilotRequests, SubmitPilot};
use crate::domain::error::DomainError;
use crate::domain::pilot::{Application, PilotEmail, PilotLine, PilotRequest, PilotRole, PilotStack};
use crate::http::AppState;
use crate::http::body::{self, Body, field, optional};

const BODY_LIMIT: usize = 16 * 1024;

#[derive(Deserialize, ToSchema)]
struct PilotBody {
    #[schema(value_type = PilotLine, inline)]
    name: String,
    #[schema(value_type = PilotEmail, inline)]
    email: String,
    #[schema(value_type = PilotLine, inline)]
    org: String,
    role: PilotRole,
    #[schema(value_type = Option<PilotStack>, inline)]
    cti_stack: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct PilotAnswer {
    #[schema(example = true)]
    success: bool,
}

#[derive(Serialize, ToSchema)]
struct PilotRequestsAnswer {
    pilot_requests: Vec<PilotRequest>,
    /// Number of requests in this answer.
    count: usize,
}

impl TryFrom<PilotBody> for Application {
    type Error = DomainError;

    fn try_from(body: PilotBody) -> Result<Self, Self::Error> {
        Ok(Self {
            name: field("name", body.name)?,
            email: field("email", body.email)?,
            org: field("org", body.org)?,
            role: body.role,
            cti_stack: optional("cti_stack", body.cti_stack)?,
        })
    }
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/pilot").route(web::post().to(submit)));
    cfg.service(resource("/api/admin/pilot-requests").route(web::get().to(list)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(submit, list))]
pub(super) struct Docs;

/// Asks for a pilot. Stores the request and tells the operator by e-mail.
#[utoipa::path(
    post,
    path = "/api/pilot",
    tag = "Pilot",
    security(()),
    request_body = PilotBody,
    responses(
        (status = 200, description = "The request is stored.", body = PilotAnswer),
        (status = 429, description = "More than 5 requests of this address within a minute."),
    )
)]
async fn submit(
    caller: Public<PilotLimits>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    state.disk.require()?;
    let body: PilotBody = body::json(payload, BODY_LIMIT).await?;
    let message = SubmitPilot {
        application: body.try_into()?,
        ip: caller.ip,
    };
    state.notifier.call(message).await?;
    Ok(HttpResponse::Ok().json(PilotAnswer { success: true }))
}

/// The pilot requests, newest first. Only for administrators of the operator's workspace.
#[utoipa::path(
    get,
    path = "/api/admin/pilot-requests",
    tag = "Administration",
    operation_id = "list_pilot_requests",
    params(
        ("limit" = Option<u32>, Query, description = "Most requests; 100 if absent.", minimum = 1, maximum = 1000),
        ("offset" = Option<u32>, Query, description = "Requests to skip; 0 if absent.", maximum = 1_000_000)
    ),
    responses((status = 200, description = "The requests", body = PilotRequestsAnswer))
)]
async fn list(
    caller: Guarded<Admin>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = ListPilotRequests {
        by: caller.by,
        limit: params.number("limit", 100, 1, 1000)?,
        offset: params.offset()?,
    };
    let pilot_requests = state.notifier.call(message).await?;
    Ok(HttpResponse::Ok().json(PilotRequestsAnswer {
        count: pilot_requests.len(),
        pilot_requests,
    }))
}
