//! A TAXII 2.1 collection on a loopback port. It misbehaves on demand, and notes every request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub const TAXII: &str = "application/taxii+json;version=2.1";
/// Longest head of a request.
const HEAD: usize = 64 << 10;

/// A collection that is served until the value is dropped.
pub struct Server {
    shared: Arc<Shared>,
    port: u16,
    task: JoinHandle<()>,
}

type Manners = Box<dyn Fn(&Request, Reply) -> Reply + Send + Sync>;

struct Shared {
    /// Objects with the dates at which they were added, in that order.
    objects: Mutex<Vec<(DateTime<Utc>, Value)>>,
    requests: Mutex<Vec<Request>>,
    manners: Mutex<Option<Manners>>,
    /// How many requests are answered; later ones wait.
    allowed: watch::Sender<usize>,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// Position among all requests, from 0.
    pub number: usize,
    pub path: String,
    pub query: HashMap<String, String>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub fn of_objects(&self) -> bool {
        self.path.ends_with("/objects/")
    }
}

/// A response, and the way in which it is sent.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub sending: Sending,
}

#[derive(Debug, Clone, Copy)]
pub enum Sending {
    /// With Content-Length.
    Whole,
    /// Without Content-Length: the body ends with the connection.
    Unmeasured,
    /// Announces the whole body and closes the connection after half of it.
    Cut,
    /// Whole, after a while.
    Late(Duration),
    /// One byte at a time.
    Drip(Duration),
    /// The body again and again, without an end.
    Endless,
    /// Nothing at all, on an open connection.
    Silence,
}

impl Reply {
    pub fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), kind.into())],
            body: body.into(),
            sending: Sending::Whole,
        }
    }

    /// A TAXII answer.
    pub fn json(body: &Value) -> Self {
        Self::new(200, TAXII, body.to_string())
    }

    pub fn redirect(to: &str) -> Self {
        Self::new(302, "text/plain", "").header("location", to)
    }

    /// Adds a header; replaces one of the same name.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub fn sent(mut self, sending: Sending) -> Self {
        self.sending = sending;
        self
    }

    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Changes the envelope.
    pub fn envelope(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let mut envelope = serde_json::from_slice(&self.body).unwrap();
        change(&mut envelope);
        self.body = envelope.to_string().into_bytes();
        self
    }
}

impl Server {
    /// Serves these objects, each added a second after the one before.
    pub async fn start(objects: &[Value]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            objects: Mutex::default(),
            requests: Mutex::default(),
            manners: Mutex::default(),
            allowed: watch::Sender::new(usize::MAX),
        });
        let serving = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        let server = Self { shared, port, task };
        server.add(objects);
        server
    }

    /// The collection's objects URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/api/collections/c1/objects/", self.port)
    }

    /// Adds objects behind those that are there.
    pub fn add(&self, objects: &[Value]) {
        let mut stored = self.shared.objects.lock().unwrap();
        for object in objects {
            let next = stored
                .last()
                .map_or(first_date(), |(date, _)| *date + TimeDelta::seconds(1));
            stored.push((next, object.clone()));
        }
    }

    /// Passes every correct reply through `manners` before it is sent.
    pub fn misbehave(&self, manners: impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static) {
        *self.shared.manners.lock().unwrap() = Some(Box::new(manners));
    }

    /// Sends correct replies from now on.
    pub fn behave(&self) {
        *self.shared.manners.lock().unwrap() = None;
    }

    /// Answers so many requests in all; later ones wait for another call.
    pub fn allow(&self, requests: usize) {
        self.shared.allowed.send_replace(requests);
    }

    pub fn release(&self) {
        self.allow(usize::MAX);
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn first_date() -> DateTime<Utc> {
    "2024-01-01T00:00:00Z".parse().unwrap()
}

fn written(date: DateTime<Utc>) -> String {
    date.to_rfc3339_opts(SecondsFormat::Micros, true)
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let Some(head) = read_head(&mut stream).await else {
        return;
    };
    let request = {
        let mut requests = shared.requests.lock().unwrap();
        let request = parse(&head, requests.len());
        requests.push(request.clone());
        request
    };
    let mut allowed = shared.allowed.subscribe();
    if allowed
        .wait_for(|allowed| request.number < *allowed)
        .await
        .is_err()
    {
        return;
    }
    let honest = answer(&request, &shared.objects.lock().unwrap());
    let reply = match shared.manners.lock().unwrap().as_ref() {
        Some(manners) => manners(&request, honest),
        None => honest,
    };
    // The client may hang up in the middle.
    send(&mut stream, &reply).await.ok();
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
        assert!(head.len() < HEAD, "the head of a request does not end");
    }
    String::from_utf8(head).ok()
}

