//! Reads bodies and query strings into fields.

use actix_web::HttpRequest;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::LocalState;
use super::error::LocalError;
use super::input::{BYTES_PER_CHAR, ValidJson};
use super::openapi::PARAMETERS;
use super::validate::{Fields, issue, no_body};
use crate::capacity::Load;
use crate::http::body::{self, Body};
use crate::http::query::{self, BadQuery, shown_name};

/// Allowance for field names, numbers, whitespace and unknown fields, in bytes.
const ROOM: usize = 64 * 1024;
const NO_EXTRA: &str = "Extra inputs are not permitted";

/// Size limit, in bytes, of a body whose fields have `chars` characters in total, however they are escaped.
pub(super) fn limit_for(state: &LocalState, chars: usize) -> usize {
    state.settings().web.body_limit.min(ROOM + BYTES_PER_CHAR * chars)
}

/// Reads the known fields of a JSON body of at most `limit` bytes. The load must be kept until the work on them ends.
/// The content type is ignored.
pub(super) async fn fields_of<T: Send + 'static>(
    state: &LocalState,
    payload: Body,
    limit: usize,
    take: impl FnOnce(&mut Fields<'_>) -> T + Send + 'static,
) -> Result<(T, Load), LocalError> {
    let read = move |bytes: Vec<u8>| {
        let text = json_of(&bytes)?.ok_or_else(no_body)?;
        let body: &RawValue = serde_json::from_str(text).map_err(|_| LocalError::UNREADABLE)?;
        let mut fields = Fields::of_body(body)?;
        let taken = take(&mut fields);
        fields.finish(taken)
    };
    body::read_counted(payload, limit, &state.bodies, None, read).await
}

/// Reads a small JSON body of any shape. An empty body is null.
pub(super) async fn json_body(state: &LocalState, payload: Body, limit: usize) -> Result<Value, LocalError> {
    let read = |bytes: Vec<u8>| match json_of(&bytes)? {
        Some(text) => serde_json::from_str(text).map_err(|_| LocalError::UNREADABLE),
        None => Ok(Value::Null),
    };
    let (value, _load) = body::read_counted(payload, limit, &state.bodies, None, read).await?;
    Ok(value)
}

/// Reads the fields of the query string.
pub(super) fn query_of<T>(
    request: &HttpRequest,
    take: impl FnOnce(&mut Fields<'_>) -> T,
) -> Result<T, LocalError> {
    let query = query(request);
    let mut fields = Fields::of_query(&query);
    let taken = take(&mut fields);
    fields.finish(taken)
}

/// The text of a body, checked to be JSON; `None` if it is blank.
fn json_of(bytes: &[u8]) -> Result<Option<&str>, LocalError> {
    let text = std::str::from_utf8(bytes).map_err(|_| LocalError::UNREADABLE)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    check(text)?;
    Ok(Some(text))
}

/// Checks that the text is JSON.
fn check(text: &str) -> Result<(), LocalError> {
    let checked: Result<ValidJson, _> = serde_json::from_str(text);
    checked.map(drop).map_err(|error| {
        let (place, said) = broken(text, &error);
        let loc = vec![json!("body"), json!(place)];
        let ctx = json!({"error": said});
        LocalError::issues(&[issue(
            "json_invalid",
            loc,
            "JSON decode error",
            json!({}),
            Some(ctx),
        )])
    })
}

const NAME: &str = "Expecting property name enclosed in double quotes";
const VALUE: &str = "Expecting value";
const COMMA: &str = "Expecting ',' delimiter";

/// The offset of a syntax error, in characters, and the message that clients of the API expect.
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
    let end = text.chars().count();
    let ending = TruncatedEnd::of(text.trim_end());
    if let Some((start, false)) = ending.string {
        return (start, "Unterminated string starting at");
    }
    let said = if message.contains("an object") {
        match ending.last {
            Some('{' | ',') => NAME,
            Some('"') if ending.before_string != Some(':') => "Expecting ':' delimiter",
            Some(_) | None => COMMA,
        }
    } else if message.contains("a list") && ending.last != Some('[') {
        COMMA
    } else {
        // A truncated word or number is reported at its start.
        return match ending.word {
            0 => (end, VALUE),
            word => (ending.chars - word, VALUE),
        };
    };
    (end, said)
}

