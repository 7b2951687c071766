//! A pilot request: what somebody who wants to try the service tells its operator (hosted specification, "Pilot
//! intake").
//!
//! The texts end up in an e-mail, so those of one line can hold nothing that would begin another one.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use super::email::{MAX_EMAIL, is_email};
use super::node::wire_enum;
use super::schema::{text_schema, white};

/// Longest name and organisation, in characters.
pub const MAX_LINE: usize = 200;
/// Longest description of the tools in use, in characters.
pub const MAX_STACK: usize = 500;
/// Characters with a meaning of their own in an address list (RFC 5322 section 3.2.3).
const SPECIALS: &str = "()<>[]:;\\,\"";
/// Line and paragraph separator, which are no control characters.
const SEPARATORS: [char; 2] = ['\u{2028}', '\u{2029}'];
/// Whether the character turns the text around it (Unicode standard annex 9), which could make it read as another one.
fn is_override(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

text_schema! {
    /// A text of one line; white space around it is removed.
    PilotLine, (1, MAX_LINE), Some(concat!(
        r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069", white!(),
        r"][^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"
    )), "Example Bank"
}

text_schema! {
    /// An e-mail address without quoted names and comments.
    PilotEmail, (3, MAX_EMAIL), Some(concat!(
        r#"^[^@()<>\[\]:;\\,"\x00-\x1f\x7f-\x9f"#, white!(), r#"]+@[^@.()<>\[\]:;\\,"\x00-\x1f\x7f-\x9f"#, white!(),
        r#"][^@()<>\[\]:;\\,"\x00-\x1f\x7f-\x9f"#, white!(), "]*$"
    )), "grace@example.com"
}

text_schema! {
    /// The tools in use; white space around the text is removed.
    PilotStack, (0, MAX_STACK), Some(r"^[^\x00\u2028\u2029\u202a-\u202e\u2066-\u2069]*$"), "MISP, OpenCTI"
}

wire_enum! {
    /// What the applicant does.
    PilotRole, "cti-analyst, soc-manager, threat-intel-lead, security-engineer, ciso, other" {
        CtiAnalyst = "cti-analyst",
        SocManager = "soc-manager",
        ThreatIntelLead = "threat-intel-lead",
        SecurityEngineer = "security-engineer",
        Ciso = "ciso",
        Other = "other",
    }
}

wire_enum! {
    /// What became of the e-mail about a request.
    Notification, "pending, sent, failed, off" {
        Pending = "pending",
        Sent = "sent",
        // Given up after many attempts.
        Failed = "failed",
        // E-mail was switched off when the request arrived.
        Off = "off",
    }
}

/// A trimmed text of one line with 1 to 200 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line(String);

/// An address to which an answer can be sent. Stricter than [`is_email`]: no quoted names and no comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicantEmail(String);

/// A trimmed text of at most 500 characters; it may have several lines and may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CtiStack(String);

/// A valid application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    pub name: Line,
    pub email: ApplicantEmail,
    pub org: Line,
    pub role: PilotRole,
    pub cti_stack: Option<CtiStack>,
}

/// An application as the operator reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct PilotRequest {
    pub id: Uuid,
    #[schema(example = "Grace Hopper")]
    pub name: String,
    #[schema(example = "grace@example.com")]
    pub email: String,
    #[schema(example = "Example Bank")]
    pub org: String,
    pub role: PilotRole,
    pub cti_stack: Option<String>,
    pub created_at: DateTime<Utc>,
    pub notification: Notification,
}

impl PilotRequest {
    /// A new request, received at `now`.
    pub fn new(application: Application, notification: Notification, now: DateTime<Utc>) -> Self {
        let Application {
            name,
            email,
            org,
            role,
            cti_stack,
        } = application;
        Self {
            id: Uuid::now_v7(),
            name: name.0,
            email: email.0,
            org: org.0,
            role,
            cti_stack: cti_stack.map(|stack| stack.0).filter(|stack| !stack.is_empty()),
            created_at: now,
            notification,
        }
    }
}

impl TryFrom<String> for Line {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        one_line(&text).map(Self)
    }
}

impl From<Line> for String {
    fn from(line: Line) -> Self {
        line.0
    }
}

