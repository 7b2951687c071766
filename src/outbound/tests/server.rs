//! A server on loopback that sends raw bytes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What one connection gets, in order; then it is closed.
#[derive(Clone)]
pub(super) enum Act {
    Send(Vec<u8>),
    /// Byte by byte, with a pause before each.
    Drip(Vec<u8>, Duration),
    /// For ever.
    Repeat(Vec<u8>),
    Pause(Duration),
    /// Waits for another request on the same connection.
    Next,
}

pub(super) fn send(text: impl AsRef<[u8]>) -> Act {
    Act::Send(text.as_ref().to_vec())
}

/// An answer with a body and its Content-Length.
pub(super) fn answer(head: &str, body: &[u8]) -> Act {
    let mut bytes = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    Act::Send(bytes)
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Connection n gets the n-th script; those after the last one get the last one.
    pub(super) async fn start(scripts: Vec<Vec<Act>>) -> Self {
        Self::with(|_| scripts).await
    }

    /// For scripts that name the server's own port.
    pub(super) async fn with(scripts: impl FnOnce(u16) -> Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scripts = scripts(address.port());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let (seen, count) = (Arc::clone(&requests), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let at = {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    *count - 1
                };
                let script = scripts[at.min(scripts.len() - 1)].clone();
                tokio::spawn(play(stream, script, Arc::clone(&seen)));
            }
        });
        Self {
            address,
            requests,
            connections,
            task,
        }
    }

    pub(super) fn url(&self, path: &str) -> reqwest::Url {
        format!("http://{}{path}", self.address).parse().unwrap()
    }

    /// The same server by a name that the resolver knows.
    pub(super) fn named(&self, host: &str, path: &str) -> reqwest::Url {
        format!("http://{host}:{}{path}", self.address.port())
            .parse()
            .unwrap()
    }

    /// Heads of the requests, in lower case.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

/// Ends when the client hangs up.
async fn play(mut stream: TcpStream, script: Vec<Act>, requests: Arc<Mutex<Vec<String>>>) -> Option<()> {
    hear(&mut stream, &requests).await?;
    for act in script {
        match act {
            Act::Send(bytes) => stream.write_all(&bytes).await.ok()?,
            Act::Drip(bytes, pause) => {
                for byte in bytes {
                    tokio::time::sleep(pause).await;
                    stream.write_all(&[byte]).await.ok()?;
                }
            }
            Act::Repeat(bytes) => loop {
                stream.write_all(&bytes).await.ok()?;
            },
            Act::Pause(pause) => tokio::time::sleep(pause).await,
            Act::Next => hear(&mut stream, &requests).await?,
        }
    }
    stream.shutdown().await.ok()
}

/// Reads one request: its head, and the body that Content-Length announces.
async fn hear(stream: &mut TcpStream, requests: &Mutex<Vec<String>>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    requests.lock().unwrap().push(head);
    Some(())
}
