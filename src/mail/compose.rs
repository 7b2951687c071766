//! Writes a letter as a message (RFC 5322) in which no text of somebody else stands as it came.
//!
//! The body is Base64, and what a subject takes from outside is an encoded word (RFC 2047), even if it is ASCII. So it
//! can neither begin a header nor end the message, nor pass for an encoded word itself.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use lettre::Address;
use lettre::message::header::{
    ContentTransferEncoding, ContentType, Header, HeaderName, HeaderValue, MIME_VERSION_1_0,
};
use lettre::message::{Body, Mailbox, Message};
use uuid::Uuid;

use super::failure::{MailError, Stage};

/// Bytes of text in one encoded word: 60 characters of Base64, of 75 that a word may have (RFC 2047 section 2).
const WORD: usize = 45;

/// An e-mail to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorEmail {
    /// Identifies the e-mail: sent again, it has the same Message-ID.
    pub id: Uuid,
    pub date: DateTime<Utc>,
    /// What the e-mail is about, in ASCII.
    pub subject: &'static str,
    /// The rest of the subject, from outside.
    pub about: String,
    /// Where answers go, from outside. An address that is not ASCII is left out of the header.
    pub reply_to: String,
    pub text: String,
}

impl OperatorEmail {
    pub(super) fn compose(&self, from: &Mailbox, to: &[Mailbox]) -> Result<Vec<u8>, MailError> {
        let body = Body::new_with_encoding(self.text.clone(), ContentTransferEncoding::Base64);
        let body = body.map_err(|_| MailError::new(Stage::Composition, "the text can't be encoded"))?;
        let mut message = Message::builder()
            .from(from.clone())
            .date(self.date.into())
            .message_id(Some(format!("<{}@{}>", self.id, from.email.domain())))
            .header(Subject {
                fixed: self.subject,
                about: self.about.clone(),
            })
            .header(AutoSubmitted)
            .header(MIME_VERSION_1_0)
            .header(ContentType::TEXT_PLAIN);
        for mailbox in to {
            message = message.to(mailbox.clone());
        }
        let answers: Option<Address> = self.reply_to.parse().ok().filter(|_| self.reply_to.is_ascii());
        if let Some(address) = answers {
            message = message.reply_to(Mailbox::new(None, address));
        }
        message
            .body(body)
            .map(|message| message.formatted())
            .map_err(|error| MailError::new(Stage::Composition, error))
    }
}

#[derive(Clone)]
struct Subject {
    fixed: &'static str,
    about: String,
}

impl Header for Subject {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Subject")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Err("is only written".into())
    }

    fn display(&self) -> HeaderValue {
        let mut value = self.fixed.to_owned();
        for word in words(&self.about) {
            value.push_str("\r\n =?utf-8?b?");
            value.push_str(&STANDARD.encode(word));
            value.push_str("?=");
        }
        HeaderValue::dangerous_new_pre_encoded(Self::name(), self.fixed.to_owned(), value)
    }
}

/// Cuts a text into pieces of at most [`WORD`] bytes, each of whole characters.
fn words(text: &str) -> Vec<&str> {
    let (mut words, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let most = WORD.min(rest.len());
        // A character has at most four bytes, so there is a boundary above 0.
        let end = (1..=most).rev().find(|at| rest.is_char_boundary(*at));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        words.push(word);
        rest = after;
    }
    words
}

/// Says that no person wrote the e-mail, so that no machine answers it (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}
