//! Sign-in with a provider: to its sign-in page and back.

use std::net::IpAddr;

use actix_web::cookie::{Cookie, SameSite, time};
use actix_web::http::header::LOCATION;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, ResponseError, web};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::auth::LoginAnswer;
use super::error::HostedError;
use super::guard::{OauthLimits, Public};
use super::query::Params;
use super::resource;
use crate::actors::identity::{Attempted, BeginOauth, FinishOauth, OauthReply};
use crate::auth::oauth::LIFETIME;
use crate::config::{OauthSettings, ProviderKind};
use crate::domain::error::DomainError;
use crate::http::AppState;

/// Longest name of a workspace, in characters.
const MAX_WORKSPACE: usize = 200;
/// Longest parameter of a callback, in characters. Codes of some providers are tokens.
const MAX_PARAMETER: usize = 4096;

/// The configured providers.
#[derive(Serialize, ToSchema)]
struct ProvidersAnswer {
    providers: Vec<ProviderAnswer>,
}

/// A provider to sign in with.
#[derive(Serialize, ToSchema)]
struct ProviderAnswer {
    /// The provider's segment of `/api/auth/oauth/{provider}`.
    #[schema(
        min_length = 1,
        max_length = 32,
        pattern = "^[a-z0-9]+(-[a-z0-9]+)*$",
        example = "corp"
    )]
    name: String,
    kind: ProviderKind,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/auth/providers").route(web::get().to(providers)));
    cfg.service(resource("/api/auth/oauth/{provider}").route(web::get().to(begin)));
    cfg.service(resource("/api/auth/oauth/{provider}/callback").route(web::get().to(callback)));
}

/// The providers that users may sign in with.
#[utoipa::path(
    get,
    path = "/api/auth/providers",
    tag = "Sign-in",
    security(()),
    responses(
        (status = 200, description = "The configured providers, by name.", body = ProvidersAnswer),
        (status = 429, description = "More than 60 requests of this address within a minute."),
    )
)]
async fn providers(_: Public<OauthLimits>, state: web::Data<AppState>) -> HttpResponse {
    let configured = &state.settings.oauth.providers;
    let providers = configured.iter().map(|(name, provider)| ProviderAnswer {
        name: name.clone(),
        kind: provider.kind,
    });
    HttpResponse::Ok().json(ProvidersAnswer {
        providers: providers.collect(),
    })
}

/// Sends the browser to a provider's sign-in page.
#[utoipa::path(
    get,
    path = "/api/auth/oauth/{provider}",
    tag = "Sign-in",
    security(()),
    params(
        ("provider" = String, Path, description = "Name of the provider", min_length = 1, max_length = 32),
        (
            "workspace" = Option<String>, Query, min_length = 1, max_length = 200,
            description = "Name or id of the workspace, if the e-mail address has accounts in several"
        ),
    ),
    responses(
        (
            status = 302,
            description = "To the provider, with state, nonce and PKCE (S256); the cookie is valid for 10 minutes",
            headers(("location" = String), ("set-cookie" = String))
        ),
        (status = 404, description = "There is no provider of this name"),
        (status = 502, description = "The provider failed"),
        (status = 504, description = "The provider did not answer in time"),
        (status = 429, description = "More than 60 requests of this address within a minute."),
    )
)]
async fn begin(
    request: HttpRequest,
    provider: web::Path<String>,
    _: Public<OauthLimits>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let provider = provider.into_inner();
    let workspace = params.optional_text("workspace", MAX_WORKSPACE)?;
    let begin = BeginOauth {
        provider: provider.clone(),
        workspace,
    };
    let begun = state.identity.call(begin).await?;
    let value = begun.cookie.expose_secret().to_owned();
    Ok(HttpResponse::Found()
        .insert_header((LOCATION, begun.location))
        .cookie(cookie(&state.settings.oauth, &provider, value))
        .finish())
}

