//! The query parameters of a page (sections 3.4 and 3.5).

use actix_web::HttpRequest;
use chrono::{DateTime, Utc};

use crate::actors::graph_store::AskedPage;
use crate::domain::error::DomainError;
use crate::domain::moment::{DayBound, moment};
use crate::domain::taxii::asked::{ObjectMatch, VersionMatch};
use crate::http::query::{BadQuery, pairs, shown_name};

/// Objects on a page by default, and at most; more are answered with the most.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;
/// Most values of a parameter.
const MAX_VALUES: usize = 100;

/// Reads the parameters; `matches` are the fields that the resource can be filtered by.
///
/// # Errors
/// `Invalid` with the parameter and its rule.
pub(super) fn asked_page(request: &HttpRequest, matches: &[&str]) -> Result<AskedPage, DomainError> {
    let given = pairs(request.query_string()).map_err(|bad| match bad {
        BadQuery::NotText(name) | BadQuery::Unknown(name, _) => {
            DomainError::invalid(shown_name(&name, "query string"), "must be UTF-8")
        }
    })?;
    let mut asked = AskedPage {
        limit: DEFAULT_LIMIT,
        ..AskedPage::default()
    };
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in &given {
        if seen.contains(&name.as_str()) {
            return Err(DomainError::invalid(
                shown_name(name, "query string"),
                "must be given once",
            ));
        }
        seen.push(name);
        let field = name
            .strip_prefix("match[")
            .and_then(|rest| rest.strip_suffix(']'));
        match (name.as_str(), field) {
            ("limit", _) => asked.limit = limit(value)?,
            ("added_after", _) => asked.added_after = Some(time(name, value)?.timestamp_micros()),
            // A client sends an empty one if an answer has no `next`.
            ("next", _) => asked.next = Some(value.clone()).filter(|next| !next.is_empty()),
            (_, Some(field)) if matches.contains(&field) => {
                let values = values(name, value)?;
                match field {
                    "id" => asked.matches.ids = values,
                    "type" => asked.matches.types = values,
                    "spec_version" => asked.matches.spec_versions = values,
                    _ => asked.matches.versions = versions(name, &values)?,
                }
            }
            _ => {
                let rule = "is no parameter of this request";
                return Err(DomainError::invalid(shown_name(name, "query string"), rule));
            }
        }
    }
    Ok(asked)
}

/// What of an object is to be taken back: only versions can be named (section 5.7).
///
/// # Errors
/// As [`asked_page`]; a parameter of a page is none of this request.
pub(super) fn asked_versions(request: &HttpRequest) -> Result<ObjectMatch, DomainError> {
    let asked = asked_page(request, &["version", "spec_version"])?;
    let names = pairs(request.query_string()).unwrap_or_default();
    match names.into_iter().find(|(name, _)| !name.starts_with("match[")) {
        None => Ok(asked.matches),
        Some((name, _)) => {
            let rule = "is no parameter of this request";
            Err(DomainError::invalid(shown_name(&name, "query string"), rule))
        }
    }
}

fn limit(value: &str) -> Result<usize, DomainError> {
    let rule = "must be a whole number of at least 1";
    let number = value.parse::<u64>().ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| DomainError::invalid("limit", rule))?;
    Ok(usize::try_from(number).unwrap_or(MAX_LIMIT).min(MAX_LIMIT))
}

fn time(name: &str, value: &str) -> Result<DateTime<Utc>, DomainError> {
    // An unescaped `+` arrives as a space.
    let time = moment(&value.replace(' ', "+"), DayBound::First);
    time.ok_or_else(|| DomainError::invalid(name, "must be an RFC 3339 date-time"))
}

/// The values of a list, of which each but none is enough.
fn values(name: &str, value: &str) -> Result<Vec<String>, DomainError> {
    let values: Vec<String> = value
        .split(',')
        .map(|one| one.trim().to_owned())
        .filter(|one| !one.is_empty())
        .collect();
    match values.len() {
        0 => Err(DomainError::invalid(name, "must not be empty")),
        1..=MAX_VALUES => Ok(values),
        _ => Err(DomainError::invalid(
            name,
            format!("must have at most {MAX_VALUES} values"),
        )),
    }
}

fn versions(name: &str, values: &[String]) -> Result<VersionMatch, DomainError> {
    let mut asked = VersionMatch::default();
    for value in values {
        match value.as_str() {
            "first" => asked.first = true,
            "last" => asked.last = true,
            "all" => asked.all = true,
            other => match moment(&other.replace(' ', "+"), DayBound::First) {
                Some(time) => asked.at.push(time),
                None => {
                    let rule = "each must be first, last, all or an RFC 3339 date-time";
                    return Err(DomainError::invalid(name, rule));
                }
            },
        }
    }
    Ok(asked)
}