/// How a truncated JSON text ends. Lengths are in characters.
#[derive(Debug, Default)]
struct TruncatedEnd {
    chars: usize,
    last: Option<char>,
    /// Where the last string begins, and whether it is closed.
    string: Option<(usize, bool)>,
    /// The last non-blank character before the last string.
    before_string: Option<char>,
    /// Length of the trailing word or number.
    word: usize,
}

impl TruncatedEnd {
    fn of(text: &str) -> Self {
        let mut ending = Self::default();
        let (mut escaped, mut visible) = (false, None);
        for (at, c) in text.chars().enumerate() {
            match &mut ending.string {
                Some((_, false)) if escaped => escaped = false,
                Some((_, ends @ false)) if c == '"' => *ends = true,
                Some((_, false)) => escaped = c == '\\',
                _ if c == '"' => {
                    ending.string = Some((at, false));
                    ending.before_string = visible;
                }
                _ => {}
            }
            let part_of_word = c.is_alphanumeric() || matches!(c, '-' | '+' | '.');
            ending.word = if part_of_word { ending.word + 1 } else { 0 };
            visible = if c.is_whitespace() { visible } else { Some(c) };
            ending.last = Some(c);
            ending.chars = at + 1;
        }
        ending
    }
}

/// Byte offset of an error.
fn at(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1)
}

/// The text up to `at`, which may be inside a character or past the end.
fn head(text: &str, at: usize) -> &str {
    let mut ends = (0..=at.min(text.len())).rev();
    ends.find_map(|end| text.get(..end)).unwrap_or_default()
}

/// An invalid escape is reported at its backslash; an invalid `\u` escape one character further.
fn bad_escape(text: &str, at: usize) -> (usize, &'static str) {
    let start = head(text, at + 1).rfind('\\').unwrap_or(0);
    let chars = text.get(..start).map_or(0, |before| before.chars().count());
    if text.get(start + 1..).is_some_and(|rest| rest.starts_with('u')) {
        (chars + 1, "Invalid \\uXXXX escape")
    } else {
        (chars, "Invalid \\escape")
    }
}

/// The error message that clients of the API expect.
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

/// The query string as a JSON object of strings; a repeated parameter is a list of them. One that is not UTF-8 is left
/// out: [`check_query`] refuses it.
pub(super) fn query(request: &HttpRequest) -> Map<String, Value> {
    let mut map: Map<String, Value> = Map::new();
    for (name, value) in query::pairs(request.query_string()).unwrap_or_default() {
        let value = Value::from(value);
        match map.get_mut(&name) {
            None => drop(map.insert(name, value)),
            Some(Value::Array(all)) => all.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }
    map
}

/// Refuses query parameters that the route of a request doesn't know.
///
/// # Errors
/// 422 with the name of the parameter and the nearest known one.
pub(super) fn check_query(request: &HttpRequest) -> Result<(), LocalError> {
    PARAMETERS.check(request).map_err(|bad| {
        let (kind, name, msg) = match bad {
            BadQuery::NotText(name) => {
                let msg = "Input should be a valid string, unable to parse raw data as a unicode string";
                ("string_unicode", name, msg.to_owned())
            }
            BadQuery::Unknown(name, None) => ("extra_forbidden", name, NO_EXTRA.to_owned()),
            BadQuery::Unknown(name, Some(meant)) => (
                "extra_forbidden",
                name,
                format!("{NO_EXTRA}; did you mean '{meant}'?"),
            ),
        };
        let place = vec![json!("query"), json!(shown_name(&name, "query string"))];
        LocalError::issues(&[issue(kind, place, msg, Value::Null, None)])
    })
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
