//! Workspaces, as the operator oversees them.

use actix_web::{HttpResponse, web};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::erasures::erase_workspace;
use super::error::HostedError;
use super::guard::{Admin, Guarded};
use super::{id_of, resource};
use crate::actors::identity::{
    CreateWorkspace, ListWorkspaces, OverseeWorkspace, ReadWorkspace, UserView, WorkspaceView,
};
use crate::domain::email::Email;
use crate::domain::label::Label;
use crate::domain::password::NewPassword;
use crate::domain::permission::Tier;
use crate::domain::principal::Workspace;
use crate::http::AppState;
use crate::http::body::{self, Body};
use crate::store::Oversight;

const BODY_LIMIT: usize = 64 * 1024;

#[derive(Deserialize, ToSchema)]
#[schema(as = NewWorkspace)]
struct NewWorkspaceBody {
    #[schema(value_type = Label)]
    name: String,
    #[schema(value_type = Email)]
    admin_email: String,
    #[schema(value_type = NewPassword)]
    admin_password: SecretString,
    /// The tier of the operator's own workspace if it is absent.
    tier: Option<Tier>,
}

/// What the operator decides about a workspace; what is absent stays.
#[derive(Deserialize, ToSchema)]
#[schema(as = Oversight)]
struct OversightBody {
    tier: Option<Tier>,
    /// Whether all users and API keys of the workspace are refused, and its running pulls end.
    suspended: Option<bool>,
}

#[derive(Serialize, ToSchema)]
struct NewWorkspaceAnswer {
    workspace: Workspace,
    admin: UserView,
}

#[derive(Serialize, ToSchema)]
struct OverseenAnswer {
    workspace: WorkspaceView,
}

#[derive(Serialize, ToSchema)]
struct WorkspacesAnswer {
    workspaces: Vec<WorkspaceView>,
    count: usize,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(
        resource("/api/admin/workspaces")
            .route(web::get().to(list_workspaces))
            .route(web::post().to(create_workspace)),
    );
    cfg.service(
        resource("/api/admin/workspaces/{id}")
            .route(web::get().to(read_workspace_of))
            .route(web::patch().to(oversee_workspace))
            .route(web::delete().to(erase_workspace)),
    );
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(list_workspaces, create_workspace, read_workspace_of, oversee_workspace))]
pub(super) struct Docs;

/// Creates a workspace with its first administrator.
///
/// Only administrators of the operator's workspace may do this.
#[utoipa::path(
    post, path = "/api/admin/workspaces", tag = "Administration", security(("bearer" = [])),
    request_body = NewWorkspaceBody,
    responses((status = 201, description = "The workspace and its administrator.", body = NewWorkspaceAnswer))
)]
async fn create_workspace(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let body: NewWorkspaceBody = body::json(payload, BODY_LIMIT).await?;
    let message = CreateWorkspace {
        by: caller.by,
        name: body::field("name", body.name)?,
        admin_email: body.admin_email,
        admin_password: body.admin_password,
        tier: body.tier,
    };
    let made = state.identity.call(message).await?;
    Ok(HttpResponse::Created().json(NewWorkspaceAnswer {
        workspace: made.workspace,
        admin: made.admin,
    }))
}

/// All workspaces, oldest first, the public demo excepted.
///
/// Only administrators of the operator's workspace may do this. It tells nothing of what a workspace holds.
#[utoipa::path(
    get, path = "/api/admin/workspaces", tag = "Administration", security(("bearer" = [])),
    responses((status = 200, description = "The workspaces.", body = WorkspacesAnswer))
)]
async fn list_workspaces(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let workspaces = state.identity.call(ListWorkspaces { by: caller.by }).await?;
    Ok(HttpResponse::Ok().json(WorkspacesAnswer {
        count: workspaces.len(),
        workspaces,
    }))
}

/// One workspace, for the operator.
///
/// Only administrators of the operator's workspace may do this.
#[utoipa::path(
    get, path = "/api/admin/workspaces/{id}", tag = "Administration", security(("bearer" = [])),
    params(("id" = Uuid, Path, description = "Id of the workspace.")),
    responses((status = 200, description = "The workspace.", body = OverseenAnswer))
)]
async fn read_workspace_of(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let message = ReadWorkspace {
        by: caller.by,
        workspace: id_of(&id, "workspace")?,
    };
    let workspace = state.identity.call(message).await?;
    Ok(HttpResponse::Ok().json(OverseenAnswer { workspace }))
}

/// Sets the tier of a workspace, suspends it, or lifts its suspension.
///
/// Only administrators of the operator's workspace may do this. The audit logs of both workspaces record it.
#[utoipa::path(
    patch, path = "/api/admin/workspaces/{id}", tag = "Administration", security(("bearer" = [])),
    request_body = OversightBody,
    params(("id" = Uuid, Path, description = "Id of the workspace.")),
    responses(
        (status = 200, description = "The workspace.", body = OverseenAnswer),
        (status = 409, description = "The operator's own workspace can't be suspended."),
    )
)]
async fn oversee_workspace(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let workspace = id_of(&id, "workspace")?;
    let body: OversightBody = body::json_of_optional(payload, BODY_LIMIT, &["tier", "suspended"]).await?;
    let message = OverseeWorkspace {
        by: caller.by,
        workspace,
        decision: Oversight {
            tier: body.tier,
            suspended: body.suspended,
        },
    };
    let workspace = state.identity.call(message).await?;
    Ok(HttpResponse::Ok().json(OverseenAnswer { workspace }))
}
