//! Bodies in TOML, and callers who prefer to read it.

use actix_web::http::header::{Accept, Header};
use actix_web::{HttpMessage, HttpRequest};
use figment::providers::{Format, Toml};
use serde_json::{Value, json};

use super::LocalState;
use super::error::LocalError;
use super::validate::issue;
use crate::http::body::{self, Body};

/// The registered media type of TOML, which is always UTF-8.
pub(super) const TOML: &str = "application/toml";

/// Whether the body is said to be TOML.
pub(super) fn is_toml(request: &HttpRequest) -> bool {
    request.content_type().eq_ignore_ascii_case(TOML)
}

/// Whether the caller prefers TOML to everything else that it accepts (RFC 9110 section 12.5.1).
pub(super) fn wants_toml(request: &HttpRequest) -> bool {
    Accept::parse(request).is_ok_and(|accept| accept.preference().essence_str() == TOML)
}

/// Reads a small TOML body. An empty one is an empty table.
///
/// # Errors
/// 400 if the body is not UTF-8, 422 with line and column if it is not TOML.
pub(super) async fn toml_body(state: &LocalState, payload: Body, limit: usize) -> Result<Value, LocalError> {
    let read = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).map_err(|_| LocalError::UNREADABLE)?;
        parse(&text)
    };
    let (value, _load) = body::read_counted(payload, limit, &state.bodies, None, read).await?;
    Ok(value)
}

fn parse(text: &str) -> Result<Value, LocalError> {
    Toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(text.len(), |span| span.start);
        let (offset, line, column) = place(text, at);
        // The parser's own text would quote the line, which may hold a secret.
        let said = error.message().trim().replace('\n', ", ");
        let msg = format!("TOML decode error at line {line}, column {column}: {said}");
        let ctx = json!({"error": said, "line": line, "column": column});
        let loc = vec![json!("body"), json!(offset)];
        LocalError::issues(&[issue("toml_invalid", loc, &msg, json!({}), Some(ctx))])
    })
}

/// The offset of a byte in characters, its line and its column, both from 1.
fn place(text: &str, at: usize) -> (usize, usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (
        before.chars().count(),
        before.split('\n').count(),
        line.chars().count() + 1,
    )
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{ACCEPT, CONTENT_TYPE};
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn toml_is_read_like_json() {
        for (text, value) in [
            ("", json!({})),
            (
                "a = 1\nb.c = 0.5\n[d]\ne = [true]",
                json!({"a": 1, "b": {"c": 0.5}, "d": {"e": [true]}}),
            ),
            ("\"web.max_k\" = 5 # quoted", json!({"web.max_k": 5})),
        ] {
            assert_eq!(parse(text).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn broken_toml_is_placed_and_not_quoted() {
        for (text, offset, line, column) in [
            ("a = \n", 4, 1, 5),
            ("# é\n[web]\napi_key = hidden-key\n", 20, 3, 11),
            ("a = 1\na = 2\n", 6, 2, 1),
            ("x", 1, 1, 2),
        ] {
            let LocalError::Issues(issues) = parse(text).unwrap_err() else {
                panic!("{text}")
            };
            let found = (
                &issues[0]["loc"],
                &issues[0]["ctx"]["line"],
                &issues[0]["ctx"]["column"],
            );
            assert_eq!(
                found,
                (&json!(["body", offset]), &json!(line), &json!(column)),
                "{issues:?}"
            );
            let said = issues[0]["msg"].as_str().unwrap();
            assert!(said.starts_with(&format!("TOML decode error at line {line}, column {column}: ")));
            assert!(!said.contains("hidden") && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn toml_is_sent_to_those_who_prefer_it() {
        for (accept, wants) in [
            ("application/toml", true),
            ("application/toml, */*;q=0.1", true),
            ("application/json;q=0.5, application/toml", true),
            ("application/json, application/toml", false),
            ("application/toml;q=0", false),
            ("*/*", false),
            ("text/html", false),
            ("nonsense", false),
        ] {
            let request = TestRequest::get()
                .insert_header((ACCEPT, accept))
                .to_http_request();
            assert_eq!(wants_toml(&request), wants, "{accept}");
        }
        assert!(!wants_toml(&TestRequest::get().to_http_request()));
        for (kind, is) in [
            ("application/toml", true),
            ("Application/TOML; charset=utf-8", true),
            ("application/json", false),
            ("text/plain", false),
        ] {
            let request = TestRequest::put()
                .insert_header((CONTENT_TYPE, kind))
                .to_http_request();
            assert_eq!(is_toml(&request), is, "{kind}");
        }
    }
}
