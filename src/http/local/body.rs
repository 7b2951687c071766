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
        let (place, said) = broken(text, &error);
        let loc = vec![json!("body"), json!(place)];
        let ctx = json!({"error": said});
        LocalError::issues(&[issue(
            "json_invalid",
            loc,
            "JSON decode error",
            &json!({}),
            Some(ctx),
        )])
    })
}

const NAME: &str = "Expecting property name enclosed in double quotes";
const VALUE: &str = "Expecting value";
const COMMA: &str = "Expecting ',' delimiter";

/// The characters before what is wrong, and the words for it that clients of the API know.
fn broken(text: &str, error: &serde_json::Error) -> (usize, &'static str) {
    let message = error.to_string();
    if message.contains("invalid escape") || message.contains("surrogate") {
        return bad_escape(text, at(text, error));
    }
    if !error.is_eof() {
        let at = text
            .get(..at(text, error))
            .map_or(0, |before| before.chars().count());
        return (at, words(&message));
    }
    let chars: Vec<char> = text.trim_end().chars().collect();
    let strings = strings(&chars);
    if let Some((start, None)) = strings.last() {
        return (*start, "Unterminated string starting at");
    }
    let end = text.chars().count();
    let said = if message.contains("an object") {
        match chars.last() {
            Some('{' | ',') => NAME,
            Some('"') if is_key(&chars, strings.last().map_or(0, |(start, _)| *start)) => {
                "Expecting ':' delimiter"
            }
            Some(_) | None => COMMA,
        }
    } else if message.contains("a list") && chars.last() != Some(&'[') {
        COMMA
    } else {
        // A word or number that ends early is wrong from its start.
        let part = chars
            .iter()
            .rev()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '-' | '+' | '.'));
        return match part.count() {
            0 => (end, VALUE),
            part => (chars.len() - part, VALUE),
        };
    };
    (end, said)
}

/// Bytes before the place of an error.
fn at(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1)
}

/// The text before a place that may be inside a character or behind the end.
fn head(text: &str, at: usize) -> &str {
    let mut ends = (0..=at.min(text.len())).rev();
    ends.find_map(|end| text.get(..end)).unwrap_or_default()
}

/// An escape is wrong from its backslash, or from what follows `\\`.
fn bad_escape(text: &str, at: usize) -> (usize, &'static str) {
    let start = head(text, at + 1).rfind('\\').unwrap_or(0);
    let chars = text.get(..start).map_or(0, |before| before.chars().count());
    if text.get(start + 1..).is_some_and(|rest| rest.starts_with('u')) {
        (chars + 1, "Invalid \\uXXXX escape")
    } else {
        (chars, "Invalid \\escape")
    }
}

/// Where strings begin and end.
fn strings(chars: &[char]) -> Vec<(usize, Option<usize>)> {
    let mut found: Vec<(usize, Option<usize>)> = Vec::new();
    let mut escaped = false;
    for (at, c) in chars.iter().enumerate() {
        match found.last_mut().filter(|(_, end)| end.is_none()) {
            Some(_) if escaped => escaped = false,
            Some((_, end)) if *c == '"' => *end = Some(at),
            Some(_) => escaped = *c == '\\',
            None if *c == '"' => found.push((at, None)),
            None => {}
        }
    }
    found
}

/// Whether the string that begins there is a key: no colon stands before it.
fn is_key(chars: &[char], start: usize) -> bool {
    let before = chars.iter().take(start).rev();
    before.copied().find(|c| !c.is_whitespace()) != Some(':')
}

/// What is wrong, in the words clients of the API know.
fn words(error: &str) -> &'static str {
    for (ours, theirs) in [
        ("key must be a string", NAME),
        ("trailing comma", NAME),
        ("expected `:`", "Expecting ':' delimiter"),
        ("expected `,`", COMMA),
        ("trailing characters", "Extra data"),
        ("control character", "Invalid control character at"),
        ("recursion limit", "Too deeply nested"),
    ] {
        if error.contains(ours) {
            return theirs;
        }
    }
    VALUE
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_placed_where_clients_look_for_it() {
        for (text, place, said) in [
            ("{", 1, NAME),
            ("{\"a\"", 4, "Expecting ':' delimiter"),
            ("{\"a\":", 5, VALUE),
            ("{\"a\":1", 6, COMMA),
            ("{\"a\":\"b\"", 8, COMMA),
            ("[", 1, VALUE),
            ("[1", 2, COMMA),
            ("[1,", 3, VALUE),
            ("{\"query\":\"abc", 9, "Unterminated string starting at"),
            ("{\"a\":\"\\u12\"}", 7, "Invalid \\uXXXX escape"),
            ("{\"a\":\"\\x\"}", 6, "Invalid \\escape"),
            ("nul", 0, VALUE),
            ("nope", 1, VALUE),
            ("{\"é\": }", 6, VALUE),
            ("{} x", 3, "Extra data"),
            ("{bad", 1, NAME),
        ] {
            let error = serde_json::from_str::<Value>(text).unwrap_err();
            assert_eq!(broken(text, &error), (place, said), "{text}: {error}");
        }
    }
}
