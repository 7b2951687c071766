//! Query strings, parsed so that an error names the parameter and the rule.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::str::FromStr;

use actix_web::HttpRequest;
use chrono::{DateTime, Utc};

use super::openapi::PARAMETERS;
use crate::domain::error::DomainError;
use crate::domain::moment::{DayBound, moment};
use crate::http::query::{BadQuery, pairs, shown_name, truth};
use crate::store::Page;

/// Largest number of rows to skip: the engine skips them one by one.
const MAX_OFFSET: u32 = 1_000_000;

/// The query parameters of one request.
#[derive(Debug)]
pub struct Params(HashMap<String, String>);

/// Refuses parameters that the route of a request doesn't know.
///
/// # Errors
/// `Invalid` with the name of the parameter and the nearest known one.
pub(super) fn check(request: &HttpRequest) -> Result<(), DomainError> {
    PARAMETERS.check(request).map_err(invalid)
}

fn invalid(bad: BadQuery) -> DomainError {
    let (name, rule) = match bad {
        BadQuery::NotText(name) => (name, "must be UTF-8".to_owned()),
        BadQuery::Unknown(name, None) => (name, "is no parameter of this request".to_owned()),
        BadQuery::Unknown(name, Some(meant)) => (
            name,
            format!("is no parameter of this request; did you mean {meant}?"),
        ),
    };
    DomainError::invalid(shown_name(&name, "query string"), rule)
}

impl Params {
    /// Parses the query string. A list may be repeated: its values are joined with commas.
    ///
    /// # Errors
    /// `Invalid` with the name of a parameter that is not UTF-8, or is given twice.
    pub fn of(request: &HttpRequest) -> Result<Self, DomainError> {
        let mut params: HashMap<String, String> = HashMap::new();
        for (name, value) in pairs(request.query_string()).map_err(invalid)? {
            match params.entry(name) {
                Entry::Vacant(free) => drop(free.insert(value)),
                Entry::Occupied(mut taken) if PARAMETERS.is_list(request, taken.key()) => {
                    taken.get_mut().push(',');
                    taken.get_mut().push_str(&value);
                }
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

    /// A share from 0 to 1, or none if absent.
    pub fn share(&self, name: &str) -> Result<Option<f32>, DomainError> {
        let parse = |text: &String| {
            let share = text.trim().parse::<f32>().ok();
            let share = share.filter(|share| (0.0..=1.0).contains(share));
            share.ok_or_else(|| DomainError::invalid(name, "must be a number from 0 to 1"))
        };
        self.0.get(name).map(parse).transpose()
    }

    /// A page of a list: `limit`, from 1 to `most` or `default`, and `offset`.
    pub fn page(&self, default: u32, most: u32) -> Result<Page, DomainError> {
        Ok(Page {
            limit: self.number("limit", default, 1, most)?,
            offset: self.offset()?,
        })
    }

    /// The number of rows to skip.
    pub fn offset(&self) -> Result<u32, DomainError> {
        self.number("offset", 0, 0, MAX_OFFSET)
    }

    /// A truth value, or `default` if absent.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, DomainError> {
        let Some(text) = self.0.get(name) else {
            return Ok(default);
        };
        truth(text).ok_or_else(|| DomainError::invalid(name, "must be true or false"))
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

    /// The first and the last instant of a stretch of time, each a day in UTC or an RFC 3339 time.
    pub fn period(&self, first: &str, last: &str) -> Result<[Option<DateTime<Utc>>; 2], DomainError> {
        match [
            self.time(first, DayBound::First)?,
            self.time(last, DayBound::Last)?,
        ] {
            [Some(from), Some(to)] if from > to => {
                Err(DomainError::invalid(first, format!("must not be after {last}")))
            }
            period => Ok(period),
        }
    }

    fn time(&self, name: &str, bound: DayBound) -> Result<Option<DateTime<Utc>>, DomainError> {
        let rule = "must be a date such as 2024-03-01 or an RFC 3339 date-time";
        let parse = |text: &String| {
            // An unescaped `+` arrives as a space.
            let time = moment(&text.replace(' ', "+"), bound);
            time.ok_or_else(|| DomainError::invalid(name, rule))
        };
        self.0.get(name).map(parse).transpose()
    }
}
