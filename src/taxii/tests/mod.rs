//! The client against scripted servers and against a model of a collection.

mod dates;
mod limits;
mod model;
mod pages;
mod property;
mod refusals;
mod unchanging;
mod urls;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url};

use super::{CollectionUrl, Fetch, Pull, PullCursor, PullError, PullSettings, PulledPage};
use crate::outbound::{OutboundError, OutboundResponse};

const OBJECTS: &str = "https://feed.example/api/collections/c1/objects/";
const TAXII: &str = "application/taxii+json;version=2.1";

type Reply = Result<OutboundResponse, OutboundError>;
type Replies = Box<dyn FnMut(&RecordedRequest) -> Reply + Send>;

/// A server that is a function; keeps every request and every wait.
#[derive(Clone)]
struct Server(Arc<Inner>);

struct Inner {
    reply: Mutex<Replies>,
    asked: Mutex<Vec<RecordedRequest>>,
    waits: Mutex<Vec<Duration>>,
}

/// A request.
#[derive(Debug, Clone)]
struct RecordedRequest {
    /// Number of the request, from 0.
    number: usize,
    url: Url,
    accept: String,
}

impl RecordedRequest {
    fn param(&self, name: &str) -> Option<String> {
        let mut pairs = self.url.query_pairs();
        pairs
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    }

    fn is_manifest(&self) -> bool {
        self.url.path().ends_with("/manifest/")
    }
}

impl Server {
    fn new(reply: impl FnMut(&RecordedRequest) -> Reply + Send + 'static) -> Self {
        Server(Arc::new(Inner {
            reply: Mutex::new(Box::new(reply)),
            asked: Mutex::default(),
            waits: Mutex::default(),
        }))
    }

    /// Replies in turn; the last one again and again.
    fn script(replies: Vec<Reply>) -> Self {
        Server::new(move |asked| {
            replies[asked.number.min(replies.len() - 1)]
                .as_ref()
                .map(copy)
                .map_err(Clone::clone)
        })
    }

    fn asked(&self) -> Vec<RecordedRequest> {
        self.0.asked.lock().unwrap().clone()
    }

    fn waits(&self) -> Vec<u64> {
        let waits = self.0.waits.lock().unwrap();
        waits.iter().map(Duration::as_secs).collect()
    }

    fn params(&self, name: &str) -> Vec<Option<String>> {
        self.asked().iter().map(|asked| asked.param(name)).collect()
    }
}

impl Fetch for Server {
    async fn get(&self, url: &Url, headers: HeaderMap) -> Reply {
        let accept = headers["accept"].to_str().unwrap().to_owned();
        let asked = {
            let mut all = self.0.asked.lock().unwrap();
            let asked = RecordedRequest {
                number: all.len(),
                url: url.clone(),
                accept,
            };
            all.push(asked.clone());
            asked
        };
        // Lets a test drop the future while the request is under way.
        tokio::task::yield_now().await;
        (self.0.reply.lock().unwrap())(&asked)
    }

    async fn pause(&self, time: Duration) {
        self.0.waits.lock().unwrap().push(time);
    }
}

fn copy(answer: &OutboundResponse) -> OutboundResponse {
    OutboundResponse {
        status: answer.status,
        headers: answer.headers.clone(),
        body: answer.body.clone(),
    }
}

fn answer(status: u16, headers: &[(&'static str, &str)], body: impl Into<Bytes>) -> Reply {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        map.append(HeaderName::from_static(name), value);
    }
    Ok(OutboundResponse {
        status: StatusCode::from_u16(status).unwrap(),
        headers: map,
        body: body.into(),
    })
}

/// 200 with the media type of the standard.
fn page(body: &str) -> Reply {
    answer(200, &[(CONTENT_TYPE.as_str(), TAXII)], body.to_owned())
}

/// 200 with the dates of the first and last object.
fn dated(body: &str, first: &str, last: &str) -> Reply {
    let headers = [
        (CONTENT_TYPE.as_str(), TAXII),
        ("x-taxii-date-added-first", first),
        ("x-taxii-date-added-last", last),
    ];
    answer(200, &headers, body.to_owned())
}

/// An envelope with objects of these names.
fn envelope(names: &[&str], rest: &str) -> String {
    let objects: Vec<String> = names.iter().map(|name| object(name)).collect();
    format!(r#"{{"objects":[{}]{rest}}}"#, objects.join(","))
}

fn object(name: &str) -> String {
    format!(
        r#"{{"type":"indicator","id":"indicator--{name}","modified":"2024-01-01T00:00:00.000Z","name":"{name}"}}"#
    )
}

/// The names of a page's objects.
fn names(page: &PulledPage) -> Vec<String> {
    let name = |text: &str| {
        let object: serde_json::Value = serde_json::from_str(text).unwrap();
        object["name"].as_str().unwrap().to_owned()
    };
    page.objects.iter().map(|object| name(object.get())).collect()
}

fn collection(url: &str) -> CollectionUrl {
    CollectionUrl::parse(&Url::parse(url).unwrap()).unwrap()
}

/// The caller's clock.
fn now() -> DateTime<Utc> {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn pull_with(server: &Server, url: &str, cursor: PullCursor, settings: PullSettings) -> Pull<Server> {
    Pull::new(server.clone(), collection(url), cursor, settings, now())
}

fn pull_of(server: &Server, cursor: PullCursor) -> Pull<Server> {
    pull_with(server, OBJECTS, cursor, PullSettings::default())
}

fn fresh(server: &Server) -> Pull<Server> {
    pull_of(server, PullCursor::default())
}

/// All names, page by page, and the cursor of the last page.
async fn read_all(pull: &mut Pull<Server>) -> Result<(Vec<String>, PullCursor), PullError> {
    let (mut all, mut cursor) = (Vec::new(), PullCursor::default());
    while let Some(page) = pull.next_page().await? {
        all.extend(names(&page));
        cursor = page.cursor;
    }
    Ok((all, cursor))
}

/// The error of a first page.
async fn failure(reply: Reply) -> PullError {
    fresh(&Server::script(vec![reply])).next_page().await.unwrap_err()
}
