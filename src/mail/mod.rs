//! Sends e-mail over SMTP (RFC 5321) to fixed recipients. No actors, no database, no clock.
//!
//! Connections are encrypted, or stay on this machine. STARTTLS is demanded, never merely tried. What a server says is
//! not passed on beyond its reply codes: a reply may repeat the password or the e-mail.

mod compose;
mod failure;
mod pre_tls;

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use secrecy::{ExposeSecret, SecretString};
use tokio::net::TcpStream;
use tracing::Instrument;

pub use self::compose::OperatorEmail;
pub use self::failure::MailError;
use self::failure::Stage;
use self::pre_tls::PreTlsStream;
use crate::config::{NotifierMode, NotifierSettings};
use crate::telemetry::traces;

const MAX_RECIPIENTS: usize = 20;
/// Longest wait for the reply to QUIT, which nothing depends on.
const FAREWELL: Duration = Duration::from_secs(2);
/// A server that is ready for the content answers DATA with this (RFC 5321 section 4.3.2).
const READY_FOR_CONTENT: u16 = 354;

/// A client of one mail server.
pub struct Mailer {
    host: String,
    port: u16,
    security: Security,
    credentials: Option<(String, SecretString)>,
    from: Mailbox,
    to: Vec<Mailbox>,
    timeout: Duration,
}

enum Security {
    Plain,
    StartTls(TlsParameters),
    Tls(TlsParameters),
}

/// A setting that can't be used: its key in `[notifier]` and the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {rule}")]
pub struct MailSettingError {
    key: &'static str,
    rule: String,
}

impl MailSettingError {
    fn new(key: &'static str, rule: impl fmt::Display) -> Self {
        Self {
            key,
            rule: rule.to_string(),
        }
    }
}

impl Mailer {
    /// A client with these settings; `None` where e-mail is off.
    ///
    /// # Errors
    /// Names the key and the rule.
    pub fn new(
        settings: &NotifierSettings,
        credentials: Option<(String, SecretString)>,
    ) -> Result<Option<Self>, MailSettingError> {
        let secured: fn(&str, &Path) -> Result<Security, MailSettingError> = match settings.mode {
            NotifierMode::Off => return Ok(None),
            NotifierMode::Starttls => |host, ca_file| tls(host, ca_file).map(Security::StartTls),
            NotifierMode::Tls => |host, ca_file| tls(host, ca_file).map(Security::Tls),
            NotifierMode::Plain => |host, _| plain_security(host),
        };
        let host = host(&settings.host)?;
        if settings.port == 0 {
            return Err(MailSettingError::new("port", "must be from 1 to 65535, is 0"));
        }
        let from = mailbox(&settings.from).map_err(|rule| MailSettingError::new("from", rule))?;
        let to = recipients(&settings.to)?;
        Ok(Some(Self {
            security: secured(&host, &settings.ca_file)?,
            host,
            port: settings.port,
            credentials,
            from,
            to,
            timeout: Duration::from_millis(settings.timeout_ms),
        }))
    }

    /// Time-out of one attempt.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a letter to all recipients. Returns why some of them were refused; the others have it.
    ///
    /// # Errors
    /// Nobody has it, as far as is known: a reply may have been lost.
    pub async fn send(&self, letter: &OperatorEmail) -> Result<Vec<MailError>, MailError> {
        let message = letter.compose(&self.from, &self.to)?;
        let delivery = self
            .deliver(&message)
            .instrument(traces::of_call("SMTP", &self.host));
        let sent = tokio::time::timeout(self.timeout, delivery).await;
        let (refused, connection) = sent.unwrap_or(Err(MailError::too_slow()))?;
        // The server has the letter; whether it says goodbye must not delay recording that.
        tokio::spawn(leave(connection));
        Ok(refused)
    }

