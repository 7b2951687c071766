//! Request bodies: read after authentication, bounded in size, and parsed so that errors name the field.

mod wording;

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Ready, ready};
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::{FromRequest, HttpRequest, web};
use futures_util::StreamExt;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::objects::Objects;
use super::query::shown_name;
use super::weight;
use crate::capacity::{Budget, Load, Share, Tenant, large_body_permits, run_heavy};
use crate::domain::error::DomainError;
use crate::domain::nearest::nearest;

/// Bodies above this size are parsed on a blocking thread.
const LARGE: usize = 256 * 1024;
/// Longest time a received body waits for a large-body permit.
const LARGE_WAIT: Duration = Duration::from_secs(60);
/// Idle and total time-outs for reading a body: a stalled caller must not hold a permit.
const SILENCE: Duration = Duration::from_secs(10);
const WHOLE: Duration = Duration::from_secs(120);

/// Longest path of a field that an error names, in bytes.
const MAX_PATH: usize = 300;
/// The byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The body of a request, not yet read.
pub struct Body {
    payload: Payload,
    /// The size that the request announces, in bytes.
    announced: Option<u64>,
}

impl FromRequest for Body {
    type Error = actix_web::Error;
    type Future = Ready<Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let length = request.headers().get(CONTENT_LENGTH);
        let announced = length.and_then(|length| length.to_str().ok()?.parse().ok());
        ready(Ok(Self {
            payload: payload.take(),
            announced,
        }))
    }
}

/// Reads and parses a small JSON body of at most `limit` bytes. The body does not count against the budget.
///
/// # Errors
/// `TooLarge`, or `Invalid` with the path of the field.
pub async fn json<T: DeserializeOwned>(body: Body, limit: usize) -> Result<T, DomainError> {
    let bytes = read(body, limit, None).await?;
    parse(&bytes)
}

