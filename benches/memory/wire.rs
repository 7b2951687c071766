//! A raw HTTP/1.1 connection that is kept open: costs the client far less CPU time than a client library.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::Fallible;

/// A connection to the service.
pub struct Wire {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Wire {
    pub fn open(base: &str) -> Fallible<Self> {
        let host = base.strip_prefix("http://").ok_or("not an HTTP address")?;
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            host: host.to_owned(),
        })
    }

    /// Posts JSON and returns the text of a successful response.
    pub fn post(&mut self, path: &str, body: &str) -> Fallible<String> {
        let (host, length) = (&self.host, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let mut length = None;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse()?);
            }
        }
        let mut text = vec![0; length.ok_or("a response without a length")?];
        self.stream.read_exact(&mut text)?;
        let text = String::from_utf8(text)?;
        if status.starts_with("HTTP/1.1 200") {
            Ok(text)
        } else {
            Err(format!("{path} answered {status}: {text}").into())
        }
    }

    /// A line of the response's head without its end.
    fn line(&mut self) -> Fallible<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err("the service closed the connection".into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}
