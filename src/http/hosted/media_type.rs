//! The Content-Type of request bodies.

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use actix_web::http::{Method, StatusCode};
use actix_web::mime::Mime;
use actix_web::{HttpMessage, HttpRequest};

use super::error::HostedError;
use super::guard::has_credential;

const NO_JSON: HostedError = HostedError::Message(
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    "Content-Type: must be application/json, in UTF-8",
);

/// Refuses a body whose headers do not say that it is JSON (RFC 9110 section 15.5.16). With a credential in a header
/// Content-Type may be missing: without one, a page of another origin could send the request unasked (Fetch standard,
/// CORS-safelisted requests).
///
/// # Errors
/// 415, with the header and its rule.
pub(super) fn check(request: &HttpRequest) -> Result<(), HostedError> {
    if !has_body(request) {
        return Ok(());
    }
    let encoding = request.headers().get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(HostedError::Encoded);
    }
    match request.mime_type() {
        Ok(None) if has_credential(request) => Ok(()),
        Ok(Some(mime)) if mime.type_() == "application" && is_json(&mime) && is_utf8(&mime) => Ok(()),
        Ok(_) | Err(_) => Err(NO_JSON),
    }
}

/// Whether the request has a body that a handler may read. What comes with a GET is ignored.
fn has_body(request: &HttpRequest) -> bool {
    let headers = request.headers();
    let empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0");
    let reads = ![Method::GET, Method::HEAD].contains(request.method());
    reads && (!empty || headers.contains_key(TRANSFER_ENCODING))
}

/// `json`, or a type built on it such as `stix+json` (RFC 6839 section 3.1).
fn is_json(mime: &Mime) -> bool {
    mime.subtype() == "json" || mime.suffix().is_some_and(|suffix| suffix == "json")
}

fn is_utf8(mime: &Mime) -> bool {
    let charset = mime.get_param("charset");
    // The second is a label of it too (WHATWG Encoding, section 4.2), and some clients send it.
    let names = ["utf-8", "utf8"];
    charset.is_none_or(|charset| {
        names
            .iter()
            .any(|name| charset.as_str().eq_ignore_ascii_case(name))
    })
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError;
    use actix_web::test::TestRequest;

    use super::*;

    fn status(headers: &[(&str, &str)]) -> u16 {
        let mut request = TestRequest::post();
        for (name, value) in headers {
            request = request.append_header((*name, *value));
        }
        let checked = check(&request.to_http_request());
        checked.map_or_else(|error| error.status_code().as_u16(), |()| 200)
    }

    #[test]
    fn bodies_are_json_by_whatever_name() {
        for (media_type, want) in [
            ("application/json", 200),
            ("Application/JSON; Charset=\"UTF-8\"", 200),
            ("application/json;charset=utf-8", 200),
            ("application/json; charset=utf8", 200),
            ("application/json; charset=\"UTF8\"", 200),
            ("application/json; charset=utf-16", 415),
            ("application/stix+json;version=2.1", 200),
            ("application/taxii+json;version=2.1", 200),
            ("application/vnd.example+json", 200),
            ("application/json; charset=iso-8859-1", 415),
            ("application/x-www-form-urlencoded", 415),
            ("multipart/form-data; boundary=x", 415),
            ("text/plain", 415),
            ("text/json", 415),
            ("application/jsonp", 415),
            ("application/xml", 415),
            ("json", 415),
            ("", 415),
        ] {
            let length = ("content-length", "2");
            assert_eq!(
                status(&[length, ("content-type", media_type)]),
                want,
                "{media_type}"
            );
            let chunked = ("transfer-encoding", "chunked");
            assert_eq!(
                status(&[chunked, ("content-type", media_type)]),
                want,
                "{media_type}"
            );
            let none = ("content-length", "0");
            assert_eq!(status(&[none, ("content-type", media_type)]), 200);
            assert_eq!(status(&[("content-type", media_type)]), 200);
        }
        let length = ("content-length", "2");
        assert_eq!(status(&[length]), 415, "any web page could send it");
        for credential in [("authorization", "Bearer x"), ("x-api-key", "tm_x")] {
            assert_eq!(status(&[length, credential]), 200);
            for (encoding, want) in [("identity", 200), ("gzip", 415)] {
                assert_eq!(
                    status(&[length, credential, ("content-encoding", encoding)]),
                    want
                );
            }
        }
        let get = TestRequest::get().insert_header(("content-length", "2"));
        let get = get
            .insert_header(("content-type", "text/plain"))
            .to_http_request();
        assert!(check(&get).is_ok());
    }
}