/// [`json`] for a body whose fields may all be left out; `fields` are their names. Unknown fields are ignored beside
/// known ones. A body with unknown fields alone is refused: a mistyped field is not one that was left out.
///
/// # Errors
/// As [`json`], and `Invalid` with the name of the unknown field.
pub async fn json_of_optional<T: DeserializeOwned>(
    body: Body,
    limit: usize,
    fields: &[&'static str],
) -> Result<T, DomainError> {
    let bytes = read(body, limit, None).await?;
    parse_optional(&bytes, fields)
}

/// [`json_of_optional`] for a body that may be left out as a whole: an empty one is `{}`.
///
/// # Errors
/// As [`json_of_optional`].
pub async fn json_or_empty<T: DeserializeOwned>(
    body: Body,
    limit: usize,
    fields: &[&'static str],
) -> Result<T, DomainError> {
    let bytes = read(body, limit, None).await?;
    parse_optional(if bytes.is_empty() { b"{}" } else { &bytes }, fields)
}

/// Reads the body of a route that takes none: it is empty or `{}`. Somebody who sends a field expects it to count.
///
/// # Errors
/// `TooLarge`, or `Invalid` with the name of the field.
pub async fn none(body: Body, limit: usize) -> Result<(), DomainError> {
    let bytes = read(body, limit, None).await?;
    if bytes.is_empty() {
        Ok(())
    } else {
        parse_empty(&bytes)
    }
}

fn parse_empty(bytes: &[u8]) -> Result<(), DomainError> {
    #[derive(Deserialize)]
    struct Empty {}
    let Empty {} = parse(bytes)?;
    match names_of(bytes).into_iter().next() {
        None => Ok(()),
        Some(name) => Err(DomainError::invalid(
            shown_name(&name, "body"),
            "is not known here: this request takes no body",
        )),
    }
}

/// The names of the fields of an object.
fn names_of(bytes: &[u8]) -> BTreeSet<String> {
    let fields: BTreeMap<String, IgnoredAny> = serde_json::from_slice(bytes).unwrap_or_default();
    fields.into_keys().collect()
}

fn parse_optional<T: DeserializeOwned>(bytes: &[u8], fields: &[&'static str]) -> Result<T, DomainError> {
    let value = parse(bytes)?;
    let stated = names_of(bytes);
    let is_known = |name: &String| fields.contains(&name.as_str());
    let Some(unknown) = stated.iter().next().filter(|_| !stated.iter().any(is_known)) else {
        return Ok(value);
    };
    let mut rule = format!(
        "is not known here, and the body has none of {}",
        fields.join(", ")
    );
    if let Some(meant) = nearest(unknown, fields.iter().copied()) {
        rule.push_str(&format!("; did you mean {meant}?"));
    }
    Err(DomainError::invalid(shown_name(unknown, "body"), rule))
}

/// Reads a body of at most `limit` bytes and passes it to `parse`. The caller must keep the returned load alive for as
/// long as the parsed value, so that the bytes stay counted while they occupy memory.
///
/// # Errors
/// `TooLarge`, `TooSlow`, `Busy` when the budget is exhausted, or any error of `parse`.
pub async fn read_counted<T: Send + 'static, E: From<DomainError> + Send + 'static>(
    body: Body,
    limit: usize,
    budget: &Budget,
    tenant: Tenant,
    parse: impl FnOnce(Vec<u8>) -> Result<T, E> + Send + 'static,
) -> Result<(T, Load), E> {
    let mut load = budget.load(tenant);
    let bytes = Vec::from(read(body, limit, Some(&mut load)).await?);
    if bytes.len() < LARGE {
        return Ok((parse(bytes)?, load));
    }
    load.keep(large_body_permit(tenant).await?);
    // The load moves into the task, which runs to its end even if the caller disconnects.
    let (parsed, load) = run_heavy(tenant, move || Ok((parse(bytes), load))).await?;
    Ok((parsed?, load))
}

/// Waits for a large-body permit.
async fn large_body_permit(tenant: Tenant) -> Result<Share, DomainError> {
    let waited = tokio::time::timeout(LARGE_WAIT, large_body_permits().take(tenant)).await;
    let busy = DomainError::Busy { actor: "body reader" };
    waited.ok().flatten().ok_or(busy)
}

/// Reads the bytes of a body and counts them in `load`, if there is one, as they arrive.
async fn read(body: Body, limit: usize, load: Option<&mut Load>) -> Result<web::BytesMut, DomainError> {
    // Refused unread: the client would send it for nothing.
    let most = u64::try_from(limit).unwrap_or(u64::MAX);
    if body.announced.is_some_and(|size| size > most) {
        return Err(DomainError::TooLarge { limit });
    }
    let read = tokio::time::timeout(WHOLE, read_chunks(body.payload, limit, load)).await;
    let mut bytes = read.unwrap_or(Err(DomainError::TooSlow))?;
    // RFC 8259 section 8.1 lets a reader ignore the mark that some editors begin a file with.
    if bytes.starts_with(BYTE_ORDER_MARK) {
        let _ = bytes.split_to(BYTE_ORDER_MARK.len());
    }
    Ok(bytes)
}

async fn read_chunks(
    mut payload: Payload,
    limit: usize,
    mut load: Option<&mut Load>,
) -> Result<web::BytesMut, DomainError> {
    let mut body = web::BytesMut::new();
    while let Some(chunk) = next_chunk(&mut payload).await? {
        if body.len() + chunk.len() > limit {
            return Err(DomainError::TooLarge { limit });
        }
        if let Some(load) = &mut load
            && let Err(error) = load.grow(chunk.len())
        {
            let left = limit - body.len() - chunk.len();
            drop(body);
            drain(payload, left).await;
            return Err(error);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn next_chunk(payload: &mut Payload) -> Result<Option<web::Bytes>, DomainError> {
    let next = tokio::time::timeout(SILENCE, payload.next()).await;
    let chunk = next.map_err(|_| DomainError::TooSlow)?.transpose();
    chunk.map_err(|error| DomainError::invalid("body", format!("could not be read: {error}")))
}

/// Reads and discards the rest of a refused body. Many clients read the response only after sending the whole body, and
/// would see a connection reset instead.
async fn drain(mut payload: Payload, mut left: usize) {
    while let Ok(Some(chunk)) = next_chunk(&mut payload).await {
        let Some(rest) = left.checked_sub(chunk.len()) else {
            return;
        };
        left = rest;
    }
}

/// Parses a JSON body into its type.
///
/// # Errors
/// `Invalid` with the path of the field and the rule.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DomainError> {
    weight::check(bytes)?;
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(Objects(&mut deserializer)).map_err(|error| {
        let path = error.path().to_string();
        describe(&path, error.inner())
    })?;
    deserializer.end().map_err(|error| describe(".", &error))?;
    Ok(value)
}

/// Checks a field by the rule of its type.
///
/// # Errors
/// `Invalid` with the name of the field and the rule.
pub fn field<F, T: TryFrom<F, Error: ToString>>(name: &str, value: F) -> Result<T, DomainError> {
    T::try_from(value).map_err(|rule| DomainError::invalid(name, rule.to_string()))
}

/// As [`field`], for a field that may be absent.
///
/// # Errors
/// As [`field`].
pub fn optional<F, T: TryFrom<F, Error: ToString>>(
    name: &str,
    value: Option<F>,
) -> Result<Option<T>, DomainError> {
    value.map(|value| field(name, value)).transpose()
}

fn describe(path: &str, error: &serde_json::Error) -> DomainError {
    let text = error.to_string();
    if !error.is_data() {
        return DomainError::invalid("body", format!("is not valid JSON: {text}"));
    }
    let message = text.split(" at line ").next().unwrap_or(&text);
    // The path contains keys chosen by the caller.
    let path = if path.len() > MAX_PATH { "." } else { path };
    let (place, rule) = wording::place_and_rule(path, message);
    DomainError::invalid(place, rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::tlp::Tlp;

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[allow(dead_code)]
        tlp: Option<Tlp>,
        #[allow(dead_code)]
        score: f64,
    }

    #[derive(Debug, Deserialize)]
    struct Outer {
        #[allow(dead_code)]
        items: Vec<Inner>,
    }

    #[test]
    fn a_body_with_unknown_fields_alone_is_refused() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Change {
            role: Option<String>,
            disabled: Option<bool>,
        }
        let read = |text: &str| parse_optional::<Change>(text.as_bytes(), &["role", "disabled"]);
        for text in ["{}", r#"{"role":null}"#, r#"{"disabled":true,"note":1}"#] {
            assert!(read(text).is_ok(), "{text}");
        }
        for (text, want) in [
            (
                r#"{"Disable":true}"#,
                "Disable: is not known here, and the body has none of role, disabled; did you mean disabled?",
            ),
            (
                r#"{"x":1}"#,
                "x: is not known here, and the body has none of role, disabled",
            ),
            (r#"{"a\nb":1}"#, "body: is not known here"),
            ("[]", "body: must be an object"),
            (r#"{"disabled":1}"#, "disabled: must be true or false"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(want), "{text} gave {error}");
        }
    }

    #[test]
    fn a_body_where_none_is_taken_has_no_field() {
        for text in ["{}", " { } "] {
            assert!(parse_empty(text.as_bytes()).is_ok(), "{text}");
        }
        for (text, want) in [
            (
                r#"{"entity_ids":[]}"#,
                "entity_ids: is not known here: this request takes no body",
            ),
            (r#"{"a\nb":1}"#, "body: is not known here"),
            ("[]", "body: must be an object"),
            ("null", "body: must be an object"),
            ("x", "body: is not valid JSON"),
            ("{} {}", "body: is not valid JSON"),
        ] {
            let error = parse_empty(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(want), "{text} gave {error}");
        }
    }

    #[test]
    fn errors_name_the_field_and_the_rule() {
        for (text, want) in [
            ("{", "body: is not valid JSON"),
            ("{}", "items: is required"),
            (r#"{"items":[{"score":1},{}]}"#, "items[1].score: is required"),
            (r#"{"items":[{"score":"x"}]}"#, "items[0].score: must be a number"),
            (r#"{"items":[{"score":NaN}]}"#, "body: is not valid JSON"),
            (
                r#"{"items":[{"score":1,"tlp":"PINK"}]}"#,
                "items[0].tlp: must be one of TLP:WHITE",
            ),
            (
                r#"{"items":[]} x"#,
                "body: is not valid JSON: trailing characters",
            ),
            ("[]", "body: must be an object"),
            ("[[]]", "body: must be an object"),
            ("5", "body: must be an object"),
            (r#"{"items":[[null,1]]}"#, "items[0]: must be an object"),
            (r#"{"items":["x"]}"#, "items[0]: must be an object"),
        ] {
            let error = parse::<Outer>(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(want), "{text} gave {error}");
        }
        let long = format!(r#"{{"items":[{{"score":"{}"}}]}}"#, "x".repeat(100_000));
        let error = parse::<Outer>(long.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "items[0].score: must be a number");
        #[derive(Debug, Deserialize)]
        struct Login {
            #[allow(dead_code)]
            admin_password: String,
        }
        let error = parse::<Login>(br#"{"admin_password":202401019999}"#).unwrap_err();
        assert_eq!(error.to_string(), "admin_password: must be a string");
        let deep = format!("{{\"items\":{}", "[".repeat(100_000));
        assert!(parse::<Outer>(deep.as_bytes()).is_err());
        let deep = "[".repeat(100_000);
        let error = parse::<serde_json::Value>(deep.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains("recursion limit"), "{error}");
    }
}
