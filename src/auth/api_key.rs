//! API keys: `tm_` and 32 random bytes; only a digest is stored.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::random_bytes;
use crate::domain::error::DomainError;

/// Prefix of every key.
pub const PREFIX: &str = "tm_";

/// Generates a new key.
pub fn generate() -> Result<SecretString, DomainError> {
    let secret: [u8; 32] = random_bytes()?;
    Ok(SecretString::from(format!(
        "{PREFIX}{}",
        URL_SAFE_NO_PAD.encode(secret)
    )))
}

/// The digest by which a key is stored and looked up. A key has 256 random bits, so a fast hash is enough.
pub fn digest(key: &SecretString) -> String {
    hex::encode(Sha256::digest(key.expose_secret().as_bytes()))
}

/// Compares two secrets in constant time.
pub fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}