impl TryFrom<String> for ApplicantEmail {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let text = text.trim();
        let special = |c: char| SPECIALS.contains(c) || SEPARATORS.contains(&c) || is_override(c);
        if !is_email(text) || text.contains(special) {
            return Err("must be an e-mail address, such as name@example.com".into());
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for CtiStack {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let text = text.trim();
        at_most(text, MAX_STACK)?;
        if text.contains(|c| c == '\0' || SEPARATORS.contains(&c) || is_override(c)) {
            return Err(
                "must not hold NUL characters, Unicode line separators or direction overrides".into(),
            );
        }
        Ok(Self(text.to_owned()))
    }
}

fn one_line(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("is required and must not be blank".into());
    }
    at_most(text, MAX_LINE)?;
    if text.contains(|c: char| c.is_control() || SEPARATORS.contains(&c) || is_override(c)) {
        return Err("must not hold control characters, line breaks or direction overrides".into());
    }
    Ok(text.to_owned())
}

fn at_most(text: &str, most: usize) -> Result<(), String> {
    if text.chars().nth(most).is_some() {
        return Err(format!("must have at most {most} characters"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<String, String> {
        Line::try_from(text.to_owned()).map(|line| line.0)
    }

    #[test]
    fn a_line_is_trimmed_counted_in_characters_and_stays_one_line() {
        let full = "ü".repeat(MAX_LINE);
        assert_eq!(line(&format!(" {full}\r\n")), Ok(full.clone()));
        assert_eq!(
            line(&format!("{full}x")),
            Err("must have at most 200 characters".into())
        );
        assert_eq!(line("=?utf-8?b?QQ==?="), Ok("=?utf-8?b?QQ==?=".into()));
        assert_eq!(line("\u{200f}שלום"), Ok("\u{200f}שלום".into()));
        for blank in ["", " ", "\r\n", "\u{2003}"] {
            assert_eq!(
                line(blank),
                Err("is required and must not be blank".into()),
                "{blank:?}"
            );
        }
        for bad in [
            "a\nb",
            "a\rb",
            "a\0b",
            "a\u{85}b",
            "a\u{2028}b",
            "a\u{2029}b",
            "a\tb",
            "a\u{1b}[0m",
        ] {
            let rule = "must not hold control characters, line breaks or direction overrides";
            assert_eq!(line(bad), Err(rule.into()), "{bad:?}");
        }
    }

    #[test]
    fn an_address_can_stand_in_a_header_as_it_is() {
        let read = |text: &str| {
            ApplicantEmail::try_from(text.to_owned())
                .map(|email| email.0)
                .ok()
        };
        for good in ["a@b", "first.last+x@example.com", "ü@bücher.example"] {
            assert_eq!(read(&format!(" {good} ")).as_deref(), Some(good));
        }
        for bad in [
            "a",
            "a@",
            "a@b@c",
            "a b@c",
            "a@b,c@d",
            "a<b>@c",
            "\"a\"@b",
            "(x)a@b",
            "a@[127.0.0.1]",
            "a@b\r\nBcc: c@d",
            "a\u{2028}b@c",
            "a;b@c",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_stack_may_have_lines_and_may_be_left_out() {
        let read = |text: &str| CtiStack::try_from(text.to_owned()).map(|stack| stack.0);
        assert_eq!(read(" MISP\r\n.\r\nOpenCTI\n"), Ok("MISP\r\n.\r\nOpenCTI".into()));
        assert_eq!(
            read(&"x".repeat(501)),
            Err("must have at most 500 characters".into())
        );
        for bad in ["a\0", "a\u{2028}b", "a\u{202e}b"] {
            let rule = "must not hold NUL characters, Unicode line separators or direction overrides";
            assert_eq!(read(bad), Err(rule.into()), "{bad:?}");
        }
        let application = |stack: Option<&str>| Application {
            name: Line("n".into()),
            email: ApplicantEmail("a@b".into()),
            org: Line("o".into()),
            role: PilotRole::Ciso,
            cti_stack: stack.map(|text| CtiStack(text.into())),
        };
        let stack =
            |stack| PilotRequest::new(application(stack), Notification::Off, DateTime::UNIX_EPOCH).cti_stack;
        assert_eq!(stack(None), None);
        assert_eq!(stack(Some("")), None);
        assert_eq!(stack(Some("MISP")), Some("MISP".into()));
    }
}
