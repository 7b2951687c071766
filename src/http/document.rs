//! Documents that are the same for everybody until the program is replaced.

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, EntityTag, Header, HeaderName, HeaderValue, IfNoneMatch,
    TryIntoHeaderValue,
};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use sha2::{Digest, Sha256};

/// A static document, which a client downloads again only if it has changed.
#[derive(Debug)]
pub struct Document {
    pub body: Bytes,
    /// Weak, because the compressed document has the same tag (RFC 9110 section 8.8.1).
    pub etag: EntityTag,
    pub content_type: &'static str,
}

impl Document {
    /// A document, whose tag is made from its bytes.
    pub fn new(body: impl Into<Bytes>, content_type: &'static str) -> Self {
        let body = body.into();
        let digest = Sha256::digest(&body);
        Self {
            etag: EntityTag::new_weak(hex::encode(&digest[..16])),
            body,
            content_type,
        }
    }

    /// The document, or 304 if the client has it (RFC 9110 section 13.1.2).
    pub fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let mut answer = if self.is_known_to(request) {
            HttpResponse::NotModified().finish()
        } else {
            HttpResponse::Ok()
                .content_type(self.content_type)
                .body(self.body.clone())
        };
        let headers = answer.headers_mut();
        if let Ok(etag) = self.etag.clone().try_into_value() {
            headers.insert(ETAG, etag);
        }
        // May be kept, but must be asked for each time: the next version of the program has another one.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        answer
    }

    /// The document for a browser, under a Content Security Policy and apart from pages of other origins.
    pub fn answer_with_policy(&self, request: &HttpRequest, policy: &'static str) -> HttpResponse {
        isolate(self.answer(request), policy)
    }

    /// The document with a status: whole, and not to be kept.
    pub fn once(&self, status: StatusCode, policy: &'static str) -> HttpResponse {
        let whole = HttpResponse::build(status)
            .content_type(self.content_type)
            .insert_header((CACHE_CONTROL, "no-store"))
            .body(self.body.clone());
        isolate(whole, policy)
    }

    fn is_known_to(&self, request: &HttpRequest) -> bool {
        match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Any) => true,
            Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|tag| tag.weak_eq(&self.etag)),
            Err(_) => false,
        }
    }
}

fn isolate(mut answer: HttpResponse, policy: &'static str) -> HttpResponse {
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(opener, HeaderValue::from_static("same-origin"));
    answer
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::IF_NONE_MATCH;
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_document_is_sent_once_and_again_when_it_has_changed() {
        let (old, new) = (
            Document::new("old", "text/plain"),
            Document::new("new", "text/plain"),
        );
        let status = |document: &Document, tags: Option<&str>| {
            let mut request = TestRequest::get();
            if let Some(tags) = tags {
                request = request.insert_header((IF_NONE_MATCH, tags));
            }
            let answer = document.answer(&request.to_http_request());
            let header = |name| answer.headers().get(name).unwrap().to_str().unwrap();
            assert_eq!(header(ETAG), document.etag.to_string());
            assert_eq!(header(CACHE_CONTROL), "no-cache");
            answer.status().as_u16()
        };
        let tag = old.etag.to_string();
        assert!(tag.starts_with("W/\""), "{tag}");
        let strong = tag.trim_start_matches("W/");
        for (tags, want) in [
            (None, 200),
            (Some(tag.as_str()), 304),
            (Some(strong), 304),
            (Some(&format!("\"other\", {tag}")), 304),
            (Some("*"), 304),
            (Some("\"other\""), 200),
            (Some("nonsense"), 200),
        ] {
            assert_eq!(status(&old, tags), want, "{tags:?}");
        }
        assert_eq!(status(&new, Some(&tag)), 200);
    }
}