/// Finishes a sign-in: the redirect URI of the provider.
#[utoipa::path(
    get,
    path = "/api/auth/oauth/{provider}/callback",
    tag = "Sign-in",
    security(()),
    params(
        ("provider" = String, Path, description = "Name of the provider", min_length = 1, max_length = 32),
        ("state" = String, Query, description = "As sent to the provider", max_length = 4096, pattern = r"^[\x20-\x7e]*$"),
        ("code" = Option<String>, Query, description = "The authorization code", max_length = 4096, pattern = r"^[\x20-\x7e]*$"),
        ("error" = Option<String>, Query, description = "The provider's error code instead", max_length = 4096, pattern = r"^[\x20-\x7e]*$"),
        ("iss" = Option<String>, Query, description = "The provider's issuer (RFC 9207)", max_length = 4096, pattern = r"^[\x20-\x7e]*$"),
    ),
    responses(
        (status = 200, description = "Signed in; the cookie is cleared", body = LoginAnswer),
        (status = 400, description = "A parameter is missing, or the workspace must be chosen"),
        (status = 401, description = "The sign-in is refused"),
        (status = 404, description = "There is no provider of this name"),
        (status = 502, description = "The provider failed"),
        (status = 504, description = "The provider did not answer in time"),
        (status = 429, description = "More than 60 requests of this address within a minute."),
    )
)]
async fn callback(
    request: HttpRequest,
    provider: web::Path<String>,
    from: Public<OauthLimits>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let provider = provider.into_inner();
    let settings = &state.settings.oauth;
    let finish = finish_of(&request, &provider, from.ip, settings)?;
    let Attempted { rate, outcome } = state.identity.call(finish).await?;
    request.extensions_mut().insert(rate);
    // A caller that came too often can come again with the same sign-in.
    let again = matches!(outcome, Err(DomainError::RateLimited { .. }));
    let mut response = outcome.map_or_else(
        |error| HostedError::from(error).error_response(),
        |signed_in| HttpResponse::Ok().json(LoginAnswer::from(signed_in)),
    );
    if again {
        return Ok(response);
    }
    let cleared = response.add_removal_cookie(&cookie(settings, &provider, String::new()));
    cleared.map_err(|error| DomainError::internal("the request failed unexpectedly", error))?;
    Ok(response)
}

/// The callback of a request.
fn finish_of(
    request: &HttpRequest,
    provider: &str,
    ip: IpAddr,
    settings: &OauthSettings,
) -> Result<FinishOauth, DomainError> {
    let params = Params::of(request)?;
    let kept = request.cookie(cookie_name(settings));
    Ok(FinishOauth {
        provider: provider.to_owned(),
        state: params.text("state", MAX_PARAMETER)?.into(),
        reply: reply_of(&params)?,
        iss: params.optional_text("iss", MAX_PARAMETER)?,
        cookie: kept.map(|cookie| SecretString::from(cookie.value().to_owned())),
        ip,
    })
}

/// The code or the error; a reply with both is an error.
fn reply_of(params: &Params) -> Result<OauthReply, DomainError> {
    if let Some(error) = params.optional_text("error", MAX_PARAMETER)? {
        return Ok(OauthReply::Error(error));
    }
    let code = params.text("code", MAX_PARAMETER)?;
    Ok(OauthReply::Code(code.into()))
}

/// Browsers keep a cookie with this prefix only if it was set with `Secure` over HTTPS (RFC 6265bis section 4.1.3.1).
fn cookie_name(settings: &OauthSettings) -> &'static str {
    if is_secure(settings) {
        "__Secure-threat-memory-oauth"
    } else {
        "threat-memory-oauth"
    }
}

fn is_secure(settings: &OauthSettings) -> bool {
    settings.public_url.starts_with("https://")
}

/// The cookie of a sign-in. It is sent to the callback of this provider only, and with the provider's redirect, which
/// `SameSite=Strict` would not allow.
fn cookie(settings: &OauthSettings, provider: &str, value: String) -> Cookie<'static> {
    let callback = Url::parse(&settings.redirect_uri(provider));
    let path = callback.map_or_else(|_| "/".to_owned(), |url| url.path().to_owned());
    Cookie::build(cookie_name(settings), value)
        .path(path)
        .max_age(time::Duration::seconds(LIFETIME))
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(is_secure(settings))
        .finish()
}

/// Operations of this file, for the API description.
#[derive(OpenApi)]
#[openapi(paths(providers, begin, callback))]
pub(super) struct Docs;
