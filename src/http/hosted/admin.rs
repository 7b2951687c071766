//! Administration of the caller's own workspace.

use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::HostedError;
use super::guard::{Admin, Guarded};
use super::{id_of, resource};
use crate::actors::identity::{
    ApiKeyView, ChangeUser, ChangeWorkspace, CreateApiKey, CreateUser, ListApiKeys, ListUsers, RevokeApiKey,
    TIER_OF_OPERATOR, UserView,
};
use crate::domain::email::Email;
use crate::domain::label::Label;
use crate::domain::password::NewPassword;
use crate::domain::permission::{Role, Scope, Scopes, Tier};
use crate::domain::principal::{Features, Workspace};
use crate::domain::tlp::{Tlp, TlpInput};
use crate::http::AppState;
use crate::http::body::{self, Body};
use crate::store::WorkspaceChange;

const BODY_LIMIT: usize = 64 * 1024;

#[derive(Deserialize, ToSchema)]
#[schema(as = NewUser)]
struct NewUserBody {
    #[schema(value_type = Email)]
    email: String,
    #[schema(value_type = NewPassword)]
    password: SecretString,
    role: Role,
}

/// A change of a user; what is absent stays.
#[derive(Deserialize, ToSchema)]
#[schema(as = UserChange)]
struct ChangeUserBody {
    #[schema(value_type = Option<NewPassword>)]
    password: Option<SecretString>,
    role: Option<Role>,
    disabled: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = NewApiKey)]
struct NewKeyBody {
    #[schema(value_type = Label)]
    name: String,
    #[schema(value_type = Scopes)]
    scopes: Vec<Scope>,
    /// A time in the future.
    #[schema(example = "2099-12-31T23:59:59Z")]
    expires_at: Option<DateTime<Utc>>,
}

/// A change of the settings; what is absent stays.
#[derive(Deserialize, ToSchema)]
#[schema(as = WorkspaceChange)]
struct ChangeWorkspaceBody {
    #[schema(value_type = Option<TlpInput>)]
    tlp_ceiling: Option<Tlp>,
    elevated_clearance: Option<bool>,
    red_export_grant: Option<bool>,
    /// Only for the operator's own workspace: the tiers of the others are the operator's decision. A tenant's is refused
    /// alone, and left out with a warning beside other settings.
    tier: Option<Tier>,
    #[schema(value_type = Option<Features>)]
    features: Option<Vec<String>>,
}

#[derive(Serialize, ToSchema)]
struct NewKeyAnswer {
    /// The key itself; it is shown only here.
    #[schema(pattern = "^tm_", example = "tm_3q2-7wEBAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs")]
    key: String,
    #[serde(flatten)]
    view: ApiKeyView,
}

#[derive(Serialize, ToSchema)]
struct UserAnswer {
    user: UserView,
}

#[derive(Serialize, ToSchema)]
struct UsersAnswer {
    users: Vec<UserView>,
    count: usize,
}

#[derive(Serialize, ToSchema)]
struct KeysAnswer {
    api_keys: Vec<ApiKeyView>,
    count: usize,
}

#[derive(Serialize, ToSchema)]
struct WorkspaceAnswer {
    workspace: Workspace,
    /// What was asked for and left out, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
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
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(
    list_users,
    create_user,
    change_user,
    list_keys,
    create_key,
    revoke_key,
    read_workspace,
    change_workspace
))]
pub(super) struct Docs;

/// All users of the workspace.
#[utoipa::path(
    get, path = "/api/admin/users", tag = "Administration", security(("bearer" = [])),
    responses((status = 200, description = "The users.", body = UsersAnswer))
)]
async fn list_users(caller: Guarded<Admin>, state: web::Data<AppState>) -> Result<HttpResponse, HostedError> {
    let users = state.identity.call(ListUsers { by: caller.by }).await?;
    Ok(HttpResponse::Ok().json(UsersAnswer {
        count: users.len(),
        users,
    }))
}

