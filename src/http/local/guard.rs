//! Access control: callers with the key, or, if none is configured, callers on this machine.
//!
//! Every admitted call and every failed key attempt counts against a rate-limit window. A correct key has its own
//! window; everything else is counted by the caller's address, so that guessing keys is limited too. Without a key,
//! requests from foreign web pages are refused: a local browser would send them from a loopback address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, ResponseError, web};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::body::check_query;
use super::error::{KEY_REQUIRED, LocalError, SET_A_KEY};
use super::{LocalState, address_of};
use crate::actors::rate_limiter::{Network, RateKey};
use crate::domain::error::DomainError;
use crate::http::host::names_this_machine;

pub(super) const FOREIGN_PAGE: &str =
    "Requests of web pages from elsewhere are refused while no API key is set";

/// Stands with a request that comes of one whose caller was admitted and counted: what a tool of MCP sends.
#[derive(Clone, Copy)]
pub(super) struct Admitted;

/// Forwards the request, or answers it with an error.
pub(super) async fn admit(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_admitted = request.extensions().contains::<Admitted>();
    let checked = if is_admitted {
        Ok(())
    } else {
        check(&request).await
    };
    match checked.and_then(|()| check_query(request.request())) {
        Ok(()) => Ok(next.call(request).await?.map_into_boxed_body()),
        Err(error) => Ok(request.into_response(error.error_response())),
    }
}

async fn check(request: &ServiceRequest) -> Result<(), LocalError> {
    let Some(state) = request.app_data::<web::Data<LocalState>>() else {
        return Err(DomainError::internal("the request failed unexpectedly", "no application state").into());
    };
    let address = address_of(request.request());
    let known = state.key.map(|key| has_key(request.headers(), key));
    if known.is_none() {
        // Not counted: a foreign page must not exhaust the window of the local user.
        if !is_this_machine(address) {
            return Err(LocalError::Message(StatusCode::SERVICE_UNAVAILABLE, SET_A_KEY));
        }
        if is_foreign_page(request.headers()) {
            return Err(LocalError::Message(StatusCode::FORBIDDEN, FOREIGN_PAGE));
        }
    }
    let counted = if known == Some(true) {
        RateKey::KeyHolder
    } else {
        RateKey::Address("local", Network::of(address))
    };
    let rate = state.memory.count_request(counted).await?;
    request.extensions_mut().insert(rate);
    if !rate.allowed {
        return Err(DomainError::RateLimited {
            retry_after: rate.reset,
        }
        .into());
    }
    if known == Some(false) {
        return Err(LocalError::Message(StatusCode::UNAUTHORIZED, KEY_REQUIRED));
    }
    Ok(())
}

/// Whether an address is one of the two that the contract calls loopback, IPv4-mapped or not. The rest of 127.0.0.0/8
/// is excluded because local proxies and containers may use it for remote callers.
fn is_this_machine(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address == IpAddr::V4(Ipv4Addr::LOCALHOST) || address == IpAddr::V6(Ipv6Addr::LOCALHOST)
}

/// Compares the key in constant time. A key in `X-API-Key` takes precedence.
fn has_key(headers: &HeaderMap, key: [u8; 32]) -> bool {
    let own = headers
        .get("x-api-key")
        .map(|value| value.as_bytes())
        .filter(|value| !value.is_empty());
    let given = own.or_else(|| {
        headers
            .get(AUTHORIZATION)
            .and_then(|value| bearer(value.as_bytes()))
    });
    given.is_some_and(|given| Sha256::digest(given).ct_eq(key.as_slice()).into())
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then_some(token.trim_ascii())
}

/// Whether a browser sent this request for a foreign page: via DNS rebinding, or from another origin. Non-browser
/// clients send neither `Origin` nor `Sec-Fetch-Site`.
fn is_foreign_page(headers: &HeaderMap) -> bool {
    let (Ok(host), Ok(origin), Ok(site)) = (
        only(headers, HOST.as_str()),
        only(headers, ORIGIN.as_str()),
        only(headers, "sec-fetch-site"),
    ) else {
        return true;
    };
    let host = host.unwrap_or_default();
    let strange_host = !host.is_empty() && !names_this_machine(host);
    let other_origin = origin.is_some_and(|origin| {
        origin
            .split_once("://")
            .is_none_or(|(_, place)| !place.eq_ignore_ascii_case(host))
    });
    let cross_site = site.is_some_and(|site| {
        ["cross-site", "same-site"]
            .iter()
            .any(|other| site.eq_ignore_ascii_case(other))
    });
    strange_host || other_origin || cross_site
}

