//! One run over a collection.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde_json::value::RawValue;

use super::collection::{CollectionUrl, PageQuery};
use super::cursor::{PullCursor, ResumePoint};
use super::cycle::CycleDetector;
use super::date::{AddedAt, later};
use super::envelope::Envelope;
use super::manifest::ObjectVersion;
use super::send::{WaitBudget, get, send};
use super::{Fetch, PullError};
use crate::config::FeedSettings;
use crate::outbound::OutboundError;

/// The limits of one pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullSettings {
    /// Objects asked for per page, unless the collection's URL has a `limit`.
    pub page_objects: u32,
    /// Up to how many objects a page is enlarged when more than a page were added at one instant and the server gives
    /// no page token.
    pub max_page_objects: u32,
    /// Pages delivered; at least 2, because it takes two to see whether the next pull can go on behind them. It can't
    /// if the server has one token for all pages: what a pull has to read from such a server must fit this limit.
    pub max_pages: u32,
    /// Total time spent waiting because the server asked for it.
    pub max_wait: Duration,
}

impl Default for PullSettings {
    fn default() -> Self {
        PullSettings {
            page_objects: 100,
            max_page_objects: 6_400,
            max_pages: 1_000,
            max_wait: Duration::from_secs(60),
        }
    }
}

impl From<&FeedSettings> for PullSettings {
    fn from(feeds: &FeedSettings) -> Self {
        let capped = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let page_objects = capped(feeds.page_objects);
        let default = PullSettings::default();
        PullSettings {
            page_objects,
            max_page_objects: default.max_page_objects.max(page_objects),
            max_pages: capped(feeds.max_pages),
            ..default
        }
    }
}

/// One page of a collection.
#[derive(Debug)]
pub struct PulledPage {
    /// The STIX objects, as the server wrote them. Not validated.
    pub objects: Vec<Box<RawValue>>,
    /// Entries that are not JSON objects.
    pub unreadable: usize,
    /// No page follows.
    pub last: bool,
    /// Where to go on once this page is durable.
    pub cursor: PullCursor,
}

/// One run over a collection, from a cursor to the end.
#[derive(Debug)]
pub struct Pull<F> {
    fetch: F,
    collection: CollectionUrl,
    settings: PullSettings,
    /// The caller's clock.
    now: DateTime<Utc>,
    /// Where the pull began; after the last page, how far it got.
    start: Option<String>,
    at: PageRequest,
    /// The size of pages that are not enlarged.
    page_objects: u32,
    newest: Option<AddedAt>,
    /// The last object delivered, if the server did not tell its date.
    undated: Option<ObjectVersion>,
    pages: u32,
    /// A refused token made the pull begin again; that happens once.
    refused: bool,
    done: bool,
    patience: WaitBudget,
    cycle: CycleDetector,
}

/// A page to ask for.
#[derive(Debug, Clone)]
struct PageRequest {
    added_after: Option<String>,
    limit: u32,
    token: Option<PageToken>,
}

#[derive(Debug, Clone)]
struct PageToken {
    text: String,
    kind: TokenKind,
    /// The server gave it to this pull.
    fresh: bool,
    /// A request with it has been sent.
    sent: bool,
}

/// Whether a token stands for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    /// Not known yet.
    Unknown,
    /// Each page has its own token, so one can be used again.
    PerPage,
    /// One token for all pages: the server moves on with each use.
    Shared,
}

/// What follows a page.
enum Step {
    To(PageRequest),
    /// Nothing yet: the same page must be asked for with more objects.
    Enlarge,
    End,
}

impl PageToken {
    /// Whether a request with it can't skip a page.
    fn is_safe(&self) -> bool {
        !self.sent || self.kind == TokenKind::PerPage
    }
}

impl<F: Fetch> Pull<F> {
    /// Begins where the cursor says. Nothing is sent yet. `now` tells which dates are in the future where a server
    /// does not send its own time.
    pub fn new(
        fetch: F,
        collection: CollectionUrl,
        cursor: PullCursor,
        settings: PullSettings,
        now: DateTime<Utc>,
    ) -> Self {
        let start = cursor.added_after.or_else(|| collection.added_after.clone());
        let page_objects = collection.limit.unwrap_or(settings.page_objects).max(1);
        let mut pull = Pull {
            at: PageRequest {
                added_after: start.clone(),
                limit: page_objects,
                token: None,
            },
            fetch,
            collection,
            now,
            start,
            page_objects,
            newest: None,
            undated: None,
            pages: 0,
            refused: false,
            done: false,
            patience: WaitBudget::new(settings.max_wait),
            cycle: CycleDetector::default(),
            settings,
        };
        pull.resume(cursor.unfinished.unwrap_or_default());
        pull
    }

