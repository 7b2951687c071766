//! Request bodies: read after the caller is known, bounded, and parsed so that an error names the field.

use std::time::Duration;

use actix_web::web;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::domain::error::DomainError;

/// Above this size parsing leaves the server's threads.
pub(super) const LARGE: usize = 256 * 1024;
/// Large bodies that are read and parsed at a time.
const LARGE_AT_A_TIME: usize = 8;
const LARGE_WAIT: Duration = Duration::from_secs(30);
/// Longest silence within a body, and longest time for all of it: a caller that stalls must not keep a place.
const SILENCE: Duration = Duration::from_secs(10);
const WHOLE: Duration = Duration::from_secs(120);

/// Reads and parses a JSON body of at most `limit` bytes.
///
/// # Errors
/// `TooLarge`, or `Invalid` with the path of the field.
pub async fn json<T: DeserializeOwned + Send + 'static>(
    payload: web::Payload,
    limit: usize,
) -> Result<T, DomainError> {
    let (bytes, _place) = read(payload, limit).await?;
    if bytes.len() < LARGE {
        return parse(&bytes);
    }
    let parsed = tokio::task::spawn_blocking(move || parse(&bytes)).await;
    parsed.unwrap_or_else(|error| Err(DomainError::internal("the request failed unexpectedly", error)))
}

/// Waits for a place among the large bodies: parsed, one may take many times its size.
async fn large_place() -> Result<SemaphorePermit<'static>, DomainError> {
    static PLACES: Semaphore = Semaphore::const_new(LARGE_AT_A_TIME);
    let busy = DomainError::Busy { actor: "body reader" };
    match tokio::time::timeout(LARGE_WAIT, PLACES.acquire()).await {
        Ok(Ok(place)) => Ok(place),
        Ok(Err(_)) | Err(_) => Err(busy),
    }
}

pub(super) type Place = Option<SemaphorePermit<'static>>;

/// The body, and its place among the large ones if it is one.
pub(super) async fn read(payload: web::Payload, limit: usize) -> Result<(web::BytesMut, Place), DomainError> {
    let read = tokio::time::timeout(WHOLE, read_chunks(payload, limit)).await;
    read.unwrap_or(Err(DomainError::TooSlow))
}

async fn read_chunks(mut payload: web::Payload, limit: usize) -> Result<(web::BytesMut, Place), DomainError> {
    let mut body = web::BytesMut::new();
    let mut place = None;
    loop {
        let next = tokio::time::timeout(SILENCE, payload.next()).await;
        let Some(chunk) = next.map_err(|_| DomainError::TooSlow)? else {
            return Ok((body, place));
        };
        let chunk =
            chunk.map_err(|error| DomainError::invalid("body", format!("could not be read: {error}")))?;
        if body.len() + chunk.len() > limit {
            return Err(DomainError::TooLarge { limit });
        }
        if body.len() + chunk.len() >= LARGE && place.is_none() {
            place = Some(large_place().await?);
        }
        body.extend_from_slice(&chunk);
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DomainError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        describe(&path, error.inner())
    })?;
    deserializer.end().map_err(|error| describe(".", &error))?;
    Ok(value)
}

fn describe(path: &str, error: &serde_json::Error) -> DomainError {
    let text = error.to_string();
    let rule = text.split(" at line ").next().unwrap_or(&text);
    if !error.is_data() {
        return DomainError::invalid("body", format!("is not valid JSON: {text}"));
    }
    let field = |name: &str| match path {
        "." => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    if let Some(missing) = rule
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'))
    {
        return DomainError::invalid(field(missing), "is required");
    }
    DomainError::invalid(if path == "." { "body" } else { path }, rule)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

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
    fn errors_name_the_field_and_the_rule() {
        for (text, want) in [
            ("{", "body: is not valid JSON"),
            ("{}", "items: is required"),
            (r#"{"items":[{"score":1},{}]}"#, "items[1].score: is required"),
            (
                r#"{"items":[{"score":"x"}]}"#,
                "items[0].score: invalid type: string \"x\", expected f64",
            ),
            (r#"{"items":[{"score":NaN}]}"#, "body: is not valid JSON"),
            (
                r#"{"items":[{"score":1,"tlp":"PINK"}]}"#,
                "items[0].tlp: must be one of TLP:WHITE",
            ),
            (
                r#"{"items":[]} x"#,
                "body: is not valid JSON: trailing characters",
            ),
            ("[]", "body: invalid length 0"),
        ] {
            let error = parse::<Outer>(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(want), "{text} gave {error}");
        }
        let deep = format!("{{\"items\":{}", "[".repeat(100_000));
        assert!(parse::<Outer>(deep.as_bytes()).is_err());
        let deep = "[".repeat(100_000);
        let error = parse::<serde_json::Value>(deep.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains("recursion limit"), "{error}");
    }
}
