//! Sign-in.

use actix_web::{HttpMessage, HttpRequest, HttpResponse, web};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Guarded, SignedInOnly};
use super::{media_type, resource};
use crate::actors::identity::{Attempted, Login, SignedIn};
use crate::auth::token;
use crate::domain::permission::{Role, Scope, Tier};
use crate::domain::principal::{Credential, Workspace};
use crate::http::AppState;
use crate::http::body;
use crate::http::client_ip::client_ip;

/// Sign-in bodies are small; larger ones are refused unread.
const BODY_LIMIT: usize = 16 * 1024;

#[derive(Deserialize)]
struct LoginBody {
    email: String,
    password: SecretString,
    workspace: Option<String>,
}

#[derive(Serialize)]
struct LoginAnswer {
    access_token: String,
    token_type: &'static str,
    expires_in: i64,
    user: UserAnswer,
    workspace: WorkspaceAnswer,
}

#[derive(Serialize)]
struct UserAnswer {
    id: Uuid,
    email: String,
    role: Role,
}

#[derive(Serialize)]
struct WorkspaceAnswer {
    id: Uuid,
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

impl From<SignedIn> for LoginAnswer {
    fn from(signed_in: SignedIn) -> Self {
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

#[derive(Serialize)]
struct MeAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<UserAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<ApiKeyAnswer>,
    workspace: WorkspaceAnswer,
}

#[derive(Serialize)]
struct ApiKeyAnswer {
    id: Uuid,
    scopes: Vec<Scope>,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/auth/login").route(web::post().to(login)));
    cfg.service(resource("/api/auth/me").route(web::get().to(me)));
}

/// Exchanges an e-mail address and password for a token.
async fn login(
    request: HttpRequest,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    media_type::check(&request)?;
    let body: LoginBody = body::json(payload, BODY_LIMIT).await?;
    let attempt = Login {
        email: body.email,
        password: body.password,
        workspace: body.workspace,
        ip: client_ip(&request, &state.settings.server.trusted_proxies),
    };
    let Attempted { rate, outcome } = state.identity.call(attempt).await?;
    // The middleware writes the RateLimit headers from this, whatever the outcome.
    request.extensions_mut().insert(rate);
    Ok(HttpResponse::Ok().json(LoginAnswer::from(outcome?)))
}

/// The authenticated caller.
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
