//! Sign-in with a provider: to its sign-in page and back.

use std::net::IpAddr;

use actix_web::cookie::{Cookie, SameSite, time};
use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, ResponseError, web};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::json;
use utoipa::{OpenApi, ToSchema};

use super::auth::LoginAnswer;
use super::error::HostedError;
use super::guard::{OauthLimits, Public};
use super::query::Params;
use super::resource;
use crate::actors::identity::{BeginOauth, FinishOauth, OauthReply, SignInGrant, SignInOutcome};
use crate::auth::oauth::LIFETIME;
use crate::config::{OauthSettings, ProviderKind};
use crate::domain::error::DomainError;
use crate::http::{AppState, pages};

/// Longest name of a workspace, in characters.
const MAX_WORKSPACE: usize = 200;
/// Characters of the id that a console gives itself.
const CONSOLE_ID: usize = 32;
/// Begins the name of the channel on which a console waits for the answer to a sign-in.
const CHANNEL: &str = "threat-memory.sign-in.";
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
        (
            "console" = Option<String>, Query, pattern = "^[0-9a-f]{32}$",
            description = "Id of the console that waits for the answer: the callback is then a page that hands it over"
        ),
    ),
    responses(
        (
            status = 302,
            description = "To the provider, with state, nonce and PKCE (S256); the cookie is valid for 10 minutes",
            headers(("location" = String), ("set-cookie" = String))
        ),
        (status = "default", description = "Any other answer is an error."),
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
    let console = console_of(&params, &state)?;
    let begin = BeginOauth {
        provider: provider.clone(),
        workspace,
    };
    let begun = state.identity.call(begin).await?;
    let settings = &state.settings.oauth;
    let sealed = begun.cookie.expose_secret().to_owned();
    Ok(HttpResponse::Found()
        .insert_header((LOCATION, begun.location))
        .cookie(OauthCookie::SignIn.cookie(settings, &provider, Some(sealed)))
        // Without a value too: an earlier sign-in must not decide where this one ends.
        .cookie(OauthCookie::Console.cookie(settings, &provider, console))
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
        (status = "default", description = "Any other answer is an error."),
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
    let SignInOutcome { rate, outcome } = state.identity.call(finish).await?;
    request.extensions_mut().insert(rate);
    // A caller that came too often can come again with the same sign-in.
    let again = matches!(outcome, Err(DomainError::RateLimited { .. }));
    let mut response = answer_to(&request, &state, outcome);
    if again {
        return Ok(response);
    }
    for kept in [OauthCookie::SignIn, OauthCookie::Console] {
        let cleared = response.add_cookie(&kept.cookie(settings, &provider, None));
        cleared.map_err(|error| DomainError::internal("the request failed unexpectedly", error))?;
    }
    Ok(response)
}

/// The answer of `POST /api/auth/login`; as a page that hands it over, if a console began the sign-in.
fn answer_to(
    request: &HttpRequest,
    state: &AppState,
    outcome: Result<SignInGrant, DomainError>,
) -> HttpResponse {
    let plain = match outcome {
        Ok(signed_in) => Ok(LoginAnswer::from(signed_in)),
        Err(error) => Err(HostedError::from(error)),
    };
    let console = request.cookie(OauthCookie::Console.name(&state.settings.oauth));
    let id = console.map(|cookie| cookie.value().to_owned());
    let Some(id) = id.filter(|id| state.settings.server.console && is_console_id(id)) else {
        return plain.map_or_else(
            |error| error.error_response(),
            |answer| HttpResponse::Ok().json(answer),
        );
    };
    let (status, body) = match &plain {
        Ok(answer) => (StatusCode::OK, json!(answer)),
        Err(error) => (
            error.error_response().status(),
            json!({"error": error.to_string()}),
        ),
    };
    let answer = json!({"status": status.as_u16(), "body": body});
    pages::handover(status, &format!("{CHANNEL}{id}"), &answer)
}

/// The console that waits for the answer.
fn console_of(params: &Params, state: &AppState) -> Result<Option<String>, DomainError> {
    let console = params.optional_text("console", CONSOLE_ID)?;
    match &console {
        Some(_) if !state.settings.server.console => Err(DomainError::invalid(
            "console",
            "must be left out: server.console is off",
        )),
        Some(id) if !is_console_id(id) => Err(DomainError::invalid(
            "console",
            "must be 32 hexadecimal digits in lower case",
        )),
        Some(_) | None => Ok(console),
    }
}

fn is_console_id(id: &str) -> bool {
    id.len() == CONSOLE_ID && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The callback of a request.
fn finish_of(
    request: &HttpRequest,
    provider: &str,
    ip: IpAddr,
    settings: &OauthSettings,
) -> Result<FinishOauth, DomainError> {
    let params = Params::of(request)?;
    let kept = request.cookie(OauthCookie::SignIn.name(settings));
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

/// What the browser keeps between the two requests of a sign-in.
#[derive(Clone, Copy)]
enum OauthCookie {
    /// The sealed sign-in.
    SignIn,
    /// The id of the console that waits for the answer. It only decides how the answer is shown.
    Console,
}

impl OauthCookie {
    /// Browsers keep a cookie with the prefix only if it was set with `Secure` over HTTPS (RFC 6265bis section
    /// 4.1.3.1).
    fn name(self, settings: &OauthSettings) -> &'static str {
        match (self, is_secure(settings)) {
            (Self::SignIn, true) => "__Secure-threat-memory-oauth",
            (Self::SignIn, false) => "threat-memory-oauth",
            (Self::Console, true) => "__Secure-threat-memory-console",
            (Self::Console, false) => "threat-memory-console",
        }
    }

    /// The cookie, or without a value its removal. It is sent to the callback of this provider only, and with the
    /// provider's redirect, which `SameSite=Strict` would not allow.
    fn cookie(self, settings: &OauthSettings, provider: &str, value: Option<String>) -> Cookie<'static> {
        let callback = Url::parse(&settings.redirect_uri(provider));
        let path = callback.map_or_else(|_| "/".to_owned(), |url| url.path().to_owned());
        let is_removal = value.is_none();
        let mut cookie = Cookie::build(self.name(settings), value.unwrap_or_default())
            .path(path)
            .max_age(time::Duration::seconds(LIFETIME))
            .http_only(true)
            .same_site(SameSite::Lax)
            .secure(is_secure(settings))
            .finish();
        if is_removal {
            cookie.make_removal();
        }
        cookie
    }
}

fn is_secure(settings: &OauthSettings) -> bool {
    settings.public_url.starts_with("https://")
}

/// Operations of this file, for the API description.
#[derive(OpenApi)]
#[openapi(paths(providers, begin, callback))]
pub(super) struct Docs;
