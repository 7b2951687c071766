//! TLS of the API itself, for a service that has no proxy before it.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_web::rt::net::TcpStream;
use parking_lot::RwLock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, ServerConfig};
use tokio_rustls::server::TlsStream;

/// The protocol that connections speak within TLS (RFC 7301).
const PROTOCOL: &[u8] = b"http/1.1";
/// The first byte of a TLS connection: a record of the type handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// The answer to a client that speaks HTTP to a port of HTTPS.
const NOT_HTTPS: &str = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: application/json\r\n\
                         content-length: 34\r\n\r\n{\"error\":\"this port speaks HTTPS\"}";

/// The certificate of the service, which is read again when its files change.
#[derive(Debug)]
pub struct ServerCertificate {
    chain: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
}

impl ServerCertificate {
    /// Reads a chain of certificates, that of the service first, and its private key, both in PEM (RFC 7468).
    ///
    /// # Errors
    /// The setting and what is wrong with its file.
    pub fn open(chain: &Path, key: &Path) -> Result<Self, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let current = RwLock::new(Arc::new(read(chain, key, &provider)?));
        Ok(Self {
            chain: chain.to_owned(),
            key: key.to_owned(),
            provider,
            current,
        })
    }

    /// Reads the files again. The certificate in force stays when they can't be used.
    ///
    /// # Errors
    /// As of [`ServerCertificate::open`].
    pub fn reload(&self) -> Result<(), String> {
        let read = read(&self.chain, &self.key, &self.provider)?;
        *self.current.write() = Arc::new(read);
        Ok(())
    }

    /// What accepts connections with it: TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// When the provider knows neither version.
    pub fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, Error> {
        let config = ServerConfig::builder_with_provider(Arc::clone(&self.provider));
        let config = config.with_safe_default_protocol_versions()?;
        let certificate: Arc<dyn ResolvesServerCert> = Arc::<Self>::clone(self);
        let mut config = config.with_no_client_auth().with_cert_resolver(certificate);
        config.alpn_protocols.push(PROTOCOL.to_vec());
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

fn read(chain: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    let failed = |setting: &str, path: &Path, error: &dyn Display| {
        format!("server.{setting}: {}: {error}", path.display())
    };
    let certificates = CertificateDer::pem_file_iter(chain);
    let certificates: Vec<_> = certificates
        .and_then(Iterator::collect)
        .map_err(|error| failed("tls_cert", chain, &error))?;
    if certificates.is_empty() {
        return Err(failed("tls_cert", chain, &"has no certificate in PEM"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| failed("tls_key", key, &error))?;
    CertifiedKey::from_der(certificates, private, provider).map_err(|error| {
        failed(
            "tls_key",
            key,
            &format!("does not go with server.tls_cert: {error}"),
        )
    })
}

/// A TCP connection, or TLS over one.
#[derive(Debug)]
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Begins TLS on a connection that was accepted; without an acceptor there is none. Who speaks HTTP is told so.
    ///
    /// # Errors
    /// When the handshake fails.
    pub async fn accept(mut io: TcpStream, acceptor: Option<&TlsAcceptor>) -> io::Result<Self> {
        let Some(acceptor) = acceptor else {
            return Ok(Self::Plain(io));
        };
        let mut first = [0];
        if io.peek(&mut first).await? == 1 && first != [HANDSHAKE] {
            // What is unread at the end would take the answer back.
            let _ = io.read(&mut [0; 4096]).await?;
            io.write_all(NOT_HTTPS.as_bytes()).await?;
            io.shutdown().await?;
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the client does not speak TLS",
            ));
        }
        Ok(Self::Tls(Box::new(acceptor.accept(io).await?)))
    }

    /// The connection below.
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(io) => io,
            Self::Tls(io) => io.get_ref().0,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_read(cx, buffer),
            Self::Tls(io) => Pin::new(io).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write(cx, bytes),
            Self::Tls(io) => Pin::new(io).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_flush(cx),
            Self::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Self::Tls(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_can_not_be_used_is_named_with_its_setting() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        for name in ["one", "two"] {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            std::fs::write(place(&format!("{name}.pem")), made.cert.pem()).unwrap();
            std::fs::write(place(&format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
        }
        std::fs::write(place("empty"), "").unwrap();
        std::fs::write(place("cut"), "-----BEGIN CERTIFICATE-----\nMIIB").unwrap();
        let open = |chain: &str, key: &str| ServerCertificate::open(&place(chain), &place(key));
        open("one.pem", "one.key").unwrap().reload().unwrap();
        for (chain, key, setting, rule) in [
            ("none", "one.key", "tls_cert", "No such file"),
            ("empty", "one.key", "tls_cert", "has no certificate"),
            ("cut", "one.key", "tls_cert", ""),
            ("one.key", "one.key", "tls_cert", "has no certificate"),
            ("one.pem", "none", "tls_key", "No such file"),
            ("one.pem", "one.pem", "tls_key", ""),
            ("one.pem", "empty", "tls_key", ""),
            (
                "one.pem",
                "two.key",
                "tls_key",
                "does not go with server.tls_cert",
            ),
        ] {
            let said = open(chain, key).unwrap_err();
            let file = if setting == "tls_cert" { chain } else { key };
            let begins = format!("server.{setting}: {}: ", place(file).display());
            assert!(
                said.starts_with(&begins) && said.contains(rule),
                "{chain}, {key}: {said}"
            );
        }
    }
}
