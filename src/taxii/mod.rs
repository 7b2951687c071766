//! A TAXII 2.1 client that reads the objects of one collection, page by page, without credentials.
//!
//! - [`CollectionUrl`]: the registered URL and the URLs of its pages. [`PullCursor`]: how far the collection is read.
//! - [`Pull`]: one run over the collection. [`PulledPage`]: the objects of one page, as JSON text.
//! - [`PullError`]: what the far side did, in one sentence. [`Fetch`]: the HTTP client below.
//!
//! Guarantees, for a collection that keeps its objects in the order in which they were added (TAXII 2.1 section 3.3):
//!
//! - Every object is delivered at least once, also one that is added later at the instant of the latest one: a bulk
//!   load with one date may be under way, and a server may count in seconds.
//! - An object can be delivered again: each pull repeats the latest instant of the one before, however much was added
//!   then. Others come again after an interruption, after a page that was too large, and where pages are told apart by
//!   date only. The caller recognises them by `id` and `modified`.
//! - The cursor of a page never claims more than the pages up to it. The caller stores it once the page is durable.
//! - A pull ends. Pages, waiting time and retries have limits, and a server that goes round in circles is detected.
//! - Memory is bounded by one page.
//!
//! Where the standard is silent or servers differ from it:
//!
//! - **A page token (`next`) may be used once**, until the server is seen to give each page its own. medallion gives one
//!   token for all pages and moves on with every request, so a second request with it would skip a page. Such a token
//!   is not repeated after a failure, and not stored: the pull begins again where it began.
//! - **`more` without `next`** (section 3.5): the next page is asked for by `added_after`, one step before the date of
//!   the last object, because others may have been added at that instant. If one instant fills a page, a larger page
//!   is asked for.
//! - **`next` without `more`** is followed; `more: false` ends the pull whatever `next` says. `"true"` and 1 are true.
//! - **`added_after` excludes its instant** (section 3.4), but some servers include it. A pull begins one step before
//!   the latest date, which repeats that instant with either kind. The step is the unit of the server's dates: a
//!   second, a millisecond or a microsecond. Pulls of an unchanged collection repeat the same objects and leave the
//!   cursor alone.
//! - **Dates come from `X-TAXII-Date-Added-Last`**, else from the manifest entry of the last object, never from
//!   `modified`. Without either, `added_after` stays as it was and the next pull reads everything again.
//! - **A date in the future** counts as missing: nothing would be added after it, and the feed would end in silence. It
//!   is more than a day later than the answer's `Date`, or than the caller's clock if there is no readable `Date`.
//! - **A page above the size limit** of the HTTP client is asked for again at half the number of objects.

mod collection;
mod cursor;
mod cycle;
mod date;
mod envelope;
mod error;
mod manifest;
mod pull;
mod send;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderMap;

pub use self::collection::{CollectionUrl, CollectionUrlError};
pub use self::cursor::PullCursor;
pub use self::error::{PullError, PullErrorKind};
pub use self::pull::{Pull, PullSettings, PulledPage};
use crate::outbound::{GuardedClient, OutboundError, OutboundResponse};

/// What the client needs from outside: an HTTP client with its own time-out and size limit, and a timer.
pub trait Fetch {
    /// Sends one GET request and reads the whole answer.
    ///
    /// # Errors
    /// [`OutboundError`] if there is no complete answer. A status such as 404 is not an error here.
    fn get(
        &self,
        url: &Url,
        headers: HeaderMap,
    ) -> impl Future<Output = Result<OutboundResponse, OutboundError>> + Send;

    /// Waits before a request is repeated.
    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(time)
    }
}

impl Fetch for GuardedClient {
    fn get(
        &self,
        url: &Url,
        headers: HeaderMap,
    ) -> impl Future<Output = Result<OutboundResponse, OutboundError>> + Send {
        GuardedClient::get(self, url, headers)
    }
}

impl<F: Fetch> Fetch for Arc<F> {
    fn get(
        &self,
        url: &Url,
        headers: HeaderMap,
    ) -> impl Future<Output = Result<OutboundResponse, OutboundError>> + Send {
        F::get(self, url, headers)
    }

    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send {
        F::pause(self, time)
    }
}
