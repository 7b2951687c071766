//! Compression of answers. [`Compress`](actix_web::middleware::Compress) stands between the two functions of this file:
//! [`mark_uncompressed`] says which answers it must leave alone, [`negotiate`] how it may compress the others.

use std::sync::LazyLock;

use actix_web::Error;
use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, CONTENT_ENCODING, CONTENT_TYPE, Encoding, Header, HeaderMap,
    HeaderValue, VARY,
};
use actix_web::middleware::Next;

/// Smaller bodies would hardly become smaller, but their answers later.
const MIN_BYTES: u64 = 1024;
/// Answers of these routes hold tokens or keys beside text that others can choose. Compressed together, the length
/// of an answer tells whether a guess at the secret was right (BREACH, CVE-2013-3587).
const SECRET: [&str; 2] = ["/api/auth/", "/api/admin/"];
/// Marks an answer that is not to be compressed. It never leaves: `identity` is no value of the header in an answer
/// (RFC 9110 section 8.4.1).
const SPARED: HeaderValue = HeaderValue::from_static("identity");
static CODINGS: LazyLock<[Encoding; 2]> = LazyLock::new(|| [Encoding::gzip(), Encoding::zstd()]);

/// Marks answers that are not to be compressed; the inner one of the two.
pub async fn mark_uncompressed(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let mut response = next.call(request).await?;
    if !is_worthwhile(&response) && !response.headers().contains_key(CONTENT_ENCODING) {
        response.headers_mut().insert(CONTENT_ENCODING, SPARED);
    }
    Ok(response)
}

/// Chooses the coding, and says that the answer depends on what the client accepts; the outer one of the two.
pub async fn negotiate(
    mut request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    // A client that accepts nothing that we have gets the plain answer, not a refusal (RFC 9110 section 12.5.3).
    let accepted = AcceptEncoding::parse(&request).ok();
    let coding = accepted.and_then(|accepted| accepted.negotiate(CODINGS.iter()));
    request.headers_mut().remove(ACCEPT_ENCODING);
    if let Some(Ok(coding)) = coding.map(|coding| HeaderValue::try_from(coding.to_string())) {
        request.headers_mut().insert(ACCEPT_ENCODING, coding);
    }
    let mut response = next.call(request).await?;
    let headers = response.headers_mut();
    if headers.get(CONTENT_ENCODING) == Some(&SPARED) {
        headers.remove(CONTENT_ENCODING);
    } else {
        vary_on_encoding(headers);
    }
    Ok(response)
}

fn is_worthwhile<B: MessageBody>(response: &ServiceResponse<B>) -> bool {
    let large = match response.response().body().size() {
        BodySize::None => false,
        BodySize::Sized(bytes) => bytes >= MIN_BYTES,
        BodySize::Stream => true,
    };
    let media_type = response.headers().get(CONTENT_TYPE);
    // The compressor would hold events back until it has enough of them.
    let events = media_type.is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
    // The pattern, because the path may be written in other ways.
    let pattern = response.request().match_pattern();
    let secret = pattern.is_some_and(|pattern| SECRET.iter().any(|path| pattern.starts_with(path)));
    large && !events && !secret
}

fn vary_on_encoding(headers: &mut HeaderMap) {
    let named = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
        text.contains("accept-encoding")
    };
    if !headers.get_all(VARY).any(named) {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}
