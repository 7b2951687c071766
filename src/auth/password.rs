//! Passwords: argon2id (RFC 9106) with the crate's recommended parameters. Deliberately slow: never call it on an async
//! thread.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};

use super::random_bytes;
use crate::domain::error::DomainError;

/// Hashes a password for storage.
pub fn hash(password: &SecretString) -> Result<String, DomainError> {
    let failed =
        |error: argon2::password_hash::Error| DomainError::internal("hashing the password failed", error);
    let salt = SaltString::encode_b64(&random_bytes::<16>()?).map_err(failed)?;
    let hash = Argon2::default().hash_password(password.expose_secret().as_bytes(), &salt);
    Ok(hash.map_err(failed)?.to_string())
}

/// Whether the password matches the stored hash. Without a hash, a stand-in is verified, so that an unknown account
/// takes as long as a wrong password.
pub fn verify(password: &SecretString, stored: Option<&str>) -> bool {
    static STAND_IN: LazyLock<Option<String>> = LazyLock::new(|| hash(&SecretString::from("")).ok());
    let known = stored.is_some();
    let Some(text) = stored.or(STAND_IN.as_deref()) else {
        return false;
    };
    let Ok(parsed) = PasswordHash::new(text) else {
        return false;
    };
    let fits = Argon2::default()
        .verify_password(password.expose_secret().as_bytes(), &parsed)
        .is_ok();
    fits && known
}

/// Generates the first administrator's password if none is given: 18 random bytes.
pub fn generate() -> Result<SecretString, DomainError> {
    Ok(SecretString::from(URL_SAFE_NO_PAD.encode(random_bytes::<18>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::password::check_new;

    #[test]
    fn only_the_right_password_of_a_known_account_fits() {
        let right = SecretString::from("correct horse battery");
        let stored = hash(&right).unwrap();
        assert!(stored.starts_with("$argon2id$"));
        assert!(verify(&right, Some(&stored)));
        assert!(!verify(&SecretString::from("wrong"), Some(&stored)));
        assert!(!verify(&SecretString::from(""), None));
    }

    #[test]
    fn what_is_generated_follows_the_rules() {
        for _ in 0..200 {
            assert!(check_new("p", &generate().unwrap(), "admin@localhost").is_ok());
        }
    }
}
