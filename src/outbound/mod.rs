//! The only way out: every HTTP request that the service sends goes through a [`GuardedClient`].
//!
//! - [`Policy`]: where a client may connect to. Feeds are chosen by users: [`Policy::public`] lets them reach allowed
//!   hosts at public addresses only. Model endpoints are chosen by the operator: [`Policy::for_endpoint`].
//! - [`Rule`] and [`Refusal`]: what a destination is refused for.
//! - [`Limits`]: time and bytes of one exchange.
//!
//! Names are resolved by a resolver that checks every address that it returns, so a connection can only go to a
//! checked address, whatever the name means a moment later (DNS rebinding).

mod body;
mod client;
mod resolve;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

pub use self::client::{GuardedClient, OutboundStream, USER_AGENT};
pub use self::resolve::SystemResolver;
use crate::config::FeedSettings;
pub use crate::domain::destination::{Policy, Refusal, Rule};

/// Redirects that one request follows; each is checked like the first URL.
pub const MAX_REDIRECTS: usize = 5;
/// Time-out of opening one connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A complete answer.
pub struct OutboundResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Decompressed; at most [`Limits::response_cap`] bytes.
    pub body: Bytes,
}

/// Shows no content: headers and bodies may hold secrets.
impl fmt::Debug for OutboundResponse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.body.len();
        out.debug_struct("Answer")
            .field("status", &self.status)
            .field("bytes", &bytes)
            .finish_non_exhaustive()
    }
}

/// Why there is no answer. The texts hold no secrets, and of the URL the host only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The policy forbids the destination.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The name has no address, or no connection came about.
    #[error("the server can't be reached: {0}")]
    Unreachable(String),
    /// The exchange took longer than its time-out, from the name's resolution to the last byte.
    #[error("no complete answer within {ms} ms")]
    Timeout { ms: u64 },
    /// The decompressed answer has more bytes than allowed.
    #[error("the answer is larger than {cap_bytes} bytes")]
    TooLarge { cap_bytes: usize },
    /// The exchange began and failed: the connection broke, or the answer is not HTTP or not gzip.
    #[error("the exchange failed: {0}")]
    Broken(String),
}

/// Limits of one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time-out of the whole: resolution, connection, all redirects, headers and body.
    pub total_timeout: Duration,
    /// Time-out of opening one connection.
    pub connect_timeout: Duration,
    /// Most bytes of an answer's body, after decompression.
    pub response_cap: usize,
    /// Whether the body of an answer other than 2xx is read. Without, such an answer has an empty body at once.
    pub error_bodies: bool,
}

impl Limits {
    /// Limits of a time and a number of bytes.
    pub fn new(total_timeout: Duration, response_cap: usize) -> Self {
        Self {
            total_timeout,
            connect_timeout: CONNECT_TIMEOUT,
            response_cap,
            error_bodies: true,
        }
    }
}

impl From<&FeedSettings> for Limits {
    fn from(feeds: &FeedSettings) -> Self {
        Self::new(Duration::from_millis(feeds.timeout_ms), feeds.response_kib << 10)
    }
}
