//! Query strings, parsed so that an error names the parameter and the rule.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::str::FromStr;

use actix_web::{HttpRequest, web};
use chrono::{DateTime, Utc};

use crate::domain::error::DomainError;

/// The query parameters of one request.
#[derive(Debug)]
pub struct Params(HashMap<String, String>);

impl Params {
    /// Parses the query string.
    pub fn of(request: &HttpRequest) -> Result<Self, DomainError> {
        let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
        let pairs = pairs.map_err(|_| DomainError::invalid("query string", "is not well-formed"))?;
        let mut params = HashMap::new();
        for (name, value) in pairs.into_inner() {
            match params.entry(name) {
                Entry::Vacant(free) => drop(free.insert(value)),
                Entry::Occupied(taken) => {
                    return Err(DomainError::invalid(taken.key(), "must be given once"));
                }
            }
        }
        Ok(Self(params))
    }

    /// A required, non-empty text of at most `max` characters.
    pub fn text(&self, name: &str, max: usize) -> Result<String, DomainError> {
        match self.0.get(name).map(|text| text.trim()) {
            None | Some("") => Err(DomainError::invalid(name, "is required and must not be empty")),
            Some(text) if text.contains('\0') => {
                Err(DomainError::invalid(name, "must not hold a NUL character"))
            }
            Some(text) if text.chars().nth(max).is_some() => Err(DomainError::invalid(
                name,
                format!("must have at most {max} characters"),
            )),
            Some(text) => Ok(text.to_owned()),
        }
    }

    /// A parameter as it was sent.
    pub fn raw_value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A required parameter, whose rules are checked elsewhere.
    pub fn required(&self, name: &str) -> Result<String, DomainError> {
        let missing = || DomainError::invalid(name, "is required and must not be empty");
        self.0.get(name).cloned().ok_or_else(missing)
    }

    /// A text of at most `max` characters, or none if absent or empty.
    pub fn optional_text(&self, name: &str, max: usize) -> Result<Option<String>, DomainError> {
        let given = self.0.get(name).filter(|text| !text.trim().is_empty());
        given.map(|_| self.text(name, max)).transpose()
    }

    /// A number from `least` to `most`, or `default` if absent.
    pub fn number(&self, name: &str, default: u32, least: u32, most: u32) -> Result<u32, DomainError> {
        let Some(text) = self.0.get(name) else {
            return Ok(default);
        };
        let number = text
            .parse::<u32>()
            .ok()
            .filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            DomainError::invalid(name, format!("must be a whole number from {least} to {most}"))
        })
    }

    /// `true` or `false`, or `default` if absent.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, DomainError> {
        match self.0.get(name).map(String::as_str) {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(DomainError::invalid(name, "must be true or false")),
        }
    }

    /// A value of a type whose parse error states the rule.
    pub fn parse_value<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<Option<T>, DomainError> {
        let parse = |text: &String| {
            text.parse::<T>()
                .map_err(|rule| DomainError::invalid(name, rule.to_string()))
        };
        self.0.get(name).map(parse).transpose()
    }

    /// A UUID.
    pub fn uuid(&self, name: &str) -> Result<Option<uuid::Uuid>, DomainError> {
        let parse = |text: &String| {
            text.parse()
                .map_err(|_| DomainError::invalid(name, "must be a UUID"))
        };
        self.0.get(name).map(parse).transpose()
    }

    /// An RFC 3339 time.
    pub fn time(&self, name: &str) -> Result<Option<DateTime<Utc>>, DomainError> {
        let parse = |text: &String| {
            // An unescaped `+` arrives as a space.
            DateTime::parse_from_rfc3339(&text.replace(' ', "+"))
                .map(|time| time.with_timezone(&Utc))
                .map_err(|_| DomainError::invalid(name, "must be an RFC 3339 date-time"))
        };
        self.0.get(name).map(parse).transpose()
    }
}
