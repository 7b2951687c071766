//! Sign-in and sign-out.

use actix_web::{HttpMessage, HttpRequest, HttpResponse, web};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Guarded, SignOut, SignedInOnly, check_form, read_credential};
use super::resource;
use crate::actors::identity::{ChangeOwnPassword, Login, Logout, SignInGrant, SignInOutcome};
use crate::auth::token;
use crate::domain::password::NewPassword;
use crate::domain::permission::{Role, Scope, Scopes, Tier};
use crate::domain::principal::{Credential, Workspace};
use crate::http::AppState;
use crate::http::body::{self, Body};
use crate::http::client_ip::client_ip;

/// Sign-in bodies are small; larger ones are refused unread.
const BODY_LIMIT: usize = 16 * 1024;

#[derive(Deserialize, ToSchema)]
#[schema(as = Login)]
struct LoginBody {
    #[schema(example = "analyst@example.com")]
    email: String,
    #[schema(value_type = String, example = "correct horse battery staple")]
    password: SecretString,
    /// Name or id; needed only if address and password fit several workspaces.
    #[schema(example = "Operator")]
    workspace: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = PasswordChange)]
struct PasswordBody {
    #[schema(value_type = String, example = "correct horse battery staple")]
    current_password: SecretString,
    #[schema(value_type = NewPassword)]
    new_password: SecretString,
}

/// A successful sign-in.
#[derive(Serialize, ToSchema)]
pub(super) struct LoginAnswer {
    /// A JWT (RFC 7519), for `Authorization: Bearer`.
    #[schema(example = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.e30.c2ln")]
    access_token: String,
    #[schema(example = "Bearer")]
    token_type: &'static str,
    /// Seconds.
    #[schema(example = 86400)]
    expires_in: i64,
    user: UserAnswer,
    workspace: WorkspaceAnswer,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SignedInUser)]
struct UserAnswer {
    id: Uuid,
    #[schema(example = "analyst@example.com")]
    email: String,
    role: Role,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SignedInWorkspace)]
struct WorkspaceAnswer {
    id: Uuid,
    #[schema(example = "Operator")]
    name: String,
    tier: Tier,
}

impl From<Workspace> for WorkspaceAnswer {
    fn from(workspace: Workspace) -> Self {
        Self {
            id: workspace.id,
            name: workspace.name,
            tier: workspace.tier,
        }
    }
}

impl From<SignInGrant> for LoginAnswer {
    fn from(signed_in: SignInGrant) -> Self {
        let user = signed_in.user;
        Self {
            access_token: signed_in.token,
            token_type: "Bearer",
            expires_in: token::LIFETIME,
            user: UserAnswer {
                id: user.id,
                email: user.email,
                role: user.role,
            },
            workspace: signed_in.workspace.into(),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct MeAnswer {
    /// Set if the credential is a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    user: Option<UserAnswer>,
    /// Set if the credential is an API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    api_key: Option<ApiKeyAnswer>,
    workspace: WorkspaceAnswer,
}

#[derive(Serialize, ToSchema)]
#[schema(as = CallingKey)]
struct ApiKeyAnswer {
    id: Uuid,
    #[schema(value_type = Scopes)]
    scopes: Vec<Scope>,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/auth/login").route(web::post().to(login)));
    cfg.service(resource("/api/auth/logout").route(web::post().to(logout)));
    cfg.service(resource("/api/auth/password").route(web::post().to(change_password)));
    cfg.service(resource("/api/auth/me").route(web::get().to(me)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(login, logout, change_password, me))]
pub(super) struct Docs;

/// Exchanges an e-mail address and password for a token.
#[utoipa::path(
    post, path = "/api/auth/login", tag = "Sign-in", security(()), request_body = LoginBody,
    responses(
        (status = 200, description = "A token of the workspace, valid for 24 hours.", body = LoginAnswer),
        (status = 401, description = "No account has this address and password."),
        (status = 429, description = "Too many failed attempts for this account from this address."),
    )
)]
async fn login(
    request: HttpRequest,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    check_form(&request)?;
    let body: LoginBody = body::json(payload, BODY_LIMIT).await?;
    let attempt = Login {
        email: body.email,
        password: body.password,
        workspace: body.workspace,
        ip: client_ip(&request, &state.settings.server.trusted_proxies),
    };
    let SignInOutcome { rate, outcome } = state.identity.call(attempt).await?;
    // The middleware writes the RateLimit headers from this, whatever the outcome.
    request.extensions_mut().insert(rate);
    Ok(HttpResponse::Ok().json(LoginAnswer::from(outcome?)))
}

/// Signs out: the token that the request presents is refused from now on.
///
/// Other tokens of the user stay valid. API keys can't sign out: an administrator revokes them. Users of a suspended
/// workspace can.
#[utoipa::path(
    post, path = "/api/auth/logout", tag = "Sign-in", security(("bearer" = [])),
    responses(
        (status = 204, description = "The token is revoked."),
        (status = 403, description = "The credential is an API key."),
    )
)]
async fn logout(
    request: HttpRequest,
    caller: Guarded<SignOut>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let presented = read_credential(&request)?;
    let by = caller.by;
    state.identity.call(Logout { by, presented }).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Changes the caller's own password.
///
/// Ends all sessions of the user, that of this request too: sign in again with the new password. The fifth wrong current
/// password within 15 minutes is answered with 429.
#[utoipa::path(
    post, path = "/api/auth/password", operation_id = "change_password", tag = "Sign-in", security(("bearer" = [])),
    request_body = PasswordBody,
    responses(
        (status = 204, description = "The password is changed."),
        (status = 400, description = "The current password is wrong, or the new one breaks a rule."),
        (status = 403, description = "The credential is an API key."),
        (status = 409, description = "The password was changed meanwhile."),
    )
)]
async fn change_password(
    caller: Guarded<SignedInOnly>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let PasswordBody {
        current_password: current,
        new_password: new,
    } = body::json(payload, BODY_LIMIT).await?;
    let by = caller.by;
    state
        .identity
        .call(ChangeOwnPassword { by, current, new })
        .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The authenticated caller.
#[utoipa::path(
    get, path = "/api/auth/me", tag = "Sign-in",
    responses((status = 200, description = "The user or API key, and its workspace.", body = MeAnswer))
)]
async fn me(caller: Guarded<SignedInOnly>) -> HttpResponse {
    let by = caller.by;
    let (user, api_key) = match by.credential {
        Credential::User { id, email, role } => (Some(UserAnswer { id, email, role }), None),
        Credential::ApiKey { id, scopes, .. } => (None, Some(ApiKeyAnswer { id, scopes })),
    };
    HttpResponse::Ok().json(MeAnswer {
        user,
        api_key,
        workspace: by.workspace.into(),
    })
}
