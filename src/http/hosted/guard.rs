//! Permissions as an extractor type: a handler that takes `Guarded<RecallRead>` can't skip the check.

use std::future::Future;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::AUTHORIZATION;
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, web};
use secrecy::{ExposeSecret, SecretString};

use super::error::HostedError;
use super::{media_type, query};
use crate::actors::identity::{Authenticate, RequestCredential};
use crate::actors::rate_limiter::{GUESSES, Limit, Network, RateKey, RateState, TakeRequest};
use crate::auth::api_key;
use crate::domain::error::DomainError;
use crate::domain::permission::Permission;
use crate::domain::principal::{KNOWLEDGE_GRAPH, Principal};
use crate::http::AppState;
use crate::http::client_ip::client_ip;
use crate::http::problem::Problem;

pub(in crate::http) const API_KEY: &str = "x-api-key";
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// Methods that need room on the disk.
const WRITES: [Method; 3] = [Method::POST, Method::PUT, Method::PATCH];

/// What a route requires of its caller.
pub trait Requirement: 'static {
    /// The permission, if the route requires more than a signed-in caller.
    const PERMISSION: Option<Permission>;
    /// The workspace feature, if the route requires one.
    const FEATURE: Option<&'static str>;
    /// Whether the caller's workspace must not be suspended.
    const ACTIVE_ONLY: bool = true;
}

macro_rules! needs {
    ($($(#[$meta:meta])* $name:ident: $permission:expr, $feature:expr;)+) => { $(
        $(#[$meta])*
        pub struct $name;
        impl Requirement for $name {
            const PERMISSION: Option<Permission> = $permission;
            const FEATURE: Option<&'static str> = $feature;
        }
    )+ };
}

needs! {
    /// Any valid credential.
    SignedInOnly: None, None;
    /// Search, sessions, export.
    RecallRead: Some(Permission::RecallRead), None;
    /// Ingest.
    RecallWrite: Some(Permission::RecallWrite), Some(KNOWLEDGE_GRAPH);
    /// Reading the audit log.
    AuditRead: Some(Permission::AuditRead), None;
    /// Exporting the audit log.
    AuditExport: Some(Permission::AuditExport), None;
    /// Administration of the workspace.
    Admin: Some(Permission::Admin), None;
}

/// Any valid credential, of a suspended workspace too: a token that can't be given back would live again after the
/// suspension.
pub struct SignOut;
impl Requirement for SignOut {
    const PERMISSION: Option<Permission> = None;
    const FEATURE: Option<&'static str> = None;
    const ACTIVE_ONLY: bool = false;
}

/// The caller: authenticated, within its workspace's rate limit, and authorised.
pub struct Guarded<N> {
    pub by: Principal,
    _needs: PhantomData<N>,
}

impl<N: Requirement> FromRequest for Guarded<N> {
    type Error = HostedError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, HostedError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let by = admit(&request, read_credential).await?;
            if N::ACTIVE_ONLY {
                by.workspace.require_active()?;
            }
            if let Some(permission) = N::PERMISSION {
                by.require(permission)?;
                if permission == Permission::RecallWrite && WRITES.contains(request.method()) {
                    state_of(&request)?.disk.require()?;
                }
            }
            if let Some(feature) = N::FEATURE {
                by.require_feature(feature)?;
            }
            check_form(&request)?;
            Ok(Self {
                by,
                _needs: PhantomData,
            })
        })
    }
}

/// Request limits of a group of public routes, per client address.
pub trait PublicLimits: 'static {
    /// Name of the group; all of its routes share one count.
    const GROUP: &'static str;
    /// Requests per window.
    const LIMITS: &'static [Limit];
    /// Requests per window of all addresses together: somebody may have many.
    const TOTAL: &'static [Limit];
}

macro_rules! public_limits {
    ($($(#[$meta:meta])* $name:ident: $group:literal, $limits:expr, $total:expr;)+) => { $(
        $(#[$meta])*
        pub struct $name;
        impl PublicLimits for $name {
            const GROUP: &'static str = $group;
            const LIMITS: &'static [Limit] = &$limits;
            const TOTAL: &'static [Limit] = &$total;
        }
    )+ };
}

// Hosted specification, section Limits.
public_limits! {
    /// `/openapi.json`.
    DocumentLimits: "document", [(60, MINUTE)], [];
    /// `/api/public/demo-*`.
    DemoLimits: "demo", [(10, HOUR), (200, DAY)], [];
    /// `POST /api/pilot`. Each request is kept and mailed to a person.
    PilotLimits: "pilot", [(5, MINUTE)], [(300, HOUR)];
    /// `/api/auth/oauth/*`; the specification sets no limit.
    OauthLimits: "oauth", [(60, MINUTE)], [];
}

/// A caller without credentials, within the limits of its address.
pub struct Public<L> {
    pub ip: IpAddr,
    _limits: PhantomData<L>,
}

impl<L: PublicLimits> FromRequest for Public<L> {
    type Error = HostedError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, HostedError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let state = state_of(&request)?;
            let ip = client_ip(&request, &state.settings.server.trusted_proxies);
            let counted = RateKey::Address(L::GROUP, Network::of(ip));
            count(&request, counted, L::LIMITS).await?;
            check_form(&request)?;
            if !L::TOTAL.is_empty() {
                within_total(&request, L::GROUP, L::TOTAL).await?;
            }
            Ok(Self {
                ip,
                _limits: PhantomData,
            })
        })
    }
}

