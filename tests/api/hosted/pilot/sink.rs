//! An SMTP server on a loopback port that keeps what it receives. It misbehaves on demand.

use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

/// When TLS begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Security {
    Never,
    StartTls,
    AtOnce,
}

/// What the server does about a command.
pub enum Act {
    Usual,
    /// Says this instead. It goes on as usual if the first code is not an error.
    Say(String),
    /// Closes the connection.
    Drop,
    /// Waits for [`Sink::release`], and goes on as usual.
    Stall,
}

/// A step of a session: `connect`, an SMTP verb, `credentials` or `content`.
pub struct Step<'s> {
    pub verb: &'s str,
    pub line: &'s str,
}

type Manners = Box<dyn Fn(&Step) -> Act + Send + Sync>;

/// An e-mail as it arrived.
#[derive(Debug, Clone)]
pub struct Received {
    pub from: String,
    pub to: Vec<String>,
    pub encrypted: bool,
    /// User and password of the session.
    pub signed_in: Option<(String, String)>,
    /// The message as sent, between DATA and the final dot.
    pub wire: String,
}

struct Shared {
    security: Security,
    acceptor: TlsAcceptor,
    manners: Mutex<Option<Manners>>,
    received: Mutex<Vec<Received>>,
    /// Everything that arrived unencrypted.
    clear: Mutex<String>,
    steps: Mutex<Vec<String>>,
    released: watch::Sender<bool>,
}

/// A server that runs until the value is dropped.
pub struct Sink {
    shared: Arc<Shared>,
    pub port: u16,
    ca: NamedTempFile,
    task: JoinHandle<()>,
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sink {
    pub async fn start(security: Security) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), security)
    }

    /// Serves connections to this listener.
    pub fn on(listener: TcpListener, security: Security) -> Self {
        let (ca, acceptor) = certificates();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            security,
            acceptor,
            manners: Mutex::default(),
            received: Mutex::default(),
            clear: Mutex::default(),
            steps: Mutex::default(),
            released: watch::Sender::new(false),
        });
        let serving = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            let mut sessions = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                // A client that goes away ends its session with an error.
                sessions.spawn(session(Arc::clone(&serving), stream));
            }
        });
        Self {
            shared,
            port,
            ca,
            task,
        }
    }

    /// The certificate that signed the server's.
    pub fn ca_file(&self) -> &Path {
        self.ca.path()
    }

    /// From now on `manners` decides about every step.
    pub fn behave(&self, manners: impl Fn(&Step) -> Act + Send + Sync + 'static) {
        *self.shared.manners.lock().unwrap() = Some(Box::new(manners));
    }

    /// From now on a step with this verb is answered with an error.
    pub fn refuse(&self, verb: &'static str, reply: &'static str) {
        self.behave(move |step| match step.verb == verb {
            true => Act::Say(reply.into()),
            false => Act::Usual,
        });
    }

    /// From now on a step with this verb stalls until [`Sink::release`].
    pub fn stall(&self, verb: &'static str) {
        self.behave(move |step| match step.verb == verb {
            true => Act::Stall,
            false => Act::Usual,
        });
    }

    /// Ends all misbehaviour.
    pub fn release(&self) {
        *self.shared.manners.lock().unwrap() = None;
        self.shared.released.send_replace(true);
    }

    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    /// How often a step has begun.
    pub fn steps(&self, verb: &str) -> usize {
        let steps = self.shared.steps.lock().unwrap();
        steps.iter().filter(|step| *step == verb).count()
    }

    /// Everything that arrived unencrypted.
    pub fn clear(&self) -> String {
        self.shared.clear.lock().unwrap().clone()
    }
}

impl Received {
    /// The header block, without its last line end.
    pub fn head(&self) -> &str {
        self.wire.split_once("\r\n\r\n").unwrap().0
    }

    /// A header, unfolded.
    pub fn header(&self, name: &str) -> Option<String> {
        let unfolded = self.head().replace("\r\n ", " ");
        let mut lines = unfolded.split("\r\n").filter_map(|line| line.split_once(": "));
        lines
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value.to_owned())
    }

    /// The decoded body.
    pub fn text(&self) -> String {
        let body = self.wire.split_once("\r\n\r\n").unwrap().1.replace("\r\n", "");
        String::from_utf8(STANDARD.decode(body).unwrap()).unwrap()
    }

    /// The subject with its encoded words decoded.
    pub fn subject(&self) -> String {
        let subject = self.header("Subject").unwrap();
        let (fixed, words) = subject.split_once(" =?utf-8?b?").unwrap();
        let words = words.trim_end_matches("?=").split("?= =?utf-8?b?");
        let decoded = words.map(|word| String::from_utf8(STANDARD.decode(word).unwrap()).unwrap());
        format!("{fixed} {}", decoded.collect::<String>())
    }
}

