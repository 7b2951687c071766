//! Names of settings and fields that hold secrets.

/// Name parts that mark a secret.
const SECRET_NAMES: [&str; 4] = ["secret", "password", "token", "key"];

/// Whether a setting or field of this name or dotted path holds a secret, whose value no message may show.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}
