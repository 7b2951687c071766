//! The values of observables that a pattern matches: what its indicator is known by, beside its name.
//!
//! Rule: a value counts where the pattern holds if it is there (`=`, `IN`, a network). What a pattern denies (`!=`, `NOT`)
//! or only bounds (ports, times, sizes) names nothing.

use std::borrow::Cow;
use std::net::IpAddr;

use super::lexer::{Keyword, Lexeme, Lexer};
use crate::domain::kinds::EntityKind;
use crate::domain::network::address;

/// A value in a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedValue<'p> {
    /// The wire name of an [`EntityKind`], or that of a MISP type for a kind without one.
    pub kind: Cow<'static, str>,
    pub value: Cow<'p, str>,
    /// Whether it is the value itself, not what a value is like.
    pub is_exact: bool,
}

/// The values that a pattern matches, as it spells them, in its order; none of a text that is no pattern. Linear in the
/// pattern.
pub fn observed_values(pattern: &str) -> Vec<ObservedValue<'_>> {
    let Some(tokens) = Lexer::new(pattern).spelled_tokens() else {
        return Vec::new();
    };
    let mut reader = Reader {
        tokens: &tokens,
        next: 0,
        found: Vec::new(),
        file: FileParts::default(),
    };
    while reader.next < tokens.len() {
        reader.step();
    }
    reader.end_observation();
    reader.found
}

struct Reader<'t, 'p> {
    tokens: &'t [(Lexeme, &'p str)],
    next: usize,
    found: Vec<ObservedValue<'p>>,
    file: FileParts<'p>,
}

/// The name and the directory of the file of one observation.
#[derive(Default)]
struct FileParts<'p> {
    names: Vec<Cow<'p, str>>,
    directories: Vec<Cow<'p, str>>,
}

/// How a comparison takes its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Network,
    Like,
}

impl<'p> Reader<'_, 'p> {
    fn peek(&self) -> Option<&(Lexeme, &'p str)> {
        self.tokens.get(self.next)
    }

    fn accept(&mut self, token: Lexeme) -> bool {
        let found = self.peek().is_some_and(|(next, _)| *next == token);
        self.next += usize::from(found);
        found
    }

    /// Reads one comparison, or passes one token.
    fn step(&mut self) {
        let Some((token, text)) = self.peek().copied() else {
            return;
        };
        self.next += 1;
        if token == Lexeme::RightBracket {
            self.end_observation();
        }
        if matches!(token, Lexeme::Name(name) if name.object_type) && self.accept(Lexeme::Colon) {
            let path = self.path();
            if let Some(operator) = self.operator() {
                self.operands(text, &path, operator);
            }
        }
    }

    /// The properties of an object path, without the places in lists.
    fn path(&mut self) -> Vec<Cow<'p, str>> {
        let mut path = Vec::new();
        loop {
            match self.peek().copied() {
                Some((Lexeme::Name(_), text)) => path.push(Cow::Borrowed(text)),
                Some((Lexeme::Text(_), text)) => path.push(unquoted(text)),
                _ => return path,
            }
            self.next += 1;
            while self.accept(Lexeme::LeftBracket) {
                while self.peek().is_some() && !self.accept(Lexeme::RightBracket) {
                    self.next += 1;
                }
            }
            if !self.accept(Lexeme::Dot) {
                return path;
            }
        }
    }

    fn operator(&mut self) -> Option<Operator> {
        let (token, text) = self.peek().copied()?;
        let is = |keywords: &[Keyword]| keywords.iter().any(|keyword| token == Lexeme::Keyword(*keyword));
        let operator = if (token == Lexeme::Equality && matches!(text, "=" | "==")) || is(&[Keyword::In]) {
            Operator::Equal
        } else if is(&[Keyword::IsSubset, Keyword::IsSuperset]) {
            Operator::Network
        } else if is(&[Keyword::Like]) {
            Operator::Like
        } else {
            return None;
        };
        self.next += 1;
        Some(operator)
    }

    fn operands(&mut self, object: &str, path: &[Cow<'p, str>], operator: Operator) {
        let in_set = self.accept(Lexeme::LeftParen);
        while let Some((token, text)) = self.peek().copied() {
            self.next += 1;
            let value = unquoted(text);
            let is_value = matches!(token, Lexeme::Text(_) | Lexeme::Integer { .. });
            if is_value && !value.trim().is_empty() {
                self.take(object, path, operator, value);
            }
            if !(in_set && self.accept(Lexeme::Comma)) {
                break;
            }
        }
    }

    fn take(&mut self, object: &str, path: &[Cow<'p, str>], operator: Operator, value: Cow<'p, str>) {
        let path: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
        let Some(kind) = kind_of(object, &path, &value) else {
            return;
        };
        if operator == Operator::Equal && object == "file" {
            match path.as_slice() {
                ["name"] => self.file.names.push(value.clone()),
                ["parent_directory_ref", "path"] => return self.file.directories.push(value),
                _ => {}
            }
        }
        let value = match kind.as_ref() {
            "asn" => Cow::Owned(format!("AS{value}")),
            "mac-address" => Cow::Owned(value.to_ascii_lowercase().replace('-', ":")),
            _ => value,
        };
        self.found.push(ObservedValue {
            kind,
            value,
            is_exact: operator != Operator::Like,
        });
    }

    /// A file in its directory is known by its path, too.
    fn end_observation(&mut self) {
        let FileParts { names, directories } = std::mem::take(&mut self.file);
        let paths: Vec<Cow<'p, str>> = match (names.as_slice(), directories.as_slice()) {
            ([name], [directory]) => vec![Cow::Owned(joined(directory, name))],
            _ => directories,
        };
        let path = |value| ObservedValue {
            kind: EntityKind::FilePath.as_str().into(),
            value,
            is_exact: true,
        };
        self.found.extend(paths.into_iter().map(path));
    }
}

