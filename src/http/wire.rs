//! A connection on which the refusals of the HTTP layer have a body.
//!
//! Rule: every refusal has the error object of its API. What can't be parsed as a request (no Host, an overlong URL or
//! head, one that doesn't come in time) never reaches a handler: the HTTP layer answers it itself, with a head alone.
//! Such an answer is the last of its connection. It is known by its form, which no answer of a handler has: those have a
//! body or more headers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::tls::Stream;

/// More bytes than the head of a refusal has.
const MAX_HEAD: usize = 256;

/// The connection of a client.
#[derive(Debug)]
pub struct Connection {
    pub io: Stream,
    /// The body of a refusal, as JSON.
    body: fn(StatusCode) -> String,
    /// A refusal that is not yet sent.
    pending: Vec<u8>,
}

impl Connection {
    /// Wraps an accepted connection.
    pub fn new(io: Stream, body: fn(StatusCode) -> String) -> Self {
        Self {
            io,
            body,
            pending: Vec::new(),
        }
    }

    fn poll_pending(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pending.is_empty() {
            let sent = ready!(Pin::new(&mut self.io).poll_write(cx, &self.pending))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.pending.drain(..sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_pending(cx))?;
        match with_body(bytes, self.body) {
            Some(whole) => {
                self.pending = whole;
                Poll::Ready(Ok(bytes.len()))
            }
            None => Pin::new(&mut self.io).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// The bytes with a body for the refusal that they end with; `None` if they end with none.
fn with_body(bytes: &[u8], body: fn(StatusCode) -> String) -> Option<Vec<u8>> {
    let ending = bytes.get(bytes.len().saturating_sub(MAX_HEAD)..)?;
    let head_size = ending.windows(5).rev().position(|part| part == b"HTTP/")? + 5;
    let (before, head) = bytes.split_at_checked(bytes.len().checked_sub(head_size)?)?;
    let head = std::str::from_utf8(head).ok()?.strip_suffix("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status_line = lines.next()?;
    let status = StatusCode::from_bytes(status_line.split(' ').nth(1)?.as_bytes()).ok()?;
    let is_error = status.is_client_error() || status.is_server_error();
    let (mut is_empty, mut date) = (false, "");
    for line in lines {
        match line.split_once(": ")? {
            ("content-length", "0") => is_empty = true,
            ("connection", _) => {}
            ("date", time) => date = time,
            _ => return None,
        }
    }
    if !is_error || !is_empty {
        return None;
    }
    let body = body(status);
    let head = format!(
        "{status_line}\r\ncontent-length: {}\r\ncontent-type: application/json\r\ncache-control: no-store\r\n\
         x-content-type-options: nosniff\r\nconnection: close\r\ndate: {date}\r\n\r\n",
        body.len()
    );
    Some([before, head.as_bytes(), body.as_bytes()].concat())
}

/// What a refusal of the HTTP layer means.
pub fn meaning(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => {
            "the request is not valid HTTP/1.1: it needs a method, a target of at most 64 KiB, one Host and well-formed headers"
        }
        StatusCode::REQUEST_TIMEOUT => "the request was not sent in time",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "the headers of the request are too large",
        _ => "the request failed unexpectedly",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSAL: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\
                           date: Sun, 29 Nov 2026 00:56:47 GMT\r\n\r\n";

    fn body(status: StatusCode) -> String {
        format!("{{\"error\":\"{status}\"}}")
    }

    #[test]
    fn a_bare_refusal_at_the_end_gets_a_body_and_all_else_stays() {
        let other = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        for before in ["", other] {
            let whole = with_body(format!("{before}{REFUSAL}").as_bytes(), body).unwrap();
            let text = String::from_utf8(whole).unwrap();
            let refusal = text.strip_prefix(before).unwrap();
            let (head, body) = refusal.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
            assert_eq!(body, r#"{"error":"400 Bad Request"}"#);
            assert!(
                head.contains(&format!("content-length: {}\r\n", body.len())),
                "{head}"
            );
            assert!(head.contains("content-type: application/json\r\n"), "{head}");
            assert!(head.ends_with("date: Sun, 29 Nov 2026 00:56:47 GMT"), "{head}");
        }
        for untouched in [
            "",
            other,
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 0\r\ndate: x\r\n\r\n",
            &REFUSAL.replace("connection: close", "x-request-id: 1"),
            &REFUSAL.replace("content-length: 0", "content-length: 9"),
            &format!("{REFUSAL}more"),
            &REFUSAL[..REFUSAL.len() - 1],
        ] {
            assert_eq!(with_body(untouched.as_bytes(), body), None, "{untouched}");
        }
    }
}
