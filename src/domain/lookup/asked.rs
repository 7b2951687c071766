//! The values that a list or a text asks for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::domain::error::DomainError;
use crate::domain::extraction::{EntityKind, Extractor};
use crate::domain::kinds::{Case, Class};
use crate::domain::naming::{indicator_of, whole_hit};

/// Most distinct values of a look-up.
pub const MAX_VALUES: usize = 10_000;
/// Longest text, in bytes.
pub const MAX_TEXT: usize = 1 << 20;
/// Longest value, in characters.
pub const MAX_VALUE: usize = 4_000;
/// Longest part of a value that is shown again.
const SHOWN: usize = 200;

/// A value that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedValue {
    /// As it came first.
    pub sent: String,
    /// `None` if no rule recognises it.
    pub kind: Option<EntityKind>,
    /// Its normal form.
    pub value: String,
    /// How often it came.
    pub count: u64,
    /// Why it is no indicator, unless something that is known has it.
    pub reason: Option<String>,
}

impl AskedValue {
    fn read(sent: &str) -> Self {
        let asked = |kind, value, reason| Self {
            sent: shortened(sent),
            kind,
            value,
            count: 1,
            reason,
        };
        // What separates values in a list.
        let text = sent.trim_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '|'));
        if text.is_empty() {
            return asked(None, String::new(), Some("is empty".to_owned()));
        }
        if text.chars().nth(MAX_VALUE).is_some() {
            let reason = format!("has more than {MAX_VALUE} characters");
            return asked(None, String::new(), Some(reason));
        }
        let indicator = indicator_of(text);
        if indicator.kind.is_some() {
            return asked(indicator.kind, indicator.value, None);
        }
        // Assigned identifiers are typed in lower case, too.
        let identifier = whole_hit(text).or_else(|| whole_hit(&text.to_uppercase()));
        if let Some(hit) = identifier.filter(|hit| hit.kind.is_identifier()) {
            return asked(Some(hit.kind), hit.value, None);
        }
        let reason = reason_of(&indicator.value);
        asked(None, indicator.value, Some(reason))
    }

    /// Whether nothing can carry it.
    pub fn has_no_value(&self) -> bool {
        self.value.is_empty()
    }

    /// What is the same for all spellings of a value.
    fn key(&self) -> (Option<EntityKind>, String) {
        let folds = self.kind.is_some_and(|kind| kind.row().case == Case::AsWritten);
        let value = if self.has_no_value() {
            &self.sent
        } else {
            &self.value
        };
        let value = if folds {
            value.to_lowercase()
        } else {
            value.clone()
        };
        (self.kind, value)
    }
}

fn shortened(sent: &str) -> String {
    if sent.chars().nth(MAX_VALUE).is_none() {
        return sent.to_owned();
    }
    let shown: String = sent.chars().take(SHOWN).collect();
    format!("{shown}…")
}

/// Why a text is no indicator.
fn reason_of(text: &str) -> String {
    let (host, length) = match text.split_once('/') {
        Some((host, length)) => (host, Some(length)),
        None => (text, None),
    };
    let octets: Vec<&str> = host.split('.').collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if octets.len() == 4 && octets.iter().all(|octet| is_number(octet)) {
        return if octets
            .iter()
            .any(|octet| octet.len() > 1 && octet.starts_with('0'))
        {
            "an octet has a leading zero, which some programs read as an octal number: write it without"
                .to_owned()
        } else if length.is_some() {
            "is no network: its octets must be at most 255, its length at most 32".to_owned()
        } else {
            "is no address: its octets must be at most 255".to_owned()
        };
    }
    let digits = text.len();
    if digits >= 16 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return format!(
            "{digits} hexadecimal digits are no MD5 (32), SHA-1 (40), SHA-256 (64) or SHA-512 (128)"
        );
    }
    if text.contains(char::is_whitespace) {
        return "is no indicator: has several words; send one value per entry, or a text as `text`"
            .to_owned();
    }
    "is no indicator: neither an address, network, domain, URL, e-mail address, hash, file, registry key nor an \
     assigned identifier"
        .to_owned()
}

