//! The rules of a body in the words of JSON.
//!
//! Rule: no error speaks of the types of this program. Parsers word theirs with them ("expected f64", "a sequence"),
//! which mean nothing to a caller, and quote the value, which may be a secret or very long.

use crate::domain::secret_name::is_secret_name;

/// Longest rule that is passed on, in bytes.
const MAX_RULE: usize = 300;

/// Beginnings of the messages of parsers about a text of a fixed form, and what the text must be.
const FORMS: [(&str, &str); 8] = [
    ("UUID parsing failed", "must be a UUID"),
    ("input is out of range", NO_TIME),
    ("no possible date and time", NO_TIME),
    ("input is not enough", NO_TIME),
    ("input contains invalid characters", NO_TIME),
    ("premature end of input", NO_TIME),
    ("trailing input", NO_TIME),
    ("bad or unsupported format", NO_TIME),
];
const NO_TIME: &str = "must be an RFC 3339 date-time";

/// The path of the field that a parser's message is about, and the rule that it breaks. `path` is `.` for the whole body.
pub(super) fn place_and_rule(path: &str, message: &str) -> (String, String) {
    let field = |name: &str| match path {
        "." => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    if let Some(name) = quoted_after(message, "missing field `") {
        return (field(name), "is required".to_owned());
    }
    if let Some(name) = quoted_after(message, "duplicate field `") {
        return (field(name), "must be given once".to_owned());
    }
    let place = if path == "." { "body" } else { path };
    (place.to_owned(), rule(place, message))
}

fn quoted_after<'m>(message: &'m str, start: &str) -> Option<&'m str> {
    message.strip_prefix(start)?.strip_suffix('`')
}

fn rule(place: &str, message: &str) -> String {
    if let Some((_, rule)) = FORMS.iter().find(|(start, _)| message.starts_with(start)) {
        return (*rule).to_owned();
    }
    let is_mismatch = ["invalid ", "unknown "]
        .iter()
        .any(|start| message.starts_with(start));
    if is_mismatch && let Some((_, expected)) = message.rsplit_once("expected ") {
        return must_be(expected);
    }
    if is_mismatch || is_secret_name(place) {
        return "can't be read".to_owned();
    }
    // A rule of a type of this program.
    if message.len() > MAX_RULE {
        return "is not as expected".to_owned();
    }
    message.to_owned()
}

/// The rule for what a parser expected.
fn must_be(expected: &str) -> String {
    if expected.contains('`') {
        let names: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        return format!("must be one of {}", names.join(", "));
    }
    let kind = match expected.split_whitespace().next().unwrap_or_default() {
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number that is not negative",
        "string" | "str" | "identifier" | "variant" => "a string",
        "struct" | "map" => "an object",
        "tuple" | "array" => "an array",
        "unit" => "null",
        _ => match expected {
            "a string" | "a borrowed string" | "a character" => "a string",
            "a boolean" => "true or false",
            "a map" => "an object",
            "a sequence" | "a tuple" => "an array",
            _ if expected.contains("UUID") => "a UUID",
            _ if expected.contains("RFC 3339") => "an RFC 3339 date-time",
            _ if expected.len() > MAX_RULE => return "is not as expected".to_owned(),
            _ => expected,
        },
    };
    format!("must be {kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_worded_as_json() {
        for (message, want) in [
            ("invalid type: string \"x\", expected f64", "must be a number"),
            (
                "invalid type: string \"expected u32\", expected u64",
                "must be a whole number that is not negative",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "must be a whole number that is not negative",
            ),
            ("invalid type: map, expected a sequence", "must be an array"),
            ("invalid type: null, expected a map", "must be an object"),
            (
                "invalid type: sequence, expected struct Feed",
                "must be an object",
            ),
            ("invalid type: integer `5`, expected a string", "must be a string"),
            (
                "invalid type: integer `5`, expected string or map",
                "must be a string",
            ),
            (
                "invalid type: string \"x\", expected a boolean",
                "must be true or false",
            ),
            (
                "invalid type: integer `5`, expected a formatted UUID string",
                "must be a UUID",
            ),
            ("UUID parsing failed: invalid character", "must be a UUID"),
            ("premature end of input", "must be an RFC 3339 date-time"),
            (
                "invalid type: integer `5`, expected an RFC 3339 formatted date and time string",
                "must be an RFC 3339 date-time",
            ),
            ("unknown variant `x`, expected `a` or `b`", "must be one of a, b"),
            (
                "unknown variant `x`, expected one of `a`, `b`, `c`",
                "must be one of a, b, c",
            ),
            (
                "invalid length 3, expected a tuple of size 2",
                "must be a tuple of size 2",
            ),
            ("must be one of TLP:WHITE", "must be one of TLP:WHITE"),
        ] {
            assert_eq!(
                place_and_rule("a[0].b", message),
                ("a[0].b".into(), want.into()),
                "{message}"
            );
        }
        for (path, message, place, rule) in [
            (".", "missing field `nodes`", "nodes", "is required"),
            ("a[0]", "missing field `b`", "a[0].b", "is required"),
            ("a[0]", "duplicate field `b`", "a[0].b", "must be given once"),
            (
                ".",
                "invalid type: null, expected struct X",
                "body",
                "must be an object",
            ),
            ("password", "hunter2 is too short", "password", "can't be read"),
        ] {
            assert_eq!(
                place_and_rule(path, message),
                (place.into(), rule.into()),
                "{message}"
            );
        }
    }
}
