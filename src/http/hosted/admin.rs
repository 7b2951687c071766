//! Administration of the caller's own workspace.

use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::error::HostedError;
use super::guard::{Admin, Guarded};
use super::{id_of, resource};
use crate::actors::identity::{
    ApiKeyView, ChangeUser, ChangeWorkspace, CreateApiKey, CreateUser, CreateWorkspace, ListApiKeys,
    ListUsers, RevokeApiKey, UserView,
};
use crate::domain::permission::{Role, Scope, Tier};
use crate::domain::principal::Workspace;
use crate::domain::tlp::Tlp;
use crate::http::AppState;
use crate::http::body;
use crate::store::WorkspaceChange;

const BODY_LIMIT: usize = 64 * 1024;

#[derive(Deserialize)]
struct NewUserBody {
    email: String,
    password: SecretString,
    role: Role,
}

#[derive(Deserialize)]
struct ChangeUserBody {
    password: Option<SecretString>,
    role: Option<Role>,
    disabled: Option<bool>,
}

#[derive(Deserialize)]
struct NewKeyBody {
    name: String,
    scopes: Vec<Scope>,
    expires_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct ChangeWorkspaceBody {
    tlp_ceiling: Option<Tlp>,
    elevated_clearance: Option<bool>,
    red_export_grant: Option<bool>,
    tier: Option<Tier>,
    features: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct NewWorkspaceBody {
    name: String,
    admin_email: String,
    admin_password: SecretString,
}

#[derive(Serialize)]
struct NewKeyAnswer {
    key: String,
    #[serde(flatten)]
    view: ApiKeyView,
}

#[derive(Serialize)]
struct UserAnswer {
    user: UserView,
}

#[derive(Serialize)]
struct UsersAnswer {
    users: Vec<UserView>,
    count: usize,
}

#[derive(Serialize)]
struct KeysAnswer {
    api_keys: Vec<ApiKeyView>,
    count: usize,
}

#[derive(Serialize)]
struct WorkspaceAnswer {
    workspace: Workspace,
}

#[derive(Serialize)]
struct NewWorkspaceAnswer {
    workspace: Workspace,
    admin: UserView,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(
        resource("/api/admin/users")
            .route(web::get().to(list_users))
            .route(web::post().to(create_user)),
    );
    cfg.service(resource("/api/admin/users/{id}").route(web::patch().to(change_user)));
    cfg.service(
        resource("/api/admin/api-keys")
            .route(web::get().to(list_keys))
            .route(web::post().to(create_key)),
    );
    cfg.service(resource("/api/admin/api-keys/{id}").route(web::delete().to(revoke_key)));
    cfg.service(
        resource("/api/admin/workspace")
            .route(web::get().to(read_workspace))
            .route(web::patch().to(change_workspace)),
    );
    cfg.service(resource("/api/admin/workspaces").route(web::post().to(create_workspace)));
}

async fn list_users(caller: Guarded<Admin>, state: web::Data<AppState>) -> Result<HttpResponse, HostedError> {
    let users = state.identity.call(ListUsers { by: caller.by }).await?;
    Ok(HttpResponse::Ok().json(UsersAnswer {
        count: users.len(),
        users,
    }))
}

async fn create_user(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let body: NewUserBody = body::json(payload, BODY_LIMIT).await?;
    let message = CreateUser {
        by: caller.by,
        email: body.email,
        password: body.password,
        role: body.role,
    };
    let user = state.identity.call(message).await?;
    Ok(HttpResponse::Created().json(UserAnswer { user }))
}

async fn change_user(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let user = id_of(&id, "user")?;
    let body: ChangeUserBody = body::json(payload, BODY_LIMIT).await?;
    let message = ChangeUser {
        by: caller.by,
        user,
        password: body.password,
        role: body.role,
        disabled: body.disabled,
    };
    let user = state.identity.call(message).await?;
    Ok(HttpResponse::Ok().json(UserAnswer { user }))
}

async fn list_keys(caller: Guarded<Admin>, state: web::Data<AppState>) -> Result<HttpResponse, HostedError> {
    let api_keys = state.identity.call(ListApiKeys { by: caller.by }).await?;
    Ok(HttpResponse::Ok().json(KeysAnswer {
        count: api_keys.len(),
        api_keys,
    }))
}

async fn create_key(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let body: NewKeyBody = body::json(payload, BODY_LIMIT).await?;
    let message = CreateApiKey {
        by: caller.by,
        name: body::field("name", body.name)?,
        scopes: body::field("scopes", body.scopes)?,
        expires_at: body.expires_at,
    };
    let made = state.identity.call(message).await?;
    let key = made.key.expose_secret().to_owned();
    Ok(HttpResponse::Created().json(NewKeyAnswer { key, view: made.view }))
}

async fn revoke_key(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let key = id_of(&id, "API key")?;
    state.identity.call(RevokeApiKey { by: caller.by, key }).await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn read_workspace(caller: Guarded<Admin>) -> HttpResponse {
    HttpResponse::Ok().json(WorkspaceAnswer {
        workspace: caller.by.workspace,
    })
}

async fn change_workspace(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let body: ChangeWorkspaceBody = body::json(payload, BODY_LIMIT).await?;
    let change = WorkspaceChange {
        tlp_ceiling: body.tlp_ceiling,
        elevated_clearance: body.elevated_clearance,
        red_export_grant: body.red_export_grant,
        tier: body.tier,
        features: body::optional("features", body.features)?,
    };
    let by = caller.by;
    let workspace = state.identity.call(ChangeWorkspace { by, change }).await?;
    Ok(HttpResponse::Ok().json(WorkspaceAnswer { workspace }))
}

async fn create_workspace(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let body: NewWorkspaceBody = body::json(payload, BODY_LIMIT).await?;
    let message = CreateWorkspace {
        by: caller.by,
        name: body::field("name", body.name)?,
        admin_email: body.admin_email,
        admin_password: body.admin_password,
    };
    let made = state.identity.call(message).await?;
    Ok(HttpResponse::Created().json(NewWorkspaceAnswer {
        workspace: made.workspace,
        admin: made.admin,
    }))
}