/// Distinct values in the order in which they came.
#[derive(Default)]
struct Distinct {
    values: Vec<AskedValue>,
    places: HashMap<(Option<EntityKind>, String), usize>,
}

impl Distinct {
    fn add(&mut self, asked: AskedValue) {
        match self.places.entry(asked.key()) {
            Entry::Occupied(known) => {
                let known = self.values.get_mut(*known.get());
                known.into_iter().for_each(|known| known.count += asked.count);
            }
            Entry::Vacant(free) => {
                free.insert(self.values.len());
                self.values.push(asked);
            }
        }
    }
}

/// What is asked for: a list of values, or a text that holds them.
#[derive(Debug)]
pub enum AskedList {
    Values(Vec<String>),
    Text(String),
}

impl AskedList {
    /// The list or the text of a request, which has one of them.
    ///
    /// # Errors
    /// `Invalid` when it has both or neither, or too much.
    pub fn of(values: Option<Vec<String>>, text: Option<String>) -> Result<Self, DomainError> {
        match (values, text) {
            (Some(values), None) if values.len() > MAX_VALUES => Err(DomainError::invalid(
                "values",
                format!(
                    "must have at most {MAX_VALUES} entries, and has {}: send them in parts",
                    values.len()
                ),
            )),
            (Some(values), None) => Ok(Self::Values(values)),
            (None, Some(text)) if text.len() > MAX_TEXT => Err(DomainError::invalid(
                "text",
                format!(
                    "must have at most {MAX_TEXT} bytes (1 MiB), and has {}: send it in parts, or only the values in it \
                     as `values`",
                    text.len()
                ),
            )),
            (None, Some(text)) => Ok(Self::Text(text)),
            (Some(_), Some(_)) => Err(DomainError::invalid(
                "values",
                "must not be sent together with text",
            )),
            (None, None) => Err(DomainError::invalid(
                "values",
                "is required, unless the values are sent within a text as `text`",
            )),
        }
    }

    /// The distinct values, in the order in which they came.
    ///
    /// # Errors
    /// `Invalid` when a text has too many.
    pub fn read(self) -> Result<Vec<AskedValue>, DomainError> {
        match self {
            Self::Values(values) => Ok(read_values(values.iter().map(String::as_str))),
            Self::Text(text) => {
                let asked = read_text(&text);
                if asked.len() > MAX_VALUES {
                    let rule = format!(
                        "has {} distinct values, and at most {MAX_VALUES} are looked up at once: send it in parts",
                        asked.len()
                    );
                    return Err(DomainError::invalid("text", rule));
                }
                Ok(asked)
            }
        }
    }
}

/// The values of a list, each once.
pub fn read_values<'v>(values: impl IntoIterator<Item = &'v str>) -> Vec<AskedValue> {
    let mut distinct = Distinct::default();
    // The same spelling again is not read again.
    let mut spellings: HashMap<&str, (usize, u64)> = HashMap::new();
    let mut first = Vec::new();
    for sent in values {
        let place = first.len();
        let (_, count) = spellings.entry(sent).or_insert_with(|| {
            first.push(sent);
            (place, 0)
        });
        *count += 1;
    }
    for sent in first {
        let count = spellings.get(sent).map_or(1, |(_, count)| *count);
        distinct.add(AskedValue {
            count,
            ..AskedValue::read(sent)
        });
    }
    distinct.values
}

/// The indicators and assigned identifiers in a text, each once.
pub fn read_text(text: &str) -> Vec<AskedValue> {
    let mut distinct = Distinct::default();
    for hit in Extractor::shared().extract(text) {
        if hit.kind.is_identifier() || hit.kind.row().class == Class::Indicator {
            distinct.add(AskedValue {
                sent: hit.text(text).to_owned(),
                kind: Some(hit.kind),
                value: hit.value,
                count: 1,
                reason: None,
            });
        }
    }
    distinct.values
}
