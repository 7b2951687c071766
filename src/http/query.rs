//! Query strings of both services: decoded strictly, and checked against the parameters that the OpenAPI document gives
//! to the route.
//!
//! Rule: what a route doesn't know is refused. A mistyped filter that is ignored answers with everything, as if it had
//! been applied.

use std::collections::BTreeMap;

use actix_web::HttpRequest;
use serde_json::Value;

use crate::domain::nearest::nearest;

/// Longest name that an error repeats, in characters.
const MAX_NAME: usize = 100;

/// A query parameter of a route.
#[derive(Debug)]
struct Parameter {
    name: String,
    is_list: bool,
}

/// The query parameters of each route, by method and path pattern.
#[derive(Debug)]
pub(super) struct KnownParameters(BTreeMap<(String, String), Vec<Parameter>>);

/// What is wrong with a query string.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadQuery {
    /// The parameter is not UTF-8.
    NotText(String),
    /// The route has no such parameter; the second is the nearest known one.
    Unknown(String, Option<&'static str>),
}

impl KnownParameters {
    /// The parameters that an OpenAPI document describes, except of the paths that ignore unknown ones.
    pub fn of(document: &Value, except: &[&str]) -> Self {
        let mut routes = BTreeMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            if except.contains(&path.as_str()) {
                continue;
            }
            for (method, operation) in item.as_object().into_iter().flatten() {
                let described = operation["parameters"].as_array().into_iter().flatten();
                let known = described.filter(|parameter| parameter["in"] == "query");
                let known = known.filter_map(|parameter| {
                    Some(Parameter {
                        name: parameter["name"].as_str()?.to_owned(),
                        is_list: parameter["schema"]["type"] == "array",
                    })
                });
                routes.insert((method.to_uppercase(), path.clone()), known.collect());
            }
        }
        Self(routes)
    }

    /// The parameters of the route of a request; `None` for a page, and for what no route answers.
    fn of_route(&self, request: &HttpRequest) -> Option<&[Parameter]> {
        let place = (request.method().to_string(), request.match_pattern()?);
        self.0.get(&place).map(Vec::as_slice)
    }

    /// Whether a parameter of the route of a request is a list, and may be repeated.
    pub fn is_list(&self, request: &HttpRequest, name: &str) -> bool {
        let known = self.of_route(request).into_iter().flatten();
        known.into_iter().any(|known| known.is_list && known.name == name)
    }

    /// # Errors
    /// The first parameter that is not text, or that the route of the request doesn't know.
    pub fn check(&'static self, request: &HttpRequest) -> Result<(), BadQuery> {
        match self.of_route(request) {
            Some(known) => check(request.query_string(), known),
            None => Ok(()),
        }
    }
}

fn check(query: &str, known: &'static [Parameter]) -> Result<(), BadQuery> {
    let names = || known.iter().map(|known| known.name.as_str());
    let is_unknown = |(name, _): &(String, String)| names().all(|known| known != name);
    match pairs(query)?.into_iter().find(is_unknown) {
        None => Ok(()),
        Some((name, _)) => {
            let meant = nearest(&name, names());
            Err(BadQuery::Unknown(name, meant))
        }
    }
}

/// The parameters of a query string in their order (WHATWG URL, `application/x-www-form-urlencoded`).
///
/// # Errors
/// A parameter that is not UTF-8: searching for the replacement characters would find something else.
pub(super) fn pairs(query: &str) -> Result<Vec<(String, String)>, BadQuery> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    let decoded = parts.map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = decode(name).ok_or_else(|| BadQuery::NotText("query string".to_owned()))?;
        match decode(value) {
            Some(value) => Ok((name, value)),
            None => Err(BadQuery::NotText(name)),
        }
    });
    decoded.collect()
}

/// A `%` that no two hexadecimal digits follow stands for itself.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let escaped = after.split_at_checked(2).filter(|_| *first == b'%');
        let byte = escaped.and_then(|(digits, after)| Some((hex_pair(digits)?, after)));
        bytes.push(match byte {
            Some((byte, after)) => {
                rest = after;
                byte
            }
            None if *first == b'+' => b' ',
            None => *first,
        });
    }
    String::from_utf8(bytes).ok()
}

fn hex_pair(digits: &[u8]) -> Option<u8> {
    let mut byte = [0];
    hex::decode_to_slice(digits, &mut byte).ok()?;
    Some(byte[0])
}

/// A truth value in any of the usual spellings, in any case.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// The name that an error gives to what the caller has named; `otherwise` if that is empty, too long or not printable.
pub(super) fn shown_name<'n>(name: &'n str, otherwise: &'n str) -> &'n str {
    let is_short = (1..=MAX_NAME).contains(&name.chars().count());
    if is_short && !name.chars().any(char::is_control) {
        name
    } else {
        otherwise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_string_is_decoded_strictly() {
        for (query, want) in [
            ("", vec![]),
            ("&&", vec![]),
            ("q=a+b%20c&k=1", vec![("q", "a b c"), ("k", "1")]),
            ("q=%C3%A9%2b", vec![("q", "é+")]),
            ("q=%&r=%zz&s=%4", vec![("q", "%"), ("r", "%zz"), ("s", "%4")]),
            (
                "a&b=&=c&d=e=f",
                vec![("a", ""), ("b", ""), ("", "c"), ("d", "e=f")],
            ),
            ("%71=x", vec![("q", "x")]),
        ] {
            let want: Vec<(String, String)> = want
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
            assert_eq!(pairs(query), Ok(want), "{query}");
        }
        for (query, name) in [("q=%ff", "q"), ("a=b&q=x%C3", "q"), ("%ff=x", "query string")] {
            assert_eq!(pairs(query), Err(BadQuery::NotText(name.into())), "{query}");
        }
    }

    #[test]
    fn an_unknown_parameter_is_named_with_the_nearest_known_one() {
        let known: &'static [Parameter] = Vec::leak(
            ["limit", "offset", "node_type"]
                .map(|name| Parameter {
                    name: name.into(),
                    is_list: false,
                })
                .into(),
        );
        for query in ["", "limit=1&offset=2", "limit=1&limit=2", "node%5Ftype=x"] {
            assert_eq!(check(query, known), Ok(()), "{query}");
        }
        for (query, name, meant) in [
            ("limits=1", "limits", Some("limit")),
            ("limit=1&Offset=2", "Offset", Some("offset")),
            ("nodeType=x", "nodeType", Some("node_type")),
            ("colour=red", "colour", None),
            ("=x", "", None),
        ] {
            assert_eq!(
                check(query, known),
                Err(BadQuery::Unknown(name.into(), meant)),
                "{query}"
            );
        }
    }

    #[test]
    fn truth_has_many_spellings() {
        for text in ["true", "True", "TRUE", "1", "yes", "Y", "on", "t"] {
            assert_eq!(truth(text), Some(true), "{text}");
        }
        for text in ["false", "False", "0", "no", "N", "off", "f"] {
            assert_eq!(truth(text), Some(false), "{text}");
        }
        for text in ["", "maybe", "2", " true", "wahr"] {
            assert_eq!(truth(text), None, "{text}");
        }
    }
}
