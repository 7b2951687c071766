//! Negotiation of the media type (section 1.6.8).

use actix_web::http::header::{Accept, CONTENT_ENCODING, Header};
use actix_web::mime::Mime;
use actix_web::{HttpMessage, HttpRequest};

use super::error::TaxiiError;

/// The media type of every answer.
pub(super) const MEDIA_TYPE: &str = "application/taxii+json;version=2.1";
const VERSION: &str = "2.1";

/// Refuses a client that does not take what this server sends. Without the header it takes everything (RFC 9110 section
/// 12.5.1).
///
/// # Errors
/// 406.
pub(super) fn check_accepted(request: &HttpRequest) -> Result<(), TaxiiError> {
    if !request.headers().contains_key(actix_web::http::header::ACCEPT) {
        return Ok(());
    }
    let accept = Accept::parse(request).map_err(|_| TaxiiError::NOT_ACCEPTABLE)?;
    let fits = accept
        .iter()
        .any(|item| item.quality > actix_web::http::header::Quality::ZERO && is_range_of_ours(&item.item));
    if fits {
        Ok(())
    } else {
        Err(TaxiiError::NOT_ACCEPTABLE)
    }
}

/// Refuses a body of another type than TAXII's.
///
/// # Errors
/// 415.
pub(super) fn check_sent(request: &HttpRequest) -> Result<(), TaxiiError> {
    let encoding = request.headers().get(CONTENT_ENCODING);
    let is_plain = encoding.is_none_or(|encoding| encoding == "identity");
    match request.mime_type() {
        Ok(Some(mime)) if is_plain && is_ours(&mime) => Ok(()),
        Ok(_) | Err(_) => Err(TaxiiError::UNSUPPORTED),
    }
}

fn is_range_of_ours(range: &Mime) -> bool {
    let is_any = range.subtype() == "*" && (range.type_() == "*" || range.type_() == "application");
    is_any || is_ours(range)
}

/// With our version or without one.
fn is_ours(mime: &Mime) -> bool {
    let is_taxii = mime.type_() == "application"
        && mime.subtype() == "taxii"
        && mime.suffix().is_some_and(|suffix| suffix == "json");
    is_taxii && mime.get_param("version").is_none_or(|version| version == VERSION)
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError;
    use actix_web::http::header::{ACCEPT, CONTENT_TYPE};
    use actix_web::test::TestRequest;

    use super::*;

    fn status(checked: Result<(), TaxiiError>) -> u16 {
        checked.map_or_else(|error| error.status_code().as_u16(), |()| 200)
    }

    #[test]
    fn only_a_client_that_takes_taxii_is_answered() {
        for (accept, want) in [
            ("application/taxii+json;version=2.1", 200),
            ("application/taxii+json; version=2.1", 200),
            ("application/taxii+json;version=\"2.1\"", 200),
            ("Application/TAXII+JSON;Version=2.1", 200),
            ("application/taxii+json", 200),
            ("*/*", 200),
            ("application/*", 200),
            ("text/html, application/taxii+json;version=2.1;q=0.5", 200),
            ("application/vnd.oasis.taxii+json; version=2.0, */*;q=0.1", 200),
            ("application/taxii+json;version=2.0", 406),
            ("application/taxii+json;version=2.1;q=0", 406),
            ("application/vnd.oasis.taxii+json; version=2.0", 406),
            ("application/json", 406),
            ("application/stix+json;version=2.1", 406),
            ("text/*", 406),
            ("nonsense", 406),
        ] {
            let request = TestRequest::get().insert_header((ACCEPT, accept));
            assert_eq!(
                status(check_accepted(&request.to_http_request())),
                want,
                "{accept}"
            );
        }
        assert!(check_accepted(&TestRequest::get().to_http_request()).is_ok());
    }

    #[test]
    fn only_taxii_is_taken() {
        for (sent, want) in [
            ("application/taxii+json;version=2.1", 200),
            ("application/taxii+json", 200),
            ("application/taxii+json;version=2.1;charset=utf-8", 200),
            ("application/taxii+json;version=2.0", 415),
            ("application/stix+json;version=2.1", 415),
            ("application/json", 415),
            ("*/*", 415),
            ("", 415),
        ] {
            let request = TestRequest::post().insert_header((CONTENT_TYPE, sent));
            assert_eq!(status(check_sent(&request.to_http_request())), want, "{sent}");
        }
        assert!(check_sent(&TestRequest::post().to_http_request()).is_err());
        let packed = TestRequest::post().insert_header((CONTENT_TYPE, MEDIA_TYPE));
        let packed = packed.insert_header((CONTENT_ENCODING, "gzip")).to_http_request();
        assert!(check_sent(&packed).is_err());
    }
}
