//! Detects a server that sends the same pages for ever, in constant memory.

use sha2::{Digest, Sha256};

use super::envelope::Envelope;

/// Pages in a row with the same objects and dates but a new token after which the server counts as stuck.
const MAX_REPEATS: u32 = 8;

type Fingerprint = [u8; 32];

/// Cycle detection after Brent ("An improved Monte Carlo factorization algorithm", 1980): one page is remembered, the
/// one at the latest power of two.
#[derive(Debug, Default)]
pub(super) struct CycleDetector {
    remembered: Option<Fingerprint>,
    /// Pages since the remembered one, and the number at which another one is remembered.
    since: u64,
    power: u64,
    content: Option<Fingerprint>,
    repeats: u32,
}

impl CycleDetector {
    /// Notes a page that is not the last. True if the server repeats itself: the same token and content as before,
    /// or the same content under ever new tokens.
    pub(super) fn closes(&mut self, asked_after: Option<&str>, page: &Envelope) -> bool {
        let content = content_of(asked_after, page);
        let mut whole = Sha256::new();
        whole.update(content);
        whole.update(page.next.as_deref().unwrap_or_default());
        let whole = Fingerprint::from(whole.finalize());

        let repeated = self.content.replace(content) == Some(content) && !page.objects.is_empty();
        self.repeats = if repeated { self.repeats + 1 } else { 0 };
        if self.remembered == Some(whole) || self.repeats >= MAX_REPEATS {
            return true;
        }
        if self.since == self.power {
            self.remembered = Some(whole);
            self.power = (self.power * 2).max(1);
            self.since = 0;
        }
        self.since += 1;
        false
    }
}

/// The objects of a page with the dates, without the token.
fn content_of(asked_after: Option<&str>, page: &Envelope) -> Fingerprint {
    let mut digest = Sha256::new();
    for text in [
        asked_after,
        page.first_added.as_deref(),
        page.last_added.as_deref(),
    ] {
        digest.update(text.unwrap_or_default());
        digest.update([0]);
    }
    for object in &page.objects {
        digest.update(object.get());
        digest.update([0]);
    }
    digest.update(page.unreadable.to_le_bytes());
    digest.finalize().into()
}