    /// Goes on with an earlier pull, if that is possible without skipping a page.
    fn resume(&mut self, rest: ResumePoint) {
        if rest.next.is_none() && rest.from.is_none() {
            return;
        }
        self.newest = rest.newest.as_deref().and_then(AddedAt::parse);
        if rest.from.is_some() {
            self.at.added_after = rest.from;
        }
        if let Some(text) = rest.next {
            self.page_objects = rest.limit.unwrap_or(self.page_objects).max(1);
            self.at.limit = self.page_objects;
            // No other token is stored.
            let kind = TokenKind::PerPage;
            self.at.token = Some(PageToken {
                text,
                kind,
                fresh: false,
                sent: false,
            });
        }
    }

    /// Reads the next page. `None` after the last one. A page without objects is possible, also as the only one.
    ///
    /// If the future is dropped or fails, the next call goes on without skipping a page.
    ///
    /// # Errors
    /// [`PullError`]; the pages delivered before stay valid.
    pub async fn next_page(&mut self) -> Result<Option<PulledPage>, PullError> {
        if self.done {
            return Ok(None);
        }
        let max_pages = self.settings.max_pages.max(2);
        if self.pages >= max_pages {
            return Err(PullError::TooManyPages { max_pages });
        }
        let (page, next) = loop {
            let page = self.read().await?;
            self.note(&page);
            match self.step_after(&page).await? {
                Step::To(place) => break (page, Some(place)),
                Step::End => break (page, None),
                Step::Enlarge => {}
            }
        };
        if next.is_some() && self.cycle.closes(self.at.added_after.as_deref(), &page) {
            let text = "the server sends the same page again and again, although it says that there is more";
            return Err(PullError::Stuck(text.to_owned()));
        }
        match next {
            Some(place) => self.at = place,
            None => self.finish().await,
        }
        self.pages += 1;
        Ok(Some(PulledPage {
            objects: page.objects,
            unreadable: page.unreadable,
            last: self.done,
            cursor: self.cursor(),
        }))
    }

    fn cursor(&self) -> PullCursor {
        let from = self
            .at
            .added_after
            .clone()
            .filter(|from| Some(from) != self.start.as_ref());
        let reusable = self
            .at
            .token
            .as_ref()
            .filter(|token| token.kind == TokenKind::PerPage);
        PullCursor {
            added_after: self.start.clone(),
            unfinished: (!self.done).then(|| ResumePoint {
                from,
                limit: Some(self.at.limit),
                next: reusable.map(|token| token.text.clone()),
                newest: self.newest.as_ref().map(|date| date.text.clone()),
            }),
        }
    }

    /// Asks for the page at hand until there is one: begins again if the server has forgotten its token, asks for
    /// fewer objects if there are too many bytes.
    async fn read(&mut self) -> Result<Envelope, PullError> {
        loop {
            if self.at.token.as_ref().is_some_and(|token| !token.is_safe()) {
                self.begin_again();
            }
            let url = self.collection.page(&self.query());
            let repeatable = self
                .at
                .token
                .as_ref()
                .is_none_or(|token| token.kind == TokenKind::PerPage);
            if let Some(token) = &mut self.at.token {
                token.sent = true;
            }
            let answer = send(&self.fetch, &url, self.at.limit, repeatable, &mut self.patience).await;
            match answer.and_then(|answer| Envelope::read(&answer, self.now)) {
                Ok(page) => return Ok(page),
                Err(error) if self.is_past_the_end(&error) => return Ok(Envelope::default()),
                Err(error) => self.recover(error)?,
            }
        }
    }