/// A certificate authority in a file, and a server's certificate from it.
fn certificates() -> (NamedTempFile, TlsAcceptor) {
    let mut ca = CertificateParams::new(Vec::default()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate().unwrap();
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let mut server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    server
        .extended_key_usages
        .push(ExtendedKeyUsagePurpose::ServerAuth);
    let key = KeyPair::generate().unwrap();
    let certificate = server.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    (file, TlsAcceptor::from(Arc::new(config)))
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

struct Session {
    shared: Arc<Shared>,
    io: Box<dyn Io>,
    encrypted: bool,
    signed_in: Option<(String, String)>,
    from: String,
    to: Vec<String>,
}

async fn session(shared: Arc<Shared>, stream: TcpStream) -> std::io::Result<()> {
    let at_once = shared.security == Security::AtOnce;
    let io: Box<dyn Io> = match at_once {
        true => Box::new(shared.acceptor.accept(stream).await?),
        false => Box::new(stream),
    };
    let mut session = Session {
        shared,
        io,
        encrypted: at_once,
        signed_in: None,
        from: String::new(),
        to: Vec::new(),
    };
    session.step("connect", "", "220 sink ESMTP").await?;
    loop {
        let line = session.line().await?;
        let verb = line.split([' ', ':']).next().unwrap().to_uppercase();
        session.command(&verb, &line).await?;
        if verb == "QUIT" {
            return session.io.shutdown().await;
        }
    }
}

impl Session {
    /// Answers a step; false if the answer is an error.
    async fn step(&mut self, verb: &str, line: &str, usual: &str) -> std::io::Result<bool> {
        self.shared.steps.lock().unwrap().push(verb.to_owned());
        let act = match &*self.shared.manners.lock().unwrap() {
            Some(manners) => manners(&Step { verb, line }),
            None => Act::Usual,
        };
        let reply = match act {
            Act::Usual => usual.to_owned(),
            Act::Say(reply) => reply,
            Act::Drop => return Err(std::io::ErrorKind::ConnectionAborted.into()),
            Act::Stall => {
                let mut released = self.shared.released.subscribe();
                released.wait_for(|released| *released).await.ok();
                usual.to_owned()
            }
        };
        self.io.write_all(format!("{reply}\r\n").as_bytes()).await?;
        self.io.flush().await?;
        Ok(!reply.starts_with(['4', '5']))
    }

    async fn line(&mut self) -> std::io::Result<String> {
        self.until("\r\n").await
    }

    async fn until(&mut self, end: &str) -> std::io::Result<String> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end.as_bytes()) {
            bytes.push(self.io.read_u8().await?);
            assert!(bytes.len() < 1 << 20, "an endless line");
        }
        let text = String::from_utf8(bytes).unwrap();
        if !self.encrypted {
            self.shared.clear.lock().unwrap().push_str(&text);
        }
        Ok(text.strip_suffix(end).unwrap().to_owned())
    }

    async fn command(&mut self, verb: &str, line: &str) -> std::io::Result<()> {
        match verb {
            "EHLO" => {
                let offers = self.shared.security == Security::StartTls && !self.encrypted;
                let starttls = if offers { "250-STARTTLS\r\n" } else { "" };
                let says = format!("250-sink\r\n{starttls}250-AUTH PLAIN LOGIN\r\n250 SIZE 1000000");
                self.step(verb, line, &says).await?;
            }
            "STARTTLS" => {
                if self.step(verb, line, "220 go ahead").await? {
                    let io = std::mem::replace(&mut self.io, Box::new(tokio::io::empty()));
                    self.io = Box::new(self.shared.acceptor.accept(io).await?);
                    self.encrypted = true;
                }
            }
            "AUTH" => self.sign_in(line).await?,
            "MAIL" => {
                self.from = line.to_owned();
                self.to.clear();
                self.step(verb, line, "250 ok").await?;
            }
            "RCPT" => {
                if self.step(verb, line, "250 ok").await? {
                    self.to.push(line.to_owned());
                }
            }
            "DATA" => {
                if self.step(verb, line, "354 go on").await? {
                    self.content().await?;
                }
            }
            "QUIT" => {
                self.step(verb, line, "221 bye").await?;
            }
            _ => {
                self.step(verb, line, "500 what?").await?;
            }
        }
        Ok(())
    }

    async fn content(&mut self) -> std::io::Result<()> {
        let wire = self.until("\r\n.\r\n").await?;
        let received = Received {
            from: self.from.clone(),
            to: self.to.clone(),
            encrypted: self.encrypted,
            signed_in: self.signed_in.clone(),
            wire,
        };
        // Kept before the answer: a server that dies in between has the e-mail too.
        self.shared.received.lock().unwrap().push(received);
        if !self.step("content", "", "250 taken").await? {
            self.shared.received.lock().unwrap().pop();
        }
        Ok(())
    }

    async fn sign_in(&mut self, line: &str) -> std::io::Result<()> {
        let decode = |text: &str| String::from_utf8(STANDARD.decode(text).unwrap()).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let (user, password) = if words[1] == "PLAIN" {
            let whole = decode(words[2]);
            let parts: Vec<&str> = whole.split('\0').collect();
            (parts[1].to_owned(), parts[2].to_owned())
        } else {
            self.io.write_all(b"334 VXNlcm5hbWU6\r\n").await?;
            let user = decode(&self.line().await?);
            self.io.write_all(b"334 UGFzc3dvcmQ6\r\n").await?;
            (user, decode(&self.line().await?))
        };
        if self.step("credentials", line, "235 welcome").await? {
            self.signed_in = Some((user, password));
        }
        Ok(())
    }
}