    async fn deliver(&self, message: &[u8]) -> Result<(Vec<MailError>, AsyncSmtpConnection), MailError> {
        let mut smtp = self.connect().await?;
        if let Some((user, password)) = &self.credentials {
            let credentials = Credentials::new(user.clone(), password.expose_secret().to_owned());
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            smtp.auth(&mechanisms, &credentials)
                .await
                .map_err(Stage::SignIn.map_error())?;
        }
        let sender = Mail::new(Some(self.from.email.clone()), Vec::new());
        smtp.command(sender).await.map_err(Stage::Sender.map_error())?;
        let mut refused = Vec::new();
        for to in &self.to {
            let recipient = Rcpt::new(to.email.clone(), Vec::new());
            match smtp
                .command(recipient)
                .await
                .map_err(Stage::Recipient.map_error())
            {
                Ok(_) => {}
                Err(error) if error.is_reply() => refused.push(error),
                Err(error) => return Err(error),
            }
        }
        if refused.len() == self.to.len() {
            return Err(refused.swap_remove(0));
        }
        let ready = smtp.command(Data).await.map_err(Stage::Content.map_error())?;
        if !ready.has_code(READY_FOR_CONTENT) {
            return Err(MailError::unexpected_reply(Stage::Content));
        }
        let taken = smtp.message(message).await.map_err(Stage::Content.map_error())?;
        if taken.has_code(READY_FOR_CONTENT) {
            return Err(MailError::unexpected_reply(Stage::Content));
        }
        Ok((refused, smtp))
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, MailError> {
        let hello = ClientId::Domain(self.from.email.domain().to_owned());
        match &self.security {
            Security::Tls(tls) => {
                let server = (self.host.as_str(), self.port);
                AsyncSmtpConnection::connect_tokio1(server, None, &hello, Some(tls.clone()), None)
                    .await
                    .map_err(Stage::Connection.map_error())
            }
            Security::StartTls(tls) => {
                let stream = Box::new(PreTlsStream::new(self.dial().await?));
                let mut smtp = AsyncSmtpConnection::connect_with_transport(stream, &hello)
                    .await
                    .map_err(Stage::Connection.map_error())?;
                smtp.starttls(tls.clone(), &hello)
                    .await
                    .map_err(Stage::StartTls.map_error())?;
                Ok(smtp)
            }
            Security::Plain => {
                let stream = self.dial().await?;
                // The name localhost means what the resolver says.
                if !stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()) {
                    return Err(MailError::not_local());
                }
                AsyncSmtpConnection::connect_with_transport(Box::new(stream), &hello)
                    .await
                    .map_err(Stage::Connection.map_error())
            }
        }
    }

    async fn dial(&self) -> Result<TcpStream, MailError> {
        TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| MailError::new(Stage::Connection, error))
    }
}

async fn leave(mut connection: AsyncSmtpConnection) {
    tokio::time::timeout(FAREWELL, connection.quit()).await.ok();
}

fn host(text: &str) -> Result<String, MailSettingError> {
    if text.is_empty() {
        return Err(MailSettingError::new("host", "is required"));
    }
    let named = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if text.parse::<IpAddr>().is_err() && !text.chars().all(named) {
        return Err(MailSettingError::new(
            "host",
            "must be a host name or an IP address",
        ));
    }
    Ok(text.to_owned())
}

fn plain_security(host: &str) -> Result<Security, MailSettingError> {
    let address = host.parse::<IpAddr>();
    if host != "localhost" && !address.is_ok_and(|address| address.is_loopback()) {
        let rule = "must be localhost or a loopback address with mode \"plain\"";
        return Err(MailSettingError::new("host", rule));
    }
    Ok(Security::Plain)
}

fn recipients(to: &[String]) -> Result<Vec<Mailbox>, MailSettingError> {
    if to.is_empty() || to.len() > MAX_RECIPIENTS {
        let rule = format!("must have 1 to {MAX_RECIPIENTS} addresses");
        return Err(MailSettingError::new("to", rule));
    }
    let read = |(at, text): (usize, &String)| {
        mailbox(text).map_err(|rule| MailSettingError::new("to", format!("entry {} {rule}", at + 1)))
    };
    to.iter().enumerate().map(read).collect()
}

/// An address, with or without a name. In ASCII, so that every server can take it.
fn mailbox(text: &str) -> Result<Mailbox, &'static str> {
    const RULE: &str =
        "must be an e-mail address in ASCII, such as \"name@example.org\" or \"Name <name@example.org>\"";
    if text.contains(char::is_control) {
        return Err(RULE);
    }
    let read: Mailbox = text.parse().map_err(|_| RULE)?;
    let email: &str = read.email.as_ref();
    if email.is_ascii() { Ok(read) } else { Err(RULE) }
}

/// TLS with the certificates that the system trusts and those of `ca_file`.
fn tls(host: &str, ca_file: &Path) -> Result<TlsParameters, MailSettingError> {
    let unusable = |rule: String| MailSettingError::new("ca_file", rule);
    let mut parameters = TlsParameters::builder(host.to_owned());
    if !ca_file.as_os_str().is_empty() {
        let pem =
            std::fs::read_to_string(ca_file).map_err(|error| unusable(format!("can't be read: {error}")))?;
        let certificate = Certificate::from_pem(pem.as_bytes());
        // A text without any certificate is read as none.
        let certificate = certificate
            .ok()
            .filter(|_| pem.contains("-----BEGIN CERTIFICATE-----"));
        let certificate = certificate.ok_or_else(|| unusable("must hold certificates in PEM".into()))?;
        parameters = parameters.add_root_certificate(certificate);
    }
    parameters
        .build()
        .map_err(|error| unusable(format!("no certificate can be trusted: {error}")))
}

#[cfg(test)]
mod tests;