    fn query(&self) -> PageQuery<'_> {
        PageQuery {
            added_after: self.at.added_after.as_deref(),
            limit: self.at.limit,
            next: self.at.token.as_ref().map(|token| token.text.as_str()),
        }
    }

    /// 416 to a token that the server has just given: there is nothing behind it.
    fn is_past_the_end(&self, error: &PullError) -> bool {
        let fresh = self.at.token.as_ref().is_some_and(|token| token.fresh);
        matches!(
            error,
            PullError::Status {
                status: StatusCode::RANGE_NOT_SATISFIABLE,
                ..
            }
        ) && fresh
    }

    /// Prepares another request after a failure, if one can help.
    fn recover(&mut self, error: PullError) -> Result<(), PullError> {
        let enlarged = self.at.limit > self.page_objects;
        let too_large = matches!(error, PullError::TooLarge { .. });
        let refused = matches!(
            error,
            PullError::Status {
                status: StatusCode::BAD_REQUEST,
                ..
            }
        );
        if enlarged && (too_large || (refused && self.at.token.is_none())) {
            return Err(self.same_instant_error(&error.to_string()));
        }
        if too_large && self.at.limit > 1 && self.collection.limit.is_none() {
            self.page_objects = self.at.limit / 2;
            self.begin_again();
            return Ok(());
        }
        if self.at.token.is_some() && !self.refused && error.refuses_token() {
            self.refused = true;
            self.begin_again();
            return Ok(());
        }
        Err(error)
    }

    /// Goes back to the first page of the present run of tokens: usually to where the pull began.
    fn begin_again(&mut self) {
        if self.at.added_after == self.start {
            self.newest = None;
            self.undated = None;
        }
        self.at.token = None;
        self.at.limit = self.page_objects;
        self.cycle = CycleDetector::default();
    }

    /// Notes the date of a page, or the object whose date the manifest would tell.
    fn note(&mut self, page: &Envelope) {
        let added = page.last_added_at();
        if let Some(object) = page.objects.last() {
            self.undated = ObjectVersion::of(object).filter(|_| added.is_none());
        }
        self.newest = later(self.newest.take(), added);
    }

    async fn step_after(&mut self, page: &Envelope) -> Result<Step, PullError> {
        if !page.has_more() {
            return Ok(Step::End);
        }
        if let Some(next) = &page.next {
            return Ok(Step::To(self.request_with_token(next)));
        }
        let mut added = page.last_added_at();
        if added.is_none() && !page.objects.is_empty() {
            let told = self.date_from_manifest().await;
            added = told.map_err(|error| PullError::of_request(error, self.at.limit))?;
            self.newest = later(self.newest.take(), added.clone());
        }
        let Some(added) = added else {
            let text = "the server says that there is more, but gives neither a page token nor the date of an object";
            return Err(PullError::Stuck(text.to_owned()));
        };
        self.step_by_date(&added)
    }

    fn request_with_token(&self, next: &str) -> PageRequest {
        let kind = match &self.at.token {
            None => TokenKind::Unknown,
            Some(token) if token.text == next || token.kind == TokenKind::Shared => TokenKind::Shared,
            Some(_) => TokenKind::PerPage,
        };
        let token = PageToken {
            text: next.to_owned(),
            kind,
            fresh: true,
            sent: false,
        };
        PageRequest {
            token: Some(token),
            ..self.at.clone()
        }
    }

    fn step_by_date(&mut self, added: &AddedAt) -> Result<Step, PullError> {
        let from = added.step_back();
        let instant = |text: &str| AddedAt::parse(text).map(|date| date.at);
        let asked = self.at.added_after.as_deref().and_then(instant);
        if asked.is_none() || instant(&from) > asked {
            let (added_after, limit) = (Some(from), self.page_objects);
            return Ok(Step::To(PageRequest {
                added_after,
                limit,
                token: None,
            }));
        }
        if self.collection.limit.is_some() {
            return Err(self.same_instant_error("the `limit` in the feed's URL allows no larger page"));
        }
        if self.at.limit >= self.settings.max_page_objects {
            return Err(self.same_instant_error("a larger page did not reach a later one"));
        }
        self.at.limit = self
            .at
            .limit
            .saturating_mul(2)
            .min(self.settings.max_page_objects);
        self.at.token = None;
        Ok(Step::Enlarge)
    }

    /// More objects were added at one instant than the server delivers without a page token.
    fn same_instant_error(&self, reason: &str) -> PullError {
        PullError::Stuck(format!(
            "the server gives no page token, and more than {} objects were added at the same instant ({reason})",
            self.page_objects
        ))
    }

    /// Moves the start of the next pull to one step before the latest date, so that what is added at that instant from
    /// now on is not skipped. It never moves back: what was delivered from the old start would be delivered again, too.
    async fn finish(&mut self) {
        let told = self.date_from_manifest().await.unwrap_or_default();
        self.newest = later(self.newest.take(), told);
        let start = self.start.as_deref().and_then(AddedAt::parse);
        let newest = self.newest.take();
        let reached = newest.and_then(|date| AddedAt::parse(&date.step_back()));
        let reached = later(start, reached).map(|date| date.text);
        self.start = reached.or(self.start.take());
        self.done = true;
    }

    /// The date of the last object from the manifest. `None` if it does not tell.
    async fn date_from_manifest(&self) -> Result<Option<AddedAt>, OutboundError> {
        let Some(object) = &self.undated else {
            return Ok(None);
        };
        let query = PageQuery {
            next: None,
            ..self.query()
        };
        let Some(url) = self.collection.manifest(&query, &object.id) else {
            return Ok(None);
        };
        let answer = get(&self.fetch, &url).await?;
        let told = object.date_in(&answer, self.now);
        Ok(told.filter(|_| answer.status.is_success()))
    }
}
