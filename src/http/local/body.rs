//! Bodies and query strings as values, before their fields are looked at.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use serde_json::{Map, Value, json};

use super::error::{LocalError, UNREADABLE};
use super::validate::issue;
use crate::http::body::{LARGE, read};

/// Reads a JSON body of at most `limit` bytes; an empty one is null. The content type is not looked at.
pub(super) async fn json_body(payload: web::Payload, limit: usize) -> Result<Value, LocalError> {
    let (bytes, _place) = read(payload, limit).await?;
    if bytes.len() < LARGE {
        return parse(&bytes);
    }
    let parsed = tokio::task::spawn_blocking(move || parse(&bytes)).await;
    parsed.unwrap_or(Err(LocalError::Says(StatusCode::BAD_REQUEST, UNREADABLE)))
}

fn parse(bytes: &[u8]) -> Result<Value, LocalError> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| LocalError::Says(StatusCode::BAD_REQUEST, UNREADABLE))?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text).map_err(|error| {
        let place = offset(text, error.line(), error.column());
        let loc = vec![json!("body"), json!(place)];
        let ctx = json!({"error": words(&error.to_string())});
        LocalError::issues(&[issue(
            "json_invalid",
            loc,
            "JSON decode error",
            &json!({}),
            Some(ctx),
        )])
    })
}

/// Characters before the place of an error.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(|line| line.chars().count())
        .sum();
    let line = text
        .split_inclusive('\n')
        .nth(line.saturating_sub(1))
        .unwrap_or_default();
    let within = line.char_indices().take_while(|(at, _)| at + 1 < column).count();
    before + within
}

/// What is wrong, in the words clients of the API know.
fn words(error: &str) -> &'static str {
    for (ours, theirs) in [
        (
            "key must be a string",
            "Expecting property name enclosed in double quotes",
        ),
        (
            "trailing comma",
            "Expecting property name enclosed in double quotes",
        ),
        ("expected `:`", "Expecting ':' delimiter"),
        ("expected `,`", "Expecting ',' delimiter"),
        ("trailing characters", "Extra data"),
        ("EOF while parsing a string", "Unterminated string starting at"),
        ("control character", "Invalid control character at"),
        ("invalid escape", "Invalid \\escape"),
        ("surrogate", "Invalid \\uXXXX escape"),
        ("recursion limit", "Too deeply nested"),
    ] {
        if error.contains(ours) {
            return theirs;
        }
    }
    "Expecting value"
}

/// The query string as an object of texts; of a name given twice the last counts.
pub(super) fn query(request: &HttpRequest) -> Map<String, Value> {
    let Ok(pairs) = web::Query::<Vec<(String, String)>>::from_query(request.query_string()) else {
        return Map::new();
    };
    pairs
        .into_inner()
        .into_iter()
        .map(|(name, value)| (name, Value::from(value)))
        .collect()
}
