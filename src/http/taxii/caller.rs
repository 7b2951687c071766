//! The caller of the TAXII server. Many clients can do HTTP Basic only.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::Method;
use actix_web::http::header::AUTHORIZATION;
use actix_web::{FromRequest, HttpRequest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use super::error::TaxiiError;
use super::media_type::{check_accepted, check_sent};
use crate::actors::identity::{BasicCredential, RequestCredential};
use crate::auth::api_key;
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::http::hosted::guard::{self, admit};

/// The name of the API root in the patterns of routes: the id of a workspace.
pub(super) const ROOT: &str = "root";

const REFUSED: DomainError = DomainError::Unauthenticated("invalid or missing credentials");

/// The caller: authenticated, within its workspace's rate limit, of the workspace whose API root the URL names, and able to
/// read the answer; what it hands in is of the right type. What it may do with a collection, the collection says.
pub(super) struct Caller {
    pub(super) by: Principal,
}

impl FromRequest for Caller {
    type Error = TaxiiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, TaxiiError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let by = admit(&request, read_credential).await?;
            by.workspace.require_active()?;
            if let Some(root) = request.match_info().get(ROOT)
                && root.parse() != Ok(by.workspace.id)
            {
                return Err(DomainError::NotFound("API root").into());
            }
            check_accepted(&request)?;
            if request.method() == Method::POST {
                check_sent(&request)?;
            }
            Ok(Self { by })
        })
    }
}

/// The credential of a request: those of the API, or a user name and password (RFC 7617). The password may be an API key;
/// the user name says nothing then.
pub(super) fn read_credential(request: &HttpRequest) -> Result<RequestCredential, DomainError> {
    let mut values = request.headers().get_all(AUTHORIZATION);
    let basic = values.next().and_then(|value| {
        let (scheme, encoded) = value.to_str().ok()?.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("basic").then_some(encoded.trim())
    });
    let Some(encoded) = basic else {
        return guard::read_credential(request);
    };
    if values.next().is_some() {
        return Err(REFUSED);
    }
    let bytes = STANDARD.decode(encoded).map_err(|_| REFUSED)?;
    let text = SecretString::from(String::from_utf8(bytes).map_err(|_| REFUSED)?);
    let (user, password) = text.expose_secret().split_once(':').ok_or(REFUSED)?;
    if let Some(key) = request.headers().get(guard::API_KEY) {
        let is_same = key.to_str().is_ok_and(|key| api_key::same(key.trim(), password));
        if !is_same {
            return Err(DomainError::Unauthenticated("Authorization and X-API-Key differ"));
        }
    }
    let password = SecretString::from(password);
    if password.expose_secret().starts_with(api_key::PREFIX) {
        return Ok(RequestCredential::ApiKey(password));
    }
    Ok(RequestCredential::Basic(BasicCredential {
        email: user.to_owned(),
        password,
        workspace: workspace_of(request),
    }))
}

/// The workspace whose API root the URL names.
fn workspace_of(request: &HttpRequest) -> Option<Uuid> {
    request.match_info().get(ROOT)?.parse().ok()
}
