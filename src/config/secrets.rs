//! Secrets among the settings: always text, whatever they look like, and never shown in a message.

use std::ffi::OsString;
use std::path::Path;

use figment::Figment;
use figment::error::Kind;
use figment::providers::{Format, Toml};
use serde_json::Value;

use super::{ConfigError, PREFIX};

/// Secrets of the hosted service, and related names. Each has a variable of its own, without a section.
pub(super) const SECRETS: [&str; 10] = [
    "jwt_secret",
    "previous_jwt_secret",
    "admin_email",
    "admin_password",
    "storage_user",
    "storage_password",
    "embedding_api_key",
    "llm_api_key",
    "smtp_user",
    "smtp_password",
];
/// What is added to the name of a variable for that of a file with its value.
const FILE: &str = "_FILE";
/// The key under which the TOML parser passes on a date.
const DATE: &str = "$__toml_private_datetime";

/// The secrets set by variables, verbatim; an empty variable counts as unset.
pub(super) fn of_environment(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<(&'static str, String)>, ConfigError> {
    let mut found = Vec::new();
    for key in SECRETS {
        found.extend(read(&variable_of(key), &variable)?.map(|text| (key, text)));
    }
    Ok(found)
}

/// The secret that a variable holds, or that stands in the file which the variable of this name with `_FILE` names. An empty
/// variable counts as unset. Of a file the line break at its end is no part of the secret: editors add it.
///
/// # Errors
/// Names the variable: both are set, the file can't be read, or the secret is no text.
pub(crate) fn read(
    name: &str,
    variable: &impl Fn(&str) -> Option<OsString>,
) -> Result<Option<String>, ConfigError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let of_file = format!("{name}{FILE}");
    let refuse = |name: &str, rule: &str| Err(ConfigError::new(format!("{name}: {rule}")));
    match (set(name), set(&of_file)) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => refuse(&of_file, &format!("must not be set together with {name}")),
        (Some(value), None) => match value.into_string() {
            Ok(text) => Ok(Some(text)),
            Err(_) => refuse(name, "must be UTF-8 text"),
        },
        (None, Some(path)) => match std::fs::read_to_string(&path) {
            Ok(text) => {
                let text = text.strip_suffix('\n').unwrap_or(&text);
                let text = text.strip_suffix('\r').unwrap_or(text);
                match text.is_empty() {
                    true => refuse(&of_file, "the file is empty"),
                    false => Ok(Some(text.to_owned())),
                }
            }
            Err(error) => refuse(&of_file, &format!("{} can't be read: {error}", path.display())),
        },
    }
}

/// The variable that sets a secret of the hosted service.
pub(super) fn variable_of(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase())
}

/// Unquoted secrets of a file, which would be parsed as numbers, dates or booleans: by dotted path, as text. `is_text`
/// tells which keys must be text.
///
/// # Errors
/// Names the key whose original text can't be recovered from the parsed value.
pub(super) fn find_unquoted(
    file: &Path,
    is_text: impl Fn(&str) -> bool,
) -> Result<Vec<(String, String)>, ConfigError> {
    // An unreadable file is refused when all of its settings are loaded.
    let (Ok(source), Ok(tree)) = (
        std::fs::read_to_string(file),
        Figment::from(Toml::file(file)).extract::<Value>(),
    ) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    bare_values(&tree, String::new(), &mut found);
    found.retain(|(path, _)| is_text(path));
    for (path, text) in &found {
        let key = path.rsplit('.').next().unwrap_or(path);
        if !stands_in(&source, key, text) {
            return Err(ConfigError::new(format!("{path}: must be a text in quotes")));
        }
    }
    Ok(found)
}

fn bare_values(value: &Value, path: String, found: &mut Vec<(String, String)>) {
    match value {
        Value::Bool(_) | Value::Number(_) => found.push((path, value.to_string())),
        Value::Object(map) => {
            if let Some(Value::String(date)) = map.get(DATE) {
                found.push((path, date.clone()));
                return;
            }
            for (key, value) in map {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                bare_values(value, path, found);
            }
        }
        Value::Null | Value::String(_) | Value::Array(_) => {}
    }
}