/// The path of a file in its directory.
fn joined(directory: &str, name: &str) -> String {
    let separator = if directory.contains('\\') || !directory.contains('/') {
        '\\'
    } else {
        '/'
    };
    let directory = directory.trim_end_matches(['/', '\\']);
    format!("{directory}{separator}{name}")
}

/// The text of a quoted literal.
fn unquoted(literal: &str) -> Cow<'_, str> {
    let inner = literal
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .unwrap_or(literal);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            other => text.push(other),
        }
    }
    Cow::Owned(text)
}

/// The kind of the value at this path; `None` for what identifies nothing by itself.
fn kind_of(object: &str, path: &[&str], value: &str) -> Option<Cow<'static, str>> {
    let kind = |kind: EntityKind| Some(Cow::Borrowed(kind.as_str()));
    let named = |name: &'static str| Some(Cow::Borrowed(name));
    match (object, path) {
        ("ipv4-addr" | "ipv6-addr", ["value"]) => kind(address_kind(value)?),
        ("domain-name", ["value"]) => kind(EntityKind::Domain),
        ("url", ["value"]) => kind(EntityKind::Url),
        ("email-addr", ["value"]) => kind(EntityKind::Email),
        ("mac-addr", ["value"]) => named("mac-address"),
        ("autonomous-system", ["number"]) => kind(EntityKind::Asn),
        ("x509-certificate", ["hashes", algorithm]) => certificate_digest(algorithm),
        ("x509-certificate", ["serial_number"]) => named("x509-serial-number"),
        (_, [.., "hashes", algorithm]) => Some(digest_kind(algorithm)),
        (_, [.., "imphash"]) => named("imphash"),
        ("file", ["name"]) | ("process", ["image_ref" | "binary_ref", "name"]) => kind(file_kind(value)),
        ("directory", ["path"]) | ("file", ["parent_directory_ref", "path"]) => kind(EntityKind::FilePath),
        ("windows-registry-key", ["key"]) => kind(EntityKind::RegistryKey),
        ("mutex", ["name"]) => named("mutex"),
        ("user-account", ["account_login" | "user_id" | "display_name"]) => named("user-account"),
        ("process", ["command_line"]) => named("command-line"),
        ("email-message", ["subject"]) => named("email-subject"),
        ("email-message", ["message_id"]) => named("email-message-id"),
        ("email-message", [.., "value"]) => kind(EntityKind::Email),
        ("cryptocurrency-wallet" | "x-cryptocurrency-wallet", ["address" | "value"]) => {
            kind(EntityKind::Bitcoin)
        }
        (_, [.., "request_header", header]) if header.eq_ignore_ascii_case("user-agent") => {
            named("user-agent")
        }
        // The other end of a connection, and what a name resolves to.
        (_, [.., reference, "value"]) if reference.ends_with("_ref") || reference.ends_with("_refs") => {
            kind(address_kind(value).or_else(|| host_kind(value))?)
        }
        _ => None,
    }
}

fn address_kind(value: &str) -> Option<EntityKind> {
    let value = value.trim();
    if value.contains('/') {
        return Some(EntityKind::Cidr);
    }
    Some(match address(value)? {
        IpAddr::V4(_) => EntityKind::Ipv4,
        IpAddr::V6(_) => EntityKind::Ipv6,
    })
}

fn host_kind(value: &str) -> Option<EntityKind> {
    let is_host = value.contains('.') && !value.contains(|c: char| c.is_whitespace() || c == '/' || c == '@');
    match value.contains('@') {
        true => Some(EntityKind::Email),
        false => is_host.then_some(EntityKind::Domain),
    }
}

fn file_kind(value: &str) -> EntityKind {
    match value.contains(['/', '\\']) {
        true => EntityKind::FilePath,
        false => EntityKind::FileName,
    }
}

/// The kind of a digest by the name of its algorithm: `SHA-256`, `sha256`.
fn digest_kind(algorithm: &str) -> Cow<'static, str> {
    let plain: String = algorithm.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    let known = match plain.as_str() {
        "md5" => EntityKind::Md5,
        "sha1" => EntityKind::Sha1,
        "sha256" => EntityKind::Sha256,
        "sha512" => EntityKind::Sha512,
        _ => return Cow::Owned(plain),
    };
    Cow::Borrowed(known.as_str())
}

fn certificate_digest(algorithm: &str) -> Option<Cow<'static, str>> {
    let digest = digest_kind(algorithm);
    Some(Cow::Owned(format!("x509-fingerprint-{digest}")))
}

#[cfg(test)]
mod tests;
