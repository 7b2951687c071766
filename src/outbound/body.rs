//! Bodies within a limit that counts decompressed bytes.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use super::OutboundError;
use super::client::root_cause;

/// What gzip adds to data that can't be compressed (RFC 1951 section 3.2.4), and its header. Without a limit on
/// compressed bytes, empty blocks could be sent for ever.
const GZIP_OVERHEAD: usize = 64 << 10;

/// Bytes up to a limit.
struct CappedBuffer {
    bytes: Vec<u8>,
    cap: usize,
    exceeded: bool,
}

impl Write for CappedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.cap - self.bytes.len() {
            self.exceeded = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a body is written to.
enum Sink {
    Plain(CappedBuffer),
    /// With the number of bytes received.
    Gzip(Box<MultiGzDecoder<CappedBuffer>>, usize),
}

impl Sink {
    fn new(headers: &HeaderMap, cap: usize) -> Result<Self, OutboundError> {
        let capped = CappedBuffer {
            bytes: Vec::new(),
            cap,
            exceeded: false,
        };
        let mut codings = headers.get_all(CONTENT_ENCODING).iter();
        let coding = codings.next().map_or(&b""[..], |value| value.as_bytes());
        let coding = coding.trim_ascii().to_ascii_lowercase();
        match (coding.as_slice(), codings.next()) {
            (b"" | b"identity", None) => Ok(Self::Plain(capped)),
            // RFC 9110 section 8.4.1.3: x-gzip is an alias.
            (b"gzip" | b"x-gzip", None) => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(capped)), 0)),
            _ => Err(broken_error("the Content-Encoding is not gzip")),
        }
    }

    fn write(&mut self, chunk: &[u8]) -> Result<(), OutboundError> {
        let written = match self {
            Self::Plain(capped) => capped.write_all(chunk),
            Self::Gzip(decoder, received) => {
                *received += chunk.len();
                if *received > decoder.get_ref().cap.saturating_add(GZIP_OVERHEAD) {
                    return Err(too_large_error(decoder.get_ref()));
                }
                decoder.write_all(chunk)
            }
        };
        written.map_err(|_| self.fault())
    }

    /// Why writing failed.
    fn fault(&self) -> OutboundError {
        let capped = match self {
            Self::Plain(capped) => capped,
            Self::Gzip(decoder, _) => decoder.get_ref(),
        };
        if capped.exceeded {
            return too_large_error(capped);
        }
        broken_error("the body is not valid gzip")
    }

    /// The whole body. An empty one counts as whole with every coding.
    fn finish(mut self) -> Result<Bytes, OutboundError> {
        let bytes = match &mut self {
            Self::Plain(capped) => std::mem::take(&mut capped.bytes),
            Self::Gzip(decoder, received) if *received > 0 => {
                if decoder.try_finish().is_err() {
                    return Err(self.fault());
                }
                std::mem::take(&mut decoder.get_mut().bytes)
            }
            Self::Gzip(..) => Vec::new(),
        };
        Ok(Bytes::from(bytes))
    }
}

fn too_large_error(capped: &CappedBuffer) -> OutboundError {
    OutboundError::TooLarge {
        cap_bytes: capped.cap,
    }
}

fn broken_error(why: &str) -> OutboundError {
    OutboundError::Broken(why.into())
}

/// Reads a body of at most `cap` decompressed bytes; stops reading when there are more.
///
/// # Errors
/// [`OutboundError::TooLarge`], at once if Content-Length says so, or [`OutboundError::Broken`].
pub(super) async fn read(response: &mut Response, cap: usize) -> Result<Bytes, OutboundError> {
    let mut sink = Sink::new(response.headers(), cap)?;
    if response
        .content_length()
        .is_some_and(|length| length > cap as u64)
    {
        return Err(OutboundError::TooLarge { cap_bytes: cap });
    }
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| broken_error(&root_cause(&error)))?
    {
        sink.write(&chunk)?;
    }
    sink.finish()
}