/// Whether a file sets a key to exactly this text; `1_000` and `0x3e8`, for example, parse to a number of different
/// text.
fn stands_in(source: &str, key: &str, text: &str) -> bool {
    source.split(key).skip(1).any(|rest| {
        let rest = rest
            .trim_start_matches(['"', '\''])
            .trim_start_matches([' ', '\t']);
        let value = rest
            .strip_prefix('=')
            .map(|rest| rest.trim_start_matches([' ', '\t']));
        let after = value.and_then(|value| value.strip_prefix(text));
        after.is_some_and(|after| {
            let next = after.chars().next();
            next.is_none_or(|c| c.is_whitespace() || matches!(c, '#' | ',' | '}'))
        })
    })
}

/// The rule of a value that must not be shown.
pub(super) fn rule_of(kind: &Kind) -> String {
    if let Kind::InvalidType(_, expected)
    | Kind::InvalidValue(_, expected)
    | Kind::InvalidLength(_, expected) = kind
    {
        return format!("must be {expected}");
    }
    "can't be used".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_taken_as_the_text_it_is() {
        for text in [
            "202401019999",
            "true",
            "[1, 2]",
            "\"in quotes\"",
            "{a=1}",
            " a b ",
            "1e5",
            "'",
        ] {
            let variable =
                |name: &str| (name == "THREAT_MEMORY_ADMIN_PASSWORD").then(|| OsString::from(text));
            let found = of_environment(variable).unwrap();
            assert_eq!(found, [("admin_password", text.to_owned())]);
        }
        assert_eq!(of_environment(|_| Some(OsString::new())).unwrap(), []);
    }

    #[test]
    fn a_secret_may_stand_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        let path = file.clone().into_os_string();
        let of_file = |name: &str| (name == "THREAT_MEMORY_JWT_SECRET_FILE").then(|| path.clone());
        let both = |name: &str| match name {
            "THREAT_MEMORY_JWT_SECRET" => Some(OsString::from("direct")),
            _ => of_file(name),
        };
        let said = |read: Result<Option<String>, ConfigError>| read.unwrap_err().to_string();
        let name = "THREAT_MEMORY_JWT_SECRET";
        assert!(said(read(name, &of_file)).starts_with(&format!(
            "configuration: {name}_FILE: {} can't be read",
            file.display()
        )));
        for (text, want) in [("a b\n", "a b"), ("x\r\n", "x"), (" y ", " y "), ("z\n\n", "z\n")] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(read(name, &of_file).unwrap().as_deref(), Some(want));
            assert_eq!(
                of_environment(of_file).unwrap(),
                [("jwt_secret", want.to_owned())]
            );
        }
        assert!(said(read(name, &both)).ends_with("must not be set together with THREAT_MEMORY_JWT_SECRET"));
        std::fs::write(&file, "\n").unwrap();
        assert!(said(read(name, &of_file)).ends_with("the file is empty"));
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_that_is_no_text_is_refused_by_name() {
        use std::os::unix::ffi::OsStringExt;
        let error =
            of_environment(|name| (!name.ends_with(FILE)).then(|| OsString::from_vec(vec![b'k', 0xff])))
                .unwrap_err();
        assert_eq!(
            error.to_string(),
            "configuration: THREAT_MEMORY_JWT_SECRET: must be UTF-8 text"
        );
    }

    #[test]
    fn bare_values_of_a_file_are_text_when_the_text_is_certain() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            find_unquoted(&file, |path| path.ends_with("token"))
        };
        for (text, path, want) in [
            ("token = 202401019999", "token", "202401019999"),
            ("token=-5 # as agreed", "token", "-5"),
            ("[a]\ntoken = true", "a.token", "true"),
            ("a.token = 1.5", "a.token", "1.5"),
            ("a = { \"token\" = 7 }", "a.token", "7"),
            ("token = 2024-01-01", "token", "2024-01-01"),
        ] {
            let found = read(text).unwrap();
            assert_eq!(found, [(path.to_owned(), want.to_owned())], "{text}");
        }
        for text in ["token = 1_000_000", "token = 0x1f", "token = 1e5", "token = +5"] {
            let error = read(text).unwrap_err().to_string();
            assert_eq!(error, "configuration: token: must be a text in quotes", "{text}");
        }
        for text in ["token = \"5\"", "other = 5", "not toml", "token = [5]"] {
            assert_eq!(read(text).unwrap(), [], "{text}");
        }
    }
}