/// Checks what can be told of a request before its handler reads it: its query parameters and the type of its body.
///
/// # Errors
/// 400 with the parameter, 415 with the header.
pub(super) fn check_form(request: &HttpRequest) -> Result<(), HostedError> {
    query::check(request)?;
    media_type::check(request)
}

pub(in crate::http) fn state_of(request: &HttpRequest) -> Result<&web::Data<AppState>, DomainError> {
    request
        .app_data::<web::Data<AppState>>()
        .ok_or_else(|| DomainError::internal("the request failed unexpectedly", "no application state"))
}

/// Counts a request, and fails when a limit is exceeded. The middleware writes the RateLimit headers from the state
/// that this leaves with the request, whatever the response.
async fn count(request: &HttpRequest, counted: RateKey, limits: &[Limit]) -> Result<(), DomainError> {
    let limits = limits.to_vec();
    let take = TakeRequest { counted, limits };
    let rate = state_of(request)?.limiter.call(take).await?;
    request.extensions_mut().insert(rate);
    if rate.allowed {
        return Ok(());
    }
    Err(DomainError::RateLimited {
        retry_after: rate.reset,
    })
}

/// Counts a request against what all addresses may send together. The headers stay those of the address, except on a
/// refusal.
async fn within_total(
    request: &HttpRequest,
    group: &'static str,
    limits: &[Limit],
) -> Result<(), DomainError> {
    let own = request.extensions().get::<RateState>().copied();
    count(request, RateKey::Everybody(group), limits).await?;
    if let Some(own) = own {
        request.extensions_mut().insert(own);
    }
    Ok(())
}

/// Reads the credential of a request.
pub(in crate::http) type CredentialReader = fn(&HttpRequest) -> Result<RequestCredential, DomainError>;

/// Stands with a request that comes of one whose caller is known and counted: what a tool of MCP sends.
#[derive(Clone)]
pub(super) struct Admitted(pub Principal);

/// Authenticates the caller and counts the request against the limit of its workspace.
pub(in crate::http) async fn admit(
    request: &HttpRequest,
    read: CredentialReader,
) -> Result<Principal, DomainError> {
    if let Some(Admitted(by)) = request.extensions().get() {
        return Ok(by.clone());
    }
    let state = state_of(request)?;
    let ip = client_ip(request, &state.settings.server.trusted_proxies);
    let by = match authenticate(read(request), state, ip).await {
        Err(refused @ DomainError::Unauthenticated(_)) if has_credential(request) => {
            // Only failures count and only they are refused: one expired token must not lock out a whole office.
            let counted = RateKey::Address("credential", Network::of(ip));
            count(request, counted, &GUESSES).await?;
            return Err(refused);
        }
        answer => answer?,
    };
    let limit = state.settings.tier_limit(by.workspace.tier);
    count(request, RateKey::Workspace(by.workspace.id), &[(limit, HOUR)]).await?;
    Ok(by)
}

/// Counts a 405 as any other request of a caller with a credential: the answer then has the headers of its limit, and
/// 429 when that is used up. Without a credential, or with a wrong one, the path and its methods are no secret.
pub(super) async fn count_no_method(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    count_refused::<HostedError>(request, next, read_credential).await
}

/// The same for an API with its own errors and credentials.
pub(in crate::http) async fn count_refused<P: Problem + From<DomainError>>(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
    read: CredentialReader,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let response = next.call(request).await?.map_into_boxed_body();
    if response.status() != StatusCode::METHOD_NOT_ALLOWED || !has_credential(response.request()) {
        return Ok(response);
    }
    match admit(response.request(), read).await {
        Err(refused @ DomainError::RateLimited { .. }) => {
            let refusal = P::from(refused).error_response();
            Ok(response.into_response(refusal))
        }
        Ok(_) | Err(_) => Ok(response),
    }
}

async fn authenticate(
    presented: Result<RequestCredential, DomainError>,
    state: &AppState,
    ip: IpAddr,
) -> Result<Principal, DomainError> {
    let presented = presented?;
    state.identity.call(Authenticate { presented, ip }).await
}

/// Whether the request presents a credential, readable or not.
pub(in crate::http) fn has_credential(request: &HttpRequest) -> bool {
    let headers = request.headers();
    headers.contains_key(AUTHORIZATION) || headers.contains_key(API_KEY)
}

/// The credential of the request: a bearer token, or an API key in either header. Two different ones are an error.
pub(in crate::http) fn read_credential(request: &HttpRequest) -> Result<RequestCredential, DomainError> {
    const MISSING: DomainError = DomainError::Unauthenticated("invalid or missing credentials");
    let header = |name: &str| -> Result<Option<SecretString>, DomainError> {
        let mut values = request.headers().get_all(name);
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(MISSING);
        }
        Ok(Some(SecretString::from(
            value.to_str().map_err(|_| MISSING)?.trim().to_owned(),
        )))
    };
    let bearer = match header(AUTHORIZATION.as_str())? {
        None => None,
        Some(value) => match value.expose_secret().split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                Some(SecretString::from(token.trim().to_owned()))
            }
            _ => return Err(MISSING),
        },
    };
    match (bearer, header(API_KEY)?) {
        (None, None) => Err(MISSING),
        (Some(token), Some(key)) if !api_key::same(token.expose_secret(), key.expose_secret()) => {
            Err(DomainError::Unauthenticated("Authorization and X-API-Key differ"))
        }
        (Some(token), None) if !token.expose_secret().starts_with(api_key::PREFIX) => {
            Ok(RequestCredential::Token(token))
        }
        (Some(key), _) | (None, Some(key)) => Ok(RequestCredential::ApiKey(key)),
    }
}

#[cfg(test)]
mod tests;
