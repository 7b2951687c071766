//! Why an e-mail was not sent, in words that hold nothing secret.

use std::error::Error as _;
use std::fmt;

use lettre::transport::smtp::Error as SmtpError;

/// Longest cause, in characters.
const MAX_CAUSE: usize = 200;

/// The step of an SMTP session that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Composition,
    Connection,
    StartTls,
    SignIn,
    Sender,
    Recipient,
    Content,
    /// The whole session took too long.
    Session,
}

/// An e-mail that was not sent, or a recipient that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{stage}: {cause}")]
pub struct MailError {
    stage: Stage,
    cause: String,
    /// The server's reply code, if it refused.
    code: Option<u16>,
}

impl MailError {
    pub(super) fn new(stage: Stage, cause: impl fmt::Display) -> Self {
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        Self {
            stage,
            cause: cause.to_string().chars().take(MAX_CAUSE).map(visible).collect(),
            code: None,
        }
    }

    pub(super) fn too_slow() -> Self {
        Self::new(Stage::Session, "timed out")
    }

    pub(super) fn unexpected_reply(stage: Stage) -> Self {
        Self::new(stage, "the server's reply is out of order")
    }

    pub(super) fn not_local() -> Self {
        Self::new(
            Stage::Connection,
            "refused: the server is not on this machine, and TLS is off",
        )
    }

    /// Whether the server refused with a reply (RFC 5321 section 4.2.1).
    pub(super) fn is_reply(&self) -> bool {
        self.code.is_some()
    }

    /// Whether the server refused for good: sending the same again soon would be refused again.
    pub fn is_permanent(&self) -> bool {
        self.code.is_some_and(|code| code >= 500)
    }
}

impl Stage {
    /// Converts what the SMTP client says. Of a refusal only the codes are kept: the text is the server's, which may
    /// repeat anything that it was sent.
    pub(super) fn map_error(self) -> impl Fn(SmtpError) -> MailError {
        move |error| {
            let code: Option<u16> = error.status().and_then(|code| code.to_string().parse().ok());
            if let Some(code) = code {
                let enhanced =
                    enhanced_code(&error).map_or_else(String::new, |enhanced| format!(" {enhanced}"));
                let mut refused = MailError::new(self, format!("refused with {code}{enhanced}"));
                refused.code = Some(code);
                return refused;
            }
            if error.is_response() {
                return MailError::new(
                    self,
                    "the connection ended early, or the server does not speak SMTP",
                );
            }
            let mut cause: &dyn std::error::Error = &error;
            while let Some(source) = cause.source() {
                cause = source;
            }
            MailError::new(self, cause)
        }
    }
}

/// The enhanced status code that a reply begins with (RFC 3463), such as `5.1.1`.
fn enhanced_code(error: &SmtpError) -> Option<String> {
    let reply = error.source()?.to_string();
    let word = reply.split_whitespace().next()?;
    let number = |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = word.split('.').collect();
    (parts.len() == 3 && parts.into_iter().all(number)).then(|| word.to_owned())
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Composition => "composing the e-mail",
            Stage::Connection => "connecting",
            Stage::StartTls => "STARTTLS",
            Stage::SignIn => "signing in",
            Stage::Sender => "sender",
            Stage::Recipient => "recipient",
            Stage::Content => "content",
            Stage::Session => "the mail server",
        })
    }
}
