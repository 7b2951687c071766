//! One request with the waits and the retry that its answer allows.

use std::time::Duration;

use chrono::DateTime;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{StatusCode, Url};

use super::date::response_date;
use super::error::title_of;
use super::{Fetch, PullError};
use crate::outbound::{OutboundError, OutboundResponse};

/// The media type of the standard (section 1.6.8). medallion answers 406 without the version.
const TAXII: &str = "application/taxii+json;version=2.1";
/// The wait after 429 without a time, and before the retry after a server error.
const DEFAULT_WAIT: Duration = Duration::from_secs(5);
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// What a pull may still spend on waiting.
#[derive(Debug)]
pub(super) struct WaitBudget {
    left: Duration,
}

impl WaitBudget {
    pub(super) fn new(max_wait: Duration) -> Self {
        WaitBudget { left: max_wait }
    }

    /// Waits at least a second, so that a server that says "now" for ever is given up in the end.
    async fn wait<F: Fetch>(&mut self, fetch: &F, time: Duration) -> bool {
        let time = time.max(Duration::from_secs(1));
        let Some(left) = self.left.checked_sub(time) else {
            return false;
        };
        self.left = left;
        fetch.pause(time).await;
        true
    }
}

/// Sends a TAXII request without retry.
pub(super) async fn get<F: Fetch>(fetch: &F, url: &Url) -> Result<OutboundResponse, OutboundError> {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(TAXII))]);
    fetch.get(url, headers).await
}

/// Sends the request for a page of `objects` objects. Waits when the server asks for it; repeats it once after another
/// server error if it is `repeatable`.
///
/// # Errors
/// [`PullError`] unless the status is a success.
pub(super) async fn send<F: Fetch>(
    fetch: &F,
    url: &Url,
    objects: u32,
    repeatable: bool,
    patience: &mut WaitBudget,
) -> Result<OutboundResponse, PullError> {
    let mut retried = !repeatable;
    loop {
        let answer = get(fetch, url)
            .await
            .map_err(|error| PullError::of_request(error, objects))?;
        let status = answer.status;
        if status.is_success() {
            return Ok(answer);
        }
        let asks = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        );
        let retry_after = asks.then(|| retry_after(&answer.headers)).flatten();
        let failed = PullError::Status {
            status,
            retry_after,
            title: title_of(&answer.body),
        };
        let wait = match status {
            StatusCode::TOO_MANY_REQUESTS => retry_after.or(Some(DEFAULT_WAIT)),
            StatusCode::SERVICE_UNAVAILABLE if retry_after.is_some() => retry_after,
            _ if status.is_server_error() && !retried => {
                retried = true;
                Some(RETRY_WAIT)
            }
            _ => None,
        };
        match wait {
            Some(time) if patience.wait(fetch, time).await => {}
            _ => return Err(failed),
        }
    }
}

/// `Retry-After` (RFC 9110 section 10.2.3). A date counts from the server's own `Date`, so that no clock here matters.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = DateTime::parse_from_rfc2822(text).ok()?.to_utc();
    let now = response_date(headers)?;
    Some((until - now).to_std().unwrap_or_default())
}