fn parse(head: &str, number: usize) -> Request {
    let mut lines = head.trim_end().split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    assert_eq!(first.next(), Some("GET"), "{head}");
    let target = first.next().unwrap_or_default();
    let url = reqwest::Url::parse("http://x")
        .and_then(|base| base.join(target))
        .unwrap();
    let headers = lines.filter_map(|line| line.split_once(':'));
    Request {
        number,
        path: url.path().to_owned(),
        query: url.query_pairs().into_owned().collect(),
        headers: headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect(),
    }
}

/// What a correct server says (TAXII 2.1 sections 5.3 and 5.4). Page tokens are positions in the whole collection.
fn answer(request: &Request, objects: &[(DateTime<Utc>, Value)]) -> Reply {
    let query = &request.query;
    let after = query
        .get("added_after")
        .map(|date| date.parse::<DateTime<Utc>>().unwrap());
    let from = query
        .get("next")
        .map_or(0, |token| token.parse::<usize>().unwrap_or(0));
    let limit = query
        .get("limit")
        .map_or(usize::MAX, |limit| limit.parse().unwrap());
    let chosen = |(_, (date, object)): &(usize, &(DateTime<Utc>, Value))| {
        after.is_none_or(|after| *date > after)
            && query
                .get("match[id]")
                .is_none_or(|id| object["id"] == id.as_str())
    };
    let mut rest = objects.iter().enumerate().skip(from).filter(chosen);
    let page: Vec<_> = rest.by_ref().take(limit).collect();
    let next = rest.next().map(|(at, _)| at);
    let (Some((_, (first, _))), Some((_, (last, _)))) = (page.first(), page.last()) else {
        return Reply::json(&json!({}));
    };
    let mut envelope = json!({"objects": entries(request, &page)});
    if let Some(next) = next {
        envelope["more"] = json!(true);
        envelope["next"] = json!(next.to_string());
    }
    Reply::json(&envelope)
        .header("x-taxii-date-added-first", &written(*first))
        .header("x-taxii-date-added-last", &written(*last))
}

fn entries(request: &Request, page: &[(usize, &(DateTime<Utc>, Value))]) -> Vec<Value> {
    let page = page.iter().map(|(_, entry)| entry);
    if request.of_objects() {
        return page.map(|(_, object)| object.clone()).collect();
    }
    page.map(|(date, object)| {
        let version = [&object["modified"], &object["created"]];
        let version = version.into_iter().find(|version| version.is_string());
        json!({"id": object["id"], "date_added": written(*date), "version": version,
            "media_type": "application/stix+json;version=2.1"})
    })
    .collect()
}

async fn send(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    if let Sending::Silence = reply.sending {
        // Ends when the client hangs up.
        return stream.read_u8().await.map(drop);
    }
    if let Sending::Late(pause) = reply.sending {
        tokio::time::sleep(pause).await;
    }
    let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !matches!(reply.sending, Sending::Unmeasured | Sending::Endless) {
        head.push_str(&format!("content-length: {}\r\n", reply.body.len()));
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await?;
    match reply.sending {
        Sending::Whole | Sending::Late(_) | Sending::Unmeasured => stream.write_all(&reply.body).await?,
        Sending::Cut => stream.write_all(&reply.body[..reply.body.len() / 2]).await?,
        Sending::Drip(pause) => {
            for byte in &reply.body {
                stream.write_u8(*byte).await?;
                tokio::time::sleep(pause).await;
            }
        }
        Sending::Endless => loop {
            stream.write_all(&reply.body).await?;
        },
        Sending::Silence => {}
    }
    stream.shutdown().await
}
