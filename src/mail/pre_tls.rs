//! The part of a connection that is not encrypted yet.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The first byte of a TLS handshake (RFC 8446 section 5.1); SMTP commands begin with a letter.
const HANDSHAKE: u8 = 22;

/// A connection that is read byte by byte until the client begins TLS.
///
/// The SMTP client reads into a buffer that outlives the change to TLS. Whoever sits in between could append replies to
/// that of STARTTLS, which the client would then take for encrypted ones (RFC 3207 section 6, CVE-2011-0411). Read byte
/// by byte, such replies stay in the socket, and the handshake fails on them.
#[derive(Debug)]
pub(super) struct PreTlsStream {
    stream: TcpStream,
    encrypted: bool,
}

impl PreTlsStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            encrypted: false,
        }
    }
}

impl AsyncTokioStream for PreTlsStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

impl AsyncRead for PreTlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.encrypted || buffer.remaining() == 0 {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let mut byte = [0];
        let mut one = ReadBuf::new(&mut byte);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut one))?;
        buffer.put_slice(one.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PreTlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.encrypted |= bytes.first() == Some(&HANDSHAKE);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