/// Creates a user.
#[utoipa::path(
    post, path = "/api/admin/users", tag = "Administration", security(("bearer" = [])), request_body = NewUserBody,
    responses(
        (status = 201, description = "The user.", body = UserAnswer,
            links(("change" = (operation_id = "change_user", parameters(("id" = "$response.body#/user/id")))))),
        (status = 409, description = "The workspace has a user with this address."),
    )
)]
async fn create_user(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: Body,
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

/// Changes a user.
///
/// A new password, and disabling, end the sessions of the user.
#[utoipa::path(
    patch, path = "/api/admin/users/{id}", tag = "Administration", security(("bearer" = [])),
    request_body = ChangeUserBody,
    params(("id" = Uuid, Path, description = "Id of the user.")),
    responses(
        (status = 200, description = "The user.", body = UserAnswer),
        (status = 409,
            description = "Administrators can neither disable nor demote themselves, and one must be left."),
    )
)]
async fn change_user(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let user = id_of(&id, "user")?;
    let fields = ["password", "role", "disabled"];
    let body: ChangeUserBody = body::json_of_optional(payload, BODY_LIMIT, &fields).await?;
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

/// All API keys of the workspace, without their secrets.
#[utoipa::path(
    get, path = "/api/admin/api-keys", tag = "Administration", security(("bearer" = [])),
    responses((status = 200, description = "The keys, revoked and expired ones included.", body = KeysAnswer))
)]
async fn list_keys(caller: Guarded<Admin>, state: web::Data<AppState>) -> Result<HttpResponse, HostedError> {
    let api_keys = state.identity.call(ListApiKeys { by: caller.by }).await?;
    Ok(HttpResponse::Ok().json(KeysAnswer {
        count: api_keys.len(),
        api_keys,
    }))
}

/// Creates an API key.
#[utoipa::path(
    post, path = "/api/admin/api-keys", tag = "Administration", security(("bearer" = [])), request_body = NewKeyBody,
    responses((status = 201, description = "The key with its secret.", body = NewKeyAnswer,
        links(("revoke" = (operation_id = "revoke_key", parameters(("id" = "$response.body#/id")))))))
)]
async fn create_key(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: Body,
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

/// Revokes an API key, at once and for good.
#[utoipa::path(
    delete, path = "/api/admin/api-keys/{id}", tag = "Administration", security(("bearer" = [])),
    params(("id" = Uuid, Path, description = "Id of the key.")),
    responses((status = 204, description = "The key is revoked."))
)]
async fn revoke_key(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let key = id_of(&id, "API key")?;
    state.identity.call(RevokeApiKey { by: caller.by, key }).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The settings of the workspace.
#[utoipa::path(
    get, path = "/api/admin/workspace", tag = "Administration", security(("bearer" = [])),
    responses((status = 200, description = "The settings.", body = WorkspaceAnswer))
)]
async fn read_workspace(caller: Guarded<Admin>) -> HttpResponse {
    HttpResponse::Ok().json(WorkspaceAnswer {
        workspace: caller.by.workspace,
        warnings: Vec::new(),
    })
}

/// Changes the settings of the workspace.
#[utoipa::path(
    patch, path = "/api/admin/workspace", tag = "Administration", security(("bearer" = [])),
    request_body = ChangeWorkspaceBody,
    responses(
        (status = 200, description = "The settings.", body = WorkspaceAnswer),
        (status = 403, description = "Only the operator sets the tier, or the caller is no administrator."),
    )
)]
async fn change_workspace(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let fields = [
        "tlp_ceiling",
        "elevated_clearance",
        "red_export_grant",
        "tier",
        "features",
    ];
    let body: ChangeWorkspaceBody = body::json_of_optional(payload, BODY_LIMIT, &fields).await?;
    let mut change = WorkspaceChange {
        tlp_ceiling: body.tlp_ceiling,
        elevated_clearance: body.elevated_clearance,
        red_export_grant: body.red_export_grant,
        tier: None,
        features: body::optional("features", body.features)?,
    };
    let by = caller.by;
    let mut warnings = Vec::new();
    // Clients of earlier versions send all settings at once. The others of them are the tenant's to change.
    if body.tier.is_some() && !by.workspace.is_operator && change != WorkspaceChange::default() {
        warnings.push(format!(
            "{TIER_OF_OPERATOR}, so it stays {}",
            by.workspace.tier.as_str()
        ));
    } else {
        change.tier = body.tier;
    }
    let workspace = state.identity.call(ChangeWorkspace { by, change }).await?;
    Ok(HttpResponse::Ok().json(WorkspaceAnswer { workspace, warnings }))
}