/// The text of a header. A repeated or non-text header is an error; no browser or honest client sends one.
fn only<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, ()> {
    let mut values = headers.get_all(name);
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text)),
        (Ok(_) | Err(_), _) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.insert(name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    #[test]
    fn the_key_may_stand_in_either_header() {
        let key: [u8; 32] = Sha256::digest("right").into();
        for (pairs, fine) in [
            (&[("x-api-key", "right")][..], true),
            (&[("authorization", "Bearer right")], true),
            (&[("authorization", "bEARER right")], true),
            (&[("x-api-key", ""), ("authorization", "Bearer right")], true),
            (
                &[("x-api-key", "wrong"), ("authorization", "Bearer right")],
                false,
            ),
            (&[("authorization", "Basic right")], false),
            (&[("authorization", "Bearer")], false),
            (&[("authorization", "right")], false),
            (&[("x-api-key", "righ")], false),
            (&[("x-api-key", "right1")], false),
            (&[], false),
        ] {
            assert_eq!(has_key(&headers(pairs), key), fine, "{pairs:?}");
        }
    }

    #[test]
    fn headers_that_can_not_be_told_are_foreign() {
        let bytes = |name: &'static str, value: &[u8]| {
            let mut map = headers(&[("host", "localhost:8088")]);
            let value = HeaderValue::from_bytes(value).unwrap();
            map.append(HeaderName::from_static(name), value);
            map
        };
        for (name, value) in [
            ("origin", &b"\xff"[..]),
            ("sec-fetch-site", b"cross-site\xff"),
            ("sec-fetch-site", b"Cross-Site"),
            ("host", b"localhost:8088"),
        ] {
            assert!(is_foreign_page(&bytes(name, value)), "{name}");
        }
        assert!(!is_foreign_page(&bytes("sec-fetch-site", b"None")));
        let mut twice = bytes("origin", b"http://localhost:8088");
        assert!(!is_foreign_page(&twice));
        twice.append(
            HeaderName::from_static("origin"),
            HeaderValue::from_static("http://evil"),
        );
        assert!(is_foreign_page(&twice));
    }

    #[test]
    fn only_the_addresses_of_the_contract_are_loopback() {
        for (address, here) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("127.0.0.5", false),
            ("::ffff:127.0.0.5", false),
            ("127.255.255.254", false),
            ("0.0.0.0", false),
            ("10.0.0.1", false),
            ("::", false),
            ("fe80::1", false),
        ] {
            assert_eq!(is_this_machine(address.parse().unwrap()), here, "{address}");
        }
    }

    #[test]
    fn foreign_pages_are_told_from_programs() {
        for (pairs, foreign) in [
            (&[("host", "127.0.0.1:8088")][..], false),
            (&[("host", "localhost:8088")], false),
            (&[("host", "[::1]:8088")], false),
            (&[("host", "127.0.0.9")], false),
            (&[], false),
            (&[("host", "evil.example:8088")], true),
            (&[("host", "localhost.evil.example")], true),
            (
                &[("host", "localhost:8088"), ("origin", "http://localhost:8088")],
                false,
            ),
            (
                &[("host", "localhost:8088"), ("origin", "https://evil.example")],
                true,
            ),
            (&[("host", "localhost:8088"), ("origin", "null")], true),
            (
                &[("host", "localhost:8088"), ("sec-fetch-site", "cross-site")],
                true,
            ),
            (
                &[("host", "localhost:8088"), ("sec-fetch-site", "same-origin")],
                false,
            ),
        ] {
            assert_eq!(is_foreign_page(&headers(pairs)), foreign, "{pairs:?}");
        }
    }
}
